#include "ops/profile.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"

// ---- time ---------------------------------------------------------------------------------------

static const ClockKernels *clock_of(const Engine *engine) {
    return engine->device->backend->clock;
}

// A span of the device's clock that begins here; -1: no more are told apart.
static int span_open(const Engine *engine, EngineProfile *profile) {
    const ClockKernels *clock = clock_of(engine);
    if (!clock || profile->span_count == profile->span_room ||
        !clock->stamp(engine->device, 2 * profile->span_count))
        return -1;
    profile->spans[profile->span_count] = (ProfileSpan){.layer = -1, .part = -1, .outer = -1};
    return profile->span_count++;
}

static void span_close(const Engine *engine, EngineProfile *profile, int span, ProfileSpan what) {
    if (span >= 0 && clock_of(engine)->stamp(engine->device, 2 * span + 1))
        profile->spans[span] = what;
}

// The whole has the number behind the last span.
void profile_open(Engine *engine, EngineProfile *profile) {
    if (engine->profile)
        return;
    engine->profile = profile;
    profile->span = -1;
    profile->whole_seconds = (double)NAN;
    if (clock_of(engine) && clock_of(engine)->stamp(engine->device, 2 * profile->span_room))
        profile->whole_seconds = 0;
}

void profile_close(Engine *engine) {
    EngineProfile *profile = engine->profile;
    engine->profile = NULL;
    if (!isnan(profile->whole_seconds) &&
        !clock_of(engine)->stamp(engine->device, 2 * profile->span_room + 1))
        profile->whole_seconds = (double)NAN;
}

void profile_settle(const Engine *engine, EngineProfile *profile) {
    const ClockKernels *clock = clock_of(engine);
    if (!clock || isnan(profile->whole_seconds))
        return;
    profile->whole_seconds =
        clock->between(engine->device, 2 * profile->span_room, 2 * profile->span_room + 1);
    for (int i = 0; i < profile->span_count; i++) {
        const ProfileSpan *span = &profile->spans[i];
        double seconds = clock->between(engine->device, 2 * i, 2 * i + 1);
        if (isnan(seconds))
            continue;
        if (span->is_look)
            profile->whole_seconds -= seconds;
        if (span->is_cast)
            profile->cast_seconds += seconds;
        if (span->layer >= 0)
            profile->seconds[span->layer] += seconds;
        if (span->part >= 0)
            profile->parts->each[span->part].seconds += seconds;
        if (span->outer >= 0 && profile->spans[span->outer].part >= 0)
            profile->parts->each[profile->spans[span->outer].part].seconds -= seconds;
    }
}

static ProfileStart begin(Engine *engine, EngineProfile *profile, bool is_stamped) {
    ProfileStart began = {.span = is_stamped ? span_open(engine, profile) : -1,
                          .outer = profile->span,
                          .inner = profile->inner};
    if (began.span >= 0)
        profile->span = began.span;
    profile->inner = 0;
    began.seconds = clock_seconds();
    return began;
}

static bool converts(int work) {
    return work == OP_cast || work == OP_scale_factor;
}

// Spans within spans are worth a stamp only where they are casts.
ProfileStart profile_begin(Engine *engine, OpId op) {
    EngineProfile *profile = engine->profile;
    bool is_outer = profile->depth++ == 0;
    return begin(engine, profile, is_outer || converts((int)op));
}

// The part that something belongs to, its time added; NULL: parts are not told apart. Beside what
// is stamped there may be no room for a span more: that time stays with what it lies within.
static ProfilePart *end_part(const Engine *engine, EngineProfile *profile, int work,
                             const ProfileStart *began, double seconds) {
    profile->span = began->outer;
    ProfileParts *parts = profile->parts;
    if (!parts)
        return NULL;
    bool is_known = !parts_is_of_step(work) && engine->layer < parts->layers;
    ProfilePart *part = parts_touch(
        parts, is_known ? engine->layer : 0,
        engine->walking_back && !parts_is_of_step(work) ? PROFILE_BACKWARD : PROFILE_FORWARD, work);
    if (!clock_of(engine))
        part->seconds += seconds - profile->inner;
    profile->inner = began->inner + seconds;
    if (began->span >= 0) {
        profile->spans[began->span].part = (int)(part - parts->each);
        profile->spans[began->span].outer = began->outer;
    }
    return part;
}

ProfileStart profile_begin_work(Engine *engine) {
    EngineProfile *profile = engine->profile;
    if (!profile || !profile->parts)
        return (ProfileStart){.span = -1};
    return begin(engine, profile, true);
}

void profile_end_work(Engine *engine, ProfileWork work, ProfileStart began) {
    EngineProfile *profile = engine->profile;
    if (!profile || !profile->parts)
        return;
    span_close(engine, profile, began.span, (ProfileSpan){.layer = -1, .part = -1, .outer = -1});
    end_part(engine, profile, (int)work, &began, clock_seconds() - began.seconds);
}

// ---- looks --------------------------------------------------------------------------------------

// One number of a tensor, where the look has its own. Straight to the kernel: it belongs neither to
// the graph nor to the profile.
static bool find(const Engine *engine, OpId op, const Tensor *tensor, int number) {
    const OpAttr attr = {.has_out_format = false};
    KernelCall call = {.op = op, .input_count = 1, .output_count = 1, .attr = &attr};
    float *found = engine->profile->found->view.data;
    call.input[0] = tensor->view;
    call.output[0] = view_dense(found + number, FORMAT_FP32, 0, NULL);
    return device_run(engine->device, &call, NULL); // else a look less
}

static void look(const Engine *engine, EngineProfile *profile, const Tensor *tensor,
                 bool is_statistic) {
    double began = clock_seconds();
    int first = 2 * profile->look_count;
    if (profile->look_count == profile->look_room)
        return;
    int span = span_open(engine, profile);
    bool done = is_statistic ? find(engine, OP_sum, tensor, first)
                             : find(engine, OP_min, tensor, first) &&
                                   find(engine, OP_max, tensor, first + 1);
    if (done)
        profile->looks[profile->look_count++] = (ProfileLook){engine->layer, is_statistic};
    span_close(engine, profile, span,
               (ProfileSpan){.layer = -1, .is_look = true, .part = -1, .outer = profile->span});
    profile->look_seconds += clock_seconds() - began;
}

// ---- faults -------------------------------------------------------------------------------------

// The largest (or smallest) value of a tensor, outside of the graph and of the profile.
static double extreme_of(Engine *engine, OpId op, Tensor *tensor) {
    double value = 0;
    Tensor *found = op_one(engine, op, tensor, NULL, NULL);
    if (!found || !tensor_item(found, &value, NULL))
        value = 0; // a look less
    tensor_release(found);
    return value;
}

static double largest_of(Engine *engine, Tensor *tensor) {
    return fmax(fabs(extreme_of(engine, OP_max, tensor)), fabs(extreme_of(engine, OP_min, tensor)));
}

static bool is_finite(Engine *engine, Tensor *tensor) {
    return tensor_count(tensor) == 0 || !format_is_floating(tensor->view.format) ||
           (isfinite(extreme_of(engine, OP_max, tensor)) &&
            isfinite(extreme_of(engine, OP_min, tensor)));
}

// Of these fp16 is not to blame: they give no number in any format.
static bool divides(OpId op) {
    return op == OP_div || op == OP_log || op == OP_reciprocal || op == OP_rsqrt || op == OP_sqrt ||
           op == OP_pow;
}

// What overflows fp16 by weights like these is not made good by another format.
static void blame_weights(Engine *engine, Tensor *const *inputs, int input_count,
                          ForwardFault *fault) {
    for (int i = 0; i < input_count; i++) {
        const Parameter *parameter = inputs[i] ? parameter_of(inputs[i]) : NULL;
        const double largest = parameter ? largest_of(engine, inputs[i]) : 0;
        if (!(largest > fmax(FORWARD_BEYOND_TRAINED, fault->weight_largest)))
            continue;
        fault->cause = FORWARD_GREW;
        fault->weight_largest = largest;
        snprintf(fault->weight, sizeof fault->weight, "%s", parameter->name);
    }
}

static ForwardFault fault_of(Engine *engine, OpId op, Tensor *const *inputs, int input_count,
                             Tensor *output) {
    ForwardFault fault = {
        .op = op, .layer = engine->layer, .divides = divides(op), .format = output->view.format};
    fault.is_nan = isnan(extreme_of(engine, OP_max, output));
    fault.cause = fault.format == FORMAT_FP16 && !divides(op) ? FORWARD_OVERFLOWED : FORWARD_MADE;
    for (int i = 0; i < input_count; i++) {
        if (!inputs[i] || is_finite(engine, inputs[i]))
            continue;
        const Parameter *parameter = parameter_of(inputs[i]);
        fault.cause = parameter ? FORWARD_WEIGHT : FORWARD_GIVEN;
        if (parameter)
            snprintf(fault.weight, sizeof fault.weight, "%s", parameter->name);
        break;
    }
    if (fault.cause == FORWARD_OVERFLOWED)
        blame_weights(engine, inputs, input_count, &fault);
    return fault;
}

static void seek(Engine *engine, EngineProfile *profile, OpId op, Tensor *const *inputs,
                 int input_count, Tensor *output) {
    double began = clock_seconds();
    bool recording = tape_set_enabled(engine->tape, false);
    engine->profile = NULL;
    if (!is_finite(engine, output))
        profile->fault = fault_of(engine, op, inputs, input_count, output);
    engine->profile = profile;
    tape_set_enabled(engine->tape, recording);
    profile->look_seconds += clock_seconds() - began;
}

// -1e9 in a mask is meant to be infinite.
static bool may_be_infinite(OpId op) {
    return op == OP_fill || op == OP_where;
}

// ---- work ---------------------------------------------------------------------------------------

static double count_in(const View *view) {
    return (double)view_count(view);
}

// Of the products whose size alone decides how well they run; of others 0. A window's weights are
// [output, height, width, input], turned round in a transposed convolution.
static double multiplications(const KernelCall *call) {
    const View *input = call->input, *output = call->output;
    switch (call->op) {
    case OP_matmul:
    case OP_linear: return count_in(output) * (double)input[0].shape[input[0].ndim - 1];
    case OP_conv2d: return count_in(output) * count_in(&input[1]) / (double)input[1].shape[0];
    case OP_conv2d_backward_input:
    case OP_conv_transpose2d:
        return count_in(&input[0]) * count_in(&input[1]) / (double)input[1].shape[0];
    case OP_conv2d_backward_weight:
        return count_in(&input[1]) * count_in(output) / (double)output->shape[0];
    default: return 0;
    }
}

// What is repeated is there once.
static double bytes_of(const View *view) {
    double count = view->data ? 1 : 0;
    for (int i = 0; i < view->ndim; i++)
        if (view->stride[i] != 0)
            count *= (double)view->shape[i];
    return count * (double)format_table[view->format].bytes;
}

// Which input of a norm is its weight, which may lack; 0: it is none.
static const int norm_weight[OP_COUNT] = {
    [OP_batch_norm] = 1,          [OP_batch_norm_infer] = 1,    [OP_layer_norm] = 1,
    [OP_group_norm] = 1,          [OP_batch_norm_backward] = 2, [OP_layer_norm_backward] = 2,
    [OP_group_norm_backward] = 2,
};

// What is computed with. A norm's numbers only come and go in the format of its first input: that
// of its weight is what it is in, and its sums are in fp32.
static Format computed_with(const KernelCall *call, const OpAttr *attr) {
    const int weight = norm_weight[call->op];
    if (attr && attr->has_compute)
        return attr->compute;
    if (weight > 0)
        return call->input[weight].data ? call->input[weight].format : FORMAT_FP32;
    return call->input_count > 0 ? call->input[0].format : call->output[0].format;
}

void profile_note(Engine *engine, const KernelCall *call, const OpAttr *attr) {
    EngineProfile *profile = engine->profile;
    if (!profile)
        return;
    ProfileNote note = {.multiplications = multiplications(call)};
    for (int i = 0; profile->parts && i < call->input_count; i++)
        note.bytes += bytes_of(&call->input[i]);
    for (int i = 0; profile->parts && i < call->output_count; i++)
        note.bytes += bytes_of(&call->output[i]);
    note.from = computed_with(call, attr);
    profile->noted = note;
}

static void add_product(const Engine *engine, ProfileProducts *products, double work) {
    Format low = policy_low_format(engine->policy, engine->layer, engine->autocast);
    if (!(work > 0) || low == FORMAT_FP32) // nor of no elements
        return;
    products->all += work;
    if (work >= products->least)
        return;
    products->small += work;
    if (work <= products->largest)
        return;
    products->largest = work;
    products->layer = engine->layer;
}

static void add_cast(EngineProfile *profile, const Tensor *from, const Tensor *to) {
    profile->casts++;
    profile->cast_bytes += tensor_count(from) * (int64_t)(format_table[from->view.format].bytes +
                                                          format_table[to->view.format].bytes);
}

// Of the product that it is computed by: the gradient of a convolution's weight has one for each
// tap and channel that comes in.
static int64_t columns_of(OpId op, const View *output) {
    const int64_t last = output->shape[output->ndim - 1];
    const bool is_of_taps = op == OP_conv2d_backward_weight && output->shape[0] > 0;
    return is_of_taps ? view_count(output) / output->shape[0] : last;
}

static void describe_part(ProfilePart *part, OpId op, const ProfileNote *note,
                          const Tensor *output) {
    part->multiplications += note->multiplications;
    part->bytes += note->bytes;
    part->from = note->from;
    part->to = output->view.format;
    if (note->multiplications <= 0 || output->view.ndim == 0)
        return;
    int64_t columns = columns_of(op, &output->view);
    part->columns = part->columns == 0 || columns < part->columns ? columns : part->columns;
}

void profile_end(Engine *engine, OpId op, Tensor *const *inputs, int input_count,
                 ProfileStart began, Tensor *output) {
    EngineProfile *profile = engine->profile;
    // By the host's clock where calls have done their work, by the device's later where not.
    double seconds = clock_of(engine) ? 0 : clock_seconds() - began.seconds;
    ProfileNote note = profile->noted; // looking calls kernels too
    bool is_known = engine->layer < profile->layers, is_outer = --profile->depth == 0;
    const bool copies = op == OP_cast && output && inputs[0]->view.format == output->view.format;
    const bool is_cast = converts((int)op) && !copies;
    span_close(engine, profile, began.span,
               (ProfileSpan){.layer = is_outer && is_known ? engine->layer : -1,
                             .is_cast = is_cast,
                             .part = -1,
                             .outer = -1});
    ProfilePart *part =
        end_part(engine, profile, copies ? (int)WORK_COPY : (int)op, &began, seconds);
    if (part && output)
        describe_part(part, op, &note, output);
    if (is_cast)
        profile->cast_seconds += seconds;
    if (is_outer && is_known) {
        profile->seconds[engine->layer] += seconds;
        profile->operations++;
    }
    if (is_cast && output)
        add_cast(profile, inputs[0], output);
    if (is_outer && is_known && output && !engine->walking_back)
        add_product(engine, &profile->products, note.multiplications);
    bool is_output = profile->depth == 0 && is_known && output && !engine->walking_back;
    if (op == OP_batch_norm_track && output && profile->found)
        look(engine, profile, output, true);
    else if (is_output && profile->looks_at_outputs && output->view.format == FORMAT_FP16 &&
             tensor_count(output) > 0)
        look(engine, profile, output, false);
    if (profile->depth == 0 && profile->seeks && profile->fault.cause == FORWARD_SOUND && output &&
        !engine->walking_back && !may_be_infinite(op))
        seek(engine, profile, op, inputs, input_count, output);
}
