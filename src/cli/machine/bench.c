// `mpbench bench`: this machine, measured: what each format gains over fp32, and takes.
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/load.h"
#include "base/sanitize.h"
#include "cli/cli.h"
#include "cli/print/table.h"
#include "cli/print/terminal.h"
#include "cli/print/text.h"
#include "measure/formats.h"

static const double whole_seconds = 16, quick_seconds = 6;

typedef struct Measured {
    const Device *device;
    FormatSpeeds speeds;
    double others; // processors that other programs kept busy meanwhile; NaN: unknown
} Measured;

static const struct {
    const char *key, *size;
} task_table[FORMAT_TASKS] = {
    [FORMAT_PRODUCT] = {"product", "rows"},
    [FORMAT_CONVOLUTION] = {"convolution", "images"},
    [FORMAT_STEP] = {"step", "images"},
};

// Of a number with its part of the scale that it shares with others of its block.
static double bits_of(Format format) {
    const FormatInfo *info = &format_table[format];
    return info->scaled == SCALED_BLOCK
               ? format_bits(info->element) + (double)format_bits(info->scale) / info->block
               : format_bits(format);
}

// Of whole numbers one step.
static double smallest_of(Format format) {
    return format_is_floating(format) ? format_table[format].smallest_normal : 1;
}

// ---- for people ---------------------------------------------------------------------------------

static const TableColumn columns[] = {
    {"format", false, 0, 0},    {"bits", true, 0, 0},     {"largest", true, 2, 0},
    {"min normal", true, 3, 0}, {"products", true, 0, 0}, {"convolutions", true, 0, 0},
    {"step", true, 0, 0},       {"memory", true, 0, 0},
};

static void put_ratio(Table *table, double ratio) {
    char text[TEXT_SIZE];
    snprintf(text, sizeof text, "%.2fx", ratio);
    table_put(table, isnan(ratio) ? NULL : text, "");
}

static void put_value(Table *table, double value, int digits) {
    char text[TEXT_SIZE];
    table_put(table, text_number(text, value, digits), "");
}

static bool print_table(const Cli *cli, const FormatSpeeds *speeds, Error *error) {
    Terminal terminal = terminal_of(stdout, cli->color);
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int i = 0; i < speeds->count; i++) {
        const FormatSpeed *row = &speeds->rows[i];
        const FormatInfo *info = &format_table[row->format];
        table_put(table, info->name, terminal_format_color(&terminal, row->format));
        put_value(table, bits_of(row->format), 4);
        put_value(table, info->largest, 5);
        put_value(table, smallest_of(row->format), 3);
        for (int t = 0; t < FORMAT_TASKS; t++)
            put_ratio(table, row->gain[t]);
        put_ratio(table, row->memory);
    }
    const bool done =
        table_print(table, stdout, terminal_width(&terminal), terminal_style(&terminal, STYLE_DIM),
                    terminal_style(&terminal, STYLE_NONE), error);
    table_free(table);
    return done;
}

static void print_words(const Measured *measured) {
    const FormatSpeeds *speeds = &measured->speeds;
    const FormatSpeed *fp32 = &speeds->rows[0];
    char words[1024], bytes[TEXT_SIZE], busy[TEXT_LOAD_SIZE];
    snprintf(words, sizeof words,
             "Times fp32's speed, and its memory. fp32 itself: products of %lld x %lld matrices at "
             "%.4g GFLOP/s; 3 x 3 convolutions of %lld image%s of 32 x 32 x 64 at %.4g GFLOP/s; a "
             "step of a small network on %lld image%s in %.4g ms and %s.",
             (long long)speeds->size[FORMAT_PRODUCT], (long long)speeds->size[FORMAT_PRODUCT],
             speeds->flops[FORMAT_PRODUCT] / fp32->seconds[FORMAT_PRODUCT] * 1e-9,
             (long long)speeds->size[FORMAT_CONVOLUTION],
             speeds->size[FORMAT_CONVOLUTION] == 1 ? "" : "s",
             speeds->flops[FORMAT_CONVOLUTION] / fp32->seconds[FORMAT_CONVOLUTION] * 1e-9,
             (long long)speeds->size[FORMAT_STEP], speeds->size[FORMAT_STEP] == 1 ? "" : "s",
             fp32->seconds[FORMAT_STEP] * 1e3, text_bytes(bytes, fp32->bytes));
    cli_print_wrapped(words, 0);
    size_t used = (size_t)snprintf(
        words, sizeof words, "Medians of %d round%s through all formats%s", speeds->rounds,
        speeds->rounds == 1 ? "" : "s", speeds->rounds < 5 ? ", too few to be sure" : "");
    text_load(busy, measured->others);
    snprintf(words + used, sizeof words - used,
             "%s%s. A dash: this device does not do it. What these are made of: mpbench formats.",
             busy[0] ? "; " : "", busy);
    cli_print_wrapped(words, 0);
}

// A format that is there to evaluate in.
static void print_evaluated(const FormatSpeeds *speeds) {
    char words[256];
    for (int i = 0; i < speeds->count; i++) {
        const FormatSpeed *row = &speeds->rows[i];
        if (!isnan(row->bytes) || isnan(row->memory))
            continue;
        snprintf(words, sizeof words,
                 "Nothing trains in %s: its products and convolutions are those of layers that are "
                 "evaluated, by weights in it, and its memory is that of the weights.",
                 format_name(row->format));
        cli_print_wrapped(words, 0);
    }
}

static bool print_measured(const Cli *cli, const Measured *measured, Error *error) {
    cli_print_outside(stdout, measured->device->label);
    printf(": ");
    cli_print_outside(stdout, measured->device->name);
    printf(", %d thread%s\n\n", measured->device->threads,
           measured->device->threads == 1 ? "" : "s");
    if (!print_table(cli, &measured->speeds, error))
        return false;
    putchar('\n');
    print_words(measured);
    print_evaluated(&measured->speeds);
    return true;
}

// ---- for programs -------------------------------------------------------------------------------

static void write_tasks(JsonWriter *json, const char *key, const double values[FORMAT_TASKS]) {
    json_key(json, key);
    json_begin_object(json);
    for (int t = 0; t < FORMAT_TASKS; t++)
        json_put_reading(json, task_table[t].key, values[t]);
    json_end_object(json);
}

static void write_row(JsonWriter *json, const FormatSpeed *row) {
    const FormatInfo *info = &format_table[row->format];
    json_begin_object(json);
    json_put_text(json, "format", info->name);
    json_put_number(json, "bits", bits_of(row->format));
    json_put_number(json, "largest", info->largest);
    json_put_number(json, "min_normal", smallest_of(row->format));
    write_tasks(json, "speedup", row->gain);
    write_tasks(json, "seconds", row->seconds);
    json_put_reading(json, "memory_ratio", row->memory);
    json_put_reading(json, "memory", row->bytes);
    json_end_object(json);
}

static void write_measured(const Measured *measured) {
    const FormatSpeeds *speeds = &measured->speeds;
    JsonWriter json = {.stream = stdout};
    json_begin_object(&json);
    json_put_text(&json, "device", measured->device->label);
    json_put_text(&json, "device_name", measured->device->name);
    json_put_integer(&json, "threads", measured->device->threads);
    json_put_integer(&json, "rounds", speeds->rounds);
    json_put_reading(&json, "others_busy", measured->others);
    for (int t = 0; t < FORMAT_TASKS; t++) {
        json_key(&json, task_table[t].key);
        json_begin_object(&json);
        json_put_integer(&json, task_table[t].size, speeds->size[t]);
        json_put_known(&json, "flops", speeds->flops[t], speeds->flops[t] > 0);
        json_end_object(&json);
    }
    json_key(&json, "formats");
    json_begin_array(&json);
    for (int i = 0; i < speeds->count; i++)
        write_row(&json, &speeds->rows[i]);
    json_end_array(&json);
    json_end_object(&json);
    putchar('\n');
}

// ---- the command --------------------------------------------------------------------------------

static bool open_device(const Cli *cli, Device **device, Error *error) {
    const char *name = cli->run.device;
    if (name && strcmp(name, "auto") != 0)
        return device_open(name, cli->run.threads, device, error);
    Error passed = {0};
    if (!device_open_best(cli->run.threads, device, &passed, error))
        return false;
    if (passed.code != ERROR_NONE)
        cli_print_error(&passed);
    return true;
}

static bool measure(const Cli *cli, Device *device, Measured *measured, Error *error) {
    const double seconds = cli->quick ? quick_seconds : whole_seconds;
    Load before, after;
    const bool is_counted = load_look(&before);
    measure_formats_begin(device, &measured->speeds);
    if (!cli->quiet)
        fprintf(stderr, "measures %d formats on %s, about %.0f s%s\n", measured->speeds.count,
                device->label, seconds, cli->quick ? "" : " (--quick: less)");
    if (!measure_formats(device, seconds, &measured->speeds, error))
        return false;
    measured->others =
        is_counted && load_look(&after) ? load_of_others(&before, &after) : (double)NAN;
    return true;
}

bool command_bench(Cli *cli, Error *error) {
    if (cli->operand_count > 0 && strcmp(cli->operands[0], "formats") != 0)
        return error_fail(error, ERROR_USAGE,
                          "bench %.60s: not known; what can be measured: formats",
                          cli->operands[0]);
    cli_limit_spinning(cli->arguments); // starts anew: before anything is opened
    Device *device = NULL;
    if (!open_device(cli, &device, error))
        return false;
    Measured measured = {.device = device};
    bool done = measure(cli, device, &measured, error);
    if (done && cli->json)
        write_measured(&measured);
    else if (done)
        done = print_measured(cli, &measured, error);
    device_close(device);
    return done;
}
