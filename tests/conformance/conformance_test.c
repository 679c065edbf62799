// Every operation of ops.def, in every storage format, on a device (tests/device.h), against the
// reference; products also in every format that rounds their factors.
//
// A line "OP FORMAT DEVICE" says that all cases of the operation's family hold, or describes the
// first that does not. The reference device is held against itself, in the format instead of in
// double. Arguments name the operations to run, OP or, in one storage format and without those that
// round factors, OP:FORMAT; --operations prints those that there are.
// $MPBENCH_MATRIX names a file that gets the matrix of what is supported.
#include "tests/conformance/cases.h"
#include "tests/conformance/rounded.h"
#include "tests/device.h"
#include "tests/test.h"

enum { MAX_DEVICES = 8, ONE_ROUNDED_IN = 8 };

static const Format storage_formats[] = {
#define FORMAT(...)
#define TRAINED(id, ...) FORMAT_##id,
#define UNTRAINED(...)
#include "number/formats.def"
};
enum { STORAGE_FORMATS = sizeof storage_formats / sizeof *storage_formats };

static const FamilyCases families[OP_COUNT] = {
#define OP(name, inputs, outputs, class, family, ...) [OP_##name] = cases_##family,
#include "kernel/ops.def"
};

static Device *ref, *devices[MAX_DEVICES];
static int device_count;
static const Report *current;

typedef enum Support { SUPPORT_YES, SUPPORT_NO, SUPPORT_FAILS } Support;
static Support matrix[OP_COUNT][STORAGE_FORMATS][MAX_DEVICES];

static void every_case_holds(void) {
    CHECK_MESSAGE(current->cases > 0, "no case was run");
    CHECK_MESSAGE(current->failures == 0, "%d of %d cases fail, first: %s", current->failures,
                  current->cases, current->first);
}

static void print_named(OpId op, const char *format, const Device *device, const char *more,
                        const Report *report) {
    char name[160];
    snprintf(name, sizeof name, "%s %s %s%s", op_table[op].name, format, device->backend->name,
             more);
    current = report;
    test_run(name, every_case_holds);
}

// One line for an operation in a format on a device; whether it holds.
static bool print_line(OpId op, Format format, const Device *device, const Report *report) {
    print_named(op, format_name(format), device, "", report);
    return report->failures == 0;
}

// A kernel that is left out says why, and is refused by name.
static void check_absence(Device *device, OpId op, Report *report) {
    const char *why = device->backend->absences[op];
    Case *test = case_new_of(op);
    snprintf(test->about, sizeof test->about, "absent");
    if (!why || !*why)
        report_failure(report, test, "the kernel is absent without a reason");
    compare_refusal(device, test, op_table[op].name, report);
    case_free(test);
}

// Kinds of numbers that an operation is not drawn with, and why.
typedef struct Undrawn {
    OpId op;
    ValueKind kind;
    Format format; // in this one alone; FORMAT_COUNT: in all
    const char *why;
} Undrawn;

static const Undrawn undrawn[] = {
    {OP_argmax, VALUES_SUBNORMAL, FORMAT_FP32, "flushed numbers are all equal"},
    {OP_argmax, VALUES_SUBNORMAL, FORMAT_BF16, "flushed numbers are all equal"},
    {OP_accuracy, VALUES_SUBNORMAL, FORMAT_FP32, "flushed numbers are all equal"},
    {OP_accuracy, VALUES_SUBNORMAL, FORMAT_BF16, "flushed numbers are all equal"},
    {OP_topk, VALUES_SUBNORMAL, FORMAT_FP32, "flushed numbers are all equal"},
    {OP_topk, VALUES_SUBNORMAL, FORMAT_BF16, "flushed numbers are all equal"},
    {OP_greater, VALUES_SUBNORMAL, FORMAT_FP32, "flushed numbers are all equal"},
    {OP_greater, VALUES_SUBNORMAL, FORMAT_BF16, "flushed numbers are all equal"},
    {OP_less, VALUES_SUBNORMAL, FORMAT_FP32, "flushed numbers are all equal"},
    {OP_less, VALUES_SUBNORMAL, FORMAT_BF16, "flushed numbers are all equal"},
    {OP_equal, VALUES_SUBNORMAL, FORMAT_FP32, "flushed numbers are all equal"},
    {OP_equal, VALUES_SUBNORMAL, FORMAT_BF16, "flushed numbers are all equal"},
};

static bool is_excused(OpId op, ValueKind kind, Format format) {
    for (size_t i = 0; i < sizeof undrawn / sizeof *undrawn; i++)
        if (undrawn[i].op == op && undrawn[i].kind == kind &&
            (undrawn[i].format == format || undrawn[i].format == FORMAT_COUNT))
            return true;
    return false;
}

// An operation that was never tried with zeros, offsets, infinities.. is not known to bear them.
static void check_drawn(const Cases *cases, Report *report) {
    Case *test = case_new_of(cases->op);
    snprintf(test->about, sizeof test->about, "its inputs");
    for (int k = 0; op_table[cases->op].inputs != 0 && k < EVERY_KIND; k++) {
        ValueKind kind = every_kind[k].kind;
        bool was_drawn = cases->drawn >> kind & 1;
        bool excused = is_excused(cases->op, kind, cases->format);
        if (!was_drawn && !excused)
            report_failure(report, test, "no case draws %s numbers", values_name(every_kind[k]));
        if (was_drawn && excused)
            report_failure(report, test, "%s numbers are drawn, and excused",
                           values_name(every_kind[k]));
    }
    case_free(test);
}

static void check_op(OpId op, int format_index) {
    Report ref_report = {0}, reports[MAX_DEVICES] = {0};
    Device *running[MAX_DEVICES];
    Report running_reports[MAX_DEVICES] = {0};
    int running_of[MAX_DEVICES];
    Cases cases = {.op = op,
                   .format = storage_formats[format_index],
                   .compute = FORMAT_COUNT,
                   .ref = ref,
                   .ref_report = &ref_report,
                   .devices = running,
                   .reports = running_reports,
                   .random = (uint64_t)op * STORAGE_FORMATS + (uint64_t)format_index + 1};
    for (int i = 0; i < device_count; i++) {
        const Backend *backend = devices[i]->backend;
        running_of[i] = -1;
        if (!backend->kernels[op]) {
            check_absence(devices[i], op, &reports[i]);
            matrix[op][format_index][i] = SUPPORT_NO;
        } else if (!backend->supports(devices[i], op, cases.format)) {
            cases.refusing[cases.refusing_count++] = (Refusing){devices[i], &reports[i]};
            matrix[op][format_index][i] = SUPPORT_NO;
        } else {
            running_of[i] = cases.device_count;
            running[cases.device_count++] = devices[i];
        }
    }
    families[op](&cases);
    check_drawn(&cases, &ref_report);
    print_line(op, cases.format, ref, &ref_report);
    for (int i = 0; i < device_count; i++) {
        const Report *report = running_of[i] < 0 ? &reports[i] : &running_reports[running_of[i]];
        if (!print_line(op, cases.format, devices[i], report))
            matrix[op][format_index][i] = SUPPORT_FAILS;
    }
}

static bool is_product(OpId op) {
    return op_table[op].precision == CLASS_LOW || op == OP_conv2d_backward_input ||
           op == OP_conv2d_backward_weight || op == OP_attention_backward;
}

// Products of fp32 that are multiplied in tf32, on the devices that do.
static void check_tf32(OpId op) {
    Report ref_report = {0}, reports[MAX_DEVICES] = {0};
    Device *running[MAX_DEVICES];
    Cases cases = {.op = op,
                   .format = FORMAT_FP32,
                   .compute = FORMAT_TF32,
                   .ref = ref,
                   .ref_report = &ref_report,
                   .devices = running,
                   .reports = reports,
                   .random = (uint64_t)op + 1};
    for (int i = 0; i < device_count; i++)
        if (devices[i]->backend->kernels[op] &&
            devices[i]->backend->supports(devices[i], op, FORMAT_TF32))
            running[cases.device_count++] = devices[i];
    families[op](&cases);
    print_line(op, FORMAT_TF32, ref, &ref_report);
    for (int i = 0; i < cases.device_count; i++)
        print_line(op, FORMAT_TF32, running[i], &reports[i]);
}

// ---- products whose factors are rounded on the way ----------------------------------------------

static bool multiplies_so(const Device *device, OpId op, const Rounding *rounding) {
    return device->backend->kernels[op] &&
           device->backend->supports(device, rounding_asked_of(rounding, op), rounding->format);
}

// A device that does not multiply so refuses it, and says what.
static void refuse(Cases *cases, const Case *test) {
    Refusing *refusing = &cases->refusing[0];
    if (refusing->report->cases >= 3) // each asks for the same
        return;
    char needle[64];
    snprintf(needle, sizeof needle, "does not multiply in %s",
             format_name(cases->rounding->format));
    Case asked = *test;
    asked.attr.has_compute = true;
    asked.attr.compute = cases->rounding->format;
    if (case_shape(&asked, FORMAT_FP32, refusing->report))
        compare_refusal(refusing->device, &asked, needle, refusing->report);
}

static void check_refused(OpId op, const Rounding *rounding, Device *device) {
    Report ref_report = {0}, report = {0};
    Cases cases = {.op = op,
                   .format = FORMAT_FP32,
                   .compute = FORMAT_COUNT,
                   .rounding = rounding,
                   .ref = ref,
                   .ref_report = &ref_report,
                   .refusing = {{device, &report}},
                   .refusing_count = 1,
                   .random = (uint64_t)op + 1,
                   .runner = refuse};
    families[op](&cases);
    print_named(op, rounding->name, device, " is refused", &report);
}

// Other kinds of numbers, shapes and layouts in each format: together they have met all.
static void check_rounded(OpId op, const Rounding *rounding, int turn) {
    Report ref_report = {0}, reports[MAX_DEVICES] = {0};
    Device *running[MAX_DEVICES];
    Cases cases = {.op = op,
                   .format = FORMAT_BF16,
                   .compute = FORMAT_COUNT,
                   .rounding = rounding,
                   .ref = ref,
                   .ref_report = &ref_report,
                   .devices = running,
                   .reports = reports,
                   .random = (uint64_t)turn * OP_COUNT + (uint64_t)op + 1,
                   .one_in = ONE_ROUNDED_IN,
                   .turn = turn % ONE_ROUNDED_IN};
    for (int i = 0; i < device_count; i++)
        if (multiplies_so(devices[i], op, rounding))
            running[cases.device_count++] = devices[i];
        else
            check_refused(op, rounding, devices[i]);
    if (!multiplies_so(ref, op, rounding))
        check_refused(op, rounding, ref);
    if (!rounding_serves(rounding, op)) // of elements alone, without scales, the reference does all
        return;
    families[op](&cases);
    print_named(op, rounding->name, ref, "", &ref_report);
    for (int i = 0; i < cases.device_count; i++)
        print_named(op, rounding->name, running[i], "", &reports[i]);
}

static void check_products(OpId op) {
    Rounding roundings[ROUNDINGS_MOST];
    const int count = rounding_list(roundings);
    check_tf32(op);
    for (int i = 0; i < count; i++)
        check_rounded(op, &roundings[i], i + 3 * (int)op);
}

static void write_matrix(const char *path) {
    static const char *const words[] = {"yes", "no", "FAILS"};
    FILE *file = fopen(path, "w");
    if (!file) {
        printf("not ok matrix: %s cannot be written\n", path);
        test_failures++;
        return;
    }
    fprintf(file, "%-24s", "operation");
    for (int i = 0; i < device_count; i++)
        for (int f = 0; f < STORAGE_FORMATS; f++)
            fprintf(file, " %4s %-5s", devices[i]->backend->name, format_name(storage_formats[f]));
    fputc('\n', file);
    for (int op = 0; op < OP_COUNT; op++) {
        fprintf(file, "%-24s", op_table[op].name);
        for (int i = 0; i < device_count; i++)
            for (int f = 0; f < STORAGE_FORMATS; f++)
                fprintf(file, " %-10s", words[matrix[op][f][i]]);
        for (int i = 0; i < device_count; i++)
            if (devices[i]->backend->absences[op])
                fprintf(file, " %s: %s", devices[i]->backend->name,
                        devices[i]->backend->absences[op]);
        fputc('\n', file);
    }
    fclose(file);
}

static bool open_devices(void) {
    Error error;
    if (!device_open("ref", 1, &ref, &error)) {
        printf("not ok ref: %s\n", error.text);
        return false;
    }
    if (!device_open(test_device_name(), 2, &devices[0], &error)) {
        printf("not ok %s\n", error.text);
        return false;
    }
    device_count = 1;
    return true;
}

// NULL asks whether all of an operation is named.
static bool names(const char *argument, OpId op, const char *format) {
    const size_t length = strlen(op_table[op].name);
    if (strncmp(argument, op_table[op].name, length) != 0)
        return false;
    return !argument[length] ||
           (format && argument[length] == ':' && strcmp(argument + length + 1, format) == 0);
}

static bool is_wanted(OpId op, const char *format, int count, char **arguments) {
    for (int i = 1; i < count; i++)
        if (names(arguments[i], op, format))
            return true;
    return count < 2;
}

// A misspelt one would test nothing.
static bool is_known(const char *argument) {
    for (int op = 0; op < OP_COUNT; op++)
        for (int f = 0; f < STORAGE_FORMATS; f++)
            if (names(argument, (OpId)op, format_name(storage_formats[f])))
                return true;
    fprintf(stderr, "%s: no operation, or none of its formats\n", argument);
    return false;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--operations") == 0) {
        for (int op = 0; op < OP_COUNT; op++)
            puts(op_table[op].name);
        return 0;
    }
    for (int i = 1; i < argc; i++)
        if (!is_known(argv[i]))
            return 1;
    if (!open_devices())
        return 1;
    for (int op = 0; op < OP_COUNT; op++)
        for (int f = 0; f < STORAGE_FORMATS; f++)
            if (is_wanted((OpId)op, format_name(storage_formats[f]), argc, argv))
                check_op((OpId)op, f);
    for (int op = 0; op < OP_COUNT; op++)
        if (is_product((OpId)op) && is_wanted((OpId)op, NULL, argc, argv))
            check_products((OpId)op);
    const char *path = getenv("MPBENCH_MATRIX");
    if (path && *path)
        write_matrix(path);
    for (int i = 0; i < device_count; i++)
        device_close(devices[i]);
    device_close(ref);
    return test_end();
}
