// Steps that a script hands over: which there are, and how one is run.
#include <stdlib.h>

#include "lua/bind/step_private.h"

// ---- which there are ----------------------------------------------------------------------------

void step_drop_results(HandedStep *step) {
    for (int i = 0; i < step->result_count; i++)
        tensor_release(step->results[i].tensor);
    step->result_count = 0;
}

void step_drop_capture(lua_State *L, HandedStep *step) {
    step_drop_results(step);
    capture_forget(step->capture);
    luaL_unref(L, LUA_REGISTRYINDEX, step->function);
    luaL_unref(L, LUA_REGISTRYINDEX, step->upvalues);
    step->function = step->upvalues = LUA_NOREF;
}

void step_forget(Session *session) {
    if (session->steps)
        session->steps->is_stale = true; // one may be under way
}

void step_free(Session *session) {
    HandedSteps *handed = session->steps;
    for (int i = 0; handed && i < MOST_STEPS; i++) {
        step_drop_results(&handed->steps[i]);
        capture_free(handed->steps[i].capture);
    }
    free(handed);
    session->steps = NULL;
}

// All are there from the first on.
static HandedSteps *steps_of(Session *session) {
    HandedSteps *handed = session->steps;
    if (handed || session->has_no_steps)
        return handed;
    handed = session->steps = calloc(1, sizeof *handed);
    session->has_no_steps = !handed;
    for (int i = 0; handed && i < MOST_STEPS; i++) {
        handed->steps[i].function = handed->steps[i].upvalues = LUA_NOREF;
        handed->steps[i].capture = capture_new(session->engine);
        session->has_no_steps = session->has_no_steps || !handed->steps[i].capture;
    }
    if (session->has_no_steps)
        step_free(session);
    return session->steps;
}

// The step of the function at `index`; NULL: it is only called. A new one takes the place of the
// one that was run last the longest ago.
static HandedStep *step_of(lua_State *L, int index) {
    Session *session = session_of(L);
    const void *address = lua_topointer(L, index);
    if (session->resume || session->evaluation || session->scan || !lua_isfunction(L, index) ||
        session->engine->capture) // within another
        return NULL;
    HandedSteps *handed = steps_of(session);
    HandedStep *oldest = handed ? &handed->steps[0] : NULL;
    for (int i = 0; handed && i < MOST_STEPS; i++) {
        HandedStep *step = &handed->steps[i];
        if (step->address == address) {
            step->ran = ++handed->ran;
            return step;
        }
        if (step->ran < oldest->ran)
            oldest = step;
    }
    if (!oldest)
        return NULL;
    step_drop_capture(L, oldest);
    capture_renew(oldest->capture);
    oldest->address = address;
    oldest->tries = oldest->let_go = 0;
    oldest->is_given_up = false;
    oldest->ran = ++handed->ran;
    handed->made++;
    return oldest;
}

// ---- from what was captured ---------------------------------------------------------------------

// Computes what comes before act i, at the place of the first engine work of a step.
static bool compute_before(lua_State *L, Capture *capture, int i) {
    bool done = false;
    if (!capture_computes(capture, i))
        return true;
    BIND_ENTERED(L, done = capture_compute(capture, i));
    return done;
}

// False: it was given up, before a final act.
static bool do_acts(lua_State *L, Capture *capture) {
    Error error = {0};
    Session *session = session_of(L);
    const int acts = capture_act_count(capture);
    for (int i = 0; compute_before(L, capture, i); i++) {
        if (i == acts)
            return true;
        const CaptureAct *act = capture_act(capture, i);
        if (act->does(capture, act, L, &error))
            continue;
        if (act->is_final)
            bind_raise(L, &error);
        session->steps->is_stale = true;
        break;
    }
    return false;
}

// (capture) -> done
static int do_acts_protected(lua_State *L) {
    lua_pushboolean(L, do_acts(L, lua_touserdata(L, 1)));
    return 1;
}

// False: it was given up, and what was done is undone. What was captured may still be as it was: a
// number was not finite. Whatever raises an error, the step is under way no longer.
static bool run_captured(lua_State *L, HandedStep *step, Tensor *const *inputs) {
    Error error = {0};
    HandedSteps *handed = session_of(L)->steps;
    Capture *capture = step->capture;
    lua_pushcfunction(L, lua_vm_tell_meant);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushcclosure(L, do_acts_protected, 1);
    lua_pushlightuserdata(L, capture);
    handed->is_captured = true;
    capture_start(capture, inputs);
    const int status = lua_pcall(L, 1, 1, -3);
    handed->is_captured = false;
    if (status != LUA_OK) {
        capture_leave(capture);
        lua_error(L);
    }
    const bool done = lua_toboolean(L, -1);
    lua_pop(L, 2);
    if (done)
        capture_finish(capture);
    else if (!capture_take_back(capture, &error))
        bind_raise(L, &error);
    return done;
}

// ---- run:step -----------------------------------------------------------------------------------

static bool is_state(void *context, const void *memory) {
    const Inventory *inventory = &((const Session *)context)->inventory;
    for (int i = 0; i < inventory->named_count; i++)
        if (inventory->named[i].tensor->storage->data == memory)
            return true;
    return false;
}

// The tensors among the arguments from `first` on; -1: there is something else.
static int inputs_of(lua_State *L, int first, Tensor *inputs[CAPTURE_MOST_INPUTS]) {
    const int count = lua_gettop(L) - first + 1;
    if (count > CAPTURE_MOST_INPUTS)
        return -1;
    for (int i = 0; i < count; i++)
        if (!(inputs[i] = bind_test_tensor(L, first + i)))
            return -1;
    return count;
}

static int call_ended(lua_State *L, int status, lua_KContext before) {
    (void)status;
    return lua_gettop(L) - (int)before;
}

static int call(lua_State *L, int index) {
    lua_callk(L, lua_gettop(L) - index, LUA_MULTRET, index - 1, call_ended);
    return call_ended(L, LUA_OK, index - 1);
}

// The stack at `index`: the function, to be looked at again, what tells of errors, and the results.
static int watch_ended(lua_State *L, int status, lua_KContext index) {
    if (status == LUA_YIELD) {
        capture_refuse(session_of(L)->engine, "it yields");
        status = LUA_OK;
    }
    step_end_watch(L, (int)index, (int)index + 2, status == LUA_OK);
    if (status != LUA_OK)
        return lua_error(L);
    return lua_gettop(L) - (int)index - 1;
}

static int watch(lua_State *L, HandedStep *step, int index, Tensor *const *inputs, int count) {
    Session *session = session_of(L);
    const CaptureGiven given = {inputs, count, is_state, session};
    lua_pushcfunction(L, lua_vm_tell_meant);
    lua_insert(L, index);
    lua_pushvalue(L, index + 1);
    lua_insert(L, index);
    step_begin_watch(L, step, &given, index);
    const int status =
        lua_pcallk(L, lua_gettop(L) - index - 2, LUA_MULTRET, index + 1, index, watch_ended);
    return watch_ended(L, status, index);
}

// What of the steps before is not to be.
static void begin_step(lua_State *L, HandedSteps *handed) {
    for (int i = 0; handed->is_stale && i < MOST_STEPS; i++) {
        step_drop_capture(L, &handed->steps[i]);
        handed->steps[i].let_go++;
    }
    handed->is_stale = false;
}

int step_run(lua_State *L, int index) {
    Session *session = session_of(L);
    Tensor *inputs[CAPTURE_MOST_INPUTS];
    if (session->at_boundary)
        bind_boundary(L); // whose work is none of the step's
    bind_training_begins(session);
    HandedStep *step = step_of(L, index);
    const int count = step ? inputs_of(L, index + 1, inputs) : -1;
    if (step)
        begin_step(L, session->steps);
    if (count < 0 || session->stops || step->is_given_up)
        return call(L, index);
    const CaptureFit fit = capture_fits(step->capture, inputs, count);
    if (fit == CAPTURE_OTHER) // whatever was kept of the step, or nothing
        return call(L, index);
    if (fit == CAPTURE_STALE || !step_upvalues_are_kept(L, step, index))
        return watch(L, step, index, inputs, count);
    const uint64_t first = session->handle_count;
    if (run_captured(L, step, inputs)) {
        step->tries -= step->tries > 0;
        return step_push_results(L, step, first, 0);
    }
    return call(L, index);
}

bool step_part_gradient(Session *session, Tensor *leaf, Error *error) {
    const HandedSteps *handed = session->steps;
    bool is_captured = false;
    for (int i = 0; handed && leaf->grad && i < MOST_STEPS; i++)
        is_captured = is_captured || capture_has_gradient(handed->steps[i].capture, leaf);
    if (!is_captured)
        return true;
    Tensor *copy = tensor_copy_as(leaf->grad, leaf->grad->view.format, MEMORY_GRADIENTS, error);
    if (!copy)
        return false;
    tensor_release(leaf->grad);
    leaf->grad = copy;
    return true;
}

void step_count(Session *session) {
    Device *device = session->engine->device;
    if (!session->steps)
        return;
    device->steps++;
    device->captured += session->steps->is_captured;
}
