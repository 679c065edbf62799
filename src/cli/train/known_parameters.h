// cli/train/known_parameters.h: --set held against what the experiment says of itself, so that what
// no run would take is refused before the first one trains.
#pragma once

#include "lua/experiment.h"

typedef struct KnownParameters {
    LuaExperimentInfo *info; // NULL: it could not be read here, and the run tells
} KnownParameters;

// Of an experiment that is trusted, which cannot be read without that, or where no process can be
// had, nothing is known; one that cannot be read otherwise is an error.
bool known_parameters_read(KnownParameters *known, const char *path, bool is_trusted,
                           Error *error) MUST_CHECK;
bool known_parameters_check(const KnownParameters *known, const char *name, const char *value,
                            Error *error) MUST_CHECK;
void known_parameters_clear(KnownParameters *known);
