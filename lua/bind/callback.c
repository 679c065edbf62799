#include "lua/bind/callback.h"

#include <stdlib.h>

#include "ops/capture.h"

struct KeptValues {
    int users;      // the session and every callback
    bool is_closed; // there is no machine any more
    int *dead;      // references to be let go of
    int count, room;
};

static const char thrown_key; // of the registry: what a callback raised; false: nothing

// ---- what is kept -------------------------------------------------------------------------------

static void leave(KeptValues *kept) {
    if (--kept->users > 0)
        return;
    free(kept->dead);
    free(kept);
}

// Lets go of what died since the last time.
static void sweep(lua_State *L, KeptValues *kept) {
    while (kept->count > 0)
        luaL_unref(L, LUA_REGISTRYINDEX, kept->dead[--kept->count]);
}

Callback callback_keep(lua_State *L) {
    Session *session = session_of(L);
    KeptValues *kept = session->kept;
    sweep(L, kept);
    if (kept->users >= kept->room) { // so that letting go never needs memory
        int room = kept->room ? 2 * kept->room : 64;
        int *dead = realloc(kept->dead, (size_t)room * sizeof *dead);
        if (!dead)
            bind_error(L, "not enough memory");
        kept->dead = dead;
        kept->room = room;
    }
    int reference = luaL_ref(L, LUA_REGISTRYINDEX);
    kept->users++;
    return (Callback){session, kept, reference};
}

void callback_release(Callback *callback) {
    KeptValues *kept = callback->kept;
    if (!kept->is_closed)
        kept->dead[kept->count++] = callback->reference;
    leave(kept);
}

void callback_push(lua_State *L, const Callback *callback) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, callback->reference);
}

// ---- calls --------------------------------------------------------------------------------------

bool callback_call(const Callback *callback, const void *key, void *context, Error *error) {
    enum { SLOTS = 32 };
    Session *session = callback->kept->is_closed ? NULL : callback->session;
    lua_State *L = session ? session->walker : NULL;
    if (!L)
        return error_fail(error, ERROR_FAILED,
                          "backward: the script that this graph is of is over");
    if (!lua_checkstack(L, SLOTS))
        return error_fail(error, ERROR_MEMORY, "not enough memory");
    capture_refuse(session->engine, "a function of the script is part of the way back");
    int top = lua_gettop(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_pushlightuserdata(L, context);
    lua_vm_leave_engine(L);
    int status = lua_pcall(L, 1, 0, 0);
    lua_vm_enter_engine(L);
    if (status != LUA_OK) {
        lua_rawsetp(L, LUA_REGISTRYINDEX, &thrown_key);
        session->has_thrown = true;
    }
    lua_settop(L, top);
    return status == LUA_OK || error_fail(error, ERROR_FAILED, "a function of the script failed");
}

void callback_open(lua_State *L, Session *session, const void *key, lua_CFunction function) {
    lua_pushlightuserdata(L, session);
    lua_pushcclosure(L, function, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
    lua_pushboolean(L, false); // the place is there when there is no memory for one
    lua_rawsetp(L, LUA_REGISTRYINDEX, &thrown_key);
}

bool bind_walk(lua_State *L, Tensor *root, Tensor *seed, const BackwardOptions *options,
               Error *error) {
    Session *session = session_of(L);
    lua_State *outer = session->walker;
    bind_enter(L);
    session->walker = L;
    bool done = engine_backward(session->engine, root, seed, options, error);
    session->walker = outer;
    bind_learn(session);
    lua_vm_leave_engine(L);
    sweep(L, session->kept);
    return done;
}

int bind_walk_failed(lua_State *L, const Error *error) {
    Session *session = session_of(L);
    if (!session->has_thrown)
        return bind_raise(L, error);
    session->has_thrown = false;
    lua_vm_check(L); // an interrupt that a callback met ends as the interrupt
    lua_rawgetp(L, LUA_REGISTRYINDEX, &thrown_key);
    lua_pushboolean(L, false);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &thrown_key);
    return lua_error(L);
}

void callback_refuse(lua_State *L, const char *function) {
    if (session_of(L)->walker)
        bind_error(L,
                   "%s: called inside of backward, by a gradient of one's own or a hook; call it "
                   "when backward has returned",
                   function);
}

// ---- a session's --------------------------------------------------------------------------------

bool callback_begin(Session *session, Error *error) {
    session->kept = calloc(1, sizeof *session->kept);
    if (!session->kept)
        return error_fail(error, ERROR_MEMORY, "no memory for the script");
    session->kept->users = 1;
    return true;
}

void callback_close(Session *session) {
    if (!session->kept)
        return;
    session->kept->is_closed = true;
    leave(session->kept);
    session->kept = NULL;
}
