// lua/bind/loader.h: loaders as Lua objects, for data.c, which reads what they go over.
//
// A loader is made before its data, so that nothing that Lua raises leaves a data set behind:
// pushed with its options, then filled, and from then on it counts against the memory of the
// device.
#pragma once

#include "data/loader.h"
#include "lua/bind/bind.h"

extern const char bind_loader_type[]; // of the metatable

typedef struct LoaderHandle {
    Loader *loader; // NULL until its data is there
    size_t bytes;   // of the data: they count against the memory of the device
    LoaderOptions options;
    // Of the batch that it gave out last:
    int64_t given;                   // its samples; 0: none, or it is told what it was for
    double given_at;                 // run_clock then
    uint64_t learnt, looked, judged; // of the session, then
} LoaderHandle;

// An empty loader on top of the stack, with its options from the table at index 1.
LoaderHandle *bind_push_loader(lua_State *L, const char *function);
// Fills the handle. Takes over the reference to `dataset`; NULL where reading it failed.
bool bind_fill_loader(Session *session, LoaderHandle *handle, const char *function,
                      Dataset *dataset, Error *error);
// The handle lies on top of the stack; `dataset` is an expression that reads one into `error`.
#define BIND_LOADER(L, function, handle, dataset, error)                                       \
    (BIND_DONE(                                                                                \
         L,                                                                                    \
         bind_fill_loader(session_of(L), handle, function, dataset, error) &&                  \
             inventory_add(&session_of(L)->inventory, MEMBER_LOADER, (handle)->loader, error), \
         error),                                                                               \
     bind_report_pressure(L, session_of(L), (handle)->bytes), 1)

// The metatable, once a session.
void bind_open_loader(lua_State *L, Session *session);
