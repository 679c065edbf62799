// Segments of a run: which owns which steps (a later start, resume or fork supersedes what earlier
// ones have after its first step), and when each trained.
#include <stdlib.h>

#include "store/runs.h"
#include "store/series_private.h"

void lineage_clear(Lineage *lineage) {
    free(lineage->spans);
    *lineage = (Lineage){0};
}

static bool add_span(Lineage *lineage, int *capacity, int64_t segment, int64_t after,
                     Error *error) {
    if (after == 0)
        after = -1; // from the start on, what was logged before the first step included
    // What comes after it is superseded.
    while (lineage->count > 0 && lineage->spans[lineage->count - 1].after >= after)
        lineage->count--;
    if (lineage->count == 0)
        after = -1; // nobody was before it: a fork's first segment begins with all that it has
    else if (lineage->spans[lineage->count - 1].until > after)
        lineage->spans[lineage->count - 1].until = after;
    if (!store_grow((void **)&lineage->spans, lineage->count, capacity, sizeof *lineage->spans,
                    error))
        return false;
    lineage->spans[lineage->count++] =
        (LineageSpan){.segment = (int)segment, .after = after, .until = LADDER_LAST_STEP};
    return true;
}

bool lineage_read(Lineage *lineage, Store *store, int64_t run, Error *error) {
    *lineage = (Lineage){0};
    Query query;
    int capacity = 0;
    if (!query_begin(&query, store,
                     "SELECT segment, after FROM segments WHERE run = ?1 ORDER BY segment", error))
        return false;
    query_put_integer(&query, run);
    while (query_next(&query)) {
        int64_t segment = query_integer(&query, 0), after = query_integer(&query, 1);
        bool makes_sense =
            segment >= 0 && segment <= INT32_MAX && after >= 0 && after <= LADDER_LAST_STEP;
        if (makes_sense ? add_span(lineage, &capacity, segment, after, error) : rescue_lose(store))
            continue;
        query_drop(&query);
        lineage_clear(lineage);
        return makes_sense ? false
                           : error_fail(error, ERROR_HISTORY,
                                        "the history is damaged: segment %lld of run %lld makes "
                                        "no sense",
                                        (long long)segment, (long long)run);
    }
    // Where damage hides them all there was a first one at least.
    int64_t before = store->losses;
    if (query_end(&query, "the segments of a run cannot be read", error) &&
        (lineage->count > 0 || store->losses == before ||
         add_span(lineage, &capacity, 0, 0, error)))
        return true;
    lineage_clear(lineage);
    return false;
}

bool lineage_supersedes(const Lineage *lineage, int64_t segment, int64_t step) {
    int low = 0, high = lineage->count; // the first later segment
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (lineage->spans[middle].segment > segment)
            high = middle;
        else
            low = middle + 1;
    }
    return low < lineage->count && step > lineage->spans[low].after;
}

static bool add_stretch(Query *query, RunStretch **stretches, int *count, int *capacity,
                        Error *error) {
    if (!store_grow((void **)stretches, *count, capacity, sizeof **stretches, error))
        return false;
    RunStretch *stretch = &(*stretches)[(*count)++];
    stretch->from_ms = query_integer(query, 0);
    stretch->to_ms = query_integer(query, 1);
    if (stretch->to_ms < stretch->from_ms) // no event, or the clock was set back
        stretch->to_ms = stretch->from_ms;
    return true;
}

bool store_read_stretches(Store *store, int64_t run, RunStretch **stretches, int *count,
                          Error *error) {
    Query query;
    int capacity = 0;
    *stretches = NULL;
    *count = 0;
    if (!query_begin(&query, store,
                     "SELECT s.began_ms, (SELECT max(e.time_ms) FROM events e"
                     " WHERE e.run = s.run AND e.segment = s.segment)"
                     " FROM segments s WHERE s.run = ? ORDER BY s.segment",
                     error))
        return false;
    query_put_integer(&query, run);
    bool done = true;
    while (done && query_next(&query))
        done = add_stretch(&query, stretches, count, &capacity, error);
    if (!done)
        query_drop(&query);
    else if (query_end(&query, "the segments of a run cannot be read", error))
        return true;
    free(*stretches);
    *stretches = NULL;
    *count = 0;
    return false;
}
