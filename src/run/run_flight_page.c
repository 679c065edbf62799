// What the flight recorder tells: the tensor, the cause, what led there and what mends it, in words
// and figures for the history.
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/shortest.h"
#include "run/run_private.h"

typedef struct Telling {
    RunState *state;
    const FaultOrigin *origin; // NULL: a gradient was rounded
    const Tensor *parameter;   // whose gradient is not finite; NULL: the loss is not
    const StepScale *scale;    // that it was multiplied by
    bool was_skipped;          // and what running statistics kept was taken back
    bool vanished;             // the loss is finite: something finite was made of it
    Format format;
    int number;        // of the layer; 0: outside of all,
    const char *layer; // and its name is ""
    Flight flight;
} Telling;

static bool is_overflow(const Telling *telling) {
    const FaultOrigin *origin = telling->origin;
    return !origin || origin->cause == FAULT_OVERFLOWED || origin->scales ||
           (origin->cause == FAULT_SUMMED && telling->format == FORMAT_FP16);
}

static bool is_backward(const Telling *telling) {
    return !telling->origin || telling->origin->is_backward || telling->origin->scales;
}

// Where a running statistic itself was rounded to inf, or became so; what came from elsewhere it
// only keeps.
static bool is_buffer(const Telling *telling) {
    return telling->origin && telling->origin->is_buffer;
}

// As scripts know it: what stands here they never call themselves.
static const char *op_name(OpId op) {
    static const char *const inner[OP_COUNT] = {
        [OP_cast] = "an operation",
        [OP_batch_norm_infer] = "batch_norm",
        [OP_batch_norm_track] = "batch_norm",
    };
    return op >= OP_COUNT ? "" : inner[op] ? inner[op] : op_table[op].name;
}

// ---- the tensor ---------------------------------------------------------------------------------

static void name_gradient(Telling *telling, const char *place) {
    Flight *flight = &telling->flight;
    const FaultOrigin *origin = telling->origin;
    const char *walked = origin->function[0] ? origin->function : op_name(origin->walked);
    if (origin->cause == FAULT_SUMMED) {
        snprintf(flight->tensor, sizeof flight->tensor, "sum of gradients");
        snprintf(flight->sentence, sizeof flight->sentence, "the sum of the gradients that meet %s",
                 place);
        return;
    }
    snprintf(flight->tensor, sizeof flight->tensor, "gradient through %.40s",
             walked[0] ? walked : op_name(origin->op));
    snprintf(flight->sentence, sizeof flight->sentence, "the gradient through %.60s %s",
             walked[0] ? walked : op_name(origin->op), place);
}

static void name_tensor(Telling *telling) {
    Flight *flight = &telling->flight;
    const FaultOrigin *origin = telling->origin;
    char place[160];
    if (telling->layer[0])
        snprintf(place, sizeof place, "in %.60s", telling->layer);
    else
        snprintf(place, sizeof place, "outside of every layer");
    if (!origin) {
        const char *name = run_name_of(telling->parameter);
        snprintf(flight->tensor, sizeof flight->tensor, "gradient of %.50s", name);
        snprintf(flight->sentence, sizeof flight->sentence, "the gradient of %.60s, rounded to %s",
                 name, format_name(telling->format));
        return;
    }
    if (origin->function[0] && !origin->is_backward) {
        const size_t used = strlen(place);
        snprintf(place + used, sizeof place - used, ", in the function %.40s", origin->function);
    }
    const char *op = op_name(origin->op);
    if (origin->scales) {
        snprintf(flight->tensor, sizeof flight->tensor, "loss times its scale");
        snprintf(flight->sentence, sizeof flight->sentence, "the loss times its scale, %s",
                 shortest_of_float(telling->scale->before).text);
        return;
    }
    if (is_buffer(telling)) {
        snprintf(flight->tensor, sizeof flight->tensor, "%.50s", origin->buffer);
        snprintf(flight->sentence, sizeof flight->sentence,
                 "the buffer %.50s %s, in %s, which keeps it for every evaluation", origin->buffer,
                 place, format_name(telling->format));
    } else if (origin->cause == FAULT_WEIGHT || origin->weight[0]) {
        snprintf(flight->tensor, sizeof flight->tensor, "weight %.50s", origin->weight);
        snprintf(flight->sentence, sizeof flight->sentence, "the weight %.60s%s%s", origin->weight,
                 origin->cause == FAULT_WEIGHT ? "" : ", rounded to ",
                 origin->cause == FAULT_WEIGHT ? "" : format_name(telling->format));
    } else if (origin->is_backward) {
        name_gradient(telling, place);
    } else if (origin->cause == FAULT_GIVEN) {
        snprintf(flight->tensor, sizeof flight->tensor, "data");
        snprintf(flight->sentence, sizeof flight->sentence, "the data that %s is given %s",
                 op[0] ? op : "the loss", place);
    } else if (origin->op == OP_cast) {
        snprintf(flight->tensor, sizeof flight->tensor, "input rounded to %s",
                 format_name(telling->format));
        snprintf(flight->sentence, sizeof flight->sentence,
                 "the input of an operation %s, rounded to %s", place,
                 format_name(telling->format));
    } else {
        snprintf(flight->tensor, sizeof flight->tensor, "output of %.50s", op);
        snprintf(flight->sentence, sizeof flight->sentence, "the output of %s %s", op, place);
    }
}

static void add(Telling *telling, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(Telling *telling, const char *format, ...) {
    char *text = telling->flight.sentence;
    const size_t used = strlen(text), size = sizeof telling->flight.sentence;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

static void name_first(Telling *telling) {
    const View *view = &telling->origin->view;
    char *text = telling->flight.first;
    size_t used = 0;
    int64_t left = telling->origin->first, below = view_count(view);
    for (int i = 0; i < view->ndim && used < sizeof telling->flight.first - 24; i++) {
        below /= view->shape[i];
        used += (size_t)snprintf(text + used, sizeof telling->flight.first - used, "%s%" PRId64,
                                 i > 0 ? ", " : "", left / below + 1);
        left %= below;
    }
}

static void count_tensor(Telling *telling) {
    Flight *flight = &telling->flight;
    const FaultOrigin *origin = telling->origin;
    flight->nans = flight->infs = flight->elements = -1;
    if (!origin || origin->nans < 0)
        return;
    flight->nans = origin->nans;
    flight->infs = origin->infs;
    flight->elements = view_count(&origin->view);
    name_first(telling);
    if (flight->elements > 1)
        add(telling, ": %" PRId64 " of its %" PRId64 " numbers, the first at [%s]",
            flight->nans + flight->infs, flight->elements, flight->first);
}

static void say_sentence(Telling *telling) {
    Flight *flight = &telling->flight;
    const FaultOrigin *origin = telling->origin;
    name_tensor(telling);
    char tensor[sizeof flight->sentence];
    utf8_copy(tensor, sizeof tensor, flight->sentence);
    const bool is_known = !origin || origin->is_nan || origin->nans >= 0;
    const char *kind = !is_known ? "nan or inf" : origin && origin->is_nan ? "nan" : "inf";
    snprintf(flight->sentence, sizeof flight->sentence, "%s at step %" PRId64 " %s, in %.240s",
             kind, flight->step, is_backward(telling) ? "on the way back" : "on the way forward",
             tensor);
    count_tensor(telling);
    if (origin && origin->place[0])
        add(telling, "; %.90s", flight->place);
    if (origin && origin->buffer && !is_buffer(telling) && !telling->was_skipped)
        add(telling, "; %s keeps it for every evaluation", origin->buffer);
    if (telling->vanished)
        add(telling, "; the loss is finite, and %s comes back through it",
            telling->was_skipped ? "nan" : "no gradient");
    add(telling, "; key n, or `show --first-nan`, has the way there");
}

// ---- what led there -----------------------------------------------------------------------------

static void copy_way(Telling *telling, int layer) {
    Flight *flight = &telling->flight;
    const FlightRing *ring = &telling->state->flight;
    const int64_t end = run_flight_at(ring, flight->step) + 1;
    const int64_t oldest = ring->count > FLIGHT_STEPS ? ring->count - FLIGHT_STEPS : 0;
    flight->count = end > oldest && layer < ring->layers ? (int)(end - oldest) : 0;
    for (int i = 0; i < flight->count; i++) {
        const int64_t at = oldest + i;
        const float *row =
            ring->values + ((at % FLIGHT_STEPS) * ring->layers + layer) * (int64_t)KEPT_VALUES;
        flight->steps[i] = ring->step[at % FLIGHT_STEPS];
        flight->each[i] =
            (FlightWay){.activation = (double)row[KEPT_ACTIVATION],
                        .gradient = (double)row[KEPT_GRADIENT],
                        .weight = (double)row[KEPT_WEIGHT],
                        .near = (double)row[KEPT_NEAR],
                        .scale = isnan(row[KEPT_SCALE]) ? ring->scale[at % FLIGHT_STEPS]
                                                        : (double)row[KEPT_SCALE]};
    }
    if (flight->count == 0)
        return;
    FlightWay *last = &flight->each[flight->count - 1];
    if (telling->vanished) { // it is nothing new of this step
        for (int i = 0; i < flight->count; i++)
            if (ring->overflowed[(oldest + i) % FLIGHT_STEPS] == layer)
                flight->each[i].activation = INFINITY;
        return;
    }
    if (is_backward(telling))
        last->gradient = INFINITY;
    else if (telling->origin->cause == FAULT_WEIGHT)
        last->weight = INFINITY;
    else if (!is_buffer(telling)) // the outputs are finite
        last->activation = INFINITY;
}

static void say_what_led(Telling *telling) {
    const double risen = 4; // times: less is how steps differ
    Flight *flight = &telling->flight;
    const bool back = is_backward(telling);
    if (is_buffer(telling)) {
        snprintf(flight->led, sizeof flight->led,
                 "the loss is finite, and training goes on as if nothing were: it takes the "
                 "statistics of each batch");
        return;
    }
    if (telling->vanished) {
        const int64_t since = telling->state->flight.overflowed_from;
        char seen[48] = "";
        if (since > 0 && since < flight->step)
            snprintf(seen, sizeof seen, "seen first at step %" PRId64 "; ", since);
        snprintf(flight->led, sizeof flight->led,
                 "%stold now that %s. What follows makes 0, or another finite number, of the inf, "
                 "as where something is divided by it",
                 seen,
                 telling->was_skipped ? "gradients are nan, which no loss scale mends"
                                      : "gradients have been zero for some steps");
        return;
    }
    const bool is_layer = telling->layer[0];
    const char *what = back       ? is_layer ? "the layer's gradients, at the loss scale,"
                                             : "the gradients outside of every layer, at the loss scale,"
                       : is_layer ? "the layer's outputs"
                                  : "what is computed outside of every layer";
    double first = (double)NAN, last = (double)NAN;
    int64_t first_step = 0, last_step = 0;
    for (int i = 0; i < flight->count - 1; i++) {
        const double value = back ? flight->each[i].gradient : flight->each[i].activation;
        if (!isfinite(value))
            continue;
        if (isnan(first)) {
            first = value;
            first_step = flight->steps[i];
        }
        last = value;
        last_step = flight->steps[i];
    }
    if (isnan(last))
        snprintf(flight->led, sizeof flight->led, "no step before it is known");
    else if (last >= risen * first)
        snprintf(flight->led, sizeof flight->led,
                 "the largest of %s rose from %.3g at step %" PRId64 " to %.3g at "
                 "step %" PRId64 "; %s ends at %.5g",
                 what, first, first_step, last, last_step, flight->format, flight->limit);
    else if (first_step == last_step)
        snprintf(flight->led, sizeof flight->led,
                 "it came at once: the largest of %s was %.3g at step %" PRId64
                 ", the only one before it that is known",
                 what, last, last_step);
    else
        snprintf(flight->led, sizeof flight->led,
                 "nothing rose: the largest of %s was %.3g at step %" PRId64
                 " and %.3g at step %" PRId64 "; it came at once",
                 what, first, first_step, last, last_step);
}

// ---- what mends it ------------------------------------------------------------------------------

static bool is_typed(const Run *run, const char *option) {
    for (int i = 0; i < run->options->typed_count; i++)
        if (strcmp(run->options->typed[i].name, option) == 0)
            return true;
    return false;
}

static void change_format(Telling *telling, Format to) {
    const char *format = format_name(to);
    Flight *flight = &telling->flight;
    if (telling->layer[0])
        snprintf(flight->change, sizeof flight->change, "layer.%.60s=%s", telling->layer, format);
    else
        snprintf(flight->change, sizeof flight->change, "%s", format);
}

static void mend_overflow(Telling *telling) {
    enum { FIRST_UPDATES = 3 };
    Flight *flight = &telling->flight;
    const StepScale *scale = telling->scale;
    const bool is_fixed = scale->rule && scale->rule->kind == SCALE_STATIC;
    if (is_backward(telling) && is_fixed && scale->before > 1) {
        snprintf(flight->remedy, sizeof flight->remedy,
                 "the loss scale %s is fixed and too large: one that finds its own, %s",
                 shortest_of_float(scale->before).text,
                 scale->is_other ? "mp.scaler \"dynamic\"" : "--loss-scale dynamic");
        if (!scale->is_other)
            snprintf(flight->change, sizeof flight->change, "loss_scale=dynamic");
        return;
    }
    if (run_mend_grown(telling->state, telling->number, flight) ||
        (is_backward(telling) && run_mend_large(telling->state, scale->before, flight)))
        return;
    Phrase remedy = phrase_begin(flight->remedy, sizeof flight->remedy);
    phrase_add(&remedy, "%s ends at %.5g: %s in %s, which ends where fp32 does",
               format_name(telling->format), format_table[telling->format].largest,
               telling->layer[0] ? "this layer" : "the run", format_name(FORMAT_BF16));
    // What the first updates did to the weights they did in every format.
    const int64_t updates = telling->state->run.applied;
    if (!is_backward(telling) && updates > 0 && updates <= FIRST_UPDATES)
        phrase_add(&remedy,
                   "; after %s in all a learning rate that is too high is as likely: then start "
                   "again with a lower one",
                   updates == 1 ? "one update" : "a few updates");
    change_format(telling, FORMAT_BF16);
}

const char run_what_makes_nan[] = "inf - inf, 0 times inf or a logarithm of 0 within it";

static void mend_made(Telling *telling) {
    Flight *flight = &telling->flight;
    const FaultOrigin *origin = telling->origin;
    const bool divides = !origin->has_asked && (origin->divides || origin->is_backward);
    const bool is_large = !origin->has_asked && !divides && !origin->is_nan;
    if (is_large && run_mend_grown(telling->state, telling->number, flight))
        return;
    if (origin->has_asked)
        snprintf(flight->remedy, sizeof flight->remedy,
                 "inf - inf or 0 times inf, which no format mends: the infinities are the script's "
                 "own (a mask, perhaps): leave a finite number in each row, or take -1e4 for them");
    else if (divides)
        snprintf(flight->remedy, sizeof flight->remedy,
                 "%s a division by 0, or a root or logarithm of 0, which no format mends: keep its "
                 "inputs away from 0 (an epsilon, a clamp) in the script",
                 origin->divides ? "it is" : "it may be");
    else if (origin->is_nan)
        snprintf(flight->remedy, sizeof flight->remedy,
                 "%s, which no format mends: smaller inputs, and none of 0 where it takes a "
                 "logarithm",
                 run_what_makes_nan);
    else
        snprintf(flight->remedy, sizeof flight->remedy,
                 "more than %s holds, which no other format mends: a lower learning rate, or "
                 "smaller inputs",
                 format_name(telling->format));
    if (is_large && telling->format == FORMAT_FP16)
        change_format(telling, FORMAT_BF16);
}

// Of a weight or a running statistic that was so before the step.
static void mend_kept(Telling *telling) {
    Flight *flight = &telling->flight;
    const Run *run = &telling->state->run;
    if (run_is_inherited(run, flight->step)) {
        Phrase text = phrase_begin(flight->remedy, sizeof flight->remedy);
        run_add_inherited(&text, run);
    } else if (is_typed(run, "weights")) {
        snprintf(flight->remedy, sizeof flight->remedy,
                 "the file of --weights has numbers that are not finite: take another, or the "
                 "checkpoint before it");
    } else if (is_buffer(telling)) {
        snprintf(flight->remedy, sizeof flight->remedy,
                 "no batch of a step made it: look at what the script writes into it, and at what "
                 "the model is given outside of steps, where model:eval() keeps it as it is");
    } else if (flight->step <= 1) {
        snprintf(flight->remedy, sizeof flight->remedy,
                 "it was so before the first step: look at how the script makes or loads it");
    } else {
        snprintf(flight->remedy, sizeof flight->remedy,
                 "an update carried it past the end of fp32: a fork from before it, with a lower "
                 "learning rate (--set)");
    }
}

static void say_remedy(Telling *telling) {
    Flight *flight = &telling->flight;
    const FaultOrigin *origin = telling->origin;
    flight->from = flight->step - 1;
    if (is_overflow(telling))
        mend_overflow(telling);
    else if (origin->cause == FAULT_WEIGHT || (origin->cause == FAULT_GIVEN && is_buffer(telling)))
        mend_kept(telling);
    else if (origin->cause == FAULT_GIVEN)
        snprintf(flight->remedy, sizeof flight->remedy,
                 "no operation made it: clean the data%s%s%s, or skip such samples in the script",
                 flight->first[0] ? " (the batch of this step has it at [" : "", flight->first,
                 flight->first[0] ? "])" : "");
    else
        mend_made(telling);
}

// ---- told ---------------------------------------------------------------------------------------

static void put_value(void *context, const char *name, const char *text) {
    const Telling *telling = context;
    run_record_event_at(&telling->state->run, telling->flight.step, EVENT_FLIGHT, name, (double)NAN,
                        text);
}

static const char *cause_name(const Telling *telling) {
    static const char *const names[] = {[FAULT_OVERFLOWED] = "overflow",
                                        [FAULT_MADE] = "made",
                                        [FAULT_WEIGHT] = "weight",
                                        [FAULT_GIVEN] = "data",
                                        [FAULT_SUMMED] = "sum"};
    return telling->origin ? names[telling->origin->cause] : "rounding";
}

static void tell(RunState *state, const FaultOrigin *origin, const Tensor *parameter,
                 const StepScale *scale, bool was_skipped, bool vanished) {
    Run *run = &state->run;
    if (state->flight.is_told)
        return;
    state->flight.is_told = true;
    const Policy *policy = run->engine->policy;
    const Parameter *own = parameter ? parameter_of(parameter) : NULL;
    const int layer = origin ? origin->layer : own ? own->layer : 0;
    Telling telling = {.state = state,
                       .origin = origin,
                       .parameter = parameter,
                       .scale = scale,
                       .was_skipped = was_skipped,
                       .vanished = vanished,
                       .format = origin ? origin->view.format
                                 : own  ? own->round_to
                                        : FORMAT_FP32,
                       .number = layer,
                       .layer = policy_layer(policy, layer)->name};
    Flight *flight = &telling.flight;
    flight->step = run->step;
    flight->limit = format_table[telling.format].largest;
    utf8_copy(flight->way, sizeof flight->way, is_backward(&telling) ? "backward" : "forward");
    utf8_copy(flight->cause, sizeof flight->cause, cause_name(&telling));
    utf8_copy(flight->layer, sizeof flight->layer, telling.layer);
    utf8_copy(flight->format, sizeof flight->format, format_name(telling.format));
    if (origin) {
        utf8_copy(flight->op, sizeof flight->op,
                  origin->op < OP_COUNT ? op_table[origin->op].name : "");
        utf8_copy(flight->function, sizeof flight->function, origin->function);
        const char *folder_end = strrchr(origin->place, '/');
        utf8_copy(flight->place, sizeof flight->place, folder_end ? folder_end + 1 : origin->place);
    }
    say_sentence(&telling);
    copy_way(&telling, layer);
    say_what_led(&telling);
    say_remedy(&telling);
    FlightRing *ring = &state->flight;
    ring->told_step = flight->step;
    ring->told_layer = layer;
    ring->told_op = is_backward(&telling) ? OP_COUNT : origin->op;
    snprintf(ring->told, sizeof ring->told, "%.63s%s%.63s, %.8s", flight->tensor,
             flight->layer[0]           ? " in "
             : origin && origin->scales ? ""
                                        : " outside of every layer",
             flight->layer, is_backward(&telling) ? "backward" : "forward");
    utf8_copy(ring->remedy, sizeof ring->remedy, flight->remedy);
    run_tell(run, EVENT_FAULT, telling.layer, (double)NAN, flight->sentence);
    flight_write(flight, put_value, &telling);
}

void run_tell_flight(RunState *state, const FaultOrigin *origin, const Tensor *parameter,
                     const StepScale *scale, bool was_skipped) {
    tell(state, origin, parameter, scale, was_skipped, false);
}

void run_tell_vanished(RunState *state, const FaultOrigin *origin, bool was_skipped) {
    const Run *run = &state->run;
    const StepScale scale = {.rule = run->scaler ? scaler_rule(run->scaler) : NULL,
                             .before = run->scale_last};
    tell(state, origin, NULL, &scale, was_skipped, true);
}
