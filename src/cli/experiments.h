// cli/experiments.h: where experiments lie, and which there are.
//
// A name is looked for in $MPBENCH_EXPERIMENTS, beside the program (its own folder's `experiments`,
// the one above it, ../share/mpbench/experiments) and in the folder of the installation. One that
// lies in a folder of these has that in its name: gan/dcgan. Nothing here runs a script.
#pragma once

#include <stddef.h>

#include "base/error.h"

enum { EXPERIMENT_PATH_SIZE = 4096, EXPERIMENT_NAME_SIZE = 64, EXPERIMENT_MOST = 128 };

typedef struct ExperimentFile {
    char name[EXPERIMENT_NAME_SIZE]; // without ".lua", behind its folder's
    char path[EXPERIMENT_PATH_SIZE];
} ExperimentFile;

// A path as it is given, or the file of an experiment that ships; its folder's name may be left out
// where that leaves one, and - is _: keras-cnn is what keras_cnn calls its runs. Unknown names are
// an error that lists the known ones and the nearest.
bool experiment_find(const char *name, char *path, size_t size, Error *error);
// What the script at `path` is run by wherever one stands: its name into `name`, where it is one of
// those that ship, else the path.
const char *experiment_subject(const char *path, char name[EXPERIMENT_NAME_SIZE]);
// The comment that a script opens with, without its dashes, as much as there is room for; "" where
// there is none.
void experiment_read_top(const char *path, char *text, size_t size);
// A file that lies beside the experiments; false: in none of their folders.
bool experiment_find_file(const char *name, char *path, size_t size);
// Those that ship in a folder of that name, with blanks before each: " gan/dcgan gan/stylegan", as
// many as there is room for. False: there is no such folder.
bool experiment_group(const char *folder, char *names, size_t size);
// All that ship, in order of their names; of two with one name the first folder's. To be freed.
ExperimentFile *experiment_list(int *count);
