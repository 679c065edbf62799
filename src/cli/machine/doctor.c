// `mpbench doctor`: what this machine can do, what is missing, and what to do about it, on one
// screen; --verbose adds what each operation runs in, which --json always has, and looks at every
// page of the history.
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "base/sandbox.h"
#include "base/sanitize.h"
#include "cli/machine/findings.h"
#include "cli/print/terminal.h"
#include "cli/print/text.h"
#include "precision/policy.h"

enum { LABEL_WIDTH = 14 };

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

// A name and its version, or that there is none.
static size_t write_part(char *text, size_t size, const DevicePart *part) {
    int length = part->version[0]   ? snprintf(text, size, "%s %s", part->name, part->version)
                 : part->is_library ? snprintf(text, size, "no %s", part->name)
                                    : snprintf(text, size, "%s unknown", part->name);
    return length < 0 ? 0 : (size_t)length;
}

static void print_parts(const Terminal *terminal, const FoundDevice *found) {
    char text[ERROR_TEXT_SIZE] = "";
    size_t used = 0;
    for (int i = 0; i < found->part_count && used + sizeof(DevicePart) < sizeof text; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", i > 0 ? ", " : "");
        used += write_part(text + used, sizeof text - used, &found->parts[i]);
    }
    print_line(terminal, found->name, text);
}

// What a device computes in, or may: neither the elements that others scale, nor those.
static bool is_computed_in(Format format) {
    return format_is_floating(format) && (format_table[format].stores || format_multiplies(format));
}

static size_t list_formats(char *text, size_t size, const Device *device,
                           bool (*holds)(const Device *device, Format format)) {
    Format formats[FORMAT_COUNT];
    const int count = format_pick(formats, format_is_floating);
    size_t used = 0;
    *text = 0;
    for (int f = 0; f < count && used < size; f++)
        if (holds(device, formats[f]))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "",
                                     format_name(formats[f]));
    return used;
}

static void print_formats_of(const Terminal *terminal, const Device *device) {
    enum { ALL = FORMAT_COUNT * sizeof "mxfp6_e2m3, " }; // the longest of their names
    char trains[ALL], gains[ALL], text[2 * ALL + 64];
    bool has_gains = list_formats(gains, sizeof gains, device, findings_gains) > 0;
    list_formats(trains, sizeof trains, device, findings_trains);
    snprintf(text, sizeof text, "trains in %s; large products gain by %s", trains,
             has_gains ? gains : "none");
    print_line(terminal, "", text);
}

// What cards consist of and train in. Other devices have no parts to tell of.
static void print_cards(const Terminal *terminal, const Findings *findings) {
    for (int i = 0; i < findings->device_count; i++) {
        const FoundDevice *found = &findings->devices[i];
        if (found->part_count == 0)
            continue;
        print_parts(terminal, found);
        print_formats_of(terminal, found->device);
    }
}

static bool is_for_users(Format format) {
    return is_computed_in(format) && format != FORMAT_FP64;
}

// Elements are multiplied by themselves, or as what they are worth in bf16.
static bool gains_by_elements(const Device *device, Format format) {
    return format_is_scaled(format) && findings_gains(device, format) &&
           device->backend->gain(device, format) > device->backend->gain(device, FORMAT_BF16);
}
static bool gains_as_bf16(const Device *device, Format format) {
    return format_is_scaled(format) && !gains_by_elements(device, format);
}

static void print_scaled(const Terminal *terminal, const Device *device) {
    char names[FORMAT_LIST_SIZE], text[FORMAT_LIST_SIZE + 256];
    const char *than = format_name(findings_gains(device, FORMAT_BF16) ? FORMAT_BF16 : FORMAT_FP32);
    if (!findings_runs(device, OP_matmul, FORMAT_MXFP8)) {
        format_list(names, format_is_scaled, ", ", ", ");
        snprintf(text, sizeof text, "%s: to look at only", names);
        print_line(terminal, "", text);
        return;
    }
    if (list_formats(names, sizeof names, device, gains_as_bf16) > 0) {
        snprintf(text, sizeof text, "%s: products alone, no faster than in %s", names, than);
        print_line(terminal, "", text);
    }
    if (list_formats(names, sizeof names, device, gains_by_elements) > 0) {
        snprintf(text, sizeof text,
                 "%s: products alone, those of linear layers faster than in %s, as whole numbers",
                 names, than);
        print_line(terminal, "", text);
    }
}

static void print_formats(const Terminal *terminal, const Findings *findings) {
    const Device *device = findings_best_device(findings);
    Preset preset;
    char text[256], why[160];
    if (!device)
        return;
    Format formats[FORMAT_COUNT];
    const int count = format_pick(formats, is_for_users);
    for (int i = 0; i < count; i++) {
        Format format = formats[i];
        const char *what =
            !findings_runs(device, OP_matmul, format) ? "to look at only: mpbench formats"
            : format == FORMAT_FP32                   ? "trains"
            : findings_gains(device, format)          ? "trains, with products faster than in fp32"
                                                      : "trains, no faster than fp32";
        print_label(terminal, i == 0 ? "formats" : "");
        printf("%s%-4s%s %s\n", terminal_format_color(terminal, format), format_name(format),
               terminal_style(terminal, STYLE_NONE), what);
    }
    print_scaled(terminal, device);
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

// Whether a device before this one lacks the same: cards share their libraries.
static bool is_told(const Findings *findings, int device, const char *remedy) {
    for (int i = 0; i < device; i++)
        for (int k = 0; k < findings->devices[i].part_count; k++)
            if (strcmp(findings->devices[i].parts[k].remedy, remedy) == 0)
                return true;
    return false;
}

// Returns what stands before the next advice.
static const char *print_missing(const Terminal *terminal, const Findings *findings,
                                 const char *label) {
    for (int i = 0; i < findings->device_count; i++)
        for (int k = 0; k < findings->devices[i].part_count; k++) {
            const char *remedy = findings->devices[i].parts[k].remedy;
            if (!remedy[0] || is_told(findings, i, remedy))
                continue;
            print_line(terminal, label, remedy);
            label = "";
        }
    return label;
}

// A device that is preferred to others and cannot be opened: no card is there, or its plugin is of
// another build. NULL: none.
static const char *closed_device(const Findings *findings) {
    for (int i = 0; i < findings->device_count; i++)
        if (findings->devices[i].is_preferred && !findings->devices[i].device)
            return findings->devices[i].name;
    return NULL;
}

// What is missing, with the remedy that its room gives; else how to begin.
static void print_advice(const Terminal *terminal, const Findings *findings, bool is_verbose) {
    static const char first[] = "what to do";
    const char *label = print_missing(terminal, findings, first);
    if (!findings->has_fashion) {
        print_line(terminal, label,
                   "for fashion_cnn and fashion_mlp: install the package dataset-fashion-mnist");
        label = "";
    }
    if (findings->history_error.code != ERROR_NONE) {
        print_line(terminal, label, "for a history: see above, or name another file with --db");
        label = "";
    }
    if (label == first) {
        char text[128];
        const char *closed = closed_device(findings);
        snprintf(text, sizeof text, "nothing is missing%s%s%s: %s", closed ? " but " : "",
                 closed ? closed : "", closed ? " (see devices)" : "",
                 findings->runs > 0 ? "`mpbench` opens the screen"
                                    : "`mpbench run simple -p fp16` trains");
        print_line(terminal, label, text);
    }
    if (!is_verbose)
        print_line(terminal, "", "`mpbench doctor --verbose` lists what each operation runs in");
}

static void print_matrix(const Terminal *terminal, const FoundDevice *found) {
    Format formats[FORMAT_COUNT];
    const int count = format_pick(formats, is_computed_in);
    printf("\n%sOperations on %s%s\n%-26s", terminal_style(terminal, STYLE_STRONG), found->name,
           terminal_style(terminal, STYLE_NONE), "");
    for (int f = 0; f < count; f++)
        printf(" %s%-5s%s", terminal_format_color(terminal, formats[f]), format_name(formats[f]),
               terminal_style(terminal, STYLE_NONE));
    putchar('\n');
    for (int op = 0; op < OP_COUNT; op++) {
        if (!operation_is_shown((OpId)op))
            continue;
        printf("  %-24s", op_table[op].name);
        for (int f = 0; f < count; f++)
            printf(" %-5s", findings_runs(found->device, (OpId)op, formats[f]) ? "yes" : "-");
        const char *why = found->device->backend->absences[op];
        printf("%s\n", !found->device->backend->kernels[op] && why ? why : "");
    }
}

static void print_all(const Terminal *terminal, const Findings *findings, bool is_verbose) {
    print_program(terminal, findings);
    print_machine(terminal, findings);
    print_cards(terminal, findings);
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

bool command_doctor(Cli *cli, Error *error) {
    Findings *findings = calloc(1, sizeof *findings);
    if (!findings)
        return error_fail(error, ERROR_MEMORY, "no memory to look around");
    findings_look(findings);
    findings_look_at_history(findings, cli, cli->verbose);
    if (cli->json) {
        doctor_write_json(findings, stdout);
    } else {
        Terminal terminal = terminal_of(stdout, cli->color);
        print_all(&terminal, findings, cli->verbose);
    }
    findings_clear(findings);
    free(findings);
    return true;
}
