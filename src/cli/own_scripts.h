// cli/own_scripts.h: the experiments in the folder that the program was started in, for the screen.
#pragma once

#include "cli/experiments.h"

// Its Lua files that call `.experiment`, but for those that ship, in order of their names, which
// are what `mpbench run` takes. Nothing here runs one. To be freed; NULL: no memory.
ExperimentFile *own_scripts_list(int *count);
