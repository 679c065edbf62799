// `mpbench doctor`: what this machine can do, what is missing, and what to do about it. Every line
// is asked of the room that knows: the devices, the readers of data.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/isa.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "data/fashion.h"
#include "data/text.h"

static const Format asked_formats[] = {FORMAT_FP64, FORMAT_FP32, FORMAT_TF32, FORMAT_BF16,
                                       FORMAT_FP16, FORMAT_E4M3, FORMAT_E5M2};
static const Format training_formats[] = {FORMAT_FP16, FORMAT_BF16, FORMAT_FP32};

enum {
    ASKED_COUNT = sizeof asked_formats / sizeof *asked_formats,
    TRAINING_COUNT = sizeof training_formats / sizeof *training_formats,
    MOST_DEVICES = 8,
};

typedef struct FoundDevice {
    const char *name;
    Device *device; // NULL: error says why
    Error error;
} FoundDevice;

typedef struct Findings {
    FoundDevice devices[MOST_DEVICES];
    int device_count;
    bool has_fashion, has_text;
    Error fashion_error;
    int text_files, text_expected;
    double memory; // bytes; 0: unknown
} Findings;

static double find_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
    return pages > 0 && size > 0 ? (double)pages * (double)size : 0;
}

static void find_all(Findings *findings) {
    for (int i = 0; backend_list[i] && i < MOST_DEVICES; i++) {
        FoundDevice *found = &findings->devices[findings->device_count++];
        found->name = backend_list[i]->name;
        if (!device_open(found->name, 0, &found->device, &found->error))
            found->device = NULL;
    }
    Dataset *fashion = dataset_from_fashion(false, &findings->fashion_error);
    findings->has_fashion = fashion != NULL;
    dataset_release(fashion);
    const char *const *paths = text_default_paths(&findings->text_expected);
    for (int i = 0; i < findings->text_expected; i++)
        findings->text_files += access(paths[i], R_OK) == 0;
    findings->memory = find_memory();
}

static bool gains(const Device *device, Format format) {
    return device->backend->gains(device, format);
}

// Operations of users; what only gradients call follows them.
static bool is_shown(OpId op) {
    return op_table[op].class != CLASS_INNER;
}

static bool runs(const Device *device, OpId op, Format format) {
    const Backend *backend = device->backend;
    return backend->kernels[op] && backend->supports(device, op, format);
}

// ---- for people ---------------------------------------------------------------------------------

static void print_label(const Terminal *terminal, const char *label) {
    printf("%s%-14s%s", terminal_style(terminal, STYLE_DIM), label,
           terminal_style(terminal, STYLE_NONE));
}

static void print_devices(const Terminal *terminal, const Findings *findings) {
    for (int i = 0; i < findings->device_count; i++) {
        const FoundDevice *found = &findings->devices[i];
        print_label(terminal, i == 0 ? "devices" : "");
        printf("%-5s", found->name);
        if (!found->device) {
            cli_print_outside(stdout, found->error.text);
            putchar('\n');
            continue;
        }
        cli_print_outside(stdout, found->device->name);
        printf(", %d thread%s; products faster than in fp32:", found->device->threads,
               found->device->threads == 1 ? "" : "s");
        bool any = false;
        for (int f = 0; f < TRAINING_COUNT; f++)
            if (gains(found->device, training_formats[f])) {
                any = true;
                printf(" %s%s%s", terminal_format_color(terminal, training_formats[f]),
                       format_name(training_formats[f]), terminal_style(terminal, STYLE_NONE));
            }
        puts(any ? "" : " none");
    }
    print_label(terminal, "");
    puts("gpu  this build has none; the CPU trains in every format");
}

static void print_auto(const Terminal *terminal, const Findings *findings) {
    Preset preset;
    char why[160];
    const Device *device = findings->devices[0].device;
    print_label(terminal, "auto");
    if (preset_resolve("auto", device, &preset, why, sizeof why, NULL))
        printf("%s: %s\n", preset.name, why);
}

static void print_data(const Terminal *terminal, const Findings *findings) {
    print_label(terminal, "Fashion-MNIST");
    if (findings->has_fashion)
        puts("readable");
    else
        cli_print_outside(stdout, findings->fashion_error.text), putchar('\n');
    print_label(terminal, "text");
    printf("%d of %d files of the default corpus (/usr/share/common-licenses)%s\n",
           findings->text_files, findings->text_expected,
           findings->text_files > 0 ? "" : "; give mp.data.text{path=} one of your own");
}

static void print_matrix(const Terminal *terminal, const FoundDevice *found) {
    printf("\n%sOperations on %s%s\n%-26s", terminal_style(terminal, STYLE_STRONG), found->name,
           terminal_style(terminal, STYLE_NONE), "");
    for (int f = 0; f < ASKED_COUNT; f++)
        printf(" %s%-5s%s", terminal_format_color(terminal, asked_formats[f]),
               format_name(asked_formats[f]), terminal_style(terminal, STYLE_NONE));
    putchar('\n');
    for (int op = 0; op < OP_COUNT; op++) {
        if (!is_shown((OpId)op))
            continue;
        printf("  %-24s", op_table[op].name);
        for (int f = 0; f < ASKED_COUNT; f++)
            printf(" %-5s", runs(found->device, (OpId)op, asked_formats[f]) ? "yes" : "-");
        const char *why = found->device->backend->absences[op];
        printf("%s\n", !found->device->backend->kernels[op] && why ? why : "");
    }
}

static void print_all(const Terminal *terminal, const Findings *findings) {
    char memory[TEXT_SIZE];
    print_label(terminal, "mpbench");
    printf("%s\n", MPBENCH_VERSION);
    print_label(terminal, "processor");
    printf("instructions %s, %s\n", isa_level_name(isa_level()),
           isa_has_amx() ? "AMX tiles for bf16 (and fp16 through them)" : "no AMX tiles");
    print_label(terminal, "memory");
    puts(findings->memory > 0 ? text_bytes(memory, findings->memory) : "unknown");
    print_devices(terminal, findings);
    print_auto(terminal, findings);
    print_data(terminal, findings);
    for (int i = 0; i < findings->device_count; i++)
        if (findings->devices[i].device)
            print_matrix(terminal, &findings->devices[i]);
    puts("\nWhat only gradients call runs in the formats of its operation.");
}

// ---- for programs -------------------------------------------------------------------------------

static void write_operations(JsonWriter *json, const Device *device) {
    json_key(json, "operations");
    json_begin_object(json);
    for (int op = 0; op < OP_COUNT; op++) {
        if (!is_shown((OpId)op))
            continue;
        json_key(json, op_table[op].name);
        json_begin_array(json);
        for (int f = 0; f < ASKED_COUNT; f++)
            if (runs(device, (OpId)op, asked_formats[f]))
                json_text(json, format_name(asked_formats[f]));
        json_end_array(json);
    }
    json_end_object(json);
}

static void write_device(JsonWriter *json, const FoundDevice *found) {
    json_begin_object(json);
    json_key(json, "name");
    json_text(json, found->name);
    json_key(json, "error");
    json_text(json, found->device ? NULL : found->error.text);
    if (found->device) {
        json_key(json, "hardware");
        json_text(json, found->device->name);
        json_key(json, "threads");
        json_integer(json, found->device->threads);
        json_key(json, "gains");
        json_begin_array(json);
        for (int f = 0; f < TRAINING_COUNT; f++)
            if (gains(found->device, training_formats[f]))
                json_text(json, format_name(training_formats[f]));
        json_end_array(json);
        write_operations(json, found->device);
    }
    json_end_object(json);
}

static void write_all(JsonWriter *json, const Findings *findings) {
    json_begin_object(json);
    json_key(json, "version");
    json_text(json, MPBENCH_VERSION);
    json_key(json, "isa");
    json_text(json, isa_level_name(isa_level()));
    json_key(json, "amx");
    json_boolean(json, isa_has_amx());
    json_key(json, "memory");
    if (findings->memory > 0)
        json_integer(json, (int64_t)findings->memory);
    else
        json_null(json);
    json_key(json, "devices");
    json_begin_array(json);
    for (int i = 0; i < findings->device_count; i++)
        write_device(json, &findings->devices[i]);
    json_end_array(json);
    json_key(json, "fashion_mnist");
    json_boolean(json, findings->has_fashion);
    json_key(json, "fashion_mnist_error");
    json_text(json, findings->has_fashion ? NULL : findings->fashion_error.text);
    json_key(json, "text_files");
    json_integer(json, findings->text_files);
    json_end_object(json);
    fputc('\n', json->stream);
}

bool command_doctor(Cli *cli, Error *error) {
    Findings *findings = calloc(1, sizeof *findings);
    if (!findings)
        return error_fail(error, ERROR_MEMORY, "no memory to look around");
    find_all(findings);
    if (cli->json) {
        JsonWriter json = {.stream = stdout};
        write_all(&json, findings);
    } else {
        Terminal terminal = terminal_of(stdout, cli->color);
        print_all(&terminal, findings);
    }
    for (int i = 0; i < findings->device_count; i++)
        device_close(findings->devices[i].device);
    free(findings);
    return true;
}
