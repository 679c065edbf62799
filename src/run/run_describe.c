// All that is to be said of a run, as the history keeps it and `--json` prints it.
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/allocator.h"
#include "run/run_private.h"
#include "run/twin_private.h"
#include "store/store.h"

int64_t run_wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void run_add_fact(Run *run, const char *name, const char *value) {
    int at = 0;
    while (at < run->fact_count && strcmp(run->facts[at].name, name) != 0)
        at++;
    if (at == RUN_MAX_FACTS)
        return;
    if (at == run->fact_count)
        run->fact_count++;
    utf8_copy(run->facts[at].name, sizeof run->facts[at].name, name);
    utf8_copy(run->facts[at].value, sizeof run->facts[at].value, value);
}

static void drop_fact(Run *run, const char *name) {
    for (int i = 0; i < run->fact_count; i++)
        if (strcmp(run->facts[i].name, name) == 0) {
            run->fact_count--;
            memmove(&run->facts[i], &run->facts[i + 1],
                    (size_t)(run->fact_count - i) * sizeof *run->facts);
            return;
        }
}

static void look_at_scaler(Run *run) {
    const ScaleRule *rule = run->scaler ? scaler_rule(run->scaler) : &run->scale_rule;
    char text[32];
    drop_fact(run, "scaler.interval");
    drop_fact(run, "scaler.ceiling");
    if (rule->kind != SCALE_DYNAMIC)
        return;
    snprintf(text, sizeof text, "%lld", (long long)rule->interval);
    run_add_fact(run, "scaler.interval", text);
    snprintf(text, sizeof text, "%g", rule->ceiling);
    if (rule->ceiling < (double)FLT_MAX) // else there is none
        run_add_fact(run, "scaler.ceiling", text);
}

// The share of its time that a step waits for what is recorded of it; the writer's thread works
// beside it. Facts are written whole when one of them changed: no digit more than is read.
static void look_at_recording(Run *run) {
    const double every = 1;
    RunState *state = run_state(run);
    double now = clock_seconds(), seconds = run_clock(run) - state->watch_from;
    if (!run->recorder || seconds <= 0 || (now < state->next_watch && run->ended == 0))
        return;
    char text[32];
    state->next_watch = now + every;
    snprintf(text, sizeof text, "%.3f", state->watch_seconds / seconds);
    run_add_fact(run, "telemetry.share", text);
    snprintf(text, sizeof text, "%.3f", run_layers_share(run)); // of the steps that were timed
    if (run_layers_share(run) > 0)
        run_add_fact(run, "profile.layers", text);
}

// Where a sensor can be read; in whole degrees, so that it is written when it changed.
static void look_at_temperature(Run *run) {
    const double every = 1;
    RunState *state = run_state(run);
    double now = clock_seconds();
    if (state->temperature.count == 0 || now < state->next_temperature)
        return;
    char text[32];
    double degrees = temperature_read(&state->temperature);
    state->next_temperature = now + every;
    if (isnan(degrees)) {
        drop_fact(run, "temperature");
        return;
    }
    snprintf(text, sizeof text, "%.0f", degrees);
    run_add_fact(run, "temperature", text);
    if (degrees <= state->most_degrees)
        return;
    state->most_degrees = degrees;
    run_add_fact(run, "temperature.most", text);
}

// A number that is rounded as it is kept; where it is unknown, none.
static void add_reading(Run *run, const char *name, int decimals, double value) {
    char text[48];
    if (isnan(value)) {
        drop_fact(run, name);
        return;
    }
    snprintf(text, sizeof text, "%.*f", decimals, value);
    run_add_fact(run, name, text);
}

// Of a device that captures steps, or a script that hands them over to be captured.
static void look_at_captures(Run *run) {
    const Device *device = run->device;
    if (!device->no_capture && device->steps > 0)
        add_reading(run, "steps.captured", 3, (double)device->captured / (double)device->steps);
}

// How a card fares, as it was sampled last; and what the processors took beside it.
static void look_at_card(Run *run) {
    static const char *const names[READINGS] = {
#define READING(id, name, text) [READING_##id] = "card." name,
#include "kernel/readings.def"
    };
    RunState *state = run_state(run);
    const Vitals *vitals = &state->vitals;
    if (!vitals->device)
        return;
    for (int id = 0; id < READINGS; id++)
        if (id != READING_ENERGY) // that is the run's
            add_reading(run, names[id], id == READING_BUSY ? 2 : 0,
                        reading_of(&vitals->now, (ReadingId)id));
    add_reading(run, "card.power.most", 0, vitals->most_watts);
    add_reading(run, "card.temperature.most", 0, vitals->most_degrees);
    add_reading(run, "energy.processors", 0, state->energy.joules);
}

static void add_load(Run *run, const char *name, double processors) {
    char text[48];
    snprintf(text, sizeof text, "%.2f of %d", processors, load_processors());
    run_add_fact(run, name, text);
}

// What other programs did to the processors while the run trained: its speed tells of that, too.
static void look_at_load(Run *run) {
    const double every = 1, stands_still = 0.05;
    RunState *state = run_state(run);
    Load now;
    if ((state->load.at > 0 && clock_seconds() - state->load.at < every) || !load_look(&now))
        return;
    double seconds = now.at - state->load.at;
    bool is_first = state->load.at == 0;
    bool has_trained = !is_first && now.own - state->load.own > stands_still * seconds;
    if (has_trained) { // it was not paused
        state->others += seconds * load_of_others(&state->load, &now);
        state->own += now.own - state->load.own;
        state->load_seconds += seconds;
    }
    state->load = now;
    if (state->load_seconds > 0) {
        add_load(run, "load.own", state->own / state->load_seconds);
        add_load(run, RECORD_FACT_OTHERS, state->others / state->load_seconds);
    }
}

static void raise_memory(RecordMemory *memory, const RecordMemory *to) {
    const struct {
        int64_t *bytes, other;
    } rows[] = {{&memory->peak, to->peak},           {&memory->weights, to->weights},
                {&memory->masters, to->masters},     {&memory->activations, to->activations},
                {&memory->gradients, to->gradients}, {&memory->optimizer, to->optimizer},
                {&memory->workspace, to->workspace}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].other > *rows[i].bytes) // what is unknown is less than all
            *rows[i].bytes = rows[i].other;
}

// A run that was resumed held what it did in any of its stretches.
static void look_at_memory(Run *run) {
    const MemoryUse use = allocator_use(run->device->allocator);
    RecordMemory memory = {.peak = (int64_t)use.lap_total_peak,
                           .weights = (int64_t)use.lap_peak[MEMORY_WEIGHTS],
                           .masters = (int64_t)use.lap_peak[MEMORY_MASTERS],
                           .activations = (int64_t)use.lap_peak[MEMORY_ACTIVATIONS],
                           .gradients = (int64_t)use.lap_peak[MEMORY_GRADIENTS],
                           .optimizer = (int64_t)use.lap_peak[MEMORY_OPTIMIZER],
                           .workspace = (int64_t)use.lap_peak[MEMORY_WORKSPACE]};
    char text[RECORD_TEXT_SIZE];
    if (run_state(run)->steps_here < RUN_LAP_STEPS || run->step <= RUN_LAP_STEPS)
        return;
    RecordMemory earlier;
    const RunRecord record = {.facts = run->facts, .fact_count = run->fact_count};
    if (record_memory_in_steps(&record, &earlier))
        raise_memory(&memory, &earlier);
    record_memory_text(&memory, text);
    run_add_fact(run, RECORD_FACT_MEMORY, text);
}

// What is not usual of how factors of products are rounded, now.
static void look_at_recipe(Run *run) {
    char text[RECIPE_TEXT_SIZE];
    recipe_text(policy_recipe(run->engine->policy), text);
    if (text[0])
        run_add_fact(run, RECORD_FACT_RECIPE, text);
    else
        drop_fact(run, RECORD_FACT_RECIPE);
}

void run_look_again(Run *run) {
    look_at_recipe(run);
    if (run->ended == 0) { // else the script has ended, and its scaler may be gone
        look_at_scaler(run);
        look_at_load(run);
    }
    look_at_memory(run);
    look_at_temperature(run);
    look_at_captures(run);
    look_at_card(run);
    look_at_recording(run);
    twin_keep_facts(run->options->twin);
}

// Those that it rounds factors of products to beside those that every device trains in.
static void list_formats(Run *run) {
    char text[FORMAT_LIST_SIZE] = "";
    size_t used = 0;
    bool has_more = false;
    for (int i = 0; i < FORMAT_COUNT && used < sizeof text; i++) {
        Format format = (Format)i;
        bool is_more = !format_trains(format) && precision_trains_on(run->device, format);
        has_more |= is_more;
        if (is_more || format_trains(format))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? " " : "",
                                     format_name(format));
    }
    if (has_more)
        run_add_fact(run, RECORD_FACT_FORMATS, text);
}

// What the device computes with, and what it is made of, as far as it is there.
static void list_libraries(Run *run) {
    const Backend *backend = run->device->backend;
    DevicePart parts[DEVICE_MOST_PARTS];
    char name[RECORD_NAME_SIZE], text[RECORD_TEXT_SIZE];
    if (backend->computes_with) {
        char library[RECORD_NAME_SIZE / 2];
        backend->computes_with(library, sizeof library, text, sizeof text);
        snprintf(name, sizeof name, "library.%s", library);
        run_add_fact(run, name, text);
    }
    const int count = backend->parts ? backend->parts(run->device, parts) : 0;
    for (int i = 0; i < count; i++) {
        const DevicePart *part = &parts[i];
        snprintf(name, sizeof name, "%s.%.31s", part->is_library ? "library" : "device",
                 part->name);
        if (part->version[0])
            run_add_fact(run, name, part->version);
    }
}

void run_look_around(Run *run) {
    struct utsname system;
    char text[RECORD_TEXT_SIZE];
    run_state(run)->created_ms = run_wall_ms();
    run_state(run)->most_degrees = -INFINITY;
    temperature_begin(&run_state(run)->temperature, NULL);
    look_at_load(run);
    run_add_fact(run, "mpbench", MPBENCH_VERSION);
    if (uname(&system) == 0) {
        snprintf(text, sizeof text, "%s %s %s", system.sysname, system.release, system.machine);
        run_add_fact(run, "host", system.nodename);
        run_add_fact(run, "kernel", text);
    }
    snprintf(text, sizeof text, "%ld", (long)getpid());
    run_add_fact(run, "process", text); // by which who started it finds its run
    if (run->device->about[0]) {
        snprintf(text, sizeof text, "%s, %s", run->device->name, run->device->about);
        run_add_fact(run, "card", text);
    } else {
        run_add_fact(run, "processor", run->device->name);
    }
    snprintf(text, sizeof text, "%d", run->device->threads);
    run_add_fact(run, "threads", text);
    list_formats(run);
    if (run->device->backend->ways) {
        run->device->backend->ways(run->device, text, sizeof text);
        run_add_fact(run, RECORD_FACT_WAYS, text);
    }
    run_add_fact(run, "compiler", __VERSION__);
    list_libraries(run);
    run_add_fact(run, "library.SQLite", store_library());
}

static void describe_loss(const Run *run, RunRecord *record) {
    const RunSeries *loss = run_series(run, "loss");
    record->has_loss = loss && loss->count > 0;
    record->loss_first = record->has_loss ? loss->first : (double)NAN;
    record->loss_last = record->has_loss ? loss->last : (double)NAN;
    record->loss_best = record->has_loss ? loss->best : (double)NAN;
}

static void describe_speed(const Run *run, RunRecord *record) {
    const RunState *state = (const RunState *)run;
    double rate = run_steps_per_second(run);
    double samples = run->step > 0 ? (double)run_samples(run) / (double)run->step : 0;
    record->steps_per_s = rate > 0 ? rate : (double)NAN;
    record->samples_per_s = rate > 0 && samples > 0 ? rate * samples : (double)NAN;
    record->wall_s = run_wall(run);
    record->cast_share = run_cast_share(run);
    record->energy_j = run_joules(state);
}

RecordMemory run_memory(const Run *run) {
    MemoryUse use = allocator_use(run->device->allocator);
    return (RecordMemory){
        .peak = (int64_t)use.total_peak,
        .weights = (int64_t)use.peak[MEMORY_WEIGHTS],
        .masters = (int64_t)use.peak[MEMORY_MASTERS],
        .activations = (int64_t)use.peak[MEMORY_ACTIVATIONS],
        .gradients = (int64_t)use.peak[MEMORY_GRADIENTS],
        .optimizer = (int64_t)use.peak[MEMORY_OPTIMIZER],
        .workspace = (int64_t)use.peak[MEMORY_WORKSPACE],
    };
}

void run_raise_memory(Run *run) {
    const RecordMemory *held = run->options->held;
    if (!held)
        return;
    RecordMemory all = run_memory(run);
    raise_memory(&all, held);
    const MemoryUse use = {.total_peak = (size_t)all.peak,
                           .peak = {[MEMORY_WEIGHTS] = (size_t)all.weights,
                                    [MEMORY_MASTERS] = (size_t)all.masters,
                                    [MEMORY_ACTIVATIONS] = (size_t)all.activations,
                                    [MEMORY_GRADIENTS] = (size_t)all.gradients,
                                    [MEMORY_OPTIMIZER] = (size_t)all.optimizer,
                                    [MEMORY_WORKSPACE] = (size_t)all.workspace}};
    allocator_raise_peaks(run->device->allocator, &use);
}

// Layer 0 of the policy is none; the record counts from the first real one.
static bool describe_layers(const Run *run, RunRecord *record, Error *error) {
    const Policy *policy = run->engine->policy;
    int count = policy_layer_count(policy) - 1;
    RecordLayer *layers = calloc((size_t)count + 1, sizeof *layers);
    if (!layers)
        return error_fail(error, ERROR_MEMORY, "no memory for %d layers", count);
    for (int i = 0; i < count; i++) {
        const PolicyLayer *layer = policy_layer(policy, i + 1);
        Format format = layer->knows_computed
                            ? layer->computed
                            : policy_foresee(policy, policy_preset(policy), i + 1);
        utf8_copy(layers[i].name, sizeof layers[i].name, layer->name);
        utf8_copy(layers[i].precision, sizeof layers[i].precision, format_name(format));
        utf8_copy(layers[i].set, sizeof layers[i].set, layer_precision_name(layer->own));
        layers[i].parent = layer->parent - 1;
    }
    bool done = record_set_layers(record, layers, count, error);
    free(layers);
    return done;
}

bool run_describe(const Run *run, RunRecord *record, Error *error) {
    const RunState *state = (const RunState *)run;
    const RunOptions *options = run->options;
    *record = (RunRecord){
        .id = run->id,
        .status = run->status,
        .threads = run->device->threads,
        .seed = (int64_t)options->seed,
        .step = run->step,
        .applied = run->applied,
        .skipped = run->skipped,
        .total_steps = run->total_steps,
        .epoch = run->epoch,
        .epochs = run->epochs,
        .samples = (int64_t)run_samples(run),
        .scale_last = run->scale_last,
        .scale_min = run->scale_min,
        .scale_max = run->scale_max,
        .created_ms = state->created_ms,
        .ended_ms = run->ended > 0 ? state->ended_ms : 0,
        .parent = options->parent,
        .parent_step = options->parent ? options->from : 0,
        .matrix = options->matrix,
    };
    utf8_copy(record->name, sizeof record->name, run->name);
    utf8_copy(record->experiment, sizeof record->experiment, run->experiment);
    utf8_copy(record->tag, sizeof record->tag, options->tag ? options->tag : "");
    utf8_copy(record->note, sizeof record->note, options->note ? options->note : "");
    utf8_copy(record->precision, sizeof record->precision, run->precision);
    utf8_copy(record->scale_rule, sizeof record->scale_rule, state->scale_rule_name);
    utf8_copy(record->device, sizeof record->device, run->device->label);
    utf8_copy(record->device_name, sizeof record->device_name, run->device->name);
    utf8_copy(record->script_path, sizeof record->script_path, run->script.path);
    utf8_copy(record->script_hash, sizeof record->script_hash, run->script.hash);
    const char *fault = run->error.code != ERROR_NONE ? run->error.text : run->stop_reason;
    utf8_copy(record->error, sizeof record->error, fault);
    describe_loss(run, record);
    describe_speed(run, record);
    record->memory = run_memory(run);
    if (describe_layers(run, record, error) &&
        record_set_parameters(record, run->parameters, run->parameter_count, error) &&
        record_set_metrics(record, run->metrics, run->metric_count, error) &&
        record_set_diagnoses(record, run->diagnoses, run->diagnosis_count, error) &&
        record_set_options(record, options->typed, options->typed_count, error) &&
        record_set_facts(record, run->facts, run->fact_count, error) &&
        record_set_twin(record, run_twin(run), error))
        return true;
    record_clear(record);
    return false;
}
