// lua/bind/step_private.h: the inside of steps that scripts hand over, which keeping and running
// them (step.c) and watching them (step_watch.c) share. Nobody else's.
#pragma once

#include "lua/bind/step.h"

// Steps are kept so many at a time (a GAN has two), and the one that was run the longest ago gives
// way. Tries are functions that were new, and watched steps of one function.
enum { MOST_STEPS = 8, MOST_RESULTS = 8, MOST_TRIES = 16 };

typedef struct StepResult {
    Tensor *tensor;  // held; NULL: the value below
    uint64_t number; // of its handle, from the first that the step made on
    bool is_true, is_nil;
} StepResult;

typedef struct HandedStep {
    const void *address; // of the function,
    int function;        // which the registry keeps while it is captured,
    int upvalues;        // and a table of its upvalues as they were; LUA_NOREF: none
    Capture *capture;
    int tries;    // watched steps, less those that were computed without the script
    int let_go;   // how often it was ready, or dropped as the script changed a mode
    uint64_t ran; // the how manieth of all that were run, the last time
    bool is_given_up;
    uint64_t handles; // that the step makes
    StepResult results[MOST_RESULTS];
    int result_count;
} HandedStep;

struct HandedSteps {
    HandedStep steps[MOST_STEPS];
    uint64_t ran;
    int made; // functions that were new
    bool is_told;
    HandedStep *watched; // under way, with what there was before it
    uint64_t handles;
    uint64_t random[4];
    LuaVmAsides asides;
    bool is_captured; // the step under way is run from what was captured,
    bool is_stale;    // all are to be let go of when it is over
};

// ---- step.c

// What it returned is let go of; and all else that was captured of it.
void step_drop_results(HandedStep *step);
void step_drop_capture(lua_State *L, HandedStep *step);

// ---- step_watch.c

// Whether the function's upvalues are what they were when it was watched.
bool step_upvalues_are_kept(lua_State *L, const HandedStep *step, int function);
// Round a call of the function that lies at `function`; its results lie from `first` on, and what
// the step returns in their place.
void step_begin_watch(lua_State *L, HandedStep *step, const CaptureGiven *given, int function);
void step_end_watch(lua_State *L, int function, int first, bool is_well);
// What a step returns, `first` being the number of its first handle: copies, since what they are of
// holds another step's numbers soon; or, where it is not captured, what is in the table at `kept`
// still (0: copies), and else the same again.
int step_push_results(lua_State *L, const HandedStep *step, uint64_t first, int kept);
