// `mpbench export --format safetensors`: the weights of a run.
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "checkpoint/quantised.h"
#include "checkpoint/weights.h"
#include "cli/history/checkpoint_files.h"
#include "cli/history/export.h"

static bool fail_damaged(const CheckpointRow *row, Error *error) {
    return error_fail(error, ERROR_FAILED,
                      "export: the checkpoint of step %lld is damaged: its checksum is not the one "
                      "that was recorded",
                      (long long)row->step);
}

// ---- as they lie --------------------------------------------------------------------------------

static bool copy_checked(FILE *from, const Export *export, const CheckpointRow *row, bool write,
                         Error *error) {
    uint8_t digest[HASH_BYTES];
    char hex[HASH_HEX_SIZE], buffer[1 << 16];
    Sha256 hash;
    sha256_init(&hash);
    rewind(from);
    size_t length;
    while ((length = fread(buffer, 1, sizeof buffer, from)) > 0) {
        sha256_add(&hash, buffer, length);
        if (write)
            fwrite(buffer, 1, length, export->out);
    }
    if (ferror(from))
        return error_fail(error, ERROR_FAILED, "export: %.200s cannot be read", row->file);
    sha256_end(&hash, digest);
    sha256_format(hex, digest);
    if (strcmp(hex, row->hash) != 0)
        return fail_damaged(row, error);
    return true;
}

static bool write_whole(const Export *export, const CheckpointRow *row, const char *path,
                        Error *error) {
    FILE *from = fopen(path, "rb");
    bool done = from != NULL;
    if (!from)
        error_fail(error, ERROR_FAILED, "export: %.300s: %s", path, error_cause(errno));
    done = done && copy_checked(from, export, row, false, error) && // before a byte goes out
           copy_checked(from, export, row, true, error);
    if (from)
        fclose(from);
    return done;
}

// ---- in another format --------------------------------------------------------------------------

enum { LAYER_NAME_SIZE = 1024 };

// Adds the layer of a weight, and those above it: of what no model is known in the history.
static bool add_layer_of(Policy *policy, const char *weight, Error *error) {
    int parent = 0;
    for (const char *point = strchr(weight, '.'); point; point = strchr(point + 1, '.')) {
        char layer[LAYER_NAME_SIZE];
        const size_t length = (size_t)(point - weight);
        const int known = policy_layer_named(policy, weight, length);
        snprintf(layer, sizeof layer, "%.*s", (int)length, weight);
        parent = known > 0 ? known : policy_add_layer(policy, layer, parent, error);
        if (parent < 0)
            return false;
    }
    return true;
}

static bool add_layers(Policy *policy, const RunRecord *run, const SafeHeader *header,
                       Error *error) {
    bool is_weight, done = true;
    for (int i = 0; i < run->layer_count && done; i++) {
        const int parent = run->layers[i].parent; // as a history has it that may be damaged
        done =
            policy_add_layer(policy, run->layers[i].name, parent < i ? parent + 1 : 0, error) > 0;
    }
    for (int i = 0; i < header->count && done; i++) {
        const char *name = weights_model_name(header->entries[i].name, &is_weight);
        done = !name || !is_weight || add_layer_of(policy, name, error);
    }
    return done;
}

static bool set_layers(Policy *policy, const RunOptions *options, Error *error) {
    bool done = true;
    for (int i = 0; i < options->layer_count && done; i++)
        done = run_check_rule(policy, &options->layers[i], error) &&
               policy_set(policy, options->layers[i].pattern, options->layers[i].precision, NULL,
                          error);
    return done;
}

static bool is_typed(const RunRecord *run, const char *layer) {
    for (int i = 0; i < run->option_count; i++) {
        const RecordOption *option = &run->options[i];
        const char *equals = strrchr(option->value, '=');
        char pattern[RECORD_TEXT_SIZE];
        snprintf(pattern, sizeof pattern, "%.*s", equals ? (int)(equals - option->value) : 0,
                 option->value);
        if (strcmp(option->name, "layer") == 0 && fnmatch(pattern, layer, 0) == 0)
            return true;
    }
    return false;
}

// As an evaluation has them: what was typed of layers holds in the run's own precision alone, what
// its script says in all but fp32.
static bool set_as_in_run(Policy *policy, const RunRecord *run, bool is_own, Error *error) {
    const bool is_low = policy_preset(policy)->low != FORMAT_FP32;
    for (int i = 0; i < run->layer_count; i++) {
        LayerPrecision precision;
        const RecordLayer *layer = &run->layers[i];
        if (!layer_precision_parse(layer->set, NULL, &precision, error))
            return false;
        if (is_typed(run, layer->name) ? is_own : is_low)
            policy_set_layer(policy, i + 1, precision);
    }
    return true;
}

// Which format each layer is in, as for an evaluation.
static Policy *policy_of(const Export *export, const SafeHeader *header, Format format,
                         Error *error) {
    const Preset preset = {.name = format_name(format), .mode = POLICY_CLASSES, .low = format};
    Policy *policy = policy_new(&preset, error);
    const bool is_own = strcmp(export->cli->run.precision, export->run.precision) == 0;
    if (policy && add_layers(policy, &export->run, header, error) &&
        set_as_in_run(policy, &export->run, is_own, error) &&
        set_layers(policy, &export->cli->run, error))
        return policy;
    policy_free(policy);
    return NULL;
}

static bool check_format(Format format, const char *name, Error *error) {
    char list[FORMAT_LIST_SIZE];
    return (format != FORMAT_COUNT && quantised_is_written(format)) ||
           error_fail(error, ERROR_USAGE,
                      "--precision %.60s: no format to write weights in: one of %s", name,
                      format_list(list, quantised_is_written, " ", " "));
}

static bool check_formats(const RunOptions *options, Format *format, Error *error) {
    *format = format_named(options->precision);
    bool done = check_format(*format, options->precision, error);
    for (int i = 0; i < options->layer_count && done; i++) {
        const LayerPrecision own = options->layers[i].precision;
        done = own == LAYER_AUTO ||
               check_format(layer_precision_format(own), layer_precision_name(own), error);
    }
    return done;
}

// What the checkpoint says of its weights, for whoever evaluates them from this file.
static bool note_takers(SafeWriter *writer, const SafeHeader *header, Error *error) {
    static const char before[] = WEIGHTS_NOTE_TAKER;
    bool done = true;
    for (int i = 0; i < header->note_count && done; i++) {
        const SafeNote *note = &header->notes[i];
        if (strcmp(note->key, WEIGHTS_NOTE_TAKERS) == 0 ||
            strncmp(note->key, before, sizeof before - 1) == 0)
            done = safe_note(writer, note->key, note->value, error);
    }
    return done;
}

static bool note(SafeWriter *writer, const Export *export, const SafeHeader *header, Format format,
                 int64_t step, Error *error) {
    char number[32];
    snprintf(number, sizeof number, "%" PRId64, step);
    if (!weights_takers_are_known(header) && format != FORMAT_FP32)
        fprintf(stderr,
                "mpbench: export: the checkpoint does not say which weights no product takes: "
                "embeddings, if there are any, are in %s, too; --layer NAME=fp32 leaves one out\n",
                format_name(format));
    return note_takers(writer, header, error) &&
           safe_note(writer, "quantised", format_name(format), error) &&
           safe_note(writer, "run", export->run.name, error) &&
           safe_note(writer, "experiment", export->run.experiment, error) &&
           safe_note(writer, "step", number, error) &&
           safe_note(writer, "scales", "number = element * scale [* scale_of_all]", error);
}

static bool write_quantised(const Export *export, const CheckpointRow *row, const char *path,
                            Error *error) {
    char hash[HASH_HEX_SIZE];
    uint64_t bytes;
    Format format;
    if (!check_formats(&export->cli->run, &format, error))
        return false;
    SafeFile *from = safe_open(path, error);
    Policy *policy = from ? policy_of(export, safe_header(from), format, error) : NULL;
    SafeWriter *to = policy ? safe_writer_to(export->out, "export", error) : NULL;
    bool done = to && safe_hash(from, hash, error);
    if (done && strcmp(hash, row->hash) != 0)
        done = fail_damaged(row, error);
    done = done && note(to, export, safe_header(from), format, row->step, error) &&
           quantised_write(from, policy, to, error) && safe_finish(to, hash, &bytes, error);
    safe_writer_free(to);
    policy_free(policy);
    safe_close(from);
    return done;
}

// ---- the newest ---------------------------------------------------------------------------------

bool export_weights(Export *export, Error *error) {
    CheckpointRow *rows;
    int count;
    char path[CHECKPOINT_FILE_SIZE];
    if (!store_list_checkpoints(export->store, export->run.id, &rows, &count, error))
        return false;
    if (count == 0)
        return error_fail(error, ERROR_FAILED,
                          "export: %s has no checkpoint; `mpbench run --checkpoint-every N` writes "
                          "them",
                          export->run.name);
    const CheckpointRow *newest = &rows[count - 1];
    checkpoint_file_path(export->store, newest, path);
    bool done = export->cli->run.precision ? write_quantised(export, newest, path, error)
                                           : write_whole(export, newest, path, error);
    free(rows);
    return done;
}
