// The profile that the page shows: found, read, and summed up into lines; and measuring one, by
// another process, as `mpbench profile` does it.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/runs.h"
#include "ui/live/live.h"

void live_profile_clear(LiveProfile *profile) {
    step_profile_clear(&profile->kept);
    free(profile->lines);
    *profile = (LiveProfile){.by = profile->by, .process = profile->process};
}

// ---- lines --------------------------------------------------------------------------------------

static bool make_room(LiveProfile *profile, int count, Error *error) {
    free(profile->lines);
    profile->line_count = 0;
    profile->lines = calloc((size_t)count + 1, sizeof *profile->lines);
    return profile->lines || error_fail(error, ERROR_MEMORY, "no memory for the profile");
}

bool live_profile_group(LiveProfile *profile, Error *error) {
    const StepProfile *kept = &profile->kept;
    if (!make_room(profile, kept->part_count, error))
        return false;
    profile->casts = profile->cast_seconds = 0;
    for (int i = 0; i < kept->part_count; i++) {
        const StepPart *part = &kept->parts[i];
        profile->casts += step_part_is_cast(part) ? part->calls : 0;
        profile->cast_seconds += step_part_is_cast(part) ? part->seconds : 0;
    }
    profile->line_count = step_lines(kept->parts, kept->part_count, profile->by, profile->lines);
    profile->step_seconds = kept->step_seconds;
    return true;
}

// Without a profile: what was timed of layers at the step cursor. Shares are of these together.
static bool take_layers(Live *live, Error *error) {
    LiveProfile *profile = &live->profile;
    const LiveData *data = &live->data;
    profile->step_seconds = 0;
    if (!make_room(profile, data->layer_count, error))
        return false;
    for (int i = 0; i < data->layer_count; i++) {
        const LayerSample *sample = &data->layers[i];
        const RecordLayer *layer = &data->record.layers[i];
        if (sample->width == 0 || !(sample->seconds > 0))
            continue;
        StepPart *part = &profile->lines[profile->line_count++].part;
        const Format own = live_own_format(live, i);
        const char *format = own != FORMAT_COUNT ? format_name(own) : layer->precision;
        snprintf(part->layer, sizeof part->layer, "%s", layer->name);
        snprintf(part->from, sizeof part->from, "%s", format);
        snprintf(part->to, sizeof part->to, "%s", format);
        part->seconds = sample->seconds;
        profile->step_seconds += sample->seconds;
    }
    step_lines_sort(profile->lines, profile->line_count);
    return true;
}

// ---- finding one --------------------------------------------------------------------------------

static bool is_trained_alike(const RunRecord *run, const RunRecord *other) {
    bool same = strcmp(run->experiment, other->experiment) == 0 &&
                strcmp(run->device, other->device) == 0 &&
                strcmp(run->device_name, other->device_name) == 0 &&
                run->threads == other->threads && run->layer_count == other->layer_count &&
                live_has_parameters_of(run, other);
    for (int i = 0; same && i < run->layer_count; i++)
        same = strcmp(run->layers[i].name, other->layers[i].name) == 0 &&
               strcmp(run->layers[i].precision, other->layers[i].precision) == 0;
    return same;
}

// The newest profile of such a run, of those that are worth the reading; 0: there is none.
static bool find_alike(Ui *ui, const RunRecord *run, int64_t *of, Error *error) {
    enum { MOST_READ = 64 };
    int64_t runs[MOST_READ];
    int count;
    *of = 0;
    if (!store_list_step_profiles(ui->store, runs, MOST_READ, &count, error))
        return false;
    for (int i = 0; i < count && *of == 0; i++) {
        RunRecord other = {0};
        if (store_read_run(ui->store, runs[i], &other, NULL) && is_trained_alike(run, &other))
            *of = runs[i];
        record_clear(&other);
    }
    return true;
}

static bool find(Ui *ui, Live *live, Error *error) {
    LiveProfile *profile = &live->profile;
    const RunRecord *run = &live->data.record;
    live_profile_clear(profile);
    if (!store_read_step_profile(ui->store, run->id, &profile->kept, error))
        return false;
    profile->of = profile->kept.steps > 0 ? run->id : 0;
    if (profile->of == 0 && (!find_alike(ui, run, &profile->of, error) ||
                             (profile->of > 0 && !store_read_step_profile(ui->store, profile->of,
                                                                          &profile->kept, error))))
        return false;
    profile->run = run->id;
    return profile->of == 0 || live_profile_group(profile, error);
}

bool live_profile_read(Ui *ui, Live *live, Error *error) {
    LiveProfile *profile = &live->profile;
    if (!layout_find(&ui->layout, PANEL_PROFILE)) {
        live_profile_clear(profile);
        return true;
    }
    if (profile->run != live->data.record.id && !find(ui, live, error))
        return false;
    profile->may_measure = launch_may(ui);
    return profile->of != 0 || take_layers(live, error);
}

// ---- measuring one ------------------------------------------------------------------------------

bool live_profile_is_measured(Live *live) {
    LiveProfile *profile = &live->profile;
    if (profile->process == 0 || launch_goes_on(profile->process))
        return false;
    profile->process = 0;
    profile->run = 0; // it is looked for again
    return true;
}

// Of how a run was asked for, what a profile is asked for too.
static bool is_of_profiles(const char *option) {
    static const char *const names[] = {"precision", "layer", "layers", "loss-scale", "recipe",
                                        "keep-fp32", "set",   "trust",  "no-capture", NULL};
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], option) == 0)
            return true;
    return false;
}

enum { MOST_OPTIONS = 200, OPTION_SIZE = RECORD_NAME_SIZE + 4, MOST_SET = 200 };

typedef struct Measuring {
    char seed[24], threads[16];
    char names[MOST_OPTIONS][OPTION_SIZE];
    char set[MOST_SET][OPTION_SIZE + 16];
    const char *arguments[16 + 2 * MOST_OPTIONS + 2 * MOST_SET];
} Measuring;

// What layers are set to by now, which is more than options say where somebody switched them.
static const char **write_layers(const RunRecord *run, Measuring *measuring, const char **next) {
    for (int i = 0, count = 0; i < run->layer_count && count < MOST_SET; i++) {
        const RecordLayer *layer = &run->layers[i];
        if (!layer->set[0] || strcmp(layer->set, "auto") == 0)
            continue;
        snprintf(measuring->set[count], sizeof measuring->set[count], "%s=%s", layer->name,
                 layer->set);
        *next++ = "--layer";
        *next++ = measuring->set[count++];
    }
    return next;
}

static void write_arguments(const RunRecord *run, Measuring *measuring) {
    const char **next = measuring->arguments;
    snprintf(measuring->seed, sizeof measuring->seed, "%" PRId64, run->seed);
    snprintf(measuring->threads, sizeof measuring->threads, "%d", run->threads);
    *next++ = "profile";
    *next++ = run->script_path[0] ? run->script_path : run->experiment;
    *next++ = "--quiet";
    *next++ = "--device";
    *next++ = run->device;
    *next++ = "--seed";
    *next++ = measuring->seed;
    if (run->threads > 0) {
        *next++ = "--threads";
        *next++ = measuring->threads;
    }
    for (int i = 0; i < run->option_count && i < MOST_OPTIONS; i++) {
        const RecordOption *option = &run->options[i];
        if (!is_of_profiles(option->name))
            continue;
        snprintf(measuring->names[i], OPTION_SIZE, "--%s", option->name);
        *next++ = measuring->names[i];
        if (option->value[0])
            *next++ = option->value;
    }
    *write_layers(run, measuring, next) = NULL;
}

void live_profile_measure(Ui *ui, Live *live) {
    LiveProfile *profile = &live->profile;
    Error error;
    if (!live->data.is_known || !launch_is_allowed(ui))
        return;
    if (profile->process > 0) {
        ui_say(ui, INK_WARN, "one is being measured: it shows here when that ends");
        return;
    }
    Measuring *measuring = calloc(1, sizeof *measuring);
    if (!measuring)
        return;
    write_arguments(&live->data.record, measuring);
    if (launch_worker(ui, measuring->arguments, &profile->process, &error))
        ui_say(ui, INK_GOOD, "it trains for some seconds, every step profiled");
    else
        ui_fail(ui, &error);
    free(measuring);
    ui->dirty = true;
}
