// Watching a step that a script hands over: whether it can be had again, and what it returns.
#include <string.h>

#include "lua/bind/step_private.h"

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

bool step_upvalues_are_kept(lua_State *L, const HandedStep *step, int function) {
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
    step_drop_results(step);
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
        step_drop_capture(L, step);
}

static Tensor *copy_of(const Tensor *result, Error *error) {
    Tensor *copy = tensor_copy_as(result, result->view.format, MEMORY_ACTIVATIONS, error);
    if (copy)
        tape_share_origin(copy, result);
    return copy;
}

int step_push_results(lua_State *L, const HandedStep *step, uint64_t first, int kept) {
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
    if (!step_upvalues_are_kept(L, step, function))
        return "it changes a variable from outside of it";
    return take_results(L, step, first, handed->handles);
}

void step_end_watch(lua_State *L, int function, int first, bool is_well) {
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
        step_push_results(L, step, handed->handles, is_ready ? 0 : first);
        lua_remove(L, first);
    }
    if (!is_ready)
        step_drop_results(step);
    give_up(L, step);
}

void step_begin_watch(lua_State *L, HandedStep *step, const CaptureGiven *given, int function) {
    Session *session = session_of(L);
    HandedSteps *handed = session->steps;
    handed->watched = step;
    handed->handles = session->handle_count;
    lua_vm_random_state(session->vm, handed->random);
    handed->asides = lua_vm_asides(session->vm);
    keep_function(L, step, function);
    step_drop_results(step);
    capture_begin(step->capture, given);
}
