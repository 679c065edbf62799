// cli/train/known_parameters.h: --set held against what the experiment says of itself, so that what
// no run would take is refused before the first one trains.
#pragma once

#include "lua/experiment.h"

typedef struct KnownParameters {
    LuaExperimentInfo *info; // NULL: it could not be read here, and the run tells
} KnownParameters;

// Where no process can be had nothing is known. An experiment that cannot be read is an error, or
// nothing is known of it either: one that is trusted cannot be read without that, and one that has
// trained may take more than who only reads it is given.
bool known_parameters_read(KnownParameters *known, const char *path, bool may_be_unreadable,
                           Error *error) MUST_CHECK;
bool known_parameters_check(const KnownParameters *known, const char *name, const char *value,
                            Error *error) MUST_CHECK;
void known_parameters_clear(KnownParameters *known);
