// The operations as Lua functions. One function a family of ops.def reads the arguments; which
// operation it runs is its second upvalue. An operation added to a family is a Lua function at
// once, and a new family without a function here does not compile.
#include <math.h>
#include <string.h>

#include "lua/bind/ops.h"
#include "ops/functions.h"

int bind_op_run(lua_State *L, Tensor *const *inputs, int count, const OpAttr *attr, int results) {
    Error error = {0};
    OpId op = bind_op(L);
    Tensor *outputs[OP_MAX_OUTPUTS];
    BIND_DONE(L, op_apply(session_of(L)->engine, op, inputs, count, attr, outputs, &error), &error);
    for (int i = results; i < op_table[op].outputs; i++)
        tensor_release(outputs[i]);
    bind_push_tensors(L, outputs, results);
    return results;
}

Tensor *bind_op_input(lua_State *L, int argument, const char *name) {
    return bind_tensor(L, bind_op_name(L), argument, name);
}

Tensor *bind_op_optional(lua_State *L, int argument, const char *name) {
    return bind_optional_tensor(L, bind_op_name(L), argument, name);
}

// ---- point-wise ---------------------------------------------------------------------------------

// Functions of a tensor and of numbers behind it.
typedef struct Scalars {
    OpId op;
    const char *takes;
    int count; // of the numbers
    double missing[2];
    const char *names[2];
} Scalars;

static const Scalars *scalars_of(OpId op) {
    static const Scalars scalars[] = {
        {OP_leaky_relu, "x [, slope]", 1, {0.01}, {"slope"}},
        {OP_pow, "x, exponent", 1, {NAN}, {"exponent"}},
        {OP_clamp, "x [, low [, high]]", 2, {-INFINITY, INFINITY}, {"low", "high"}},
        {OP_affine, "x [, factor [, shift]]", 2, {1, 0}, {"factor", "shift"}},
    };
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        if (scalars[i].op == op)
            return &scalars[i];
    return NULL;
}

static int bind_unary(lua_State *L) {
    const Scalars *scalars = scalars_of(bind_op(L));
    Tensor *x = bind_op_input(L, 1, "x");
    OpAttr attr = {.has_out_format = false};
    if (bind_op(L) == OP_neg) {
        Error error = {0};
        return BIND_TENSOR(L, op_negative(session_of(L)->engine, x, &error), &error);
    }
    if (scalars) {
        double value[2] = {scalars->missing[0], scalars->missing[1]};
        for (int k = 0; k < scalars->count; k++)
            if (!lua_isnoneornil(L, 2 + k) || isnan(value[k]))
                value[k] = bind_number(L, bind_op_name(L), 2 + k, scalars->names[k]);
        if (isnan(value[0]) || isnan(value[1]))
            return bind_error(L, "%s: a constant is not a number (nan)", bind_op_name(L));
        attr.scalar.a = value[0];
        attr.scalar.b = value[1];
    }
    return bind_op_run(L, &x, 1, &attr, 1);
}

// A number of the script that fp16 cannot hold, where the result has its size.
static void look_at_constant(lua_State *L, OpId op, Format format, double value) {
    if (format != FORMAT_FP16 || isinf(value) ||
        (op != OP_add && op != OP_sub && op != OP_where && op != OP_pad) ||
        !isinf(format_round(format, value, OVERFLOW_TO_SPECIAL)))
        return;
    Run *run = session_of(L)->run;
    run_diagnose(run, DIAGNOSIS_CONSTANT_OVERFLOW,
                 policy_layer(run->engine->policy, run->engine->layer)->name,
                 "%s: the number %g meets a tensor in fp16, which ends at %.0f, and is infinite "
                 "there: a softmax over nothing else gives nan; take %g for a mask, or compute in "
                 "fp32",
                 op_table[op].name, value, format_table[FORMAT_FP16].largest,
                 value < 0 ? -3e4 : 3e4);
}

// A tensor, or a number made into one beside the other operand: it takes the number's place among
// the arguments, and a handle owns it, should the rest raise.
static Tensor *operand(lua_State *L, int argument, const Tensor *other) {
    Error error = {0};
    Tensor *tensor = bind_test_tensor(L, argument);
    if (tensor)
        return tensor;
    int is_number;
    double value = lua_tonumberx(L, argument, &is_number);
    if (!is_number)
        bind_argument_error(L, bind_op_name(L), argument, argument == 1 ? "x" : "y",
                            "a tensor or a number");
    if (!other)
        bind_argument_error(L, bind_op_name(L), argument, "x", "a tensor beside a number");
    Format format = format_is_floating(other->view.format) ? other->view.format : FORMAT_FP32;
    look_at_constant(L, bind_op(L), format, value);
    bool is_whole = lua_isinteger(L, argument);
    BIND_TENSOR(L,
                tensor = op_number_beside(session_of(L)->engine, bind_op(L), value, is_whole, other,
                                          &error),
                &error);
    lua_replace(L, argument);
    return tensor;
}

static int bind_two(lua_State *L) {
    lua_settop(L, 2);
    Tensor *left = bind_test_tensor(L, 1), *right = bind_test_tensor(L, 2);
    Tensor *const inputs[] = {operand(L, 1, right), operand(L, 2, left)};
    return bind_op_run(L, inputs, 2, NULL, 1);
}
#define bind_binary  bind_two
#define bind_compare bind_two

static int bind_loss(lua_State *L) {
    Tensor *const inputs[] = {bind_op_input(L, 1, "input"), bind_op_input(L, 2, "target")};
    return bind_op_run(L, inputs, 2, NULL, 1);
}

static int bind_where(lua_State *L) {
    lua_settop(L, 3);
    Tensor *condition = bind_op_input(L, 1, "condition");
    Tensor *left = bind_test_tensor(L, 2), *right = bind_test_tensor(L, 3);
    Tensor *other = left ? left : right;
    Tensor *const inputs[] = {condition, operand(L, 2, other), operand(L, 3, other)};
    return bind_op_run(L, inputs, 3, NULL, 1);
}

static int bind_dropout(lua_State *L) {
    Error error = {0};
    Tensor *x = bind_op_input(L, 1, "x"), *y = NULL;
    double probability = lua_isnoneornil(L, 2) ? 0.5 : bind_number(L, "dropout", 2, "p");
    bool training = bind_optional_boolean(L, "dropout", 3, "training", !session_of(L)->evaluates);
    BIND_DONE(L, (y = op_dropout(session_of(L)->engine, x, probability, training, &error)) != NULL,
              &error);
    if (y == x) { // the script gets what it gave
        tensor_release(y);
        lua_settop(L, 1);
        return 1;
    }
    bind_push_tensors(L, &y, 1);
    return 1;
}

// ---- rows ---------------------------------------------------------------------------------------

static int bind_rowwise(lua_State *L) {
    Error error = {0};
    Tensor *x = bind_op_input(L, 1, "x");
    int last = x->view.ndim - 1;
    int dim = lua_isnoneornil(L, 2) ? last : bind_dimension(L, bind_op_name(L), 2, x->view.ndim);
    return BIND_TENSOR(L, op_along(session_of(L)->engine, bind_op(L), x, dim, &error), &error);
}

static int logits_and_classes(lua_State *L) {
    Tensor *const inputs[] = {bind_op_input(L, 1, "logits"), bind_op_input(L, 2, "classes")};
    return bind_op_run(L, inputs, 2, NULL, 1);
}
#define bind_cross_entropy logits_and_classes
#define bind_accuracy      logits_and_classes

static int bind_argmax(lua_State *L) {
    Tensor *x = bind_op_input(L, 1, "x");
    return bind_op_run(L, &x, 1, NULL, 1);
}

static int bind_topk(lua_State *L) {
    Tensor *x = bind_op_input(L, 1, "x");
    OpAttr attr = {.has_out_format = false};
    attr.index.count = bind_integer(L, "topk", 2, "k");
    return bind_op_run(L, &x, 1, &attr, 2);
}

static int bind_reduce(lua_State *L) {
    Tensor *x = bind_op_input(L, 1, "x");
    OpAttr attr = {.has_out_format = false};
    if (lua_istable(L, 2)) {
        for (lua_Integer i = 1, n = bind_list(L, bind_op_name(L), 2); i <= n; i++) {
            lua_rawgeti(L, 2, i);
            attr.reduce.dims |= 1u
                                << bind_dimension(L, bind_op_name(L), lua_gettop(L), x->view.ndim);
            lua_pop(L, 1);
        }
    } else if (!lua_isnoneornil(L, 2)) {
        attr.reduce.dims = 1u << bind_dimension(L, bind_op_name(L), 2, x->view.ndim);
    }
    attr.reduce.keep = bind_optional_boolean(L, bind_op_name(L), 3, "keep", false);
    return bind_op_run(L, &x, 1, &attr, 1);
}

// ---- pooling: (x, size [, stride [, padding]]), each a number or {height, width} ----------------

static void pair_argument(lua_State *L, int argument, const char *name, const int64_t *missing,
                          int64_t pair[2]) {
    if (lua_isnoneornil(L, argument) && missing) {
        memcpy(pair, missing, 2 * sizeof *pair);
    } else if (lua_istable(L, argument)) {
        if (bind_list(L, bind_op_name(L), argument) != 2)
            bind_error(L, "%s: %s: two whole numbers expected", bind_op_name(L), name);
        for (int i = 0; i < 2; i++) {
            lua_rawgeti(L, argument, i + 1);
            pair[i] = bind_integer(L, bind_op_name(L), lua_gettop(L), name);
            lua_pop(L, 1);
        }
    } else {
        pair[0] = pair[1] = bind_integer(L, bind_op_name(L), argument, name);
    }
}

static int bind_pool(lua_State *L) {
    static const int64_t none[2] = {0, 0};
    Tensor *x = bind_op_input(L, 1, "input");
    OpAttr attr = {.has_out_format = false};
    pair_argument(L, 2, "size", NULL, attr.pool.kernel);
    pair_argument(L, 3, "stride", attr.pool.kernel, attr.pool.stride);
    pair_argument(L, 4, "padding", none, attr.pool.padding);
    return bind_op_run(L, &x, 1, &attr, 1);
}
#define bind_max_pool2d bind_pool
#define bind_avg_pool2d bind_pool

// ---- selection ----------------------------------------------------------------------------------

// embedding(index, weight), in PyTorch's order.
static int bind_embedding(lua_State *L) {
    Tensor *index = bind_op_input(L, 1, "index"), *weight = bind_op_input(L, 2, "weight");
    Tensor *const inputs[] = {weight, index};
    return bind_op_run(L, inputs, 2, NULL, 1);
}

static int bind_gather(lua_State *L) {
    Tensor *x = bind_op_input(L, 1, "x");
    OpAttr attr = {.has_out_format = false};
    attr.index.dim = bind_dimension(L, "gather", 2, x->view.ndim);
    Tensor *const inputs[] = {x, bind_op_input(L, 3, "index")};
    return bind_op_run(L, inputs, 2, &attr, 1);
}

// cat(list, dim)
static int bind_cat(lua_State *L) {
    Error error = {0};
    lua_Integer count = bind_list(L, "cat", 1);
    if (count < 1)
        return bind_error(L, "cat: a list of at least one tensor expected");
    lua_settop(L, 2);
    lua_rawgeti(L, 1, 1);
    int dim =
        lua_isnoneornil(L, 2)
            ? 0
            : bind_dimension(L, "cat", 2, bind_op_input(L, 3, "first of the list")->view.ndim);
    Tensor **parts = lua_newuserdatauv(L, (size_t)count * sizeof *parts, 0);
    lua_insert(L, 3);
    for (lua_Integer i = 0; i < count; i++) { // the list owns them
        lua_settop(L, 3);
        lua_rawgeti(L, 1, i + 1);
        parts[i] = bind_op_input(L, 4, "of the list");
    }
    if (count == 1)
        return 1;
    return BIND_TENSOR(L, op_cat(session_of(L)->engine, parts, count, dim, &error), &error);
}

// pad(x, {{before, after}, ..} [, value or mode]): a pair a dimension, from the first; the rest
// stay.
static int bind_pad(lua_State *L) {
    Tensor *x = bind_op_input(L, 1, "x");
    OpAttr attr = {.has_out_format = false};
    lua_Integer count = bind_list(L, "pad", 2);
    if (count > x->view.ndim)
        return bind_error(L, "pad: %lld pairs, the tensor has %d dimensions", (long long)count,
                          x->view.ndim);
    for (lua_Integer i = 1; i <= count; i++) {
        int64_t pair[2];
        lua_rawgeti(L, 2, i);
        pair_argument(L, lua_gettop(L), "padding", NULL, pair);
        lua_pop(L, 1);
        attr.pad.before[i - 1] = pair[0];
        attr.pad.after[i - 1] = pair[1];
    }
    if (lua_type(L, 3) == LUA_TSTRING)
        return bind_pad_by_itself(L, &attr);
    if (!lua_isnoneornil(L, 3) && lua_type(L, 3) != LUA_TNUMBER)
        return bind_error(L, "pad: argument 3 (value): a number or a mode expected, got %s",
                          bind_what_is(L, 3));
    attr.pad.value = luaL_optnumber(L, 3, 0);
    look_at_constant(L, OP_pad, x->view.format, attr.pad.value);
    return bind_op_run(L, &x, 1, &attr, 1);
}

// ---- the table ----------------------------------------------------------------------------------

// Families that only gradient rules and other functions of the module call have no Lua function.
#define bind_conv2d_backward_input  NULL
#define bind_conv2d_backward_weight NULL
#define bind_attention_backward     NULL
#define bind_resample               NULL
#define bind_resample_backward      NULL
#define bind_prod_backward          NULL
#define bind_norm_backward          NULL
#define bind_scale_factor           NULL
#define bind_scale_history          NULL
#define bind_batch_norm_infer       NULL
#define bind_batch_norm_track       NULL
#define bind_rowwise_backward       NULL
#define bind_cross_entropy_backward NULL
#define bind_max_pool2d_backward    NULL
#define bind_avg_pool2d_backward    NULL
#define bind_embedding_backward     NULL
#define bind_gather_backward        NULL
#define bind_unary_backward         NULL
#define bind_loss_backward          NULL
#define bind_cast                   NULL
#define bind_create                 NULL

static const lua_CFunction binders[OP_COUNT] = {
#define OP(name, inputs, outputs, class, family, ...) [OP_##name] = bind_##family,
#include "kernel/ops.def"
};

// What the functions of each family take.
#define takes_matmul "x, y"
#define takes_linear "x, weight [, bias [, activation]]"
#define takes_conv2d "x, weight [, bias [, { stride, padding, dilation, groups, activation }]]"
#define takes_conv_transpose2d \
    "x, weight [, bias [, { stride, padding, dilation, groups, output_padding }]]"
#define takes_attention              "q, k, v [, { causal, scale }]"
#define takes_batch_norm             "x [, weight, bias, mean, variance, { training, momentum, eps }]"
#define takes_layer_norm             "x [, weight, bias, eps]"
#define takes_group_norm             "x, groups [, weight, bias, eps]"
#define takes_rowwise                "x [, dim]"
#define takes_cross_entropy          "logits, classes"
#define takes_accuracy               "logits, classes"
#define takes_argmax                 "x"
#define takes_topk                   "x, k"
#define takes_max_pool2d             "x, size [, stride [, padding]]"
#define takes_avg_pool2d             "x, size [, stride [, padding]]"
#define takes_embedding              "index, weight"
#define takes_gather                 "x, dim, index"
#define takes_cat                    "list [, dim]"
#define takes_pad                    "x, { { before, after }, .. } [, value or mode]"
#define takes_where                  "condition, x, y"
#define takes_dropout                "x [, p [, training]]"
#define takes_cumsum                 "x, dim"
#define takes_prod                   "x [, dim [, keep]]"
#define takes_resample               NULL
#define takes_resample_backward      NULL
#define takes_prod_backward          NULL
#define takes_reduce                 "x [, dim or list [, keep]]"
#define takes_unary                  "x"
#define takes_binary                 "x, y"
#define takes_compare                "x, y"
#define takes_loss                   "x, target"
#define takes_conv2d_backward_input  NULL
#define takes_conv2d_backward_weight NULL
#define takes_attention_backward     NULL
#define takes_norm_backward          NULL
#define takes_scale_factor           NULL
#define takes_scale_history          NULL
#define takes_batch_norm_infer       NULL
#define takes_batch_norm_track       NULL
#define takes_rowwise_backward       NULL
#define takes_cross_entropy_backward NULL
#define takes_max_pool2d_backward    NULL
#define takes_avg_pool2d_backward    NULL
#define takes_embedding_backward     NULL
#define takes_gather_backward        NULL
#define takes_unary_backward         NULL
#define takes_loss_backward          NULL
#define takes_cast                   NULL
#define takes_create                 NULL

static const char *const family_takes[OP_COUNT] = {
#define OP(name, inputs, outputs, class, family, ...) [OP_##name] = takes_##family,
#include "kernel/ops.def"
};

static void push_function(lua_State *L, Session *session, OpId op) {
    const Scalars *scalars = scalars_of(op);
    const BindFunction bound = {op_table[op].name, binders[op],
                                scalars ? scalars->takes : family_takes[op]};
    bind_push_held(L, session, "F.", &bound, (int)op);
}

// For an operator: what Lua hands it, by its own rules.
static void push_operator(lua_State *L, Session *session, OpId op) {
    const BindFunction bound = {op_table[op].name, binders[op], NULL};
    bind_push_held(L, session, "", &bound, (int)op);
}

void bind_open_ops(lua_State *L, Session *session) {
    static const struct {
        const char *event;
        OpId op;
    } operators[] = {
        {"__add", OP_add}, {"__sub", OP_sub}, {"__mul", OP_mul},
        {"__div", OP_div}, {"__unm", OP_neg}, {"__pow", OP_pow},
    };
    lua_newtable(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "mp.tensor.methods");
    for (int op = 0; op < OP_COUNT; op++) {
        if (!binders[op])
            continue;
        push_function(L, session, (OpId)op);
        lua_pushvalue(L, -1);
        lua_setfield(L, -4, op_table[op].name);
        lua_setfield(L, -2, op_table[op].name);
    }
    lua_pop(L, 1);
    lua_setfield(L, -2, "fn");
    luaL_getmetatable(L, "mp.tensor");
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        push_operator(L, session, operators[i].op);
        lua_setfield(L, -2, operators[i].event);
    }
    lua_pop(L, 1);
}
