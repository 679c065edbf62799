// tests/lua/trial.h: an experiment run, or a part of one: stopped at a step, resumed from a
// checkpoint, forked; and what came of it.
#pragma once

#include <signal.h>
#include <unistd.h>

#include "lua/experiment.h"
#include "run/recorder.h"
#include "run/run_private.h"
#include "store/series.h"
#include "tests/device.h"
#include "tests/folder.h"
#include "tests/test.h"

enum { MOST_STEPS = 512 };

typedef struct Trial { // one run, or a part of one
    const char *script;
    const char *settings; // "key=value key=value"
    const char *precision, *folder;
    int64_t steps, every, stop_at;
    Checkpoint *resume;
    SafeFile *weights;
    int64_t parent;            // of a fork
    size_t memory_limit;       // of the script; 0: the usual one
    double joules;             // that it has taken when it begins
    const RecordMemory *held;  // of a resume: before; NULL: not known
    const RecordFact *fact;    // of a resume: one of those it had; NULL: none
    void (*prepare)(Run *run); // before the script is read; NULL: nothing
    double seconds;            // that its step 5 took, as far as it can tell
    Run *run;
    bool is_recorded;          // in a history, from which these are read:
    double losses[MOST_STEPS]; // of each step; NaN where it logged none
    int loss_count;
    int64_t step; // where it ended
    int kept;     // checkpoints to go on from
    bool done;
    char printed[768];
    char diagnosed[256];   // kinds
    RunRecord record;      // without its lists
    RecordMemory in_steps; // that one of them tells of
    bool has_in_steps;
    Error error;
} Trial;

static char folder[TEST_FOLDER_SIZE];
static inline const char *trial_history(void) {
    static char path[TEST_FOLDER_SIZE + 16];
    snprintf(path, sizeof path, "%s/history.db", folder);
    return path;
}

static inline void on_step(void *context, const Run *run) {
    Trial *trial = context;
    if (run->step == 5) {
        trial->run->started -= trial->seconds;
        trial->run->training_seconds += trial->seconds;
    }
    if (run->step == trial->stop_at)
        run_request_stop(SIGTERM);
}

static inline void on_kept(void *context, const Run *run, const CheckpointFile *file) {
    (void)run;
    ((Trial *)context)->kept += strcmp(file->why, "final") != 0;
}

static inline void on_print(void *context, const char *text, size_t length) {
    Trial *trial = context;
    size_t used = strlen(trial->printed);
    snprintf(trial->printed + used, sizeof trial->printed - used, "%.*s;", (int)length, text);
}

// What the history has of the run's losses. Devices that tell them late tell of which step each is.
static inline bool read_losses(Trial *trial) {
    SeriesPoint *points = NULL;
    int count = 0;
    Store *store = store_open(trial_history(), STORE_READ, &trial->error);
    bool done = store && store_read_series(store, trial->run->id, "loss", 0, MOST_STEPS - 1, 0,
                                           &points, &count, &trial->error);
    for (int i = 0; i < MOST_STEPS; i++)
        trial->losses[i] = (double)NAN;
    trial->loss_count = count;
    for (int i = 0; i < count; i++) {
        CHECK_INT(points[i].width, 1);
        trial->losses[points[i].step] = series_point_value(&points[i]);
    }
    free(points);
    store_close(store);
    return done;
}

static inline void train(Trial *trial) {
    char text[256];
    RunSetting settings[16];
    RunOptions options = {.device = test_device_or("cpu"),
                          .threads = 1,
                          .seed = 7,
                          .steps = trial->steps,
                          .settings = settings};
    options.precision = trial->precision;
    options.parent = trial->parent;
    options.held = trial->held;
    options.facts = trial->fact;
    options.fact_count = trial->fact != NULL;
    snprintf(text, sizeof text, "%s", trial->settings ? trial->settings : "");
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        *equals = 0;
        settings[options.setting_count++] = (RunSetting){word, equals + 1};
    }
    Run *run = run_new(&options, &trial->error);
    if (!run)
        return;
    trial->run = run;
    run->observer = (RunObserver){.context = trial, .step = on_step};
    if (trial->is_recorded && !(run->recorder = recorder_new(trial_history(), &trial->error))) {
        run_free(run);
        return;
    }
    if (trial->prepare)
        trial->prepare(run);
    run_state(run)->energy = (Energy){.joules = trial->joules}; // known, and it does not rise
    LuaRunOptions lua = {.memory_limit = trial->memory_limit,
                         .print = on_print,
                         .context = trial,
                         .keeping = {.folder = trial->folder,
                                     .every = trial->every,
                                     .kept = on_kept,
                                     .context = trial},
                         .resume = trial->resume,
                         .weights = trial->weights};
    trial->done = lua_run_experiment(run, trial->script, &lua, &trial->error);
    Recorder *recorder = run->recorder;
    if (recorder)
        trial->done =
            recorder_end(recorder, run, &trial->error) && read_losses(trial) && trial->done;
    trial->step = run->step;
    RunRecord record;
    CHECK(run_describe(run, &record, &trial->error));
    trial->record = record;
    trial->has_in_steps = record_memory_in_steps(&record, &trial->in_steps);
    record_clear(&record);
    trial->diagnosed[0] = 0;
    for (int i = 0; i < run->diagnosis_count; i++)
        strncat(strncat(trial->diagnosed, run->diagnoses[i].kind, 64), ";", 2);
    run_request_stop(0);
    recorder_free(recorder);
    run_free(run);
}

static inline const char *write_script(const char *name, const char *text) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s.lua", folder, name);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    return path;
}

static inline const char *file_of(const char *subfolder, int64_t step) {
    static char path[2][256];
    static int next;
    char *out = path[next++ % 2];
    snprintf(out, sizeof path[0], "%s/%s/step-%lld.safetensors", folder, subfolder,
             (long long)step);
    return out;
}

static inline const char *folder_of(const char *name) {
    static char path[4][128];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

// RUN_TEST between these two; what trials write lies in a folder that goes away.
static inline bool trials_begin(void) {
    return test_folder_make(folder, sizeof folder);
}

static inline int trials_end(void) {
    test_folder_remove(folder);
    return test_end();
}
