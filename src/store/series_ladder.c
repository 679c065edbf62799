// Ladders in memory: summing samples up level by level, and choosing what is worth writing.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "store/series_private.h"

static int64_t step_of(const void *element) {
    int64_t step;
    memcpy(&step, element, sizeof step);
    return step;
}

static char *open_at(const Ladder *ladder, int level) {
    return ladder->open + (size_t)level * ladder->kind->size;
}

static char *waiting_at(const Ladder *ladder, int level, int index) {
    return ladder->rungs[level].waiting + (size_t)index * ladder->kind->size;
}

bool ladder_make(Ladder *ladder, const LadderKind *kind, int64_t after, Error *error) {
    *ladder = (Ladder){.kind = kind, .last_step = after};
    ladder->open = calloc(LADDER_LEVELS + 1, kind->size);
    if (ladder->open)
        return true;
    ladder->kind = NULL;
    return error_fail(error, ERROR_MEMORY, "no memory for a series");
}

void ladder_clear(Ladder *ladder) {
    for (int level = 0; level < LADDER_LEVELS; level++)
        free(ladder->rungs[level].waiting);
    free(ladder->open);
    *ladder = (Ladder){0};
}

static bool is_always(const Ladder *ladder, int level, int64_t step) {
    return level == 0 && step - ladder->first_step < ladder->kind->always;
}

// The open bucket of the level above is partly made of it.
static bool is_in_tail(const Ladder *ladder, int level, int64_t step) {
    return ladder->kind->keeps_tail && level < LADDER_TOP &&
           ladder_begin(step, level + 1) == ladder_begin(ladder->last_step, level + 1);
}

// Too many wait: this level will not be cheap, so what it alone needs goes.
static void let_go(Ladder *ladder, int level) {
    Rung *rung = &ladder->rungs[level];
    int kept = 0, kept_written = 0;
    for (int i = 0; i < rung->count; i++) {
        const char *element = waiting_at(ladder, level, i);
        int64_t step = step_of(element);
        if (!is_always(ladder, level, step) && !is_in_tail(ladder, level, step))
            continue;
        memmove(waiting_at(ladder, level, kept++), element, ladder->kind->size);
        kept_written += i < rung->written;
    }
    rung->count = kept;
    rung->written = kept_written;
    rung->lost = true;
}

// Room for one more that waits at this level. What is written, but not known to be committed, does
// not count.
static bool make_room(Ladder *ladder, int level, Error *error) {
    Rung *rung = &ladder->rungs[level];
    const LadderKind *kind = ladder->kind;
    if (rung->count - rung->written >= (level == 0 ? kind->most_samples : kind->most_buckets)) {
        if (level == LADDER_TOP)
            return error_fail(error, ERROR_FULL,
                              "too much waits to be written to the history; is the disk full?");
        let_go(ladder, level);
    }
    if (rung->count < rung->capacity)
        return true;
    int capacity = rung->capacity ? 2 * rung->capacity : 16;
    char *waiting = realloc(rung->waiting, (size_t)capacity * kind->size);
    if (!waiting)
        return error_fail(error, ERROR_MEMORY, "no memory for points that wait to be written");
    rung->waiting = waiting;
    rung->capacity = capacity;
    return true;
}

static void wait_at(Ladder *ladder, int level, const void *element) {
    Rung *rung = &ladder->rungs[level];
    memcpy(waiting_at(ladder, level, rung->count++), element, ladder->kind->size);
}

static void add_to_open(Ladder *ladder, int level, const void *element) {
    Rung *rung = &ladder->rungs[level];
    char *open = open_at(ladder, level);
    if (rung->is_open) {
        ladder->kind->merge(open, element);
        return;
    }
    memcpy(open, element, ladder->kind->size);
    if (level > 0)
        ladder->kind->open(open, level);
    rung->is_open = true;
}

static void close_open(Ladder *ladder, int level) {
    Rung *rung = &ladder->rungs[level];
    const char *open = open_at(ladder, level);
    if (level > 0 || !ladder->is_copied)
        wait_at(ladder, level, open);
    if (level < LADDER_TOP)
        add_to_open(ladder, level + 1, open);
    rung->is_open = false;
}

bool ladder_add(Ladder *ladder, const void *sample, Error *error) {
    int64_t step = step_of(sample), last = ladder->last_step;
    if (step < 0 || step > LADDER_LAST_STEP)
        return error_fail(error, ERROR_FAILED, "%lld is no step", (long long)step);
    if (step < last || (step == last && !ladder->rungs[0].is_open))
        return error_fail(error, ERROR_FAILED, "step %lld is not after step %lld", (long long)step,
                          (long long)last);
    if (step > last) {
        // Every level whose bucket ends closes, the finest first. Room is made before anything
        // moves.
        int levels = 0;
        while (levels < LADDER_LEVELS && (levels == 0 || last < 0 ||
                                          ladder_begin(step, levels) != ladder_begin(last, levels)))
            levels++;
        bool closes = false;
        for (int level = 0; level < levels; level++) {
            closes = closes || ladder->rungs[level].is_open;
            if (closes && !make_room(ladder, level, error))
                return false;
        }
        for (int level = 0; level < levels; level++)
            if (ladder->rungs[level].is_open)
                close_open(ladder, level);
        ladder->last_step = step;
    }
    memcpy(open_at(ladder, 0), sample, ladder->kind->size);
    ladder->rungs[0].is_open = true;
    ladder->is_copied = false;
    ladder->is_changed = true;
    if (!ladder->is_begun) {
        ladder->first_step = step;
        ladder->is_begun = true;
    }
    return true;
}

void ladder_include(Ladder *ladder, const void *sample) {
    int64_t step = step_of(sample);
    int level = 1;
    while (level < LADDER_LEVELS && ladder_begin(step, level) != ladder_begin(step + 1, level))
        level++;
    if (level == LADDER_LEVELS)
        return;
    add_to_open(ladder, level, sample);
    ladder->is_changed = true;
}

// ---- writing ------------------------------------------------------------------------------------

// The finest level that is cheap: all coarser ones are written too.
static int choose_level(const Ladder *ladder, double seconds) {
    double budget = ladder->kind->rows_a_second * seconds;
    if (!(budget >= ladder->kind->least_rows))
        budget = ladder->kind->least_rows;
    for (int level = 0; level < LADDER_TOP; level++) {
        const Rung *rung = &ladder->rungs[level];
        if (rung->lost || rung->lost_written)
            continue;
        int count = rung->count;
        for (int i = 0;
             i < rung->count && is_always(ladder, level, step_of(waiting_at(ladder, level, i)));
             i++)
            count--;
        if (count <= budget)
            return level;
    }
    return LADDER_TOP;
}

// Those of the waiting that are due, neighbours together.
static bool write_waiting(Ladder *ladder, const LadderSource *source, int segment, int level,
                          bool is_cheap, Error *error) {
    int count = ladder->rungs[level].count, first = 0;
    for (int i = 0; i <= count; i++) {
        if (i < count) {
            int64_t step = step_of(waiting_at(ladder, level, i));
            if (is_cheap || is_always(ladder, level, step) || is_in_tail(ladder, level, step))
                continue;
        }
        if (i > first && !ladder->kind->write(source, level, segment,
                                              waiting_at(ladder, level, first), i - first, error))
            return false;
        first = i + 1;
    }
    return true;
}

// The open buckets as they are so far, each with those below it.
static bool write_open(Ladder *ladder, const LadderSource *source, int segment, int finest,
                       Error *error) {
    const LadderKind *kind = ladder->kind;
    char *sum = open_at(ladder, LADDER_LEVELS);
    _Alignas(max_align_t) char below[sizeof(LayerSample)];
    bool has_sum = ladder->rungs[0].is_open;
    if (has_sum)
        memcpy(sum, open_at(ladder, 0), kind->size);
    for (int level = 1; level < LADDER_LEVELS; level++) {
        if (ladder->rungs[level].is_open) {
            memcpy(below, sum, kind->size);
            memcpy(sum, open_at(ladder, level), kind->size);
            if (has_sum)
                kind->merge(sum, below);
            has_sum = true;
        } else if (has_sum) {
            kind->open(sum, level);
        }
        bool is_due = has_sum && (level >= finest || kind->keeps_tail);
        if (is_due && !kind->write(source, level, segment, sum, 1, error))
            return false;
    }
    return true;
}

bool ladder_write(Ladder *ladder, const LadderSource *source, int segment, double seconds,
                  Error *error) {
    _Static_assert(sizeof(LayerSample) >= sizeof(SeriesPoint), "write_open has room for both");
    if (!ladder->is_changed)
        return true;
    if (ladder->rungs[0].is_open && !ladder->is_copied) {
        if (!make_room(ladder, 0, error))
            return false;
        wait_at(ladder, 0, open_at(ladder, 0));
        ladder->is_copied = true;
    }
    int finest = choose_level(ladder, seconds);
    for (int level = 0; level < LADDER_LEVELS; level++)
        if (!write_waiting(ladder, source, segment, level, level >= finest, error))
            return false;
    if (!write_open(ladder, source, segment, finest, error))
        return false;
    for (int level = 0; level < LADDER_LEVELS; level++) {
        Rung *rung = &ladder->rungs[level];
        rung->written = rung->count;
        rung->lost_written = rung->lost_written || rung->lost;
        rung->lost = false;
    }
    ladder->is_changed_written = true;
    ladder->is_changed = false;
    return true;
}

void ladder_settle(Ladder *ladder, bool kept) {
    if (kept) {
        for (int level = 0; level < LADDER_LEVELS; level++) {
            Rung *rung = &ladder->rungs[level];
            rung->count -= rung->written;
            if (rung->written > 0 && rung->count > 0)
                memmove(rung->waiting, waiting_at(ladder, level, rung->written),
                        (size_t)rung->count * ladder->kind->size);
            rung->lost_written = false;
        }
    } else {
        ladder->is_changed = ladder->is_changed || ladder->is_changed_written;
    }
    for (int level = 0; level < LADDER_LEVELS; level++)
        ladder->rungs[level].written = 0;
    ladder->is_changed_written = false;
}

// ---- going on after a resume --------------------------------------------------------------------

bool ladder_rebuild(Ladder *ladder, const LadderSource *source, const Lineage *lineage,
                    int64_t from, Error *error) {
    const LadderKind *kind = ladder->kind;
    Rows rows = {.size = kind->size};
    bool done = false;
    int64_t next = from + 1, weight, end = next;
    // The open bucket of a level is what the level below has of it up to its own open bucket.
    for (int level = 1; level < LADDER_LEVELS; level++) {
        int64_t begin = ladder_begin(next, level);
        rows.count = 0;
        if (begin < end &&
            !ladder_read_level(kind, source, lineage, level - 1, begin, end - 1, 0, &rows, error))
            goto done;
        for (int i = 0; i < rows.count; i++) {
            add_to_open(ladder, level, rows_at(&rows, i));
            ladder->is_changed = true;
        }
        end = begin;
    }
    rows.count = 0;
    if (!ladder_read_edge(kind, source, lineage, false, &weight, &rows, error))
        goto done;
    if (rows.count > 0) {
        ladder->first_step = rows_step(&rows, 0);
        ladder->is_begun = true;
    }
    ladder->last_step = from;
    done = true;
done:
    rows_clear(&rows);
    return done;
}
