// The object that describes a run. Other programs read it: fields are added, and none is changed.
#include <math.h>

#include "store/twin.h"

static void write_text_or_null(JsonWriter *json, const char *key, const char *text) {
    json_put_text(json, key, text[0] ? text : NULL);
}

static void write_integer(JsonWriter *json, const char *key, int64_t value) {
    json_key(json, key);
    if (value == RECORD_UNKNOWN)
        json_null(json);
    else
        json_integer(json, value);
}

static void write_loss(JsonWriter *json, const RunRecord *record) {
    json_key(json, "loss");
    json_begin_object(json);
    json_put_known(json, "first", record->loss_first, record->has_loss);
    json_put_known(json, "last", record->loss_last, record->has_loss);
    json_put_known(json, "best", record->loss_best, record->has_loss && !isnan(record->loss_best));
    json_end_object(json);
}

static void write_metrics(JsonWriter *json, const RunRecord *record) {
    json_key(json, "metrics");
    json_begin_object(json);
    for (int i = 0; i < record->metric_count; i++)
        json_put_known(json, record->metrics[i].name, record->metrics[i].value, true);
    json_end_object(json);
}

static void write_scale(JsonWriter *json, const RunRecord *record) {
    json_key(json, "scale");
    json_begin_object(json);
    json_put_reading(json, "last", record->scale_last);
    json_put_reading(json, "min", record->scale_min);
    json_put_reading(json, "max", record->scale_max);
    json_end_object(json);
}

void record_write_memory(JsonWriter *json, const char *key, const RecordMemory *memory) {
    json_key(json, key);
    json_begin_object(json);
    write_integer(json, "peak", memory->peak);
    write_integer(json, "weights", memory->weights);
    write_integer(json, "activations", memory->activations);
    write_integer(json, "optimizer", memory->optimizer);
    write_integer(json, "masters", memory->masters);
    write_integer(json, "gradients", memory->gradients);
    write_integer(json, "workspace", memory->workspace);
    json_end_object(json);
}

static void write_memory_in_steps(JsonWriter *json, const RunRecord *record) {
    RecordMemory memory;
    if (record_memory_in_steps(record, &memory))
        record_write_memory(json, "memory_in_steps", &memory);
    else
        json_put_text(json, "memory_in_steps", NULL);
}

static void write_parameters(JsonWriter *json, const RunRecord *record) {
    json_key(json, "params");
    json_begin_object(json);
    for (int i = 0; i < record->parameter_count; i++) {
        const RecordParameter *parameter = &record->parameters[i];
        json_key(json, parameter->name);
        switch (parameter->kind) {
        case RECORD_NUMBER: json_number(json, parameter->number); break;
        case RECORD_INTEGER: json_integer(json, parameter->integer); break;
        case RECORD_BOOLEAN: json_boolean(json, parameter->integer != 0); break;
        case RECORD_TEXT: json_text(json, parameter->text); break;
        }
    }
    json_end_object(json);
}

static void write_layers(JsonWriter *json, const RunRecord *record) {
    json_key(json, "layers");
    json_begin_array(json);
    for (int i = 0; i < record->layer_count; i++) {
        json_begin_object(json);
        json_put_text(json, "name", record->layers[i].name);
        json_put_text(json, "precision", record->layers[i].precision);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_diagnoses(JsonWriter *json, const RunRecord *record) {
    json_key(json, "diagnoses");
    json_begin_array(json);
    for (int i = 0; i < record->diagnosis_count; i++) {
        const RecordDiagnosis *diagnosis = &record->diagnoses[i];
        json_begin_object(json);
        write_text_or_null(json, "kind", diagnosis->kind);
        write_text_or_null(json, "layer", diagnosis->layer);
        write_integer(json, "step", diagnosis->step);
        write_text_or_null(json, "text", diagnosis->text);
        json_end_object(json);
    }
    json_end_array(json);
}

void record_write_json(const RunRecord *record, bool with_layers, JsonWriter *json) {
    json_begin_object(json);
    write_integer(json, "id", record->id > 0 ? record->id : RECORD_UNKNOWN);
    write_text_or_null(json, "name", record->name);
    write_text_or_null(json, "experiment", record->experiment);
    write_text_or_null(json, "status", run_status_name(record->status));
    char label[RECORD_PRECISION_SIZE];
    record_precision_brief(record, label);
    write_text_or_null(json, "precision", record->precision);
    write_text_or_null(json, "precision_label", label);
    write_text_or_null(json, "device", record->device);
    write_text_or_null(json, "device_name", record->device_name);
    write_integer(json, "seed", record->seed);
    write_integer(json, "steps", record->step);
    write_integer(json, "applied", record->applied);
    write_integer(json, "skipped", record->skipped);
    write_loss(json, record);
    write_metrics(json, record);
    write_scale(json, record);
    json_put_reading(json, "samples_per_s", record->samples_per_s);
    json_put_reading(json, "steps_per_s", record->steps_per_s);
    json_put_reading(json, "wall_s", record->wall_s);
    record_write_memory(json, "memory", &record->memory);
    if (with_layers)
        write_memory_in_steps(json, record);
    json_put_reading(json, "energy_j", record->energy_j);
    write_parameters(json, record);
    if (with_layers) {
        write_layers(json, record);
        json_key(json, "twin");
        twin_write_json(record->twin, json);
    }
    write_diagnoses(json, record);
    write_text_or_null(json, "error", record->error);
    json_end_object(json);
}
