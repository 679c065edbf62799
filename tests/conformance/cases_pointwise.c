// Cases of point-wise operations and their derivatives.
#include <math.h>
#include <stdlib.h>

#include "tests/conformance/cases.h"

// What pointwise.def says of a function of one number.
typedef struct UnaryRow {
    OpId forward, backward;
    bool saves_result;
    double error, low, high;
} UnaryRow;

enum { SAVE_X, SAVE_Y };

static const UnaryRow unary_rows[] = {
#define UNARY(name, class, saved, forward, derivative, error, low, high, text) \
    {OP_##name, OP_##name##_backward, saved == SAVE_Y, error, low, high},
#include "kernel/pointwise.def"
};

static const UnaryRow *unary_row(OpId op) {
    for (size_t i = 0; i < sizeof unary_rows / sizeof *unary_rows; i++)
        if (unary_rows[i].forward == op || unary_rows[i].backward == op)
            return &unary_rows[i];
    abort();
}

typedef struct Constants {
    double a, b;
} Constants;

// The constants that a function is tried with; exact in fp32, so that the question is the function.
enum { CONSTANTS = 6 };

static int constants_of(const UnaryRow *row, Constants constants[CONSTANTS]) {
    constants[0] = (Constants){0, 0};
    switch (row->forward) {
    case OP_leaky_relu: constants[0] = (Constants){0.25, 0}; return 1;
    case OP_clamp: constants[0] = (Constants){-0.75, 1.5}; return 1;
    case OP_affine:
        constants[0] = (Constants){1.5, -0.25};
        constants[1] = (Constants){-2, 0};
        return 2;
    case OP_pow:
        for (int i = 0; i < CONSTANTS; i++)
            constants[i] = (Constants){(const double[]){2.5, 2, 3, -1, 0, 1}[i], 0};
        return CONSTANTS;
    default: return 1;
    }
}

static const Shape unary_shapes[] = {{2, {33, 17}},     {0, {0}},    {1, {1}},     {1, {7}},
                                     {4, {2, 3, 4, 5}}, {2, {0, 3}}, {2, {65, 64}}};
enum { UNARY_SHAPES = sizeof unary_shapes / sizeof *unary_shapes };

static void unary_case(Cases *cases, const UnaryRow *row, Constants constants, Shape shape,
                       Layout layout, Values values, Format format, Format out) {
    Case *test = case_new(cases, "%s, a %g, b %g", values_name(values), constants.a, constants.b);
    test->attr.scalar = (ScalarAttr){constants.a, constants.b};
    case_add(cases, test, format, shape, layout, values);
    // Outside the range that the table speaks of, arguments err more.
    test->bound[0].ulps =
        values.kind == VALUES_UNIFORM || !row->error ? row->error : 4 * row->error + 4;
    if (row->forward == OP_affine) // a x and b may cancel
        test->bound[0].constant = 2 * (fabs(constants.a) * case_largest(test, 0) + 1);
    if (row->forward == OP_gelu) // 1 + erf(x) cancels for negative x
        test->bound[0].constant = 2 * fmin(case_largest(test, 0), 4);
    test->zeros_expected = values.kind != VALUES_UNIFORM;
    case_run(cases, test, out);
}

void cases_unary(Cases *cases) {
    const UnaryRow *row = unary_row(cases->op);
    const Values drawn = UNIFORM(row->low, row->high);
    const Format format = cases->format;
    Constants constants[CONSTANTS];
    int count = constants_of(row, constants);
    for (int c = 0; c < count; c++) {
        for (int k = 0; k < EVERY_KIND; k++) {
            unary_case(cases, row, constants[c], SHAPE(16, 33), LIES_DENSE, every_kind[k], format,
                       format);
            unary_case(cases, row, constants[c], SHAPE(16, 33), LIES_DENSE, every_kind[k], format,
                       FORMAT_FP32);
        }
        // Whole powers of negative numbers are numbers.
        if (row->forward == OP_pow)
            unary_case(cases, row, constants[c], SHAPE(33), LIES_DENSE, UNIFORM(-3, -0.2), format,
                       FORMAT_FP32);
        for (int i = 0; i < UNARY_SHAPES; i++)
            for (int layout = 0; layout < LIES_COUNT; layout++)
                unary_case(cases, row, constants[c], unary_shapes[i], (Layout)layout, drawn, format,
                           layout & 1 ? FORMAT_FP32 : format);
        unary_case(cases, row, constants[c], SHAPE(31, 9), LIES_DENSE, drawn, FORMAT_FP32, format);
    }
    unary_case(cases, row, constants[0], SHAPE(70007), LIES_DENSE, drawn, format, format);
    unary_case(cases, row, constants[0], SHAPE(31, 9), LIES_TRANSPOSED, CLASSES(1, 4), FORMAT_INT32,
               FORMAT_FP32);
    unary_case(cases, row, constants[0], SHAPE(40), LIES_DENSE, CLASSES(1, 4), FORMAT_UINT8,
               FORMAT_FP32);
}

// Whether the derivative is a difference, whose parts may cancel.
static bool derivative_cancels(OpId forward) {
    return forward == OP_gelu || forward == OP_silu || forward == OP_tanh || forward == OP_sigmoid;
}

// What a derivative is tried with: gradients that arrive, at inputs drawn from somewhere.
typedef struct Arrival {
    Values gradient, at;
} Arrival;

static void unary_backward_case(Cases *cases, const UnaryRow *row, Constants constants, Shape shape,
                                Layout layout, Arrival arrival, Format dy_format, Format out) {
    const Values gradient = arrival.gradient;
    const ScalarAttr scalar = {constants.a, constants.b};
    Case *test = case_new(cases, "%s at %s, a %g, b %g", values_name(gradient),
                          values_name(arrival.at), scalar.a, scalar.b);
    test->attr.scalar = scalar;
    case_add(cases, test, dy_format, shape, layout, gradient);
    if (row->saves_result) {
        Case *before = case_new_of(row->forward);
        before->attr.scalar = scalar;
        case_add(cases, before, cases->format, shape, LIES_DENSE, arrival.at);
        double *y = case_solve(cases, before, 0);
        case_free(before);
        if (!y) {
            case_free(test);
            return;
        }
        case_add_given(test, cases->format, shape, y);
        free(y);
    } else {
        case_add(cases, test, cases->format, shape, layout, arrival.at);
    }
    test->bound[0].ulps = row->error ? 2 * row->error + 2 : 0;
    if (derivative_cancels(row->forward))
        test->bound[0].constant = (4 * row->error + 8) * case_largest(test, 0);
    test->zeros_expected = shape_count(shape) < 10 || gradient.kind == VALUES_ZEROS ||
                           arrival.at.kind != VALUES_UNIFORM || scalar.a == 0;
    case_run(cases, test, out);
}

void cases_unary_backward(Cases *cases) {
    const UnaryRow *row = unary_row(cases->op);
    const Values usual = UNIFORM(row->low, row->high);
    Constants constants[CONSTANTS];
    int count = constants_of(row, constants);
    for (int c = 0; c < count; c++)
        for (int i = 0; i < UNARY_SHAPES; i++) {
            for (int layout = 0; layout < LIES_COUNT; layout++)
                unary_backward_case(cases, row, constants[c], unary_shapes[i], (Layout)layout,
                                    (Arrival){NORMAL, usual},
                                    layout & 1 ? FORMAT_FP32 : cases->format,
                                    layout == LIES_SLICED ? FORMAT_FP32 : cases->format);
            unary_backward_case(cases, row, constants[c], unary_shapes[i], LIES_DENSE,
                                (Arrival){INTEGERS, usual}, cases->format, cases->format);
        }
    unary_backward_case(cases, row, constants[0], SHAPE(70007), LIES_DENSE,
                        (Arrival){NORMAL, usual}, cases->format, cases->format);
    // Any gradient where the slope is moderate, a moderate one anywhere, and infinities everywhere.
    for (int c = 0; c < count; c++)
        for (int k = 0; k < EVERY_KIND; k++) {
            // Of three factors and a half, one on the way may be larger than the result.
            Values any = every_sum(k, cases->format, 1, 1);
            const Arrival arrivals[] = {{any, usual},
                                        {UNIFORM(1, 4), every_kind[k]},
                                        {any, INTEGERS},
                                        {SPECIAL, every_kind[k]}};
            // What a slope that is nearly 0 makes of an infinity hangs on the last digits.
            bool chosen = row->error <= 1 || (row->forward == OP_pow && constants[c].a == 0);
            for (int a = 0; a < (chosen ? 4 : 3); a++)
                unary_backward_case(cases, row, constants[c], SHAPE(16, 33), LIES_DENSE,
                                    arrivals[a], cases->format, FORMAT_FP32);
        }
}

// ---- two numbers --------------------------------------------------------------------------------

typedef struct Broadcast {
    Shape x, y;
    Layout x_lies, y_lies;
} Broadcast;

static const Broadcast broadcasts[] = {
    {{2, {13, 21}}, {2, {13, 21}}, LIES_DENSE, LIES_DENSE},
    {{2, {13, 21}}, {1, {21}}, LIES_DENSE, LIES_DENSE},
    {{2, {13, 21}}, {2, {13, 1}}, LIES_DENSE, LIES_DENSE},
    {{2, {13, 1}}, {2, {1, 21}}, LIES_DENSE, LIES_DENSE},
    {{0, {0}}, {2, {5, 6}}, LIES_DENSE, LIES_DENSE},
    {{1, {7}}, {0, {0}}, LIES_DENSE, LIES_DENSE},
    {{0, {0}}, {0, {0}}, LIES_DENSE, LIES_DENSE},
    {{1, {1}}, {1, {1}}, LIES_DENSE, LIES_DENSE},
    {{4, {2, 3, 4, 5}}, {4, {2, 1, 1, 5}}, LIES_DENSE, LIES_DENSE},
    {{4, {2, 3, 4, 5}}, {3, {3, 1, 5}}, LIES_PERMUTED, LIES_DENSE},
    {{2, {13, 21}}, {2, {13, 21}}, LIES_TRANSPOSED, LIES_DENSE},
    {{2, {13, 21}}, {2, {13, 21}}, LIES_SLICED, LIES_STEPPED},
    {{2, {13, 21}}, {2, {13, 21}}, LIES_BROADCAST, LIES_TRANSPOSED},
    {{3, {5, 6, 7}}, {3, {5, 6, 7}}, LIES_STEPPED, LIES_BROADCAST},
    {{6, {2, 1, 3, 2, 1, 5}}, {5, {4, 1, 2, 3, 1}}, LIES_DENSE, LIES_DENSE},
    {{2, {0, 3}}, {1, {3}}, LIES_DENSE, LIES_DENSE},
};
enum { BROADCASTS = sizeof broadcasts / sizeof *broadcasts };

static void binary_case(Cases *cases, const Broadcast *broadcast, Values values, Format y_format,
                        Format out) {
    Case *test = case_new(cases, "%s", values_name(values));
    case_add(cases, test, cases->format, broadcast->x, broadcast->x_lies, values);
    case_add(cases, test, y_format, broadcast->y, broadcast->y_lies, values);
    // Division may go by way of the reciprocal's last place; the others round once.
    test->bound[0].ulps = cases->op == OP_div ? 1 : 0;
    test->zeros_expected = true; // differences of equals, products with 0
    case_run(cases, test, out);
}

typedef struct WholePair {
    Format x, y, out;
} WholePair;

// Whole numbers between themselves, and beside floating ones: what comes out is promoted.
static void whole_cases(Cases *cases) {
    const WholePair pairs[] = {
        {FORMAT_INT32, FORMAT_INT32, FORMAT_INT32},   {FORMAT_UINT8, FORMAT_UINT8, FORMAT_UINT8},
        {FORMAT_INT32, FORMAT_UINT8, FORMAT_INT32},   {FORMAT_UINT8, FORMAT_INT32, FORMAT_INT32},
        {cases->format, FORMAT_INT32, cases->format}, {FORMAT_UINT8, cases->format, cases->format},
    };
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
        for (int i = 0; i < BROADCASTS; i++) {
            bool few = i & 1 || pairs[p].out == cases->format;
            Case *test =
                case_new(cases, "%s beside %s", format_name(pairs[p].x), format_name(pairs[p].y));
            if (cases->op == OP_where)
                case_add(cases, test, FORMAT_UINT8, broadcasts[i].x, broadcasts[i].x_lies,
                         CLASSES(0, 2));
            case_add(cases, test, pairs[p].x, broadcasts[i].x, broadcasts[i].x_lies,
                     format_is_floating(pairs[p].x) ? INTEGERS : whole_values(pairs[p].x, few));
            case_add(cases, test, pairs[p].y, broadcasts[i].y, broadcasts[i].y_lies,
                     format_is_floating(pairs[p].y) ? INTEGERS : whole_values(pairs[p].y, few));
            // Both are rounded to fp32 before they are divided.
            test->bound[0].ulps = cases->op == OP_div ? 4 : 0;
            test->zeros_expected = true;
            case_run(cases, test, cases->op == OP_div ? FORMAT_FP32 : pairs[p].out);
        }
}

void cases_binary(Cases *cases) {
    whole_cases(cases);
    for (int k = 0; k < EVERY_KIND; k++)
        binary_case(cases, &broadcasts[0], every_kind[k], cases->format, cases->format);
    for (int i = 0; i < BROADCASTS; i++) {
        binary_case(cases, &broadcasts[i], NORMAL, cases->format, cases->format);
        binary_case(cases, &broadcasts[i], INTEGERS, cases->format, cases->format);
        binary_case(cases, &broadcasts[i], NORMAL, FORMAT_FP32, FORMAT_FP32);
    }
    const Broadcast large = {{2, {301, 257}}, {1, {257}}, LIES_DENSE, LIES_DENSE};
    binary_case(cases, &large, NORMAL, cases->format, cases->format);
}

void cases_compare(Cases *cases) {
    whole_cases(cases);
    for (int i = 0; i < BROADCASTS + EVERY_KIND; i++) {
        const Broadcast *broadcast = &broadcasts[i < BROADCASTS ? i : 0];
        // Whole numbers meet their equals often.
        Values values = i < BROADCASTS ? INTEGERS : every_kind[i - BROADCASTS];
        // Numbers that are flushed compare as zeros do: either answer is right.
        if (values.kind == VALUES_SUBNORMAL && cases->format != FORMAT_FP16)
            continue;
        binary_case(cases, broadcast, values, i & 1 ? FORMAT_FP32 : cases->format, FORMAT_UINT8);
    }
}

void cases_where(Cases *cases) {
    whole_cases(cases);
    for (int i = 0; i < BROADCASTS; i++)
        for (int k = 0; k < EVERY_KIND; k++) {
            Case *test = case_new(cases, "%s", values_name(every_kind[k]));
            case_add(cases, test, FORMAT_UINT8, broadcasts[i].x, broadcasts[i].x_lies,
                     CLASSES(0, 2));
            case_add(cases, test, cases->format, broadcasts[i].y, broadcasts[i].y_lies,
                     every_kind[k]);
            case_add(cases, test, k == 1 ? FORMAT_FP32 : cases->format,
                     k & 1 ? SHAPE_OF_NUMBER : broadcasts[i].x, LIES_DENSE, every_kind[k]);
            test->zeros_expected =
                every_kind[k].kind != VALUES_NORMAL || shape_count(broadcasts[i].y) == 1;
            case_run(cases, test, k == 1 ? FORMAT_FP32 : cases->format);
        }
}
