// Cases of reductions and of losses over elements.
#include <math.h>

#include "tests/conformance/cases.h"

typedef struct Reduction {
    Shape x;
    uint32_t dims;
    bool keep;
    Layout layout;
} Reduction;

static const Reduction reductions[] = {
    {{2, {13, 29}}, 0, false, LIES_DENSE},
    {{2, {13, 29}}, 1, false, LIES_DENSE},
    {{2, {13, 29}}, 2, false, LIES_DENSE},
    {{2, {13, 29}}, 2, true, LIES_DENSE},
    {{2, {13, 29}}, 0, true, LIES_TRANSPOSED},
    {{2, {13, 29}}, 1, false, LIES_TRANSPOSED},
    {{2, {13, 29}}, 2, false, LIES_TRANSPOSED},
    {{2, {13, 29}}, 3, false, LIES_SLICED},
    {{0, {0}}, 0, false, LIES_DENSE},
    {{1, {1}}, 1, true, LIES_DENSE},
    {{1, {1000}}, 0, false, LIES_STEPPED},
    {{4, {2, 3, 4, 5}}, 6, false, LIES_DENSE},
    {{4, {2, 3, 4, 5}}, 9, true, LIES_PERMUTED},
    {{4, {2, 3, 4, 5}}, 5, false, LIES_BROADCAST},
    {{4, {3, 8, 8, 16}}, 6, false, LIES_DENSE},
    {{6, {2, 3, 2, 1, 3, 2}}, 21, false, LIES_DENSE},
    {{3, {4, 1, 7}}, 2, false, LIES_DENSE},
    {{2, {300, 250}}, 1, false, LIES_DENSE},
    {{2, {300, 250}}, 0, false, LIES_DENSE},
    {{2, {2100, 16}}, 1, false, LIES_DENSE},
};
enum { REDUCTIONS = sizeof reductions / sizeof *reductions };

static int64_t reduced_count(const Reduction *reduction) {
    int64_t count = 1;
    for (int i = 0; i < reduction->x.ndim; i++)
        if (!reduction->dims || reduction->dims >> i & 1)
            count *= reduction->x.size[i];
    return count;
}

static void reduce_case(Cases *cases, const Reduction *reduction, Values values, Format out) {
    Case *test = case_new(cases, "%s, dimensions 0x%x%s", values_name(values),
                          (unsigned)reduction->dims, reduction->keep ? ", kept" : "");
    case_add(cases, test, cases->format, reduction->x, reduction->layout, values);
    test->attr.reduce = (ReduceAttr){reduction->dims, reduction->keep};
    if (cases->op == OP_sum || cases->op == OP_mean)
        test->bound[0].absolute = (double)reduced_count(reduction) + 2;
    // Whole numbers add up without error, in any order.
    if (cases->op == OP_sum && values.kind == VALUES_INTEGERS)
        test->bound[0] = (Bound){0};
    test->zeros_expected = values.kind != VALUES_NORMAL;
    case_run(cases, test, out);
}

void cases_reduce(Cases *cases) {
    bool adds = cases->op == OP_sum || cases->op == OP_mean;
    // Sums of the largest fp16 numbers leave fp16 but not fp32.
    for (int k = 0; k < EVERY_KIND; k++)
        for (int i = 0; i < 8; i++)
            reduce_case(
                cases, &reductions[i],
                every_sum(k, adds ? cases->format : FORMAT_FP16, reduced_count(&reductions[i]), 1),
                i & 4 ? FORMAT_FP32 : cases->format);
    for (int i = 0; i < REDUCTIONS; i++) {
        reduce_case(cases, &reductions[i], NORMAL, cases->format);
        reduce_case(cases, &reductions[i], INTEGERS, FORMAT_FP32);
        reduce_case(cases, &reductions[i], NORMAL, FORMAT_FP32);
    }
    for (int i = 0; i < REDUCTIONS; i++) { // of whole numbers in fp32
        Format whole = i & 1 ? FORMAT_INT32 : FORMAT_UINT8;
        Case *test = case_new(cases, "%s", format_name(whole));
        case_add(cases, test, whole, reductions[i].x, reductions[i].layout,
                 whole_values(whole, true));
        test->attr.reduce = (ReduceAttr){reductions[i].dims, reductions[i].keep};
        test->bound[0].ulps = cases->op == OP_mean ? 1 : 0;
        test->zeros_expected = true;
        case_run(cases, test, FORMAT_FP32);
    }
    if (cases->op == OP_sum) {
        const Reduction empty[] = {{{2, {0, 3}}, 1, false, LIES_DENSE},
                                   {{2, {3, 0}}, 2, false, LIES_DENSE},
                                   {{2, {3, 0}}, 1, false, LIES_DENSE}};
        for (int i = 0; i < 3; i++)
            reduce_case(cases, &empty[i], ZEROS, cases->format);
    }
}

// ---- losses -------------------------------------------------------------------------------------

typedef struct LossRow {
    OpId forward, backward;
    double low, high;
} LossRow;

static const LossRow loss_rows[] = {
#define LOSS(name, class, forward, derivative, low, high, text) \
    {OP_##name, OP_##name##_backward, low, high},
#include "kernel/pointwise.def"
};
enum { LOSS_ROWS = sizeof loss_rows / sizeof *loss_rows };

static const LossRow *loss_row(OpId op) {
    for (int i = 0; i < LOSS_ROWS - 1; i++)
        if (loss_rows[i].forward == op || loss_rows[i].backward == op)
            return &loss_rows[i];
    return &loss_rows[LOSS_ROWS - 1];
}

static const Shape loss_shapes[] = {{2, {32, 10}}, {0, {0}},       {1, {1}},
                                    {1, {17}},     {3, {5, 6, 7}}, {2, {300, 90}}};
enum { LOSS_SHAPES = sizeof loss_shapes / sizeof *loss_shapes };

static void add_pair(Cases *cases, Case *test, const LossRow *row, Shape shape, Layout layout,
                     Format target) {
    // Logits may be any number; the table's range is the targets'.
    Values logits = row->forward == OP_bce_with_logits ? (Values){VALUES_NORMAL, 0, 4}
                                                       : UNIFORM(row->low, row->high);
    case_add(cases, test, cases->format, shape, layout, logits);
    case_add(cases, test, target, shape, LIES_DENSE, UNIFORM(row->low, row->high));
}

// Any two, each drawn from the same kind: far from 0 they lie close to each other.
static Case *any_pair(Cases *cases, int kind, Case *test, Shape shape) {
    Values values = every_sum(kind, cases->format, shape_count(shape), 2);
    case_add(cases, test, cases->format, shape, LIES_DENSE, values);
    case_add(cases, test, cases->format, shape, LIES_DENSE, values);
    test->zeros_expected = true;
    return test;
}

// Probabilities and logits that are sure, right or wrong, and targets that are.
static const double sure[2][12] = {{0, 0, 1, 1, 1, 0, 0.5, 0.5, 0.25, 0.75, 1, 0},
                                   {0, 1, 0, 1, 1, 0, 0, 1, 0.5, 0.5, 0.5, 0.25}};

// Where parts of a term cancel, it errs by units of the largest part.
static Bound loss_bound(const Case *test, int x, int64_t count) {
    return (Bound){.result = sum_terms(count) + 8,
                   .constant = 16 * fmin(case_largest(test, x), 128),
                   .vanishing = 2};
}

void cases_loss(Cases *cases) {
    const LossRow *row = loss_row(cases->op);
    for (int k = 0; k < EVERY_KIND; k++) {
        Case *test = case_new(cases, "%s", values_name(every_kind[k]));
        any_pair(cases, k, test, SHAPE(12, 20));
        test->bound[0] = loss_bound(test, 0, 240);
        // The same numbers may be targets that no probability has.
        if (row->forward == OP_bce || row->forward == OP_bce_with_logits)
            test->bound[0].constant = 16 * case_largest(test, 0) * (1 + case_largest(test, 1));
        case_run(cases, test, FORMAT_FP32);
    }
    for (int i = 0; i < 12; i++) {
        Case *test = case_new(cases, "%g, target %g", sure[0][i], sure[1][i]);
        case_add_given(test, cases->format, SHAPE(1), &sure[0][i]);
        case_add_given(test, cases->format, SHAPE(1), &sure[1][i]);
        test->bound[0] = (Bound){.result = 16};
        case_run(cases, test, FORMAT_FP32);
    }
    for (int i = 0; i < LOSS_SHAPES; i++)
        for (int layout = 0; layout < LIES_COUNT; layout++) {
            Case *test = case_new(cases, "from %g to %g", row->low, row->high);
            add_pair(cases, test, row, loss_shapes[i], (Layout)layout,
                     layout & 1 ? FORMAT_FP32 : cases->format);
            test->bound[0] = loss_bound(test, 0, shape_count(loss_shapes[i]));
            case_run(cases, test, layout & 1 ? FORMAT_FP32 : cases->format);
        }
}

static Case *loss_gradient(Cases *cases, double gradient, const char *about) {
    Case *test = case_new(cases, "gradient %g, %s", gradient, about);
    case_add_given(test, FORMAT_FP32, SHAPE_OF_NUMBER, &gradient);
    return test;
}

void cases_loss_backward(Cases *cases) {
    static const double gradients[] = {0,          -1, 1e-30, (double)INFINITY, -(double)INFINITY,
                                       (double)NAN};
    const LossRow *row = loss_row(cases->op);
    for (int k = 0; k < EVERY_KIND; k++) {
        Case *test =
            any_pair(cases, k, loss_gradient(cases, 16, values_name(every_kind[k])), SHAPE(12, 20));
        test->bound[0] = (Bound){.result = 16, .constant = 1, .vanishing = 1};
        case_run(cases, test, FORMAT_FP32);
    }
    for (size_t g = 0; g < sizeof gradients / sizeof *gradients; g++) {
        Case *test = loss_gradient(cases, gradients[g], "sure");
        case_add_given(test, cases->format, SHAPE(12), sure[0]);
        case_add_given(test, cases->format, SHAPE(12), sure[1]);
        test->bound[0] = (Bound){.result = 16};
        test->zeros_expected = true;
        case_run(cases, test, FORMAT_FP32);
    }
    for (int i = 0; i < LOSS_SHAPES; i++)
        for (int layout = 0; layout < LIES_COUNT; layout++) {
            const double gradient = 4096;
            Case *test = case_new(cases, "gradient %g", gradient);
            case_add_given(test, FORMAT_FP32, SHAPE_OF_NUMBER, &gradient);
            add_pair(cases, test, row, loss_shapes[i], (Layout)layout,
                     layout & 1 ? FORMAT_FP32 : cases->format);
            double each = gradient / (double)shape_count(loss_shapes[i]);
            test->bound[0] = (Bound){.result = 16, .constant = 16 * each};
            case_run(cases, test, layout == LIES_SLICED ? FORMAT_FP32 : cases->format);
        }
}
