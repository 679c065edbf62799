// lua/bind/step.h: functions that a script hands over as a step, `run:step(f, ..)`: called,
// watched, and in the end captured (ops/capture.h), so that a step runs without the script.
//
// f is called as ever where its step is not captured, or is not what it was. While it is watched,
// whatever a script can do that the engine's kernels are not all of says so: by an act, which is
// done again in every step, or by a refusal. What is neither is refused (signature.c asks for each
// function whether a step may call it). What f does to Lua's own variables is not done again; one
// that moves in front of our eyes, an upvalue of f, refuses it too.
#pragma once

#include "lua/bind/bind.h"
#include "ops/capture.h"

typedef struct HandedSteps HandedSteps; // one a session; NULL: none was handed over

// Runs the step: the function at `index` with the arguments above it. Returns as a lua_CFunction.
int step_run(lua_State *L, int index);
// A function of the module is called while a step is watched: whether that is part of what can be
// captured, by its name.
void step_note_call(Session *session, const char *title);
// All that was captured is let go of: something that it hangs on has changed, or goes.
void step_forget(Session *session);
void step_free(Session *session);
// A leaf's gradient is handed to the script, which may keep it: it gets one that no captured step
// writes over.
bool step_part_gradient(Session *session, Tensor *leaf, Error *error) MUST_CHECK;
// A step of the run has ended.
void step_count(Session *session);

// Round what the host does beside the engine's kernels.
static inline void step_begin_act(lua_State *L, const CaptureAct *act) {
    capture_begin_act(session_of(L)->engine, act);
}
static inline void step_end_act(lua_State *L) {
    capture_end_act(session_of(L)->engine);
}
