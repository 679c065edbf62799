#include "tests/conformance/compare.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/allocator.h"
#include "tests/conformance/rounded.h"
#include "tests/conformance/truth.h"

enum { GUARD_BYTES = 128 };             // before and behind every array
static const uint8_t guard_byte = 0xD7; // around outputs, and in them before the call
static const uint8_t nan_byte = 0xFF;   // around inputs: NaN in every floating format

// ---- reports ------------------------------------------------------------------------------------

static size_t append(char *text, size_t size, size_t used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static size_t append(char *text, size_t size, size_t used, const char *format, ...) {
    if (used >= size)
        return used;
    va_list arguments;
    va_start(arguments, format);
    int wrote = vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
    return used + (wrote > 0 ? (size_t)wrote : 0);
}

static size_t append_view(char *text, size_t size, size_t used, const View *view) {
    used = append(text, size, used, "%s[", format_name(view->format));
    for (int i = 0; i < view->ndim; i++)
        used = append(text, size, used, i ? ",%lld" : "%lld", (long long)view->shape[i]);
    used = append(text, size, used, "]");
    if (view_is_dense(view))
        return used;
    used = append(text, size, used, " strides");
    for (int i = 0; i < view->ndim; i++)
        used = append(text, size, used, i ? ",%lld" : " %lld", (long long)view->stride[i]);
    return used;
}

void report_failure(Report *report, const Case *test, const char *format, ...) {
    report->failures++;
    if (report->failures > 1)
        return;
    char *text = report->first;
    const size_t size = sizeof report->first;
    size_t used = append(text, size, 0, "%s (%s;", op_table[test->op].name, test->about);
    for (int i = 0; i < test->input_count; i++) {
        used = append(text, size, used, i ? ", " : " ");
        used = test->input[i].absent ? append(text, size, used, "none")
                                     : append_view(text, size, used, &test->input[i].view);
    }
    used = append(text, size, used, " ->");
    for (int i = 0; i < test->output_count; i++) {
        used = append(text, size, used, i ? ", " : " ");
        used = append_view(text, size, used, &test->output[i]);
    }
    used = append(text, size, used, "): ");
    if (used >= size)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

// ---- one call on one device ---------------------------------------------------------------------

static void element_write(Format format, void *target, int64_t index, double value) {
    if (format == FORMAT_FP64) {
        ((double *)target)[index] = value;
        return;
    }
    uint32_t bits = format_encode(format, value, OVERFLOW_SATURATES);
    size_t bytes = format_table[format].bytes;
    if (bytes == 4)
        ((uint32_t *)target)[index] = bits;
    else if (bytes == 2)
        ((uint16_t *)target)[index] = (uint16_t)bits;
    else
        ((uint8_t *)target)[index] = (uint8_t)bits;
}

static double element_read(Format format, const void *source, int64_t index) {
    if (format == FORMAT_FP64)
        return ((const double *)source)[index];
    switch (format_table[format].bytes) {
    case 4: return format_decode(format, ((const uint32_t *)source)[index]);
    case 2: return format_decode(format, ((const uint16_t *)source)[index]);
    default: return format_decode(format, ((const uint8_t *)source)[index]);
    }
}

// An array on a device with guards on both sides, and what the host knows of it.
typedef struct Array {
    uint8_t *host, *device; // with their guards
    size_t bytes;           // without
} Array;

static bool array_make(Array *array, Device *device, size_t bytes, uint8_t guard) {
    array->bytes = bytes;
    size_t whole = bytes + 2 * (size_t)GUARD_BYTES;
    Error error;
    array->host = malloc(whole);
    array->device = allocator_take(device->allocator, whole, MEMORY_DATA, &error);
    if (array->host)
        memset(array->host, guard, whole);
    return array->host && array->device;
}

static void array_clear(Array *array, Device *device) {
    free(array->host);
    if (array->device)
        allocator_give(device->allocator, array->device);
    *array = (Array){0};
}

static void array_send(Array *array, Device *device) {
    device_write(device, array->device, array->host, array->bytes + 2 * (size_t)GUARD_BYTES);
}

static bool guards_intact(const uint8_t *memory, size_t bytes, uint8_t guard) {
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (memory[i] != guard || memory[GUARD_BYTES + bytes + i] != guard)
            return false;
    return true;
}

// How the inputs of a run differ from those of the case.
typedef enum Twist { AS_THEY_ARE, MAGNITUDES, TINY_AS_ZERO } Twist;

static double twisted(const Case *test, int input, double value, Twist twist) {
    if (twist == MAGNITUDES && !(test->signed_inputs >> input & 1))
        return fabs(value);
    if (twist == TINY_AS_ZERO && fabs(value) < (double)FLT_MIN)
        return 0 * value;
    return value;
}

typedef struct Run {
    Array input[OP_MAX_INPUTS], output[OP_MAX_OUTPUTS];
    RoundedFactors factors;
    KernelCall call;
    OpAttr attr;
} Run;

static void run_clear(Run *run, Device *device) {
    for (int i = 0; i < OP_MAX_INPUTS; i++)
        array_clear(&run->input[i], device);
    for (int i = 0; i < OP_MAX_OUTPUTS; i++)
        array_clear(&run->output[i], device);
    rounded_clear(&run->factors, device);
}

// What an input holds: of factors that a device rounds itself, what they are worth, or the numbers.
static const CaseInput *given(const Case *test, int i, bool in_double) {
    return test->is_rounded && i < 2 && !in_double ? &test->rounded[i].from : &test->input[i];
}

// The magnitude A of a product is that before its activation.
static void drop_activation(OpId op, OpAttr *attr) {
    if (op == OP_linear)
        attr->linear.activation = ACTIVATION_NONE;
    if (op == OP_conv2d)
        attr->conv.activation = ACTIVATION_NONE;
}

static bool run_prepare(Run *run, Device *device, const Case *test, Twist twist, bool in_double) {
    *run = (Run){.attr = test->attr};
    if (twist == MAGNITUDES)
        drop_activation(test->op, &run->attr);
    run->call = (KernelCall){.op = test->op,
                             .input_count = test->input_count,
                             .output_count = test->output_count,
                             .attr = &run->attr};
    for (int i = 0; i < test->input_count; i++) {
        const CaseInput *input = given(test, i, in_double);
        View *view = &run->call.input[i];
        *view = input->view;
        view->data = NULL;
        if (input->absent)
            continue;
        size_t size = format_table[view->format].bytes;
        if (!array_make(&run->input[i], device, (size_t)input->storage * size, nan_byte))
            return false;
        for (int64_t e = 0; e < input->storage; e++)
            element_write(view->format, run->input[i].host + GUARD_BYTES, e,
                          twisted(test, i, input->values[e], twist));
        array_send(&run->input[i], device);
        view->data = run->input[i].device + GUARD_BYTES + (size_t)input->offset * size;
    }
    for (int i = 0; i < test->output_count; i++) {
        View *view = &run->call.output[i];
        *view = test->output[i];
        if (in_double && format_is_floating(view->format))
            view->format = FORMAT_FP64;
        size_t bytes = (size_t)view_count(view) * format_table[view->format].bytes;
        if (!array_make(&run->output[i], device, bytes, guard_byte))
            return false;
        array_send(&run->output[i], device);
        view->data = run->output[i].device + GUARD_BYTES;
    }
    return true;
}

// Fetches the outputs, and says whether all memory that is not theirs is as it was.
static const char *run_fetch(Run *run, Device *device, const Case *test) {
    for (int i = 0; i < test->output_count; i++) {
        Array *output = &run->output[i];
        device_read(device, output->host, output->device, output->bytes + 2 * (size_t)GUARD_BYTES);
        if (!guards_intact(output->host, output->bytes, guard_byte))
            return "it wrote outside an output";
    }
    for (int i = 0; i < test->input_count; i++) {
        Array *input = &run->input[i];
        if (test->input[i].absent)
            continue;
        size_t whole = input->bytes + 2 * (size_t)GUARD_BYTES;
        uint8_t *now = malloc(whole);
        if (!now)
            return "no memory";
        device_read(device, now, input->device, whole);
        bool same = memcmp(now, input->host, whole) == 0;
        free(now);
        if (!same)
            return "it changed an input";
    }
    return NULL;
}

// ---- what may be off ----------------------------------------------------------------------------

static double fp32_ulp(double value) {
    if (!(fabs(value) > (double)FLT_MIN))
        return 0x1p-149;
    return ldexp(1, ilogb(value) - 23);
}

static double error_at(const Bound *bound, double truth, double magnitude) {
    double error = bound->ulps * fp32_ulp(truth);
    error += 0x1p-24 * (bound->result * fabs(truth) + bound->constant);
    // Where A is not finite, the truth is of a special class, or all partial sums are in doubt.
    if (bound->absolute > 0 && isfinite(magnitude))
        error += 0x1p-24 * bound->absolute * magnitude;
    // Terms that vanish by flushing add up, too.
    if (error > 0)
        error += (bound->absolute + bound->vanishing + 1) * (double)FLT_MIN;
    return isfinite(error) ? error : 0;
}

// ---- the truth ----------------------------------------------------------------------------------

static bool solve(double *result[OP_MAX_OUTPUTS], Device *ref, const Case *test, Twist twist,
                  Report *report) {
    Run run;
    Error error = {0};
    bool done = run_prepare(&run, ref, test, twist, true) && device_run(ref, &run.call, &error);
    if (!done)
        report_failure(report, test, "the reference device fails: %s", error.text);
    const char *why = done ? run_fetch(&run, ref, test) : NULL;
    if (why)
        report_failure(report, test, "on the reference device %s", why);
    for (int i = 0; done && i < test->output_count; i++) {
        int64_t count = view_count(&test->output[i]);
        result[i] = malloc((size_t)(count + 1) * sizeof **result);
        if (!result[i])
            abort();
        for (int64_t e = 0; e < count; e++)
            result[i][e] =
                element_read(run.call.output[i].format, run.output[i].host + GUARD_BYTES, e);
    }
    run_clear(&run, ref);
    return done;
}

static bool has_tiny_inputs(const Case *test) {
    for (int i = 0; i < test->input_count; i++)
        for (int64_t e = 0; !test->input[i].absent && e < test->input[i].storage; e++) {
            double value = test->input[i].values[e];
            if (value != 0 && fabs(value) < (double)FLT_MIN)
                return true;
        }
    return false;
}

static bool is_convincing(const Expected *expected, const Case *test) {
    int64_t count = 0, nonzero = 0;
    for (int i = 0; i < test->output_count; i++)
        for (int64_t e = 0; !test->ignored[i] && e < view_count(&test->output[i]); e++) {
            count++;
            nonzero += expected->value[i][e] != 0;
        }
    // Of a few numbers, all may be 0 by chance.
    return test->zeros_expected || count < 10 || nonzero * 10 >= count;
}

bool expected_holds(const Expected *expected, const Case *test, Report *report) {
    double *defined[OP_MAX_OUTPUTS] = {NULL};
    TruthKind kind = truth_solve(test, defined);
    int before = report->failures;
    for (int i = 0; kind != TRUTH_NONE && i < test->output_count; i++)
        for (int64_t e = 0; defined[i] && e < view_count(&test->output[i]); e++) {
            double truth = defined[i][e], got = expected->value[i][e];
            const double *magnitude = expected->magnitude[i];
            double error = error_at(&test->bound[i], truth, magnitude ? magnitude[e] : 0);
            // What is allowed in fp32 is allowed in double in its own digits, with a few to spare.
            if (kind == TRUTH_EXACT)
                error = ldexp(error, -20) + ldexp(fabs(truth), -48) + DBL_MIN;
            bool same = isnan(truth)   ? isnan(got)
                        : isinf(truth) ? got == truth
                                       : fabs(got - truth) <= error;
            if (same)
                continue;
            report_failure(report, test,
                           "the reference device gives %.17g for element %lld, the definition "
                           "%.17g within %.3g",
                           got, (long long)e, truth, error);
            break;
        }
    for (int i = 0; i < OP_MAX_OUTPUTS; i++)
        free(defined[i]);
    return report->failures == before;
}

bool expected_make(Expected *expected, Device *ref, const Case *test, Report *report) {
    *expected = (Expected){0};
    if (!solve(expected->value, ref, test, AS_THEY_ARE, report))
        return false;
    if (has_tiny_inputs(test) && !solve(expected->flushed, ref, test, TINY_AS_ZERO, report))
        return false;
    bool asked = false;
    for (int i = 0; i < test->output_count; i++)
        asked |= test->bound[i].absolute > 0;
    if (asked && !solve(expected->magnitude, ref, test, MAGNITUDES, report))
        return false;
    if (is_convincing(expected, test))
        return true;
    report_failure(report, test,
                   "less than a tenth of the truth is not 0: the case proves nothing");
    return false;
}

void expected_clear(Expected *expected) {
    for (int i = 0; i < OP_MAX_OUTPUTS; i++) {
        free(expected->value[i]);
        free(expected->flushed[i]);
        free(expected->magnitude[i]);
    }
    *expected = (Expected){0};
}

// ---- comparison ---------------------------------------------------------------------------------

bool compare_number(Format format, double got, double truth, double error) {
    if (isnan(truth))
        return isnan(got) || !format_is_floating(format);
    if (isinf(truth))
        return got == format_round(format, truth, OVERFLOW_SATURATES);
    if (got >= format_round(format, truth - error, OVERFLOW_SATURATES) &&
        got <= format_round(format, truth + error, OVERFLOW_SATURATES))
        return true;
    return got == 0 && format_is_floating(format) && fabs(truth) - error < (double)FLT_MIN;
}

// Where numbers below fp32's smallest normal one count as 0, all of them are equal: any of them is
// the larger of two, or stands for another.
static bool flushed_number(Format format, double got, double truth, double flushed, double error) {
    return compare_number(format, got, flushed, error) ||
           (fabs(got) < (double)FLT_MIN && fabs(truth) - error < (double)FLT_MIN);
}

// Cards alone have them: the others multiply in TF32 by rounding beforehand.
static bool has_tiles(const Device *device) {
    return strcmp(device->backend->name, "gpu") == 0;
}

static void compare_output(const Device *device, const Case *test, int output,
                           const Expected *expected, const void *memory, Report *report) {
    const Bound *bound =
        test->has_tiles && has_tiles(device) ? &test->by_tiles[output] : &test->bound[output];
    const View *view = &test->output[output];
    const double *magnitude = expected->magnitude[output], *flushed = expected->flushed[output];
    for (int64_t e = 0; e < view_count(view); e++) {
        double got = element_read(view->format, memory, e), truth = expected->value[output][e];
        if (test->has_limit)
            truth = fmin(truth, format_below(view->format, test->limit));
        double error = error_at(bound, truth, magnitude ? magnitude[e] : 0);
        bool is_past = test->has_limit && got >= test->limit;
        if ((!is_past && compare_number(view->format, got, truth, error)) ||
            (flushed && flushed_number(view->format, got, truth, flushed[e], error)))
            continue;
        report_failure(report, test, "output %d element %lld is %.9g, expected %.9g within %.3g",
                       output, (long long)e, got, truth, error);
        return;
    }
}

// What a kernel tells of its first output (Device.largest) is so; below fp32's normal numbers one
// may count as 0 and the other not.
static void compare_largest(const Device *device, const Case *test, const void *memory,
                            Report *report) {
    const View *view = &test->output[0];
    const double told = (double)device->largest;
    double largest = 0;
    if (told < 0)
        return;
    for (int64_t e = 0; e < view_count(view) && !isnan(largest); e++) {
        const double value = fabs(element_read(view->format, memory, e));
        largest = isnan(value) || value > largest ? value : largest;
    }
    const bool is_so = told == largest || (isnan(told) && isnan(largest)) ||
                       (told < (double)FLT_MIN && largest < (double)FLT_MIN);
    if (!is_so)
        report_failure(report, test, "its largest is %.9g, and told as %.9g", largest, told);
}

// Whether output 0 may be made in the memory of this input.
static bool may_lie_on(const Case *test, int input) {
    const View *x = &test->input[input].view, *y = &test->output[0];
    return op_table[test->op].layout == LAYOUT_IN_PLACE && view_is_dense(x) &&
           x->format == y->format && x->ndim == y->ndim &&
           memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof *x->shape) == 0;
}

// Runs the case once more for every input that the output may lie on, which must give the same.
static void compare_in_place(Device *device, const Case *test, const Array *apart, Report *report) {
    for (int i = 0; i < test->input_count; i++) {
        Run run;
        Error error = {0};
        if (!may_lie_on(test, i))
            continue;
        if (!run_prepare(&run, device, test, AS_THEY_ARE, false)) {
            report_failure(report, test, "no memory");
            run_clear(&run, device);
            return;
        }
        run.call.output[0].data = run.call.input[i].data;
        Array *array = &run.input[i];
        const uint8_t *got =
            array->host + GUARD_BYTES +
            (size_t)test->input[i].offset * format_table[test->output[0].format].bytes;
        bool done = device_run(device, &run.call, &error);
        if (done)
            device_read(device, array->host, array->device, array->bytes + 2 * (size_t)GUARD_BYTES);
        if (!done || memcmp(got, apart->host + GUARD_BYTES, apart->bytes) != 0)
            report_failure(report, test, "over its input %d it gives something else%s%s", i,
                           done ? "" : ": ", error.text);
        run_clear(&run, device);
    }
}

// Whether what a device that runs on its own has found in values is nothing. It is forgotten, so
// that the next case begins anew.
static bool nothing_found(Device *device, Error *error) {
    device_synchronize(device);
    bool nothing = device_check(device, error);
    device->status = (DeviceStatus){.check.fault = FAULT_NONE};
    return nothing;
}

void compare_on(Device *device, const Case *test, const Expected *expected, Report *report) {
    Run run;
    Error error = {0};
    report->cases++;
    if (!run_prepare(&run, device, test, AS_THEY_ARE, false)) {
        report_failure(report, test, "no memory");
    } else if ((test->is_rounded &&
                !rounded_make(&run.factors, device, test, &run.call, &run.attr, &error)) ||
               !device_run(device, &run.call, &error) || !nothing_found(device, &error)) {
        report_failure(report, test, "it fails: %s", error.text);
    } else {
        int before = report->failures;
        const char *why = run_fetch(&run, device, test);
        if (why)
            report_failure(report, test, "%s", why);
        for (int i = 0; i < test->output_count && report->failures == before; i++)
            if (!test->ignored[i])
                compare_output(device, test, i, expected, run.output[i].host + GUARD_BYTES, report);
        if (report->failures == before)
            compare_largest(device, test, run.output[0].host + GUARD_BYTES, report);
        if (report->failures == before)
            compare_in_place(device, test, &run.output[0], report);
    }
    run_clear(&run, device);
}

void compare_refusal(Device *device, const Case *test, const char *needle, Report *report) {
    Run run;
    Error error = {0};
    report->cases++;
    if (!run_prepare(&run, device, test, AS_THEY_ARE, false))
        report_failure(report, test, "no memory");
    else if (device_run(device, &run.call, &error) && nothing_found(device, &error))
        report_failure(report, test, "it is accepted, an error with \"%s\" was expected", needle);
    else if (!strstr(error.text, needle))
        report_failure(report, test, "refused with \"%s\", which lacks \"%s\"", error.text, needle);
    run_clear(&run, device);
}
