#include "store/step_profile.h"

#include <stdlib.h>

#include "store/schema.h"
#include "store/store_private.h"

void step_profile_clear(StepProfile *profile) {
    free(profile->parts);
    *profile = (StepProfile){.steps = 0};
}

static const char cannot_write[] = "the profile of a run cannot be written";
static const char cannot_read[] = "the profile of a run cannot be read";

// ---- writing ------------------------------------------------------------------------------------

static bool clear_rows(Store *store, const char *sql, int64_t run, Error *error) {
    Query query;
    if (!query_begin(&query, store, sql, error))
        return false;
    query_put_integer(&query, run);
    query_next(&query);
    return query_end(&query, cannot_write, error);
}

static bool write_head(Store *store, int64_t run, const StepProfile *profile, Error *error) {
    Query query;
    if (!query_begin(&query, store, "INSERT INTO profiles VALUES (?, ?, ?, ?, ?, ?, ?, ?)", error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, profile->steps);
    query_put_integer(&query, profile->late);
    query_put_number(&query, profile->late_seconds);
    query_put_number(&query, profile->others_busy);
    query_put_number(&query, profile->step_seconds);
    query_put_number(&query, profile->between);
    query_put_number(&query, profile->memory_limit);
    query_next(&query);
    return query_end(&query, cannot_write, error);
}

static bool write_part(Store *store, int64_t run, int position, const StepPart *part,
                       Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "INSERT INTO profile_parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                     error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, position);
    query_put_text(&query, part->layer);
    query_put_text(&query, part->operation);
    query_put_text(&query, part->way);
    query_put_text(&query, part->from);
    query_put_text(&query, part->to);
    query_put_number(&query, part->calls);
    query_put_number(&query, part->seconds);
    query_put_number(&query, part->multiplications);
    query_put_number(&query, part->bytes);
    query_put_number(&query, part->at_limit);
    query_put_integer(&query, part->columns);
    query_next(&query);
    return query_end(&query, cannot_write, error);
}

static bool write_parts(Store *store, int64_t run, const StepProfile *profile, Error *error) {
    int own = profile->part_count;
    if (own > STEP_PROFILE_MOST_PARTS)
        own = STEP_PROFILE_MOST_PARTS - 1;
    for (int i = 0; i < own; i++)
        if (!write_part(store, run, i, &profile->parts[i], error))
            return false;
    StepPart others = {.operation = "others"};
    for (int i = own; i < profile->part_count; i++) {
        others.calls += profile->parts[i].calls;
        others.seconds += profile->parts[i].seconds;
    }
    return own == profile->part_count || write_part(store, run, own, &others, error);
}

bool store_put_step_profile(Store *store, int64_t run, const StepProfile *profile, Error *error) {
    if (!store_begin(store, error))
        return false;
    bool done = store_make_table(store, "profiles", error) &&
                store_make_table(store, "profile_parts", error) &&
                clear_rows(store, "DELETE FROM profiles WHERE run = ?", run, error) &&
                clear_rows(store, "DELETE FROM profile_parts WHERE run = ?", run, error) &&
                write_head(store, run, profile, error) && write_parts(store, run, profile, error);
    return store_end(store, done, error);
}

// ---- reading ------------------------------------------------------------------------------------

static bool read_head(Store *store, int64_t run, StepProfile *profile, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "SELECT steps, late, late_seconds, others_busy, step_seconds, "
                     "between_seconds, memory_limit FROM profiles WHERE run = ?",
                     error))
        return false;
    query_put_integer(&query, run);
    while (query_next(&query)) {
        profile->steps = query_integer(&query, 0);
        profile->late = query_integer(&query, 1);
        profile->late_seconds = query_number(&query, 2);
        profile->others_busy = query_number(&query, 3);
        profile->step_seconds = query_number(&query, 4);
        profile->between = query_number(&query, 5);
        profile->memory_limit = query_number(&query, 6);
    }
    return query_end(&query, cannot_read, error);
}

static void take_part(Query *query, StepPart *part) {
    *part = (StepPart){.calls = query_number(query, 5),
                       .seconds = query_number(query, 6),
                       .multiplications = query_number(query, 7),
                       .bytes = query_number(query, 8),
                       .at_limit = query_number(query, 9),
                       .columns = query_integer(query, 10)};
    query_text(query, 0, part->layer, sizeof part->layer);
    query_text(query, 1, part->operation, sizeof part->operation);
    query_text(query, 2, part->way, sizeof part->way);
    query_text(query, 3, part->from, sizeof part->from);
    query_text(query, 4, part->to, sizeof part->to);
}

static bool read_parts(Store *store, int64_t run, StepProfile *profile, Error *error) {
    Query query;
    int capacity = 0;
    if (!query_begin(&query, store,
                     "SELECT layer, operation, way, format, gives, calls, seconds, "
                     "multiplications, bytes, at_limit, columns FROM profile_parts WHERE run = ? "
                     "ORDER BY position LIMIT ?",
                     error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, STEP_PROFILE_MOST_PARTS);
    while (query_next(&query)) {
        if (!store_grow((void **)&profile->parts, profile->part_count, &capacity,
                        sizeof *profile->parts, error)) {
            query_drop(&query);
            return false;
        }
        take_part(&query, &profile->parts[profile->part_count++]);
    }
    return query_end(&query, cannot_read, error);
}

bool store_read_step_profile(Store *store, int64_t run, StepProfile *profile, Error *error) {
    bool has_head, has_parts;
    step_profile_clear(profile);
    if (!store_begin_reading(store, error))
        return false;
    bool done = store_has_table(store, "profiles", &has_head, error) &&
                store_has_table(store, "profile_parts", &has_parts, error) &&
                (!has_head || !has_parts ||
                 (read_head(store, run, profile, error) && read_parts(store, run, profile, error)));
    store_end_reading(store);
    return done;
}

static bool list_runs(Store *store, int64_t *runs, int most, int *count, Error *error) {
    Query query;
    if (!query_begin(&query, store, "SELECT run FROM profiles ORDER BY run DESC LIMIT ?", error))
        return false;
    query_put_integer(&query, most);
    while (query_next(&query))
        runs[(*count)++] = query_integer(&query, 0);
    return query_end(&query, cannot_read, error);
}

bool store_list_step_profiles(Store *store, int64_t *runs, int most, int *count, Error *error) {
    bool has_any;
    *count = 0;
    if (!store_begin_reading(store, error))
        return false;
    bool done = store_has_table(store, "profiles", &has_any, error) &&
                (!has_any || list_runs(store, runs, most, count, error));
    store_end_reading(store);
    return done;
}
