// Gradients as scripts ask for them: walks back, what leaves have of them, and hooks.
#include <stdlib.h>

#include "lua/bind/callback.h"
#include "lua/bind/step.h"

static int tensor_requires_grad(lua_State *L) {
    Tensor *tensor = bind_tensor(L, "requires_grad", 1, "tensor");
    if (lua_isnone(L, 2)) {
        lua_pushboolean(L, tensor_wants_grad(tensor));
        return 1;
    }
    bool wanted = bind_optional_boolean(L, "requires_grad", 2, "on", false);
    if (tensor->origin && !wanted)
        return bind_error(L, "requires_grad: only a tensor that no operation made can be switched "
                             "off; use :detach()");
    if (wanted && !format_is_floating(tensor->view.format))
        return bind_error(L, "requires_grad: a tensor of %s has no gradient",
                          format_name(tensor->view.format));
    if (!tensor->origin)
        tensor->requires_grad = wanted;
    lua_settop(L, 1);
    return 1;
}

// t:grad() reads; t:grad(gradient) and t:grad(nil) set.
static int tensor_grad(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "grad", 1, "tensor");
    if (!lua_isnone(L, 2)) {
        const Tensor *gradient = bind_optional_tensor(L, "grad", 2, "gradient");
        Tape *tape = session_of(L)->engine->tape;
        return BIND_DONE(L, tape_set_gradient(tape, tensor, gradient, &error), &error);
    }
    BIND_READ(L, step_part_gradient(session_of(L), tensor, &error), &error);
    Tensor *gradient = tensor_hold(tensor->grad);
    bind_push_tensors(L, &gradient, 1); // nil where there is none
    return 1;
}

static int tensor_zero_grad(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "zero_grad", 1, "tensor");
    return BIND_DONE(L, tape_set_gradient(session_of(L)->engine->tape, tensor, NULL, &error),
                     &error);
}

static int tensor_backward(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "backward", 1, "tensor");
    Tensor *seed = bind_optional_tensor(L, "backward", 2, "gradient");
    BackwardOptions options = {.keep_graph =
                                   bind_field_boolean(L, "backward", 3, "keep_graph", false)};
    callback_refuse(L, "backward");
    bind_train(L);
    return bind_walk(L, tensor, seed, &options, &error) ? 0 : bind_walk_failed(L, &error);
}

// grad(output, inputs [, create_graph]): a list of gradients, nil where none arrived
static int mp_grad(lua_State *L) {
    enum { MOST = BIND_MOST_TENSORS };
    Error error = {0};
    Tensor *output = bind_tensor(L, "grad", 1, "output");
    lua_Integer count = bind_list(L, "grad", 2);
    if (count < 1 || count > MOST)
        return bind_error(L, "grad: a list of 1 to %d inputs expected, got %lld", MOST,
                          (long long)count);
    Tensor *inputs[MOST], *results[MOST] = {0};
    lua_settop(L, 3);
    luaL_checkstack(L, MOST + 4, "grad");
    for (lua_Integer i = 0; i < count; i++) { // they stay on the stack: the list may be a weak one
        lua_rawgeti(L, 2, i + 1);
        inputs[i] = bind_tensor(L, "grad", lua_gettop(L), "of the list");
    }
    bool create_graph = bind_optional_boolean(L, "grad", 3, "create_graph", false);
    // Nothing is recorded where a run goes through its script again.
    for (lua_Integer i = 0; i < count && !session_of(L)->run->is_silent; i++)
        if (!tensor_wants_grad(inputs[i]))
            return bind_error(L,
                              "grad: input %lld asks for no gradient: call :requires_grad(true) on "
                              "it before anything is computed of it",
                              (long long)i + 1);
    lua_createtable(L, (int)count, 0);
    int list = lua_gettop(L);
    BackwardOptions options = {.create_graph = create_graph,
                               .keep_graph = create_graph,
                               .inputs = inputs,
                               .results = results,
                               .input_count = (int)count};
    if (!bind_walk(L, output, NULL, &options, &error)) {
        for (lua_Integer i = 0; i < count; i++)
            tensor_release(results[i]);
        return bind_walk_failed(L, &error);
    }
    bind_push_tensors(L, results, (int)count);
    for (lua_Integer i = count; i >= 1; i--)
        lua_rawseti(L, list, i);
    return 1;
}

// ---- hooks --------------------------------------------------------------------------------------

static const char hook_type[] = "mp.hook", look_key;

// What the script holds of a hook, with its function as user value; the tape's half keeps it.
typedef struct HookHandle {
    bool is_removed;
} HookHandle;

typedef struct Hook {
    GradHook base;
    Callback callback; // of the handle
} Hook;

typedef struct Look {
    Hook *hook;
    Tensor **gradient;
} Look;

// Shows the gradient to the script's function, and takes what it returns.
static int look(lua_State *L) {
    Look *call = lua_touserdata(L, 1);
    callback_push(L, &call->hook->callback);
    const HookHandle *handle = lua_touserdata(L, -1);
    if (handle->is_removed) {
        call->hook->base.is_gone = true;
        return 0;
    }
    lua_getiuservalue(L, -1, 1);
    Tensor *shown = tensor_hold(*call->gradient);
    bind_push_tensors(L, &shown, 1);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1))
        return 0;
    Tensor *returned = bind_test_tensor(L, -1);
    if (!returned)
        return bind_error(L,
                          "hook: it returned %s: a tensor in the gradient's place expected, or "
                          "nothing to leave it",
                          bind_what_is(L, -1));
    tensor_release(*call->gradient);
    *call->gradient = tensor_hold(returned);
    return 0;
}

static bool hook_look(GradHook *base, Tensor **gradient, Error *error) {
    Hook *hook = (Hook *)base;
    return callback_call(&hook->callback, &look_key, &(Look){hook, gradient}, error);
}

static void hook_release(GradHook *base) {
    Hook *hook = (Hook *)base;
    callback_release(&hook->callback);
    free(hook);
}

// t:hook(f): has f(gradient) look at it in every walk back; what it returns takes its place
static int tensor_hook(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "hook", 1, "tensor");
    if (!bind_is_callable(L, 2))
        return bind_argument_error(L, "hook", 2, "f", "a function of the gradient");
    HookHandle *handle = lua_newuserdatauv(L, sizeof *handle, 1);
    handle->is_removed = false;
    luaL_setmetatable(L, hook_type);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, -1);
    Callback callback = callback_keep(L);
    Hook *hook = calloc(1, sizeof *hook);
    if (!hook) {
        callback_release(&callback);
        return bind_error(L, "not enough memory");
    }
    *hook = (Hook){.base = {.look = hook_look, .release = hook_release}, .callback = callback};
    return tape_add_hook(tensor, &hook->base, &error) ? 1 : bind_raise(L, &error);
}

static int hook_remove(lua_State *L) {
    HookHandle *handle = luaL_testudata(L, 1, hook_type);
    if (!handle)
        return bind_argument_error(L, "remove", 1, "self", "a hook (called with a colon)");
    handle->is_removed = true;
    lua_pushnil(L);
    lua_setiuservalue(L, 1, 1);
    return 0;
}

// ---- tables -------------------------------------------------------------------------------------

const BindFunction bind_gradient_methods[] = {
    {"requires_grad", tensor_requires_grad, "[on]"},
    {"grad", tensor_grad, "[gradient]"},
    {"zero_grad", tensor_zero_grad, ""},
    {"backward", tensor_backward, "[gradient [, { keep_graph }]]"},
    {"hook", tensor_hook, "f"},
    {0},
};

static const BindFunction functions[] = {{"grad", mp_grad, "output, inputs [, create_graph]"}, {0}};

static const BindFunction hook_methods[] = {{"remove", hook_remove, ""}, {0}};

void bind_open_gradient(lua_State *L, Session *session) {
    static const BindFunction no_events[] = {{0}};
    callback_open(L, session, &look_key, look);
    bind_metatable(L, session, hook_type, "hook:", hook_methods, no_events);
    lua_pop(L, 1);
    bind_functions(L, session, "mp.", functions);
}
