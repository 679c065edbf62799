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
    test->zeros_expected = values.kind == VALUES_ZEROS || values.kind == VALUES_INTEGERS;
    case_run(cases, test, out);
}

void cases_reduce(Cases *cases) {
    const Values kinds[] = {NORMAL, INTEGERS, ZEROS, SUBNORMAL, SPECIAL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int i = 0; i < 4; i++)
            reduce_case(cases, &reductions[i], kinds[k], cases->format);
    // Sums of the largest fp16 numbers leave fp16 but not fp32.
    if (cases->format == FORMAT_FP16 || cases->op == OP_max || cases->op == OP_min)
        for (int i = 0; i < 4; i++)
            reduce_case(cases, &reductions[i], LARGE, cases->format);
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
        const Reduction empty = {{2, {0, 3}}, 1, false, LIES_DENSE};
        reduce_case(cases, &empty, ZEROS, cases->format);
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

void cases_loss(Cases *cases) {
    const LossRow *row = loss_row(cases->op);
    for (int i = 0; i < LOSS_SHAPES; i++)
        for (int layout = 0; layout < LIES_COUNT; layout++) {
            Case *test = case_new(cases, "from %g to %g", row->low, row->high);
            add_pair(cases, test, row, loss_shapes[i], (Layout)layout,
                     layout & 1 ? FORMAT_FP32 : cases->format);
            test->bound[0].result = sum_terms(shape_count(loss_shapes[i])) + 8;
            // Where parts of a term cancel, it errs by units of the largest part.
            test->bound[0].constant = 16 * case_largest(test, 0);
            case_run(cases, test, layout & 1 ? FORMAT_FP32 : cases->format);
        }
}

void cases_loss_backward(Cases *cases) {
    const LossRow *row = loss_row(cases->op);
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
