#include "ops/scale.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernel/scale.h"
#include "number/convert.h"
#include "ops/factors.h"
#include "ops/profile.h"
#include "precision/recipe.h"

// The dimensions that a factor is summed over, from `first` on; negative ones count from the end.
typedef struct Depth {
    int first, dims;
} Depth;

// Of a convolution's gradient of its weight that is every place in every image; a weight that is
// gone through backwards is summed over its outputs.
static Depth depth_of(OpId op, int i) {
    switch (op) {
    case OP_matmul: return i == 0 ? (Depth){-1, 1} : (Depth){-2, 1};
    case OP_conv2d_backward_input:
    case OP_conv_transpose2d: return i == 0 ? (Depth){-1, 1} : (Depth){0, 1};
    case OP_conv2d_backward_weight: return (Depth){0, 3};
    default: return (Depth){-1, 1};
    }
}

// Of a norm the weight and the bias on the way forward, the weight on the way back.
ScaledInputs scale_inputs(OpId op) {
    switch (op) {
    case OP_layer_norm:
    case OP_group_norm: return (ScaledInputs){1, 2};
    case OP_layer_norm_backward:
    case OP_group_norm_backward: return (ScaledInputs){2, 1};
    default: return (ScaledInputs){0, 2};
    }
}

static bool is_norm_backward(OpId op) {
    return op == OP_layer_norm_backward || op == OP_group_norm_backward;
}

static bool is_norm(OpId op) {
    return scale_serves_norm(op) || is_norm_backward(op);
}

static FactorRole role_of(OpId op, const OpAttr *attr, int i, const Tensor *x) {
    if (is_norm(op))
        return FACTOR_WEIGHT;
    if (attr->gradients >> i & 1)
        return FACTOR_GRADIENT;
    return x->parameter ? FACTOR_WEIGHT : FACTOR_ACTIVATION;
}

// What factor i of the operation is rounded to.
static Format format_of_factor(const Engine *engine, OpId op, const OpAttr *attr, FactorRole role) {
    const bool backward = attr->gradients != 0 || is_norm_backward(op);
    return recipe_format(policy_recipe(engine->policy), attr->compute, role, backward);
}

// Products that add up in another way than fp32's take what elements are worth as it is, and so do
// norms.
static bool leaves_apart(const Engine *engine, OpId op, const OpAttr *attr, const ScaleAttr *by) {
    return scale_parts(by) && !is_norm(op) && attr->sums == SUMS_FP32 &&
           engine->device->backend->parts_scales;
}

// Whether what a factor's elements are worth fits into bf16, exactly: with a power of two, or as
// long as a scale of all is left apart; another scale needs more digits.
static bool fits_bf16(const Engine *engine, OpId op, const OpAttr *attr, FactorRole role) {
    const Format format = format_of_factor(engine, op, attr, role);
    if (!format_is_scaled(format))
        return true;
    const ScaleAttr by = recipe_scale(policy_recipe(engine->policy), format, role, false);
    return by.scale == FORMAT_E8M0 || leaves_apart(engine, op, attr, &by);
}

// Both factors of a product are kept in one format, which holds what either is worth.
static Format format_kept_in(const Engine *engine, OpId op, const OpAttr *attr) {
    for (int role = 0; role < FACTOR_ROLES; role++)
        if (!fits_bf16(engine, op, attr, (FactorRole)role))
            return FORMAT_FP32;
    return FORMAT_BF16;
}

// In bf16, whatever it is kept in.
static Tensor *plain_factor(Tensor *x, Format kept, MemoryPurpose purpose, Error *error) {
    Tensor *low = x->view.format == FORMAT_BF16 ? tensor_hold(x)
                                                : tensor_copy_as(x, FORMAT_BF16, purpose, error);
    if (!low || kept == FORMAT_BF16)
        return low;
    Tensor *wide = tensor_copy_as(low, kept, purpose, error);
    tensor_release(low);
    return wide;
}

// The same memory with its last two dimensions exchanged.
static void exchange(View *view) {
    int last = view->ndim - 1;
    int64_t shape = view->shape[last], stride = view->stride[last];
    view->shape[last] = view->shape[last - 1];
    view->stride[last] = view->stride[last - 1];
    view->shape[last - 1] = shape;
    view->stride[last - 1] = stride;
}

static Tensor *one_number(Engine *engine, Error *error) {
    return tensor_new(engine->device, FORMAT_FP32, 0, NULL, MEMORY_WORKSPACE, error);
}

// It lies within the product, and is a part of the profile by itself.
static bool run_timed(Engine *engine, const KernelCall *call, Tensor *x, Tensor *worth,
                      Error *error) {
    if (!engine->profile)
        return device_run(engine->device, call, error);
    ProfileStart began = profile_begin(engine, call->op);
    profile_note(engine, call, call->attr);
    bool done = device_run(engine->device, call, error);
    profile_end(engine, call->op, &x, 1, began, done ? worth : NULL);
    return done;
}

// Dense, fp32, on the host; NULL on failure. What lies dense takes no memory of the device, whose
// peak is the run's own.
static float *numbers_of(const Tensor *like, const View *view, Error *error) {
    Tensor *lies = tensor_view((Tensor *)(uintptr_t)like, view, error);
    if (!lies)
        return NULL;
    const Format format = lies->view.format;
    const size_t count = (size_t)tensor_count(lies);
    void *raw = malloc(count * format_table[format].bytes + 1);
    float *numbers = malloc(count * sizeof *numbers + 1);
    bool done = raw && numbers
                    ? tensor_read(lies, raw, error)
                    : error_fail(error, ERROR_MEMORY, "no memory to count what became of a factor");
    if (done)
        convert_to_fp32(format, raw, numbers, count);
    free(raw);
    tensor_release(lies);
    if (done)
        return numbers;
    free(numbers);
    return NULL;
}

// What became of x, for who asked. `delayed`: by what it was multiplied, or 0.
static bool count_factor(Engine *engine, FactorRole role, const KernelCall *call, const Tensor *x,
                         const Tensor *worth, float delayed, Error *error) {
    const ScaleAttr *by = &call->attr->factor.by;
    FactorTable *table = engine->factors;
    if (engine->layer >= table->layers)
        return true;
    const double began = clock_seconds();
    float times = 1;
    float *before = numbers_of(x, &call->input[0], error);
    float *after = before ? numbers_of(worth, &call->output[0], error) : NULL;
    if (after && by->apart)
        device_read(engine->device, &times, by->apart, sizeof times);
    if (after)
        factors_count(before, after, &call->input[0], by, times, delayed,
                      &table->counts[engine->layer][role]);
    free(before);
    free(after);
    table->seconds += clock_seconds() - began;
    return after != NULL;
}

static Tensor *round_factor(Engine *engine, OpId op, const OpAttr *attr, int i, Tensor *x,
                            ScaledFactor *factor, Error *error) {
    const bool is_gradient_of_weight = attr->of_weight && op != OP_conv2d_backward_weight;
    OpAttr own = {.has_out_format = true};
    const Recipe *recipe = policy_recipe(engine->policy);
    const FactorRole role = role_of(op, attr, i, x);
    const Format format = format_of_factor(engine, op, attr, role);
    const MemoryPurpose purpose = engine->walking_back ? MEMORY_GRADIENTS : MEMORY_ACTIVATIONS;
    own.out_format = format_kept_in(engine, op, attr);
    if (!format_is_scaled(format))
        return plain_factor(x, own.out_format, purpose, error);
    own.factor.by = recipe_scale(recipe, format, role, is_gradient_of_weight);
    engine->has_norms |= is_norm(op);
    if (is_norm(op) && i == scale_inputs(op).first && x->parameter)
        parameter_of(x)->in_norm = true;
    if (leaves_apart(engine, op, attr, &own.factor.by)) {
        if (!(factor->times = one_number(engine, error)))
            return NULL;
        own.factor.by.apart = factor->times->view.data;
    }
    if (recipe_delays(recipe, format) && !is_norm(op)) { // whose weights are rounded as they are
        own.factor.by.notes = engine->walking_back || tape_is_enabled(engine->tape);
        own.factor.by.delayed = delayed_scale(engine, engine->layer, role, error);
        if (!own.factor.by.delayed)
            return NULL;
    }
    Depth depth = depth_of(op, i);
    int first = depth.first < 0 ? x->view.ndim + depth.first : depth.first;
    KernelCall call = {.op = OP_scale_factor,
                       .layer = engine->layer,
                       .input_count = 1,
                       .output_count = 1,
                       .attr = &own};
    call.input[0] = x->view;
    // A matrix that lies turned is gone through as it lies, and its worth lies so too.
    const int last = x->view.ndim - 1;
    const bool is_turned = last >= 1 && first >= last - 1 && x->view.stride[last] != 1 &&
                           x->view.stride[last - 1] == 1;
    if (is_turned) {
        exchange(&call.input[0]);
        first = first == last ? last - 1 : last;
    }
    own.factor.by.first = first;
    own.factor.by.dims = depth.dims;
    factor->block = own.factor.by.block;
    factor->element = own.factor.by.element;
    factor->scale = own.factor.by.scale;
    if (own.factor.by.at_random)
        own.factor.stream = engine_chances(engine, tensor_count(x));
    Tensor *worth = tensor_new(engine->device, own.out_format, x->view.ndim, call.input[0].shape,
                               purpose, error);
    if (!worth)
        return NULL;
    call.output[0] = worth->view;
    float delayed = 0;
    if (engine->factors && own.factor.by.delayed)
        device_read(engine->device, &delayed, &own.factor.by.delayed[SCALE_NOW], sizeof delayed);
    if (!run_timed(engine, &call, x, worth, error) ||
        (engine->factors && !count_factor(engine, role, &call, x, worth, delayed, error))) {
        tensor_release(worth);
        return NULL;
    }
    if (is_turned)
        exchange(&worth->view);
    return worth;
}

bool scale_factor(Engine *engine, OpId op, const OpAttr *attr, int i, Tensor *x,
                  ScaledFactor *factor, Error *error) {
    *factor = (ScaledFactor){.block = 0};
    factor->worth = round_factor(engine, op, attr, i, x, factor, error);
    if (!factor->worth)
        scale_clear(factor);
    return factor->worth != NULL;
}

void scale_clear(ScaledFactor *factor) {
    tensor_release(factor->worth);
    tensor_release(factor->times);
    factor->worth = factor->times = NULL;
}

NumberBlocks scale_blocks(const ScaledFactor *a, const ScaledFactor *b) {
    if (a->block != b->block || a->scale != b->scale || a->worth->view.format != FORMAT_BF16 ||
        b->worth->view.format != FORMAT_BF16)
        return (NumberBlocks){.block = 0};
    return (NumberBlocks){a->block, {a->element, b->element}, a->scale};
}
