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

// A softmax's exponents err by units of the arguments, which are differences of inputs.
static double softmax_units(const Case *test, int logits, int64_t length) {
    return 16 + sum_terms(length) + 2 * case_largest(test, logits);
}

static Bound rowwise_bound(OpId op, const Case *test, int64_t length) {
    double units = softmax_units(test, 0, length);
    if (op == OP_softmax)
        return (Bound){.result = units};
    return (Bound){.constant = units + log((double)length), .result = 2};
}

static void rowwise_case(Cases *cases, Shape shape, Values values, Format out) {
    Case *test = case_new(cases, "%s %g", values_name(values), values.high);
    case_add(cases, test, cases->format, shape, LIES_DENSE, values);
    test->bound[0] = rowwise_bound(cases->op, test, row_length(shape));
    test->zeros_expected = values.kind == VALUES_LARGE || row_length(shape) == 1;
    case_run(cases, test, out);
}

void cases_rowwise(Cases *cases) {
    const Values kinds[] = {NORMAL, INTEGERS, ZEROS, SUBNORMAL, {VALUES_NORMAL, 0, 20}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        rowwise_case(cases, row_shapes[0], kinds[k], cases->format);
    // Near the largest of the format, less what their differences would overflow by.
    double high = format_table[cases->format].largest / 4;
    rowwise_case(cases, row_shapes[0], UNIFORM(high / 2, high), cases->format);
    rowwise_case(cases, SHAPE(40, 30), SPECIAL, cases->format);
    for (int i = 0; i < ROW_SHAPES; i++) {
        rowwise_case(cases, row_shapes[i], NORMAL, cases->format);
        rowwise_case(cases, row_shapes[i], NORMAL, FORMAT_FP32);
    }
}

void cases_rowwise_backward(Cases *cases) {
    OpId op = cases->op == OP_softmax_backward ? OP_softmax : OP_log_softmax;
    for (int i = 0; i < ROW_SHAPES; i++)
        for (int full = 0; full < 3; full++) {
            Shape shape = row_shapes[i];
            int64_t length = row_length(shape);
            Case *before = case_new_of(op);
            case_add(cases, before, FORMAT_FP32, shape, LIES_DENSE, NORMAL);
            double *y = case_solve(cases, before, 0);
            case_free(before);
            if (!y)
                return;
            Case *test = case_new(cases, "normal");
            case_add(cases, test, full == 1 ? FORMAT_FP32 : cases->format, shape, LIES_DENSE,
                     NORMAL);
            case_add_given(test, cases->format, shape, y);
            free(y);
            double dy = case_largest(test, 0), terms = sum_terms(length) + 8;
            if (op == OP_softmax) // y (dy - sum y dy)
                test->bound[0].constant = case_largest(test, 1) * dy * terms;
            else // dy - exp(y) sum dy
                test->bound[0].constant = dy * terms * (1 + sqrt((double)length)) / 2;
            test->zeros_expected = length == 1;
            case_run(cases, test, full == 2 ? FORMAT_FP32 : cases->format);
        }
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
    test->zeros_expected = row_length(shape) == 1;
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
    const Values kinds[] = {NORMAL, INTEGERS, ZEROS, {VALUES_NORMAL, 0, 20}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        entropy_case(cases, row_shapes[0], kinds[k], k & 1, cases->format);
    for (int i = 0; i < ROW_SHAPES; i++) {
        entropy_case(cases, row_shapes[i], NORMAL, false, FORMAT_FP32);
        entropy_case(cases, row_shapes[i], NORMAL, true, FORMAT_FP32);
    }
    refuse_class(cases, 4, "4");
    refuse_class(cases, 12345, "12345");
    refuse_class(cases, -2, "-2");
}

void cases_cross_entropy_backward(Cases *cases) {
    for (int i = 0; i < ROW_SHAPES; i++)
        for (int full = 0; full < 3; full++) {
            Shape shape = row_shapes[i];
            Case *before = case_new_of(OP_cross_entropy);
            case_add(cases, before, cases->format, shape, LIES_DENSE, NORMAL);
            add_classes(cases, before, shape, full == 1);
            double *sums = case_solve(cases, before, 1);
            if (!sums) {
                case_free(before);
                return;
            }
            const double gradient = 1024;
            Case *test = case_new(cases, full == 1 ? "some left out" : "all rows");
            case_add_given(test, FORMAT_FP32, SHAPE_OF_NUMBER, &gradient);
            test->input[test->input_count++] = before->input[0];
            case_add_given(test, FORMAT_FP32, sums_of(shape), sums);
            test->input[test->input_count++] = before->input[1];
            before->input_count = 0; // its inputs have moved
            case_free(before);
            free(sums);
            double rows = (double)shape_count(rows_of(shape));
            double units = softmax_units(test, 1, row_length(shape)) + 8;
            test->bound[0].constant = units * gradient / rows * (full == 1 ? 3 : 1);
            test->zeros_expected = row_length(shape) == 1;
            case_run(cases, test, full == 2 ? FORMAT_FP32 : cases->format);
        }
}

// ---- the largest --------------------------------------------------------------------------------

void cases_accuracy(Cases *cases) {
    all_left_out(cases, SHAPE(5, 7));
    for (int i = 0; i < ROW_SHAPES; i++)
        for (int kind = 0; kind < 2; kind++) {
            Case *test = case_new(cases, kind ? "integers" : "normal");
            case_add(cases, test, cases->format, row_shapes[i], LIES_DENSE,
                     kind ? INTEGERS : NORMAL);
            double length = (double)row_length(row_shapes[i]);
            Case *best = case_new_of(OP_argmax);
            best->input[best->input_count++] = test->input[0];
            double *right = case_solve(cases, best, 0);
            best->input_count = 0; // still the test's
            case_free(best);
            int64_t rows = shape_count(rows_of(row_shapes[i]));
            for (int64_t r = 0; right && r < rows; r += 1 + kind)
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
    const Values kinds[] = {NORMAL, INTEGERS, LARGE, {VALUES_NORMAL, 0, 0x1p-10}};
    for (int i = 0; i < ROW_SHAPES; i++)
        for (int k = 0; k < 4; k++) {
            Case *test = case_new(cases, "%s", values_name(kinds[k]));
            case_add(cases, test, cases->format, row_shapes[i], LIES_DENSE, kinds[k]);
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
}
