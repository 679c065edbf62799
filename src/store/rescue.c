// Reading past damage: what of a file can still be reached.
//
// Every statement of a store that rescues ends at the first damaged page that it meets, as if there
// were no more rows (query_end). What is here asks again behind it.
#include <stdlib.h>

#include "store/runs.h"
#include "store/store_private.h"

bool rescue_lose(Store *store) {
    if (store->rescues)
        store->losses++;
    return store->rescues;
}

// ---- behind the damage --------------------------------------------------------------------------

int64_t rescue_skip(int64_t from, int64_t last, const RescueProbe *probe) {
    int64_t bad = from, at = from, gap = 1;
    while (!probe->reads(probe->context, at)) {
        if (at == last)
            return last;
        bad = at;
        at = last - at > gap ? at + gap : last;
        gap = gap < last / 2 ? 2 * gap : last;
    }
    while (at - bad > 1) { // the first that can be read lies after `bad`, and is `at` or before
        int64_t middle = bad + (at - bad) / 2;
        if (probe->reads(probe->context, middle))
            at = middle;
        else
            bad = middle;
    }
    return at;
}

// ---- runs ---------------------------------------------------------------------------------------

typedef struct Ids {
    Store *store;
    int64_t *ids;
    int count, capacity;
    Error *error;
    bool is_broken; // for another reason than damage
} Ids;

// Ids from `from` on, up to the next damage; true where it met none. At most `most`.
static bool read_ids(Ids *ids, int64_t from, int64_t most, bool keeps) {
    Query query;
    int64_t before = ids->store->losses;
    if (!query_begin(&query, ids->store,
                     "SELECT id FROM runs NOT INDEXED WHERE id >= ? ORDER BY id LIMIT ?",
                     ids->error)) {
        ids->is_broken = true;
        return true;
    }
    query_put_integer(&query, from);
    query_put_integer(&query, most);
    while (query_next(&query) && !ids->is_broken) {
        if (!keeps)
            continue;
        ids->is_broken = !store_grow((void **)&ids->ids, ids->count, &ids->capacity,
                                     sizeof *ids->ids, ids->error);
        if (!ids->is_broken)
            ids->ids[ids->count++] = query_integer(&query, 0);
    }
    if (!query_end(&query, "the runs cannot be listed", ids->is_broken ? NULL : ids->error))
        ids->is_broken = true;
    return ids->is_broken || ids->store->losses == before;
}

static bool can_read_from(void *context, int64_t id) {
    return read_ids(context, id, 1, false);
}

static void list_ids(Ids *ids) {
    const RescueProbe probe = {ids, can_read_from};
    int64_t from = 1;
    while (!read_ids(ids, from, -1, true)) {
        int64_t next = ids->count > 0 ? ids->ids[ids->count - 1] + 1 : from;
        from = rescue_skip(next > from ? next : from, INT64_MAX, &probe);
        if (from == INT64_MAX)
            return;
    }
}

bool rescue_visit_runs(Store *store, int64_t below, const RunVisitor *visitor, Error *error) {
    Ids ids = {.store = store, .error = error};
    list_ids(&ids);
    bool done = !ids.is_broken, enough = false;
    for (int i = ids.count - 1; i >= 0 && done && !enough; i--) {
        RunRecord record;
        Error why = {0};
        if (below > 0 && ids.ids[i] >= below)
            continue;
        if (store_read_run(store, ids.ids[i], &record, &why)) {
            done = visitor->use(visitor->context, &record, &enough, error);
            record_clear(&record);
        } else if (why.code != ERROR_USAGE) { // else its row is what was lost
            done = error_fail(error, why.code, "%s", why.text);
        }
    }
    free(ids.ids);
    return done;
}
