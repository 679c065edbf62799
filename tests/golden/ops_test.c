// What PyTorch computed in float64 (torch_ops.txt), computed again here: results and gradients of
// every operation, through the dispatcher and the walk back, on both devices of this build.
#include "ops/engine.h"
#include "tests/device.h"
#include "tests/golden/cases.h"

static Device *device;
static Engine *engine;
static Format format; // of the numbers: fp64 on the reference device, fp32 elsewhere
static double tolerance;
static GoldenCase *golden;
static Error error;

// ---- how each operation is called ---------------------------------------------------------------

typedef struct OpCall {
    const char *name;
    OpId op;
    const char *inputs;  // tensors of the case in order; whole numbers in parentheses
    const char *outputs; // - for those that the file does not tell
    void (*attr)(OpAttr *attr);
} OpCall;

static double number(const char *name, double without) {
    return case_attr(golden, name, without);
}

static void both(int64_t pair[2], const char *name, double without) {
    pair[0] = pair[1] = (int64_t)number(name, without);
}

static void conv_attr(OpAttr *attr) {
    both(attr->conv.stride, "stride", 1);
    both(attr->conv.padding, "padding", 0);
    both(attr->conv.dilation, "dilation", 1);
    attr->conv.groups = (int64_t)number("groups", 1);
}

static void conv_transpose_attr(OpAttr *attr) {
    conv_attr(attr);
    for (int i = 0; i < 2; i++) // its size is asked for, since several lead to the same input
        attr->conv.input[i] = case_tensor(golden, "y")->shape[1 + i];
}

static void pool_attr(OpAttr *attr) {
    both(attr->pool.kernel, "kernel", 1);
    both(attr->pool.stride, "stride", 1);
    both(attr->pool.padding, "padding", 0);
}

static void norm_attr(OpAttr *attr) {
    attr->norm.epsilon = number("epsilon", 0);
    attr->norm.groups = (int64_t)number("groups", 1);
    attr->norm.momentum = number("momentum", 0);
}

static void attention_attr(OpAttr *attr) {
    attr->attention.scale = number("scale", 1);
    attr->attention.causal = number("causal", 0) != 0;
}

static void slope_attr(OpAttr *attr) {
    attr->scalar.a = number("a", 0);
}

static const OpCall calls[] = {
    {"linear", OP_linear, "x w bias", "y", NULL},
    {"matmul", OP_matmul, "x w", "y", NULL},
    {"conv2d", OP_conv2d, "x w bias", "y", conv_attr},
    {"conv_transpose2d", OP_conv_transpose2d, "x w bias", "y", conv_transpose_attr},
    {"attention", OP_attention, "q k v", "y sums", attention_attr},
    {"layer_norm", OP_layer_norm, "x weight bias", "y mean inverse", norm_attr},
    {"batch_norm", OP_batch_norm, "x weight bias", "y mean inverse", norm_attr},
    {"batch_norm_infer", OP_batch_norm_infer, "x weight bias running_mean running_variance", "y",
     norm_attr},
    {"group_norm", OP_group_norm, "x weight bias", "y mean inverse", norm_attr},
    {"gelu", OP_gelu, "x", "y", NULL},
    {"silu", OP_silu, "x", "y", NULL},
    {"tanh", OP_tanh, "x", "y", NULL},
    {"sigmoid", OP_sigmoid, "x", "y", NULL},
    {"softplus", OP_softplus, "x", "y", NULL},
    {"relu", OP_relu, "x", "y", NULL},
    {"leaky_relu", OP_leaky_relu, "x", "y", slope_attr},
    {"softmax", OP_softmax, "x", "y", NULL},
    {"log_softmax", OP_log_softmax, "x", "y", NULL},
    {"cross_entropy", OP_cross_entropy, "x (classes)", "y sums", NULL},
    {"bce_with_logits", OP_bce_with_logits, "x t", "y", NULL},
    {"mse", OP_mse, "x t", "y", NULL},
    {"max_pool2d", OP_max_pool2d, "x", "y -", pool_attr},
    {"avg_pool2d", OP_avg_pool2d, "x", "y", pool_attr},
    {"embedding", OP_embedding, "weight (index)", "y", NULL},
};
enum { CALLS = sizeof calls / sizeof *calls };

static const OpCall *call_of(const char *name) {
    for (int i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    return NULL;
}

// ---- numbers in and out -------------------------------------------------------------------------

static Tensor *tensor_of(const CaseTensor *source, Format wanted, bool lone) {
    void *host = calloc((size_t)source->count, sizeof(double));
    for (int i = 0; i < source->count; i++) {
        if (wanted == FORMAT_FP64)
            ((double *)host)[i] = source->values[i];
        else if (wanted == FORMAT_FP32)
            ((float *)host)[i] = source->values[i];
        else
            ((int32_t *)host)[i] = (int32_t)source->values[i];
    }
    Tensor *tensor = tensor_from_host(device, wanted, lone ? 0 : source->ndim, source->shape, host,
                                      MEMORY_DATA, &error);
    CHECK_MESSAGE(tensor, "%s", error.text);
    free(host);
    return tensor;
}

static void compare(const Tensor *tensor, const char *name) {
    const CaseTensor *wanted = case_tensor(golden, name);
    CHECK_MESSAGE(wanted && tensor && tensor_count(tensor) == wanted->count,
                  "%s: no such result, or not of the size in the file", name);
    if (!wanted || !tensor || tensor_count(tensor) != wanted->count)
        return;
    Tensor *wide = op_cast(engine, (Tensor *)tensor, FORMAT_FP32, &error);
    float *values = calloc((size_t)wanted->count, sizeof *values);
    CHECK_MESSAGE(wide && tensor_read(wide, values, &error), "%s: %s", name, error.text);
    double largest = 0;
    for (int i = 0; i < wanted->count; i++)
        largest = fmax(largest, fabs((double)wanted->values[i]));
    // What is nearly 0 is the difference of larger numbers: it is held to a share of those.
    for (int i = 0; i < wanted->count; i++) {
        double expected = (double)wanted->values[i], got = (double)values[i];
        double bound = tolerance * fmax(fabs(expected), fmin(largest, 1) / 16);
        if (format == FORMAT_FP64)
            bound = tolerance * fmax(fabs(expected), 1);
        CHECK_MESSAGE(fabs(got - expected) <= bound, "%s[%d] is %.9g, expected %.9g", name, i, got,
                      expected);
    }
    free(values);
    tensor_release(wide);
}

// The logarithms of sums come in two parts: what a row has in common, and the rest.
static void compare_sums(Tensor *parts) {
    OpAttr attr = {.reduce = {.dims = 1}};
    Tensor *sums = op_one(engine, OP_sum, parts, &attr, &error);
    compare(sums, "sums");
    tensor_release(sums);
}

// The next word of a list; false at its end. A word in parentheses is of whole numbers.
static bool next_word(const char **at, char *word, bool *whole) {
    int used = 0;
    *whole = false;
    if (sscanf(*at, " (%63[^)])%n", word, &used) == 1 && used > 0)
        *whole = true;
    else if (sscanf(*at, " %63s%n", word, &used) != 1)
        return false;
    *at += used;
    return true;
}

// ---- the cases ----------------------------------------------------------------------------------

static void run_call(const OpCall *call) {
    Tensor *inputs[OP_MAX_INPUTS] = {0}, *outputs[OP_MAX_OUTPUTS] = {0};
    char names[OP_MAX_INPUTS][CASE_NAME], word[CASE_NAME];
    int count = 0;
    bool whole;
    for (const char *at = call->inputs; next_word(&at, names[count], &whole); count++) {
        const CaseTensor *source = case_tensor(golden, names[count]);
        inputs[count] = tensor_of(source, whole ? FORMAT_INT32 : format, false);
        snprintf(word, sizeof word, "d%.60s", names[count]);
        inputs[count]->requires_grad = case_tensor(golden, word) != NULL;
    }
    OpAttr attr = {.has_out_format = false};
    if (call->attr)
        call->attr(&attr);
    bool done = op_apply(engine, call->op, inputs, count, &attr, outputs, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    int output = 0;
    for (const char *at = call->outputs; done && next_word(&at, word, &whole); output++)
        if (strcmp(word, "sums") == 0)
            compare_sums(outputs[output]);
        else if (word[0] != '-')
            compare(outputs[output], word);
    if (done) {
        Tensor *seed = tensor_of(case_tensor(golden, "dy"), outputs[0]->view.format,
                                 outputs[0]->view.ndim == 0);
        CHECK_MESSAGE(engine_backward(engine, outputs[0], seed, NULL, &error), "%s", error.text);
        tensor_release(seed);
    }
    for (int i = 0; i < count; i++) {
        snprintf(word, sizeof word, "d%.60s", names[i]);
        if (inputs[i]->requires_grad)
            compare(inputs[i]->grad, word);
        tensor_release(inputs[i]);
    }
    for (int i = 0; i < op_table[call->op].outputs; i++)
        tensor_release(outputs[i]);
}

static void the_case(void) {
    error = (Error){0};
    const OpCall *call = call_of(golden->name);
    CHECK_MESSAGE(call && strcmp(golden->kind, "op") == 0,
                  "%s %s: this test knows none of that name", golden->kind, golden->name);
    if (call)
        run_call(call);
}

// What the file has of a case is tested to the last name: one that was mistyped, on either side,
// would test nothing.
static void all_names(void) {
    const char *left = case_unasked(golden);
    CHECK_MESSAGE(!left, "%s: this test asks for nothing of that name", left);
}

// The running statistics that the batch norm of the file left behind.
static void running_statistics(void) {
    static const char *const names[] = {"running_mean", "running_variance", "mean", "inverse"};
    const CaseTensor *x = case_tensor(golden, "x"), *mean = case_tensor(golden, "mean");
    Tensor *inputs[4], *outputs[OP_MAX_OUTPUTS] = {0};
    for (int i = 0; i < 4; i++)
        inputs[i] = tensor_of(case_tensor(golden, names[i]), FORMAT_FP32, false);
    OpAttr attr = {.has_out_format = true, .out_format = FORMAT_FP32};
    norm_attr(&attr);
    attr.norm.count = x->count / mean->count;
    CHECK_MESSAGE(op_apply(engine, OP_batch_norm_track, inputs, 4, &attr, outputs, &error), "%s",
                  error.text);
    compare(outputs[0], "running_mean_after");
    compare(outputs[1], "running_variance_after");
    for (int i = 0; i < 4; i++)
        tensor_release(inputs[i]);
    tensor_release(outputs[0]);
    tensor_release(outputs[1]);
}

static bool run_file(const char *device_name) {
    FILE *file = fopen("tests/golden/torch_ops.txt", "r");
    if (!file) {
        printf("not ok torch_ops: tests/golden/torch_ops.txt cannot be read from here\n");
        return false;
    }
    int seen[CALLS] = {0};
    GoldenCase next;
    while (case_next(file, &next)) {
        char name[3 * CASE_NAME];
        golden = &next;
        const OpCall *call = call_of(next.name);
        snprintf(name, sizeof name, "%s_%d_on_%s", next.name, call ? ++seen[call - calls] : 1,
                 device_name);
        test_run(name, the_case);
        if (strcmp(next.name, "batch_norm") == 0) {
            snprintf(name, sizeof name, "batch_norm_running_statistics_on_%s", device_name);
            test_run(name, running_statistics);
        }
        snprintf(name, sizeof name, "%s_%d_all_names_on_%s", next.name,
                 call ? seen[call - calls] : 1, device_name);
        test_run(name, all_names);
        case_clear(&next);
    }
    fclose(file);
    bool complete = true;
    for (int i = 0; i < CALLS; i++)
        if (!seen[i])
            complete = printf("not ok %s_on_%s: the file has no case of it\n", calls[i].name,
                              device_name) < 0;
    return complete;
}

int main(void) {
    const char *const *devices = test_device_names();
    bool complete = true;
    for (size_t i = 0; devices[i]; i++) {
        Preset preset;
        bool is_ref = strcmp(devices[i], "ref") == 0;
        format = is_ref ? FORMAT_FP64 : FORMAT_FP32;
        tolerance = is_ref ? 1e-6 : 1e-4; // weights' gradients and statistics are always fp32
        if (!device_open(devices[i], 1, &device, &error) ||
            !preset_resolve("fp32", device, &preset, NULL, 0, &error) ||
            !(engine = engine_new(device, &preset, 1, &error))) {
            printf("not ok %s: %s\n", devices[i], error.text);
            return 1;
        }
        complete = run_file(devices[i]) && complete;
        engine_free(engine);
        device_close(device);
    }
    return test_end() || !complete;
}
