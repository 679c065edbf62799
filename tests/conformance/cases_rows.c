// Cases of operations over rows: softmax, cross entropy, the largest of a row.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/cases.h"

static const Shape row_shapes[] = {
    {2, {5, 10}},   {1, {7}},          {2, {3, 1}},    {3, {2, 4, 33}},
    {2, {17, 128}}, {4, {2, 2, 3, 5}}, {2, {2, 1000}}, {2, {300, 70}},
};
enum { ROW_SHAPES = sizeof row_shapes / sizeof *row_shapes };

// Too long for a few threads of a card, and for what its threads can hold.
static const Shape long_rows[] = {{2, {3, 3001}}, {2, {1, 20011}}};
enum { LONG_ROWS = sizeof long_rows / sizeof *long_rows };

static int64_t row_length(Shape shape) {
    return shape.size[shape.ndim - 1];
}

static Shape rows_of(Shape shape) {
    shape.ndim--;
    return shape;
}

// What cross entropy keeps of each row for its gradient.
static Shape sums_of(Shape shape) {
    Shape sums = {.ndim = shape.ndim, .size = {2}};
    memcpy(sums.size + 1, shape.size, (size_t)(shape.ndim - 1) * sizeof *sums.size);
    return sums;
}

// A softmax's exponents err by units of the arguments: of the differences between logits, whatever
// these have in common, and as far as anything is left of them.
static double softmax_units(const Case *test, int logits, int64_t length) {
    return 16 + sum_terms(length) + 2 * fmin(case_spread(test, logits), 104);
}

static Bound rowwise_bound(OpId op, const Case *test, int64_t length) {
    if (op == OP_softmax)
        return (Bound){.result = softmax_units(test, 0, length)};
    return (Bound){.constant = 16 + sum_terms(length) + log((double)length), .result = 2};
}

static void rowwise_case(Cases *cases, Shape shape, Values values, Format out) {
    Case *test = case_new(cases, "%s %g", values_name(values), values.high);
    case_add(cases, test, cases->format, shape, LIES_DENSE, values);
    test->bound[0] = rowwise_bound(cases->op, test, row_length(shape));
    test->zeros_expected = values.kind != VALUES_NORMAL || row_length(shape) == 1;
    case_run(cases, test, out);
}

void cases_rowwise(Cases *cases) {
    rowwise_case(cases, row_shapes[0], (Values){VALUES_NORMAL, 0, 20}, cases->format);
    for (int i = 0; i < ROW_SHAPES; i++)
        for (int k = 0; k < EVERY_KIND; k++)
            rowwise_case(cases, row_shapes[i], every_kind[k], k & 1 ? FORMAT_FP32 : cases->format);
    // Near the largest of the format, less what their differences would overflow by.
    double high = format_table[cases->format].largest / 4;
    rowwise_case(cases, row_shapes[0], UNIFORM(high / 2, high), cases->format);
    rowwise_case(cases, SHAPE(40, 30), SPECIAL, cases->format);
    for (int i = 0; i < ROW_SHAPES; i++) {
        rowwise_case(cases, row_shapes[i], NORMAL, cases->format);
        rowwise_case(cases, row_shapes[i], NORMAL, FORMAT_FP32);
    }
    rowwise_case(cases, SHAPE(0, 7), ZEROS, cases->format);
    for (int i = 0; i < LONG_ROWS; i++) {
        rowwise_case(cases, long_rows[i], NORMAL, cases->format);
        rowwise_case(cases, long_rows[i], SPECIAL, cases->format);
    }
}

static void rowwise_backward_case(Cases *cases, Shape shape, Values gradient, Values logits,
                                  Format dy_format, Format out) {
    OpId op = cases->op == OP_softmax_backward ? OP_softmax : OP_log_softmax;
    int64_t length = row_length(shape);
    Case *before = case_new_of(op);
    case_add(cases, before, FORMAT_FP32, shape, LIES_DENSE, logits);
    double *y = case_solve(cases, before, 0);
    case_free(before);
    if (!y)
        return;
    Case *test = case_new(cases, "%s at %s", values_name(gradient), values_name(logits));
    case_add(cases, test, dy_format, shape, LIES_DENSE, gradient);
    case_add_given(test, cases->format, shape, y);
    free(y);
    double dy = case_largest(test, 0), terms = sum_terms(length) + 8;
    if (op == OP_softmax) // y (dy - sum y dy)
        test->bound[0].constant = case_largest(test, 1) * dy * terms;
    else // dy - exp(y) sum dy
        test->bound[0].constant = dy * terms * (1 + sqrt((double)length)) / 2;
    test->bound[0].vanishing = terms;
    test->zeros_expected =
        length == 1 || gradient.kind != VALUES_NORMAL || logits.kind != VALUES_NORMAL;
    case_run(cases, test, out);
}

void cases_rowwise_backward(Cases *cases) {
    for (int i = 0; i < ROW_SHAPES; i++) {
        Shape shape = row_shapes[i];
        for (int full = 0; full < 3; full++)
            rowwise_backward_case(cases, shape, NORMAL, NORMAL,
                                  full == 1 ? FORMAT_FP32 : cases->format,
                                  full == 2 ? FORMAT_FP32 : cases->format);
        for (int k = 0; k < EVERY_KIND; k++) {
            Values gradient = every_sum(k, cases->format, row_length(shape), 1);
            rowwise_backward_case(cases, shape, gradient, NORMAL, cases->format, FORMAT_FP32);
            rowwise_backward_case(cases, shape, NORMAL, every_kind[k], cases->format, FORMAT_FP32);
        }
    }
    for (int i = 0; i < LONG_ROWS; i++)
        rowwise_backward_case(cases, long_rows[i], NORMAL, NORMAL, cases->format, cases->format);
}

// ---- cross entropy ------------------------------------------------------------------------------

// Some classes are -1: left out. The first never is, so that there is a mean.
static void add_classes(Cases *cases, Case *test, Shape logits, bool left_out) {
    int64_t rows = shape_count(rows_of(logits));
    double *classes = malloc((size_t)rows * sizeof *classes);
    for (int64_t i = 0; classes && i < rows; i++) {
        classes[i] = floor(cases_uniform(cases) * (double)row_length(logits));
        if (left_out && i % 3 == 1)
            classes[i] = -1;
    }
    if (classes)
        case_add_given(test, FORMAT_INT32, rows_of(logits), classes);
    free(classes);
}

static void refuse_class(Cases *cases, double wrong, const char *needle) {
    static const double good[] = {0, 3, 1};
    double classes[] = {good[0], wrong, good[2]};
    Case *test = case_new(cases, "class %g of 4", wrong);
    case_add(cases, test, cases->format, SHAPE(3, 4), LIES_DENSE, NORMAL);
    case_add_given(test, FORMAT_INT32, SHAPE(3), classes);
    case_refused(cases, test, FORMAT_FP32, needle);
}

static void entropy_case(Cases *cases, Shape shape, Values values, bool left_out, Format out) {
    Case *test = case_new(cases, "%s %g%s", values_name(values), values.high,
                          left_out ? ", some left out" : "");
    case_add(cases, test, cases->format, shape, LIES_DENSE, values);
    add_classes(cases, test, shape, left_out);
    double units = softmax_units(test, 0, row_length(shape));
    double rows = sum_terms(shape_count(rows_of(shape)));
    test->bound[0] = (Bound){.constant = units, .result = rows};
    test->bound[1] = (Bound){.constant = units, .result = 2};
    test->ignored[1] = values.kind == VALUES_SPECIAL; // of a row without a sum
    test->zeros_expected = row_length(shape) == 1 || values.kind != VALUES_NORMAL;
    case_run(cases, test, out);
}

// Of nothing there is no mean.
static void all_left_out(Cases *cases, Shape shape) {
    Case *test = case_new(cases, "all left out");
    case_add(cases, test, cases->format, shape, LIES_DENSE, NORMAL);
    double classes[64];
    for (int i = 0; i < 64; i++)
        classes[i] = -1;
    case_add_given(test, FORMAT_INT32, rows_of(shape), classes);
    if (cases->op == OP_cross_entropy) {
        double units = softmax_units(test, 0, row_length(shape));
        test->bound[1] = (Bound){.constant = units, .result = 2};
    }
    case_run(cases, test, FORMAT_FP32);
}

void cases_cross_entropy(Cases *cases) {
    all_left_out(cases, SHAPE(5, 7));
    all_left_out(cases, SHAPE(64, 40));
    entropy_case(cases, row_shapes[0], (Values){VALUES_NORMAL, 0, 20}, false, cases->format);
    for (int i = 0; i < ROW_SHAPES; i++) {
        for (int k = 0; k < EVERY_KIND; k++) {
            int64_t rows = shape_count(rows_of(row_shapes[i]));
            Values values = every_sum(k, cases->format, rows, 1);
            entropy_case(cases, row_shapes[i], values, k & 1, FORMAT_FP32);
        }
        entropy_case(cases, row_shapes[i], NORMAL, false, FORMAT_FP32);
        entropy_case(cases, row_shapes[i], NORMAL, true, FORMAT_FP32);
    }
    for (int i = 0; i < LONG_ROWS; i++)
        entropy_case(cases, long_rows[i], NORMAL, false, FORMAT_FP32);
    refuse_class(cases, 4, "4");
    refuse_class(cases, 12345, "12345");
    refuse_class(cases, -2, "-2");
}

static void entropy_backward_case(Cases *cases, Shape shape, double gradient, Values logits,
                                  bool left_out, Format out) {
    Case *before = case_new_of(OP_cross_entropy);
    case_add(cases, before, cases->format, shape, LIES_DENSE, logits);
    add_classes(cases, before, shape, left_out);
    double *sums = case_solve(cases, before, 1);
    if (!sums) {
        case_free(before);
        return;
    }
    Case *test = case_new(cases, "%g at %s %g%s", gradient, values_name(logits), logits.high,
                          left_out ? ", some left out" : "");
    case_add_given(test, FORMAT_FP32, SHAPE_OF_NUMBER, &gradient);
    test->input[test->input_count++] = before->input[0];
    case_add_given(test, FORMAT_FP32, sums_of(shape), sums);
    test->input[test->input_count++] = before->input[1];
    before->input_count = 0; // its inputs have moved
    case_free(before);
    free(sums);
    double rows = (double)shape_count(rows_of(shape));
    double units = 32 + sum_terms(row_length(shape));
    if (isfinite(gradient))
        test->bound[0].constant = units * fabs(gradient) / rows * (left_out ? 3 : 1);
    test->zeros_expected = true; // of a row that is sure of itself
    case_run(cases, test, out);
}

void cases_cross_entropy_backward(Cases *cases) {
    static const double gradients[] = {0, -1, 1e-30, 1e30, (double)INFINITY, (double)NAN};
    for (int i = 0; i < ROW_SHAPES; i++) {
        Shape shape = row_shapes[i];
        for (int full = 0; full < 3; full++)
            entropy_backward_case(cases, shape, 1024, NORMAL, full == 1,
                                  full == 2 ? FORMAT_FP32 : cases->format);
        for (int k = 0; k < EVERY_KIND; k++)
            entropy_backward_case(cases, shape, 1, every_kind[k], k & 1, FORMAT_FP32);
        for (size_t g = 0; g < sizeof gradients / sizeof *gradients; g++)
            entropy_backward_case(cases, shape, gradients[g], NORMAL, g & 1, FORMAT_FP32);
    }
    for (int i = 0; i < LONG_ROWS; i++)
        entropy_backward_case(cases, long_rows[i], 1024, NORMAL, false, cases->format);
}

// ---- the largest --------------------------------------------------------------------------------

// Numbers that are flushed are all equal: their order says nothing.
static bool orders_flushed(const Cases *cases, Values values) {
    return values.kind == VALUES_SUBNORMAL && cases->format != FORMAT_FP16;
}

void cases_accuracy(Cases *cases) {
    all_left_out(cases, SHAPE(5, 7));
    for (int i = 0; i < ROW_SHAPES; i++)
        for (int kind = 0; kind < EVERY_KIND; kind++) {
            if (orders_flushed(cases, every_kind[kind]))
                continue;
            Case *test = case_new(cases, "%s", values_name(every_kind[kind]));
            case_add(cases, test, cases->format, row_shapes[i], LIES_DENSE, every_kind[kind]);
            double length = (double)row_length(row_shapes[i]);
            Case *best = case_new_of(OP_argmax);
            best->input[best->input_count++] = test->input[0];
            double *right = case_solve(cases, best, 0);
            best->input_count = 0; // still the test's
            case_free(best);
            int64_t rows = shape_count(rows_of(row_shapes[i]));
            for (int64_t r = 0; right && r < rows; r += 1 + (kind & 1))
                right[r] = floor(cases_uniform(cases) * length);
            if (right && rows > 3)
                right[0] = right[2] = -1; // of no class
            if (right)
                case_add_given(test, FORMAT_INT32, rows_of(row_shapes[i]), right);
            free(right);
            test->bound[0].ulps = 1;
            test->zeros_expected = true; // chance decides
            case_run(cases, test, FORMAT_FP32);
        }
}

void cases_argmax(Cases *cases) {
    for (int i = 0; i < ROW_SHAPES; i++)
        for (int k = 0; k < EVERY_KIND; k++) {
            if (orders_flushed(cases, every_kind[k]))
                continue;
            Case *test = case_new(cases, "%s", values_name(every_kind[k]));
            case_add(cases, test, cases->format, row_shapes[i], LIES_DENSE, every_kind[k]);
            test->zeros_expected = true; // index 0 is as good as another
            case_run(cases, test, cases->format);
        }
}

void cases_topk(Cases *cases) {
    static const int64_t counts[] = {1, 3, 10, 33, 128};
    for (int i = 0; i < ROW_SHAPES; i++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            // Distinct whole numbers beyond 256 do not exist in bf16.
            if (counts[k] > row_length(row_shapes[i]) || row_length(row_shapes[i]) > 256)
                continue;
            Case *test = case_new(cases, "the largest %d", (int)counts[k]);
            case_add(cases, test, cases->format, row_shapes[i], LIES_DENSE, DISTINCT);
            test->attr.index.count = counts[k];
            test->zeros_expected = row_length(row_shapes[i]) == 1;
            case_run(cases, test, cases->format);
        }
    for (int k = 0; k < EVERY_KIND; k++) { // equals keep their order, and NaN comes first
        if (orders_flushed(cases, every_kind[k]))
            continue;
        Case *test = case_new(cases, "%s", values_name(every_kind[k]));
        case_add(cases, test, cases->format, SHAPE(40, 33), LIES_DENSE, every_kind[k]);
        test->attr.index.count = 7;
        test->zeros_expected = true;
        case_run(cases, test, cases->format);
    }
}
