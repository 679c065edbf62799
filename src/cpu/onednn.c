#include "cpu/onednn.h"

#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"

// What a primitive reads and writes.
enum { SLOT_X, SLOT_WEIGHT, SLOT_BIAS, SLOT_Y, SLOTS };

struct OneDnnConv {
    ConvProblem problem;
    OneDnnConv *next;     // in the same bucket
    dnnl_stream_t stream; // the device's
    bool usable;
    dnnl_primitive_t primitive;
    dnnl_memory_t slot[SLOTS]; // NULL: not used
    // Where the primitive wants weights in another order than ours: as we keep them, and what
    // brings them from the one to the other. Else NULL and 0.
    dnnl_memory_t weights;
    dnnl_primitive_t reorder;
    size_t weight_bytes; // in its order
    dnnl_memory_t scratch;
    size_t scratch_bytes;
};

enum { BUCKETS = 256 };

struct OneDnn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    OneDnnConv *last; // of the last call: layers are often run twice in a row
    OneDnnConv *bucket[BUCKETS];
};

static bool ok(dnnl_status_t status) {
    return status == dnnl_success;
}

// A processor may have more than the named level says (AVX512-BF16 beside a plain AVX-512).
static void keep_to_named_level(void) {
    static const dnnl_cpu_isa_t most[ISA_COUNT] = {
        [ISA_BASE] = dnnl_cpu_isa_sse41,
        [ISA_AVX2] = dnnl_cpu_isa_avx2,
        [ISA_AVX512] = dnnl_cpu_isa_avx512_core_vnni,
        [ISA_BF16] = dnnl_cpu_isa_avx512_core_bf16,
        [ISA_SPR] = dnnl_cpu_isa_all,
    };
    if (isa_is_named())
        dnnl_set_max_cpu_isa(most[isa_level()]); // refused after the first use, which had it too
}

OneDnn *onednn_new(void) {
    OneDnn *onednn = calloc(1, sizeof *onednn);
    if (!onednn)
        return NULL;
    keep_to_named_level();
    // Without an engine nothing is ever found here, and other ways are taken.
    if (!ok(dnnl_engine_create(&onednn->engine, dnnl_cpu, 0)))
        onednn->engine = NULL;
    else if (!ok(dnnl_stream_create(&onednn->stream, onednn->engine, dnnl_stream_default_flags)))
        onednn->stream = NULL;
    return onednn;
}

static void conv_clear(OneDnnConv *conv) {
    for (int i = 0; i < SLOTS; i++) {
        dnnl_memory_destroy(conv->slot[i]);
        conv->slot[i] = NULL;
    }
    dnnl_memory_destroy(conv->weights);
    dnnl_memory_destroy(conv->scratch);
    dnnl_primitive_destroy(conv->reorder);
    dnnl_primitive_destroy(conv->primitive);
    conv->weights = conv->scratch = NULL;
    conv->reorder = conv->primitive = NULL;
}

void onednn_free(OneDnn *onednn) {
    if (!onednn)
        return;
    for (int i = 0; i < BUCKETS; i++)
        for (OneDnnConv *conv = onednn->bucket[i], *next; conv; conv = next) {
            next = conv->next;
            conv_clear(conv);
            free(conv);
        }
    dnnl_stream_destroy(onednn->stream);
    dnnl_engine_destroy(onednn->engine);
    free(onednn);
}

bool onednn_has_bf16(void) {
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    return isa == dnnl_cpu_isa_avx512_core_bf16 || isa == dnnl_cpu_isa_avx512_core_amx;
}

// ---- making -------------------------------------------------------------------------------------

typedef struct Layouts {
    dnnl_memory_desc_t ours[SLOTS], wanted[SLOTS];
    bool used[SLOTS];
} Layouts;

static dnnl_data_type_t data_type(Format format) {
    return format == FORMAT_BF16 ? dnnl_bf16 : dnnl_f32;
}

static bool describe_pixels(Layouts *layouts, int slot, const ConvProblem *problem,
                            const int64_t size[2], int64_t channels, Format format) {
    dnnl_dims_t dims = {problem->images, channels, size[0], size[1]};
    layouts->used[slot] = true;
    bool done = ok(
        dnnl_memory_desc_init_by_tag(&layouts->ours[slot], 4, dims, data_type(format), dnnl_nhwc));
    layouts->wanted[slot] = layouts->ours[slot];
    return done;
}

// Weights [O,KH,KW,C/groups]; the library may take them in any order that it likes better.
static bool describe_weights(Layouts *layouts, const ConvProblem *problem, Format format) {
    bool plain = problem->groups == 1;
    dnnl_dims_t dims;
    int count = 0;
    if (!plain)
        dims[count++] = problem->groups;
    dims[count++] = problem->filters / problem->groups;
    dims[count++] = problem->channels / problem->groups;
    dims[count++] = problem->kernel[0];
    dims[count++] = problem->kernel[1];
    dnnl_data_type_t type = data_type(format);
    dnnl_format_tag_t ours = plain ? dnnl_ohwi : dnnl_gohwi;
    layouts->used[SLOT_WEIGHT] = true;
    return ok(dnnl_memory_desc_init_by_tag(&layouts->ours[SLOT_WEIGHT], count, dims, type, ours)) &&
           ok(dnnl_memory_desc_init_by_tag(&layouts->wanted[SLOT_WEIGHT], count, dims, type,
                                           dnnl_format_tag_any));
}

static bool describe(Layouts *layouts, const ConvProblem *problem) {
    Format in = (Format)problem->format, out = (Format)problem->out_format;
    Format x = problem->pass == CONV_BACKWARD_INPUT ? out : in;
    Format weight = problem->pass == CONV_BACKWARD_WEIGHT ? out : in;
    Format y = problem->pass == CONV_FORWARD ? out : in;
    dnnl_dims_t filters = {problem->filters};
    layouts->used[SLOT_BIAS] = problem->has_bias;
    bool bias =
        ok(dnnl_memory_desc_init_by_tag(&layouts->ours[SLOT_BIAS], 1, filters, dnnl_f32, dnnl_x));
    layouts->wanted[SLOT_BIAS] = layouts->ours[SLOT_BIAS];
    return bias && describe_pixels(layouts, SLOT_X, problem, problem->size, problem->channels, x) &&
           describe_pixels(layouts, SLOT_Y, problem, problem->out_size, problem->filters, y) &&
           describe_weights(layouts, problem, weight);
}

static bool set_activation(dnnl_primitive_attr_t attr, Activation activation) {
    static const dnnl_alg_kind_t kinds[ACTIVATION_COUNT] = {
        [ACTIVATION_TANH] = dnnl_eltwise_tanh,
        [ACTIVATION_SIGMOID] = dnnl_eltwise_logistic,
    };
    if (activation == ACTIVATION_NONE)
        return true;
    if (activation == ACTIVATION_RELU)
        return false; // theirs takes NaN for 0
    dnnl_post_ops_t operations = NULL;
    bool done = ok(dnnl_post_ops_create(&operations)) &&
                ok(dnnl_post_ops_append_eltwise(operations, 1, kinds[activation], 0, 0)) &&
                ok(dnnl_primitive_attr_set_post_ops(attr, operations));
    dnnl_post_ops_destroy(operations);
    return done;
}

// The padding behind, so that the library finds as many windows as there are.
static void set_padding_behind(const ConvProblem *problem, dnnl_dims_t behind) {
    for (int i = 0; i < 2; i++)
        behind[i] = (problem->out_size[i] - 1) * problem->stride[i] +
                    (problem->kernel[i] - 1) * problem->dilation[i] + 1 - problem->size[i] -
                    problem->padding[i];
}

static bool is_fast(const_dnnl_primitive_desc_t description) {
    const char *name = NULL;
    return ok(dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&name)) &&
           name && !strstr(name, "ref") && !strstr(name, "gemm");
}

static bool describe_primitive(OneDnn *onednn, const ConvProblem *problem, const Layouts *layouts,
                               dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *description) {
    dnnl_convolution_desc_t conv;
    dnnl_dims_t stride, dilation, before, behind;
    for (int i = 0; i < 2; i++) {
        stride[i] = problem->stride[i];
        dilation[i] = problem->dilation[i] - 1; // the library counts the gaps
        before[i] = problem->padding[i];
    }
    set_padding_behind(problem, behind);
    const dnnl_memory_desc_t *x = &layouts->wanted[SLOT_X], *y = &layouts->wanted[SLOT_Y];
    const dnnl_memory_desc_t *weight = &layouts->wanted[SLOT_WEIGHT];
    const dnnl_memory_desc_t *bias = layouts->used[SLOT_BIAS] ? &layouts->wanted[SLOT_BIAS] : NULL;
    dnnl_primitive_desc_t hint = NULL;
    bool done = false;
    if (problem->pass != CONV_FORWARD) { // the library wants to know the forward pass
        dnnl_convolution_desc_t forward;
        // In the format of what is read: there is none from fp32 and bf16.
        dnnl_memory_desc_t seen_x = *x, seen_weight = *weight;
        seen_x.data_type = seen_weight.data_type = y->data_type;
        if (!ok(dnnl_dilated_convolution_forward_desc_init(
                &forward, dnnl_forward_training, dnnl_convolution_direct, &seen_x, &seen_weight,
                NULL, y, stride, dilation, before, behind)) ||
            !ok(dnnl_primitive_desc_create(&hint, &forward, NULL, onednn->engine, NULL)))
            goto done;
    }
    switch ((ConvPass)problem->pass) {
    case CONV_FORWARD:
        done = ok(dnnl_dilated_convolution_forward_desc_init(
            &conv, dnnl_forward_training, dnnl_convolution_direct, x, weight, bias, y, stride,
            dilation, before, behind));
        break;
    case CONV_BACKWARD_INPUT:
        done = ok(dnnl_dilated_convolution_backward_data_desc_init(
            &conv, dnnl_convolution_direct, x, weight, y, stride, dilation, before, behind));
        break;
    case CONV_BACKWARD_WEIGHT:
        done = ok(dnnl_dilated_convolution_backward_weights_desc_init(
            &conv, dnnl_convolution_direct, x, weight, NULL, y, stride, dilation, before, behind));
        break;
    }
    done = done && ok(dnnl_primitive_desc_create(description, &conv, attr, onednn->engine, hint)) &&
           is_fast(*description);
done:
    dnnl_primitive_desc_destroy(hint);
    return done;
}

static bool make_reorder(OneDnn *onednn, OneDnnConv *conv, const dnnl_memory_desc_t *ours,
                         const dnnl_memory_desc_t *theirs) {
    const bool is_output = conv->problem.pass == CONV_BACKWARD_WEIGHT;
    const dnnl_memory_desc_t *from = is_output ? theirs : ours, *to = is_output ? ours : theirs;
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_attr_t attr = NULL;
    conv->weight_bytes = dnnl_memory_desc_get_size(theirs);
    bool done = ok(dnnl_memory_create(&conv->weights, ours, onednn->engine, DNNL_MEMORY_NONE)) &&
                ok(dnnl_primitive_attr_create(&attr)) &&
                ok(dnnl_reorder_primitive_desc_create(&description, from, onednn->engine, to,
                                                      onednn->engine, attr)) &&
                ok(dnnl_primitive_create(&conv->reorder, description));
    dnnl_primitive_attr_destroy(attr);
    dnnl_primitive_desc_destroy(description);
    return done;
}

// Pixels that single taps skip over the library leaves out in a copy, which it writes in whole
// vectors: of fewer channels past the copy's end, into what its threads wait for each other by and
// into memory that is not its own (2.6.3, seen with AVX2).
static bool writes_past_its_copy(const ConvProblem *problem) {
    enum { CHANNELS = 16 }; // of the widest vector
    const bool is_single = problem->kernel[0] == 1 && problem->kernel[1] == 1;
    return is_single && (problem->stride[0] > 1 || problem->stride[1] > 1) &&
           problem->channels % CHANNELS != 0;
}

static bool make(OneDnn *onednn, OneDnnConv *conv) {
    const ConvProblem *problem = &conv->problem;
    if (!onednn->stream || writes_past_its_copy(problem))
        return false;
    Layouts layouts = {.used = {false}};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t description = NULL;
    bool done = ok(dnnl_primitive_attr_create(&attr)) &&
                ok(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user)) &&
                set_activation(attr, (Activation)problem->activation) &&
                describe(&layouts, problem) &&
                describe_primitive(onednn, problem, &layouts, attr, &description) &&
                ok(dnnl_primitive_create(&conv->primitive, description));
    if (done) { // of all but the weights the order was given
        const dnnl_query_t weights = problem->pass == CONV_BACKWARD_WEIGHT
                                         ? dnnl_query_diff_weights_md
                                         : dnnl_query_weights_md;
        layouts.wanted[SLOT_WEIGHT] = *dnnl_primitive_desc_query_md(description, weights, 0);
    }
    for (int i = 0; i < SLOTS && done; i++)
        done = !layouts.used[i] || ok(dnnl_memory_create(&conv->slot[i], &layouts.wanted[i],
                                                         onednn->engine, DNNL_MEMORY_NONE));
    const dnnl_memory_desc_t *ours = &layouts.ours[SLOT_WEIGHT],
                             *theirs = &layouts.wanted[SLOT_WEIGHT];
    if (done && !dnnl_memory_desc_equal(ours, theirs))
        done = make_reorder(onednn, conv, ours, theirs);
    if (done) {
        const dnnl_memory_desc_t *scratch =
            dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
        conv->scratch_bytes = dnnl_memory_desc_get_size(scratch);
        done = ok(dnnl_memory_create(&conv->scratch, scratch, onednn->engine, DNNL_MEMORY_NONE));
    }
    dnnl_primitive_desc_destroy(description);
    dnnl_primitive_attr_destroy(attr);
    if (!done)
        conv_clear(conv);
    return done;
}

// ---- finding ------------------------------------------------------------------------------------

static size_t bucket_of(const ConvProblem *problem) {
    uint64_t words[sizeof *problem / sizeof(uint64_t)], hash = 0;
    _Static_assert(sizeof *problem % sizeof(uint64_t) == 0, "hashed by words");
    memcpy(words, problem, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15u;
    return (size_t)(hash >> 56);
}

static bool is_same(const OneDnnConv *conv, const ConvProblem *problem) {
    return memcmp(&conv->problem, problem, sizeof *problem) == 0;
}

// The library asks OpenMP how many threads there are when a primitive is made and when it runs.
static void set_threads(const ConvProblem *problem) {
    if (omp_get_max_threads() != problem->threads)
        omp_set_num_threads(problem->threads);
}

const OneDnnConv *onednn_conv(OneDnn *onednn, const ConvProblem *problem) {
    OneDnnConv *conv = onednn->last;
    if (conv && is_same(conv, problem))
        return conv->usable ? conv : NULL;
    OneDnnConv **bucket = &onednn->bucket[bucket_of(problem)];
    for (conv = *bucket; conv && !is_same(conv, problem); conv = conv->next)
        ;
    if (!conv) {
        if (!(conv = calloc(1, sizeof *conv)))
            return NULL; // another way is taken
        conv->problem = *problem;
        conv->next = *bucket;
        conv->stream = onednn->stream;
        *bucket = conv;
        set_threads(problem);
        conv->usable = make(onednn, conv);
    }
    onednn->last = conv;
    return conv->usable ? conv : NULL;
}

// ---- running ------------------------------------------------------------------------------------

size_t onednn_conv_weight_bytes(const OneDnnConv *conv) {
    return conv->weight_bytes;
}

size_t onednn_conv_scratch_bytes(const OneDnnConv *conv) {
    return conv->scratch_bytes;
}

bool onednn_conv_same_order(const OneDnnConv *conv, const OneDnnConv *other) {
    const dnnl_memory_desc_t *order, *other_order;
    return conv == other ||
           (ok(dnnl_memory_get_memory_desc(conv->slot[SLOT_WEIGHT], &order)) &&
            ok(dnnl_memory_get_memory_desc(other->slot[SLOT_WEIGHT], &other_order)) &&
            dnnl_memory_desc_equal(order, other_order));
}

static bool check(bool done, Error *error) {
    return done || error_fail(error, ERROR_FAILED,
                              "convolution: oneDNN failed; its version is %d.%d, at least 2.6 is "
                              "wanted",
                              dnnl_version()->major, dnnl_version()->minor);
}

bool onednn_conv_order_weights(const OneDnnConv *conv, void *ours, void *ordered, Error *error) {
    const bool is_output = conv->problem.pass == CONV_BACKWARD_WEIGHT;
    dnnl_memory_t theirs = conv->slot[SLOT_WEIGHT];
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, is_output ? theirs : conv->weights},
                                   {DNNL_ARG_TO, is_output ? conv->weights : theirs}};
    set_threads(&conv->problem);
    return check(ok(dnnl_memory_set_data_handle(conv->weights, ours)) &&
                     ok(dnnl_memory_set_data_handle(theirs, ordered)) &&
                     ok(dnnl_primitive_execute(conv->reorder, conv->stream, 2, arguments)),
                 error);
}

bool onednn_conv_run(const OneDnnConv *conv, const ConvArrays *arrays, void *scratch,
                     Error *error) {
    static const int names[3][SLOTS] = {
        [CONV_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
        [CONV_BACKWARD_INPUT] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, 0, DNNL_ARG_DIFF_DST},
        [CONV_BACKWARD_WEIGHT] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, 0, DNNL_ARG_DIFF_DST},
    };
    const View *views[SLOTS] = {&arrays->x, &arrays->weight, &arrays->bias, &arrays->y};
    dnnl_exec_arg_t arguments[SLOTS + 1];
    int count = 0;
    bool done = true;
    set_threads(&conv->problem);
    for (int i = 0; i < SLOTS; i++) {
        if (!conv->slot[i])
            continue;
        done = done && ok(dnnl_memory_set_data_handle(conv->slot[i], views[i]->data));
        arguments[count++] = (dnnl_exec_arg_t){names[conv->problem.pass][i], conv->slot[i]};
    }
    done = done && ok(dnnl_memory_set_data_handle(conv->scratch, scratch));
    arguments[count++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, conv->scratch};
    return check(
        done && ok(dnnl_primitive_execute(conv->primitive, conv->stream, count, arguments)), error);
}

void onednn_name(char *name, size_t name_size, char *version, size_t version_size) {
    const dnnl_version_t *own = dnnl_version();
    snprintf(name, name_size, "oneDNN");
    snprintf(version, version_size, "%d.%d.%d", own->major, own->minor, own->patch);
}
