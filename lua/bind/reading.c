// Tensors read back: as numbers, as tables, as text. These wait for the device.
#include <stdio.h>
#include <string.h>

#include "lua/bind/bind.h"

// ---- reading ------------------------------------------------------------------------------------

static int tensor_shape(lua_State *L) {
    Tensor *tensor = bind_tensor(L, "shape", 1, "tensor");
    lua_createtable(L, tensor->view.ndim, 0);
    for (int i = 0; i < tensor->view.ndim; i++) {
        lua_pushinteger(L, tensor->view.shape[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int tensor_dtype(lua_State *L) {
    lua_pushstring(L, format_name(bind_tensor(L, "dtype", 1, "tensor")->view.format));
    return 1;
}

static int tensor_length(lua_State *L) {
    Tensor *tensor = bind_tensor(L, "#", 1, "tensor");
    lua_pushinteger(L, tensor->view.ndim ? tensor->view.shape[0] : 1);
    return 1;
}

static void push_value(lua_State *L, Format format, double value) {
    if (format == FORMAT_INT32 || format == FORMAT_UINT8)
        lua_pushinteger(L, (lua_Integer)value);
    else
        lua_pushnumber(L, value);
}

static int tensor_item_method(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "item", 1, "tensor");
    double value;
    if (tensor_count(tensor) != 1 || !bind_recall(L, JOURNAL_TENSOR, &value, sizeof value)) {
        BIND_READ(L, tensor_item(tensor, &value, &error), &error);
        bind_remember(L, JOURNAL_TENSOR, &value, sizeof value);
    }
    push_value(L, tensor->view.format, value);
    return 1;
}

// All elements as doubles in a userdata on top of the stack.
static double *push_values(lua_State *L, Tensor *tensor) {
    Error error = {0};
    int64_t count = tensor_count(tensor);
    double *values = lua_newuserdatauv(L, (size_t)(count ? count : 1) * sizeof *values, 0);
    size_t size = (size_t)count * sizeof *values;
    if (bind_recall(L, JOURNAL_TENSOR, values, size))
        return values;
    const size_t bytes = format_table[tensor->view.format].bytes;
    BIND_READ(L, tensor_read(tensor, values, &error), &error);
    for (int64_t i = count - 1; i >= 0; i--) // widen in place, from the end
        values[i] = format_load(tensor->view.format, (char *)values + (size_t)i * bytes);
    bind_remember(L, JOURNAL_TENSOR, values, size);
    return values;
}

static const double *push_nested(lua_State *L, Format format, int ndim, const int64_t *shape,
                                 const double *values) {
    if (ndim == 0) {
        push_value(L, format, *values);
        return values + 1;
    }
    luaL_checkstack(L, 2, "table: nested too deeply");
    lua_createtable(L, shape[0] < INT32_MAX ? (int)shape[0] : 0, 0);
    for (int64_t i = 1; i <= shape[0]; i++) {
        values = push_nested(L, format, ndim - 1, shape + 1, values);
        lua_rawseti(L, -2, i);
    }
    return values;
}

// Rows without elements are tables too: more than the script may hold are refused before they are
// made.
static void check_rows(lua_State *L, const View *view) {
    const double least = 56; // bytes of a table
    double rows = 1;
    size_t used, limit;
    lua_vm_memory(session_of(L)->vm, &used, &limit);
    for (int i = 0; i + 1 < view->ndim; i++)
        rows *= view->shape[i] ? (double)view->shape[i] : 1;
    if (rows * least > (double)limit)
        bind_error(L, "table: %g rows are more than the memory limit of scripts", rows);
}

static int tensor_table(lua_State *L) {
    Tensor *tensor = bind_tensor(L, "table", 1, "tensor");
    check_rows(L, &tensor->view);
    const double *values = push_values(L, tensor);
    push_nested(L, tensor->view.format, tensor->view.ndim, tensor->view.shape, values);
    return 1;
}

// ---- printing -----------------------------------------------------------------------------------

enum { PRINT_EDGE = 3, PRINT_ALL = 1000 }; // long dimensions show this many at either end

typedef struct Printer {
    luaL_Buffer *buffer;
    const double *values;
    Format format;
    int ndim;
    const int64_t *shape;
    bool shorten;
} Printer;

static void print_dim(const Printer *printer, int dim, int64_t offset, int indent) {
    char text[40];
    luaL_Buffer *buffer = printer->buffer;
    if (dim == printer->ndim) {
        double value = printer->values[offset];
        if (printer->format == FORMAT_INT32 || printer->format == FORMAT_UINT8)
            snprintf(text, sizeof text, "%lld", (long long)value);
        else
            snprintf(text, sizeof text, "%.4g", value);
        luaL_addstring(buffer, text);
        return;
    }
    int64_t size = printer->shape[dim], below = 1;
    for (int i = dim + 1; i < printer->ndim; i++)
        below *= printer->shape[i];
    luaL_addchar(buffer, '[');
    for (int64_t i = 0; i < size; i++) {
        if (i > 0) {
            luaL_addchar(buffer, ',');
            if (dim + 1 < printer->ndim) {
                luaL_addchar(buffer, '\n');
                for (int k = 0; k <= indent; k++)
                    luaL_addchar(buffer, ' ');
            } else {
                luaL_addchar(buffer, ' ');
            }
        }
        if (printer->shorten && size > 2 * PRINT_EDGE && i == PRINT_EDGE) {
            luaL_addstring(buffer, "...");
            i = size - PRINT_EDGE - 1;
            continue;
        }
        print_dim(printer, dim + 1, offset + i * below, indent + 1);
    }
    luaL_addchar(buffer, ']');
}

// Rows without elements are printed too, and there may be many.
static bool is_long(const View *view) {
    int64_t shown = 1;
    for (int i = 0; i < view->ndim && shown <= PRINT_ALL; i++)
        shown *= view->shape[i] > PRINT_ALL ? PRINT_ALL + 1 : view->shape[i] ? view->shape[i] : 1;
    return shown > PRINT_ALL;
}

static int tensor_tostring(lua_State *L) {
    Tensor *tensor = bind_tensor(L, "tostring", 1, "tensor");
    const double *values = push_values(L, tensor);
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    Printer printer = {.buffer = &buffer,
                       .values = values,
                       .format = tensor->view.format,
                       .ndim = tensor->view.ndim,
                       .shape = tensor->view.shape,
                       .shorten = is_long(&tensor->view)};
    print_dim(&printer, 0, 0, 0);
    char text[96];
    tensor_describe(tensor, text, sizeof text);
    luaL_addstring(&buffer, "  ");
    luaL_addstring(&buffer, text);
    luaL_pushresult(&buffer);
    return 1;
}

const BindFunction bind_reading_methods[] = {
    {"shape", tensor_shape, ""},
    {"dtype", tensor_dtype, ""},
    {"item", tensor_item_method, ""},
    {"table", tensor_table, ""},
    {0},
};

const BindFunction bind_reading_events[] = {
    {"__tostring", tensor_tostring, NULL}, {"__len", tensor_length, NULL}, {0}};
