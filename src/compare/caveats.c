// What may mislead about a comparison, a sentence each.
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/private.h"

const double compare_least_seconds = 3;

char *compare_add_line(char (**lines)[COMPARE_TEXT_SIZE], int *count) {
    char(*grown)[COMPARE_TEXT_SIZE] = realloc(*lines, (size_t)(*count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    *lines = grown;
    grown[*count][0] = 0;
    return grown[(*count)++];
}

__attribute__((format(printf, 2, 3))) static bool warn(Comparison *comparison, const char *format,
                                                       ...) {
    char *line = compare_add_line(&comparison->caveats, &comparison->caveat_count);
    if (!line)
        return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, COMPARE_TEXT_SIZE, format, arguments);
    va_end(arguments);
    return true;
}

// One that goes on has no end yet, and of one that died nobody wrote it down: what its earlier
// stretches leave of the time that it took was its last, and pauses come on top.
static int64_t end_of(const RunRecord *run, const CompareStretches *stretches, int64_t from_ms) {
    if (run_status_goes_on(run->status))
        return INT64_MAX;
    if (run->status != RUN_DEAD)
        return run->ended_ms;
    int64_t end = from_ms + (int64_t)(1000 * run->wall_s);
    for (int i = 0; i + 1 < stretches->count; i++)
        end -= stretches->list[i].to_ms - stretches->list[i].from_ms;
    return end;
}

static int stretch_count(const Comparison *comparison, int run) {
    const int count = comparison->stretches[run].count;
    return count > 0 ? count : 1; // of which the run's own row tells
}

static RunStretch stretch_of(const Comparison *comparison, int run, int at) {
    const RunRecord *record = &comparison->runs[run];
    const CompareStretches *known = &comparison->stretches[run];
    RunStretch stretch = {record->created_ms, record->created_ms};
    if (known->count > 0)
        stretch = known->list[at];
    if (at + 1 == stretch_count(comparison, run)) {
        const int64_t end = end_of(record, known, stretch.from_ms);
        stretch.to_ms = end > stretch.to_ms ? end : stretch.to_ms;
    }
    return stretch;
}

// Whether two runs trained on one device at the same time: between its stretches a run took nothing
// from others.
static bool overlap(const Comparison *comparison, int a, int b) {
    if (strcmp(comparison->runs[a].device_name, comparison->runs[b].device_name) != 0)
        return false;
    for (int i = 0; i < stretch_count(comparison, a); i++)
        for (int k = 0; k < stretch_count(comparison, b); k++) {
            const RunStretch one = stretch_of(comparison, a, i);
            const RunStretch other = stretch_of(comparison, b, k);
            if (one.from_ms < other.to_ms && other.from_ms < one.to_ms)
                return true;
        }
    return false;
}

// What a run has not as the first has it, by the runs themselves: a parameter of the script may
// have any name.
static bool has_other_script(const Comparison *comparison, int run) {
    const char *code = comparison->codes[run].hash, *first = comparison->codes[0].hash;
    return strcmp(code[0] ? code : comparison->runs[run].script_hash,
                  first[0] ? first : comparison->runs[0].script_hash) != 0;
}

static bool has_other_device(const Comparison *comparison, int run) {
    return strcmp(comparison->runs[run].device, comparison->runs[0].device) != 0;
}

static bool has_other_machine(const Comparison *comparison, int run) {
    return strcmp(comparison->runs[run].device_name, comparison->runs[0].device_name) != 0;
}

static bool has_other_threads(const Comparison *comparison, int run) {
    return comparison->runs[run].threads != comparison->runs[0].threads;
}

static bool any(const Comparison *comparison, bool (*has_other)(const Comparison *, int)) {
    for (int i = 1; i < comparison->run_count; i++)
        if (has_other(comparison, i))
            return true;
    return false;
}

static bool warn_of_differences(Comparison *comparison) {
    static const struct {
        bool (*has_other)(const Comparison *comparison, int run);
        bool (*unless)(const Comparison *comparison, int run); // which says as much; or NULL
        const char *text;
    } rows[] = {
        {has_other_script, NULL, "The script's code was not the same in all runs."},
        {has_other_device, NULL,
         "The runs were not on one kind of device: speed and memory tell of the devices too, "
         "energy is that of the card alone or that of the processors, and a device may lack "
         "formats that another has."},
        {has_other_machine, has_other_device,
         "The runs were not on one machine: speed and energy tell of the machines too."},
        {has_other_threads, has_other_device,
         "The runs did not have the same number of threads: speed tells of that too, and sums may "
         "round differently."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!any(comparison, rows[i].has_other) ||
            (rows[i].unless && any(comparison, rows[i].unless)))
            continue;
        if (!warn(comparison, "%s", rows[i].text))
            return false;
    }
    return true;
}

// What became of a run that did not finish, or what it does.
static const char *fate_of(const RunRecord *run) {
    static const char *const fates[RUN_STATUSES] = {
        [RUN_RUNNING] = "still runs",  [RUN_PAUSED] = "is paused", [RUN_FINISHED] = "finished",
        [RUN_STOPPED] = "was stopped", [RUN_FAILED] = "failed",    [RUN_DEAD] = "died"};
    bool goes_on = run_status_goes_on(run->status);
    return goes_on && run->stale ? "fell silent" : fates[run->status];
}

static bool warn_of_unfinished(Comparison *comparison) {
    for (int i = 0; i < comparison->run_count; i++) {
        const RunRecord *run = &comparison->runs[i];
        if (run->status == RUN_FINISHED)
            continue;
        const bool is_told =
            run->step == 0
                ? warn(comparison, "%s %s before its first step ended.", run->name, fate_of(run))
                : warn(comparison, "%s %s: its numbers are of its first %" PRId64 " step%s.",
                       run->name, fate_of(run), run->step, run->step == 1 ? "" : "s");
        if (!is_told)
            return false;
    }
    return true;
}

static bool warn_of_lengths(Comparison *comparison) {
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < comparison->run_count; i++) {
        int64_t step = comparison->runs[i].step;
        least = step < least ? step : least;
        most = step > most ? step : most;
    }
    if (least == most)
        return true;
    return warn(comparison,
                "The runs took between %" PRId64 " and %" PRId64
                " steps: losses are compared as far as all of them came, results %s%s.",
                least, most, comparison->results_at[0] ? "of " : "as they ended",
                comparison->results_at);
}

// Where a run does not count what the axis is of, it has no place on it.
static bool warn_of_axis(Comparison *comparison) {
    CompareAxis axis = comparison->options.axis;
    for (int i = 0; i < comparison->run_count; i++) {
        const RunRecord *run = &comparison->runs[i];
        if (comparison->losses[i].count == 0 || !isnan(compare_axis_of_step(run, axis, 1)))
            continue;
        if (!warn(comparison,
                  "%s counts no %s: its curve is left out, and losses are those at the end.",
                  run->name, axis == COMPARE_BY_EPOCH ? "epochs" : compare_axis_name(axis)))
            return false;
    }
    return true;
}

// Of the loss of a run without a step that is told already.
static bool warn_of_lacking(Comparison *comparison) {
    char list[COMPARE_TEXT_SIZE / 2] = "";
    size_t used = 0;
    int count = 0;
    for (int i = 0; i < comparison->run_count; i++) {
        const RunRecord *run = &comparison->runs[i];
        if (!compare_lacks_series(comparison, i) || run->step == 0)
            continue;
        if (used + sizeof run->name + 2 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", count > 0 ? ", " : "",
                                     run->name);
        count++;
    }
    if (count == 0)
        return true;
    const bool has_last = compare_has_curves(comparison) && strcmp(comparison->series, "loss") == 0;
    return warn(comparison, "Not all of these runs have %s%.63s: %s lack%s it.",
                has_last ? "a curve of " : "", comparison->series, list, count == 1 ? "s" : "");
}

// On the axis that all share no step of it lies before another run's end.
static bool begins_behind(const Comparison *comparison, int run) {
    const CompareCurve *curve = &comparison->losses[run];
    const double end = compare_shared_end(comparison);
    bool is_behind = curve->count > 0 && end > 0;
    for (int i = 0; i < curve->count; i++)
        is_behind = is_behind && curve->x[i] > end;
    return is_behind;
}

static bool warn_of_forks(Comparison *comparison) {
    for (int i = 0; i < comparison->run_count; i++) {
        const RunRecord *run = &comparison->runs[i];
        char of[32] = "a run that was removed";
        if (run->parent_step == 0)
            continue;
        if (run->parent > 0)
            snprintf(of, sizeof of, "run %" PRId64, run->parent);
        if (!warn(comparison,
                  "%s is a fork of %s"
                  ": its time, energy, most memory and lowest loss are of its own "
                  "steps, those after step %" PRId64 ".",
                  run->name, of, run->parent_step) ||
            (begins_behind(comparison, i) &&
             !warn(comparison,
                   "%s begins where another of these runs had ended: they share no step at which "
                   "their losses could be compared.",
                   run->name)))
            return false;
    }
    return true;
}

static bool warn_of_brevity(Comparison *comparison) {
    double shortest = INFINITY;
    for (int i = 0; i < comparison->run_count; i++)
        shortest = fmin(shortest, comparison->runs[i].wall_s);
    if (!(shortest < compare_least_seconds))
        return true;
    return warn(
        comparison,
        "The shortest run took %.2g s: too short to tell speeds by; train for %g s or more.",
        shortest, compare_least_seconds);
}

bool compare_had_company(const Comparison *comparison, int run) {
    for (int i = 0; i < comparison->run_count; i++)
        if (i != run && overlap(comparison, run, i))
            return true;
    return false;
}

bool compare_was_busy(const RunRecord *run) {
    const double notable_share = 0.05;
    int processors;
    double load = compare_load_of_others(run, &processors);
    return load > notable_share * processors;
}

// Of runs that slowed each other that is told instead.
static bool warn_of_others(Comparison *comparison) {
    char list[COMPARE_TEXT_SIZE / 2] = "";
    size_t used = 0;
    int processors, most_processors = 0, count = 0;
    double most = 0;
    for (int i = 0; i < comparison->run_count; i++) {
        const RunRecord *run = &comparison->runs[i];
        double load = compare_load_of_others(run, &processors);
        if (!compare_was_busy(run) || compare_had_company(comparison, i))
            continue;
        if (used + sizeof run->name + 16 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s %.1f",
                                     count > 0 ? ", " : "", run->name, load);
        most_processors = load > most ? processors : most_processors;
        most = fmax(most, load);
        count++;
    }
    if (count == 0)
        return true;
    return warn(comparison,
                "Other programs kept up to %.1f of %d processors busy meanwhile (%s): speed and "
                "energy tell of them, too.",
                most, most_processors, list);
}

static bool warn_of_company(Comparison *comparison) {
    for (int i = 0; i < comparison->run_count; i++)
        for (int j = 0; j < i; j++) {
            if (!overlap(comparison, i, j))
                continue;
            return warn(comparison,
                        "%s and %s trained at the same time and slowed each other: train them one "
                        "after the other to compare speed and energy.",
                        comparison->runs[j].name, comparison->runs[i].name);
        }
    return true;
}

static bool warn_of_seeds(Comparison *comparison) {
    const CompareSide *first = &comparison->groups[0];
    if (comparison->group_count == 1 && first->seeds_are_alike)
        return warn(comparison,
                    "All seeds of %s gave the same to the bit: they change nothing in this script, "
                    "and count as one.",
                    first->label);
    for (int g = 1; g < comparison->group_count; g++)
        if (comparison->groups[g].seeds_are_alike &&
            !warn(comparison,
                  "All seeds of %s, and all of %s, gave the same to the bit: they change nothing "
                  "in this script, and count as one.",
                  first->label, comparison->groups[g].label))
            return false;
    return true;
}

static double share_skipped(const Comparison *comparison, const CompareSide *side) {
    double steps = 0;
    for (int i = 0; i < side->member_count; i++)
        steps += (double)comparison->runs[side->members[i]].step;
    return steps > 0 ? (double)side->skipped / steps : 0;
}

// What looks like the price of a format may be that of finding its loss scale.
static bool warn_of_skips(Comparison *comparison) {
    const double worth_saying = 0.02;
    const CompareSide *first = &comparison->groups[0];
    for (int g = 1; g < comparison->group_count; g++) {
        const CompareSide *side = &comparison->groups[g];
        const RunRecord *run = &comparison->runs[side->members[0]];
        const double share = share_skipped(comparison, side);
        char remedy[192] = "";
        if (share < worth_saying || share < 2 * share_skipped(comparison, first))
            continue;
        if (strcmp(run->scale_rule, "dynamic") == 0 && run->scale_last >= 1)
            snprintf(remedy, sizeof remedy,
                     ": where its scale was yet to be found, more steps make that weigh less, and "
                     "so does --loss-scale %.9g, where it ended",
                     run->scale_last);
        if (!warn(comparison,
                  "%s skipped %.2g %% of its steps, in which gradients were not finite, and so was "
                  "updated less often than %s%s.",
                  side->label, 100 * share, first->label, remedy))
            return false;
    }
    return true;
}

bool compare_warn(Comparison *comparison) {
    return warn_of_differences(comparison) && warn_of_unfinished(comparison) &&
           warn_of_lengths(comparison) && warn_of_axis(comparison) && warn_of_lacking(comparison) &&
           warn_of_forks(comparison) && warn_of_skips(comparison) && warn_of_seeds(comparison) &&
           warn_of_company(comparison) && warn_of_others(comparison) && warn_of_brevity(comparison);
}
