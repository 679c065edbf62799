// `mpbench doctor`: what this machine can do, what is missing, and what to do about it, on one
// screen; --verbose adds what each operation runs in, which --json always has, and looks at every
// page of the history. Every line is asked of the room that knows: the devices, the readers of
// data, the history.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/isa.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/sandbox.h"
#include "base/sanitize.h"
#include "cli/history/history.h"
#include "cli/train/confine.h"
#include "data/fashion.h"
#include "data/text.h"
#include "lua/experiment.h"

enum {
    MOST_DEVICES = 8,
    MOST_LIBRARIES = MOST_DEVICES + 2,
    LABEL_WIDTH = 14,
};

typedef struct FoundDevice {
    char name[32];
    bool is_preferred;
    Device *device; // NULL: error says why
    Error error;
} FoundDevice;

typedef struct FoundLibrary {
    char name[64], version[64];
} FoundLibrary;

typedef struct Findings {
    FoundDevice devices[MOST_DEVICES];
    int device_count;
    FoundLibrary libraries[MOST_LIBRARIES];
    int library_count;
    bool has_fashion, has_text;
    Error fashion_error;
    int text_files, text_expected;
    double memory; // bytes; 0: unknown
    int sandbox;   // the parts that hold, see base/sandbox.h
    char history[STORE_PATH_SIZE];
    bool has_history, is_checked; // every page
    int runs;
    Error history_error; // ERROR_NONE: it can be read
} Findings;

static void add_library(Findings *findings, const char *name, const char *version) {
    FoundLibrary *found = &findings->libraries[findings->library_count++];
    snprintf(found->name, sizeof found->name, "%s", name);
    snprintf(found->version, sizeof found->version, "%s", version);
}

static void find_libraries(Findings *findings) {
    char name[sizeof(FoundLibrary){0}.name], version[sizeof name];
    for (int i = 0; i < findings->device_count; i++) {
        const Device *device = findings->devices[i].device;
        if (!device || !device->backend->computes_with)
            continue;
        device->backend->computes_with(name, sizeof name, version, sizeof version);
        add_library(findings, name, version);
    }
    add_library(findings, "Lua", lua_library());
    add_library(findings, "SQLite", store_library());
}

static void find_devices(Findings *findings, const Backend *backend) {
    int count = backend->count ? backend->count() : 1;
    for (int i = 0; i < count && findings->device_count < MOST_DEVICES; i++) {
        FoundDevice *found = &findings->devices[findings->device_count++];
        found->is_preferred = backend->preferred;
        if (count > 1)
            snprintf(found->name, sizeof found->name, "%s:%d", backend->name, i);
        else
            snprintf(found->name, sizeof found->name, "%s", backend->name);
        if (!device_open(found->name, 0, &found->device, &found->error))
            found->device = NULL;
    }
}

// The one that trains where none is asked for.
static const Device *best_device(const Findings *findings) {
    for (int i = 0; i < findings->device_count; i++)
        if (findings->devices[i].is_preferred && findings->devices[i].device)
            return findings->devices[i].device;
    return findings->devices[0].device;
}

static void find_all(Findings *findings) {
    findings->sandbox = confine_try(); // while there are no other threads
    for (int i = 0; backend_list[i]; i++)
        find_devices(findings, backend_list[i]);
    find_libraries(findings);
    Dataset *fashion = dataset_from_fashion(false, &findings->fashion_error);
    findings->has_fashion = fashion != NULL;
    dataset_release(fashion);
    const char *const *paths = text_default_paths(&findings->text_expected);
    for (int i = 0; i < findings->text_expected; i++)
        findings->text_files += access(paths[i], R_OK) == 0;
    findings->memory = (double)memory_of_machine();
}

// Every page of the file is looked at only where `whole`: that of many runs takes a while.
static void find_history(Findings *findings, const Cli *cli, bool whole) {
    Error *error = &findings->history_error;
    Store *store = NULL;
    RunRecord *runs = NULL;
    bool done =
        store_path(cli->database, findings->history, error) &&
        history_open_to_read(cli, STORE_READ, &store, error) &&
        (!store || (store_list_runs(store, &(RunFilter){0}, &runs, &findings->runs, error) &&
                    (!whole || store_check(store, error))));
    findings->has_history = done && store;
    findings->is_checked = findings->has_history && whole;
    store_free_runs(runs, findings->runs);
    store_close(store);
}

static bool gains(const Device *device, Format format) {
    return device->backend->gain(device, format) > 1;
}

// Operations of users; what only gradients call follows them.
static bool is_shown(OpId op) {
    return op_table[op].precision != CLASS_INNER;
}

static bool runs(const Device *device, OpId op, Format format) {
    const Backend *backend = device->backend;
    return backend->kernels[op] && backend->supports(device, op, format);
}

// ---- for people ---------------------------------------------------------------------------------

static void print_label(const Terminal *terminal, const char *label) {
    printf("%s%-*s%s", terminal_style(terminal, STYLE_DIM), LABEL_WIDTH, label,
           terminal_style(terminal, STYLE_NONE));
}

static void print_line(const Terminal *terminal, const char *label, const char *text) {
    char line[ERROR_TEXT_SIZE];
    sanitize_line(line, sizeof line, text, strlen(text));
    print_label(terminal, label);
    cli_print_wrapped(line, LABEL_WIDTH);
}

static void print_program(const Terminal *terminal, const Findings *findings) {
    char text[MOST_LIBRARIES * sizeof(FoundLibrary)];
    size_t used = (size_t)snprintf(text, sizeof text, "%s, with", MPBENCH_VERSION);
    for (int i = 0; i < findings->library_count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s %s", i ? "," : "",
                                 findings->libraries[i].name, findings->libraries[i].version);
    print_line(terminal, "mpbench", text);
}

// Why a device is not there, without its name before it.
static const char *reason_of(const FoundDevice *found) {
    const char *text = found->error.text, *colon = strstr(text, ": ");
    return colon && strncmp(text, "device ", 7) == 0 ? colon + 2 : text;
}

static void print_machine(const Terminal *terminal, const Findings *findings) {
    char text[ERROR_TEXT_SIZE], memory[TEXT_SIZE];
    snprintf(text, sizeof text, "instructions %s, %s", isa_level_name(isa_level()),
             isa_has_amx() ? "AMX tiles for bf16 (and fp16 through them)" : "no AMX tiles");
    print_line(terminal, "processor", text);
    print_line(terminal, "memory",
               findings->memory > 0 ? text_bytes(memory, findings->memory) : "unknown");
    for (int i = 0; i < findings->device_count; i++) {
        const FoundDevice *found = &findings->devices[i];
        const Device *device = found->device;
        if (device && device->about[0])
            snprintf(text, sizeof text, "%-4s %s, %s", found->name, device->name, device->about);
        else if (device)
            snprintf(text, sizeof text, "%-4s %s, %d thread%s", found->name, device->name,
                     device->threads, device->threads == 1 ? "" : "s");
        else
            snprintf(text, sizeof text, "%-4s %.450s", found->name, reason_of(found));
        print_line(terminal, i == 0 ? "devices" : "", text);
    }
}

static bool is_for_users(Format format) {
    return format_is_floating(format) && format != FORMAT_FP64;
}

static void print_formats(const Terminal *terminal, const Findings *findings) {
    const Device *device = best_device(findings);
    Preset preset;
    char text[256], why[160];
    if (!device)
        return;
    Format formats[FORMAT_COUNT];
    const int count = format_pick(formats, is_for_users);
    for (int i = 0; i < count; i++) {
        Format format = formats[i];
        const char *what = !runs(device, OP_matmul, format) ? "to look at only: mpbench formats"
                           : format == FORMAT_FP32          ? "trains"
                           : gains(device, format) ? "trains, with products faster than in fp32"
                                                   : "trains, no faster than fp32";
        print_label(terminal, i == 0 ? "formats" : "");
        printf("%s%-4s%s %s\n", terminal_format_color(terminal, format), format_name(format),
               terminal_style(terminal, STYLE_NONE), what);
    }
    if (preset_resolve("auto", device, &preset, why, sizeof why, NULL)) {
        snprintf(text, sizeof text, "%s: %s", preset.name, why);
        print_line(terminal, "auto", text);
    }
}

static void print_data(const Terminal *terminal, const Findings *findings) {
    char text[256];
    print_line(terminal, "Fashion-MNIST",
               findings->has_fashion ? "readable" : findings->fashion_error.text);
    snprintf(text, sizeof text,
             "%d of %d files of the default corpus (/usr/share/common-licenses)%s",
             findings->text_files, findings->text_expected,
             findings->text_files > 0 ? "" : "; give mp.data.text{path=} one of your own");
    print_line(terminal, "text", text);
}

static void print_sandbox(const Terminal *terminal, const Findings *findings) {
    static const char *const says[] = {
        "Lua's own bounds alone: this system has neither Landlock nor seccomp",
        "scripts are held to their files (Landlock); to start no program by Lua's own bounds alone "
        "(no seccomp)",
        "scripts start no program and no connection (seccomp); held to their files by Lua's own "
        "bounds alone (no Landlock)",
        "scripts are held to their files and start no program or connection (Landlock, seccomp)",
    };
    print_line(terminal, "sandbox", says[findings->sandbox & (SANDBOX_FILES | SANDBOX_CALLS)]);
}

static void print_history(const Terminal *terminal, const Findings *findings) {
    char text[STORE_PATH_SIZE + 64];
    if (findings->history_error.code != ERROR_NONE)
        snprintf(text, sizeof text, "%s", findings->history_error.text);
    else if (findings->has_history)
        snprintf(text, sizeof text, "%s: %d run%s, %s", findings->history, findings->runs,
                 findings->runs == 1 ? "" : "s",
                 findings->is_checked ? "and no page is damaged" : "readable");
    else
        snprintf(text, sizeof text, "%s: nothing recorded yet", findings->history);
    print_line(terminal, "history", text);
}

// What is missing, with the remedy that its room gives; else how to begin.
static void print_advice(const Terminal *terminal, const Findings *findings, bool is_verbose) {
    static const char first[] = "what to do";
    const char *label = first;
    if (!findings->has_fashion) {
        print_line(terminal, label,
                   "for fashion_cnn and fashion_mlp: install the package dataset-fashion-mnist");
        label = "";
    }
    if (findings->history_error.code != ERROR_NONE) {
        print_line(terminal, label, "for a history: see above, or name another file with --db");
        label = "";
    }
    if (label == first)
        print_line(terminal, label,
                   findings->runs > 0 ? "nothing is missing: `mpbench` opens the screen"
                                      : "nothing is missing: `mpbench run simple -p fp16` trains");
    if (!is_verbose)
        print_line(terminal, "", "`mpbench doctor --verbose` lists what each operation runs in");
}

static void print_matrix(const Terminal *terminal, const FoundDevice *found) {
    Format formats[FORMAT_COUNT];
    const int count = format_pick(formats, format_is_floating);
    printf("\n%sOperations on %s%s\n%-26s", terminal_style(terminal, STYLE_STRONG), found->name,
           terminal_style(terminal, STYLE_NONE), "");
    for (int f = 0; f < count; f++)
        printf(" %s%-5s%s", terminal_format_color(terminal, formats[f]), format_name(formats[f]),
               terminal_style(terminal, STYLE_NONE));
    putchar('\n');
    for (int op = 0; op < OP_COUNT; op++) {
        if (!is_shown((OpId)op))
            continue;
        printf("  %-24s", op_table[op].name);
        for (int f = 0; f < count; f++)
            printf(" %-5s", runs(found->device, (OpId)op, formats[f]) ? "yes" : "-");
        const char *why = found->device->backend->absences[op];
        printf("%s\n", !found->device->backend->kernels[op] && why ? why : "");
    }
}

static void print_all(const Terminal *terminal, const Findings *findings, bool is_verbose) {
    print_program(terminal, findings);
    print_machine(terminal, findings);
    print_formats(terminal, findings);
    print_data(terminal, findings);
    print_sandbox(terminal, findings);
    print_history(terminal, findings);
    print_advice(terminal, findings, is_verbose);
    if (!is_verbose)
        return;
    for (int i = 0; i < findings->device_count; i++)
        if (findings->devices[i].device)
            print_matrix(terminal, &findings->devices[i]);
    puts("\nWhat only gradients call runs in the formats of its operation.");
}

// ---- for programs -------------------------------------------------------------------------------

static void write_operations(JsonWriter *json, const Device *device) {
    Format formats[FORMAT_COUNT];
    const int count = format_pick(formats, format_is_floating);
    json_key(json, "operations");
    json_begin_object(json);
    for (int op = 0; op < OP_COUNT; op++) {
        if (!is_shown((OpId)op))
            continue;
        json_key(json, op_table[op].name);
        json_begin_array(json);
        for (int f = 0; f < count; f++)
            if (runs(device, (OpId)op, formats[f]))
                json_text(json, format_name(formats[f]));
        json_end_array(json);
    }
    json_end_object(json);
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
        json_key(json, "gains");
        json_begin_array(json);
        Format formats[FORMAT_COUNT];
        const int count = format_pick(formats, format_trains);
        for (int f = 0; f < count; f++)
            if (gains(found->device, formats[f]))
                json_text(json, format_name(formats[f]));
        json_end_array(json);
        write_operations(json, found->device);
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

static void write_all(JsonWriter *json, const Findings *findings) {
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
    fputc('\n', json->stream);
}

bool command_doctor(Cli *cli, Error *error) {
    Findings *findings = calloc(1, sizeof *findings);
    if (!findings)
        return error_fail(error, ERROR_MEMORY, "no memory to look around");
    find_all(findings);
    find_history(findings, cli, cli->verbose);
    if (cli->json) {
        JsonWriter json = {.stream = stdout};
        write_all(&json, findings);
    } else {
        Terminal terminal = terminal_of(stdout, cli->color);
        print_all(&terminal, findings, cli->verbose);
    }
    for (int i = 0; i < findings->device_count; i++)
        device_close(findings->devices[i].device);
    free(findings);
    return true;
}
