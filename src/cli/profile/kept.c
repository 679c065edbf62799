// A profile in the history: a training that was profiled is a run there, without curves, and what
// was found of it is read back as it was printed then.
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "cli/profile/profile.h"

static const char *name_of(Format format) {
    return format < FORMAT_COUNT ? format_name(format) : "";
}

// ---- into it ------------------------------------------------------------------------------------

void profile_write_part(const ProfileRow *row, StepPart *part) {
    *part = (StepPart){.calls = row->calls,
                       .seconds = row->seconds,
                       .multiplications = row->multiplications,
                       .bytes = row->bytes,
                       .at_limit = row->limited > 0 ? row->at_limit : 0,
                       .columns = row->columns};
    utf8_copy(part->layer, sizeof part->layer, row->layer);
    utf8_copy(part->operation, sizeof part->operation, row->operation ? row->operation : "");
    utf8_copy(part->way, sizeof part->way, row->way ? row->way : "");
    utf8_copy(part->from, sizeof part->from, name_of(row->from));
    utf8_copy(part->to, sizeof part->to, name_of(row->to));
}

static bool put(Store *store, int64_t run, const ProfileReport *report, Error *error) {
    StepProfile profile = {.steps = report->steps,
                           .late = report->late,
                           .late_seconds = report->late_seconds,
                           .others_busy = report->others,
                           .step_seconds = report->step_seconds,
                           .between = report->between,
                           .memory_limit = report->memory_limit,
                           .part_count = report->row_count};
    profile.parts = calloc((size_t)report->row_count + 1, sizeof *profile.parts);
    if (!profile.parts)
        return error_fail(error, ERROR_MEMORY, "no memory for the profile");
    for (int i = 0; i < report->row_count; i++)
        profile_write_part(&report->rows[i], &profile.parts[i]);
    bool done = store_put_step_profile(store, run, &profile, error);
    step_profile_clear(&profile);
    return done;
}

// The text that was trained; NULL where its file is another by now. Freed with free().
static char *read_script(const Run *run, size_t *length) {
    enum { MOST = 1 << 22 };
    char *text = malloc(MOST), hash[sizeof run->script.hash] = "";
    FILE *file = fopen(run->script.path, "rb");
    *length = text && file ? fread(text, 1, MOST, file) : 0;
    if (file)
        fclose(file);
    if (*length > 0)
        sha256_hex(hash, text, *length);
    if (*length > 0 && strcmp(hash, run->script.hash) == 0)
        return text;
    free(text);
    return NULL;
}

// All or nothing of it is there.
static bool add(Store *store, RunRecord *record, const Run *run, const ProfileReport *report,
                Error *error) {
    if (!store_begin(store, error))
        return false;
    size_t length;
    char *script = read_script(run, &length);
    if (!script)
        record->script_hash[0] = 0; // of no text that is kept
    bool done = store_add_run(store, record, script, length, error) &&
                put(store, record->id, report, error);
    free(script);
    if (done)
        return store_commit(store, error);
    store_rollback(store);
    return false;
}

bool profile_keep(Store *store, const Run *run, const ProfileReport *report, int64_t *id,
                  Error *error) {
    RunRecord record;
    if (!run_describe(run, &record, error))
        return false;
    record.id = 0;
    record.name[0] = 0; // the store finds one
    if (!record.tag[0])
        utf8_copy(record.tag, sizeof record.tag, "profile");
    bool done = add(store, &record, run, report, error);
    *id = record.id;
    record_clear(&record);
    return done;
}

// ---- out of it ----------------------------------------------------------------------------------

static const char *way_of(const char *name) {
    static const char *const ways[] = {"forward", "backward", "step"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(name, ways[i]) == 0)
            return ways[i];
    return NULL;
}

// Rows of one operation have the same pointer. -1: what this program does not know.
static int work_of(const char *name) {
    for (int work = 0; work < (int)PROFILE_WORKS; work++)
        if (strcmp(name, parts_work_name(work)) == 0)
            return work;
    return -1;
}

static const char *operation_of(const ProfileReport *report, int at, int work) {
    const StepPart *parts = report->kept.parts;
    if (work >= 0)
        return parts_work_name(work);
    for (int i = 0; i < at; i++)
        if (strcmp(parts[i].operation, parts[at].operation) == 0)
            return parts[i].operation;
    return parts[at].operation;
}

static void fill_row(const StepPart *part, const char *operation, int work, ProfileRow *row) {
    *row = (ProfileRow){.operation = operation,
                        .way = way_of(part->way),
                        .work = work,
                        .from = format_named(part->from),
                        .to = format_named(part->to),
                        .calls = part->calls,
                        .seconds = part->seconds,
                        .multiplications = part->multiplications,
                        .bytes = part->bytes,
                        .at_limit = part->at_limit,
                        .limited = part->at_limit > 0 ? part->seconds : 0,
                        .columns = part->columns};
    utf8_copy(row->layer, sizeof row->layer, part->layer);
}

void profile_read_part(const ProfileReport *report, const StepPart *part, ProfileRow *row) {
    const ProfileRow *alike = report->rows, *end = alike + report->row_count;
    while (alike < end && (!alike->operation || strcmp(alike->operation, part->operation) != 0))
        alike++;
    fill_row(part, alike < end ? alike->operation : NULL, alike < end ? alike->work : -1, row);
}

static void read_part(ProfileReport *report, int at) {
    const StepPart *part = &report->kept.parts[at];
    ProfileRow *row = &report->rows[at];
    const int work = work_of(part->operation);
    fill_row(part, operation_of(report, at, work), work, row);
    if (profile_is_product(row) && row->from < FORMAT_COUNT && row->at_limit > 0)
        report->product_limit[row->from] = row->multiplications / row->at_limit;
}

bool profile_of_kept(Store *store, const RunRecord *record, ProfileReport *report, bool *is_there,
                     Error *error) {
    profile_begin_record(record, report);
    if (!store_read_step_profile(store, record->id, &report->kept, error))
        return false;
    const StepProfile *kept = &report->kept;
    *is_there = kept->steps > 0 && kept->part_count > 0;
    if (!*is_there)
        return true;
    report->rows = calloc((size_t)kept->part_count, sizeof *report->rows);
    if (!report->rows)
        return error_fail(error, ERROR_MEMORY, "no memory for the profile");
    report->row_count = kept->part_count;
    report->steps = kept->steps;
    report->late = kept->late;
    report->late_seconds = kept->late_seconds;
    report->others = kept->others_busy;
    report->step_seconds = kept->step_seconds;
    report->between = kept->between;
    report->memory_limit = kept->memory_limit;
    report->casts = report->cast_bytes = report->cast_seconds = 0;
    for (int i = 0; i < report->row_count; i++)
        read_part(report, i);
    profile_add_casts(report);
    profile_find_words(report);
    return true;
}
