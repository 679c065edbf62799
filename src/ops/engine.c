#include "ops/engine.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/random.h"

static Tensor *hook_add(void *context, Tensor *x, Tensor *y, Error *error) {
    OpAttr attr = {.out_format = x->view.format, .has_out_format = true};
    return op_two(context, OP_add, x, y, &attr, error);
}

static Tensor *hook_cast(void *context, Tensor *x, Format format, Error *error) {
    return op_cast(context, x, format, error);
}

static void hook_enter(void *context, int layer) {
    Engine *engine = context;
    engine->layer = layer;
}

Engine *engine_new(Device *device, const Preset *preset, uint64_t seed, Error *error) {
    Engine *engine = calloc(1, sizeof *engine);
    if (!engine) {
        error_fail(error, ERROR_MEMORY, "no memory for the engine");
        return NULL;
    }
    engine->device = device;
    engine->seed = seed;
    const TapeHooks hooks = {.add = hook_add, .cast = hook_cast, .enter = hook_enter};
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

static void forget_changes(Engine *engine) {
    for (int i = 0; i < engine->change_count; i++) {
        tensor_release(engine->changes[i].buffer);
        tensor_release(engine->changes[i].before);
        tensor_release(engine->changes[i].owner);
    }
    engine->change_count = 0;
}

void engine_free(Engine *engine) {
    if (!engine)
        return;
    forget_changes(engine);
    free(engine->changes);
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

bool engine_backward(Engine *engine, Tensor *root, Tensor *seed, const BackwardOptions *options,
                     Error *error) {
    AutocastRegion region = engine->autocast;
    int layer = engine->layer;
    engine->autocast = (AutocastRegion){0};
    engine->walking_back = true;
    bool done = tape_backward(engine->tape, root, seed, options, error);
    engine->walking_back = false;
    engine->layer = layer;
    engine->autocast = region;
    return done;
}

// ---- running statistics -------------------------------------------------------------------------

static bool changed_before(const Engine *engine, const Tensor *buffer) {
    for (int i = 0; i < engine->change_count; i++)
        if (engine->changes[i].buffer == buffer)
            return true;
    return false;
}

bool engine_change_buffer(Engine *engine, Tensor *buffer, Tensor *value, Tensor *owner,
                          Error *error) {
    // Of several forward passes before one step, the state before the first is what counts.
    if (!changed_before(engine, buffer)) {
        if (engine->change_count == engine->change_size) {
            int size = engine->change_size ? engine->change_size * 2 : 16;
            BufferChange *changes = realloc(engine->changes, (size_t)size * sizeof *changes);
            if (!changes)
                return error_fail(error, ERROR_MEMORY, "no memory for running statistics");
            engine->changes = changes;
            engine->change_size = size;
        }
        Tensor *before = tensor_view(buffer, &buffer->view, error);
        if (!before)
            return false;
        engine->changes[engine->change_count++] = (BufferChange){
            .buffer = tensor_hold(buffer), .before = before, .owner = tensor_hold(owner)};
    }
    tensor_adopt(buffer, value);
    return true;
}

static bool decides(const BufferChange *change, Tensor *const *parameters, int count) {
    if (!parameters || !change->owner)
        return true;
    for (int i = 0; i < count; i++)
        if (parameters[i] == change->owner)
            return true;
    return false;
}

bool engine_settle_buffers(Engine *engine, Tensor *const *parameters, int count,
                           const StepFlags *flags, Error *error) {
    int kept = 0;
    bool done = true;
    for (int i = 0; i < engine->change_count; i++) {
        BufferChange *change = &engine->changes[i];
        if (!decides(change, parameters, count)) {
            engine->changes[kept++] = *change;
            continue;
        }
        if (flags && done)
            done = engine->device->backend->multi->restore(engine->device, &change->buffer->view,
                                                           &change->before->view, 1, flags, error);
        tensor_release(change->buffer);
        tensor_release(change->before);
        tensor_release(change->owner);
    }
    engine->change_count = kept;
    return done;
}
