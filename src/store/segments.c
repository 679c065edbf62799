// Which rows a later start, resume or fork superseded: those of an earlier segment after its first
// step.
#include <stdlib.h>

#include "store/store_private.h"

bool segments_read(Store *store, int64_t run, SegmentCuts *cuts, Error *error) {
    *cuts = (SegmentCuts){0};
    Query query;
    int capacity = 0;
    if (!query_begin(&query, store,
                     "SELECT segment, after FROM segments WHERE run = ? ORDER BY segment", error))
        return false;
    query_put_integer(&query, run);
    while (query_next(&query)) {
        if (!store_grow((void **)&cuts->cuts, cuts->count, &capacity, sizeof *cuts->cuts, error)) {
            query_drop(&query);
            segments_clear(cuts);
            return false;
        }
        cuts->cuts[cuts->count++] =
            (struct SegmentCut){query_integer(&query, 0), query_integer(&query, 1)};
    }
    if (!query_end(&query, "the segments of the run cannot be read", error)) {
        segments_clear(cuts);
        return false;
    }
    for (int i = cuts->count - 2; i >= 0; i--)
        if (cuts->cuts[i + 1].after < cuts->cuts[i].after)
            cuts->cuts[i].after = cuts->cuts[i + 1].after;
    return true;
}

bool segments_is_superseded(const SegmentCuts *cuts, int64_t segment, int64_t step) {
    int low = 0, high = cuts->count; // the first later segment
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (cuts->cuts[middle].segment > segment)
            high = middle;
        else
            low = middle + 1;
    }
    return low < cuts->count && step > cuts->cuts[low].after;
}

void segments_clear(SegmentCuts *cuts) {
    free(cuts->cuts);
    *cuts = (SegmentCuts){0};
}
