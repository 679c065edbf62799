// What is known of two trainings in lock step: as text, as JSON, and read back of the history.
#include "store/twin.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "store/events.h"
#include "store/series.h"
#include "store/store_private.h"

const char *const apart_kind_names[APART_KINDS] = {
#define KIND(id, name) [APART_##id] = name,
    APART_KINDS_OF(KIND)
#undef KIND
};

bool twin_is_fact(const char *name) {
    size_t length = strlen(TWIN_FACT_TWIN);
    return strncmp(name, TWIN_FACT_TWIN, length) == 0 && (name[length] == 0 || name[length] == '.');
}

static int64_t whole_fact(const RunRecord *record, const char *name) {
    const char *fact = record_fact(record, name);
    return fact ? strtoll(fact, NULL, 10) : 0;
}

int64_t record_twin(const RunRecord *record) {
    bool is_twin = record_fact(record, TWIN_FACT_OF) != NULL;
    return whole_fact(record, is_twin ? TWIN_FACT_OF : TWIN_FACT_TWIN);
}

void twin_report_clear(TwinReport *report) {
    free(report->layers);
    *report = (TwinReport){.other = 0};
}

bool record_set_twin(RunRecord *record, const TwinReport *report, Error *error) {
    if (!report)
        return true;
    TwinReport *copy = calloc(1, sizeof *copy);
    ApartLayer *layers = calloc((size_t)report->layer_count + 1, sizeof *layers);
    if (!copy || !layers) {
        free(copy);
        free(layers);
        return error_fail(error, ERROR_MEMORY, "no memory for %d layers", report->layer_count);
    }
    *copy = *report;
    copy->layers = layers;
    if (report->layer_count > 0)
        memcpy(layers, report->layers, (size_t)report->layer_count * sizeof *layers);
    record->twin = copy;
    return true;
}

// ---- a place as text ----------------------------------------------------------------------------

static const char *const sides[] = {"this run", "the twin"};
static const char skipped[] = " alone skipped the step", of_layer[] = ": the gradients of ",
                  sampled[] = "sampled ", and_finite[] = ", and finite in ",
                  not_finite[] = " not finite in ", alone[] = " alone",
                  parted[] = " parted: ", explains[] = " apart, rounding explains ",
                  were[] = " were not finite";

static void describe_subject(const ApartPlace *place, char *text, size_t size) {
    if (place->layer[0])
        snprintf(text, size, "%s of %s", apart_kind_names[place->kind], place->layer);
    else
        snprintf(text, size, "the loss");
}

TwinExplained twin_explained(double within) {
    TwinExplained explained = {"all of it"};
    if (within < 1)
        snprintf(explained.text, sizeof explained.text, "%.2g", within);
    return explained;
}

void twin_place_text(const ApartPlace *place, char *text, size_t size) {
    char subject[RECORD_NAME_SIZE + 32];
    const char *side = sides[place->is_twin];
    describe_subject(place, subject, sizeof subject);
    switch (place->cause) {
    case APART_SKIPPED:
        if (place->layer[0])
            snprintf(text, size, "%s%s%s%s%s", side, skipped, of_layer, place->layer, were);
        else
            snprintf(text, size, "%s%s", side, skipped);
        break;
    case APART_INFINITE:
        snprintf(text, size, "%s%s %s%s%s%s%s", place->is_alone ? "" : sampled, subject,
                 place->layer[0] ? "are" : "is", not_finite, side,
                 place->is_alone ? alone : and_finite,
                 place->is_alone ? "" : sides[!place->is_twin]);
        break;
    case APART_BEYOND:
        snprintf(text, size, "%s%s%.3g%s%.3g", subject, parted, place->distance, explains,
                 place->within);
        break;
    case APART_NOT:
    case APART_CAUSES: snprintf(text, size, "nothing parted"); break;
    }
}

// "gradients of fc1" up to `end`; false: it is no such thing.
static bool read_subject(const char *text, const char *end, ApartPlace *place) {
    static const char of[] = " of ";
    if (strncmp(text, "the loss", strlen("the loss")) == 0)
        return true;
    for (int kind = 0; kind < APART_KINDS; kind++) {
        size_t length = strlen(apart_kind_names[kind]);
        if (strncmp(text, apart_kind_names[kind], length) != 0 ||
            strncmp(text + length, of, sizeof of - 1) != 0)
            continue;
        const char *name = text + length + sizeof of - 1;
        place->kind = (ApartKind)kind;
        snprintf(place->layer, sizeof place->layer, "%.*s", (int)(end > name ? end - name : 0),
                 name);
        return true;
    }
    return false;
}

// The last of them: a layer's name may say anything.
static const char *find_last(const char *text, const char *part) {
    const char *found = NULL;
    for (const char *next = text; (next = strstr(next, part)); next++)
        found = next;
    return found;
}

static bool read_skip(const char *text, ApartPlace *place) {
    for (int side = 0; side < 2; side++) {
        size_t length = strlen(sides[side]);
        if (strncmp(text, sides[side], length) != 0 ||
            strncmp(text + length, skipped, sizeof skipped - 1) != 0)
            continue;
        const char *layer = text + length + sizeof skipped - 1, *end = find_last(text, were);
        place->cause = APART_SKIPPED;
        place->is_twin = side == 1;
        if (strncmp(layer, of_layer, sizeof of_layer - 1) == 0 && end) {
            layer += sizeof of_layer - 1;
            snprintf(place->layer, sizeof place->layer, "%.*s",
                     (int)(end > layer ? end - layer : 0), layer);
        }
        return true;
    }
    return false;
}

bool twin_place_read(const char *text, ApartPlace *place) {
    *place = (ApartPlace){.cause = APART_NOT};
    if (read_skip(text, place))
        return true;
    const char *distance = find_last(text, parted), *within = find_last(text, explains);
    if (distance && within && within > distance) {
        place->cause = APART_BEYOND;
        place->distance = strtod(distance + sizeof parted - 1, NULL);
        place->within = strtod(within + sizeof explains - 1, NULL);
        return read_subject(text, distance, place);
    }
    const char *breaks = find_last(text, not_finite);
    if (!breaks)
        return false;
    place->cause = APART_INFINITE;
    place->distance = (double)INFINITY;
    const char *side = breaks + sizeof not_finite - 1;
    place->is_twin = strncmp(side, sides[1], strlen(sides[1])) == 0;
    place->is_alone = strncmp(text, sampled, sizeof sampled - 1) != 0;
    text += place->is_alone ? 0 : sizeof sampled - 1;
    return read_subject(text, breaks - strlen(" are"), place);
}

// ---- as JSON ------------------------------------------------------------------------------------

static void write_place(JsonWriter *json, const ApartPlace *place) {
    static const char *const causes[APART_CAUSES] = {[APART_BEYOND] = "beyond rounding",
                                                     [APART_SKIPPED] = "skipped",
                                                     [APART_INFINITE] = "not finite"};
    json_key(json, "parted");
    if (place->cause == APART_NOT) {
        json_null(json);
        return;
    }
    bool has_subject = place->cause != APART_SKIPPED;
    json_begin_object(json);
    json_put_integer(json, "step", place->step);
    json_put_text(json, "cause", causes[place->cause]);
    json_put_text(json, "layer", place->layer[0] ? place->layer : NULL);
    json_put_text(json, "in",
                  !has_subject      ? NULL
                  : place->layer[0] ? apart_kind_names[place->kind]
                                    : "loss");
    json_put_text(json, "who",
                  place->cause == APART_BEYOND ? NULL
                  : place->is_twin             ? "twin"
                                               : "run");
    json_put_known(json, "distance", place->distance, has_subject);
    json_put_known(json, "within", place->within, place->cause == APART_BEYOND);
    json_end_object(json);
}

static void write_distance(JsonWriter *json, const char *key, double last, double most,
                           bool is_known) {
    json_key(json, key);
    if (!is_known) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    json_put_number(json, "last", last);
    json_put_number(json, "most", most);
    json_end_object(json);
}

static void write_layers(JsonWriter *json, const TwinReport *report) {
    json_key(json, "layers");
    json_begin_array(json);
    for (int i = 0; i < report->layer_count; i++) {
        const ApartLayer *layer = &report->layers[i];
        json_begin_object(json);
        json_put_text(json, "name", layer->name);
        for (int kind = 0; kind < APART_KINDS; kind++)
            write_distance(json, apart_kind_names[kind], layer->last[kind], layer->most[kind],
                           layer->has[kind]);
        write_place(json, &layer->first);
        json_end_object(json);
    }
    json_end_array(json);
}

void twin_write_json(const TwinReport *report, JsonWriter *json) {
    if (!report) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    json_key(json, "run");
    if (report->other > 0)
        json_integer(json, report->other);
    else
        json_null(json);
    json_put_text(json, "role", report->is_twin ? "twin" : "run");
    json_put_text(json, "precision", report->precision);
    if (!report->is_twin) { // else the other has it
        json_put_integer(json, "steps", report->steps);
        json_put_integer(json, "alike", report->alike);
        write_distance(json, "loss", report->loss_last, report->loss_most, report->has_loss);
        write_place(json, &report->first);
        json_put_text(json, "ended", report->ended[0] ? report->ended : NULL);
        write_layers(json, report);
    }
    json_end_object(json);
}

// ---- of the history -----------------------------------------------------------------------------

static ApartLayer *layer_of(TwinReport *report, const char *name) {
    for (int i = 0; i < report->layer_count; i++)
        if (strcmp(report->layers[i].name, name) == 0)
            return &report->layers[i];
    return NULL;
}

static ApartLayer *add_layer(TwinReport *report, const char *name, Error *error) {
    ApartLayer *found = layer_of(report, name);
    if (found)
        return found;
    size_t size = ((size_t)report->layer_count + 1) * sizeof *found;
    ApartLayer *layers = realloc(report->layers, size);
    if (!layers) {
        error_fail(error, ERROR_MEMORY, "no memory for %d layers", report->layer_count + 1);
        return NULL;
    }
    report->layers = layers;
    found = &layers[report->layer_count++];
    *found = (ApartLayer){.first = {.cause = APART_NOT}};
    utf8_copy(found->name, sizeof found->name, name);
    return found;
}

// The largest of all points, an infinite one included.
static bool read_most(Store *store, int64_t run, const SeriesInfo *info, double *most,
                      Error *error) {
    enum { FEW = 64 };
    SeriesPoint *points;
    int count;
    if (!store_read_series(store, run, info->name, 0, info->last_step, FEW, &points, &count, error))
        return false;
    *most = 0;
    for (int i = 0; i < count; i++) {
        if (points[i].infs > 0)
            *most = (double)INFINITY;
        if (points[i].count > 0)
            *most = fmax(*most, points[i].max);
    }
    free(points);
    return true;
}

// "apart.gradients.fc1" -> its kind and layer.
static const char *split_name(const char *name, ApartKind *kind) {
    const char *rest = name + strlen(APART_SERIES) + 1;
    for (int i = 0; i < APART_KINDS; i++) {
        size_t length = strlen(apart_kind_names[i]);
        *kind = (ApartKind)i;
        if (strncmp(rest, apart_kind_names[i], length) == 0 && rest[length] == '.')
            return rest + length + 1;
    }
    return NULL;
}

static bool take_series(Store *store, int64_t run, const SeriesInfo *info, TwinReport *report,
                        Error *error) {
    ApartKind kind = APART_ACTIVATIONS;
    double most;
    bool is_loss = strcmp(info->name, APART_SERIES) == 0;
    bool is_ours = is_loss || strncmp(info->name, APART_SERIES ".", sizeof APART_SERIES) == 0;
    const char *name = is_ours && !is_loss ? split_name(info->name, &kind) : NULL;
    if (!is_loss && !name)
        return true;
    if (!read_most(store, run, info, &most, error))
        return false;
    if (is_loss) {
        report->has_loss = true;
        report->loss_last = info->last;
        report->loss_most = most;
        return true;
    }
    ApartLayer *layer = add_layer(report, name, error);
    if (!layer)
        return false;
    layer->has[kind] = true;
    layer->last[kind] = info->last;
    layer->most[kind] = most;
    return true;
}

static bool read_places(Store *store, int64_t run, TwinReport *report, Error *error) {
    Event *events;
    int count;
    if (!store_read_events(store, run, 0, 1U << EVENT_APART, 0, &events, &count, error))
        return false;
    for (int i = 0; i < count; i++) {
        ApartPlace place;
        if (!twin_place_read(events[i].text, &place))
            continue;
        place.step = events[i].step;
        ApartLayer *layer = layer_of(report, place.layer);
        if (layer && place.cause != APART_SKIPPED && layer->first.cause == APART_NOT)
            layer->first = place;
        if (report->first.cause == APART_NOT)
            report->first = place;
    }
    free(events);
    return true;
}

static bool read_layers(Store *store, int64_t run, TwinReport *report, Error *error) {
    SeriesInfo *series;
    int count;
    bool done = store_list_series(store, run, &series, &count, error);
    if (!done)
        return false;
    for (int i = 0; done && i < count; i++)
        done = take_series(store, run, &series[i], report, error);
    free(series);
    return done && read_places(store, run, report, error);
}

static bool note_removed(Store *store, TwinReport *report, Error *error) {
    const int64_t losses = store->losses;
    Query query;
    if (!query_begin(&query, store, "SELECT 1 FROM runs WHERE id = ?", error))
        return false;
    query_put_integer(&query, report->other);
    const bool is_there = query_next(&query);
    if (!query_end(&query, "the runs cannot be read", error))
        return false;
    report->is_gone = report->other > 0 && !is_there && store->losses == losses; // else hidden
    return true;
}

bool store_read_twin(Store *store, RunRecord *record, Error *error) {
    const char *precision = record_fact(record, TWIN_FACT_PRECISION);
    const char *ended = record_fact(record, TWIN_FACT_END);
    const char *most = record_fact(record, TWIN_FACT_MOST);
    if (!precision)
        return true;
    TwinReport *report = record->twin = calloc(1, sizeof *report);
    if (!report)
        return error_fail(error, ERROR_MEMORY, "no memory for what is known of the twin");
    report->is_twin = record_fact(record, TWIN_FACT_OF) != NULL;
    report->other = record_twin(record);
    report->steps = whole_fact(record, TWIN_FACT_STEPS);
    report->alike = whole_fact(record, TWIN_FACT_ALIKE);
    if (most)
        (void)twin_place_read(most, &report->most);
    utf8_copy(report->precision, sizeof report->precision, precision);
    utf8_copy(report->ended, sizeof report->ended, ended ? ended : "");
    return note_removed(store, report, error) &&
           (report->is_twin || read_layers(store, record->id, report, error));
}
