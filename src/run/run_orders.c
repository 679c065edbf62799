// Orders from outside, at a step boundary: what each does, and why one is refused. And what else
// the recorder's thread wants of the run's: a record of it, a pause while the disk is full, its
// end.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/shortest.h"
#include "precision/untaken.h"
#include "run/recorder_private.h"
#include "run/run_private.h"

// ---- the orders ---------------------------------------------------------------------------------

// Each writes one line into `answer`; false: refused, and nothing has changed.
typedef bool (*Obey)(Run *run, const char *argument, char *answer);

#define ANSWER(...) snprintf(answer, COMMAND_ANSWER_SIZE, __VA_ARGS__)

static bool refuse(char *answer, const Error *error) {
    ANSWER("%.*s", COMMAND_ANSWER_SIZE - 1, error->text);
    return false;
}

static bool obey_pause(Run *run, const char *argument, char *answer) {
    (void)argument;
    bool was_paused = run->status == RUN_PAUSED;
    run->status = RUN_PAUSED;
    ANSWER("%s after step %lld; `resume` goes on", was_paused ? "already paused" : "paused",
           (long long)run->step);
    return true;
}

static bool obey_resume(Run *run, const char *argument, char *answer) {
    (void)argument;
    if (run->status != RUN_PAUSED) {
        ANSWER("the run is not paused: it is at step %lld", (long long)run->step);
        return false;
    }
    run->status = RUN_RUNNING;
    ANSWER("goes on after step %lld", (long long)run->step);
    return true;
}

static bool obey_stop(Run *run, const char *argument, char *answer) {
    (void)argument;
    atomic_store(&run->stop_asked, 1);
    ANSWER("stopped after step %lld", (long long)run->step);
    return true;
}

static bool obey_checkpoint(Run *run, const char *argument, char *answer) {
    (void)argument;
    Error error = {0};
    if (!run->checkpointer.keep) {
        ANSWER("this run keeps no checkpoints");
        return false;
    }
    return run->checkpointer.keep(run->checkpointer.context, run, "asked", answer,
                                  COMMAND_ANSWER_SIZE, &error) ||
           refuse(answer, &error);
}

// ---- set ----------------------------------------------------------------------------------------

// `run --layer` takes a loss scale by itself where the precision has none; here it is for whoever
// orders, since it tells on all layers.
static const char *say_scale_wanted(const Run *run, LayerPrecision precision) {
    if (precision != LAYER_FP16 || (run->scaler && scaler_rule(run->scaler)->kind != SCALE_NONE))
        return "";
    return run->scaler ? "; without a loss scale its small gradients become 0: `set "
                         "loss_scale=dynamic`"
                       : "; its small gradients become 0, since the script has no loss scaler";
}

// What does not take what it was set to; "": all do, as far as is known.
static void say_untaken(const Run *run, const Untaken *untaken, bool is_one, char *text,
                        size_t size) {
    char more[32] = "";
    text[0] = '\0';
    if (untaken->count == 0)
        return;
    if (untaken->count > 1)
        snprintf(more, sizeof more, " and %d more", untaken->count - 1);
    const bool is_itself = is_one && untaken->count == 1 && untaken->others == 0;
    snprintf(text, size, ", but %.40s%s%s in %s still: %s",
             is_itself ? "" : policy_layer(run->engine->policy, untaken->layer)->name, more,
             is_itself            ? "computes"
             : untaken->count > 1 ? " compute"
                                  : " computes",
             format_name(untaken->computed), untaken->why);
}

static bool set_layer(Run *run, const char *pattern, const char *value, char *answer) {
    Error error = {0};
    LayerPrecision precision;
    char hint[POLICY_HINT_SIZE];
    if (!pattern[0]) {
        ANSWER("layer.PATTERN=P is wanted, as in layer.head=fp32");
        return false;
    }
    if (!policy_names(run->engine->policy, pattern, hint)) {
        ANSWER("%.60s: no layer has such a name%s", pattern, hint);
        return false;
    }
    run_apply_changes(run); // the script's own, which are told as such
    if (!layer_precision_parse(value, run->device, &precision, &error) ||
        !policy_queue(run->engine->policy, pattern, precision, &error))
        return refuse(answer, &error);
    policy_apply_queued(run->engine->policy);
    bool is_all = strcmp(pattern, "*") == 0, is_one = !strpbrk(pattern, "*?[");
    const Untaken untaken = untaken_find(run->engine->policy, pattern, precision);
    const bool is_in_vain = untaken.count > 0 && untaken.others == 0;
    char but[COMMAND_ANSWER_SIZE];
    say_untaken(run, &untaken, is_one, but, sizeof but);
    ANSWER("%s%.80s %s %s%s from step %lld on%s%s", is_one || is_all ? "" : "layers ",
           is_all ? "all layers" : pattern, is_one ? "is" : "are", is_in_vain ? "set to " : "",
           layer_precision_name(precision), (long long)run->step + 1, but,
           is_in_vain ? "" : say_scale_wanted(run, precision));
    return true;
}

static bool set_scale(Run *run, const char *rest, const char *value, char *answer) {
    (void)rest;
    Error error = {0};
    ScaleRule rule;
    if (!run->scaler) {
        ANSWER("this run has no loss scaler");
        return false;
    }
    if (!scale_rule_parse(value, &rule, &error)) {
        error_prefix(&error, "loss_scale");
        return refuse(answer, &error);
    }
    // A number sets the scale and leaves the rule by which it moves; a preset sets both.
    bool has_rule = scaler_rule(run->scaler)->kind != SCALE_NONE;
    bool is_number = has_rule && rule.kind == SCALE_STATIC;
    double scale = (double)scale_state_initial(&rule).scale;
    if (!(is_number ? scaler_set(run->scaler, scale, &error)
                    : scaler_set_rule(run->scaler, &rule, &error)))
        return refuse(answer, &error);
    if (!is_number) { // the rule of scalers that the script makes later, too
        run->scale_rule = rule;
        utf8_copy(run_state(run)->scale_rule_name, sizeof run_state(run)->scale_rule_name, value);
    }
    run_include_scale(run, scaler_get(run->scaler));
    ANSWER("the loss scale is %s from step %lld on", shortest_of_float(run->scale_last).text,
           (long long)run->step + 1);
    return true;
}

// lr=X: of all optimizers; lr.2=X: of the second.
static bool set_rate(Run *run, const char *which, const char *value, char *answer) {
    Error error = {0};
    char *end, *end_of_which = NULL;
    double rate = strtod(value, &end);
    long only = which[0] ? strtol(which, &end_of_which, 10) : 0;
    if (!value[0] || *end) {
        ANSWER("lr=%.40s: a number is wanted", value);
        return false;
    }
    if (run->optimizer_count == 0 ||
        (which[0] && (*end_of_which || only < 1 || only > run->optimizer_count))) {
        ANSWER("lr.%.40s: the run has %d optimizer%s, numbered from 1", which, run->optimizer_count,
               run->optimizer_count == 1 ? "" : "s");
        return false;
    }
    for (int i = 0; i < run->optimizer_count; i++)
        if ((!only || only == i + 1) && !optimizer_set_rate(run->optimizers[i], rate, &error))
            return refuse(answer, &error);
    ANSWER("the learning rate is %g from step %lld on", rate, (long long)run->step + 1);
    return true;
}

// recipe.norms=own: a key as --recipe has it, for all layers in scaled formats.
static bool set_recipe(Run *run, const char *key, const char *value, char *answer) {
    Error error = {0};
    char text[COMMAND_ARGUMENT_SIZE];
    Policy *policy = run->engine->policy;
    Recipe recipe = *policy_recipe(policy);
    const int history = recipe.history;
    snprintf(text, sizeof text, "%.100s=%.100s", key, value);
    if (!recipe_change(text, &recipe, &error))
        return refuse(answer, &error);
    if (recipe.history != history) {
        ANSWER("recipe.history: how far scales look back is settled when a run begins");
        return false;
    }
    if (!recipe_check(&recipe, run->device, &error))
        return refuse(answer, &error);
    policy_set_recipe(policy, &recipe);
    ANSWER("the recipe has %.160s from step %lld on", text, (long long)run->step + 1);
    return true;
}

static const struct Setter {
    const char *key; // a dot at its end: the rest of the name is an argument of its own
    bool (*set)(Run *run, const char *rest, const char *value, char *answer);
} setters[] = {{"layer.", set_layer},
               {"loss_scale", set_scale},
               {"lr", set_rate},
               {"lr.", set_rate},
               {"recipe.", set_recipe}};

static bool obey_set(Run *run, const char *argument, char *answer) {
    char key[COMMAND_ARGUMENT_SIZE];
    const char *equals = strrchr(argument, '=');
    if (equals && equals > argument) {
        snprintf(key, sizeof key, "%.*s", (int)(equals - argument), argument);
        for (size_t i = 0; i < sizeof setters / sizeof *setters; i++) {
            size_t length = strlen(setters[i].key);
            bool has_rest = setters[i].key[length - 1] == '.';
            if (has_rest ? strncmp(key, setters[i].key, length) == 0
                         : strcmp(key, setters[i].key) == 0)
                return setters[i].set(run, key + length, equals + 1, answer);
        }
    }
    ANSWER("set %.80s: layer.PATTERN=P, loss_scale=S, lr=X, lr.N=X or recipe.KEY=VALUE can be "
           "set",
           argument);
    return false;
}

static const Obey obeys[COMMAND_VERBS] = {[VERB_PAUSE] = obey_pause,
                                          [VERB_RESUME] = obey_resume,
                                          [VERB_STOP] = obey_stop,
                                          [VERB_CHECKPOINT] = obey_checkpoint,
                                          [VERB_SET] = obey_set};

void run_obey(Run *run, RunCommand *command) {
    CommandVerb verb;
    command->state = COMMAND_REFUSED;
    command->step = run->step;
    if (!command_verb_parse(command->verb, &verb)) {
        snprintf(command->answer, sizeof command->answer, "%.20s: no such order", command->verb);
    } else if (obeys[verb](run, command->argument, command->answer)) {
        command->state = COMMAND_DONE;
    }
    if (command->state == COMMAND_DONE && (verb == VERB_STOP || verb == VERB_CHECKPOINT))
        return; // what comes of it is an event of its own
    char text[EVENT_TEXT_SIZE];
    if (command->state == COMMAND_DONE) // the answer says it all
        snprintf(text, sizeof text, "%.250s", command->answer);
    else
        snprintf(text, sizeof text, "%.20s%s%.120s: refused: %.220s", command->verb,
                 command->argument[0] ? " " : "", command->argument, command->answer);
    run_tell(run, EVENT_COMMAND, "", (double)NAN, text);
}

void run_obey_again(Run *run) {
    RunState *state = run_state(run);
    const RunOptions *options = run->options;
    for (; state->obeyed_again < options->order_count; state->obeyed_again++) {
        RunCommand order = options->orders[state->obeyed_again];
        if (order.step > run->step)
            return;
        if (order.step < run->step) // the checkpoint has it
            continue;
        run_settle(state); // of the steps before it
        run_obey(run, &order);
    }
}

// ---- what the recorder wants --------------------------------------------------------------------

// `only_pauses`: the first that pauses the run or lets it go on.
static bool next_order(Recorder *recorder, bool only_pauses, RunCommand *order) {
    pthread_mutex_lock(&recorder->lock);
    OrderQueue *queue = &recorder->claimed;
    int at = 0;
    while (only_pauses && at < queue->count && !command_is(&queue->orders[at], VERB_PAUSE) &&
           !command_is(&queue->orders[at], VERB_RESUME))
        at++;
    bool found = at < queue->count && recorder->answered.count < MOST_ORDERS;
    if (found) {
        *order = queue->orders[at];
        memmove(queue->orders + at, queue->orders + at + 1,
                (size_t)(--queue->count - at) * sizeof *queue->orders);
    }
    pthread_mutex_unlock(&recorder->lock);
    return found;
}

static void give_answer(Recorder *recorder, const RunCommand *order) {
    pthread_mutex_lock(&recorder->lock);
    recorder->answered.orders[recorder->answered.count++] = *order;
    pthread_mutex_unlock(&recorder->lock);
}

void run_refuse_orders(Run *run) {
    RunCommand order;
    while (next_order(run->recorder, false, &order)) {
        bool was_stop = command_is(&order, VERB_STOP);
        order.state = was_stop ? COMMAND_DONE : COMMAND_REFUSED;
        order.step = was_stop ? run->step : -1;
        snprintf(order.answer, sizeof order.answer, "%s after step %lld",
                 was_stop ? "stopped" : "the run has ended", (long long)run->step);
        give_answer(run->recorder, &order);
    }
}

bool run_publish_record(Run *run, Error *error) {
    RunRecord *record = calloc(1, sizeof *record), *older;
    run_sample_energy(run);
    run_look_again(run);
    if (!record)
        return error_fail(error, ERROR_MEMORY, "no memory for the record of the run");
    if (!run_describe(run, record, error)) {
        free(record);
        return false;
    }
    older = atomic_exchange(&run->recorder->snapshot, record);
    if (older)
        record_clear(older);
    free(older);
    return true;
}

static void tell_over(Run *run) {
    Recorder *recorder = run->recorder;
    if (recorder->has_told_over)
        return;
    recorder->has_told_over = true;
    char text[EVENT_TEXT_SIZE];
    pthread_mutex_lock(&recorder->lock);
    Error fault = recorder->fault;
    pthread_mutex_unlock(&recorder->lock);
    if (fault.code == ERROR_STOPPED) {
        snprintf(text, sizeof text, "%.250s", fault.text);
        run_stop(run, text);
        return;
    }
    if (run->status == RUN_PAUSED) // nobody can order it to go on any more
        run->status = RUN_RUNNING;
    snprintf(text, sizeof text,
             "%.250s; training goes on, but nothing after step %lld is kept in the history",
             fault.text, (long long)run->step);
    run_tell(run, EVENT_LIFE, "", (double)NAN, text);
}

static bool must_wait(const Run *run) {
    bool is_full = atomic_load(&run->recorder->is_full);
    return (run->status == RUN_PAUSED || is_full) && !run_is_to_stop(run);
}

// Whether it waits from here on.
static bool follow_wait(Run *run) {
    RunState *state = run_state(run);
    const bool waits = must_wait(run);
    if (waits && !state->is_to_wait)
        run_begin_wait(state);
    if (!waits && state->is_to_wait)
        run_end_wait(state);
    state->is_to_wait = waits;
    return waits;
}

// What is published once it was told to wait says so, and counts no longer.
static void look_once(Run *run, bool is_within) {
    Recorder *recorder = run->recorder;
    int wanted = atomic_exchange(&recorder->attention, 0);
    RunCommand order;
    if (wanted & ATTEND_OVER)
        tell_over(run);
    // Some may have waited since the answers' queue was full, whatever it is that calls now.
    while (next_order(recorder, is_within, &order)) {
        run_settle(run_state(run)); // of the steps before it
        run_obey(run, &order);
        give_answer(recorder, &order);
        wanted |= ATTEND_SNAPSHOT;
    }
    follow_wait(run);
    if (wanted & ATTEND_SNAPSHOT)
        run_publish_record(run, NULL); // else the next one, in a moment
}

static void wait_for_attention(Recorder *recorder) {
    pthread_mutex_lock(&recorder->lock);
    if (atomic_load(&recorder->attention) == 0)
        recorder_wait_briefly(recorder);
    pthread_mutex_unlock(&recorder->lock);
}

// When the recorder wants something, at a boundary or within a step.
static void attend(Run *run, bool is_within) {
    Recorder *recorder = run->recorder;
    look_once(run, is_within);
    if (!follow_wait(run))
        return;
    run_settle(run_state(run)); // nothing is left untold while it waits
    bool has_told_full = false;
    bool clock_ran = run_pause_clock(run);
    while (follow_wait(run)) {
        bool is_full = atomic_load(&recorder->is_full);
        run->waits_for = is_full ? "disk full" : "paused";
        if (is_full && !has_told_full)
            run_tell(run, EVENT_LIFE, "", (double)NAN,
                     "the disk of the history is full: training waits; free space and it goes on");
        if (!is_full && has_told_full)
            run_tell(run, EVENT_LIFE, "", (double)NAN, "the history has room again");
        has_told_full = is_full;
        if (run->observer.step)
            run->observer.step(run->observer.context, run);
        wait_for_attention(recorder);
        look_once(run, is_within);
    }
    if (has_told_full && !atomic_load(&recorder->is_full))
        run_tell(run, EVENT_LIFE, "", (double)NAN, "the history has room again: training goes on");
    run->waits_for = NULL;
    if (clock_ran)
        run_resume_clock(run);
}

bool run_wants_attention(const Run *run) {
    return run->recorder && !run->is_silent &&
           atomic_load_explicit(&run->recorder->attention, memory_order_relaxed);
}

void run_attend(Run *run) {
    if (run_wants_attention(run))
        attend(run, false);
}

void run_attend_within(Run *run) {
    attend(run, true);
    // What waits for the boundary is looked for there.
    pthread_mutex_lock(&run->recorder->lock);
    bool is_left = run->recorder->claimed.count > 0;
    pthread_mutex_unlock(&run->recorder->lock);
    if (is_left)
        atomic_fetch_or(&run->recorder->attention, ATTEND_ORDERS);
}
