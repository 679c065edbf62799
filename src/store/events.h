// store/events.h: what happened to a run, one row each, never summed up: skipped steps, changes of
// the scale, commands and their effect, diagnoses, messages of the script, checkpoints.
#pragma once

#include "store/record.h"
#include "store/store.h"

typedef enum EventKind {
    EVENT_SKIP,    // a step that was not applied: the layer to blame; ", scale BEFORE -> AFTER" or
                   // " at scale BEFORE" in the text, where there is a scale; all layers that were
                   // touched at its end, which skip_layers_read (store/skips.h) reads
    EVENT_SCALE,   // the scale moved without a skip
    EVENT_COMMAND, // what a command did
    EVENT_DIAGNOSIS,
    EVENT_MESSAGE, // run:event
    EVENT_CHECKPOINT,
    EVENT_PICTURE, // run:picture: its name as the layer, the file in the run's folder below
                   // store_checkpoint_root as the text
    EVENT_APART,   // a layer parted from that of the twin: store/twin.h reads the text
    EVENT_LIFE,    // started, resumed, paused, stopped, ended, disk full, ...
    EVENT_FAULT,   // the first number that is not finite and should be: in one line
    EVENT_FLIGHT,  // what the flight recorder kept of it (store/flight.h): the name of a value as
                   // the layer, the value as the text; in no list unless it is asked for
    EVENT_KINDS
} EventKind;

const char *event_kind_name(EventKind kind);

// How an EVENT_LIFE begins that says which layers were set to other formats: of the steps up to its
// own nobody knows what they computed in.
#define EVENT_FORMATS_CHANGED "precision changed after step "

enum { EVENT_TEXT_SIZE = RECORD_DIAGNOSIS_SIZE, EVENT_LAYER_SIZE = 64 };
_Static_assert(EVENT_TEXT_SIZE >= ERROR_TEXT_SIZE + 128, "holds an error and the words around it");

typedef struct Event {
    int64_t id; // rising within a run
    int64_t step, time_ms;
    int segment;
    EventKind kind;
    double value; // of EVENT_SKIP and EVENT_SCALE: the scale after it; NaN otherwise
    char layer[EVENT_LAYER_SIZE];
    char text[EVENT_TEXT_SIZE]; // one line, from outside
} Event;

bool store_add_event(Store *store, int64_t run, Event *event, Error *error) MUST_CHECK; // sets id
// Events with id > after, in order, `most` at most (0: all), of the kinds in `kinds` (bits
// 1 << kind; 0: all but EVENT_FLIGHT). Those that a resume superseded are left out. The caller
// frees the array.
bool store_read_events(Store *store, int64_t run, int64_t after, unsigned kinds, int most,
                       Event **events, int *count, Error *error) MUST_CHECK;
// Where the file of an EVENT_PICTURE lies; false: nowhere that a run would have put it.
bool store_picture_path(const Store *store, int64_t run, const Event *event,
                        char path[STORE_PATH_SIZE + EVENT_TEXT_SIZE]);
// The last `most` of them, in order, and how many there are in all. The caller frees the array.
bool store_read_last_events(Store *store, int64_t run, int most, Event **events, int *count,
                            int64_t *total, Error *error) MUST_CHECK;
