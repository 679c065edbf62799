// Operations along one dimension as Lua functions, and what the Lua half makes others of.
#include <string.h>

#include "lua/bind/ops.h"
#include "ops/functions.h"
#include "ops/views.h"

int bind_cumsum(lua_State *L) {
    Tensor *x = bind_op_input(L, 1, "x");
    OpAttr attr = {.has_out_format = false};
    attr.line.dim = bind_dimension(L, "cumsum", 2, x->view.ndim);
    return bind_op_run(L, &x, 1, &attr, 1);
}

// prod(x [, dim [, keep]]): of all elements where no dimension is named.
int bind_prod(lua_State *L) {
    Error error = {0};
    Engine *engine = session_of(L)->engine;
    Tensor *x = bind_op_input(L, 1, "x");
    bool keep = bind_optional_boolean(L, "prod", 3, "keep", false);
    if (!lua_isnoneornil(L, 2)) {
        int dim = bind_dimension(L, "prod", 2, x->view.ndim);
        return BIND_TENSOR(L, op_prod(engine, x, dim, keep, &error), &error);
    }
    const int64_t all = -1;
    lua_settop(L, 3);
    BIND_TENSOR(L, op_reshape(engine, x, 1, &all, &error), &error);
    Tensor *line = bind_tensor(L, "prod", 4, "x");
    if (!keep)
        return BIND_TENSOR(L, op_prod(engine, line, 0, false, &error), &error);
    int64_t ones[VIEW_MAX_DIMS];
    for (int i = 0; i < x->view.ndim; i++)
        ones[i] = 1;
    BIND_TENSOR(L, op_prod(engine, line, 0, false, &error), &error);
    Tensor *product = bind_tensor(L, "prod", 5, "x");
    return BIND_TENSOR(L, op_reshape(engine, product, x->view.ndim, ones, &error), &error);
}

static const char *const rule_names[RESAMPLE_RULES] = {
    [RESAMPLE_REFLECT] = "reflect",   [RESAMPLE_REPLICATE] = "replicate",
    [RESAMPLE_CIRCULAR] = "circular", [RESAMPLE_LINEAR] = "linear",
    [RESAMPLE_CORNERS] = "corners",   [RESAMPLE_MEAN] = "mean"};

static int empty_dimension(lua_State *L, const char *function, int dim) {
    return bind_error(L, "%s: dimension %d is empty: there is nothing to draw from", function,
                      dim + 1);
}

// resample(function, x, dim, rule, count, before [, format]): from Lua that has checked the rest.
static int mp_resample(lua_State *L) {
    Error error = {0};
    const char *function = luaL_checkstring(L, 1), *rule = luaL_checkstring(L, 4);
    Tensor *x = bind_tensor(L, function, 2, "x");
    ResampleAttr attr = {.count = luaL_checkinteger(L, 5), .before = luaL_checkinteger(L, 6)};
    attr.dim = bind_dimension(L, function, 3, x->view.ndim);
    while (attr.rule + 1 < RESAMPLE_RULES && strcmp(rule, rule_names[attr.rule]) != 0)
        attr.rule++;
    if (!format_is_floating(x->view.format))
        return bind_error(L, "%s: x is %s, a floating format is wanted: convert it with :to",
                          function, format_name(x->view.format));
    if (x->view.shape[attr.dim] < 1)
        return empty_dimension(L, function, attr.dim);
    bool line = attr.rule == RESAMPLE_LINEAR || attr.rule == RESAMPLE_CORNERS;
    Format format = lua_isnoneornil(L, 7) ? FORMAT_COUNT : bind_format(L, function, 7);
    return BIND_TENSOR(L,
                       op_resample(session_of(L)->engine, line ? OP_interpolate : OP_resample, x,
                                   attr, format, &error),
                       &error);
}

// pad(x, pairs, mode): each padded dimension by what lies along it. `pairs` has been read.
int bind_pad_by_itself(lua_State *L, const OpAttr *pairs) {
    Error error = {0};
    const char *mode = lua_tostring(L, 3);
    ResampleRule rule = RESAMPLE_REFLECT;
    while (rule <= RESAMPLE_CIRCULAR && strcmp(mode, rule_names[rule]) != 0)
        rule++;
    if (rule > RESAMPLE_CIRCULAR)
        return bind_error(L, "pad: mode: reflect, replicate or circular expected, got \"%.60s\"",
                          mode);
    lua_settop(L, 1);
    const View *view = &bind_tensor(L, "pad", 1, "x")->view;
    if (!format_is_floating(view->format))
        return bind_error(L,
                          "pad: x is %s, with a mode a floating format is wanted: convert it "
                          "with :to",
                          format_name(view->format));
    int ndim = view->ndim;
    for (int i = 0; i < ndim; i++) {
        const int64_t before = pairs->pad.before[i], after = pairs->pad.after[i];
        if (before == 0 && after == 0)
            continue;
        Tensor *x = bind_tensor(L, "pad", 1, "x");
        int64_t count = x->view.shape[i];
        if (count < 1)
            return empty_dimension(L, "pad", i);
        if (before < 0 || after < 0)
            return bind_error(L,
                              "pad: %lld and %lld elements around dimension %d: from 0 up expected",
                              (long long)before, (long long)after, i + 1);
        const int64_t most = rule == RESAMPLE_REFLECT    ? count - 1
                             : rule == RESAMPLE_CIRCULAR ? count
                                                         : INT32_MAX;
        if (before > most || after > most)
            return bind_error(
                L,
                "pad: %lld and %lld around the %lld elements of dimension %d: by %s at "
                "most %lld can be taken from them",
                (long long)before, (long long)after, (long long)count, i + 1, rule_names[rule],
                (long long)most);
        ResampleAttr attr = {.dim = i, .rule = rule, .before = before};
        attr.count = before + count + after;
        BIND_TENSOR(L,
                    op_resample(session_of(L)->engine, OP_resample, x, attr, FORMAT_COUNT, &error),
                    &error);
        lua_replace(L, 1);
    }
    return 1;
}

// scatter_add(x, dim, index, source)
static int mp_scatter_add(lua_State *L) {
    Error error = {0};
    Tensor *x = bind_tensor(L, "scatter_add", 1, "x");
    int dim = bind_dimension(L, "scatter_add", 2, x->view.ndim);
    Tensor *index = bind_tensor(L, "scatter_add", 3, "index");
    Tensor *source = bind_tensor(L, "scatter_add", 4, "source");
    return BIND_TENSOR(L, op_scatter_add(session_of(L)->engine, x, dim, index, source, &error),
                       &error);
}

const BindFunction bind_line_functions[] = {
    {"resample", mp_resample, NULL}, {"scatter_add", mp_scatter_add, NULL}, {0}};
