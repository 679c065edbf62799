// `mpbench export`: a run's series as CSV, all of its rows as JSON lines, its weights, or events
// for TensorBoard (export_tensorboard.c).
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/out_file.h"
#include "base/sanitize.h"
#include "cli/cli.h"
#include "cli/history/export.h"
#include "cli/history/history.h"
#include "cli/scan/kept.h"
#include "store/events.h"

// A bucket touches several windows: it belongs to the one in which it begins.
static int first_in_window(const SeriesPoint *points, int count, int64_t from) {
    int first = 0;
    while (first < count && points[first].step < from)
        first++;
    return first;
}

// ---- chunk by chunk -----------------------------------------------------------------------------

bool export_each_point(Export *export, const SeriesInfo *series, ExportPoint *take, void *context,
                       Error *error) {
    for (int64_t from = 0;; from += EXPORT_CHUNK_STEPS) {
        SeriesPoint *points;
        int count;
        if (!store_next_step(export->store, export->run.id, series->name, from, &from, error))
            return false;
        if (from < 0)
            return true;
        if (!store_read_series(export->store, export->run.id, series->name, from,
                               from + EXPORT_CHUNK_STEPS - 1, 0, &points, &count, error))
            return false;
        for (int i = first_in_window(points, count, from); i < count; i++)
            take(export, series->name, &points[i], context);
        free(points);
    }
}

bool export_each_sample(Export *export, int layer, ExportSample *take, void *context,
                        Error *error) {
    enum { LAYER_CHUNK = 1024 };
    for (int64_t from = 0;; from += LAYER_CHUNK) {
        LayerSample *samples;
        int count;
        if (!store_next_layer_step(export->store, export->run.id, layer, from, &from, error))
            return false;
        if (from < 0)
            return true;
        if (!store_read_layer(export->store, export->run.id, layer, from, from + LAYER_CHUNK - 1, 0,
                              &samples, &count, error))
            return false;
        for (int i = 0; i < count; i++)
            if (samples[i].step >= from) // a sample that began before was taken then
                take(export, export->run.layers[layer].name, &samples[i], context);
        free(samples);
    }
}

// ---- CSV ----------------------------------------------------------------------------------------

// A script's name for a series: as it is in a file, harmless on a terminal. A table program would
// compute what begins as a formula does: such a name has the sign for text before it.
static void write_cell(const Export *export, const char *text) {
    FILE *out = export->out;
    char clean[RECORD_NAME_SIZE * 8];
    if (export->is_seen) {
        sanitize_line(clean, sizeof clean, text, strlen(text));
        text = clean;
    }
    const char *sign = text[0] && strchr("=+-@\t\r", text[0]) ? "'" : "";
    if (!strpbrk(text, ",\"\r\n")) {
        fprintf(out, "%s%s", sign, text);
        return;
    }
    fprintf(out, "\"%s", sign);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void write_value(FILE *out, const SeriesPoint *point) {
    double value = point->width == 1 || point->count == 0 ? series_point_value(point) : point->mean;
    if (isnan(value))
        fputs("nan", out);
    else if (isinf(value))
        fputs(value > 0 ? "inf" : "-inf", out);
    else
        fprintf(out, "%.17g", value);
}

typedef struct Column {
    SeriesPoint *points;
    int count, at;
} Column;

static void write_rows(const Export *export, Column *columns) {
    for (;;) {
        int64_t step = INT64_MAX;
        for (int i = 0; i < export->series_count; i++)
            if (columns[i].at < columns[i].count && columns[i].points[columns[i].at].step < step)
                step = columns[i].points[columns[i].at].step;
        if (step == INT64_MAX)
            return;
        fprintf(export->out, "%lld", (long long)step);
        for (int i = 0; i < export->series_count; i++) {
            Column *column = &columns[i];
            fputc(',', export->out);
            if (column->at < column->count && column->points[column->at].step == step)
                write_value(export->out, &column->points[column->at++]);
        }
        fputc('\n', export->out);
    }
}

// The next step of any series; -1: there is none.
static bool next_of_all(const Export *export, int64_t from, int64_t *next, Error *error) {
    *next = -1;
    for (int i = 0; i < export->series_count; i++) {
        int64_t step;
        if (!store_next_step(export->store, export->run.id, export->series[i].name, from, &step,
                             error))
            return false;
        if (step >= 0 && (*next < 0 || step < *next))
            *next = step;
    }
    return true;
}

static bool write_csv(Export *export, Error *error) {
    Column *columns = calloc((size_t) export->series_count + 1, sizeof *columns);
    if (!columns)
        return error_fail(error, ERROR_MEMORY, "no memory to export the run");
    fputs("step", export->out);
    for (int i = 0; i < export->series_count; i++) {
        fputc(',', export->out);
        write_cell(export, export->series[i].name);
    }
    fputc('\n', export->out);
    bool done = true;
    int64_t from = 0; // where there are steps: a row may claim to be of any
    while (done && (done = next_of_all(export, from, &from, error)) && from >= 0) {
        for (int i = 0; i < export->series_count && done; i++) {
            columns[i] = (Column){.at = 0};
            done = store_read_series(export->store, export->run.id, export->series[i].name, from,
                                     from + EXPORT_CHUNK_STEPS - 1, 0, &columns[i].points,
                                     &columns[i].count, error);
            columns[i].at = first_in_window(columns[i].points, columns[i].count, from);
        }
        if (done)
            write_rows(export, columns);
        for (int i = 0; i < export->series_count; i++) {
            free(columns[i].points);
            columns[i].points = NULL;
        }
        from += EXPORT_CHUNK_STEPS;
    }
    free(columns);
    return done;
}

// ---- JSON lines ---------------------------------------------------------------------------------

static void begin_line(JsonWriter *json, const char *kind) {
    json_begin_object(json);
    json_put_text(json, "kind", kind);
}

static void end_line(JsonWriter *json) {
    json_end_object(json);
    fputc('\n', json->stream);
    *json = (JsonWriter){.stream = json->stream};
}

static void write_point(Export *export, const char *name, const SeriesPoint *point, void *context) {
    JsonWriter *json = context;
    (void)export;
    begin_line(json, "point");
    json_put_text(json, "series", name);
    json_put_integer(json, "step", point->step);
    if (point->width == 1) {
        json_put_number(json, "value", series_point_value(point));
    } else { // summed up
        json_put_integer(json, "width", point->width);
        json_put_integer(json, "count", point->count);
        json_put_integer(json, "nans", point->nans);
        json_put_integer(json, "infs", point->infs);
        json_put_integer(json, "minus_infs", point->minus_infs);
        json_put_number(json, "first", point->first);
        json_put_number(json, "last", point->last);
        json_put_number(json, "min", point->min);
        json_put_number(json, "mean", point->mean);
        json_put_number(json, "max", point->max);
    }
    end_line(json);
}

static void write_sample(Export *export, const char *name, const LayerSample *sample,
                         void *context) {
    JsonWriter *json = context;
    (void)export;
    begin_line(json, "layer");
    json_put_text(json, "layer", name);
    json_put_integer(json, "step", sample->step);
    json_put_integer(json, "width", sample->width);
    json_put_text(json, "precision", sample->precision);
#define COUNT(name) json_put_integer(json, #name, sample->name);
#define SUM(name)   json_put_number(json, #name, sample->name);
#include "number/statistics.def"
    const struct {
        const char *key;
        double value;
    } readings[] = {{"update_ratio", sample->update_ratio}, {"seconds", sample->seconds}};
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        json_put_reading(json, readings[i].key, readings[i].value);
    }
    json_put_integer(json, "lowest_exponent", LAYER_LOWEST_EXPONENT);
    json_key(json, "histogram");
    json_begin_array(json);
    for (int bin = 0; bin < LAYER_BINS; bin++)
        json_integer(json, sample->bins[bin]);
    json_end_array(json);
    end_line(json);
}

static bool write_events(Export *export, JsonWriter *json, Error *error) {
    Event *events;
    int count;
    if (!store_read_events(export->store, export->run.id, 0, 0, 0, &events, &count, error))
        return false;
    for (int i = 0; i < count; i++) {
        begin_line(json, "event");
        json_put_integer(json, "step", events[i].step);
        json_put_integer(json, "time_ms", events[i].time_ms);
        json_put_text(json, "what", event_kind_name(events[i].kind));
        json_put_text(json, "layer", events[i].layer[0] ? events[i].layer : NULL);
        json_put_text(json, "text", events[i].text);
        end_line(json);
    }
    free(events);
    return true;
}

static bool write_lines(Export *export, Error *error) {
    JsonWriter json = {.stream = export->out};
    begin_line(&json, "run");
    json_key(&json, "run");
    record_write_json(&export->run, true, &json);
    end_line(&json);
    for (int i = 0; i < export->series_count; i++)
        if (!export_each_point(export, &export->series[i], write_point, &json, error))
            return false;
    for (int i = 0; i < export->run.layer_count; i++)
        if (!export_each_sample(export, i, write_sample, &json, error))
            return false;
    return write_events(export, &json, error);
}

// ---- pictures -----------------------------------------------------------------------------------

static bool write_picture(Export *export, Error *error) {
    Event *events;
    int count;
    char path[STORE_PATH_SIZE + EVENT_TEXT_SIZE], buffer[1 << 14];
    if (!store_read_events(export->store, export->run.id, 0, 1U << EVENT_PICTURE, 0, &events,
                           &count, error))
        return false;
    bool is_there =
        count > 0 && store_picture_path(export->store, export->run.id, &events[count - 1], path);
    free(events);
    if (!is_there)
        return error_fail(error, ERROR_FAILED,
                          "export: %s has no picture; its script keeps them with run:picture",
                          export->run.name);
    FILE *from = fopen(path, "rb");
    if (!from)
        return error_fail(error, ERROR_FAILED, "export: %.300s: %s", path, error_cause(errno));
    for (size_t length; (length = fread(buffer, 1, sizeof buffer, from)) > 0;)
        fwrite(buffer, 1, length, export->out);
    bool done = !ferror(from);
    fclose(from);
    return done || error_fail(error, ERROR_FAILED, "export: %.300s cannot be read", path);
}

// ---- the command --------------------------------------------------------------------------------

static const struct {
    const char *name;
    bool (*write)(Export *export, Error *error);
    bool is_binary;
} formats[] = {
    {"csv", write_csv, false},
    {"jsonl", write_lines, false},
    {"safetensors", export_weights, true},
    {"png", write_picture, true},
    {"tensorboard", export_tensorboard, true},
};

// TensorBoard takes no notice of a file of another name.
static bool check_name(const Cli *cli, const char *format, Error *error) {
    const char *slash = cli->output ? strrchr(cli->output, '/') : NULL;
    const char *name = slash ? slash + 1 : cli->output;
    if (strcmp(format, "tensorboard") != 0 || !name || strstr(name, "tfevents") ||
        strncmp(cli->output, "/dev/", 5) == 0)
        return true;
    return error_fail(error, ERROR_USAGE,
                      "export: TensorBoard reads only files with \"tfevents\" in their names: -o "
                      "%.*sevents.out.tfevents.%.100s",
                      slash ? (int)(slash + 1 - cli->output) : 0, cli->output, name);
}

// Checkpoints are private. What is asked for by a name is for whom the umask says.
static bool write_to_file(const Cli *cli, Export *export, bool (*write)(Export *, Error *),
                          Error *error) {
    OutFile out;
    if (!out_file_open(&out, cli->output, false, error))
        return error_prefix(error, "--output");
    export->out = out.stream;
    export->is_seen = isatty(fileno(out.stream));
    Error why = {0}; // of the file alone
    bool done = write(export, error), closed = out_file_close(&out, done, &why);
    if (done && !closed) {
        error_prefix(&why, "--output");
        *error = why;
    }
    return closed;
}

bool command_export(Cli *cli, Error *error) {
    if (scan_is_named(cli->operands[0]))
        return scan_export(cli, cli->operands[0], error);
    Export export = {.cli = cli, .out = stdout};
    const char *wanted = cli->format ? cli->format : "csv";
    size_t chosen = 0;
    while (strcmp(formats[chosen].name, wanted) != 0)
        chosen++;
    if (formats[chosen].is_binary && !cli->output && isatty(STDOUT_FILENO))
        return error_fail(error, ERROR_USAGE, "export: %s is not for a terminal; add -o FILE",
                          wanted);
    if (!check_name(cli, wanted, error))
        return false;
    if (cli->run.precision && strcmp(wanted, "safetensors") != 0)
        return error_fail(error, ERROR_USAGE,
                          "--precision: of weights alone: add --format safetensors");
    export.is_seen = !cli->output && isatty(STDOUT_FILENO);
    export.store = history_open(cli, STORE_RESCUE, error);
    bool done =
        export.store && history_check_output(cli, export.store, error) &&
        history_read_run(export.store, cli->operands[0], &export.run, error) &&
        store_list_series(export.store, export.run.id, &export.series, &export.series_count, error);
    if (done && cli->output)
        done = write_to_file(cli, &export, formats[chosen].write, error);
    else if (done)
        done = formats[chosen].write(&export, error);
    done = history_tell_losses(export.store, done, error);
    free(export.series);
    record_clear(&export.run);
    store_close(export.store);
    return done;
}
