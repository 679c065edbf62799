// What is offered to cuDNN, and whether what it gives is believed.
#include "gpu/dnn.h"

#include <string.h>

#include "gpu/backend.h"
#include "gpu/dnn_trust.h"
#include "gpu/library.h"
#include "gpu/products.h"
#include "gpu/relu.h"
#include "gpu/zero.h"

// An operation as a graph, and where its operands lie.
typedef struct Offer {
    bool possible;
    DnnGraph graph;
    void *operand[DNN_OPERANDS];
    float scale;  // DNN_SCALE, of attention
    int64_t rows; // of scores: so many numbers has each of attention's sums
} Offer;

typedef Offer (*OfferOf)(const KernelCall *call);

// ---- the library --------------------------------------------------------------------------------

static Dnn *library_of(Gpu *gpu) {
    Error absent = {0};
    if (!gpu->dnn_asked) {
        gpu_enter(gpu);
        gpu->dnn = gpu_libraries_compute() ? dnn_open(gpu->stream, &absent) : NULL;
        gpu->dnn_asked = true;
    }
    return gpu->dnn;
}

void gpu_close_dnn(Gpu *gpu) {
    dnn_close(gpu->dnn);
    gpu->dnn = NULL;
    gpu->dnn_asked = false;
}

static bool is_aligned(const Offer *offer) {
    for (int i = 0; i < DNN_OPERANDS; i++)
        if ((uintptr_t)offer->operand[i] % DNN_ALIGNMENT != 0)
            return false;
    return true;
}

// NULL: our own kernel does it.
static DnnPlan *plan_of(Gpu *gpu, const Offer *offer) {
    Error lacking = {0};
    if (!offer->possible || !is_aligned(offer) || gpu->failure.code != ERROR_NONE)
        return NULL;
    Dnn *dnn = library_of(gpu);
    DnnPlan *plan = dnn ? dnn_plan(dnn, &offer->graph, &lacking) : NULL;
    return plan && plan->available ? plan : NULL;
}

// ---- running ------------------------------------------------------------------------------------

enum { WORKSPACE_UNIT = 256 };

static size_t whole_units(size_t bytes) {
    return (bytes + WORKSPACE_UNIT - 1) / WORKSPACE_UNIT * WORKSPACE_UNIT;
}

static View row_view(void *data, int64_t rows) {
    return view_dense(data, FORMAT_FP32, 1, &rows);
}

// Our sums of a row are the largest score and the logarithm of what the others add to it; cuDNN
// makes the total of which that is taken,
static bool makes_total(const DnnPlan *plan, const Offer *offer) {
    return plan->graph.kind == DNN_ATTENTION && offer->operand[DNN_TOTAL];
}
static bool take_logarithm(Device *device, const Offer *offer, Error *error) {
    View total = row_view(offer->operand[DNN_TOTAL], offer->rows);
    KernelCall call = {
        .op = OP_log, .input_count = 1, .input = {total}, .output_count = 1, .output = {total}};
    return gpu_log(device, &call, error);
}
// and reads both as one.
static bool join_sums(Device *device, const Offer *offer, void *joined, Error *error) {
    KernelCall call = {.op = OP_add,
                       .input_count = 2,
                       .input = {row_view(offer->operand[DNN_LARGEST], offer->rows),
                                 row_view(offer->operand[DNN_TOTAL], offer->rows)},
                       .output_count = 1,
                       .output = {row_view(joined, offer->rows)}};
    return gpu_add(device, &call, error);
}

// Attention's scratch beside the plan's own: DNN_SUMS and DNN_DELTA of the gradient. Some versions
// of the library believe that what they are given is zero.
static bool prepare_attention(Device *device, const DnnPlan *plan, const Offer *offer,
                              char *workspace, void **operand, Error *error) {
    char *sums = workspace + whole_units(plan->workspace);
    if (!gpu_zero(device, workspace, plan->workspace, error))
        return false;
    if (plan->graph.kind == DNN_ATTENTION)
        return true;
    operand[DNN_SUMS] = sums;
    operand[DNN_DELTA] = sums + whole_units((size_t)offer->rows * sizeof(float));
    return join_sums(device, offer, sums, error);
}

// A plan as work for the stream. Its scale lies with it, the address of which is given when it is
// put.
typedef struct PlanRun {
    const DnnPlan *plan;
    void *operand[DNN_OPERANDS], *workspace;
    float scale;
    u32 unused;
} PlanRun;

static CUresult put_plan(Gpu *gpu, const void *what) {
    PlanRun run = *(const PlanRun *)what;
    if (!run.plan->available) {
        (void)error_fail(&gpu->refusal, ERROR_UNAVAILABLE, "%s", run.plan->why);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    run.operand[DNN_SCALE] = &run.scale;
    return dnn_run(gpu->dnn, run.plan, run.operand, run.workspace, &gpu->refusal)
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_SUPPORTED;
}

typedef struct Instead {
    DnnPlan *plan;
    Kernel own;
    KernelCall call;
    OpAttr attr;
} Instead;

static bool compute_instead(Device *device, const void *told, Error *error) {
    const Instead *instead = told;
    KernelCall call = instead->call;
    call.attr = &instead->attr;
    if (instead->plan->available)
        dnn_refuse(instead->plan, gpu_of(device)->refusal.text);
    return instead->own(device, &call, error);
}

static bool run_plan(Device *device, const KernelCall *call, DnnPlan *plan, const Offer *offer,
                     Kernel own, Error *error) {
    size_t rows = whole_units((size_t)offer->rows * sizeof(float));
    size_t bytes = whole_units(plan->workspace) + 2 * rows + WORKSPACE_UNIT;
    char *workspace = device_workspace(device, bytes, error);
    if (!workspace)
        return false;
    workspace += -(uintptr_t)workspace % WORKSPACE_UNIT;
    bool is_attention = plan->graph.kind >= DNN_ATTENTION;
    Gpu *gpu = gpu_of(device);
    PlanRun run = {.plan = plan, .workspace = workspace, .scale = offer->scale};
    memcpy(run.operand, offer->operand, sizeof run.operand);
    gpu_enter(gpu);
    if (is_attention && !prepare_attention(device, plan, offer, workspace, run.operand, error))
        return false;
    const Instead told = {plan, own, *call, *call->attr};
    const GpuInstead instead = {compute_instead, &told, sizeof told,
                                makes_total(plan, offer)}; // our own make the logarithm too
    if (gpu_put_or(gpu, put_plan, &instead, "cuDNN", &run, sizeof run) != CUDA_SUCCESS) {
        *error = gpu->failure.code == ERROR_NONE ? gpu->refusal : gpu->failure;
        return false;
    }
    return !makes_total(plan, offer) || take_logarithm(device, offer, error);
}

// An operation as it is offered, our own kernel of it, and what mends behind a plan what that gets
// wrong (NULL: nothing).
typedef struct Operation {
    OfferOf offer_of;
    Kernel own, repair;
} Operation;

// The call once more, with other operands, by the plan that is yet to be trusted.
typedef struct Again {
    DnnPlan *plan;
    const Operation *operation;
} Again;

static bool run_again(Device *device, const KernelCall *call, const void *told, Error *error) {
    const Again *again = told;
    const Operation *operation = again->operation;
    const Offer offer = operation->offer_of(call);
    return run_plan(device, call, again->plan, &offer, operation->own, error) &&
           (!operation->repair || operation->repair(device, call, error));
}

// The call, by cuDNN or by our own kernel. Of cuDNN's engines the first whose results are believed.
static bool run(Device *device, const KernelCall *call, const Operation *operation, Error *error) {
    Gpu *gpu = gpu_of(device);
    const Offer offer = operation->offer_of(call);
    for (DnnPlan *plan; (plan = plan_of(gpu, &offer));) {
        Error refusal = {0};
        if (!run_plan(device, call, plan, &offer, operation->own, &refusal)) {
            dnn_refuse(plan, refusal.text);
            break;
        }
        if (operation->repair && !operation->repair(device, call, error))
            return false;
        if (plan->trusted)
            return true;
        const Again again = {plan, operation};
        const DnnTrial trial = {plan, call, operation->own, run_again, &again};
        switch (dnn_try(device, &trial, error)) {
        case DNN_BELIEVED: return true;
        case DNN_FAILED: return false;
        case DNN_NOT_TRIED: return operation->own(device, call, error);
        case DNN_REFUTED:
            gpu_forget_steps(gpu); // which may be told of the engine
            dnn_pass_over(gpu->dnn, plan, "its first result was not our own kernel's");
        }
    }
    return operation->own(device, call, error);
}

// ---- convolution --------------------------------------------------------------------------------

static bool has_elements(const View *view) {
    return view_count(view) > 0;
}

// Of images x and y and filters w, of which one is the result.
static Offer convolution(DnnKind kind, const KernelCall *call, const View *x, const View *w,
                         const View *y) {
    const ConvAttr *attr = &call->attr->conv;
    const View *first = kind == DNN_CONVOLUTION_INPUT ? y : x;
    const View *second = kind == DNN_CONVOLUTION_WEIGHT ? y : w;
    const View *result = &call->output[0];
    Offer offer = {
        .possible = has_elements(x) && has_elements(w) && has_elements(y) &&
                    first->format == second->format && format_trains(first->format) &&
                    format_trains(result->format),
        .graph = {.kind = kind,
                  .convolution = {.images = x->shape[0],
                                  .channels = x->shape[3],
                                  .filters = y->shape[3],
                                  .groups = attr->groups,
                                  .factors = product_format(call, first->format),
                                  .result = result->format,
                                  .bias = DNN_NO_FORMAT}},
        .operand = {[DNN_X] = x->data, [DNN_W] = w->data, [DNN_Y] = y->data},
    };
    DnnConvolution *graph = &offer.graph.convolution;
    for (int i = 0; i < 2; i++) {
        graph->input[i] = x->shape[1 + i];
        graph->output[i] = y->shape[1 + i];
        graph->kernel[i] = w->shape[1 + i];
        graph->stride[i] = attr->stride[i];
        graph->padding[i] = attr->padding[i];
        graph->dilation[i] = attr->dilation[i];
    }
    return offer;
}

static Offer offer_conv2d(const KernelCall *call) {
    const View *bias = &call->input[2];
    Offer offer =
        convolution(DNN_CONVOLUTION, call, &call->input[0], &call->input[1], &call->output[0]);
    offer.graph.convolution.activation = call->attr->conv.activation;
    if (bias->data) {
        offer.possible = offer.possible && format_trains(bias->format);
        offer.graph.convolution.bias = bias->format;
        offer.operand[DNN_BIAS] = bias->data;
    }
    return offer;
}

static Offer offer_conv2d_backward_input(const KernelCall *call) {
    return convolution(DNN_CONVOLUTION_INPUT, call, &call->output[0], &call->input[1],
                       &call->input[0]);
}

static Offer offer_conv_transpose2d(const KernelCall *call) {
    Offer offer = offer_conv2d_backward_input(call);
    offer.possible = offer.possible && !call->input[2].data;
    return offer;
}

static Offer offer_conv2d_backward_weight(const KernelCall *call) {
    return convolution(DNN_CONVOLUTION_WEIGHT, call, &call->input[0], &call->output[0],
                       &call->input[1]);
}

// Plans multiply what lies in the padding as zeros, as our own products do: what that spoils is
// made anew behind them.
static const Operation convolution_forward = {offer_conv2d, gpu_own_conv2d, gpu_repair_conv2d};
static const Operation convolution_input = {
    offer_conv2d_backward_input, gpu_own_conv2d_backward_input, gpu_repair_conv2d_backward_input};
static const Operation convolution_weight = {offer_conv2d_backward_weight,
                                             gpu_own_conv2d_backward_weight,
                                             gpu_repair_conv2d_backward_weight};
static const Operation convolution_transposed = {offer_conv_transpose2d, gpu_own_conv_transpose2d,
                                                 gpu_repair_conv_transpose2d};

// Sums are the library's, their maximum with 0 is ours: gpu/relu.h says why.
KERNEL_SIGNATURE(gpu, conv2d) {
    if (call->attr->conv.activation != ACTIVATION_RELU)
        return run(device, call, &convolution_forward, error);
    OpAttr attr = *call->attr;
    attr.conv.activation = ACTIVATION_NONE;
    KernelCall sums = *call;
    sums.attr = &attr;
    const Offer offer = offer_conv2d(&sums);
    if (!plan_of(gpu_of(device), &offer))
        return gpu_own_conv2d(device, call, error);
    return run(device, &sums, &convolution_forward, error) &&
           gpu_relu_in_place(device, &call->output[0], error);
}

KERNEL_SIGNATURE(gpu, conv2d_backward_input) {
    return run(device, call, &convolution_input, error);
}

KERNEL_SIGNATURE(gpu, conv_transpose2d) {
    return run(device, call, &convolution_transposed, error);
}

// The bias's gradient is no convolution: our own kernel makes it in any case.
KERNEL_SIGNATURE(gpu, conv2d_backward_weight) {
    KernelCall weight = *call, bias = *call;
    weight.output[1].data = NULL;
    bias.output[0].data = NULL;
    const Offer offer = offer_conv2d_backward_weight(call);
    if (!plan_of(gpu_of(device), &offer))
        return gpu_own_conv2d_backward_weight(device, call, error);
    return run(device, &weight, &convolution_weight, error) &&
           (!bias.output[1].data || gpu_own_conv2d_backward_weight(device, &bias, error));
}

// ---- attention ----------------------------------------------------------------------------------

static DnnRows rows_of(const View *view) {
    return (DnnRows){view->stride[0], view->stride[1], view->stride[2]};
}

// Rows as they lie: each without gaps, and all at multiples of what the library reads at once.
static bool rows_fit(const View *view, Format format) {
    int64_t each = DNN_ALIGNMENT / (int64_t)format_table[format].bytes;
    bool fit = view->format == format && has_elements(view) && view->stride[3] == 1;
    for (int i = 0; i < 3; i++)
        fit = fit && view->stride[i] % each == 0;
    return fit;
}

static Offer attention(DnnKind kind, const KernelCall *call, const View *q, const View *k,
                       const View *v, const View *y, const View *sums) {
    Format format = q->format;
    Offer offer = {
        .possible = format_trains(format) && rows_fit(q, format) && rows_fit(k, format) &&
                    rows_fit(v, format) && rows_fit(y, format) &&
                    (!sums->data || view_is_dense(sums)),
        .graph = {.kind = kind,
                  .attention = {.format = product_format(call, format),
                                .batch = q->shape[0],
                                .queries = q->shape[1],
                                .keys = k->shape[1],
                                .heads = q->shape[2],
                                .depth = q->shape[3],
                                .causal = call->attr->attention.causal,
                                .q = rows_of(q),
                                .k = rows_of(k),
                                .v = rows_of(v),
                                .y = rows_of(y)}},
        .operand = {[DNN_Q] = q->data, [DNN_K] = k->data, [DNN_V] = v->data, [DNN_Y] = y->data},
        .scale = (float)call->attr->attention.scale,
        .rows = q->shape[0] * q->shape[1] * q->shape[2],
    };
    if (sums->data) {
        offer.operand[DNN_LARGEST] = sums->data;
        offer.operand[DNN_TOTAL] = (float *)sums->data + offer.rows;
        // The second of them begins where it does: it must be there that the library takes it.
        offer.possible = offer.possible && offer.rows * (int64_t)sizeof(float) % DNN_ALIGNMENT == 0;
    }
    return offer;
}

static Offer offer_attention(const KernelCall *call) {
    const View *sums = &call->output[1];
    Offer offer = attention(DNN_ATTENTION, call, &call->input[0], &call->input[1], &call->input[2],
                            &call->output[0], sums);
    offer.graph.attention.keeps_sums = sums->data != NULL;
    return offer;
}

static Offer offer_attention_backward(const KernelCall *call) {
    const View *dy = &call->input[0], *result = call->output;
    Offer offer = attention(DNN_ATTENTION_BACKWARD, call, &call->input[1], &call->input[2],
                            &call->input[3], &call->input[4], &call->input[5]);
    DnnAttention *graph = &offer.graph.attention;
    graph->dy = rows_of(dy);
    graph->dq = rows_of(&result[0]);
    graph->dk = rows_of(&result[1]);
    graph->dv = rows_of(&result[2]);
    Format format = call->input[1].format;
    offer.possible = offer.possible && rows_fit(dy, format);
    for (int i = 0; i < 3; i++)
        offer.possible = offer.possible && result[i].data && rows_fit(&result[i], format);
    offer.operand[DNN_DY] = dy->data;
    offer.operand[DNN_DQ] = result[0].data;
    offer.operand[DNN_DK] = result[1].data;
    offer.operand[DNN_DV] = result[2].data;
    return offer;
}

KERNEL_SIGNATURE(gpu, attention) {
    static const Operation operation = {offer_attention, gpu_own_attention, NULL};
    return run(device, call, &operation, error);
}

KERNEL_SIGNATURE(gpu, attention_backward) {
    static const Operation operation = {offer_attention_backward, gpu_own_attention_backward, NULL};
    return run(device, call, &operation, error);
}
