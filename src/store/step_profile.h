// store/step_profile.h: where the time of a run's steps went, as `mpbench profile` found it: a
// bounded list of parts, of a step in the mean. The store does not know what operations are: their
// names are the writer's. Files of before have no room for it; it is made when it is needed.
#pragma once

#include "store/record.h"
#include "store/store.h"

enum { STEP_PROFILE_MOST_PARTS = 1024 };

typedef struct StepPart {
    char layer[RECORD_NAME_SIZE];            // "": outside of all
    char operation[32], way[12];             // "linear"; "forward", "backward", "step", "": several
    char from[16], to[16];                   // formats computed with, and given; "": several
    double calls, seconds;                   // a step
    double multiplications, bytes, at_limit; // at_limit: seconds at the device's limit; 0: unknown
    int64_t columns;                         // of products, the narrowest; 0: none
} StepPart;

typedef struct StepProfile {
    int64_t steps; // that are in it; 0: there is none
    int64_t late;  // that took far longer, and are not
    double late_seconds;
    double others_busy; // processors that other programs kept busy meanwhile; NaN: unknown
    double step_seconds, between; // of a step; of these in no part
    double memory_limit;          // bytes a second; NaN: unknown
    StepPart *parts;              // the longest first
    int part_count;
} StepProfile;

void step_profile_clear(StepProfile *profile);
// Instead of what was kept of the run before. Of more parts than are kept the last is the sum of
// the rest, of the operation "others".
bool store_put_step_profile(Store *store, int64_t run, const StepProfile *profile,
                            Error *error) MUST_CHECK;
// The runs that have one, the newest first, at most so many.
bool store_list_step_profiles(Store *store, int64_t *runs, int most, int *count,
                              Error *error) MUST_CHECK;
// Clears it first; the caller does at last.
bool store_read_step_profile(Store *store, int64_t run, StepProfile *profile,
                             Error *error) MUST_CHECK;
