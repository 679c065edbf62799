#include "tests/conformance/case.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/shape.h"
#include "tests/conformance/rounded.h"

const Values every_kind[EVERY_KIND] = {{VALUES_NORMAL, 0, 1}, {VALUES_INTEGERS, -4, 4},
                                       {VALUES_ZEROS, 0, 0},  {VALUES_SUBNORMAL, 0, 0},
                                       {VALUES_LARGE, 0, 0},  {VALUES_TINY, 0, 0},
                                       {VALUES_CANCEL, 0, 0}, {VALUES_OFFSET, 0, -3},
                                       {VALUES_OFFSET, 0, 3}, {VALUES_SPECIAL, 0, 1}};

Values every_sum(int kind, Format format, int64_t terms, int power) {
    Values values = every_kind[kind];
    if (values.kind == VALUES_LARGE && format != FORMAT_FP16) {
        double most = pow((double)FLT_MAX / (4 * (double)terms), 1.0 / power);
        values.high = format_table[format].largest / most;
    }
    return values;
}

int64_t shape_count(Shape shape) {
    int64_t count = 1;
    for (int i = 0; i < shape.ndim; i++)
        count *= shape.size[i];
    return count;
}

const char *values_name(Values values) {
    static const char *const names[VALUES_COUNT] = {"normal",  "integers", "zeros",   "subnormal",
                                                    "tiny",    "large",    "offset",  "cancel",
                                                    "special", "uniform",  "classes", "distinct"};
    return names[values.kind];
}

// ---- numbers ------------------------------------------------------------------------------------

// SplitMix64: the test's own, so that an error in the library's generator cannot hide here.
static uint64_t next(Cases *cases) {
    uint64_t z = cases->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

double cases_uniform(Cases *cases) {
    return (double)(next(cases) >> 11) * 0x1p-53;
}

static double normal(Cases *cases) {
    double u = 1 - cases_uniform(cases), v = cases_uniform(cases);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

static double sign(Cases *cases) {
    return next(cases) >> 63 ? -1 : 1;
}

static double special(Cases *cases) {
    // Few enough that sums of a hundred keep finite results among them.
    switch (next(cases) % 400) {
    case 0: return (double)NAN;
    case 1: return (double)INFINITY;
    case 2: return -(double)INFINITY;
    default: return normal(cases);
    }
}

// What numbers of a format have in common: `bits` above those that it keeps, so that its own last
// place is 2^bits there; and how far apart they are so that it can still tell them apart.
static double offset_of_all(const FormatInfo *info, double bits) {
    return ldexp(1, info->mantissa_bits + (int)bits);
}

static double apart(double bits) {
    return fmax(1, 2 * exp2(bits));
}

static double draw(Cases *cases, Format format, Values values) {
    const FormatInfo *info = &format_table[format];
    switch (values.kind) {
    case VALUES_NORMAL: return values.high * normal(cases);
    case VALUES_INTEGERS:
    case VALUES_CLASSES: {
        double last = values.kind == VALUES_CLASSES ? values.high - 1 : values.high;
        return values.low + floor(cases_uniform(cases) * (last - values.low + 1));
    }
    case VALUES_ZEROS: return sign(cases) * 0;
    case VALUES_SUBNORMAL: return sign(cases) * cases_uniform(cases) * 1.5 * info->smallest_normal;
    case VALUES_TINY: return sign(cases) * (1 + cases_uniform(cases) * 15) * info->smallest_normal;
    case VALUES_LARGE:
        return sign(cases) * (1 + cases_uniform(cases)) / 2 * info->largest /
               (values.high > 0 ? values.high : 1);
    case VALUES_OFFSET:
        return offset_of_all(info, values.high) + apart(values.high) * normal(cases);
    case VALUES_CANCEL: return sign(cases) * offset_of_all(info, -2) + normal(cases);
    case VALUES_SPECIAL: return special(cases);
    case VALUES_UNIFORM: return values.low + cases_uniform(cases) * (values.high - values.low);
    case VALUES_DISTINCT:
    case VALUES_COUNT: break;
    }
    return 0;
}

static void shuffle_rows(Cases *cases, double *values, int64_t count, int64_t length) {
    for (int64_t row = 0; row + length <= count; row += length) {
        for (int64_t i = 0; i < length; i++)
            values[row + i] = (double)(i - length / 2);
        for (int64_t i = length - 1; i > 0; i--) {
            int64_t j = (int64_t)(next(cases) % (uint64_t)(i + 1));
            double kept = values[row + i];
            values[row + i] = values[row + j];
            values[row + j] = kept;
        }
    }
}

// A case of special numbers that drew none would prove nothing.
static void plant_specials(double *values, int64_t count) {
    if (count < 8)
        return;
    values[count / 7] = (double)NAN;
    values[count / 2] = (double)INFINITY;
    values[count - 1 - count / 5] = -(double)INFINITY;
}

// ---- building -----------------------------------------------------------------------------------

Case *case_new_of(OpId op) {
    Case *test = calloc(1, sizeof *test);
    if (!test)
        abort();
    test->op = op;
    test->output_count = op_table[op].outputs;
    return test;
}

Case *case_new(Cases *cases, const char *about, ...) {
    Case *test = case_new_of(cases->op);
    va_list arguments;
    va_start(arguments, about);
    vsnprintf(test->about, sizeof test->about, about, arguments);
    va_end(arguments);
    return test;
}

void case_free(Case *test) {
    for (int i = 0; i < test->input_count; i++)
        free(test->input[i].values);
    for (int i = 0; i < 2 && test->is_rounded; i++)
        free(test->rounded[i].from.values);
    free(test->steps);
    free(test);
}

static void swap(int64_t *a, int64_t *b) {
    int64_t kept = *a;
    *a = *b;
    *b = kept;
}

static void dense_strides(int ndim, const int64_t *shape, int64_t *stride) {
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        stride[i] = step;
        step *= shape[i];
    }
}

// Strides and offset; what a layout needs and the shape lacks leaves it dense.
static void lay_out(CaseInput *input, Layout layout) {
    View *view = &input->view;
    int ndim = view->ndim;
    int64_t storage[VIEW_MAX_DIMS];
    memcpy(storage, view->shape, sizeof storage);
    int first = 0, second = 0; // dimensions that change places in the storage
    if (layout == LIES_TRANSPOSED && ndim >= 2) {
        first = ndim - 2;
        second = ndim - 1;
    } else if (layout == LIES_PERMUTED && ndim == 4) {
        first = 1;
        second = 2;
    }
    swap(&storage[first], &storage[second]);
    if (layout == LIES_SLICED && ndim) {
        storage[ndim - 1] += 5;
        input->offset = 3;
    }
    dense_strides(ndim, storage, view->stride);
    swap(&view->stride[first], &view->stride[second]);
    if (layout == LIES_STEPPED) {
        input->offset = 1;
        for (int i = 0; i < ndim; i++)
            view->stride[i] *= 2;
    }
    if (layout == LIES_BROADCAST && ndim)
        view->stride[0] = 0;
    int64_t last = 0;
    for (int i = 0; i < ndim; i++)
        last += (view->shape[i] - 1) * view->stride[i];
    input->storage = view_count(view) ? input->offset + last + 1 : 1;
}

static int64_t offset_of(const CaseInput *input, int64_t index) {
    int64_t offset = input->offset;
    for (int i = input->view.ndim - 1; i >= 0; i--) {
        offset += index % input->view.shape[i] * input->view.stride[i];
        index /= input->view.shape[i];
    }
    return offset;
}

static void put_values(Case *test, Format format, Shape shape, Layout layout,
                       const double *values) {
    CaseInput *input = &test->input[test->input_count++];
    input->view = (View){.format = format, .ndim = shape.ndim};
    memcpy(input->view.shape, shape.size, sizeof shape.size);
    lay_out(input, layout);
    input->values = malloc((size_t)input->storage * sizeof *input->values);
    if (!input->values)
        abort();
    // Between the elements: a number that no kernel should see.
    for (int64_t i = 0; i < input->storage; i++)
        input->values[i] = format_is_floating(format) ? (double)NAN : 113;
    for (int64_t i = 0; i < shape_count(shape); i++)
        input->values[offset_of(input, i)] = format_round(format, values[i], OVERFLOW_SATURATES);
}

Values whole_values(Format format, bool few) {
    if (format == FORMAT_UINT8)
        return few ? CLASSES(0, 3) : CLASSES(0, 256);
    return few ? CLASSES(-4, 5) : CLASSES(-2147483648.0, 2147483648.0);
}

void case_add(Cases *cases, Case *test, Format format, Shape shape, Layout layout, Values values) {
    int64_t count = shape_count(shape);
    cases->drawn |= 1u << values.kind;
    double *drawn = malloc((size_t)(count + 1) * sizeof *drawn);
    if (!drawn)
        abort();
    for (int64_t i = 0; i < count; i++)
        drawn[i] = draw(cases, format, values);
    if (values.kind == VALUES_DISTINCT)
        shuffle_rows(cases, drawn, count, shape.size[shape.ndim - 1]);
    if (values.kind == VALUES_CANCEL)
        for (int64_t i = 1; i < count; i += 2)
            drawn[i] = normal(cases) - drawn[i - 1];
    if (values.kind == VALUES_SPECIAL)
        plant_specials(drawn, count);
    for (int64_t i = 0; cases->compute != FORMAT_COUNT && i < count; i++)
        drawn[i] = format_round(cases->compute, drawn[i], OVERFLOW_SATURATES);
    put_values(test, format, shape, layout, drawn);
    free(drawn);
}

void case_add_given(Case *test, Format format, Shape shape, const double *values) {
    put_values(test, format, shape, LIES_DENSE, values);
}

void case_add_absent(Case *test) {
    test->input[test->input_count++].absent = true;
}

double case_largest(const Case *test, int index) {
    const CaseInput *input = &test->input[index];
    double largest = 0;
    if (input->absent)
        return 1;
    for (int64_t i = 0; i < view_count(&input->view); i++) {
        double magnitude = fabs(input->values[offset_of(input, i)]);
        if (isfinite(magnitude) && magnitude > largest)
            largest = magnitude;
    }
    return largest;
}

double case_spread(const Case *test, int index) {
    const CaseInput *input = &test->input[index];
    double low = 0, high = 0;
    bool any = false;
    for (int64_t i = 0; i < view_count(&input->view); i++) {
        double value = input->values[offset_of(input, i)];
        if (!isfinite(value))
            continue;
        low = any ? fmin(low, value) : value;
        high = any ? fmax(high, value) : value;
        any = true;
    }
    return high - low;
}

// ---- running ------------------------------------------------------------------------------------

bool case_shape(Case *test, Format format, Report *report) {
    KernelCall call = {.op = test->op,
                       .input_count = test->input_count,
                       .output_count = test->output_count,
                       .attr = &test->attr};
    static double somewhere; // a rule takes an input without data as absent
    for (int i = 0; i < test->input_count; i++) {
        call.input[i] = test->input[i].view;
        call.input[i].data = test->input[i].absent ? NULL : &somewhere;
    }
    Error error = {0};
    if (!shape_rules[test->op](&call, test->output, &error)) {
        report_failure(report, test, "the shape rule refuses it: %s", error.text);
        return false;
    }
    for (int i = 0; i < test->output_count; i++)
        if (test->output[i].format == FORMAT_COUNT)
            test->output[i].format = format;
    return true;
}

double *case_solve(Cases *cases, Case *test, int output) {
    Expected expected = {0};
    double *result = NULL;
    // What another case is built from proves nothing by itself.
    bool kept = test->zeros_expected;
    test->zeros_expected = true;
    if (case_shape(test, FORMAT_FP64, cases->ref_report) &&
        expected_make(&expected, cases->ref, test, cases->ref_report)) {
        result = expected.value[output];
        expected.value[output] = NULL;
    }
    expected_clear(&expected);
    test->zeros_expected = kept;
    return result;
}

static bool has_failed(const Cases *cases) {
    bool failed = cases->ref_report->failures > 0;
    for (int i = 0; i < cases->device_count; i++)
        failed = failed || cases->reports[i].failures > 0;
    return failed;
}

static bool is_left_out(Cases *cases) {
    return (cases->one_in && cases->met++ % cases->one_in != cases->turn) ||
           (cases->until_failure && has_failed(cases));
}

void case_run(Cases *cases, Case *test, Format format) {
    if (is_left_out(cases)) {
        case_free(test);
        return;
    }
    test->attr.has_compute = cases->compute != FORMAT_COUNT;
    test->attr.compute = cases->compute;
    if (cases->runner) {
        cases->runner(cases, test);
        case_free(test);
        return;
    }
    if (cases->rounding && !rounding_define(cases->rounding, test)) {
        case_free(test);
        return;
    }
    Expected expected = {0};
    if (case_shape(test, format, cases->ref_report) &&
        expected_make(&expected, cases->ref, test, cases->ref_report) &&
        expected_holds(&expected, test, cases->ref_report)) {
        compare_on(cases->ref, test, &expected, cases->ref_report);
        for (int i = 0; i < cases->device_count; i++)
            compare_on(cases->devices[i], test, &expected, &cases->reports[i]);
        for (int i = 0; i < cases->refusing_count; i++)
            compare_refusal(cases->refusing[i].device, test, op_table[test->op].name,
                            cases->refusing[i].report);
    } else {
        for (int i = 0; i < cases->device_count; i++)
            report_failure(&cases->reports[i], test, "the reference device has no answer");
    }
    expected_clear(&expected);
    case_free(test);
}

void case_refused(Cases *cases, Case *test, Format format, const char *needle) {
    if (!cases->runner && case_shape(test, format, cases->ref_report)) {
        compare_refusal(cases->ref, test, needle, cases->ref_report);
        for (int i = 0; i < cases->device_count; i++)
            compare_refusal(cases->devices[i], test, needle, &cases->reports[i]);
    }
    case_free(test);
}
