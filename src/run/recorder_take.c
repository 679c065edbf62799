// What came through the ring, put together for the store: points, statistics a layer, events.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/recorder_private.h"
#include "run/run_private.h"
#include "run/twin_private.h"

// The bins of the gradients' histograms are those of the history, one for one.
_Static_assert((int)LAYER_BINS == (int)EXPONENT_BINS &&
                   (int)LAYER_LOWEST_EXPONENT == (int)EXPONENT_LOWEST,
               "the device counts other exponents than the history keeps");

// The statistics of one layer of the step that is being put together.
struct LayerSum {
    LayerSample sample;
    bool is_touched;
    int next; // touched layer; -1: the last
    uint64_t bins[LAYER_BINS];
};

bool intake_make(RecorderIntake *intake, Recorder *recorder, Error *error) {
    *intake = (RecorderIntake){.recorder = recorder, .first_touched = -1};
    intake->names = calloc(RUN_MAX_SERIES + TWIN_SERIES, sizeof *intake->names);
    return intake->names || error_fail(error, ERROR_MEMORY, "no memory for a recorder");
}

void intake_clear(RecorderIntake *intake) {
    free(intake->names);
    free(intake->layers);
    free(intake->events);
    free(intake->factors);
    free(intake->backlog);
    *intake = (RecorderIntake){.recorder = NULL};
}

static LayerSum *layer_sum(RecorderIntake *intake, int layer, Error *error) {
    if (layer >= intake->layer_count) {
        int count = layer + 16;
        LayerSum *layers = realloc(intake->layers, (size_t)count * sizeof *layers);
        if (!layers) {
            error_fail(error, ERROR_MEMORY, "no memory for the statistics of %d layers", count);
            return NULL;
        }
        for (int i = intake->layer_count; i < count; i++)
            layers[i].is_touched = false;
        intake->layers = layers;
        intake->layer_count = count;
    }
    LayerSum *sum = &intake->layers[layer];
    if (!sum->is_touched) {
        *sum =
            (LayerSum){.sample = {.width = 1, .update_ratio = (double)NAN, .seconds = (double)NAN},
                       .is_touched = true,
                       .next = intake->first_touched};
        intake->first_touched = layer;
    }
    return sum;
}

static bool take_gradient(RecorderIntake *intake, const PutGradient *put, Error *error) {
    LayerSum *sum = layer_sum(intake, put->layer, error);
    if (!sum)
        return false;
    LayerSample *sample = &sum->sample;
    if (!sample->precision[0])
        utf8_copy(sample->precision, sizeof sample->precision, format_name(put->format));
#define COUNT(name) sample->name += (int64_t)put->name;
#define SUM(name)   sample->name += put->name;
#define MOST(name)  sample->name = fmax(sample->name, (double)put->name);
#include "number/statistics.def"
    for (int i = 0; i < put->bins; i++)
        sum->bins[put->first_bin + i] += (uint64_t)put->exponents[i] << put->shift;
    return true;
}

static bool take_profile(RecorderIntake *intake, const PutProfile *put, Error *error) {
    LayerSum *sum = layer_sum(intake, put->layer, error);
    if (!sum)
        return false;
    sum->sample.seconds = put->seconds;
    sum->sample.update_ratio = put->update_ratio;
    return true;
}

static void settle_bins(LayerSum *sum) {
    uint64_t most = 0;
    int shift = 0;
    for (int i = 0; i < LAYER_BINS; i++)
        most = sum->bins[i] > most ? sum->bins[i] : most;
    while (most >> shift > UINT32_MAX)
        shift++;
    for (int i = 0; i < LAYER_BINS; i++)
        sum->sample.bins[i] = (uint32_t)(sum->bins[i] >> shift);
    sum->sample.bins_are_scaled = shift > 0;
}

static bool take_event(RecorderIntake *intake, const PutEvent *put, Error *error) {
    if (intake->event_count == intake->event_size) {
        int size = intake->event_size ? 2 * intake->event_size : 64;
        Event *events = realloc(intake->events, (size_t)size * sizeof *events);
        if (!events)
            return error_fail(error, ERROR_MEMORY, "no memory for %d events", size);
        intake->events = events;
        intake->event_size = size;
    }
    Event *event = &intake->events[intake->event_count++];
    *event = put->event;
    event->segment = series_writer_segment(intake->recorder->series_writer);
    return true;
}

static bool take_factors(RecorderIntake *intake, const PutFactors *put, Error *error) {
    if (intake->factor_count == MOST_FACTORS)
        return error_fail(error, ERROR_FULL, "%d counts of factors wait for a commit",
                          MOST_FACTORS);
    if (intake->factor_count == intake->factor_size) {
        int size = intake->factor_size ? 2 * intake->factor_size : 64;
        LayerFactors *factors = realloc(intake->factors, (size_t)size * sizeof *factors);
        if (!factors)
            return error_fail(error, ERROR_MEMORY, "no memory for %d counts of factors", size);
        intake->factors = factors;
        intake->factor_size = size;
    }
    intake->factors[intake->factor_count++] = put->factors;
    return true;
}

// What the store will not have is left out, and the first of it told of: it ends nothing.
static bool leave_out(RecorderIntake *intake, int64_t step, const Error *why, Error *error) {
    PutEvent put = {
        .kind = PUT_EVENT,
        .event = {
            .step = step, .time_ms = run_wall_ms(), .kind = EVENT_LIFE, .value = (double)NAN}};
    if (why->code != ERROR_FAILED) {
        *error = *why;
        return false;
    }
    if (intake->has_left_out)
        return true;
    intake->has_left_out = true;
    snprintf(put.event.text, sizeof put.event.text, "left out of the history: %.250s", why->text);
    return take_event(intake, &put, error);
}

static bool take_value(RecorderIntake *intake, const char *name, int64_t step, double value,
                       Error *error) {
    Error why = {0};
    return series_add(intake->recorder->series_writer, name, step, value, &why) ||
           leave_out(intake, step, &why, error);
}

static bool take_layer(RecorderIntake *intake, int layer, const LayerSample *sample, Error *error) {
    Error why = {0};
    return layers_add(intake->recorder->series_writer, layer, sample, &why) ||
           leave_out(intake, sample->step, &why, error);
}

static bool take_step(RecorderIntake *intake, const PutStep *put, Error *error) {
    for (; intake->first_touched >= 0;
         intake->first_touched = intake->layers[intake->first_touched].next) {
        LayerSum *sum = &intake->layers[intake->first_touched];
        sum->is_touched = false;
        sum->sample.step = put->step;
        settle_bins(sum);
        if (!take_layer(intake, intake->first_touched, &sum->sample, error))
            return false;
    }
    const char *const *names = run_own_series;
    return take_value(intake, names[OWN_SCALE], put->step, put->scale, error) &&
           (!put->has_norm ||
            take_value(intake, names[OWN_GRADIENT_NORM], put->step, put->norm, error)) &&
           (isnan(put->seconds) || // it is not known
            take_value(intake, names[OWN_STEP_SECONDS], put->step, put->seconds, error));
}

static bool take(RecorderIntake *intake, const void *record, Error *error) {
    const PutPoint *point = record;
    const PutSeries *series = record;
    switch (*(const PutKind *)record) {
    case PUT_STEP: return take_step(intake, record, error);
    case PUT_POINT:
        return take_value(intake, intake->names[point->series], point->step, point->value, error);
    case PUT_SERIES:
        memcpy(intake->names[series->series], series->name, sizeof series->name);
        return true;
    case PUT_GRADIENT: return take_gradient(intake, record, error);
    case PUT_PROFILE: return take_profile(intake, record, error);
    case PUT_FACTORS: return take_factors(intake, record, error);
    case PUT_EVENT:
        return intake->event_count < MOST_EVENTS
                   ? take_event(intake, record, error)
                   : error_fail(error, ERROR_FULL, "%d events wait for a commit", MOST_EVENTS);
    }
    return true;
}

bool intake_drain(RecorderIntake *intake, Error *error) {
    size_t size;
    for (; intake->backlog_at < intake->backlog_used; intake->backlog_at += sizeof size + size) {
        const char *at = intake->backlog + intake->backlog_at;
        memcpy(&size, at, sizeof size);
        if (!take(intake, at + sizeof size, error))
            return false;
    }
    intake->backlog_at = intake->backlog_used = 0;
    for (const void *record; (record = ring_peek(intake->recorder->ring, &size));
         ring_release(intake->recorder->ring))
        if (!take(intake, record, error))
            return false;
    return true;
}

// While a lock is waited for, in the middle of a call of the store: makes room in the ring.
bool intake_set_aside(void *context) {
    enum { WORD = sizeof(size_t) };
    RecorderIntake *intake = context;
    size_t size;
    for (const void *record; (record = ring_peek(intake->recorder->ring, &size));) {
        size_t padded = (size + WORD - 1) & ~(size_t)(WORD - 1);
        size_t needed = intake->backlog_used + WORD + padded;
        if (needed > MOST_BACKLOG)
            break; // training waits
        if (needed > intake->backlog_size) {
            size_t wanted = 2 * needed;
            char *backlog = realloc(intake->backlog, wanted);
            if (!backlog)
                break;
            intake->backlog = backlog;
            intake->backlog_size = wanted;
        }
        memcpy(intake->backlog + intake->backlog_used, &padded, WORD);
        memcpy(intake->backlog + intake->backlog_used + WORD, record, size);
        intake->backlog_used = needed;
        ring_release(intake->recorder->ring);
    }
    return true;
}
