// Functions with a gradient of one's own: a forward and a backward written in Lua, as one entry of
// the tape. lua/mp/custom.lua checks what they are made of.
#include <stdlib.h>
#include <string.h>

#include "lua/bind/callback.h"
#include "ops/gradient.h"
#include "ops/views.h"

static const char back_key, kept_field[] = "_kept";

typedef struct Custom { // of one call
    GradOwn own;
    Callback callback;     // { the definition, the context }
    AutocastRegion region; // that forward ran in
    int argument[OP_MAX_INPUTS];
    char name[48];
} Custom;

static void custom_release(GradOwn *own) {
    Custom *custom = (Custom *)own;
    callback_release(&custom->callback);
    free(custom);
}

// ---- the walk back ------------------------------------------------------------------------------

typedef struct BackCall {
    const Custom *custom;
    const GradNode *node;
    Tensor *const *output_grad;
    Tensor **input_grad;
} BackCall;

// Hands what was kept to the context on top of the stack.
static void give_kept(lua_State *L, const GradNode *node) {
    Tensor *kept[GRAD_MAX_SAVED];
    lua_createtable(L, node->saved_count, 0);
    for (int i = 0; i < node->saved_count; i++)
        kept[i] = tensor_hold(node->saved[i]);
    bind_push_tensors(L, kept, node->saved_count);
    for (int i = node->saved_count; i >= 1; i--)
        lua_rawseti(L, -1 - i, i);
    lua_setfield(L, -2, kept_field);
}

// Of an output that no gradient came to it is zeros.
static void push_gradient(lua_State *L, const BackCall *call, int output) {
    Error error = {0};
    const GradShape *shape = &call->node->output[output];
    Tensor *arrived = tensor_hold(call->output_grad[output]);
    if (arrived)
        bind_push_tensors(L, &arrived, 1);
    else
        BIND_TENSOR(
            L, op_fill(session_of(L)->engine, shape->format, shape->ndim, shape->shape, 0, &error),
            &error);
}

static void check_gradient(lua_State *L, const BackCall *call, int input, const Tensor *gradient) {
    const GradShape *wanted = &call->node->inputs[input];
    bool fits = format_is_floating(gradient->view.format) && gradient->view.ndim == wanted->ndim &&
                memcmp(gradient->view.shape, wanted->shape,
                       (size_t)wanted->ndim * sizeof *wanted->shape) == 0;
    if (fits)
        return;
    char came[96], shape[96];
    View view = {.ndim = wanted->ndim};
    memcpy(view.shape, wanted->shape, sizeof wanted->shape);
    tensor_describe(gradient, came, sizeof came);
    shape_describe(&view, shape, sizeof shape);
    bind_error(
        L, "%s: backward returned %s for argument %d, which is %s: return a gradient of its shape",
        call->custom->name, came, call->custom->argument[input] + 1, shape);
}

static int input_of(const BackCall *call, int argument) {
    for (int i = 0; i < call->node->input_count; i++)
        if (call->custom->argument[i] == argument)
            return i;
    return -1;
}

// backward's results, which lie from `first` on, are the gradients of forward's arguments in order.
static void take_results(lua_State *L, const BackCall *call, int first) {
    const char *name = call->custom->name;
    int count = lua_gettop(L) - first + 1;
    for (int argument = 0; argument < count; argument++) {
        int at = first + argument, input = input_of(call, argument);
        if (lua_isnil(L, at))
            continue;
        Tensor *gradient = bind_test_tensor(L, at);
        if (!gradient)
            bind_error(L,
                       "%s: backward returned %s for argument %d: a tensor expected, or nil for no "
                       "gradient",
                       name, bind_what_is(L, at), argument + 1);
        if (input < 0)
            bind_error(L,
                       "%s: backward returned a gradient for argument %d, and forward was given no "
                       "tensor there: return one value for each argument, nil for what has none",
                       name, argument + 1);
        check_gradient(L, call, input, gradient);
        if (gradient_wanted(call->node, input))
            call->input_grad[input] = tensor_hold(gradient);
    }
    for (int i = 0; i < call->node->input_count; i++)
        if (gradient_wanted(call->node, i) && call->custom->argument[i] >= count)
            bind_error(L,
                       "%s: backward returned %d value%s, and argument %d asks for a gradient: "
                       "return one for each argument of forward, nil for none",
                       name, count, count == 1 ? "" : "s", call->custom->argument[i] + 1);
}

static int call_backward(lua_State *L) {
    const BackCall *call = lua_touserdata(L, 1);
    int outputs = call->node->output_count;
    luaL_checkstack(L, 2 * OP_MAX_INPUTS, "backward");
    callback_push(L, &call->custom->callback);
    lua_rawgeti(L, -1, 2);
    give_kept(L, call->node);
    int context = lua_gettop(L);
    lua_rawgeti(L, -2, 1);
    lua_getfield(L, -1, "backward");
    lua_replace(L, -2);
    lua_pushvalue(L, context);
    for (int i = 0; i < outputs; i++)
        push_gradient(L, call, i);
    lua_call(L, 1 + outputs, LUA_MULTRET);
    lua_pushnil(L);
    lua_setfield(L, context, kept_field);
    take_results(L, call, context + 1);
    return 0;
}

static bool custom_back(void *context, const GradNode *node, Tensor *const *output_grad,
                        Tensor **input_grad, Error *error) {
    Engine *engine = context;
    Custom *custom = (Custom *)node->own;
    const AutocastRegion region = engine->autocast;
    engine->autocast = custom->region;
    BackCall call = {custom, node, output_grad, input_grad};
    const char *within = engine->lookout.function;
    engine->lookout.function = custom->name;
    bool done = callback_call(&custom->callback, &back_key, &call, error);
    engine->lookout.function = within;
    engine->autocast = region;
    engine->layer = node->layer;
    for (int i = 0; done && i < node->input_count; i++) {
        Tensor *gradient = input_grad[i];
        if (!gradient || gradient->view.format == gradient_format(node, i))
            continue;
        input_grad[i] = op_cast(engine, gradient, gradient_format(node, i), error);
        tensor_release(gradient);
        done = input_grad[i] != NULL;
    }
    return done;
}

// ---- the way forward ----------------------------------------------------------------------------

enum { DEFINITION = 1, FIRST_ARGUMENT = 2 };

// The precision that the definition asks for: false where it asks for none.
static bool precision_of(lua_State *L, AutocastRegion *region, Format *format) {
    Error error = {0};
    LayerPrecision precision = LAYER_AUTO;
    lua_getfield(L, DEFINITION, "precision");
    bool is_given = lua_type(L, -1) == LUA_TSTRING;
    if (is_given && !layer_precision_parse(lua_tostring(L, -1), session_of(L)->engine->device,
                                           &precision, &error))
        bind_raise(L, &error);
    lua_pop(L, 1);
    if (precision == LAYER_AUTO)
        return false;
    Format compute = layer_precision_format(precision);
    *format = format_kept(compute);
    *region = (AutocastRegion){0};
    if (compute != FORMAT_FP32)
        *region = (AutocastRegion){.enabled = true, .given = true, .format = compute};
    return true;
}

// Arguments in that format, on the record.
static void cast_arguments(lua_State *L, Format format, int last) {
    for (int at = FIRST_ARGUMENT; at <= last; at++) {
        Error error = {0};
        Tensor *tensor = bind_test_tensor(L, at);
        if (!tensor || !format_is_floating(tensor->view.format) || tensor->view.format == format ||
            tensor->view.format == FORMAT_FP64)
            continue;
        BIND_TENSOR(L, op_cast(session_of(L)->engine, tensor, format, &error), &error);
        lua_replace(L, at);
    }
}

// Calls forward(context, ..) off the record; its results lie on top of the stack.
static void call_forward(lua_State *L, int context, int last, const Custom *custom) {
    Session *session = session_of(L);
    BindState before = bind_state(session);
    luaL_checkstack(L, last + 8, "forward");
    lua_pushcfunction(L, lua_vm_tell_meant);
    const int handler = lua_gettop(L);
    lua_getfield(L, DEFINITION, "forward");
    lua_pushvalue(L, context);
    for (int at = FIRST_ARGUMENT; at <= last; at++)
        lua_pushvalue(L, at);
    const char *within = session->engine->lookout.function;
    session->engine->autocast = custom->region;
    session->engine->lookout.function = custom->name;
    tape_set_enabled(session->engine->tape, false);
    int status = lua_pcall(L, 1 + last - FIRST_ARGUMENT + 1, LUA_MULTRET, handler);
    lua_remove(L, handler);
    session->engine->lookout.function = within;
    bind_restore(session, &before);
    if (status != LUA_OK)
        lua_error(L);
}

typedef struct Tensors {
    int count;
    Tensor *tensor[OP_MAX_INPUTS];
} Tensors;

static Tensors results_of(lua_State *L, const char *name, int first) {
    Tensors results = {.count = lua_gettop(L) - first + 1};
    if (results.count < 1 || results.count > OP_MAX_OUTPUTS)
        bind_error(L, "%s: forward returned %d values: 1 to %d tensors are possible", name,
                   results.count, OP_MAX_OUTPUTS);
    luaL_checkstack(L, OP_MAX_INPUTS, name);
    for (int i = 0; i < results.count; i++) {
        results.tensor[i] = bind_test_tensor(L, first + i);
        if (!results.tensor[i])
            bind_error(L, "%s: forward returned %s as result %d: a tensor expected", name,
                       bind_what_is(L, first + i), i + 1);
    }
    return results;
}

static Tensors kept_of(lua_State *L, const char *name, int context) {
    Tensors kept = {.count = 0};
    lua_getfield(L, context, kept_field);
    int list = lua_gettop(L), count = lua_istable(L, list) ? (int)lua_rawlen(L, list) : 0;
    if (count > GRAD_MAX_SAVED)
        bind_error(L, "%s: ctx:save: %d tensors: up to %d are possible", name, count,
                   GRAD_MAX_SAVED);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, list, i + 1);
        kept.tensor[kept.count++] = bind_test_tensor(L, -1);
    }
    return kept; // they stay on the stack
}

// Pushes the results as the script gets them, behind a new entry of the tape. What forward returned
// they are views of, so that an argument that it hands through is linked anew.
static int record_call(lua_State *L, Custom *custom, const Tensors *inputs, const Tensors *results,
                       Tensors *kept) {
    Error error = {0};
    Engine *engine = session_of(L)->engine;
    Tensor *outputs[OP_MAX_OUTPUTS] = {NULL};
    bool done = true;
    for (int i = 0; done && i < results->count; i++) {
        outputs[i] = op_detach(engine, results->tensor[i], &error);
        done = outputs[i] != NULL;
        for (int k = 0; k < kept->count; k++)
            if (kept->tensor[k] == results->tensor[i])
                kept->tensor[k] = outputs[i];
    }
    const TapeRecord record = {.rule = custom_back,
                               .op = OP_COUNT,
                               .layer = engine->layer,
                               .input_count = inputs->count,
                               .output_count = results->count,
                               .saved_count = kept->count,
                               .inputs = inputs->tensor,
                               .used = inputs->tensor,
                               .outputs = outputs,
                               .saved = kept->tensor,
                               .own = &custom->own};
    done = done && tape_record(engine->tape, &record, &error);
    if (!done) {
        custom_release(&custom->own);
        for (int i = 0; i < results->count; i++)
            tensor_release(outputs[i]);
        return bind_raise(L, &error);
    }
    bind_push_tensors(L, outputs, results->count);
    return results->count;
}

static bool is_recorded(const Session *session, const Tensors *inputs) {
    bool wanted = false;
    for (int i = 0; i < inputs->count; i++)
        wanted = wanted || tensor_wants_grad(inputs->tensor[i]);
    return wanted && tape_is_enabled(session->engine->tape);
}

// apply_custom(definition, ..): what forward gives of the arguments
static int apply_custom(lua_State *L) {
    Session *session = session_of(L);
    Custom made = {.own = {.release = custom_release}, .region = session->engine->autocast};
    Tensors inputs = {.count = 0};
    int last = lua_gettop(L);
    Format format;
    lua_getfield(L, DEFINITION, "name");
    snprintf(made.name, sizeof made.name, "%s", lua_tostring(L, -1));
    if (precision_of(L, &made.region, &format))
        cast_arguments(L, format, last);
    for (int at = FIRST_ARGUMENT; at <= last; at++) {
        Tensor *tensor = bind_test_tensor(L, at);
        if (!tensor)
            continue;
        if (inputs.count == OP_MAX_INPUTS)
            return bind_error(L, "%s: more than %d tensors: join some with cat or stack", made.name,
                              OP_MAX_INPUTS);
        made.argument[inputs.count] = at - FIRST_ARGUMENT;
        inputs.tensor[inputs.count++] = tensor;
    }
    lua_newtable(L);
    lua_getfield(L, DEFINITION, "context");
    lua_setmetatable(L, -2);
    int context = lua_gettop(L);
    call_forward(L, context, last, &made);
    Tensors results = results_of(L, made.name, context + 1);
    if (!is_recorded(session, &inputs))
        return results.count;
    Tensors kept = kept_of(L, made.name, context);
    lua_pushnil(L);
    lua_setfield(L, context, kept_field); // the tape has them
    lua_createtable(L, 2, 0);
    lua_pushvalue(L, DEFINITION);
    lua_rawseti(L, -2, 1);
    lua_pushvalue(L, context);
    lua_rawseti(L, -2, 2);
    made.callback = callback_keep(L);
    Custom *custom = malloc(sizeof *custom);
    if (!custom) {
        callback_release(&made.callback);
        return bind_error(L, "not enough memory");
    }
    *custom = made;
    return record_call(L, custom, &inputs, &results, &kept);
}

static const BindFunction inner[] = {{"apply_custom", apply_custom, NULL}, {0}};

void bind_open_custom(lua_State *L, Session *session) {
    callback_open(L, session, &back_key, call_backward);
    lua_getfield(L, -1, "engine");
    bind_functions(L, session, "", inner);
    lua_pop(L, 1);
}
