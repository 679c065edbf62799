// cli/describe.h: what an experiment says of itself, read where it can do no harm.
#pragma once

#include "lua/experiment.h"

// As lua_describe_experiment, in a process of its own, which is confined to reading the script, has
// little memory and few seconds, and may crash. ERROR_BUSY: there is no process to be had.
bool describe_experiment(const char *path, LuaExperimentInfo *info, Error *error) MUST_CHECK;
