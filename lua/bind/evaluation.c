// What lua/mp/evaluation.lua asks of an evaluation (run/evaluation.h) and tells of it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "checkpoint/quantised.h"
#include "checkpoint/weights.h"
#include "data/loader.h"
#include "kernel/allocator.h"
#include "lua/bind/bind.h"

// ---- the clock ----------------------------------------------------------------------------------

void bind_model_begins(Session *session) {
    device_synchronize(session->engine->device);
    session->model_began = clock_seconds();
}

void bind_model_ends(Session *session) {
    device_synchronize(session->engine->device);
    session->model_seconds += clock_seconds() - session->model_began;
}

// seconds(): of a clock that goes steadily, when what was asked of the device is done
static int evaluation_seconds(lua_State *L) {
    Device *device = session_of(L)->engine->device;
    BIND_ENTERED(L, device_synchronize(device));
    lua_pushnumber(L, clock_seconds());
    return 1;
}

// A model that waits in waits_its_turn, whose arguments are what calls it.
typedef struct Waiting {
    lua_State *L;
    Session *session;
} Waiting;

// What it takes in modules; in all where it calls none.
static bool call_waiting(void *model, EvaluationCall what, double *seconds, Error *error) {
    const Waiting *waiting = model;
    Session *session = waiting->session;
    Device *device = session->engine->device;
    device_synchronize(device);
    session->model_seconds = 0;
    const double began = clock_seconds();
    lua_pushvalue(waiting->L, 1 + (int)what);
    lua_vm_end_patience(session->vm);
    const bool done = lua_vm_call(session->vm, 0, 0, error);
    lua_vm_begin_patience(session->vm);
    device_synchronize(device);
    *seconds = session->model_seconds > 0 ? session->model_seconds : clock_seconds() - began;
    lua_gc(waiting->L, LUA_GCCOLLECT);
    return done && device_check(device, error);
}

// waits_its_turn(one, batch): whoever evaluates calls them, to time them, until this returns
static int evaluation_waits_its_turn(lua_State *L) {
    Session *session = session_of(L);
    const Evaluation *evaluation = session->evaluation;
    Waiting waiting = {L, session};
    for (int i = 1; i <= EVALUATION_CALLS; i++)
        luaL_checktype(L, i, LUA_TFUNCTION);
    lua_settop(L, EVALUATION_CALLS);
    luaL_checkstack(L, LUA_MINSTACK, NULL);
    lua_vm_begin_patience(session->vm);
    evaluation->ready(evaluation->context, &(EvaluationCaller){call_waiting, &waiting});
    lua_vm_end_patience(session->vm);
    lua_vm_check(L);
    return 0;
}

// ---- as if it had not been ----------------------------------------------------------------------

// tried(f): calls f, and puts the streams of chance and the loaders back to where they were before
static int evaluation_tried(lua_State *L) {
    Session *session = session_of(L);
    Engine *engine = session->engine;
    const MemberList *loaders = &session->inventory.lists[MEMBER_LOADER];
    const int count = loaders->count; // f may open others
    const uint64_t seed = engine->seed, position = engine->random_position;
    uint64_t lua_random[4];
    Error error = {0};
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    LoaderState *states = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *states, 0);
    for (int i = 0; i < count; i++)
        states[i] = loaders->members[i] ? loader_state(loaders->members[i]) : (LoaderState){0};
    lua_vm_random_state(session->vm, lua_random);
    const bool clock_ran = run_pause_clock(session->run);
    lua_pushvalue(L, 1);
    lua_call(L, 0, 0);
    engine->seed = seed;
    engine->random_position = position;
    lua_vm_set_random_state(session->vm, lua_random);
    for (int i = 0; i < count; i++) {
        Loader *loader = loaders->members[i];
        const LoaderState now = loader ? loader_state(loader) : states[i];
        if (now.epoch != states[i].epoch || now.position != states[i].position)
            BIND_DONE(L, loader_set_state(loader, states[i], &error), &error);
    }
    if (clock_ran)
        run_resume_clock(session->run);
    allocator_forget_peaks(engine->device->allocator);
    return 0;
}

// ---- what goes on -------------------------------------------------------------------------------

// settle(): what nothing refers to any more is given back
static int evaluation_settle(lua_State *L) {
    lua_gc(L, LUA_GCCOLLECT);
    return 0;
}

// evaluation_goes_on([what, done, of]): tells of it, and ends where the end was asked for
static int evaluation_goes_on(lua_State *L) {
    Session *session = session_of(L);
    const Evaluation *evaluation = session->evaluation;
    if (lua_isstring(L, 1) && evaluation->progress)
        evaluation->progress(evaluation->context, lua_tostring(L, 1), luaL_checkinteger(L, 2),
                             luaL_optinteger(L, 3, 0));
    if (run_is_to_stop(session->run))
        lua_vm_interrupt(session->vm, "the run was asked to stop");
    lua_vm_check(L);
    return 0;
}

static bool has_int8(const Policy *policy) {
    bool has = policy_preset(policy)->low == FORMAT_INT8;
    for (int i = 1; i < policy_layer_count(policy) && !has; i++)
        has = policy_layer(policy, i)->in_force == LAYER_INT8;
    return has;
}

// calibrates(on): layers in int8 note what they multiply, and compute in fp32
static int evaluation_calibrates(lua_State *L) {
    Session *session = session_of(L);
    session->engine->calibrates = lua_toboolean(L, 1);
    session->engine->by_largest = session->evaluation->largest;
    return 0;
}

// needs(f): the bytes that f takes at the most, weights in, but not the data, nor what training
// keeps
static int evaluation_needs(lua_State *L) {
    Allocator *allocator = session_of(L)->engine->device->allocator;
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lua_gc(L, LUA_GCCOLLECT);
    allocator_forget_peaks(allocator);
    lua_call(L, 0, 0);
    const MemoryUse use = allocator_use(allocator);
    lua_pushinteger(L,
                    (lua_Integer)(use.total_peak - use.now[MEMORY_MASTERS] - use.now[MEMORY_DATA]));
    return 1;
}

// limit([bytes]): the device has so many beside the data and what training keeps, or all of the
// machine's memory again
static int evaluation_limit(lua_State *L) {
    Session *session = session_of(L);
    const Device *device = session->engine->device;
    size_t bytes = memory_of_machine() / 10 * 9;
    if (device->memory > 0) {
        error_fail(&session->refusal, ERROR_USAGE,
                   "--memory: device %s has memory of its own, which ends where it ends; --device "
                   "cpu keeps to a cap",
                   device->label);
        return bind_error(L, "%s", session->refusal.text);
    }
    allocator_drop_workspace(device->allocator); // of what larger batches asked for
    allocator_trim(device->allocator);
    if (!lua_isnoneornil(L, 1)) {
        session->refusal.code = ERROR_NONE; // see was_full
        const MemoryUse use = allocator_use(device->allocator);
        bytes = (size_t)luaL_checkinteger(L, 1) + use.now[MEMORY_MASTERS] + use.now[MEMORY_DATA] +
                session->data_bytes;
    }
    allocator_set_limit(device->allocator, bytes);
    return 0;
}

// was_full(): whether there was no memory for something since the limit was set last
static int evaluation_was_full(lua_State *L) {
    lua_pushboolean(L, session_of(L)->refusal.code == ERROR_MEMORY);
    return 1;
}

// evaluation(): what is asked; nil where the script is to train
static int evaluation_asked(lua_State *L) {
    Session *session = session_of(L);
    const Evaluation *evaluation = session->evaluation;
    if (!evaluation)
        return 0;
    lua_createtable(L, 0, 4);
    lua_pushinteger(L, has_int8(session->engine->policy) ? evaluation->calibrate : 0);
    lua_setfield(L, -2, "calibrate");
    lua_pushinteger(L, evaluation->memory);
    lua_setfield(L, -2, "memory");
    lua_pushboolean(L, evaluation->quick);
    lua_setfield(L, -2, "quick");
    return 1;
}

// ---- what came of it ----------------------------------------------------------------------------

static int told_samples(lua_State *L, Evaluation *evaluation) {
    evaluation->samples = luaL_checkinteger(L, 2);
    evaluation->batch = luaL_checkinteger(L, 3);
    return 0;
}

static bool count_not_finite(const Tensor *tensor, int64_t *count, Error *error) {
    const int64_t elements = view_count(&tensor->view);
    Tensor *copy = tensor_copy_as(tensor, FORMAT_FP32, MEMORY_WORKSPACE, error);
    float *values = copy ? malloc((size_t)elements * sizeof *values + 1) : NULL;
    bool done = copy && (values || error_fail(error, ERROR_MEMORY, "no memory for the weights")) &&
                tensor_read(copy, values, error);
    *count = 0;
    for (int64_t i = 0; i < elements && done; i++)
        *count += !isfinite(values[i]);
    free(values);
    tensor_release(copy);
    return done;
}

// Which of the weights, as they were read, hold inf or nan.
static int told_weights(lua_State *L, Evaluation *evaluation) {
    const Inventory *inventory = &session_of(L)->inventory;
    Error error = {0};
    for (int i = 0; i < inventory->named_count; i++) {
        const NamedTensor *named = &inventory->named[i];
        int64_t count;
        BIND_DONE(L, count_not_finite(named->tensor, &count, &error), &error);
        if (count > 0 && evaluation->broken_count++ == 0)
            utf8_copy(evaluation->broken, sizeof evaluation->broken, named->name);
        evaluation->broken_numbers += count;
    }
    return 0;
}

// What is in use from here on is the evaluation's.
static int told_begins(lua_State *L, Evaluation *evaluation) {
    (void)evaluation;
    allocator_forget_peaks(session_of(L)->engine->device->allocator);
    return 0;
}

static int told_metric(lua_State *L, Evaluation *evaluation) {
    const char *name = luaL_checkstring(L, 3);
    if (evaluation->metric_count == EVALUATION_MOST_METRICS)
        return bind_error(L, "eval: more than %d values", EVALUATION_MOST_METRICS);
    evaluation->falls[evaluation->metric_count] = lua_toboolean(L, 4);
    RecordMetric *metric = &evaluation->metrics[evaluation->metric_count++];
    utf8_copy(metric->name, sizeof metric->name, name);
    metric->value = luaL_checknumber(L, 2);
    return 0;
}

static int told_leads(lua_State *L, Evaluation *evaluation) {
    utf8_copy(evaluation->leads, sizeof evaluation->leads, luaL_checkstring(L, 2));
    return 0;
}

static int told_fits(lua_State *L, Evaluation *evaluation) {
    evaluation->largest_batch = luaL_checkinteger(L, 2);
    evaluation->needed = luaL_checkinteger(L, 3);
    return 0;
}

// As `export` writes it, which leaves alone what are no numbers of a floating format.
static int64_t bytes_on_disk(const Policy *policy, const SafeHeader *from,
                             const NamedTensor *named) {
    const View *view = &named->tensor->view;
    if (!format_is_floating(view->format))
        return view_count(view) * (int64_t)format_table[view->format].bytes;
    return quantised_bytes(quantised_format(policy, from, named->name, !named->is_buffer),
                           view->ndim, view->shape);
}

// What products read of the weights, and the most that was in use since the peaks were forgotten.
static int told_memory(lua_State *L, Evaluation *evaluation) {
    const Session *session = session_of(L);
    const Inventory *inventory = &session->inventory;
    const MemoryUse use = allocator_use(session->engine->device->allocator);
    evaluation->weights_memory = (int64_t)use.now[MEMORY_WEIGHTS];
    evaluation->activations = (int64_t)use.peak[MEMORY_ACTIVATIONS];
    evaluation->peak = (int64_t)(use.total_peak - use.now[MEMORY_MASTERS]);
    const SafeHeader *from = safe_header(session->weights);
    evaluation->takers_unknown = !weights_takers_are_known(from);
    evaluation->weights_disk = 0;
    for (int i = 0; i < inventory->named_count; i++)
        evaluation->weights_disk +=
            bytes_on_disk(session->engine->policy, from, &inventory->named[i]);
    return 0;
}

// evaluated(what, ..)
static int evaluation_told(lua_State *L) {
    static const struct {
        const char *what;
        int (*told)(lua_State *L, Evaluation *evaluation);
    } kinds[] = {{"weights", told_weights}, {"begins", told_begins}, {"fits", told_fits},
                 {"samples", told_samples}, {"metric", told_metric}, {"leads", told_leads},
                 {"memory", told_memory}};
    const char *what = luaL_checkstring(L, 1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].what, what) == 0)
            return kinds[i].told(L, session_of(L)->evaluation);
    return luaL_error(L, "evaluated: %s", what);
}

const BindFunction bind_evaluation_functions[] = {
    {"calibrates", evaluation_calibrates, NULL},
    {"needs", evaluation_needs, NULL},
    {"limit", evaluation_limit, NULL},
    {"was_full", evaluation_was_full, NULL},
    {"evaluation", evaluation_asked, NULL},
    {"evaluation_goes_on", evaluation_goes_on, NULL},
    {"evaluated", evaluation_told, NULL},
    {"seconds", evaluation_seconds, NULL},
    {"waits_its_turn", evaluation_waits_its_turn, NULL},
    {"settle", evaluation_settle, NULL},
    {"tried", evaluation_tried, NULL},
    {0},
};
