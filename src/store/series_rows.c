// Ladders in the file: which segment's rows are in force, and a window at the finest level that
// fits.
#include <stdlib.h>
#include <string.h>

#include "store/series_private.h"

// ---- lists of rows ------------------------------------------------------------------------------

void rows_clear(Rows *rows) {
    free(rows->items);
    free(rows->levels);
    *rows = (Rows){.size = rows->size};
}

void *rows_at(const Rows *rows, int index) {
    return rows->items + (size_t)index * rows->size;
}

int64_t rows_step(const Rows *rows, int index) {
    int64_t step;
    memcpy(&step, rows_at(rows, index), sizeof step);
    return step;
}

void *rows_add(Rows *rows, int level, Error *error) {
    if (!store_grow((void **)&rows->items, rows->count, &rows->capacity, rows->size, error) ||
        !store_grow((void **)&rows->levels, rows->count, &rows->level_capacity, 1, error))
        return NULL;
    rows->levels[rows->count] = (unsigned char)level;
    void *element = rows_at(rows, rows->count++);
    memset(element, 0, rows->size);
    return element;
}

static bool rows_copy(Rows *rows, const void *element, int level, Error *error) {
    void *copy = rows_add(rows, level, error);
    if (copy)
        memcpy(copy, element, rows->size);
    return copy != NULL;
}

// ---- levels -------------------------------------------------------------------------------------

bool ladder_read_level(const LadderKind *kind, const LadderSource *source, const Lineage *lineage,
                       int level, int64_t from, int64_t to, int most, Rows *rows, Error *error) {
    int64_t width = ladder_width(level);
    if (from < 0)
        from = 0;
    if (to > LADDER_LAST_STEP)
        to = LADDER_LAST_STEP;
    if (from > to)
        return true;
    int had = rows->count;
    for (int i = 0; i < lineage->count && (most == 0 || rows->count - had < most); i++) {
        const LineageSpan *span = &lineage->spans[i];
        // The buckets whose last step is the segment's own.
        int64_t first = ladder_begin(span->after + 1, level);
        int64_t last = ladder_begin(span->until + 1, level) - 1;
        if (span->until == LADDER_LAST_STEP)
            last = span->until;
        if (first < ladder_begin(from, level))
            first = ladder_begin(from, level);
        if (last > ladder_begin(to, level) + width - 1)
            last = ladder_begin(to, level) + width - 1;
        int left = most == 0 ? INT32_MAX : most - (rows->count - had);
        if (first <= last &&
            !kind->read(source, level, span->segment, first, last, left, rows, error))
            return false;
    }
    return true;
}

static int64_t add_weight(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

// ---- windows ------------------------------------------------------------------------------------

static bool touches(const LadderKind *kind, const void *element, int64_t step, int64_t from,
                    int64_t to) {
    return step <= to && step + (kind->width(element) - 1) >= from;
}

// `parents` with those of `level` + 1 replaced by their children of `level`, where these are all
// there: they add up to the parent. Outside of the window nothing is kept.
static bool replace_parents(const LadderKind *kind, int level, const Rows *parents,
                            const Rows *children, int64_t from, int64_t to, Rows *out,
                            Error *error) {
    int child = 0;
    for (int i = 0; i < parents->count; i++) {
        const void *parent = rows_at(parents, i);
        int64_t step = rows_step(parents, i);
        int first = 0, end = 0;
        if (parents->levels[i] == level + 1) {
            int64_t begin = ladder_begin(step, level + 1);
            while (child < children->count && rows_step(children, child) < begin)
                child++;
            int64_t weight = 0;
            for (first = end = child; end < children->count; end++) {
                if (rows_step(children, end) - begin >= ladder_width(level + 1))
                    break;
                weight = add_weight(weight, kind->weight(rows_at(children, end)));
            }
            child = end;
            if (weight < kind->weight(parent))
                end = first;
        }
        if (end == first && touches(kind, parent, step, from, to) &&
            !rows_copy(out, parent, parents->levels[i], error))
            return false;
        for (int j = first; j < end; j++)
            if (touches(kind, rows_at(children, j), rows_step(children, j), from, to) &&
                !rows_copy(out, rows_at(children, j), level, error))
                return false;
    }
    return true;
}

// Wider buckets than the file has any of, so that a very long run fits too.
static void widen(const LadderKind *kind, Rows *rows, int most) {
    for (int level = LADDER_LEVELS; rows->count > most && level < 20; level++) {
        int kept = 0;
        for (int i = 0; i < rows->count; i++) {
            char *element = rows_at(rows, i);
            int64_t step = rows_step(rows, i);
            if (kept > 0 &&
                ladder_begin(rows_step(rows, kept - 1), level) == ladder_begin(step, level)) {
                kind->merge(rows_at(rows, kept - 1), element);
                continue;
            }
            if (kept != i)
                memcpy(rows_at(rows, kept), element, rows->size);
            kind->open(rows_at(rows, kept++), level);
        }
        rows->count = kept;
    }
}

// Whether the points of the window itself may be few enough.
static bool points_may_fit(const LadderKind *kind, const Rows *rows, int64_t from, int64_t to,
                           int most) {
    int64_t inside = 0;
    for (int i = 0; i < rows->count; i++) {
        int64_t step = rows_step(rows, i);
        if (step >= from && to - step >= kind->width(rows_at(rows, i)) - 1)
            inside += rows->levels[i] == 1 ? kind->weight(rows_at(rows, i)) : 1;
        if (inside > most)
            return false;
    }
    return true;
}

static bool read_window(const LadderKind *kind, const LadderSource *source, const Lineage *lineage,
                        int64_t from, int64_t to, int most, Rows *rows, Error *error) {
    Rows now = {.size = kind->size}, children = {.size = kind->size}, finer = {.size = kind->size};
    bool done = false;
    if (from < 0)
        from = 0;
    if (to > LADDER_LAST_STEP)
        to = LADDER_LAST_STEP;
    if (from > to)
        return true;
    if (!ladder_read_level(kind, source, lineage, LADDER_TOP, from, to, 0, &now, error))
        goto done;
    // Rows that are read and then not wanted are bounded too.
    int limit = most > 0 ? most + most / 4 + 64 : 0;
    for (int level = LADDER_TOP - 1; level >= 0 && (most <= 0 || now.count <= most); level--) {
        int64_t first = INT64_MAX, last = -1;
        for (int i = 0; i < now.count; i++) {
            if (now.levels[i] != level + 1)
                continue;
            int64_t begin = ladder_begin(rows_step(&now, i), level + 1);
            first = begin < first ? begin : first;
            last = begin + ladder_width(level + 1) - 1;
        }
        if (first > last)
            break;
        if (level == 0 && most > 0 && kind->weighs_points &&
            !points_may_fit(kind, &now, from, to, most))
            break;
        children.count = finer.count = 0;
        if (!ladder_read_level(kind, source, lineage, level, first, last, limit, &children, error))
            goto done;
        if (limit > 0 && children.count >= limit)
            break;
        if (!replace_parents(kind, level, &now, &children, from, to, &finer, error))
            goto done;
        if (most > 0 && finer.count > most)
            break;
        Rows swap = now;
        now = finer;
        finer = swap;
    }
    // What touches the window only with its padding goes.
    for (int i = 0; i < now.count; i++)
        if (touches(kind, rows_at(&now, i), rows_step(&now, i), from, to) &&
            !rows_copy(rows, rows_at(&now, i), now.levels[i], error))
            goto done;
    if (most > 0)
        widen(kind, rows, most);
    done = true;
done:
    rows_clear(&now);
    rows_clear(&children);
    rows_clear(&finer);
    return done;
}

bool ladder_read(const LadderKind *kind, const LadderSource *source, const Lineage *lineage,
                 int64_t from, int64_t to, int most, Rows *rows, Error *error) {
    int64_t before = source->store->losses;
    int had = rows->count;
    if (!read_window(kind, source, lineage, from, to, most, rows, error))
        return false;
    if (source->store->losses == before)
        return true;
    rows->count =
        had; // damage was met: sums that lack a part were taken for whole ones, or left out
    bool done = ladder_rescue(kind, source, lineage, from, to, rows, error);
    if (most > 0)
        widen(kind, rows, most);
    return done;
}

bool ladder_read_edge(const LadderKind *kind, const LadderSource *source, const Lineage *lineage,
                      bool is_last, int64_t *weight, Rows *rows, Error *error) {
    Rows level_rows = {.size = kind->size};
    bool done = false;
    *weight = 0;
    int64_t from = 0, to = LADDER_LAST_STEP, expected = 0;
    for (int level = LADDER_TOP; level >= 0; level--) {
        level_rows.count = 0;
        if (!ladder_read_level(kind, source, lineage, level, from, to, 0, &level_rows, error))
            goto done;
        int64_t sum = 0;
        for (int i = 0; i < level_rows.count; i++)
            sum = add_weight(sum, kind->weight(rows_at(&level_rows, i)));
        if (level == LADDER_TOP)
            *weight = sum;
        if (level_rows.count == 0 || sum < expected)
            break; // the finer rows are not all there
        int edge = is_last ? level_rows.count - 1 : 0;
        rows->count = 0;
        if (!rows_copy(rows, rows_at(&level_rows, edge), level, error))
            goto done;
        expected = kind->weight(rows_at(rows, 0));
        from = ladder_begin(rows_step(rows, 0), level);
        to = from + ladder_width(level) - 1;
    }
    done = true;
done:
    rows_clear(&level_rows);
    return done;
}
