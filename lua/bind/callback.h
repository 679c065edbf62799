// lua/bind/callback.h: functions of the script that the engine calls in the midst of a walk back.
//
// They run on the coroutine that asked for the walk, which the session knows. What one of them
// raises ends the walk and goes on behind it as it was raised. The values that C keeps of them lie
// in Lua's registry; they are let go of when that is safe, since a graph dies wherever its last
// reference goes, in the middle of a collection too.
#pragma once

#include "lua/bind/bind.h"

typedef struct KeptValues KeptValues; // one a session; outlives it where a graph does

typedef struct Callback {
    Session *session;
    KeptValues *kept;
    int reference; // of the value, in the registry
} Callback;

// Keeps the value on top of the stack, which it takes.
Callback callback_keep(lua_State *L);
void callback_release(Callback *callback);
void callback_push(lua_State *L, const Callback *callback);

// A function that runs protected, given `context` as a light userdata; the session is its upvalue.
// `key` is where callback_open put it. What it raises is raised again by bind_walk_failed.
bool callback_call(const Callback *callback, const void *key, void *context, Error *error);
void callback_open(lua_State *L, Session *session, const void *key, lua_CFunction function);

// engine_backward, for a script. Where it fails, bind_walk_failed raises what ended it.
bool bind_walk(lua_State *L, Tensor *root, Tensor *seed, const BackwardOptions *options,
               Error *error) MUST_CHECK;
int bind_walk_failed(lua_State *L, const Error *error);

// Refuses, inside of a walk, what ends steps or changes what the walk goes over.
void callback_refuse(lua_State *L, const char *function);

// Of a session: before its machine is made, and when that is gone.
bool callback_begin(Session *session, Error *error) MUST_CHECK;
void callback_close(Session *session);
