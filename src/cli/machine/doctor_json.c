// What `mpbench doctor --json` prints, which other programs read: what is there stays as it is.
#include "base/isa.h"
#include "base/json.h"
#include "base/sandbox.h"
#include "cli/machine/findings.h"

// Tensors are kept in them, or multiplied: what products scale their factors to is no more than a
// way to train, and said by "trains".
static bool is_computed_in(Format format) {
    return format_is_floating(format) && (format_table[format].stores || format_multiplies(format));
}

static void write_operations(JsonWriter *json, const Device *device) {
    Format formats[FORMAT_COUNT];
    const int count = format_pick(formats, is_computed_in);
    json_key(json, "operations");
    json_begin_object(json);
    for (int op = 0; op < OP_COUNT; op++) {
        if (!operation_is_shown((OpId)op))
            continue;
        json_key(json, op_table[op].name);
        json_begin_array(json);
        for (int f = 0; f < count; f++)
            if (findings_runs(device, (OpId)op, formats[f]))
                json_text(json, format_name(formats[f]));
        json_end_array(json);
    }
    json_end_object(json);
}

// Null is what was not found; `missing` has what to do about it.
static void write_parts(JsonWriter *json, const FoundDevice *found) {
    json_key(json, "parts");
    json_begin_object(json);
    for (int i = 0; i < found->part_count; i++) {
        const DevicePart *part = &found->parts[i];
        json_put_text(json, part->name, part->version[0] ? part->version : NULL);
    }
    json_end_object(json);
    json_key(json, "missing");
    json_begin_array(json);
    for (int i = 0; i < found->part_count; i++)
        if (found->parts[i].remedy[0])
            json_text(json, found->parts[i].remedy);
    json_end_array(json);
}

static void write_formats(JsonWriter *json, const char *key, const Device *device,
                          bool (*holds)(const Device *device, Format format)) {
    Format formats[FORMAT_COUNT];
    const int count = format_pick(formats, format_is_floating);
    json_key(json, key);
    json_begin_array(json);
    for (int f = 0; f < count; f++)
        if (holds(device, formats[f]))
            json_text(json, format_name(formats[f]));
    json_end_array(json);
}

static void write_device(JsonWriter *json, const FoundDevice *found) {
    json_begin_object(json);
    json_put_text(json, "name", found->name);
    json_put_text(json, "error", found->device ? NULL : found->error.text);
    if (found->device) {
        json_put_text(json, "hardware", found->device->name);
        if (found->device->memory)
            json_put_integer(json, "memory", (int64_t)found->device->memory);
        json_put_integer(json, "threads", found->device->threads);
        write_formats(json, "gains", found->device, findings_gains);
        write_operations(json, found->device);
        write_formats(json, "trains", found->device, findings_trains);
        write_parts(json, found);
    }
    json_end_object(json);
}

static void write_libraries(JsonWriter *json, const Findings *findings) {
    json_key(json, "libraries");
    json_begin_object(json);
    for (int i = 0; i < findings->library_count; i++)
        json_put_text(json, findings->libraries[i].name, findings->libraries[i].version);
    json_end_object(json);
}

static void write_history(JsonWriter *json, const Findings *findings) {
    bool is_known = findings->history_error.code == ERROR_NONE;
    json_key(json, "history");
    json_begin_object(json);
    json_put_text(json, "path", findings->history[0] ? findings->history : NULL);
    json_put_boolean(json, "readable", findings->has_history);
    if (is_known)
        json_put_integer(json, "runs", findings->runs);
    else
        json_put_null(json, "runs");
    json_put_boolean(json, "checked", findings->is_checked);
    json_put_text(json, "error", is_known ? NULL : findings->history_error.text);
    json_end_object(json);
}

void doctor_write_json(const Findings *findings, FILE *stream) {
    JsonWriter writer = {.stream = stream}, *json = &writer;
    json_begin_object(json);
    json_put_text(json, "version", MPBENCH_VERSION);
    json_put_text(json, "isa", isa_level_name(isa_level()));
    json_put_boolean(json, "amx", isa_has_amx());
    if (findings->memory > 0)
        json_put_integer(json, "memory", (int64_t)findings->memory);
    else
        json_put_null(json, "memory");
    json_key(json, "devices");
    json_begin_array(json);
    for (int i = 0; i < findings->device_count; i++)
        write_device(json, &findings->devices[i]);
    json_end_array(json);
    json_put_boolean(json, "fashion_mnist", findings->has_fashion);
    json_put_text(json, "fashion_mnist_error",
                  findings->has_fashion ? NULL : findings->fashion_error.text);
    json_put_integer(json, "text_files", findings->text_files);
    json_key(json, "sandbox");
    json_begin_object(json);
    json_put_boolean(json, "files", findings->sandbox & SANDBOX_FILES);
    json_put_boolean(json, "calls", findings->sandbox & SANDBOX_CALLS);
    json_end_object(json);
    write_libraries(json, findings);
    write_history(json, findings);
    json_end_object(json);
    fputc('\n', stream);
}
