#include "lua/bind/bind.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/phrase.h"

void bind_functions(lua_State *L, Session *session, const char *prefix,
                    const BindFunction *functions) {
    luaL_checkstack(L, 8, "functions");
    for (; functions->name; functions++) {
        bind_push_held(L, session, prefix, functions, 0);
        lua_setfield(L, -2, functions->name);
    }
}

void bind_metatable(lua_State *L, Session *session, const char *name, const char *prefix,
                    const BindFunction *methods, const BindFunction *metamethods) {
    luaL_newmetatable(L, name);
    bind_functions(L, session, prefix, metamethods);
    lua_newtable(L);
    bind_functions(L, session, prefix, methods);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
}

// ---- errors -------------------------------------------------------------------------------------

int bind_error(lua_State *L, const char *format, ...) {
    char text[ERROR_TEXT_SIZE], where[LUA_VM_WHERE_SIZE] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    lua_vm_find_line(L, where, sizeof where);
    lua_pushfstring(L, "%s%s", where, text);
    return lua_error(L);
}

int bind_raise(lua_State *L, const Error *error) {
    lua_vm_check(L); // an engine call that was cut short by an interrupt ends as the interrupt
    if (error->code == ERROR_MEMORY) // which some go on from; of the text no more than that is told
        session_of(L)->refusal = *error;
    return bind_error(L, "%s", error->text);
}

const char *bind_what_is(lua_State *L, int index) {
    char shown[64];
    const char *text = lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : NULL;
    if (bind_test_tensor(L, index))
        return "a tensor";
    if (lua_type(L, index) == LUA_TNUMBER)
        return luaL_tolstring(L, index, NULL);
    if (!text)
        return luaL_typename(L, index);
    snprintf(shown, sizeof shown, "the string \"%.40s%s\"", text, strlen(text) > 40 ? ".." : "");
    return lua_pushstring(L, shown);
}

int bind_argument_error(lua_State *L, const char *function, int argument, const char *name,
                        const char *expected) {
    return bind_error(L, "%s: argument %d (%s): %s expected, got %s", function, argument, name,
                      expected, bind_what_is(L, argument));
}

void *bind_object(lua_State *L, int index, const char *type) {
    if (!lua_istable(L, index))
        return luaL_testudata(L, index, type);
    bind_push_field(L, index, "_inner");
    void *object = luaL_testudata(L, -1, type); // which the instance keeps
    lua_pop(L, 1);
    return object;
}

bool bind_is_callable(lua_State *L, int index) {
    if (lua_isfunction(L, index))
        return true;
    if (lua_isnoneornil(L, index) || lua_isnumber(L, index))
        return false; // numbers have a __call of ours, which serves run.step alone
    bool callable = luaL_getmetafield(L, index, "__call") != LUA_TNIL;
    if (callable)
        lua_pop(L, 1);
    return callable;
}

// Lua takes "4" for a number, which hides that a text came; so here it is none.
static bool to_number(lua_State *L, int index, double *value) {
    *value = lua_tonumber(L, index);
    return lua_type(L, index) == LUA_TNUMBER;
}

static bool to_integer(lua_State *L, int index, int64_t *value) {
    int is_integer;
    *value = lua_tointegerx(L, index, &is_integer);
    return is_integer && lua_type(L, index) == LUA_TNUMBER;
}

double bind_number(lua_State *L, const char *function, int argument, const char *name) {
    double value;
    if (!to_number(L, argument, &value))
        bind_argument_error(L, function, argument, name, "a number");
    return value;
}

int64_t bind_integer(lua_State *L, const char *function, int argument, const char *name) {
    int64_t value;
    if (!to_integer(L, argument, &value))
        bind_argument_error(L, function, argument, name, "a whole number");
    return value;
}

bool bind_optional_boolean(lua_State *L, const char *function, int argument, const char *name,
                           bool missing) {
    if (lua_isnoneornil(L, argument))
        return missing;
    if (!lua_isboolean(L, argument))
        bind_argument_error(L, function, argument, name, "true or false");
    return lua_toboolean(L, argument);
}

// ---- the way into the engine --------------------------------------------------------------------

int bind_ended(lua_State *L, bool done, const Error *error) {
    lua_vm_leave_engine(L);
    return done ? 0 : bind_raise(L, error);
}

int bind_give_tensor(lua_State *L, Tensor *tensor, const Error *error) {
    bind_ended(L, tensor != NULL, error);
    bind_push_tensors(L, &tensor, 1);
    return 1;
}

// ---- tables of options --------------------------------------------------------------------------

static int field_error(lua_State *L, const char *function, const char *field,
                       const char *expected) {
    return bind_error(L, "%s: %s: %s expected, got %s", function, field, expected,
                      bind_what_is(L, -1));
}

int bind_push_field(lua_State *L, int index, const char *field) {
    if (!lua_istable(L, index)) {
        lua_pushnil(L);
        return LUA_TNIL;
    }
    index = lua_absindex(L, index);
    lua_pushstring(L, field);
    return lua_rawget(L, index);
}

// Pushes the field and says whether it is there.
static bool push_field(lua_State *L, const char *function, int index, const char *field) {
    if (lua_isnoneornil(L, index)) {
        lua_pushnil(L);
        return false;
    }
    if (!lua_istable(L, index))
        bind_argument_error(L, function, lua_absindex(L, index), "options", "a table");
    return bind_push_field(L, index, field) != LUA_TNIL;
}

double bind_field_number(lua_State *L, const char *function, int index, const char *field,
                         double missing) {
    double value = missing;
    if (push_field(L, function, index, field)) {
        if (!to_number(L, -1, &value))
            field_error(L, function, field, "a number");
        if (isnan(value))
            bind_error(L, "%s: %s: not a number (nan)", function, field);
    }
    lua_pop(L, 1);
    return value;
}

int64_t bind_field_integer(lua_State *L, const char *function, int index, const char *field,
                           int64_t missing) {
    int64_t value = missing;
    if (push_field(L, function, index, field)) {
        if (!to_integer(L, -1, &value))
            field_error(L, function, field, "a whole number");
    }
    lua_pop(L, 1);
    return value;
}

bool bind_field_boolean(lua_State *L, const char *function, int index, const char *field,
                        bool missing) {
    bool value = missing;
    if (push_field(L, function, index, field)) {
        if (!lua_isboolean(L, -1))
            field_error(L, function, field, "true or false");
        value = lua_toboolean(L, -1);
    }
    lua_pop(L, 1);
    return value;
}

const char *bind_field_text(lua_State *L, const char *function, int index, const char *field) {
    if (!push_field(L, function, index, field))
        return NULL;
    if (lua_type(L, -1) != LUA_TSTRING)
        field_error(L, function, field, "a string");
    size_t length;
    const char *value = lua_tolstring(L, -1, &length);
    if (strlen(value) != length)
        bind_error(L, "%s: %s: a text without zero bytes expected", function, field);
    return value;
}

int bind_refuse_option(lua_State *L, const char *function, const char *name,
                       const char *const *known, size_t count) {
    const char *near = nearest_name(name, known, count);
    if (near)
        return bind_error(L, "%s: no option %.60s; did you mean %s?", function, name, near);
    char text[400];
    Phrase list = phrase_begin(text, sizeof text);
    for (size_t i = 0; i < count; i++) {
        phrase_add_joint(&list, (int)i, (int)count, " and ");
        phrase_add(&list, "%s", known[i]);
    }
    return bind_error(L, "%s: no option %.60s; there %s %s", function, name,
                      count == 1 ? "is" : "are", text);
}

void bind_known_fields(lua_State *L, const char *function, int index, const char *const *known) {
    if (lua_isnoneornil(L, index))
        return;
    if (!lua_istable(L, index))
        bind_argument_error(L, function, lua_absindex(L, index), "options", "a table");
    index = lua_absindex(L, index);
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING)
            bind_error(L, "%s: options are named, as in { %s = .. }: there is one without a name",
                       function, known[0]);
        const char *name = lua_tostring(L, -1);
        size_t count = 0;
        bool found = false;
        for (; known[count]; count++)
            found = found || strcmp(known[count], name) == 0;
        if (found)
            continue;
        bind_refuse_option(L, function, name, known, count);
    }
}

// ---- sizes and formats --------------------------------------------------------------------------

lua_Integer bind_list(lua_State *L, const char *function, int index) {
    index = lua_absindex(L, index);
    if (!lua_istable(L, index))
        bind_error(L, "%s: a list expected, got %s", function, bind_what_is(L, index));
    luaL_checkstack(L, 8, "a list");
    lua_Integer length = (lua_Integer)lua_rawlen(L, index);
    for (lua_pushnil(L); lua_next(L, index);) {
        lua_pop(L, 1);
        lua_Integer key = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
        if (key < 1 || key > length)
            bind_error(L, "%s: a list of %lld element%s expected, which also has [%.60s]", function,
                       (long long)length, length == 1 ? "" : "s", luaL_tolstring(L, -1, NULL));
    }
    return length;
}

static int64_t integer_at(lua_State *L, const char *function, const char *what, int index,
                          int position) {
    int64_t value;
    if (!to_integer(L, index, &value))
        bind_error(L, "%s: %s %d: a whole number expected, got %s", function, what, position,
                   bind_what_is(L, index));
    return value;
}

// Whole numbers from the arguments from `first` on, or from one table; how many.
static int read_integers(lua_State *L, const char *function, const char *what, int first,
                         int64_t *values) {
    bool table = lua_istable(L, first);
    int64_t count = table ? bind_list(L, function, first) : lua_gettop(L) - first + 1;
    if (table && lua_gettop(L) > first && !lua_isnil(L, first + 1))
        bind_error(L, "%s: %ss are one list or several numbers; behind the list came %s", function,
                   what, bind_what_is(L, first + 1));
    if (count > VIEW_MAX_DIMS)
        bind_error(L, "%s: %lld dimensions: at most %d are possible", function, (long long)count,
                   VIEW_MAX_DIMS);
    for (int i = 0; i < (int)count; i++) {
        if (table)
            lua_rawgeti(L, first, i + 1);
        values[i] = integer_at(L, function, what, table ? -1 : first + i, i + 1);
        if (table)
            lua_pop(L, 1);
    }
    return (int)count;
}

int bind_sizes(lua_State *L, const char *function, int first, int64_t *shape) {
    int count = read_integers(L, function, "size", first, shape);
    for (int i = 0; i < count; i++)
        if (shape[i] < -1)
            bind_error(L, "%s: size %d is %lld", function, i + 1, (long long)shape[i]);
    return count;
}

static int checked_dimension(lua_State *L, const char *function, int64_t dim, int ndim) {
    if (dim == 0 || dim > ndim || dim < -ndim)
        bind_error(L,
                   "%s: dimension %lld: the tensor has %d (counted from 1, or from -1 backwards)",
                   function, (long long)dim, ndim);
    return (int)(dim > 0 ? dim - 1 : ndim + dim);
}

int bind_dimension(lua_State *L, const char *function, int argument, int ndim) {
    return checked_dimension(L, function, bind_integer(L, function, argument, "dimension"), ndim);
}

int bind_dimensions(lua_State *L, const char *function, int first, int ndim, int *dimensions) {
    int64_t values[VIEW_MAX_DIMS];
    int count = read_integers(L, function, "dimension", first, values);
    for (int i = 0; i < count; i++)
        dimensions[i] = checked_dimension(L, function, values[i], ndim);
    return count;
}

// fp64 is taken, but only the reference device computes in it.
static bool is_offered(Format format) {
    return format_table[format].stores && format != FORMAT_FP64;
}

Format bind_format(lua_State *L, const char *function, int argument) {
    if (lua_type(L, argument) != LUA_TSTRING)
        bind_argument_error(L, function, argument, "format", "the name of a format");
    const char *name = lua_tostring(L, argument);
    Format format = format_named(name);
    char list[FORMAT_LIST_SIZE];
    if (format == FORMAT_COUNT || !format_table[format].stores)
        bind_error(L, "%s: format %s: tensors are kept in %s", function, name,
                   format_list(list, is_offered, ", ", " or "));
    return format;
}
