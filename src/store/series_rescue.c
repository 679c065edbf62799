// Ladders of a file: where the next row is, and a window of a file that is damaged.
#include <stdlib.h>
#include <string.h>

#include "store/series_private.h"

// ---- the rows of a level, past damage -----------------------------------------------------------

typedef struct Level { // of one segment
    const LadderKind *kind;
    const LadderSource *source;
    int level, segment;
    int64_t last; // step
    Error *error;
    bool is_broken; // for another reason than damage
} Level;

// Rows from `from` on, `most` at most, up to the next damage; true where it met none.
static bool read_from(Level *level, int64_t from, int most, Rows *rows) {
    const Store *store = level->source->store;
    int64_t before = store->losses;
    level->is_broken =
        level->is_broken || !level->kind->read(level->source, level->level, level->segment, from,
                                               level->last, most, rows, level->error);
    return level->is_broken || store->losses == before;
}

static bool can_read_from(void *context, int64_t step) {
    Level *level = context;
    Rows rows = {.size = level->kind->size};
    bool done = read_from(level, step, 1, &rows);
    rows_clear(&rows);
    return done;
}

static void read_past(Level *level, int64_t from, int most, Rows *rows) {
    const RescueProbe probe = {level, can_read_from};
    while (from <= level->last && !read_from(level, from, most, rows)) {
        int64_t next = rows->count > 0 ? rows_step(rows, rows->count - 1) + 1 : from;
        if (rows->count >= most)
            return;
        from = rescue_skip(next > from ? next : from, level->last + 1, &probe);
    }
}

// The rows of a level that are the segment's: as ladder_read_level has them.
static Level level_of(const LadderKind *kind, const LadderSource *source, const LineageSpan *span,
                      int level, int64_t *first, Error *error) {
    *first = ladder_begin(span->after + 1, level);
    int64_t last =
        span->until == LADDER_LAST_STEP ? span->until : ladder_begin(span->until + 1, level) - 1;
    return (Level){kind, source, level, span->segment, last, error, false};
}

// ---- the next row -------------------------------------------------------------------------------

bool ladder_next_step(const LadderKind *kind, const LadderSource *source, const Lineage *lineage,
                      int64_t from, int64_t *step, Error *error) {
    Rows rows = {.size = kind->size};
    bool done = true;
    *step = -1;
    for (int i = 0; i < lineage->count && done; i++) {
        const LineageSpan *span = &lineage->spans[i];
        for (int level = 0; level < LADDER_LEVELS && done; level++) {
            int64_t first;
            Level rest = level_of(kind, source, span, level, &first, error);
            if (*step >= 0 && rest.last >= *step) // beyond what was found
                rest.last = *step - 1;
            rows.count = 0;
            read_past(&rest, first > from ? first : from, 1, &rows);
            done = !rest.is_broken;
            if (done && rows.count > 0)
                *step = rows_step(&rows, 0);
        }
    }
    rows_clear(&rows);
    return done;
}

// ---- a damaged window ---------------------------------------------------------------------------

enum { MOST_ROWS = 1 << 20 }; // of a level: what is shown of a damaged file may be bounded

// Whether one of the sorted rows begins in from .. to.
static bool has_step(const Rows *rows, int64_t from, int64_t to) {
    int low = 0, high = rows->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (rows_step(rows, middle) < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rows->count && rows_step(rows, low) <= to;
}

static int compare_steps(const void *a, const void *b) {
    int64_t first, second;
    memcpy(&first, a, sizeof first);
    memcpy(&second, b, sizeof second);
    return (first > second) - (first < second);
}

// What no finer row stands for.
static bool add_missing(const LadderKind *kind, const Rows *part, int level, int64_t from,
                        int64_t to, Rows *rows, Error *error) {
    int had = rows->count;
    Rows known = *rows; // as it is now: what is added stays out of the search
    for (int i = 0; i < part->count; i++) {
        const void *row = rows_at(part, i);
        int64_t step = rows_step(part, i), end = step + (kind->width(row) - 1);
        known.items = rows->items; // which may have moved
        known.count = had;
        if (end < from || step > to || has_step(&known, step, end))
            continue;
        void *copy = rows_add(rows, level, error);
        if (!copy)
            return false;
        memcpy(copy, row, rows->size);
    }
    if (rows->count > had)
        qsort(rows->items, (size_t)rows->count, rows->size, compare_steps);
    return true;
}

bool ladder_rescue(const LadderKind *kind, const LadderSource *source, const Lineage *lineage,
                   int64_t from, int64_t to, Rows *rows, Error *error) {
    Rows part = {.size = kind->size};
    bool done = true;
    for (int level = 0; level < LADDER_LEVELS && done; level++) {
        part.count = 0;
        for (int i = 0; i < lineage->count && done; i++) {
            int64_t first, begin = ladder_begin(from, level);
            Level here = level_of(kind, source, &lineage->spans[i], level, &first, error);
            here.last = here.last < to ? here.last : to;
            read_past(&here, first > begin ? first : begin, MOST_ROWS, &part);
            done = !here.is_broken;
        }
        done = done && add_missing(kind, &part, level, from, to, rows, error);
    }
    rows_clear(&part);
    return done;
}
