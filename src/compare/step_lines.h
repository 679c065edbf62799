// compare/step_lines.h: the parts of a profiled step (store/step_profile.h) as lines: one by one,
// or summed up by layer or by operation, the longest first. Pure.
#pragma once

#include "store/step_profile.h"

typedef enum StepBy { STEP_BY_PART, STEP_BY_LAYER, STEP_BY_OPERATION, STEP_BYS } StepBy;

typedef struct StepLine { // of a step in the mean; what its parts differ in is ""
    StepPart part;
    double limited;   // seconds of it that `at_limit` is of; 0: of none the limit is known
    bool is_of_casts; // and of nothing else
} StepLine;

// A cast, or what rounds factors to scaled elements: beside others it says nothing of what a layer
// computes in.
bool step_part_is_cast(const StepPart *part);
// Into `lines`, which has room for as many; how many there are. What lies outside of all layers is
// summed up by operation even where the rest is by layer.
int step_lines(const StepPart *parts, int count, StepBy by, StepLine *lines);
void step_lines_sort(StepLine *lines, int count); // the longest first
