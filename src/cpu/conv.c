// Convolution: what a call asks for, and which way it is computed.
#include "cpu/conv.h"

#include "cpu/kernels.h"
#include "cpu/onednn.h"
#include "cpu/products.h"

// Elements before it that a view's conversion takes; all arrays of a call may need one.
typedef struct Conversion {
    View given; // what the call gave; data NULL: as it is
    float *buffer;
} Conversion;

enum { ARRAYS = 4 };

static ConvProblem problem_of(const Device *device, ConvPass pass, const ConvAttr *attr,
                              const ConvArrays *arrays) {
    const View *x = &arrays->x, *weight = &arrays->weight, *y = &arrays->y;
    ConvProblem problem = {
        .images = x->shape[0],
        .size = {x->shape[1], x->shape[2]},
        .channels = x->shape[3],
        .filters = y->shape[3],
        .out_size = {y->shape[1], y->shape[2]},
        .kernel = {weight->shape[1], weight->shape[2]},
        .groups = attr->groups,
        .pass = (int32_t)pass,
        .activation = pass == CONV_FORWARD ? (int32_t)attr->activation : ACTIVATION_NONE,
        .has_bias = arrays->bias.data != NULL,
    };
    for (int i = 0; i < 2; i++) {
        problem.stride[i] = attr->stride[i];
        problem.padding[i] = attr->padding[i];
        problem.dilation[i] = attr->dilation[i];
    }
    problem.threads = (int32_t)cpu_workers(device, conv_cost(&problem));
    return problem;
}

// ---- the choice ---------------------------------------------------------------------------------

typedef enum ConvWay {
    WAY_COLUMNS, // our own product, in the formats given
    WAY_LOW,     // the library in bf16
    WAY_FP32,    // the library in fp32, with conversions where the formats are others
} ConvWay;

static bool is_empty(const ConvProblem *problem) {
    return conv_out_pixels(problem) == 0 || problem->filters == 0 || problem->channels == 0 ||
           problem->size[0] == 0 || problem->size[1] == 0;
}

static ConvWay choose_way(const ConvProblem *problem, const ConvArrays *arrays, ConvPass pass) {
    const View *reads[] = {&arrays->x, &arrays->weight, &arrays->y};
    static const int written[] = {
        [CONV_FORWARD] = 2, [CONV_BACKWARD_INPUT] = 0, [CONV_BACKWARD_WEIGHT] = 1};
    bool all_bf16 = true, all_fp16 = true;
    for (int i = 0; i < 3; i++) {
        all_bf16 = all_bf16 && (i == written[pass] || reads[i]->format == FORMAT_BF16);
        all_fp16 = all_fp16 && (i == written[pass] || reads[i]->format == FORMAT_FP16);
    }
    const View *out = reads[written[pass]];
    if (is_empty(problem))
        return WAY_COLUMNS;
    if (all_bf16 && onednn_has_bf16() && out->format != FORMAT_FP16)
        return WAY_LOW;
    // Tiles multiply fp16 exactly in our product, and faster than fp32 in the library.
    if (all_fp16 && isa_has_amx())
        return WAY_COLUMNS;
    return WAY_FP32;
}

// ---- conversions --------------------------------------------------------------------------------

typedef struct ConvertTask {
    const Device *device;
    View view;
    float *values;
    bool load;
} ConvertTask;

static void convert_range(void *context, int64_t begin, int64_t end, int thread) {
    const ConvertTask *task = context;
    (void)thread;
    if (task->load)
        cpu_load(task->device, task->view.format, cpu_at(&task->view, begin), task->values + begin,
                 end - begin);
    else
        cpu_store(task->device, task->view.format, task->values + begin,
                  cpu_at_mutable(&task->view, begin), end - begin);
}

static void convert(const Device *device, const View *view, float *values, bool load) {
    ConvertTask task = {device, *view, values, load};
    int64_t count = view_count(view);
    cpu_parallel(device, count, CPU_BLOCK, (double)count * CPU_STREAM, convert_range, &task);
}

// Runs the library, with fp32 copies of what is not in the format that it computes in.
static bool run_library(Device *device, const OneDnnConv *conv, const ConvProblem *problem,
                        const ConvArrays *arrays, Error *error) {
    ConvArrays theirs = *arrays;
    View *views[ARRAYS] = {&theirs.x, &theirs.weight, &theirs.bias, &theirs.y};
    Conversion conversions[ARRAYS];
    static const int written[3][2] = {
        [CONV_FORWARD] = {3, 3}, [CONV_BACKWARD_INPUT] = {0, 0}, [CONV_BACKWARD_WEIGHT] = {1, 2}};
    const int *outputs = written[problem->pass];
    size_t bytes = cpu_line(onednn_conv_workspace(conv)), own = bytes;
    for (int i = 0; i < ARRAYS; i++) {
        bool output = i == outputs[0] || i == outputs[1];
        Format wanted = i == 2   ? FORMAT_FP32
                        : output ? (Format)problem->out_format
                                 : (Format)problem->format;
        conversions[i] = (Conversion){.given = {.data = NULL}};
        if (!views[i]->data || views[i]->format == wanted)
            continue;
        conversions[i].given = *views[i];
        bytes += cpu_line((size_t)view_count(views[i]) * sizeof(float));
    }
    char *memory = device_workspace(device, bytes, error);
    if (!memory)
        return false;
    char *next = memory + own;
    for (int i = 0; i < ARRAYS; i++) {
        if (!conversions[i].given.data)
            continue;
        conversions[i].buffer = (float *)(void *)next;
        next += cpu_line((size_t)view_count(views[i]) * sizeof(float));
        *views[i] = view_dense(conversions[i].buffer, FORMAT_FP32, views[i]->ndim, views[i]->shape);
        if (i != outputs[0] && i != outputs[1])
            convert(device, &conversions[i].given, conversions[i].buffer, true);
    }
    if (!onednn_conv_run(conv, &theirs, memory, error))
        return false;
    for (int k = 0; k < 2; k++)
        if (conversions[outputs[k]].given.data && (k == 0 || outputs[0] != outputs[1]))
            convert(device, &conversions[outputs[k]].given, conversions[outputs[k]].buffer, false);
    return true;
}

static bool run(Device *device, ConvPass pass, const ConvAttr *attr, const ConvArrays *arrays,
                Error *error) {
    ConvProblem problem = problem_of(device, pass, attr, arrays);
    ConvWay way = choose_way(&problem, arrays, pass);
    const OneDnnConv *conv = NULL;
    if (way != WAY_COLUMNS) {
        bool low = way == WAY_LOW;
        const View *out = pass == CONV_FORWARD          ? &arrays->y
                          : pass == CONV_BACKWARD_INPUT ? &arrays->x
                                                        : &arrays->weight;
        problem.format = low ? FORMAT_BF16 : FORMAT_FP32;
        problem.out_format = low && out->format == FORMAT_BF16 ? FORMAT_BF16 : FORMAT_FP32;
        conv = onednn_conv(cpu_onednn(device), &problem);
    }
    return conv ? run_library(device, conv, &problem, arrays, error)
                : conv_columns_run(device, &problem, arrays, error);
}

// ---- the kernels --------------------------------------------------------------------------------

bool cpu_conv2d(Device *device, const KernelCall *call, Error *error) {
    ConvArrays arrays = {call->input[0], call->input[1], call->input[2], call->output[0]};
    return run(device, CONV_FORWARD, &call->attr->conv, &arrays, error);
}

bool cpu_conv2d_backward_input(Device *device, const KernelCall *call, Error *error) {
    ConvArrays arrays = {call->output[0], call->input[1], {.data = NULL}, call->input[0]};
    return run(device, CONV_BACKWARD_INPUT, &call->attr->conv, &arrays, error);
}

bool cpu_conv2d_backward_weight(Device *device, const KernelCall *call, Error *error) {
    ConvArrays arrays = {call->input[0], call->output[0], call->output[1], call->input[1]};
    return run(device, CONV_BACKWARD_WEIGHT, &call->attr->conv, &arrays, error);
}
