// ui/ui.h: the screen. It shows what the history has, live or old, by one code path; what it makes
// happen are rows (orders to workers, tags, notes) and processes (`mpbench run ..`, which live on
// when the screen is closed). It knows the store, compare/ and the formats; the rest comes from its
// host, the command line.
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "store/parameter.h"

enum { UI_MOST_PARAMETERS = 24 };

typedef struct UiExperiment {
    char name[64];   // what `mpbench run` takes
    char about[200]; // one line
    struct {
        RecordParameter usual;                // the default
        char value[PARAMETER_CHOICE_SIZE];    // as --set would give it
        char choices[PARAMETER_CHOICES_SIZE]; // of a text, with blanks between them; "": any
    } parameters[UI_MOST_PARAMETERS];
    int parameter_count;
    bool is_own;       // a script beside the user, by the name of its file
    bool is_described; // all but the name is there
    int64_t changed;   // when the script was, as it was described; in the host's own count
} UiExperiment;

typedef struct UiHost { // what a room above does for the screen
    void *context;
    const char *program; // of the workers: this one's path
    // The experiments that can be launched, by name alone; the array is freed with free().
    bool (*list_experiments)(void *context, UiExperiment **list, int *count, Error *error);
    // What one says of itself, which takes a hundredth of a second, and three of them where its
    // script never ends.
    void (*describe_experiment)(void *context, UiExperiment *experiment);
    // Whether its script was written anew since.
    bool (*has_changed)(void *context, const UiExperiment *experiment);
    // Whether a run or a scan of that script is of this experiment.
    bool (*is_of_script)(void *context, const UiExperiment *experiment, const char *script);
    // The text of one, freed with free(); NULL on failure.
    char *(*read_experiment)(void *context, const char *name, Error *error);
    // Whether --loss-scale takes it, and loss_scale= with it: a number or a preset's name.
    bool (*check_loss_scale)(const char *text, Error *error);
    bool (*check_recipe)(const char *text, Error *error);
    bool (*check_keep)(const char *text, Error *error); // --keep-fp32
    // Each row of a policy file, as --layer would be given it; `take` copies what it needs.
    bool (*read_policy)(const char *path,
                        bool (*take)(void *context, const char *pattern, const char *precision,
                                     Error *error),
                        void *context, Error *error);
    // The choices of the launch form, each ended by NULL: "fp32", "bf16", ...
    const char *const *precisions, *const *loss_scales, *const *devices;
} UiHost;

typedef struct UiOptions {
    const char *database; // the path of the history
    const char *run;      // RUN to open (`mpbench watch`); NULL: home
    const char *settings; // the path of the settings' file; NULL: none is read or written
    bool demo;            // the history is a recording that comes with the program
    int depth;            // a ColorDepth; -1: what the terminal has
} UiOptions;

// Takes the terminal, returns when the user is done or the terminal is gone. *signal gets the
// number of the signal that ended it, or 0.
bool ui_run(const UiHost *host, const UiOptions *options, int *signal, Error *error) MUST_CHECK;
