// The object that describes a run: cli.md has its fields.
#include <math.h>

#include "run/run_private.h"

static void write_text_or_null(JsonWriter *json, const char *key, const char *text) {
    json_key(json, key);
    json_text(json, text[0] ? text : NULL);
}

static void write_number(JsonWriter *json, const char *key, double value) {
    json_key(json, key);
    json_number(json, value);
}

static void write_integer(JsonWriter *json, const char *key, int64_t value) {
    json_key(json, key);
    json_integer(json, value);
}

static void write_known(JsonWriter *json, const char *key, double value, bool is_known) {
    json_key(json, key);
    if (is_known)
        json_number(json, value);
    else
        json_null(json);
}

static void write_loss(JsonWriter *json, const Run *run) {
    const RunSeries *loss = run_series(run, "loss");
    bool is_known = loss && loss->count > 0;
    json_key(json, "loss");
    json_begin_object(json);
    write_known(json, "first", is_known ? loss->first : 0, is_known);
    write_known(json, "last", is_known ? loss->last : 0, is_known);
    write_known(json, "best", is_known ? loss->best : 0, is_known && !isnan(loss->best));
    json_end_object(json);
}

static void write_metrics(JsonWriter *json, const Run *run) {
    json_key(json, "metrics");
    json_begin_object(json);
    for (int i = 0; i < run->metric_count; i++)
        write_number(json, run->metrics[i].name, run->metrics[i].value);
    json_end_object(json);
}

static void write_scale(JsonWriter *json, const Run *run) {
    json_key(json, "scale");
    json_begin_object(json);
    write_number(json, "last", run->scale_last);
    write_number(json, "min", run->scale_min);
    write_number(json, "max", run->scale_max);
    json_end_object(json);
}

static void write_rates(JsonWriter *json, const Run *run) {
    double rate = run_steps_per_second(run);
    double samples = run->step > 0 ? (double)run->samples / (double)run->step : 0;
    write_known(json, "samples_per_s", rate * samples, rate > 0 && samples > 0);
    write_known(json, "steps_per_s", rate, rate > 0);
    write_number(json, "wall_s", run->ended - run->started);
}

static void write_memory(JsonWriter *json, const Run *run) {
    static const struct {
        const char *key;
        MemoryPurpose purpose;
    } rows[] = {
        {"weights", MEMORY_WEIGHTS},     {"activations", MEMORY_ACTIVATIONS},
        {"optimizer", MEMORY_OPTIMIZER}, {"masters", MEMORY_MASTERS},
        {"gradients", MEMORY_GRADIENTS}, {"workspace", MEMORY_WORKSPACE},
    };
    MemoryUse use = allocator_use(run->device->allocator);
    json_key(json, "memory");
    json_begin_object(json);
    write_integer(json, "peak", (int64_t)use.total_peak);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        write_integer(json, rows[i].key, (int64_t)use.peak[rows[i].purpose]);
    json_end_object(json);
}

static void write_parameters(JsonWriter *json, const Run *run) {
    json_key(json, "params");
    json_begin_object(json);
    for (int i = 0; i < run->parameter_count; i++) {
        const RunParameter *parameter = &run->parameters[i];
        json_key(json, parameter->name);
        switch (parameter->kind) {
        case RUN_NUMBER: json_number(json, parameter->number); break;
        case RUN_INTEGER: json_integer(json, parameter->integer); break;
        case RUN_BOOLEAN: json_boolean(json, parameter->integer != 0); break;
        case RUN_TEXT: json_text(json, parameter->text); break;
        }
    }
    json_end_object(json);
}

static void write_layers(JsonWriter *json, const Run *run) {
    const Policy *policy = run->engine->policy;
    json_key(json, "layers");
    json_begin_array(json);
    for (int i = 1; i < policy_layer_count(policy); i++) {
        Format format = policy_low_format(policy, i, (AutocastRegion){.enabled = true});
        json_begin_object(json);
        json_key(json, "name");
        json_text(json, policy_layer(policy, i)->name);
        json_key(json, "precision");
        json_text(json, format_name(format));
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_diagnoses(JsonWriter *json, const Run *run) {
    json_key(json, "diagnoses");
    json_begin_array(json);
    for (int i = 0; i < run->diagnosis_count; i++) {
        const RunDiagnosis *diagnosis = &run->diagnoses[i];
        json_begin_object(json);
        write_text_or_null(json, "kind", diagnosis->kind);
        write_text_or_null(json, "layer", diagnosis->layer);
        write_integer(json, "step", diagnosis->step);
        write_text_or_null(json, "text", diagnosis->text);
        json_end_object(json);
    }
    json_end_array(json);
}

void run_write_json(const Run *run, int64_t id, JsonWriter *json) {
    json_begin_object(json);
    json_key(json, "id");
    if (id > 0)
        json_integer(json, id);
    else
        json_null(json);
    write_text_or_null(json, "name", run->name);
    write_text_or_null(json, "experiment", run->experiment);
    write_text_or_null(json, "status", run_status_name(run->status));
    write_text_or_null(json, "precision", run->precision);
    write_text_or_null(json, "device", run->device->backend->name);
    write_text_or_null(json, "device_name", run->device->name);
    write_integer(json, "seed", (int64_t)run->options->seed);
    write_integer(json, "steps", run->step);
    write_integer(json, "applied", run->applied);
    write_integer(json, "skipped", run->skipped);
    write_loss(json, run);
    write_metrics(json, run);
    write_scale(json, run);
    write_rates(json, run);
    write_memory(json, run);
    json_key(json, "energy_j");
    json_null(json);
    write_parameters(json, run);
    write_layers(json, run);
    write_diagnoses(json, run);
    json_key(json, "error");
    json_text(json, run->error.code != ERROR_NONE ? run->error.text : NULL);
    json_end_object(json);
}
