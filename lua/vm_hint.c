// What a mistyped field was probably meant to be: `self.hed` is nil, and Lua says so alone. Where
// it goes into a call of ours that wants a number, all that is known there is that it got nil: so
// modules note what they are asked for and have not.
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/phrase.h"
#include "lua/vm_private.h"

enum {
    MOST_LOCALS = 100,
    MOST_KEYS = 2000, // of a table; more are no fields that somebody named
    MOST_CLASSES = 8  // one above the other
};

enum { MEANT_SIZE = 1024 }; // of a message, its path and what was meant

// The field or method of which a message of Lua's says that it is nil; false: it says it of none.
static bool find_name(const char *message, char name[VM_NAME_SIZE]) {
    static const char *const kinds[] = {"(field '", "(method '"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *at = strstr(message, kinds[i]);
        const char *begin = at ? at + strlen(kinds[i]) : NULL;
        const size_t length = begin ? strcspn(begin, "'") : 0;
        if (!strstr(message, "a nil value") || length == 0 || length >= VM_NAME_SIZE)
            continue;
        memcpy(name, begin, length);
        name[length] = 0;
        return strcmp(begin + length, "')") == 0;
    }
    return false;
}

// Offers the names in the table on top of the stack, and in the classes that it is of. What begins
// with '_' is nobody's to call. Pops the table.
static void offer_fields(lua_State *L, Nearest *nearest) {
    for (int above = 0; above < MOST_CLASSES && lua_istable(L, -1); above++) {
        int seen = 0;
        for (lua_pushnil(L); seen < MOST_KEYS && lua_next(L, -2); seen++) {
            lua_pop(L, 1);
            if (lua_type(L, -1) == LUA_TSTRING && lua_tostring(L, -1)[0] != '_')
                nearest_offer_unordered(nearest, lua_tostring(L, -1));
        }
        if (seen == MOST_KEYS)
            lua_pop(L, 1); // the key
        if (!lua_getmetatable(L, -1)) {
            lua_pushnil(L);
        } else {
            lua_pushliteral(L, "__index");
            lua_rawget(L, -2);
            lua_remove(L, -2);
        }
        lua_replace(L, -2); // the table: it is held by what it was found in
    }
    lua_pop(L, 1);
}

// The raw text in a field of the table at `index`, borrowed from it; "" for anything else.
static const char *raw_text(lua_State *L, int index, const char *field) {
    index = lua_absindex(L, index);
    lua_pushstring(L, field);
    lua_rawget(L, index);
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    lua_pop(L, 1);
    return text;
}

const char *lua_vm_class_of(lua_State *L, int index) {
    index = lua_absindex(L, index);
    if (!lua_istable(L, index))
        return "";
    lua_pushliteral(L, "_class");
    const char *name = lua_rawget(L, index) == LUA_TTABLE ? raw_text(L, -1, "_name") : "";
    lua_pop(L, 1);
    return name;
}

int lua_vm_note_missing(lua_State *L) {
    lua_Debug at;
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    VmMissing *missing = &lua_vm_of(L)->missing;
    if (!name[0] || name[0] == '_' || !lua_getstack(L, 1, &at) || !lua_getinfo(L, "S", &at))
        return 0;
    snprintf(missing->name, sizeof missing->name, "%s", name);
    snprintf(missing->class, sizeof missing->class, "%s", raw_text(L, 1, "_name"));
    snprintf(missing->source, sizeof missing->source, "%s", at.short_src);
    missing->line = at.linedefined;
    return 0;
}

// Of a value that is nil, and not which: what a function was given, and what ipairs was.
static bool ends_in_nil(const char *message) {
    static const char *const ends[] = {"got nil", "got nil)", "attempt to index a nil value"};
    const size_t length = strlen(message);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t end = strlen(ends[i]);
        if (length >= end && strcmp(message + length - end, ends[i]) == 0)
            return true;
    }
    return false;
}

// The innermost function of Lua; `beyond_own`: of the script.
static bool find_function(lua_State *L, bool beyond_own, lua_Debug *at) {
    for (int level = 0; lua_getstack(L, level, at) && lua_getinfo(L, "Sl", at); level++) {
        const bool is_own = strncmp(at->short_src, "mp/", 3) == 0;
        if (at->currentline > 0 && !(is_own && beyond_own))
            return !is_own;
    }
    return false;
}

// ---- the module that was asked ------------------------------------------------------------------

// Replaces the value on top of the stack by the first module of this class in it, itself or `depth`
// tables below; `left`: of the values that are looked at. False: none, and the value is popped.
static bool find_module(lua_State *L, const char *class, int depth, int *left) {
    const int at = lua_gettop(L);
    bool found = false;
    if (lua_istable(L, at) && lua_checkstack(L, 8) && --*left > 0) {
        found = strcmp(lua_vm_class_of(L, at), class) == 0;
        bool is_below = false;
        for (lua_pushnil(L); !found && !is_below && depth > 0 && lua_next(L, at);)
            is_below = find_module(L, class, depth - 1, left);
        if (is_below)
            lua_copy(L, -1, at);
        found = found || is_below;
    }
    lua_settop(L, found ? at : at - 1);
    return found;
}

// Pushes the local variable or upvalue `i` of a function; false: there is none.
typedef bool (*PushVariable)(lua_State *L, lua_Debug *at, int i);

static bool push_local(lua_State *L, lua_Debug *at, int i) {
    return lua_getlocal(L, at, i) != NULL;
}

static bool push_upvalue(lua_State *L, lua_Debug *at, int i) {
    lua_getinfo(L, "f", at);
    const char *name = lua_getupvalue(L, -1, i);
    if (name && strcmp(name, "_ENV") == 0) { // the library is nothing that somebody named
        lua_pop(L, 1);
        lua_pushnil(L);
    }
    lua_remove(L, name ? -2 : -1);
    return name != NULL;
}

static const PushVariable variables[] = {push_local, push_upvalue};
enum { VARIABLES = sizeof variables / sizeof *variables };

// Pushes the module that lacked the field: one that the function can reach; false: it is not found.
static bool push_asked(lua_State *L, lua_Debug *at, const VmMissing *missing) {
    enum { BELOW = 3, MOST = 20000 }; // self.blocks[1].inner; values that are looked at
    int left = MOST;
    for (int depth = 0; missing->class[0] && depth <= BELOW; depth++)
        for (int kind = 0; kind < VARIABLES; kind++)
            for (int i = 1; i <= MOST_LOCALS && variables[kind](L, at, i); i++)
                if (find_module(L, missing->class, depth, &left))
                    return true;
    return false;
}

// Adds the first fields of the module on top of the stack, in the order in which they were set.
static void add_fields(lua_State *L, Phrase *text) {
    enum { SHOWN = 6 };
    lua_pushliteral(L, "_order");
    const bool is_list = lua_rawget(L, -2) == LUA_TTABLE;
    const lua_Integer count = is_list ? (lua_Integer)lua_rawlen(L, -1) : 0;
    for (lua_Integer i = 1; i <= count && i <= SHOWN; i++) {
        lua_rawgeti(L, -1, i);
        phrase_add(text, "%s%.40s", i == 1 ? "; there are " : ", ", lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    if (count > SHOWN)
        phrase_add(text, " and %lld more", (long long)(count - SHOWN));
    if (count == 0)
        phrase_add(text, "; it has no fields");
    lua_pop(L, 1);
}

// ---- what was meant -----------------------------------------------------------------------------

// Offers what the module on top of the stack has, and then pops it; or, where none is known, what
// the function at hand knows that has fields.
static void offer_known(lua_State *L, lua_Debug *at, bool has_module, Nearest *nearest) {
    if (has_module) {
        lua_pushvalue(L, -1);
        offer_fields(L, nearest);
        return;
    }
    for (int kind = 0; kind < VARIABLES; kind++)
        for (int i = 1; i <= MOST_LOCALS && variables[kind](L, at, i); i++)
            offer_fields(L, nearest);
}

// What a message calls that of which it says that it is nil.
static const char *kind_of(const char *message) {
    if (strstr(message, "(method '"))
        return "method";
    return strstr(message, "attempt to call") ? "layer" : "field";
}

// PyTorch's x.shape is x:shape() here: what was meant for a value is the method itself.
static bool tell_method(const char *message, char text[MEANT_SIZE]) {
    static const char kind[] = "a function value (field '";
    const char *at = strstr(message, kind);
    const char *name = at ? at + sizeof kind - 1 : "";
    const size_t length = strcspn(name, "'");
    if (length == 0 || strcmp(name + length, "')") != 0)
        return false;
    Phrase phrase = phrase_begin(text, MEANT_SIZE);
    phrase_add(&phrase, "%s; did you mean :%.*s()?", message, (int)length, name);
    return true;
}

// Fills what the message is to be; false: as it is.
static bool tell(lua_State *L, const char *message, char text[MEANT_SIZE]) {
    const VmMissing *missing = &lua_vm_of(L)->missing;
    char name[VM_NAME_SIZE];
    lua_Debug at;
    const bool is_named = find_name(message, name);
    if ((!is_named && !ends_in_nil(message)) || !lua_checkstack(L, 8) ||
        !find_function(L, !is_named, &at))
        return false;
    const bool is_noted = at.linedefined == missing->line &&
                          strcmp(at.short_src, missing->source) == 0 &&
                          (!is_named || strcmp(name, missing->name) == 0);
    const bool has_module = is_noted && push_asked(L, &at, missing);
    if (!is_named && !has_module)
        return false;
    Nearest nearest;
    nearest_begin(&nearest, is_named ? name : missing->name);
    offer_known(L, &at, has_module, &nearest);
    const char *near = nearest.best;
    if (!near && !(is_named && has_module))
        return false;
    Phrase phrase = phrase_begin(text, MEANT_SIZE);
    const char *said = is_named && has_module ? strstr(message, "attempt to ") : NULL;
    phrase_add(&phrase, "%.*s", (int)(said ? (size_t)(said - message) : strlen(message)), message);
    if (has_module)
        phrase_add(&phrase, "%sthe module %s has no %s %s", said ? "" : "; ", missing->class,
                   kind_of(message), missing->name);
    if (near)
        phrase_add(&phrase, "; did you mean %.*s?", VM_NAME_SIZE, near);
    else
        add_fields(L, &phrase);
    return true;
}

void vm_push_meant(lua_State *L, const char *message) {
    char text[MEANT_SIZE];
    const int top = lua_gettop(L);
    const bool is_told = tell_method(message, text) || tell(L, message, text);
    lua_settop(L, top);
    lua_pushstring(L, is_told ? text : message);
}
