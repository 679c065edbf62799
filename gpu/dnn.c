// What is offered to cuDNN, and whether what it gives is believed.
#include "gpu/dnn.h"

#include <assert.h>

#include "gpu/backend.h"
#include "gpu/dnn/plans.h"
#include "kernel/allocator.h"

// An operation as a graph, and where its operands lie.
typedef struct Offer {
    bool possible;
    DnnGraph graph;
    void *operand[DNN_OPERANDS];
} Offer;

// ---- the library --------------------------------------------------------------------------------

static Dnn *library_of(Gpu *gpu) {
    Error absent = {0};
    if (!gpu->dnn_asked) {
        gpu_enter(gpu);
        gpu->dnn = dnn_open(gpu->stream, &absent);
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

// ---- the first result ---------------------------------------------------------------------------

// The largest difference from our own result that the order of sums and one rounding explain, as a
// share of all of it. Factors that were rounded to TF32 on the way differ by more.
static const float most_difference[FORMAT_COUNT] = {
    [FORMAT_FP32] = 1e-4f,
    [FORMAT_BF16] = 1.0f / 64,
    [FORMAT_FP16] = 1.0f / 512,
};

// Whether two arrays are alike; what was found is read, which waits.
static bool are_alike(Device *device, const View *result, const void *expected,
                      DnnDifference *difference, bool *alike, Error *error) {
    DnnCompareArguments arguments = {.result = result->data,
                                     .expected = expected,
                                     .format = result->format,
                                     .count = view_count(result),
                                     .difference = difference};
    DnnDifference found;
    if (!gpu_launch_dnn_compare(device, (GpuGrid){.x = 1}, &arguments, error))
        return false;
    device->waits++;
    device->backend->read(device, &found, difference, sizeof found);
    float most = most_difference[result->format];
    *alike = found.unlike == 0 && found.squares <= most * most * found.expected_squares;
    return true;
}

// Computes the first result again by our own kernel. It stays where it is if it is right, since
// later ones are to be the same bits; else our own takes its place.
static bool check_first(Device *device, const KernelCall *call, DnnPlan *plan, Kernel own,
                        Error *error) {
    enum { BEFORE = 64 }; // bytes, for what is found
    static_assert(sizeof(DnnDifference) <= BEFORE, "what is found has its room");
    const View *result = &call->output[0];
    size_t bytes = (size_t)view_count(result) * format_table[result->format].bytes;
    Error lacking = {0};
    char *memory = allocator_take(device->allocator, BEFORE + bytes, MEMORY_WORKSPACE, &lacking);
    if (!memory) {
        dnn_refuse(plan, "no memory to hold its first result against");
        return own(device, call, error);
    }
    KernelCall again = *call;
    again.output[0].data = memory + BEFORE;
    bool done =
        own(device, &again, error) &&
        are_alike(device, result, memory + BEFORE, (DnnDifference *)memory, &plan->trusted, error);
    allocator_give(device->allocator, memory);
    if (!done || plan->trusted)
        return done;
    dnn_refuse(plan, "its first result was not our own kernel's");
    return own(device, call, error);
}

// ---- running ------------------------------------------------------------------------------------

enum { WORKSPACE_UNIT = 256 };

static bool run_plan(Device *device, const DnnPlan *plan, const Offer *offer, Error *error) {
    Gpu *gpu = gpu_of(device);
    char *workspace = NULL;
    if (plan->workspace > 0) {
        workspace = device_workspace(device, plan->workspace + WORKSPACE_UNIT, error);
        if (!workspace)
            return false;
        workspace += -(uintptr_t)workspace % WORKSPACE_UNIT;
    }
    gpu_enter(gpu);
    return dnn_run(gpu->dnn, plan, offer->operand, workspace, error);
}

// The call, by cuDNN or by our own kernel.
static bool run(Device *device, const KernelCall *call, const Offer *offer, Kernel own,
                Error *error) {
    DnnPlan *plan = plan_of(gpu_of(device), offer);
    Error refusal = {0};
    if (!plan)
        return own(device, call, error);
    if (!run_plan(device, plan, offer, &refusal)) {
        dnn_refuse(plan, refusal.text);
        return own(device, call, error);
    }
    return plan->trusted || check_first(device, call, plan, own, error);
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
                    format_trains(result->format) && !call->attr->has_compute,
        .graph = {.kind = kind,
                  .convolution = {.images = x->shape[0],
                                  .channels = x->shape[3],
                                  .filters = y->shape[3],
                                  .groups = attr->groups,
                                  .factors = first->format,
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

KERNEL_SIGNATURE(gpu, conv2d) {
    const View *bias = &call->input[2];
    Offer offer =
        convolution(DNN_CONVOLUTION, call, &call->input[0], &call->input[1], &call->output[0]);
    offer.graph.convolution.activation = call->attr->conv.activation;
    if (bias->data) {
        offer.possible = offer.possible && format_trains(bias->format);
        offer.graph.convolution.bias = bias->format;
        offer.operand[DNN_BIAS] = bias->data;
    }
    return run(device, call, &offer, gpu_own_conv2d, error);
}

KERNEL_SIGNATURE(gpu, conv2d_backward_input) {
    const Offer offer = convolution(DNN_CONVOLUTION_INPUT, call, &call->output[0], &call->input[1],
                                    &call->input[0]);
    return run(device, call, &offer, gpu_own_conv2d_backward_input, error);
}

KERNEL_SIGNATURE(gpu, conv_transpose2d) {
    Offer offer = convolution(DNN_CONVOLUTION_INPUT, call, &call->output[0], &call->input[1],
                              &call->input[0]);
    offer.possible = offer.possible && !call->input[2].data;
    return run(device, call, &offer, gpu_own_conv_transpose2d, error);
}

// The bias's gradient is no convolution: our own kernel makes it in any case.
KERNEL_SIGNATURE(gpu, conv2d_backward_weight) {
    const Offer offer = convolution(DNN_CONVOLUTION_WEIGHT, call, &call->input[0], &call->output[0],
                                    &call->input[1]);
    KernelCall weight = *call, bias = *call;
    if (!plan_of(gpu_of(device), &offer))
        return gpu_own_conv2d_backward_weight(device, call, error);
    weight.output[1].data = NULL;
    bias.output[0].data = NULL;
    return run(device, &weight, &offer, gpu_own_conv2d_backward_weight, error) &&
           (!bias.output[1].data || gpu_own_conv2d_backward_weight(device, &bias, error));
}
