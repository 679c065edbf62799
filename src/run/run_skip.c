// Steps that were skipped: which layer is to blame, what is told of it, and when going on is
// pointless.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shortest.h"
#include "run/run_private.h"

// ---- which layer is to blame --------------------------------------------------------------------

typedef struct BrokenLayer { // a layer, or a parameter that is in none
    int layer;
    SkippedLayer told;
    // What is not finite before it is rounded to the layer's format came from beyond the layer, and
    // goes on to those before it.
    bool has_spread;
    uint64_t arrived;              // when the first of what is not finite did, on the way back
    uint64_t most;                 // in one parameter,
    char parameter[RUN_NAME_SIZE]; // this one,
    int optimizer;                 // of this optimizer
    Format format;                 // that its gradients are rounded to
} BrokenLayer;

typedef struct BrokenList {
    BrokenLayer *layers;
    int count, size;
} BrokenList;

static BrokenLayer *broken_layer(const Run *run, BrokenList *list, const Tensor *tensor, int at) {
    const Parameter *parameter = parameter_of(tensor);
    int layer = parameter ? parameter->layer : 0;
    for (int i = 0; layer > 0 && i < list->count; i++)
        if (list->layers[i].layer == layer)
            return &list->layers[i];
    if (list->count == list->size) {
        int size = list->size ? 2 * list->size : 16;
        BrokenLayer *layers = realloc(list->layers, (size_t)size * sizeof *layers);
        if (!layers)
            return NULL;
        list->layers = layers;
        list->size = size;
    }
    BrokenLayer *broken = &list->layers[list->count++];
    *broken = (BrokenLayer){.layer = layer, .arrived = UINT64_MAX};
    const char *name = run_layer_of(run, tensor);
    if (name[0])
        utf8_copy(broken->told.name, sizeof broken->told.name, name);
    else if (parameter)
        utf8_copy(broken->told.name, sizeof broken->told.name, parameter->name);
    else
        snprintf(broken->told.name, sizeof broken->told.name, "parameter %d", at + 1);
    return broken;
}

static void add_gradient(const Run *run, BrokenList *list, int optimizer, int at,
                         const GradientNote *note, const GradStats *stats) {
    const Tensor *tensor = optimizer_parameter(run->optimizers[optimizer], at);
    BrokenLayer *layer = broken_layer(run, list, tensor, at);
    if (!layer)
        return; // one less to list
    uint64_t broken = stats->nans + stats->infs + stats->overflowed;
    layer->told.count += (int64_t)stats->count;
    layer->told.broken += (int64_t)broken;
    layer->has_spread = layer->has_spread || stats->nans + stats->infs > 0;
    if (broken > 0 && note->arrived < layer->arrived)
        layer->arrived = note->arrived;
    if (broken <= layer->most)
        return;
    layer->most = broken;
    layer->optimizer = optimizer;
    const Parameter *parameter = parameter_of(tensor);
    layer->format = note->round_to;
    utf8_copy(layer->parameter, sizeof layer->parameter,
              parameter && parameter->name[0] ? parameter->name : layer->told.name);
}

static void add_optimizer(const Run *run, BrokenList *list, const StepReport *report, int at) {
    const Optimizer *optimizer = run->optimizers[at];
    const GradientNote *notes = report->note->optimizers[at].gradients.each;
    GradStats room;
    for (int i = 0; i < optimizer_parameter_count(optimizer); i++) {
        const GradStats *stats = run_reported_stats(report, at, i, &room);
        if (stats)
            add_gradient(run, list, at, i, &notes[i], stats);
    }
}

static bool is_nearer(const BrokenLayer *a, const BrokenLayer *b) {
    return a->arrived < b->arrived;
}

static int by_broken(const void *a, const void *b) {
    const BrokenLayer *left = a, *right = b;
    if (left->told.broken != right->told.broken)
        return left->told.broken > right->told.broken ? -1 : 1;
    return is_nearer(left, right) ? -1 : is_nearer(right, left);
}

// Puts the one to blame first. Where nothing spread each overflowed by itself, as it was rounded to
// its layer's format: the worst is the one with the most. What spread grows on its way back: it
// began nearest the loss.
static void order_broken(BrokenList *list) {
    bool has_spread = false;
    int kept = 0, nearest = 0;
    for (int i = 0; i < list->count; i++)
        if (list->layers[i].told.broken > 0)
            list->layers[kept++] = list->layers[i];
    list->count = kept;
    if (kept > 0)
        qsort(list->layers, (size_t)kept, sizeof *list->layers, by_broken);
    for (int i = 0; i < kept; i++) {
        has_spread = has_spread || list->layers[i].has_spread;
        if (is_nearer(&list->layers[i], &list->layers[nearest]))
            nearest = i;
    }
    if (!has_spread || nearest == 0)
        return;
    BrokenLayer first = list->layers[nearest];
    memmove(&list->layers[1], &list->layers[0], (size_t)nearest * sizeof first);
    list->layers[0] = first;
}

// Of the optimizers that skipped, a bit each: the parameter to blame, its layer and its optimizer,
// and all layers.
static void find_culprit(Run *run, const StepReport *report, unsigned skipped, SkippedStep *skip) {
    BrokenList list = {.count = 0};
    for (int i = 0; i < report->note->optimizer_count; i++)
        if (skipped >> i & 1)
            add_optimizer(run, &list, report, i);
    order_broken(&list);
    SkippedLayer told[SKIP_MOST_LAYERS];
    int count = list.count < SKIP_MOST_LAYERS ? list.count : SKIP_MOST_LAYERS;
    for (int i = 0; i < count; i++)
        told[i] = list.layers[i].told;
    skip_layers_write(told, count, list.count - count, skip->layers);
    if (list.count > 0) {
        utf8_copy(skip->culprit, sizeof skip->culprit, list.layers[0].parameter);
        utf8_copy(skip->layer, sizeof skip->layer, list.layers[0].told.name);
        skip->format = list.layers[0].format;
        skip->optimizer = list.layers[0].optimizer;
    }
    free(list.layers);
}

// ---- what is told -------------------------------------------------------------------------------

// Of many in a row, the first few and every tenth are told.
static bool is_told(int in_a_row) {
    enum { FIRST = 3, THEN_EVERY = 10 };
    return in_a_row <= FIRST || in_a_row % THEN_EVERY == 0;
}

void run_tell_skip(RunState *state) {
    SkippedStep *skip = &state->waiting;
    if (skip->step == 0)
        return;
    Run *run = &state->run;
    char text[EVENT_TEXT_SIZE], scale[96] = "";
    if (skip->has_scale && skip->scale_after != skip->scale)
        snprintf(scale, sizeof scale, ", scale %s -> %s", shortest_of_float(skip->scale).text,
                 shortest_of_float(skip->scale_after).text);
    else if (skip->has_scale)
        snprintf(scale, sizeof scale, " at scale %s", shortest_of_float(skip->scale).text);
    // A loss may be logged before its step ends or after.
    bool has_loss = state->loss_step >= skip->step - 1;
    bool is_bad = state->bad_loss_step >= skip->step - 1;
    const char *cause = !has_loss ? ""
                        : is_bad
                            ? "; the loss is not finite either: it went wrong on the way forward"
                        : skip->has_scale ? "; the loss is finite: the scale was too large"
                                          : "; the loss is finite: only the way back overflowed";
    snprintf(text, sizeof text, "step %lld skipped: gradient of %s not finite%s%s%s",
             (long long)skip->step, skip->culprit[0] ? skip->culprit : "a parameter", scale, cause,
             skip->layers);
    double after = skip->has_scale ? skip->scale_after : (double)NAN;
    if (is_told(skip->in_a_row) && run->observer.event && !run->is_silent)
        run->observer.event(run->observer.context, run, text);
    run_record_event_at(run, skip->step, EVENT_SKIP, skip->layer, after, text);
    skip->step = 0;
}

// Of the parameter to blame.
static StepScale scale_of_skip(const RunState *state, const StepReport *report) {
    return run_scale_of(state, report, state->waiting.optimizer);
}

// Skips in a row that the scale could do nothing about: those on its way down are not among them.
static int pointless_skips(const RunState *state, const StepReport *report) {
    const ScaleState *scale = scale_of_skip(state, report).state;
    return scale ? (int)scale->skips_at_floor : state->run.skips_in_a_row;
}

// Of the layer's own format alone: what is not finite may come from elsewhere.
static const char *remedy_at_floor(const RunState *state) {
    for (int i = 0; i < state->run.diagnosis_count; i++)
        if (strcmp(state->run.diagnoses[i].kind, diagnosis_table[DIAGNOSIS_WEIGHTS_GREW].name) == 0)
            return "weights have grown too large";
    return state->waiting.format == FORMAT_FP16
               ? "set that layer to bf16 or fp32 with --layer"
               : "that layer's format has the range of fp32 already";
}

// Whether this step is not finite by what was told of an earlier one, on the way forward, though
// others were applied in between.
static bool is_told_again(const RunState *state, const StepReport *report) {
    const FlightRing *ring = &state->flight;
    const Lookout *lookout = &state->run.engine->lookout;
    const StepFaults *faults = &report->note->faults;
    const FaultOrigin *origin = lookout_origin(lookout, faults->of_loss);
    if (!origin)
        origin = lookout_origin(lookout, faults->of_overflow);
    return origin && ring->told_op != OP_COUNT && origin->op == ring->told_op &&
           origin->layer == ring->told_layer;
}

// Whether the flight recorder has told what is not finite in these steps: the first of all that
// the skipped gradients follow from.
static bool knows_first(const RunState *state, const StepReport *report) {
    const FlightRing *ring = &state->flight;
    return ring->is_told && (ring->told_step > state->run.step - state->run.skips_in_a_row ||
                             is_told_again(state, report));
}

// 20 of them: going on is pointless.
static bool fail_at_floor(RunState *state, const StepReport *report, Error *error) {
    Run *run = &state->run;
    int skips = pointless_skips(state, report);
    bool is_bad = state->bad_loss_step >= run->step - 2;
    const char *remedy = remedy_at_floor(state);
    run_tell_skip(state);
    const char *culprit = run->culprit[0] ? run->culprit : "a parameter";
    const StepScale own = scale_of_skip(state, report);
    const ScaleRule *rule = own.rule;
    bool is_fixed = rule && rule->kind == SCALE_STATIC;
    char scale[96] = "no loss scale in use";
    if (is_fixed)
        snprintf(scale, sizeof scale, "the loss scale fixed at %s",
                 shortest_of_float((double)own.state->scale).text);
    else if (rule && rule->kind != SCALE_NONE)
        snprintf(scale, sizeof scale, "the loss scale at %s, from where it does not fall",
                 shortest_of_float((double)own.state->scale).text);
    if (knows_first(state, report)) {
        const FlightRing *ring = &state->flight;
        run_diagnose(run, DIAGNOSIS_SCALE_FLOOR, culprit,
                     "%d steps in a row skipped with %s, by the gradient of %s; not finite first: "
                     "%s",
                     skips, scale, culprit, ring->told);
        return error_fail(error, ERROR_FAILED,
                          "the loss scale cannot help any more: %d steps in a row were skipped "
                          "with %s, by the gradient of %s; the first that was not finite: %s, at "
                          "step %lld (`show --first-nan`): %s",
                          skips, scale, culprit, ring->told, (long long)ring->told_step,
                          ring->remedy);
    }
    const char *where = is_bad ? "forward: the loss itself is not finite"
                               : "backward: the loss is finite as far as it was logged";
    run_diagnose(run, DIAGNOSIS_SCALE_FLOOR, culprit,
                 "%d steps in a row skipped with %s; not finite: the gradient of %s (%s)", skips,
                 scale, culprit, where);
    if (is_fixed && !is_bad) // with another scale it may go well
        return error_fail(error, ERROR_FAILED,
                          "%d steps in a row were skipped with %s, which is too large: the "
                          "gradient to blame is that of %s (%s); lower it, or take %s, which "
                          "finds its own",
                          skips, scale, culprit, where,
                          own.is_other ? "mp.scaler \"dynamic\" for it" : "--loss-scale dynamic");
    return error_fail(
        error, ERROR_FAILED,
        "the loss scale cannot help any more: %d steps in a row were skipped with %s; "
        "the gradient to blame is that of %s (%s); %s, lower the "
        "learning rate, or check the data",
        skips, scale, culprit, where, remedy);
}

// Who only looks at a model, as a scan, counts what a format breaks, and goes on with the next.
static bool is_stuck(const RunState *state, const StepReport *report) {
    return !state->run.options->evaluates && state->run.skips_in_a_row >= RUN_SKIPS_AT_FLOOR &&
           pointless_skips(state, report) >= RUN_SKIPS_AT_FLOOR;
}

bool run_count_skip(RunState *state, const StepReport *report, unsigned skipped, Error *error) {
    Run *run = &state->run;
    SkippedStep *skip = &state->waiting;
    run->skipped++;
    run->skips_in_a_row++;
    *skip = (SkippedStep){.step = run->step,
                          .in_a_row = run->skips_in_a_row,
                          .optimizer = skipped ? __builtin_ctz(skipped) : 0};
    find_culprit(run, report, skipped, skip);
    utf8_copy(run->culprit, sizeof run->culprit, skip->culprit);
    const StepScale scale = scale_of_skip(state, report);
    skip->has_scale = scale.rule != NULL;
    skip->scale = scale.before;
    skip->scale_after = scale.state ? (double)scale.state->scale : (double)NAN;
    return !is_stuck(state, report) || fail_at_floor(state, report, error);
}

// ---- looking back -------------------------------------------------------------------------------

enum { LOOKED_BACK = 60, AT_LEAST = 30, ONE_IN = 4, TURNS = 6 };

static void tell_many_skips(RunState *state, const StepReport *report, int skips, int steps) {
    enum { LONG_INTERVAL = 100 };
    Run *run = &state->run;
    const StepScale own = scale_of_skip(state, report); // of the last of them
    const ScaleRule *rule = own.rule;
    const double scale = own.state ? (double)own.state->scale : 1;
    if (rule && rule->kind == SCALE_DYNAMIC && rule->interval < LONG_INTERVAL)
        run_diagnose(
            run, DIAGNOSIS_MANY_SKIPS, "",
            "%d of the last %d steps were skipped: the loss scale grows again after %lld "
            "step%s without overflow, and overflows again: take a longer interval (2000 is "
            "usual), or a fixed scale of %s",
            skips, steps, (long long)rule->interval, rule->interval == 1 ? "" : "s",
            shortest_of_float(scale).text);
    else
        run_diagnose(
            run, DIAGNOSIS_MANY_SKIPS, "",
            "%d of the last %d steps were skipped, others in between were not: gradients of "
            "%.60s overflow now and then, at a scale of %s: clip after unscaling, lower the "
            "learning rate, or look at the data of those steps",
            skips, steps, run->culprit[0] ? run->culprit : "a parameter",
            shortest_of_float(scale).text);
}

static void check_many_skips(RunState *state, const StepReport *report, bool was_skipped) {
    const StepNote *note = report->note;
    SkipWatch *watch = &state->skips;
    watch->skipped = watch->skipped << 1 | was_skipped;
    watch->count += watch->count < LOOKED_BACK;
    if (watch->optimizers < note->optimizer_count)
        watch->optimizers = note->optimizer_count;
    if (watch->count < AT_LEAST)
        return;
    uint64_t last = watch->skipped & ((UINT64_C(1) << watch->count) - 1);
    int skips = __builtin_popcountll(last), turns = __builtin_popcountll(last & ~(last >> 1));
    // Fewer turns: a scale only finds its place, or those of several optimizers do, each in its
    // turn.
    int usual = TURNS * (watch->optimizers > 1 ? watch->optimizers : 1);
    if (skips * ONE_IN >= watch->count && turns >= usual)
        tell_many_skips(state, report, skips, watch->count);
}

// A rule that follows what it has seen may take an overflow far too seriously.
static void check_stuck(RunState *state, const StepReport *report) {
    enum { LONG = 30 };
    const double room = 64, end_of_fp16 = format_table[FORMAT_FP16].largest;
    Run *run = &state->run;
    ScaleKind kind = report->note->scaler ? report->note->rule.kind : SCALE_NONE;
    bool follows = kind == SCALE_LOGMAX || kind == SCALE_ADAPTIVE || kind == SCALE_GIVEN;
    state->skips.low_steps = follows && run->scale_last <= 1 ? state->skips.low_steps + 1 : 0;
    if (state->skips.low_steps != LONG || policy_preset(run->engine->policy)->low != FORMAT_FP16)
        return;
    double largest = 0;
    for (int i = 0; i < report->note->optimizer_count; i++)
        if (report->note->scales[i].scaler == 0) // another scale holds the gradients of others
            largest = fmax(largest, run_reported(report, i).largest);
    if (!(largest > 0) || largest * run->scale_last * room > end_of_fp16)
        return;
    run_diagnose(
        run, DIAGNOSIS_SCALE_STUCK, "",
        "the loss scale has stood at %s for %d steps, though gradients of up to %.2g would "
        "fit at %g: the rule \"%s\" forgets overflows slowly; --loss-scale dynamic comes "
        "up again",
        shortest_of_float(run->scale_last).text, LONG, largest,
        exp2(floor(log2(end_of_fp16 / largest))), scale_kind_name(kind));
}

void run_check_skips(RunState *state, const StepReport *report, bool was_skipped,
                     bool was_applied) {
    if (state->run.is_silent)
        return;
    check_many_skips(state, report, was_skipped);
    if (was_applied)
        check_stuck(state, report);
}
