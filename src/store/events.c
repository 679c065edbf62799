// Rows of events.
#include "store/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_private.h"

static const char *const kind_names[EVENT_KINDS] = {
    [EVENT_SKIP] = "skip",           [EVENT_SCALE] = "scale",     [EVENT_COMMAND] = "command",
    [EVENT_DIAGNOSIS] = "diagnosis", [EVENT_MESSAGE] = "message", [EVENT_CHECKPOINT] = "checkpoint",
    [EVENT_PICTURE] = "picture",     [EVENT_APART] = "apart",     [EVENT_LIFE] = "life",
    [EVENT_FAULT] = "fault",         [EVENT_FLIGHT] = "flight"};

const char *event_kind_name(EventKind kind) {
    return kind >= 0 && kind < EVENT_KINDS ? kind_names[kind] : "unknown";
}

static bool find_kind(const char *name, EventKind *kind) {
    for (int i = 0; i < EVENT_KINDS; i++)
        if (strcmp(name, kind_names[i]) == 0) {
            *kind = (EventKind)i;
            return true;
        }
    return false;
}

bool store_add_event(Store *store, int64_t run, Event *event, Error *error) {
    Query query;
    if (!query_begin(
            &query, store,
            "INSERT INTO events (run, id, segment, step, time_ms, kind, layer, value, text)"
            " VALUES (?1, (SELECT coalesce(max(id), 0) + 1 FROM events WHERE run = ?1),"
            " ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id",
            error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, event->segment);
    query_put_integer(&query, event->step);
    query_put_integer(&query, event->time_ms);
    query_put_text(&query, event_kind_name(event->kind));
    query_put_text(&query, event->layer);
    query_put_number(&query, event->value);
    query_put_text(&query, event->text);
    while (query_next(&query))
        event->id = query_integer(&query, 0);
    return query_end(&query, "the event cannot be kept", error);
}

static void get_event(Query *query, Event *event) {
    *event = (Event){0};
    event->id = query_integer(query, 0);
    event->segment = (int)query_integer(query, 1);
    event->step = query_integer(query, 2);
    event->time_ms = query_integer(query, 3);
    query_text(query, 5, event->layer, sizeof event->layer);
    event->value = query_number(query, 6);
    query_text(query, 7, event->text, sizeof event->text);
}

typedef struct EventList {
    Event *events;
    int count, capacity;
} EventList;

#define EVENT_COLUMNS "id, segment, step, time_ms, kind, layer, value, text"

// Whether the row counts: not of a newer program, not superseded.
static bool is_in_force(Query *query, unsigned kinds, const Lineage *lineage, EventKind *kind) {
    return find_kind(query_word(query, 4), kind) &&
           (kinds ? kinds & 1u << *kind : *kind != EVENT_FLIGHT) &&
           !lineage_supersedes(lineage, query_integer(query, 1), query_integer(query, 2));
}

static bool keep_event(Query *query, EventKind kind, EventList *list, Error *error) {
    if (!store_grow((void **)&list->events, list->count, &list->capacity, sizeof(Event), error))
        return false;
    get_event(query, &list->events[list->count]);
    list->events[list->count++].kind = kind;
    return true;
}

static bool read_events(Store *store, int64_t run, int64_t after, unsigned kinds, int most,
                        const Lineage *lineage, EventList *list, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "SELECT " EVENT_COLUMNS " FROM events WHERE run = ? AND id > ? ORDER BY id",
                     error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, after);
    while ((most == 0 || list->count < most) && query_next(&query)) {
        EventKind kind;
        if (is_in_force(&query, kinds, lineage, &kind) && !keep_event(&query, kind, list, error)) {
            query_drop(&query);
            return false;
        }
    }
    return query_end(&query, "the events of the run cannot be read", error);
}

// What damage hides of the end is no reason to show nothing: from the oldest on, then the last.
static bool rescue_last(Store *store, int64_t run, int most, const Lineage *lineage,
                        EventList *list, int64_t *total, Error *error) {
    if (!read_events(store, run, 0, 0, 0, lineage, list, error))
        return false;
    *total = list->count;
    for (int i = 0, j = list->count - 1; i < j; i++, j--) { // the newest first, as read_last does
        Event event = list->events[i];
        list->events[i] = list->events[j];
        list->events[j] = event;
    }
    if (list->count > most)
        list->count = most;
    return true;
}

// From the newest on; those beyond `most` are only counted.
static bool read_last(Store *store, int64_t run, int most, const Lineage *lineage, EventList *list,
                      int64_t *total, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "SELECT " EVENT_COLUMNS " FROM events WHERE run = ? ORDER BY id DESC", error))
        return false;
    query_put_integer(&query, run);
    while (query_next(&query)) {
        EventKind kind;
        if (!is_in_force(&query, 0, lineage, &kind))
            continue;
        ++*total;
        if (list->count < most && !keep_event(&query, kind, list, error)) {
            query_drop(&query);
            return false;
        }
    }
    return query_end(&query, "the events of the run cannot be read", error);
}

bool store_read_events(Store *store, int64_t run, int64_t after, unsigned kinds, int most,
                       Event **events, int *count, Error *error) {
    Lineage lineage = {0};
    EventList list = {0};
    *events = NULL;
    *count = 0;
    if (!store_begin_reading(store, error))
        return false;
    bool done = lineage_read(&lineage, store, run, error) &&
                read_events(store, run, after, kinds, most, &lineage, &list, error);
    store_end_reading(store);
    lineage_clear(&lineage);
    if (!done) {
        free(list.events);
        return false;
    }
    *events = list.events;
    *count = list.count;
    return true;
}

bool store_read_last_events(Store *store, int64_t run, int most, Event **events, int *count,
                            int64_t *total, Error *error) {
    Lineage lineage = {0};
    EventList list = {0};
    *events = NULL;
    *count = 0;
    *total = 0;
    if (!store_begin_reading(store, error))
        return false;
    bool done =
        lineage_read(&lineage, store, run, error) &&
        (store->rescues ? rescue_last : read_last)(store, run, most, &lineage, &list, total, error);
    store_end_reading(store);
    lineage_clear(&lineage);
    if (!done) {
        free(list.events);
        return false;
    }
    for (int i = 0, j = list.count - 1; i < j; i++, j--) {
        Event event = list.events[i];
        list.events[i] = list.events[j];
        list.events[j] = event;
    }
    *events = list.events;
    *count = list.count;
    return true;
}

bool store_picture_path(const Store *store, int64_t run, const Event *event,
                        char path[STORE_PATH_SIZE + EVENT_TEXT_SIZE]) {
    enum { FOLDER = 24 };
    char root[STORE_PATH_SIZE];
    const int length = (int)strcspn(event->text, " "); // behind it, what is to be said of it
    store_checkpoint_root(store, root);
    if (length == 0 || event->text[0] == '.' || memchr(event->text, '/', (size_t)length))
        return false;
    int used = snprintf(path, STORE_PATH_SIZE + EVENT_TEXT_SIZE, "%s/%" PRId64 "/%.*s", root, run,
                        length, event->text);
    return used < STORE_PATH_SIZE + EVENT_TEXT_SIZE - FOLDER;
}
