// What functions take: declared once, as the manual writes it, and held against every call.
//
// A declaration names the arguments in order: "x, weight [, bias [, { stride, padding }]]". What
// may be left out stands in brackets. Braces are a table of options, whose names stand in it, with
// what they are otherwise behind a '='; `{ .. }` is a list, which has no names, and `{ name = v, ..
// }` a table whose names are the caller's. `..` by itself is any number of arguments. An argument
// that is braces and nothing else must be a table. docs/lua.md has the same text, which a test
// looks after.
#include <ctype.h>
#include <string.h>

#include "lua/bind/step.h"

typedef enum OptionNames { OPTIONS_NONE, OPTIONS_NAMED, OPTIONS_LIST, OPTIONS_ANY } OptionNames;

typedef struct Signature {
    lua_CFunction function;
    const char *title;    // "F.mse"
    const char *name;     // "mse"
    const char *takes;    // as declared
    bool is_method;       // called with a colon: its first argument is not among those declared
    int most;             // arguments; -1: any number
    int options;          // which of them is a table of options, from 1; 0: none
    bool only_table;      // it may be nothing else
    OptionNames names;    // of what kind its names are
    size_t name_count;    // of OPTIONS_NAMED
    const char *option[]; // [name_count]; the texts lie behind
} Signature;

// ---- reading a declaration ----------------------------------------------------------------------

// The end of the part at `text` that is closed by the bracket that belongs to the one there.
static const char *closing(const char *text) {
    int depth = 0;
    for (; *text; text++) {
        depth += *text == '{' || *text == '(';
        depth -= *text == '}' || *text == ')';
        if (depth == 0)
            return text;
    }
    return text;
}

// Calls visit(context, begin, end) for the parts between commas, spaces and brackets cut off.
static int each_part(const char *text, const char *end,
                     void (*visit)(void *context, int number, const char *begin, const char *end),
                     void *context) {
    int number = 0;
    while (text < end) {
        const char *comma = text;
        while (comma < end && *comma != ',')
            comma = *comma == '{' || *comma == '(' ? closing(comma) + 1 : comma + 1;
        const char *begin = text, *last = comma;
        while (begin < last && strchr(" []", *begin))
            begin++;
        while (last > begin && strchr(" []", last[-1]))
            last--;
        if (last > begin)
            visit(context, ++number, begin, last);
        text = comma + 1;
    }
    return number;
}

static bool is_any(const char *begin, const char *end) {
    return end - begin == 2 && memcmp(begin, "..", 2) == 0;
}

typedef struct Names { // of options, on their way into a signature
    Signature *signature;
    char *next; // where the next text goes
    bool is_open;
} Names;

static void take_option(void *context, int number, const char *begin, const char *end) {
    Names *names = context;
    (void)number;
    size_t length = 0;
    while (begin + length < end && (isalnum((unsigned char)begin[length]) || begin[length] == '_'))
        length++;
    names->is_open = names->is_open || is_any(begin, end);
    if (length == 0)
        return;
    memcpy(names->next, begin, length);
    names->next[length] = 0;
    names->signature->option[names->signature->name_count++] = names->next;
    names->next += length + 1;
}

static void take_argument(void *context, int number, const char *begin, const char *end) {
    Names *names = context;
    Signature *signature = names->signature;
    if (is_any(begin, end))
        signature->most = -1;
    else if (signature->most >= 0)
        signature->most = number;
    const char *brace = memchr(begin, '{', (size_t)(end - begin));
    if (!brace)
        return;
    signature->options = number;
    signature->only_table = brace == begin;
    each_part(brace + 1, closing(brace), take_option, names);
    signature->names = !names->is_open             ? OPTIONS_NAMED
                       : signature->name_count > 0 ? OPTIONS_ANY
                                                   : OPTIONS_LIST;
}

// Pushes a signature. Its texts lie behind it.
static Signature *push_signature(lua_State *L, const char *prefix, const char *name,
                                 const char *takes, lua_CFunction function) {
    size_t title = strlen(prefix) + strlen(name) + 1, text = strlen(takes) + 1;
    size_t most_names = 1;
    for (const char *c = takes; *c; c++)
        most_names += *c == ',';
    size_t head = sizeof(Signature) + most_names * sizeof(const char *);
    Signature *signature = lua_newuserdatauv(L, head + title + text + text, 0);
    char *texts = (char *)signature + head;
    memset(signature, 0, head);
    signature->function = function;
    signature->is_method = prefix[0] && prefix[strlen(prefix) - 1] == ':';
    signature->title = texts;
    signature->name = texts + strlen(prefix);
    strcpy(stpcpy(texts, prefix), name);
    signature->takes = memcpy(texts + title, takes, text);
    Names names = {signature, texts + title + text, false};
    each_part(signature->takes, signature->takes + text - 1, take_argument, &names);
    return signature;
}

// ---- holding calls to it ------------------------------------------------------------------------

static int refuse_surplus(lua_State *L, const Signature *signature, int given) {
    int most = signature->most;
    bool bare = signature->options == 1 && signature->only_table && most == 1;
    const char *at_most = strchr(signature->takes, '[') ? "at most " : "";
    const bool is_layer = strncmp(signature->title, "nn.", 3) == 0;
    if (most == 0)
        return bind_error(L, "%s takes no arguments, got %d%s%s%s", signature->title, given,
                          is_layer ? "; " : "", is_layer ? signature->title : "",
                          is_layer ? "() makes the layer, which is called then" : "");
    return bind_error(L, "%s takes %s%d argument%s, got %d: %s%s%s%s", signature->title, at_most,
                      most, most == 1 ? "" : "s", given, signature->title, bare ? " " : "(",
                      signature->takes, bare ? "" : ")");
}

static int refuse_option(lua_State *L, const Signature *signature) {
    const char *function = signature->name;
    if (lua_type(L, -1) != LUA_TSTRING)
        return bind_error(L, "%s: options have names, as in { %s = .. }; got one without", function,
                          signature->name_count ? signature->option[0] : "name");
    const char *name = lua_tostring(L, -1);
    if (signature->names == OPTIONS_LIST)
        return bind_error(L, "%s: a list expected, whose elements have no names; got %.60s",
                          function, name);
    return bind_refuse_option(L, function, name, signature->option, signature->name_count);
}

static const char *const table_words[] = {
    [OPTIONS_NAMED] = "options", [OPTIONS_LIST] = "list", [OPTIONS_ANY] = "named values"};

static bool is_option(const Signature *signature, const char *name) {
    for (size_t i = 0; i < signature->name_count; i++)
        if (strcmp(signature->option[i], name) == 0)
            return true;
    return false;
}

static void check_options(lua_State *L, const Signature *signature, int index) {
    const bool has_example = signature->names == OPTIONS_NAMED && signature->name_count > 0;
    if (signature->only_table && !lua_isnoneornil(L, index) && !lua_istable(L, index))
        bind_error(L, "%s: argument %d (%s): a table expected, got %s%s%s%s", signature->name,
                   signature->options, table_words[signature->names], bind_what_is(L, index),
                   has_example ? "; as in { " : "", has_example ? signature->option[0] : "",
                   has_example ? " = .. }" : "");
    if (!lua_istable(L, index) || signature->names == OPTIONS_ANY)
        return;
    bool wants_names = signature->names == OPTIONS_NAMED;
    for (lua_pushnil(L); lua_next(L, index);) {
        lua_pop(L, 1);
        bool has_name = lua_type(L, -1) == LUA_TSTRING;
        if (has_name != wants_names || (has_name && !is_option(signature, lua_tostring(L, -1))))
            refuse_option(L, signature);
    }
}

// Every function that scripts call: upvalue 3 is its signature.
static int call_held(lua_State *L) {
    const Signature *signature = lua_touserdata(L, lua_upvalueindex(3));
    int given = lua_gettop(L) - signature->is_method;
    while (given > 0 && lua_isnil(L, given + signature->is_method))
        given--; // says as much as nothing
    if (given < 0)
        return bind_error(L, "%.*s.%s: called with a dot; write %s(%s)",
                          (int)(signature->name - signature->title) - 1, signature->title,
                          signature->name, signature->title, signature->takes);
    if (signature->most >= 0 && given > signature->most)
        return refuse_surplus(L, signature, given);
    if (signature->options > 0 && given >= signature->options)
        check_options(L, signature, signature->options + signature->is_method);
    if (session_of(L)->engine->capture)
        step_note_call(session_of(L), signature->title);
    return signature->function(L);
}

void bind_push_held(lua_State *L, Session *session, const char *prefix, const BindFunction *bound,
                    int which) {
    static const char declared[] = "mp.signatures";
    lua_pushlightuserdata(L, session);
    lua_pushinteger(L, which);
    if (!bound->takes) {
        lua_pushcclosure(L, bound->function, 2);
        return;
    }
    const Signature *signature =
        push_signature(L, prefix, bound->name, bound->takes, bound->function);
    lua_pushcclosure(L, call_held, 3);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, declared);
    lua_pushstring(L, signature->takes);
    lua_setfield(L, -2, signature->title);
    lua_pop(L, 1);
}

// ---- the same for functions of our own Lua ------------------------------------------------------

static int return_nothing(lua_State *L) {
    (void)L;
    return 0;
}

// signature(prefix, name, takes) -> a function that holds the arguments it is given to that
static int mp_signature(lua_State *L) {
    const BindFunction bound = {luaL_checkstring(L, 2), return_nothing, luaL_checkstring(L, 3)};
    bind_push_held(L, session_of(L), luaL_checkstring(L, 1), &bound, 0);
    return 1;
}

// length(function, list): of what must be a list, with nothing beside its elements
static int mp_length(lua_State *L) {
    lua_pushinteger(L, bind_list(L, luaL_checkstring(L, 1), 2));
    return 1;
}

const BindFunction bind_signature_functions[] = {
    {"signature", mp_signature, NULL}, {"length", mp_length, NULL}, {0}};
