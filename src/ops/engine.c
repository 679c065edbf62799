#include "ops/engine.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/random.h"
#include "ops/capture.h"
#include "ops/gather.h"

static Tensor *hook_add(void *context, Tensor *x, Tensor *y, Error *error) {
    OpAttr attr = {.out_format = x->view.format, .has_out_format = true};
    return op_two(context, OP_add, x, y, &attr, error);
}

static Tensor *hook_cast(void *context, Tensor *x, Format format, Error *error) {
    return op_cast(context, x, format, error);
}

// The same kernel on the same numbers.
static Tensor *hook_make_again(void *context, const GradNode *node, Error *error) {
    Engine *engine = context;
    const int layer = engine->layer;
    OpAttr attr = node->attr;
    attr.has_out_format = true;
    attr.out_format = node->output[0].format;
    engine->layer = node->layer;
    engine->makes_again = true;
    Tensor *made = op_one(engine, node->op, node->saved[0], &attr, error);
    engine->makes_again = false;
    engine->layer = layer;
    return made;
}

static void hook_settled(void *context, Tensor *leaf, bool is_first) {
    Engine *engine = context;
    if (engine->capture)
        capture_note_leaf(engine->capture, leaf, is_first);
}

static void hook_enter(void *context, int layer, OpId op) {
    Engine *engine = context;
    engine->layer = layer;
    engine->lookout.walked = op;
}

Engine *engine_new(Device *device, const Preset *preset, uint64_t seed, Error *error) {
    Engine *engine = calloc(1, sizeof *engine);
    if (!engine) {
        error_fail(error, ERROR_MEMORY, "no memory for the engine");
        return NULL;
    }
    engine->device = engine->scalers.device = device;
    device->explain = op_explain;
    device->explain_context = engine;
    engine->seed = seed;
    const TapeHooks hooks = {.add = hook_add,
                             .cast = hook_cast,
                             .enter = hook_enter,
                             .make_again = hook_make_again,
                             .gather = engine_gather,
                             .settled = hook_settled};
    engine->tape = tape_new(engine, &hooks);
    engine->policy = policy_new(preset, error);
    if (!engine->tape || !engine->policy) {
        if (engine->policy)
            error_fail(error, ERROR_MEMORY, "no memory for the engine");
        engine_free(engine);
        return NULL;
    }
    return engine;
}

static void change_clear(BufferChange *change) {
    tensor_release(change->buffer);
    tensor_release(change->owner);
    tensor_release(change->before_own);
    tensor_release(change->before_any);
}

void engine_free(Engine *engine) {
    if (!engine)
        return;
    if (engine->device->explain_context == engine)
        engine->device->explain = NULL;
    for (int i = 0; i < engine->change_count; i++)
        change_clear(&engine->changes[i]);
    free(engine->changes);
    tensor_release(engine->unread);
    delayed_clear(&engine->delayed);
    tensor_release(engine->drawn_base.tensor);
    tensor_release(engine->chance_base.tensor);
    plan_drop(engine->device, &engine->clip.table);
    plan_drop(engine->device, &engine->undo.table);
    free(engine->clip.items);
    free(engine->undo.items);
    lookout_clear(&engine->lookout);
    tape_free(engine->tape);
    policy_free(engine->policy);
    free(engine);
}

void engine_seed(Engine *engine, uint64_t seed) {
    engine->seed = seed;
    engine->random_position = 0;
}

RandomAttr engine_random(Engine *engine, int64_t count) {
    RandomAttr random = {.seed = engine->seed, .offset = engine->random_position};
    engine->random_position += random_blocks(count);
    return random;
}

Tensor *engine_scale_loss(Engine *engine, Scaler *scaler, Tensor *loss, Error *error) {
    Tensor *scale = scaler_begin(scaler);
    if (!scale)
        return tensor_hold(loss);
    // Whatever region it is called in: a scaled loss seldom fits into fp16.
    Format format = loss->view.format == FORMAT_FP64 ? FORMAT_FP64 : FORMAT_FP32;
    OpAttr attr = {.out_format = format, .has_out_format = true};
    engine->lookout.scales = true;
    Tensor *scaled = op_two(engine, OP_mul, loss, scale, &attr, error);
    engine->lookout.scales = false;
    if (scaled)
        tape_mark_scale(scaled, scaler_number(scaler));
    return scaled;
}

bool engine_draws(OpId op) {
    return op == OP_dropout || op == OP_uniform || op == OP_normal || op == OP_randint;
}

RandomAttr *engine_stream_of(OpId op, OpAttr *attr) {
    if (op == OP_scale_factor)
        return attr->factor.by.at_random ? &attr->factor.stream : NULL;
    if (!engine_draws(op))
        return NULL;
    return op == OP_dropout ? &attr->dropout.stream : &attr->random;
}

static void write_base(Engine *engine, RandomBase *base, uint64_t position) {
    base->began = position;
    device_write(engine->device, base->tensor->view.data, &base->began, sizeof base->began);
}

static RandomAttr counted_from(Engine *engine, RandomBase *base, uint64_t position,
                               RandomAttr random) {
    if (device_is_idle(engine->device) || random.base) // nothing is drawn; or it is so already
        return random;
    if (!base->tensor) {
        base->tensor = tensor_new_bytes(engine->device, sizeof(uint64_t), MEMORY_OPTIMIZER, NULL);
        if (!base->tensor) // by value it is as right, only not the same in every step
            return random;
        capture_pause(engine); // once in all steps
        write_base(engine, base, position);
        capture_end_act(engine);
    }
    random.offset -= base->began; // around the end of all numbers where that came later
    random.base = base->tensor->view.data;
    return random;
}

static void move_base(Engine *engine, RandomBase *base, uint64_t position) {
    if (base->tensor && !device_is_idle(engine->device) && base->began != position)
        write_base(engine, base, position);
}

RandomAttr engine_random_of_step(Engine *engine, RandomAttr random) {
    return counted_from(engine, &engine->drawn_base, engine->random_position, random);
}

static uint64_t first_chance(const Engine *engine) {
    const int blocks_of_a_step = 40; // as a power of two
    return engine->ended << blocks_of_a_step;
}

RandomAttr engine_chances(Engine *engine, int64_t count) {
    const uint64_t apart = 0x5CA1AB1E0DDBA11;
    const uint64_t first = first_chance(engine);
    const RandomAttr stream = {.seed = engine->seed ^ apart, .offset = first + engine->chances};
    engine->chances += random_blocks(count);
    return counted_from(engine, &engine->chance_base, first, stream);
}

bool engine_end_step(Engine *engine, Error *error) {
    engine->ended++;
    engine->chances = 0;
    bool done = delayed_end_step(engine, error);
    move_base(engine, &engine->drawn_base, engine->random_position);
    move_base(engine, &engine->chance_base, first_chance(engine));
    device_end_step(engine->device);
    return done;
}

bool engine_backward(Engine *engine, Tensor *root, Tensor *seed, const BackwardOptions *options,
                     Error *error) {
    AutocastRegion region = engine->autocast;
    int layer = engine->layer;
    bool was_walking = engine->walking_back; // in whose course somebody walks another graph back
    if (engine->lookout.is_on && !was_walking && !(options && options->inputs))
        lookout_loss(engine, root);
    engine->autocast = (AutocastRegion){0};
    engine->walking_back = true;
    const TapeCounts before = tape_counts(engine->tape);
    bool done = tape_backward(engine->tape, root, seed, options, error);
    engine->walking_back = was_walking;
    if (done && engine->capture)
        capture_note_walk(engine->capture, before);
    engine->layer = layer;
    engine->autocast = region;
    return done;
}

// ---- running statistics -------------------------------------------------------------------------

static BufferChange *change_of(Engine *engine, const Tensor *buffer) {
    for (int i = 0; i < engine->change_count; i++)
        if (engine->changes[i].buffer == buffer)
            return &engine->changes[i];
    return NULL;
}

static BufferChange *change_new(Engine *engine, Tensor *buffer, Tensor *owner, Error *error) {
    if (engine->change_count == engine->change_size) {
        int size = engine->change_size ? engine->change_size * 2 : 16;
        BufferChange *changes = realloc(engine->changes, (size_t)size * sizeof *changes);
        if (!changes) {
            error_fail(error, ERROR_MEMORY, "no memory for running statistics");
            return NULL;
        }
        engine->changes = changes;
        engine->change_size = size;
    }
    BufferChange *change = &engine->changes[engine->change_count++];
    *change = (BufferChange){.buffer = tensor_hold(buffer), .owner = tensor_hold(owner)};
    return change;
}

// Where it lies, so that the next step finds it there too.
static bool replace_contents(Tensor *buffer, Tensor *value, Error *error) {
    if (view_is_dense(&buffer->view))
        return tensor_copy_into(buffer, value, error);
    tensor_adopt(buffer, value);
    return true;
}

static bool change_buffer(Engine *engine, Tensor *buffer, Tensor *value, Tensor *owner,
                          Error *error) {
    BufferChange *change = change_of(engine, buffer);
    // Of several forward passes before one step, the state before the first is what counts.
    if (!change || !change->before_any) {
        Tensor *before = tensor_copy_as(buffer, buffer->view.format, MEMORY_OPTIMIZER, error);
        if (before && !change)
            change = change_new(engine, buffer, owner, error);
        if (!before || !change) {
            tensor_release(before);
            return false;
        }
        change->before_any = before;
        if (!change->before_own)
            change->before_own = tensor_hold(before);
    }
    return replace_contents(buffer, value, error);
}

static bool change_again(Capture *capture, const CaptureAct *act, void *context, Error *error) {
    (void)context;
    return change_buffer(capture_engine(capture), act->on, act->tensor, act->with, error);
}

bool engine_change_buffer(Engine *engine, Tensor *buffer, Tensor *value, Tensor *owner,
                          Error *error) {
    const CaptureAct act = {
        .does = change_again, .on = buffer, .with = owner, .tensor = value, .is_buffer = true};
    capture_begin_act(engine, &act);
    bool done = change_buffer(engine, buffer, value, owner, error);
    capture_end_act(engine);
    return done;
}

// Whether no later step has a word in it: this one trains the owner, or no optimizer does.
static bool is_last_word(const BufferChange *change, Tensor *const *parameters, int count) {
    if (!change->owner || change->owner->optimizers == 0)
        return true;
    for (int i = 0; i < count; i++)
        if (parameters[i] == change->owner)
            return true;
    return false;
}

static bool undo_grow(Engine *engine, Error *error) {
    if (engine->change_count <= engine->undo_room)
        return true;
    ViewPair *items = realloc(engine->undo.items, (size_t)engine->change_count * sizeof *items);
    if (!items)
        return error_fail(error, ERROR_MEMORY, "no memory for running statistics");
    engine->undo.items = items;
    engine->undo_room = engine->change_count;
    return true;
}

// One call for all: the device looks whether the step was skipped.
static bool take_back(Engine *engine, Tensor *const *parameters, int count, const StepFlags *flags,
                      Error *error) {
    PairPlan *plan = &engine->undo;
    int found = 0;
    if (!undo_grow(engine, error))
        return false;
    for (int i = 0; i < engine->change_count; i++) {
        BufferChange *change = &engine->changes[i];
        bool last = is_last_word(change, parameters, count);
        const Tensor *before = last ? change->before_own : change->before_any;
        if (!before)
            continue;
        tensor_written(change->buffer);
        ViewPair *item = &plan->items[found];
        if (found >= plan->count || item->target.data != change->buffer->view.data ||
            item->source.data != before->view.data) {
            *item = (ViewPair){change->buffer->view, before->view};
            plan_changed(&plan->table);
        }
        found++;
    }
    if (found != plan->count)
        plan_changed(&plan->table);
    plan->count = found;
    return found == 0 ||
           engine->device->backend->multi->restore(engine->device, plan, flags, error);
}

bool engine_settle_buffers(Engine *engine, Tensor *const *parameters, int count,
                           const StepFlags *flags, Error *error) {
    bool done = take_back(engine, parameters, count, flags, error);
    int kept = 0;
    for (int i = 0; i < engine->change_count; i++) {
        BufferChange *change = &engine->changes[i];
        if (is_last_word(change, parameters, count)) {
            change_clear(change);
            continue;
        }
        tensor_release(change->before_any);
        change->before_any = NULL;
        engine->changes[kept++] = *change;
    }
    engine->change_count = kept;
    return done;
}

bool engine_undo_buffers(Engine *engine, Error *error) {
    bool done = true;
    for (int i = 0; i < engine->change_count; i++) {
        BufferChange *change = &engine->changes[i];
        if (done && change->before_any)
            done = tensor_copy_into(change->buffer, change->before_any, error);
        change_clear(change);
    }
    engine->change_count = 0;
    return done;
}
