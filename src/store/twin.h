// store/twin.h: what is known of two trainings in lock step: how far apart they are and where they
// first parted. run/ fills one while they train; here it is read back of the history.
//
// The pair is two runs, each of which names the other by a fact. All that is measured is kept with
// the run that was asked for: series named `apart` and `apart.KIND.LAYER`, events of their own kind
// where a layer parted, and facts.
#pragma once

#include "base/json.h"
#include "store/record.h"
#include "store/store.h"

// Of the run: its twin's number. Of the twin: the run's.
#define TWIN_FACT_TWIN      "twin"
#define TWIN_FACT_OF        "twin.of"
#define TWIN_FACT_PRECISION "twin.precision" // of the other
#define TWIN_FACT_STEPS     "twin.steps"     // that were held against each other
#define TWIN_FACT_ALIKE     "twin.alike"     // steps in which all was the same to the last bit
#define TWIN_FACT_MOST      "twin.most"      // twin_place_text of TwinReport.most
#define TWIN_FACT_END       "twin.ended"     // how the other ended, if not like this one

// In the order in which a step makes them.
#define APART_KINDS_OF(X) \
    X(ACTIVATIONS, "activations") X(GRADIENTS, "gradients") X(WEIGHTS, "weights")
typedef enum ApartKind {
#define KIND(id, name) APART_##id,
    APART_KINDS_OF(KIND)
#undef KIND
        APART_KINDS
} ApartKind;
extern const char *const apart_kind_names[APART_KINDS];

bool twin_is_fact(const char *name); // one of these
// The run that it was trained beside, as its facts say; 0: none.
int64_t record_twin(const RunRecord *record);

#define APART_SERIES "apart" // of the loss; with ".weights.fc1" and such of layers

typedef enum ApartCause {
    APART_NOT,      // never
    APART_BEYOND,   // farther than rounding explains
    APART_SKIPPED,  // one skipped an update that the other made
    APART_INFINITE, // one is not finite where the other is
    APART_CAUSES
} ApartCause;

typedef struct ApartPlace { // where a layer, or the pair, first parted
    ApartCause cause;
    int64_t step;
    ApartKind kind;               // of APART_BEYOND and APART_INFINITE
    bool is_twin;                 // of APART_SKIPPED and APART_INFINITE: the twin did, or is
    bool is_alone;                // of APART_INFINITE: all of the other is finite, not what was
                                  // sampled of it alone
    double distance, within;      // what it was, and what rounding explains
    char layer[RECORD_NAME_SIZE]; // "": the loss
} ApartPlace;

#define TWIN_NO_LAYER "(no layer)" // what lies outside of all

typedef struct ApartLayer {
    char name[RECORD_NAME_SIZE];
    bool has[APART_KINDS];
    double last[APART_KINDS], most[APART_KINDS]; // distances; infinite: see APART_INFINITE
    ApartPlace first;
} ApartLayer;

struct TwinReport {
    int64_t other;      // run; 0: it is in no history
    bool is_gone;       // that one was removed
    bool is_twin;       // this run is the twin: the other has the rest
    char precision[32]; // of the other
    int64_t steps;      // that were held against each other,
    int64_t alike;      // and in how many of them nothing differed in a bit
    bool has_loss;
    double loss_last, loss_most; // distances; the last is NaN where neither loss is finite
    ApartPlace first;
    ApartPlace most; // the largest distance that rounding explains, and how much it does
    char ended[RECORD_TEXT_SIZE]; // how the other ended, if not like this one; "": alike
    ApartLayer *layers;
    int layer_count;
};

void twin_report_clear(TwinReport *report);
// A copy, the record's; NULL: none.
bool record_set_twin(RunRecord *record, const TwinReport *report, Error *error) MUST_CHECK;

// How far apart rounding explains, in words: "0.014", or "all of it" where two cannot be farther.
typedef struct TwinExplained {
    char text[16];
} TwinExplained;
TwinExplained twin_explained(double within);

// The text of an event (EVENT_APART), and the place read back of one; false: it says none.
void twin_place_text(const ApartPlace *place, char *text, size_t size);
bool twin_place_read(const char *text, ApartPlace *place);

// The value of the key "twin": an object, or null where there is no report.
void twin_write_json(const TwinReport *report, JsonWriter *json);

// What the history has of a run that was trained beside another, into record->twin; NULL there: it
// was not.
bool store_read_twin(Store *store, RunRecord *record, Error *error) MUST_CHECK;
