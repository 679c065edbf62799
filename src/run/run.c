#include "run/run.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/load.h"
#include "base/memory.h"
#include "base/stops.h"
#include "base/whole_path.h"
#include "kernel/allocator.h"
#include "run/recorder_private.h"
#include "run/run_private.h"
#include "run/twin_private.h"

// ---- life ---------------------------------------------------------------------------------------

static bool open_device(const RunOptions *options, Device **device, Error *passed, Error *error) {
    const char *name = options->device;
    bool is_named = name && strcmp(name, "auto") != 0;
    if (is_named ? !device_open(name, options->threads, device, error)
                 : !device_open_best(options->threads, device, passed, error))
        return false;
    const Backend *backend = (*device)->backend;
    // A twin looks in between, which a device that captures steps itself does not let it.
    (*device)->no_capture = options->no_capture || (options->twin && backend->end_step);
    if (options->ways && backend->take_ways) // where it cannot, the run tells: tell_ways
        (void)backend->take_ways(*device, options->ways);
    return true;
}

// Of a run that goes on where the device has lost the ways that it began by.
static void tell_ways(Run *run) {
    char now[RECORD_TEXT_SIZE], text[3 * RECORD_TEXT_SIZE];
    if (!run->options->ways || !run->device->backend->ways)
        return;
    run->device->backend->ways(run->device, now, sizeof now);
    if (strcmp(now, run->options->ways) == 0)
        return;
    snprintf(text, sizeof text,
             "computes \"%s\" and no longer \"%s\", which this processor lacks: results part from "
             "those before in their last bits",
             now, run->options->ways);
    run_tell(run, EVENT_LIFE, "", (double)NAN, text);
}

static void tell_threads(Run *run) {
    const int threads = run->device->threads, processors = load_processors();
    char text[128];
    if (threads <= processors)
        return;
    snprintf(text, sizeof text,
             "%d threads on %d processor%s: they wait for each other, and steps are slower for it",
             threads, processors, processors == 1 ? "" : "s");
    run_tell(run, EVENT_LIFE, "", (double)NAN, text);
}

Run *run_new(const RunOptions *options, Error *error) {
    RunState *state = calloc(1, sizeof *state);
    if (!state) {
        error_fail(error, ERROR_MEMORY, "no memory for the run");
        return NULL;
    }
    Run *run = &state->run;
    run->options = options;
    run->status = RUN_RUNNING;
    run->step_limit = options->steps;
    run->total_steps = options->steps;
    run->epochs = options->epochs;
    run->scale_last = run->scale_min = run->scale_max = 1;
    state->loss_step = state->bad_loss_step = -1;
    Preset preset;
    Error passed = {0};
    char why[1];
    if (!preset_resolve("fp32", NULL, &preset, why, 0, error) ||
        !open_device(options, &run->device, &passed, error) ||
        !(run->engine = engine_new(run->device, &preset, options->seed, error))) {
        run_free(run);
        return NULL;
    }
    // So that a script that keeps tensors without end is told, and nothing else is ended for it.
    allocator_set_limit(run->device->allocator, memory_of_machine() / 10 * 9);
    run->started = stops_clock();
    run_look_around(run);
    for (int i = 0; i < options->fact_count; i++)
        if (twin_is_fact(options->facts[i].name) ||
            strcmp(options->facts[i].name, RECORD_FACT_MEMORY) == 0)
            run_add_fact(run, options->facts[i].name, options->facts[i].value);
    if (passed.code != ERROR_NONE)
        run_add_fact(run, "device.passed", passed.text);
    state->stops_of_energy = stops_count();
    energy_begin(&state->energy, NULL);
    vitals_begin(&state->vitals, run->device);
    run_resume_clock(run);
    return run;
}

void run_free(Run *run) {
    if (!run)
        return;
    run_drop_pending(run_state(run));
    run_free_reports(run_state(run));
    run_free_sampler(run_state(run));
    run_free_zeros(run_state(run));
    run_free_factors(run_state(run));
    run_free_flight(run_state(run));
    for (int i = 0; i < run->optimizer_count; i++)
        run_forget_gradients(&run_state(run)->watched[i]);
    engine_free(run->engine);
    device_close(run->device);
    free(run);
}

static bool set_rules(const Run *run, const RunLayerRule *rules, int count, Error *error) {
    Policy *policy = run->engine->policy;
    for (int i = 0; i < count; i++)
        if (!(run->options->evaluates ? layer_precision_check_evaluated : layer_precision_check)(
                rules[i].precision, run->device, error) ||
            !policy_set(policy, rules[i].pattern, rules[i].precision, NULL, error))
            return false;
    return true;
}

static bool has_fp16(const RunLayerRule *rules, int count) {
    for (int i = 0; i < count; i++)
        if (rules[i].precision == LAYER_FP16)
            return true;
    return false;
}

// What --loss-scale says, else the precision; that of a wide format says "none", which flushes the
// gradients of layers that are set to fp16. Presets in fp16 without one show what comes of that.
static const char *choose_scale(const Run *run, const Preset *preset, const RunLayerRule *rules,
                                int rule_count) {
    const RunOptions *options = run->options;
    const bool is_wide = preset->low != FORMAT_FP16 && strcmp(preset->loss_scale, "none") == 0;
    if (options->loss_scale)
        return options->loss_scale;
    return is_wide && !options->evaluates &&
                   (has_fp16(rules, rule_count) || has_fp16(options->layers, options->layer_count))
               ? "dynamic"
               : preset->loss_scale;
}

void run_announce(Run *run) {
    const Preset *preset = policy_preset(run->engine->policy);
    tell_ways(run);
    tell_threads(run);
    if (run->precision_why[0]) {
        char text[256];
        snprintf(text, sizeof text, "precision auto: %s, since %s", preset->name,
                 run->precision_why);
        run_tell(run, EVENT_LIFE, "", (double)NAN, text);
    }
    if (!run->options->loss_scale &&
        strcmp(run_state(run)->scale_rule_name, preset->loss_scale) != 0)
        run_tell(run, EVENT_LIFE, "", (double)NAN,
                 "loss scale dynamic, since layers are set to fp16; --loss-scale none trains "
                 "without");
}

// Whole: who resumes may stand in another folder.
void run_set_script(Run *run, const char *path, const char *hash, const char *text, size_t length) {
    whole_path(run->script.path, sizeof run->script.path, path);
    utf8_copy(run->script.hash, sizeof run->script.hash, hash);
    run->script.text = text;
    run->script.length = length;
}

bool run_configure(Run *run, const char *experiment, const char *default_precision,
                   const RunLayerRule *rules, int rule_count, Error *error) {
    const RunOptions *options = run->options;
    assert(policy_layer_count(run->engine->policy) == 1); // only "no layer"
    utf8_copy(run->experiment, sizeof run->experiment, experiment);
    utf8_copy(run->name, sizeof run->name, options->name ? options->name : experiment);
    const char *precision = options->precision  ? options->precision
                            : default_precision ? default_precision
                                                : "auto";
    Preset preset;
    Recipe recipe;
    Keep keep;
    if (!recipe_parse(options->recipe, &recipe, error) ||
        !recipe_check(&recipe, run->device, error))
        return error_prefix(error, "--recipe");
    if (!keep_parse(options->keep_fp32, &keep, error) ||
        !(options->evaluates ? preset_resolve_evaluated(precision, run->device, &preset, error)
                             : preset_resolve(precision, run->device, &preset, run->precision_why,
                                              sizeof run->precision_why, error)))
        return false;
    const char *scale = choose_scale(run, &preset, rules, rule_count);
    if (!scale_rule_parse(scale, &run->scale_rule, error))
        return false;
    if (options->evaluates && recipe.fp8 == FP8_DELAYED)
        recipe.fp8 = FP8_CURRENT; // there are no steps before
    if (options->evaluates && preset.mode == POLICY_FULL)
        rule_count = 0; // what all else is held against
    utf8_copy(run_state(run)->scale_rule_name, sizeof run_state(run)->scale_rule_name, scale);
    utf8_copy(run->precision, sizeof run->precision, preset.name);
    Policy *policy = policy_new(&preset, error);
    if (!policy)
        return false;
    policy_free(run->engine->policy);
    run->engine->policy = policy;
    policy_set_recipe(policy, &recipe);
    policy_set_keep(policy, &keep);
    if (!set_rules(run, rules, rule_count, error) ||
        !set_rules(run, options->layers, options->layer_count, error))
        return false;
    if (!options->evaluates && !options->profiles)
        lookout_open(run->engine);
    if (!twin_configured(run_state(run), error))
        return false;
    twin_before_record(run_state(run));
    if ((run->recorder && !recorder_begin(run->recorder, run, error)) ||
        !twin_recorded(run_state(run), error))
        return false;
    run->script.text = NULL;
    if (options->layer_count == 0) // else what is typed of layers may still be refused
        run_announce(run);
    return true;
}

void run_add_optimizer(Run *run, Optimizer *optimizer) {
    if (run->optimizer_count == RUN_MAX_OPTIMIZERS)
        return;
    run_state(run)->watched[run->optimizer_count] = (WatchedOptimizer){.optimizer = optimizer};
    run->optimizers[run->optimizer_count++] = optimizer;
}

void run_remove_optimizer(Run *run, const Optimizer *optimizer) {
    run_settle(run_state(run)); // reports tell of it
    WatchedOptimizer *watched = run_state(run)->watched;
    int kept = 0;
    for (int i = 0; i < run->optimizer_count; i++)
        if (run->optimizers[i] != optimizer) {
            run->optimizers[kept] = run->optimizers[i];
            watched[kept++] = watched[i]; // what was counted of each stays with it
        } else {
            run_forget_gradients(&watched[i]);
        }
    run->optimizer_count = kept;
}

bool run_add_parameter(Run *run, const RecordParameter *parameter, Error *error) {
    if (run->parameter_count == RUN_MAX_PARAMETERS)
        return error_fail(error, ERROR_FAILED, "params: more than %d parameters",
                          RUN_MAX_PARAMETERS);
    run->parameters[run->parameter_count++] = *parameter;
    return true;
}

void run_finish(Run *run, const Error *error) {
    if (!run_status_goes_on(run->status))
        return;
    RunState *state = run_state(run);
    run_report_points(state);
    run_settle(state);
    run_tell_skip(state);
    if (!error && state->fault.code != ERROR_NONE)
        error = &state->fault;
    run_pause_clock(run);
    run_look_again(run); // while the scaler is there
    run->ended = stops_clock();
    state->ended_ms = run_wall_ms();
    run_sample_energy(run);
    // One whose steps were all made is whole, unless the order cut off what came after them.
    bool stopped = run_is_to_stop(run) && (error || !state->reached_limit);
    bool is_whole = !error && !stopped && !state->reached_limit && run->options->resumes == 0;
    run_check_steps(state, is_whole);
    if (error && error->code != ERROR_STOPPED) {
        run->status = RUN_FAILED;
        run->error = *error;
    } else {
        run->status = stopped || (error && !state->reached_limit) ? RUN_STOPPED : RUN_FINISHED;
    }
    twin_finished(state);
}

// ---- the clock of the steps ---------------------------------------------------------------------

double run_clock_at(const RunState *state, double now) {
    return state->run.training_seconds + (state->clock_runs ? now - state->clock_from : 0);
}

double run_clock(const Run *run) {
    return run_clock_at((const RunState *)run, clock_seconds());
}

// As a stop (see stop_signal), these are of the process. How many there were.
static atomic_int breaks;

void run_note_break(void) {
    atomic_fetch_add(&breaks, 1);
}

bool run_leave_out_break(RunState *state, double now) {
    const int all = atomic_load(&breaks);
    if (state->clock_runs && all != state->breaks_seen) {
        state->run.training_seconds -= run_clock_at(state, now) - state->step_clock;
        state->step_has_break = true;
    }
    state->breaks_seen = all;
    return state->step_has_break;
}

bool run_pause_clock(Run *run) {
    bool ran = run_state(run)->clock_runs;
    (void)run_leave_out_break(run_state(run), clock_seconds());
    if (ran)
        run_drop_sample(run_state(run)); // what comes now is no step's
    run->engine->lookout.is_on = false;
    run->training_seconds = run_clock(run);
    run_state(run)->clock_runs = false;
    return ran;
}

void run_resume_clock(Run *run) {
    RunState *state = run_state(run);
    run_pause_clock(run);
    if (run->step == 0) // what came before the first step was no training
        run->training_seconds = 0;
    run->engine->lookout.is_on = run->engine->lookout.is_open;
    state->clock_from = clock_seconds();
    state->clock_runs = true;
}

void run_leave_out(Run *run, double since) {
    double seconds = run_clock(run) - since;
    if (seconds <= 0)
        return;
    run_drop_sample(run_state(run));
    run->training_seconds -= seconds;
}

double run_wall(const Run *run) {
    const RunState *state = (const RunState *)run;
    const double now = state->waits > 0 ? state->waits_since : stops_clock();
    return (run->ended > 0 ? run->ended : now) - run->started;
}

void run_begin_wait(RunState *state) {
    if (state->waits == 0) {
        run_look_at_energy(state);
        state->waits_since = stops_clock();
    }
    state->waits++;
}

void run_end_wait(RunState *state) {
    if (state->waits == 1) {
        run_look_at_energy(state);
        const double waited = stops_clock() - state->waits_since;
        if (state->run.ended == 0)
            state->run.started += waited;
        if (state->clock_runs) // within a step, for the history
            state->run.training_seconds -= waited;
    }
    state->waits--;
}

uint64_t run_samples(const Run *run) {
    return run->samples > 0 ? run->samples : (uint64_t)run->step * run->samples_a_step;
}

double run_steps_per_second(const Run *run) {
    const RunState *state = (const RunState *)run;
    double seconds = state->step_clock - state->first_step_seconds;
    double steps = (double)(run->step - run->forked_at - 1);
    return steps > 0 && seconds > 0 ? steps / seconds : 0;
}

// ---- what is said about it ----------------------------------------------------------------------

void run_record_event(Run *run, EventKind kind, const char *layer, double value, const char *text) {
    run_record_event_at(run, run->step, kind, layer, value, text);
}

void run_record_event_at(Run *run, int64_t step, EventKind kind, const char *layer, double value,
                         const char *text) {
    if (!run->recorder || run->is_silent)
        return;
    Event event = {.step = step, .time_ms = run_wall_ms(), .kind = kind, .value = value};
    utf8_copy(event.layer, sizeof event.layer, layer);
    utf8_copy(event.text, sizeof event.text, text);
    recorder_event(run->recorder, &event);
}

void run_tell(Run *run, EventKind kind, const char *layer, double value, const char *text) {
    if (run->observer.event && !run->is_silent)
        run->observer.event(run->observer.context, run, text);
    run_record_event(run, kind, layer, value, text);
}

void run_event(Run *run, const char *text) {
    run_tell(run, EVENT_MESSAGE, "", (double)NAN, text);
}

void run_diagnose(Run *run, DiagnosisKind kind, const char *layer, const char *format, ...) {
    const char *name = diagnosis_table[kind].name;
    for (int i = 0; i < run->diagnosis_count; i++)
        if (strcmp(run->diagnoses[i].kind, name) == 0 &&
            strncmp(run->diagnoses[i].layer, layer, RUN_NAME_SIZE - 1) == 0)
            return;
    if (run->diagnosis_count == RUN_MAX_DIAGNOSES)
        return;
    RecordDiagnosis *diagnosis = &run->diagnoses[run->diagnosis_count++];
    utf8_copy(diagnosis->kind, sizeof diagnosis->kind, name);
    utf8_copy(diagnosis->layer, sizeof diagnosis->layer, layer);
    diagnosis->step = run->step;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(diagnosis->text, sizeof diagnosis->text, format, arguments);
    va_end(arguments);
    run_tell(run, EVENT_DIAGNOSIS, diagnosis->layer, (double)NAN, diagnosis->text);
}

// ---- asking for the end -------------------------------------------------------------------------

void run_stop(Run *run, const char *reason) {
    utf8_copy(run->stop_reason, sizeof run->stop_reason, reason);
    atomic_store(&run->stop_asked, 1);
    if (reason[0])
        run_tell(run, EVENT_LIFE, "", (double)NAN, reason);
}

bool run_is_to_stop(const Run *run) {
    TwinLink *twin = run->options->twin;
    return atomic_load(&run->stop_asked) || run_stop_requested() || (twin && twin_is_left(twin));
}

// A signal handler has no other way to reach the run than a variable of the program; other threads
// read it, too.
static atomic_int stop_signal;
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler may store it");

void run_request_stop(int signal_number) {
    atomic_store(&stop_signal, signal_number);
}

int run_stop_requested(void) {
    return atomic_load(&stop_signal);
}
