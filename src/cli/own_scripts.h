// cli/own_scripts.h: the experiments in the folder that the program was started in, for the screen.
#pragma once

#include "cli/experiments.h"

// Its Lua files in which `.experiment` stands, but for those that ship, in order of their names,
// which are what `mpbench run` takes. Left out are names that begin with a dot or a dash, which
// would be an option, those of 64 bytes and more or with what a terminal does not show, files of
// more than 1 MiB, and what comes after the 128th. Nothing here runs one. To be freed; NULL: no
// memory.
ExperimentFile *own_scripts_list(int *count);
// Whether that path is the file of this name there.
bool own_scripts_is(const char *name, const char *path);
