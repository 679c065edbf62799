#include "lua/bind/step.h"

#include <stdlib.h>
#include <string.h>

// Steps are kept so many at a time (a GAN has two), and the one that was run the longest ago gives
// way. Tries are functions that were new, and watched steps of one function.
enum { MOST_STEPS = 8, MOST_RESULTS = 8, MOST_TRIES = 16 };

typedef struct StepResult {
    Tensor *tensor;  // held; NULL: the value below
    uint64_t number; // of its handle, from the first that the step made on
    bool is_true, is_nil;
} StepResult;

typedef struct HandedStep {
    const void *address; // of the function,
    int function;        // which the registry keeps while it is captured,
    int upvalues;        // and a table of its upvalues as they were; LUA_NOREF: none
    Capture *capture;
    int tries;    // watched steps, less those that were computed without the script
    int let_go;   // how often it was ready, or dropped as the script changed a mode
    uint64_t ran; // the how manieth of all that were run, the last time
    bool is_given_up;
    uint64_t handles; // that the step makes
    StepResult results[MOST_RESULTS];
    int result_count;
} HandedStep;

struct HandedSteps {
    HandedStep steps[MOST_STEPS];
    uint64_t ran;
    int made; // functions that were new
    bool is_told;
    HandedStep *watched; // under way, with what there was before it
    uint64_t handles;
    uint64_t random[4];
    LuaVmAsides asides;
    bool is_captured; // the step under way is run from what was captured,
    bool is_stale;    // all are to be let go of when it is over
};

// ---- which there are ----------------------------------------------------------------------------

static void drop_results(HandedStep *step) {
    for (int i = 0; i < step->result_count; i++)
        tensor_release(step->results[i].tensor);
    step->result_count = 0;
}

static void drop_capture(lua_State *L, HandedStep *step) {
    drop_results(step);
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
        drop_results(&handed->steps[i]);
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
    drop_capture(L, oldest);
    capture_renew(oldest->capture);
    oldest->address = address;
    oldest->tries = oldest->let_go = 0;
    oldest->is_given_up = false;
    oldest->ran = ++handed->ran;
    handed->made++;
    return oldest;
}

// ---- upvalues: what a function counts in, or is told by, without arguments ----------------------

// What is handed over is kept from the collector, until it is dropped.
static void keep_function(lua_State *L, HandedStep *step, int function) {
    if (step->function == LUA_NOREF) {
        lua_pushvalue(L, function);
        step->function = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    luaL_unref(L, LUA_REGISTRYINDEX, step->upvalues);
    lua_newtable(L);
    for (int i = 1; lua_getupvalue(L, function, i); i++)
        lua_rawseti(L, -2, i);
    step->upvalues = luaL_ref(L, LUA_REGISTRYINDEX);
}

static bool upvalues_are_kept(lua_State *L, const HandedStep *step, int function) {
    bool same = true;
    lua_rawgeti(L, LUA_REGISTRYINDEX, step->upvalues);
    for (int i = 1; same && lua_getupvalue(L, function, i); i++) {
        lua_rawgeti(L, -2, i);
        same = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
    }
    lua_pop(L, 1);
    return same;
}

// ---- watching -----------------------------------------------------------------------------------

// What a step may call: operations, and what is an act. All else is refused.
void step_note_call(Session *session, const char *title) {
    static const char *const may[] = {"F.*",
                                      "t:*",
                                      "opt:zero_grad",
                                      "opt:step",
                                      "s:scale",
                                      "s:unscale",
                                      "s:step",
                                      "s:update",
                                      "mp.autocast",
                                      "mp.no_grad",
                                      "mp.zeros",
                                      "mp.ones",
                                      "mp.full",
                                      "mp.arange",
                                      "mp.rand",
                                      "mp.randn",
                                      "mp.randint",
                                      "run:log",
                                      "run:step",
                                      "average:update",
                                      "mp.optim.clip_norm"};
    static const char *const may_not[] = {"t:copy", "t:grad", "t:hook", "t:requires_grad",
                                          "t:zero_grad"};
    bool is_allowed = false;
    for (size_t i = 0; i < sizeof may / sizeof *may && !is_allowed; i++) {
        const size_t length = strlen(may[i]);
        is_allowed = may[i][length - 1] == '*' ? strncmp(may[i], title, length - 1) == 0
                                               : strcmp(may[i], title) == 0;
    }
    for (size_t i = 0; i < sizeof may_not / sizeof *may_not; i++)
        is_allowed = is_allowed && strcmp(may_not[i], title) != 0;
    if (is_allowed)
        return;
    char why[CAPTURE_WHY_SIZE];
    snprintf(why, sizeof why, "it calls %.60s", title);
    capture_refuse(session->engine, why);
}

// What was computed in the step and is no loss that was walked back could be walked back later.
static bool take_result(lua_State *L, HandedStep *step, int index, uint64_t first) {
    Session *session = session_of(L);
    StepResult *result = &step->results[step->result_count];
    Tensor *tensor = bind_test_tensor(L, index);
    *result = (StepResult){.tensor = tensor_hold(tensor),
                           .is_nil = lua_isnil(L, index),
                           .is_true = lua_toboolean(L, index)};
    step->result_count++;
    if (!tensor)
        return result->is_nil || lua_isboolean(L, index);
    const uint64_t number = bind_handle_number(L, index);
    result->number = number - first;
    return number >= first && number < session->handle_count && tape_is_spent(tensor) &&
           capture_made(step->capture, tensor);
}

static const char *take_results(lua_State *L, HandedStep *step, int first_index, uint64_t first) {
    const int count = lua_gettop(L) - first_index + 1;
    drop_results(step);
    if (count > MOST_RESULTS)
        return "it returns more values than are kept";
    for (int i = 0; i < count; i++)
        if (!take_result(L, step, first_index + i, first))
            return "it returns what is no tensor of its own, a view of another, or one with a way "
                   "back";
    return "";
}

// A script that makes its function in the loop has a new one each time.
static const char *why_not(const HandedSteps *handed, const HandedStep *step) {
    if (capture_refusal(step->capture)[0])
        return capture_refusal(step->capture);
    if (handed->made >= MOST_TRIES)
        return "its function is another one each time: make it once, before the loop";
    if (step->tries < MOST_TRIES)
        return "";
    return step->let_go >= MOST_TRIES / 2
               ? "what it works on is changed between two steps: a mode, a precision, "
                 "or weights set by hand"
               : "it is another one each time";
}

// Lets it be where it cannot be captured. Of one that need not be nobody is told.
static void give_up(lua_State *L, HandedStep *step) {
    HandedSteps *handed = session_of(L)->steps;
    const char *why = why_not(handed, step);
    step->is_given_up = why[0] || capture_is_large(step->capture);
    if (why[0] && !handed->is_told) {
        char text[CAPTURE_WHY_SIZE + 96];
        snprintf(text, sizeof text, "run:step: the step is called each time, and not captured: %s",
                 why);
        run_event(session_of(L)->run, text);
        handed->is_told = true;
    }
    if (step->is_given_up)
        drop_capture(L, step);
}

static Tensor *copy_of(const Tensor *result, Error *error) {
    Tensor *copy = tensor_copy_as(result, result->view.format, MEMORY_ACTIVATIONS, error);
    if (copy)
        tape_share_origin(copy, result);
    return copy;
}

// What a step returns, `first` being the number of its first handle: copies, since what they are of
// holds another step's numbers soon; or, where it is not captured, what is in the table at `kept`
// still (0: copies), and else the same again.
static int push_results(lua_State *L, const HandedStep *step, uint64_t first, int kept) {
    Error error = {0};
    Session *session = session_of(L);
    luaL_checkstack(L, MOST_RESULTS + 4, "run:step");
    for (int i = 0; i < step->result_count; i++) {
        const StepResult *result = &step->results[i];
        if (!result->tensor) {
            result->is_nil ? lua_pushnil(L) : lua_pushboolean(L, result->is_true);
            continue;
        }
        if (kept && lua_rawgeti(L, kept, i + 1) != LUA_TNIL)
            continue;
        lua_settop(L, kept ? lua_gettop(L) - 1 : lua_gettop(L));
        session->handle_count = first + result->number;
        BIND_TENSOR(L, kept ? tensor_hold(result->tensor) : copy_of(result->tensor, &error),
                    &error);
    }
    session->handle_count = first + step->handles;
    return step->result_count;
}

// Whether a tensor of the step is held that nobody was given, in a table of the script's: a mask
// that is made once, or the newest loss. In place of the results, from `first` on, comes a table
// with those that are held so.
static bool leaves_tensors(lua_State *L, uint64_t handles, int first) {
    const int count = lua_gettop(L) - first + 1;
    luaL_checkstack(L, 4, "run:step");
    lua_createtable(L, count, 0);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_insert(L, first);
    for (int i = count; i > 0; i--)
        lua_rawseti(L, first, i);
    lua_gc(L, LUA_GCCOLLECT);
    return bind_count_handles(session_of(L), handles) > 0;
}

// Why it cannot be had again; "": it can.
static const char *look_at_script(lua_State *L, HandedStep *step, int function, int first) {
    const Session *session = session_of(L);
    const HandedSteps *handed = session->steps;
    const LuaVmAsides asides = lua_vm_asides(session->vm);
    uint64_t random[4];
    lua_vm_random_state(session->vm, random);
    if (asides.caught != handed->asides.caught)
        return "an error is caught in it";
    if (asides.said != handed->asides.said)
        return "it prints";
    if (memcmp(random, handed->random, sizeof random) != 0)
        return "it calls math.random";
    if (!upvalues_are_kept(L, step, function))
        return "it changes a variable from outside of it";
    return take_results(L, step, first, handed->handles);
}

// The results lie from `first` on.
static void end_watch(lua_State *L, int function, int first, bool is_well) {
    Session *session = session_of(L);
    HandedSteps *handed = session->steps;
    HandedStep *step = handed->watched;
    const char *why = is_well ? look_at_script(L, step, function, first) : "";
    bool are_taken = false;
    step->handles = session->handle_count - handed->handles;
    if (why[0]) {
        capture_note_why(step->capture, why);
    } else if (is_well) {
        are_taken = true;
        is_well = !leaves_tensors(L, handed->handles, first);
    }
    step->tries++;
    const bool is_ready = capture_end(step->capture, is_well);
    step->let_go += is_ready;
    if (are_taken) {
        push_results(L, step, handed->handles, is_ready ? 0 : first);
        lua_remove(L, first);
    }
    if (!is_ready)
        drop_results(step);
    give_up(L, step);
}

static void begin_watch(lua_State *L, HandedStep *step, const CaptureGiven *given, int function) {
    Session *session = session_of(L);
    HandedSteps *handed = session->steps;
    handed->watched = step;
    handed->handles = session->handle_count;
    lua_vm_random_state(session->vm, handed->random);
    handed->asides = lua_vm_asides(session->vm);
    keep_function(L, step, function);
    drop_results(step);
    capture_begin(step->capture, given);
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

// False: it was given up, and what was done is undone. What was captured may still be as it was: a
// number was not finite.
static bool run_captured(lua_State *L, HandedStep *step, Tensor *const *inputs) {
    Error error = {0};
    Session *session = session_of(L);
    Capture *capture = step->capture;
    const int acts = capture_act_count(capture);
    session->steps->is_captured = true;
    capture_start(capture, inputs);
    bool done = true;
    for (int i = 0; done && i <= acts; i++) {
        done = compute_before(L, capture, i);
        if (!done || i == acts)
            break;
        const CaptureAct *act = capture_act(capture, i);
        done = act->does(capture, act, L, &error);
        if (!done && act->is_final)
            bind_raise(L, &error);
        session->steps->is_stale = session->steps->is_stale || !done;
    }
    session->steps->is_captured = false;
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
    end_watch(L, (int)index, (int)index + 2, status == LUA_OK);
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
    begin_watch(L, step, &given, index);
    const int status =
        lua_pcallk(L, lua_gettop(L) - index - 2, LUA_MULTRET, index + 1, index, watch_ended);
    return watch_ended(L, status, index);
}

// What of the steps before is not to be: also where an error has ended one.
static void begin_step(lua_State *L, HandedSteps *handed) {
    for (int i = 0; handed->is_stale && i < MOST_STEPS; i++) {
        drop_capture(L, &handed->steps[i]);
        handed->steps[i].let_go++;
    }
    handed->is_stale = handed->is_captured = false;
}

int step_run(lua_State *L, int index) {
    Session *session = session_of(L);
    Tensor *inputs[CAPTURE_MOST_INPUTS];
    if (session->at_boundary)
        bind_boundary(L); // whose work is none of the step's
    HandedStep *step = step_of(L, index);
    const int count = step ? inputs_of(L, index + 1, inputs) : -1;
    if (step)
        begin_step(L, session->steps);
    if (count < 0 || session->stops || step->is_given_up)
        return call(L, index);
    const CaptureFit fit = capture_fits(step->capture, inputs, count);
    if (fit == CAPTURE_OTHER) // whatever was kept of the step, or nothing
        return call(L, index);
    if (fit == CAPTURE_STALE || !upvalues_are_kept(L, step, index))
        return watch(L, step, index, inputs, count);
    const uint64_t first = session->handle_count;
    if (run_captured(L, step, inputs)) {
        step->tries -= step->tries > 0;
        return push_results(L, step, first, 0);
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
