// A run as people name it: its number, its name or the beginning of it, @last.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/spelling.h"
#include "number/format.h"
#include "store/runs.h"
#include "store/step_profile.h"
#include "store/store_private.h"

enum { CANDIDATES = 5 };

static bool find_number(Store *store, const char *text, int64_t *id, Error *error) {
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    if (errno != 0)
        return true; // no run has so large a number
    Query query;
    if (!query_begin(&query, store, "SELECT id FROM runs WHERE id = ?", error))
        return false;
    query_put_integer(&query, number);
    while (query_next(&query))
        *id = query_integer(&query, 0);
    return query_end(&query, "the runs cannot be read", error);
}

// The run of that name; else, where that will do, all whose names begin so, of which there may be
// one.
static bool find_name(Store *store, const char *text, bool takes_beginning, int64_t *id,
                      Error *error) {
    char names[CANDIDATES * (RECORD_NAME_SIZE + 2)] = "";
    size_t used = 0;
    int count = 0;
    bool is_exact = false;
    Query query;
    if (!query_begin(&query, store,
                     "SELECT id, name, name = ?1 FROM runs WHERE name = ?1"
                     " OR (?3 AND substr(name, 1, length(?1)) = ?1)"
                     " ORDER BY name <> ?1, id DESC LIMIT ?2",
                     error))
        return false;
    query_put_text(&query, text);
    query_put_integer(&query, CANDIDATES + 1);
    query_put_integer(&query, takes_beginning);
    while (!is_exact && query_next(&query)) {
        char name[RECORD_NAME_SIZE];
        query_text(&query, 1, name, sizeof name);
        is_exact = query_integer(&query, 2) != 0;
        *id = query_integer(&query, 0);
        if (++count <= CANDIDATES)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     count > 1 ? ", " : "", name);
    }
    if (!query_end(&query, "the names of runs cannot be read", error))
        return false;
    if (count <= 1)
        return true;
    *id = 0;
    return error_fail(error, ERROR_USAGE, "%s: more than one run begins so: %s%s", text, names,
                      count > CANDIDATES ? ", ..." : "");
}

// The texts that somebody may have meant; `sql` gives one a row.
static bool offer_texts(Store *store, const char *sql, const char *wanted, char *best, size_t size,
                        unsigned *cost, Error *error) {
    Query query;
    if (!query_begin(&query, store, sql, error))
        return false;
    while (query_next(&query)) {
        Nearest nearest;
        nearest_begin(&nearest, wanted);
        nearest_offer(&nearest, query_word(&query, 0));
        if (nearest.best && nearest.cost < *cost) {
            *cost = nearest.cost;
            query_text(&query, 0, best, size);
        }
    }
    return query_end(&query, "the names of runs cannot be read", error);
}

static bool fail_name(Store *store, const char *text, Error *error) {
    char best[RECORD_NAME_SIZE] = "";
    unsigned cost = 1u << 30;
    if (!offer_texts(store, "SELECT name FROM runs ORDER BY id DESC LIMIT 10000", text, best,
                     sizeof best, &cost, error))
        return false;
    return error_fail(error, ERROR_USAGE, "%.100s: no such run%s%s: see mpbench ls", text,
                      best[0] ? "; did you mean " : "", best);
}

// ---- @last --------------------------------------------------------------------------------------

enum { PROFILES = 256 }; // that are known as such

typedef struct LastRun {
    const char *wanted;  // NULL: any
    int64_t id, profile; // of a training; of a profile, which is taken where there is none
    int64_t profiles[PROFILES];
    int profile_count;
} LastRun;

static bool is_profile(const LastRun *last, int64_t id) {
    for (int i = 0; i < last->profile_count; i++)
        if (last->profiles[i] == id)
            return true;
    return false;
}

static bool is_last(void *context, RunRecord *record, bool *enough, Error *error) {
    (void)error;
    LastRun *last = context;
    const char *wanted = last->wanted;
    const bool is_wanted = !wanted || strcmp(record->precision, format_usual_name(wanted)) == 0 ||
                           spelling_is_same(record->experiment, wanted) ||
                           strcmp(run_status_name(record->status), wanted) == 0;
    *enough = is_wanted && !is_profile(last, record->id);
    if (*enough)
        last->id = record->id;
    else if (is_wanted && last->profile == 0)
        last->profile = record->id;
    return true;
}

static bool fail_last(Store *store, const char *wanted, Error *error) {
    if (!wanted)
        return error_fail(error, ERROR_USAGE, "@last: the history is empty: mpbench run fills it");
    char best[RECORD_NAME_SIZE] = "";
    unsigned cost = 1u << 30;
    if (!offer_texts(
            store,
            "SELECT DISTINCT precision FROM runs UNION SELECT DISTINCT experiment FROM runs"
            " UNION VALUES ('running'), ('paused'), ('finished'), ('stopped'), ('failed'),"
            " ('dead')",
            wanted, best, sizeof best, &cost, error))
        return false;
    return error_fail(error, ERROR_USAGE,
                      "@last:%.60s: no run of such a precision, status or experiment%s%s", wanted,
                      best[0] && strcmp(best, wanted) != 0 ? "; did you mean " : "",
                      strcmp(best, wanted) != 0 ? best : "");
}

static bool find_last(Store *store, const char *text, int64_t *id, Error *error) {
    const char *rest = text + strlen("@last");
    if (strncmp(text, "@last", 5) != 0 || (rest[0] && rest[0] != ':') || strcmp(rest, ":") == 0)
        return error_fail(
            error, ERROR_USAGE,
            "%.60s: write @last, or @last: and a precision, a status or an experiment", text);
    LastRun last = {.wanted = rest[0] ? rest + 1 : NULL};
    // The very last run may well be a profile: who names what it is in means trainings.
    if (last.wanted &&
        !store_list_step_profiles(store, last.profiles, PROFILES, &last.profile_count, error))
        return false;
    if (!store_visit_runs(store, &(RunVisitor){&last, is_last}, error))
        return false;
    *id = last.id ? last.id : last.profile;
    return *id != 0 || fail_last(store, last.wanted, error);
}

// In a damaged file the list of names may be what is lost.
typedef struct NamedRun {
    const char *name;
    bool takes_beginning;
    int64_t id;
} NamedRun;

static bool is_named_so(void *context, RunRecord *record, bool *enough, Error *error) {
    (void)error;
    NamedRun *named = context;
    *enough = strcmp(record->name, named->name) == 0;
    if (*enough || (named->takes_beginning && named->id == 0 &&
                    strncmp(record->name, named->name, strlen(named->name)) == 0))
        named->id = record->id;
    return true;
}

static bool rescue_name(Store *store, const char *text, bool takes_beginning, int64_t *id,
                        Error *error) {
    NamedRun named = {text, takes_beginning, 0};
    if (!store_visit_runs(store, &(RunVisitor){&named, is_named_so}, error))
        return false;
    *id = named.id;
    return true;
}

static bool find_run(Store *store, const char *text, bool takes_beginning, int64_t *id,
                     Error *error) {
    *id = 0;
    if (!text[0])
        return error_fail(error, ERROR_USAGE, "no run is named: see mpbench ls");
    if (text[0] == '@')
        return find_last(store, text, id, error);
    // A number that no run has (any more) is not meant as the beginning of another's name.
    const bool is_number = text[strspn(text, "0123456789")] == 0;
    takes_beginning = takes_beginning && !is_number;
    if (is_number && !find_number(store, text, id, error))
        return false;
    if (*id == 0 && !find_name(store, text, takes_beginning, id, error))
        return false;
    if (*id == 0 && store_losses(store) > 0 &&
        !rescue_name(store, text, takes_beginning, id, error))
        return false;
    return *id != 0 || fail_name(store, text, error);
}

bool store_find_run(Store *store, const char *text, int64_t *id, Error *error) {
    return find_run(store, text, true, id, error);
}

bool store_find_whole_name(Store *store, const char *text, int64_t *id, Error *error) {
    return find_run(store, text, false, id, error);
}
