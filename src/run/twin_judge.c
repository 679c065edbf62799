// Two boards of one step held against each other: distances, and which of them rounding does not
// explain.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/recorder_private.h"
#include "run/twin_private.h"
#include "run/twin_squares.h"

// ---- distances ----------------------------------------------------------------------------------

// Where neither is finite there is nothing to compare.
static void add_values(TwinSums *sums, const float *own, const float *other, int count,
                       double weight) {
    double found[3] = {0};
    sums->differs = sums->differs || memcmp(own, other, (size_t)count * sizeof *own) != 0;
    twin_squares(own, other, count, found);
    if (!isfinite(found[0] + found[1] + found[2])) {
        memset(found, 0, sizeof found);
        for (int i = 0; i < count; i++) {
            if (isfinite(own[i]) && isfinite(other[i]))
                twin_squares(own + i, other + i, 1, found);
            sums->own_breaks = sums->own_breaks || (!isfinite(own[i]) && isfinite(other[i]));
            sums->other_breaks = sums->other_breaks || (isfinite(own[i]) && !isfinite(other[i]));
            sums->own_broken = sums->own_broken || !isfinite(own[i]);
            sums->other_broken = sums->other_broken || !isfinite(other[i]);
        }
    }
    sums->apart += weight * found[0];
    sums->own += weight * found[1];
    sums->other += weight * found[2];
}

// One slot of both sides, where both filled it in this step.
static bool add_slot(TwinLink *link, int64_t step, int at, TwinSums *sums) {
    const TwinBoard *own_board = twin_board(link, TWIN_RUN, step);
    const TwinBoard *other_board = twin_board(link, TWIN_TWIN, step);
    const TwinSlot *own = &own_board->slots[at], *other = &other_board->slots[at];
    if (own->step != step || other->step != step || own->samples == 0)
        return false;
    double weight = (double)own->count / own->samples;
    sums->order = sums->is_there && sums->order < own->order ? sums->order : own->order;
    sums->is_there = true;
    sums->is_part = sums->is_part || own->samples < own->count;
    sums->differs = sums->differs || own->bits != other->bits;
    add_values(sums, own_board->values[at], other_board->values[at], own->samples, weight);
    sums->moved_own += weight * (double)own->moved * (double)own->moved;
    sums->moved_other += weight * (double)other->moved * (double)other->moved;
    return true;
}

static double size_of(const TwinSums *sums) {
    return sqrt(fmax(sums->own, sums->other));
}

static double distance_of(const TwinSums *sums) {
    double size = size_of(sums);
    if (sums->own_breaks || sums->other_breaks)
        return INFINITY;
    return size > 0 ? sqrt(sums->apart) / size : 0;
}

// What is judged: the distance as a share of the largest size that it ever had. Where a layer
// trains towards 0, or its gradients do, terms as large as before cancel out, with their rounding.
static double judged_distance(const TwinSums *sums, double *largest) {
    *largest = fmax(*largest, size_of(sums));
    if (sums->own_breaks || sums->other_breaks)
        return INFINITY;
    return *largest > 0 ? sqrt(sums->apart) / *largest : 0;
}

// Whether next to nothing is left of it in the coarser formats alone, as where values are flushed
// to zero. In the finer ones it is nothing where all cancels out, of which the coarser leave noise.
static bool has_vanished(const TwinLink *link, const TwinSums *sums) {
    static const double nothing = 0.01;
    const double least = nothing * size_of(sums);
    return (link->coarser >= 0 && sqrt(sums->own) < least) ||
           (link->coarser <= 0 && sqrt(sums->other) < least);
}

// ---- what parts ---------------------------------------------------------------------------------

static int layer_count(const TwinLink *link) {
    int count = policy_layer_count(link->run->engine->policy);
    return count < TWIN_LAYERS ? count : TWIN_LAYERS;
}

static const char *layer_name(const TwinLink *link, int layer) {
    return layer > 0 ? policy_layer(link->run->engine->policy, layer)->name : TWIN_NO_LAYER;
}

// The first of each layer is kept; that of all is told.
static void note_place(TwinLink *link, ApartPlace *of_layer, const ApartPlace *place) {
    char text[EVENT_TEXT_SIZE];
    if (of_layer && of_layer->cause != APART_NOT)
        return;
    if (of_layer)
        *of_layer = *place;
    twin_place_text(place, text, sizeof text);
    if (link->report.first.cause != APART_NOT) {
        run_record_event(link->run, EVENT_APART, place->layer, place->distance, text);
        return;
    }
    link->report.first = *place;
    run_tell(link->run, EVENT_APART, place->layer, place->distance, text);
}

typedef struct Judged { // a step
    TwinLink *link;
    bool is_alike;     // both sides compute alike: nothing explains a difference
    double most;       // the largest distance of what was made so far
    double noise;      // of gradients: what rounding leaves where all cancels out
    double by_weights; // of a layer's activations: what its weights at the end of the step explain
    bool differs;
} Judged;

// A point of a series; the first brings its name.
static void record(TwinLink *link, int index, const char *name, int64_t step, double value) {
    Recorder *recorder = link->run->recorder;
    if (!recorder || strlen(name) >= SERIES_NAME_SIZE)
        return;
    recorder_named_point(recorder, RUN_MAX_SERIES + index, link->has_series[index] ? NULL : name,
                         step, value);
    link->has_series[index] = true;
}

static void keep_distance(TwinLink *link, int layer, ApartKind kind, double distance) {
    TwinLayer *of = &link->layers[layer];
    of->apart.last[kind] = distance;
    of->apart.most[kind] = of->apart.has[kind] ? fmax(of->apart.most[kind], distance) : distance;
    of->apart.has[kind] = true;
    if (layer < 1 || layer > TWIN_SERIES_LAYERS || !link->run->recorder)
        return;
    char name[SERIES_NAME_SIZE + RUN_NAME_SIZE] = "";
    const int index = 1 + (layer - 1) * APART_KINDS + (int)kind;
    if (!link->has_series[index])
        snprintf(name, sizeof name, APART_SERIES ".%s.%s", apart_kind_names[kind],
                 layer_name(link, layer));
    record(link, index, name, link->judged, distance);
}

// Of what rounding explains the farthest, with as much as it would have: a reader who sees layers
// far apart can tell by it why they did not part.
static void note_explained(TwinLink *link, int layer, ApartKind kind, double distance,
                           double within) {
    ApartPlace *most = &link->report.most;
    if (!isfinite(within) || !(distance > most->distance))
        return;
    *most = (ApartPlace){.cause = APART_BEYOND,
                         .step = link->judged,
                         .kind = kind,
                         .distance = distance,
                         .within = within};
    utf8_copy(most->layer, sizeof most->layer, layer_name(link, layer));
}

// Whether what breaks does so on one side and nowhere on the other.
static bool is_one_alone(const TwinSums *sums) {
    return !sums->is_part && sums->own_broken != sums->other_broken;
}

// `within`: what rounding explains.
static void judge(Judged *judged, int layer, ApartKind kind, const TwinSums *sums, double within) {
    TwinLink *link = judged->link;
    double distance = distance_of(sums);
    double share = judged_distance(sums, &link->layers[layer].largest[kind]);
    bool breaks = isinf(distance) && isfinite(within);
    bool vanishes = distance > within && has_vanished(link, sums);
    bool is_far = share > within && sqrt(sums->apart) > judged->noise;
    keep_distance(link, layer, kind, distance);
    judged->differs = judged->differs || sums->differs;
    judged->most = fmax(judged->most, distance);
    if (!(judged->is_alike ? sums->differs : breaks || vanishes || is_far)) {
        const double largest = link->layers[layer].largest[kind];
        note_explained(link, layer, kind, distance,
                       fmax(within * largest, judged->noise) / size_of(sums));
        return;
    }
    // What its weights explain as they are now, and not as they were, they were written over by.
    bool is_written =
        kind == APART_ACTIVATIONS && !judged->is_alike && !breaks && share <= judged->by_weights;
    ApartPlace place = {.cause = breaks ? APART_INFINITE : APART_BEYOND,
                        .step = link->judged,
                        .kind = is_written ? APART_WEIGHTS : kind,
                        .is_twin = sums->other_breaks,
                        .is_alone = breaks && is_one_alone(sums),
                        .distance = vanishes || judged->is_alike ? distance : share,
                        .within = judged->is_alike ? 0 : within};
    utf8_copy(place.layer, sizeof place.layer, layer_name(link, layer));
    note_place(link, &link->layers[layer].apart.first, &place);
}

// ---- the parts of a step ------------------------------------------------------------------------

// The layers that gave something in the step, in the order in which they did last. By the way, the
// unit of the coarsest format of both.
static int order_layers(TwinLink *link, int layers[TWIN_LAYERS]) {
    const TwinBoard *board = twin_board(link, TWIN_RUN, link->judged);
    const TwinBoard *others = twin_board(link, TWIN_TWIN, link->judged);
    int count = 0;
    for (int layer = 1; layer < layer_count(link); layer++) {
        const TwinSlot *slot = &board->slots[layer];
        if (slot->step != link->judged)
            continue;
        link->unit = fmax(link->unit, (double)fmaxf(slot->unit, others->slots[layer].unit));
        int at = count++;
        for (; at > 0 && board->slots[layers[at - 1]].order > slot->order; at--)
            layers[at] = layers[at - 1];
        layers[at] = layer;
    }
    return count;
}

static double explained(const TwinLink *link, double given) {
    return TWIN_GROWTH * given + TWIN_ROUNDINGS * link->unit;
}

static void judge_activations(Judged *judged, const int *layers, int count) {
    TwinLink *link = judged->link;
    for (int i = 0; i < count; i++) {
        TwinLayer *layer = &link->layers[layers[i]];
        TwinSums sums = {0};
        if (!add_slot(link, link->judged, layers[i], &sums))
            continue;
        double given = fmax(judged->most, layer->weights_given);
        judged->by_weights = explained(link, layer->weights);
        judge(judged, layers[i], APART_ACTIVATIONS, &sums, explained(link, given));
    }
}

// Of all parameters of a layer together, each layer's sums in its place.
static void add_parameters(TwinLink *link, int64_t step, TwinSums *sums, int (*slot_of)(int)) {
    const TwinBoard *board = twin_board(link, TWIN_RUN, step);
    for (int i = 0; i < link->parameter_count; i++) {
        int layer = board->slots[slot_of(i)].layer;
        if (layer >= 0 && layer < TWIN_LAYERS)
            (void)add_slot(link, step, slot_of(i), &sums[layer]);
    }
}

static void judge_gradient(Judged *judged, int layer, const TwinSums *sums) {
    if (!sums->is_there)
        return;
    judged->link->layers[layer].gradients_step = judged->link->judged;
    judge(judged, layer, APART_GRADIENTS, sums, explained(judged->link, judged->most));
}

// Back from the loss: the layers that gave something last come first, then those that were not seen
// on the way forward.
static void judge_gradients(Judged *judged, TwinSums *sums, const int *layers, int count) {
    TwinLink *link = judged->link;
    for (int layer = 0; layer < layer_count(link); layer++)
        judged->most = fmax(judged->most, link->layers[layer].weights_given);
    for (int layer = 0; layer < layer_count(link); layer++)
        judged->noise = fmax(judged->noise, TWIN_ROUNDINGS * link->unit * size_of(&sums[layer]));
    for (int i = count - 1; i >= 0; i--) {
        judge_gradient(judged, layers[i], &sums[layers[i]]);
        sums[layers[i]].is_there = false;
    }
    for (int layer = layer_count(link) - 1; layer >= 0; layer--)
        judge_gradient(judged, layer, &sums[layer]);
    judged->noise = 0;
}

// Those at the end of the step, and those that a layer was gone through with last: some were
// updated before that within the step, as a discriminator's are.
static void measure_weights(TwinLink *link, TwinSums *sums, const TwinSums *gradients) {
    const TwinBoard *board = twin_board(link, TWIN_RUN, link->judged);
    add_parameters(link, link->judged, sums, twin_weight_slot);
    for (int layer = 0; layer < layer_count(link); layer++) {
        TwinLayer *of = &link->layers[layer];
        const TwinSlot *output = &board->slots[layer];
        bool is_late = gradients[layer].is_there && output->step == link->judged &&
                       output->order > gradients[layer].order;
        of->weights_before = of->weights;
        if (sums[layer].is_there)
            of->weights = distance_of(&sums[layer]);
        of->weights_given = is_late ? fmax(of->weights_before, of->weights) : of->weights_before;
    }
}

// Updates by gradients that are apart are that, too: it is the gradients' matter.
static double by_gradients(const TwinLink *link, const TwinLayer *layer, const TwinSums *sums) {
    double apart = layer->gradients_step == link->judged ? layer->apart.last[APART_GRADIENTS] : 0;
    return fmin(1, apart) * sqrt(fmax(sums->moved_own, sums->moved_other)) / size_of(sums);
}

static void judge_weights(Judged *judged, const TwinSums *sums, bool is_judged) {
    static const double newest = 0.1;
    TwinLink *link = judged->link;
    for (int at = 0; at < layer_count(link); at++) {
        TwinLayer *layer = &link->layers[at];
        double size = size_of(&sums[at]);
        double moves = sqrt(fmin(sums[at].moved_own, sums[at].moved_other)) / (size > 0 ? size : 1);
        double within = INFINITY;
        if (!sums[at].is_there)
            continue;
        if (is_judged && !isnan(moves)) {
            layer->moves = layer->moves > 0 ? (1 - newest) * layer->moves + newest * moves : moves;
            within = layer->weights_before + TWIN_MOVES * fmax(moves, layer->moves) +
                     by_gradients(link, layer, &sums[at]) + TWIN_ROUNDINGS * link->unit;
        }
        judge(judged, at, APART_WEIGHTS, &sums[at], within);
    }
}

// What both begin with is the same, but for the rounding of weights that are kept in few bits.
static void judge_begin(Judged *judged, TwinSums *sums) {
    TwinLink *link = judged->link;
    add_parameters(link, 0, sums, twin_weight_slot);
    for (int layer = 0; layer < layer_count(link); layer++)
        if (sums[layer].is_there) {
            link->layers[layer].weights = distance_of(&sums[layer]);
            judge(judged, layer, APART_WEIGHTS, &sums[layer], TWIN_ROUNDINGS * link->unit);
        }
}

static void judge_skips(TwinLink *link, const TwinEnd *own, const TwinEnd *other) {
    ApartPlace place = {
        .cause = APART_SKIPPED, .step = link->judged, .is_twin = other->has_skipped};
    if (own->has_skipped == other->has_skipped || link->report.first.cause == APART_SKIPPED)
        return;
    utf8_copy(place.layer, sizeof place.layer, other->has_skipped ? other->culprit : own->culprit);
    note_place(link, NULL, &place);
}

// `sums`: three times [TWIN_LAYERS], 0 for all layers that there are.
static void judge_layers(TwinLink *link, TwinSums *sums, const TwinEnd *own, const TwinEnd *other) {
    Judged judged = {.link = link, .is_alike = own->formats == other->formats};
    TwinSums *gradients = sums, *weights = sums + TWIN_LAYERS, *begin = weights + TWIN_LAYERS;
    int layers[TWIN_LAYERS], count = order_layers(link, layers);
    link->unit = fmax(link->unit, fmax(own->unit, other->unit));
    link->coarser = (own->unit > other->unit) - (own->unit < other->unit);
    if (link->judged == 1)
        judge_begin(&judged, begin);
    add_parameters(link, link->judged, gradients, twin_gradient_slot);
    measure_weights(link, weights, gradients);
    judge_activations(&judged, layers, count);
    judge_skips(link, own, other);
    if (!own->has_skipped && !other->has_skipped)
        judge_gradients(&judged, gradients, layers, count);
    judge_weights(&judged, weights, own->has_skipped == other->has_skipped);
    link->report.steps++;
    link->report.alike += !judged.differs;
}

// ---- the loss -----------------------------------------------------------------------------------

// NaN: neither is a number, and that is no agreement.
static double distance_of_numbers(double own, double other) {
    if (!isfinite(own) && !isfinite(other))
        return NAN;
    if (own == other)
        return 0;
    if (!isfinite(own) || !isfinite(other))
        return INFINITY;
    return fabs(own - other) / fmax(fabs(own), fabs(other));
}

void twin_judge_loss(TwinLink *link, const TwinEnd *own, const TwinEnd *other) {
    TwinReport *report = &link->report;
    if (!own->has_loss || !other->has_loss || own->loss_step != other->loss_step ||
        own->loss_step == link->told_loss)
        return;
    link->told_loss = own->loss_step;
    double distance = distance_of_numbers(own->loss, other->loss);
    report->loss_last = distance;
    report->loss_most = fmax(report->loss_most, distance);
    report->has_loss = true;
    record(link, 0, APART_SERIES, own->loss_step, distance);
    bool is_alike = own->formats == other->formats;
    bool breaks = isinf(distance);
    if (distance > 0 && (is_alike || breaks) && report->first.cause == APART_NOT) {
        const ApartPlace place = {.cause = breaks ? APART_INFINITE : APART_BEYOND,
                                  .step = own->loss_step,
                                  .is_twin = !isfinite(other->loss),
                                  .is_alone = breaks,
                                  .distance = distance};
        note_place(link, NULL, &place);
    }
}

// ---- a step -------------------------------------------------------------------------------------

static bool is_other(const TwinLink *link, int at) {
    const TwinSlot *own = &twin_board(link, TWIN_RUN, link->judged)->slots[at];
    const TwinSlot *other = &twin_board(link, TWIN_TWIN, link->judged)->slots[at];
    return own->step == link->judged && other->step == link->judged && own->name != other->name;
}

// Whether anything in the step has another name or size on the other side: before any of it is
// judged, since no distance of such a pair says anything.
static bool has_other_layers(const TwinLink *link) {
    bool has = false;
    for (int layer = 0; layer < layer_count(link) && !has; layer++)
        has = is_other(link, layer);
    for (int i = 0; i < link->parameter_count && !has; i++)
        has = is_other(link, twin_gradient_slot(i)) || is_other(link, twin_weight_slot(i));
    return has;
}

void twin_judge_step(TwinLink *link) {
    Run *run = link->run;
    const int64_t now = run->step;
    run->step = ++link->judged; // what is told is told of that step
    const TwinEnd *own = &twin_board(link, TWIN_RUN, link->judged)->end;
    const TwinEnd *other = &twin_board(link, TWIN_TWIN, link->judged)->end;
    twin_judge_loss(link, own, other);
    for (int i = 0; i < 3; i++) // of those that there are: most models have few
        memset(link->sums + (size_t)i * TWIN_LAYERS, 0,
               (size_t)layer_count(link) * sizeof *link->sums);
    if (!link->is_unlike && has_other_layers(link)) {
        link->is_unlike = true;
        run_tell(run, EVENT_LIFE, "", (double)NAN,
                 "the twin has other layers than this run: only the losses are compared");
    }
    if (!link->is_unlike)
        judge_layers(link, link->sums, own, other);
    run->step = now;
    twin_call_for(link, link->judged + 1);
}

// ---- what is kept -------------------------------------------------------------------------------

void twin_list_layers(TwinLink *link) {
    TwinReport *report = &link->report;
    free(report->layers);
    report->layer_count = 0;
    report->layers = calloc(TWIN_LAYERS, sizeof *report->layers);
    for (int i = 1; report->layers && i <= layer_count(link); i++) {
        int layer = i % layer_count(link); // what is outside of all comes last
        ApartLayer *apart = &link->layers[layer].apart;
        utf8_copy(apart->name, sizeof apart->name, layer_name(link, layer));
        if (apart->has[APART_ACTIVATIONS] || apart->has[APART_GRADIENTS] ||
            apart->has[APART_WEIGHTS])
            report->layers[report->layer_count++] = *apart;
    }
}

void twin_keep_facts(TwinLink *link) {
    if (!link || link->side != TWIN_RUN || link->judged == 0)
        return;
    const TwinReport *report = &link->report;
    Run *run = link->run;
    char text[RECORD_TEXT_SIZE];
    snprintf(text, sizeof text, "%lld", (long long)report->steps);
    run_add_fact(run, TWIN_FACT_STEPS, text);
    snprintf(text, sizeof text, "%lld", (long long)report->alike);
    run_add_fact(run, TWIN_FACT_ALIKE, text);
    if (report->ended[0])
        run_add_fact(run, TWIN_FACT_END, report->ended);
    if (report->most.cause != APART_NOT) {
        char most[EVENT_TEXT_SIZE];
        twin_place_text(&report->most, most, sizeof most);
        run_add_fact(run, TWIN_FACT_MOST, most);
    }
}
