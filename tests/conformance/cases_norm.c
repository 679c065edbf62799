// Cases of normalisation and its gradients.
#include <math.h>
#include <stdlib.h>

#include "tests/conformance/cases.h"

typedef struct NormCase {
    Shape x;
    int64_t groups;
    Values values;
    bool weight, bias;
} NormCase;

// How many numbers one mean is taken over.
static int64_t share_of(OpId op, const NormCase *norm) {
    int64_t count = shape_count(norm->x), channels = norm->x.size[norm->x.ndim - 1];
    if (op == OP_layer_norm || op == OP_layer_norm_backward)
        return channels;
    if (op == OP_batch_norm || op == OP_batch_norm_backward)
        return count / channels;
    return count / (norm->x.size[0] * norm->groups);
}

static Case *forward(Cases *cases, OpId op, const NormCase *norm) {
    int64_t channels = norm->x.size[norm->x.ndim - 1];
    Case *test = case_new(cases, "%s %g, groups %d", values_name(norm->values), norm->values.high,
                          (int)norm->groups);
    test->op = op;
    test->output_count = op_table[op].outputs;
    case_add(cases, test, cases->format, norm->x, LIES_DENSE, norm->values);
    if (norm->weight)
        case_add(cases, test, FORMAT_FP32, SHAPE(channels), LIES_DENSE, UNIFORM(0.5, 1.5));
    else
        case_add_absent(test);
    if (norm->bias)
        case_add(cases, test, FORMAT_FP32, SHAPE(channels), LIES_DENSE, NORMAL);
    else
        case_add_absent(test);
    test->attr.norm.epsilon = 0x1p-16; // the same in fp32 and double
    test->attr.norm.groups = norm->groups;
    return test;
}

static double largest_of(const double *values, int64_t count) {
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fabs(values[i]) > largest ? fabs(values[i]) : largest;
    return largest;
}

static int64_t statistics_count(OpId op, const NormCase *norm) {
    return shape_count(norm->x) / share_of(op, norm);
}

// The mean errs by units of the largest |x|; divided by the deviation that is an error of y.
static void bound_forward(Case *test, const NormCase *norm, double inverse) {
    double x = case_largest(test, 0), w = case_largest(test, 1), b = case_largest(test, 2);
    double terms = sum_terms(share_of(test->op, norm));
    double shift = terms * x * inverse;
    test->bound[0] = (Bound){.constant = (shift + terms * 4) * w + 2 * b};
    test->bound[1] = (Bound){.constant = terms * x};
    test->bound[2] = (Bound){.result = 2 * terms + 4 * x * inverse};
    // The mean of numbers that are not finite is infinite or none: it makes no difference.
    test->ignored[1] = norm->values.kind == VALUES_SPECIAL;
}

static void forward_case(Cases *cases, const NormCase *norm, Format out) {
    Case *test = forward(cases, cases->op, norm);
    double *inverse = case_solve(cases, test, 2);
    if (inverse)
        bound_forward(test, norm, largest_of(inverse, statistics_count(cases->op, norm)));
    free(inverse);
    test->zeros_expected = norm->values.kind != VALUES_NORMAL || share_of(cases->op, norm) == 1;
    case_run(cases, test, out);
}

// Of large numbers, so large that the squares of their differences do not leave fp32.
static Values any_norm(const Cases *cases, int kind, Shape x) {
    return every_sum(kind, cases->format, shape_count(x), 2);
}

static const Shape norm_shapes[] = {
    {2, {37, 24}},     {2, {2, 1}},    {4, {3, 5, 4, 12}}, {3, {4, 9, 64}},
    {4, {2, 8, 8, 6}}, {2, {16, 300}}, {2, {3, 7}},        {4, {4, 16, 16, 36}},
};
enum { NORM_SHAPES = sizeof norm_shapes / sizeof *norm_shapes };

// The largest number of groups below 5 that divides the channels.
static int64_t groups_for(Shape x) {
    int64_t channels = x.size[x.ndim - 1], groups = 4;
    while (channels % groups)
        groups--;
    return groups;
}

static void forward_cases(Cases *cases) {
    // A mean far from 0: a variance that is the difference of two large sums is found out.
    const Values kinds[] = {
        NORMAL, UNIFORM(99, 101), {VALUES_NORMAL, 0, 100}, {VALUES_NORMAL, 0, 0x1p-7},
        ZEROS,  UNIFORM(-2, 3)};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        NormCase norm = {norm_shapes[2], 3, kinds[k], true, true};
        forward_case(cases, &norm, cases->format);
    }
    for (int k = 0; k < EVERY_KIND; k++)
        for (int i = 0; i < NORM_SHAPES; i++) {
            Shape x = norm_shapes[i];
            NormCase norm = {x, groups_for(x), any_norm(cases, k, x), true, true};
            forward_case(cases, &norm, FORMAT_FP32);
        }
    for (int i = 0; i < NORM_SHAPES; i++) {
        NormCase norm = {norm_shapes[i], groups_for(norm_shapes[i]), NORMAL, true, true};
        forward_case(cases, &norm, cases->format);
        forward_case(cases, &norm, FORMAT_FP32);
        if (share_of(cases->op, &norm) <= 2)
            continue; // a difference of two has hardly a slope: the cases above will do
        norm.bias = false;
        forward_case(cases, &norm, cases->format);
        norm.weight = false;
        forward_case(cases, &norm, cases->format);
    }
}

void cases_batch_norm(Cases *cases) {
    forward_cases(cases);
}

// Rows too long for a few threads of a card, or for what its threads can hold; more of them than a
// block has; and none.
static const Shape many_rows[] = {{2, {3, 3001}},  {2, {2, 9001}},  {2, {1, 20000}},
                                  {2, {40, 1600}}, {2, {2100, 24}}, {2, {0, 64}}};
enum { MANY_ROWS = sizeof many_rows / sizeof *many_rows };

void cases_layer_norm(Cases *cases) {
    forward_cases(cases);
    for (int i = 0; i < MANY_ROWS; i++) {
        NormCase norm = {many_rows[i], 1, UNIFORM(-3, 9), i != 1, i != 0};
        forward_case(cases, &norm, cases->format);
    }
}

void cases_group_norm(Cases *cases) {
    forward_cases(cases);
}

void cases_batch_norm_infer(Cases *cases) {
    for (int i = 0; i < NORM_SHAPES; i++)
        for (int full = 0; full < 2 + EVERY_KIND; full++) {
            NormCase norm = {norm_shapes[i], 1, i & 1 ? UNIFORM(-3, 9) : NORMAL, i % 3 > 0,
                             i % 4 > 0};
            if (full >= 2)
                norm.values = any_norm(cases, full - 2, norm.x);
            Case *test = forward(cases, cases->op, &norm);
            Shape channels = SHAPE(norm.x.size[norm.x.ndim - 1]);
            case_add(cases, test, FORMAT_FP32, channels, LIES_DENSE, NORMAL);
            case_add(cases, test, FORMAT_FP32, channels, LIES_DENSE, UNIFORM(0.25, 2));
            double inverse = 2, x = case_largest(test, 0) + case_largest(test, 3);
            test->bound[0].constant =
                8 * (x * inverse * case_largest(test, 1) + case_largest(test, 2));
            test->zeros_expected = full >= 2;
            case_run(cases, test, full ? FORMAT_FP32 : cases->format);
        }
}

void cases_batch_norm_track(Cases *cases) {
    static const int64_t channels[] = {1, 7, 64, 200};
    static const int64_t counts[] = {2, 3, 100, 4096};
    for (int at = 0; at < 4 * (1 + EVERY_KIND); at++) {
        int i = at % 4, kind = at / 4 - 1;
        Values means = kind < 0 ? NORMAL : every_kind[kind];
        Case *test = case_new(cases, "%s, count %d", values_name(means), (int)counts[i]);
        for (int k = 0; k < 4; k++)
            case_add(cases, test, FORMAT_FP32, SHAPE(channels[i]), LIES_DENSE,
                     k & 1 ? UNIFORM(0.5, 2) : means);
        test->zeros_expected = kind >= 0;
        test->attr.norm = (NormAttr){.epsilon = 0x1p-16, .momentum = 0.125, .count = counts[i]};
        double mean = case_largest(test, 0) + case_largest(test, 2);
        test->bound[0].constant = 4 * mean;
        test->bound[1].constant = 16 * (case_largest(test, 1) + 8);
        case_run(cases, test, FORMAT_FP32);
    }
}

// ---- gradients ----------------------------------------------------------------------------------

static OpId forward_of(OpId op) {
    if (op == OP_layer_norm_backward)
        return OP_layer_norm;
    return op == OP_batch_norm_backward ? OP_batch_norm : OP_group_norm;
}

static Shape statistics_shape(OpId op, const NormCase *norm) {
    if (op == OP_group_norm_backward)
        return SHAPE(norm->x.size[0], norm->groups);
    if (op == OP_batch_norm_backward)
        return SHAPE(norm->x.size[norm->x.ndim - 1]);
    Shape rows = norm->x;
    rows.ndim--;
    return rows;
}

static void bound_backward(Case *test, const NormCase *norm, double inverse) {
    double dy = case_largest(test, 0), x = case_largest(test, 1), w = case_largest(test, 2);
    double share = (double)share_of(test->op, norm), terms = sum_terms((int64_t)share);
    double normed = (x + case_largest(test, 3)) * inverse;
    normed = normed < sqrt(share) + 1 ? normed : sqrt(share) + 1; // no |x^| is larger
    // x^ itself errs by units of the largest |x|, divided by the deviation.
    double off = 2 * (x + case_largest(test, 3)) * inverse;
    double each = dy * w * inverse;
    test->bound[0].constant = 2 * each * (terms * (1 + normed) + (1 + normed) * off);
    int64_t channels = norm->x.size[norm->x.ndim - 1];
    int64_t rows = shape_count(norm->x) / channels;
    double many = sum_terms(rows) * sqrt((double)rows);
    test->bound[1].constant = dy * (normed * many + off * sqrt((double)rows) * 2);
    test->bound[2].constant = dy * many;
    // Where all are of one sign, their sum is as large as its terms together.
    test->bound[1].result = test->bound[2].result = sum_terms(rows);
    // What is flushed is multiplied on.
    for (int i = 0; i < 3; i++)
        test->bound[i].vanishing =
            2 * x + share * (1 + normed) * (1 + w * inverse) + (double)rows * (1 + normed);
}

static void backward_case(Cases *cases, const NormCase *norm, Values gradient, Format dy_format,
                          Format out) {
    Case *before = forward(cases, forward_of(cases->op), norm);
    double *mean = case_solve(cases, before, 1), *inverse = case_solve(cases, before, 2);
    Case *test = case_new(cases, "%s at %s, groups %d", values_name(gradient),
                          values_name(norm->values), (int)norm->groups);
    case_add(cases, test, dy_format, norm->x, LIES_DENSE, gradient);
    test->zeros_expected =
        gradient.kind != VALUES_NORMAL || norm->x.size[0] == 0 ||
        (norm->values.kind != VALUES_NORMAL && norm->values.kind != VALUES_UNIFORM);
    for (int i = 0; i < 2; i++) {
        test->input[test->input_count++] = before->input[i];
        before->input[i].values = NULL;
    }
    test->attr = before->attr;
    case_free(before);
    if (mean && inverse) {
        Shape statistics = statistics_shape(cases->op, norm);
        case_add_given(test, FORMAT_FP32, statistics, mean);
        case_add_given(test, FORMAT_FP32, statistics, inverse);
        bound_backward(test, norm, case_largest(test, 4));
        case_run(cases, test, out);
    } else {
        case_free(test);
    }
    free(mean);
    free(inverse);
}

void cases_norm_backward(Cases *cases) {
    for (int i = 0; i < NORM_SHAPES; i++) {
        NormCase norm = {norm_shapes[i], groups_for(norm_shapes[i]), NORMAL, true, true};
        if (share_of(cases->op, &norm) == 1)
            continue; // the gradient is 0 by nature
        for (int k = 0; k < EVERY_KIND; k++) {
            Values gradient = every_sum(k, cases->format, shape_count(norm.x), 2);
            backward_case(cases, &norm, gradient, cases->format, FORMAT_FP32);
            NormCase any = norm;
            any.values = any_norm(cases, k, norm.x);
            backward_case(cases, &any, NORMAL, cases->format, FORMAT_FP32);
        }
        backward_case(cases, &norm, NORMAL, cases->format, cases->format);
        backward_case(cases, &norm, NORMAL, FORMAT_FP32, i & 1 ? cases->format : FORMAT_FP32);
        norm.values = UNIFORM(1, 3);
        backward_case(cases, &norm, NORMAL, cases->format, FORMAT_FP32);
        norm.weight = false;
        backward_case(cases, &norm, NORMAL, cases->format, cases->format);
    }
    for (int i = 0; i < MANY_ROWS && cases->op == OP_layer_norm_backward; i++) {
        NormCase norm = {many_rows[i], 1, UNIFORM(-3, 9), i != 1, true};
        backward_case(cases, &norm, NORMAL, cases->format, cases->format);
    }
}
