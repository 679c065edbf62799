// From what a training's steps took to rows: the device's limits measured, parts grouped.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/machine/findings.h"
#include "cli/profile/profile.h"
#include "kernel/allocator.h"
#include "measure/limits.h"

void profile_report_clear(ProfileReport *report) {
    free(report->rows);
    report->rows = NULL;
    report->row_count = 0;
    step_profile_clear(&report->kept);
}

bool profile_is_cast(const ProfileRow *row) {
    return row->work == OP_cast || row->work == OP_scale_factor;
}

bool profile_is_product(const ProfileRow *row) {
    return row->multiplications > 0;
}

double profile_share(const ProfileReport *report, double seconds) {
    return report->step_seconds > 0 ? seconds / report->step_seconds : 0;
}

static int longest_first(const void *a, const void *b) {
    const ProfileRow *left = a, *right = b;
    if (left->seconds != right->seconds)
        return left->seconds < right->seconds ? 1 : -1;
    return strcmp(left->layer, right->layer);
}

// ---- of a training ------------------------------------------------------------------------------

static const char *way_of(const ProfilePlace *place) {
    if (parts_is_of_step(place->work))
        return "step";
    return place->way == PROFILE_BACKWARD ? "backward" : "forward";
}

static void fill_row(ProfileRow *row, const Run *run, const RunProfile *profile, int index) {
    const ProfilePart *part = &profile->parts->each[index];
    const ProfilePlace place = parts_place(index);
    const double steps = (double)profile->steps;
    *row = (ProfileRow){.operation = parts_work_name(place.work),
                        .way = way_of(&place),
                        .work = place.work,
                        .from = part->from,
                        .to = part->to,
                        .calls = (double)part->calls / steps,
                        .seconds = part->seconds / steps,
                        .multiplications = part->multiplications / steps,
                        .bytes = part->bytes / steps,
                        .columns = part->columns};
    if (parts_is_of_step(place.work))
        row->from = row->to = FORMAT_COUNT;
    utf8_copy(row->layer, sizeof row->layer, policy_layer(run->engine->policy, place.layer)->name);
}

// What casts and factors' rounding move and take.
void profile_add_casts(ProfileReport *report) {
    for (int i = 0; i < report->row_count; i++) {
        const ProfileRow *row = &report->rows[i];
        if (!profile_is_cast(row))
            continue;
        report->casts += row->calls;
        report->cast_bytes += row->bytes;
        report->cast_seconds += row->seconds;
    }
}

// What memory limits: not attention, whose multiplications nobody counts, and no work whose bytes
// are not known.
static bool moves_memory(const ProfileRow *row) {
    return !profile_is_product(row) && row->bytes > 0 && row->work != OP_attention &&
           row->work != OP_attention_backward;
}

static bool try_limits(const Run *run, ProfileReport *report, Error *error) {
    for (int i = 0; i < report->row_count; i++) {
        const ProfileRow *row = &report->rows[i];
        if (profile_is_product(row) && isnan(report->product_limit[row->from]) &&
            !measure_product_limit(run->device, row->from, &report->product_limit[row->from],
                                   error))
            return false;
    }
    return measure_memory_limit(run->device, &report->memory_limit, error);
}

// What is tried for it takes more than many a training: that is no memory of the run's.
static bool measure_limits(const Run *run, ProfileReport *report, Error *error) {
    const MemoryUse before = allocator_use(run->device->allocator);
    const bool done = try_limits(run, report, error);
    allocator_forget_peaks(run->device->allocator);
    allocator_raise_peaks(run->device->allocator, &before);
    return done;
}

static void hold_against_limits(ProfileReport *report) {
    for (int i = 0; i < report->row_count; i++) {
        ProfileRow *row = &report->rows[i];
        double at_limit = (double)NAN;
        if (profile_is_product(row))
            at_limit = row->multiplications / report->product_limit[row->from];
        else if (moves_memory(row))
            at_limit = row->bytes / report->memory_limit;
        if (isnan(at_limit))
            continue;
        row->at_limit = at_limit;
        row->limited = row->seconds;
    }
}

static bool take_rows(const Run *run, const RunProfile *profile, ProfileReport *report,
                      Error *error) {
    const int count = profile->parts->touched_count;
    report->rows = calloc((size_t)(count ? count : 1), sizeof *report->rows);
    if (!report->rows)
        return error_fail(error, ERROR_MEMORY, "no memory for the profile");
    report->row_count = count;
    report->between = report->step_seconds;
    for (int i = 0; i < count; i++) {
        fill_row(&report->rows[i], run, profile, profile->parts->touched[i]);
        report->between -= report->rows[i].seconds;
    }
    qsort(report->rows, (size_t)count, sizeof *report->rows, longest_first);
    return true;
}

// As `auto` asks, of what trains; formats whose scales are shared gain in linear layers alone.
static void note_fastest(const Device *device, ProfileReport *report) {
    double gains[FORMAT_COUNT], most = 1;
    for (int i = 0; i < FORMAT_COUNT; i++) {
        const bool trains = findings_trains(device, (Format)i);
        gains[i] = trains ? device->backend->gain(device, (Format)i) : 0;
        if (!format_is_scaled((Format)i))
            most = fmax(most, gains[i]);
    }
    for (int i = 0; i < FORMAT_COUNT; i++)
        report->is_fastest[i] = gains[i] >= most;
}

bool profile_of_training(const Run *run, ProfileReport *report, Error *error) {
    RunProfile profile;
    *report = (ProfileReport){.memory_limit = (double)NAN,
                              .others = (double)NAN,
                              .all_seconds = (double)NAN,
                              .threads = run->device->threads};
    for (int i = 0; i < FORMAT_COUNT; i++)
        report->product_limit[i] = (double)NAN;
    if (!run_profile(run, &profile))
        return error_fail(
            error, ERROR_FAILED,
            "%s ended after %lld step%s, before one could be profiled: the first few "
            "only make what later ones find made; let it train for longer, with --set",
            run->experiment, (long long)run->step, run->step == 1 ? "" : "s");
    utf8_copy(report->name, sizeof report->name, run->experiment);
    utf8_copy(report->precision, sizeof report->precision, run->precision);
    utf8_copy(report->device, sizeof report->device, run->device->label);
    utf8_copy(report->device_name, sizeof report->device_name, run->device->name);
    report->steps = profile.steps;
    report->late = profile.late_steps;
    report->late_seconds = profile.late_seconds;
    report->step_seconds = profile.seconds / (double)profile.steps;
    if (!take_rows(run, &profile, report, error))
        return false;
    profile_add_casts(report);
    if (!measure_limits(run, report, error))
        return false;
    hold_against_limits(report);
    note_fastest(run->device, report);
    profile_find_words(report);
    return true;
}

// ---- groups -------------------------------------------------------------------------------------

bool profile_group(const ProfileReport *report, StepBy by, ProfileRow *rows, int *count,
                   Error *error) {
    const size_t room = (size_t)report->row_count + 1;
    StepPart *parts = calloc(room, sizeof *parts);
    StepLine *lines = calloc(room, sizeof *lines);
    ProfileRow *found = calloc(room, sizeof *found); // `rows` may be the report's own
    const bool done =
        (parts && lines && found) || error_fail(error, ERROR_MEMORY, "no memory for the profile");
    for (int i = 0; done && i < report->row_count; i++)
        profile_write_part(&report->rows[i], &parts[i]);
    *count = done ? step_lines(parts, report->row_count, by, lines) : 0;
    for (int i = 0; i < *count; i++) {
        profile_read_part(report, &lines[i].part, &found[i]);
        found[i].limited = lines[i].limited;
    }
    if (done)
        memcpy(rows, found, (size_t)*count * sizeof *rows);
    free(parts);
    free(lines);
    free(found);
    return done;
}
