#include "tests/conformance/rounded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/allocator.h"
#include "kernel/int8.h"
#include "kernel/scale.h"
#include "tests/conformance/truth.h"

// ---- what there is ------------------------------------------------------------------------------

static void append(Rounding *list, int *count, Format format, const char *recipe, bool is_named) {
    Rounding *rounding = &list[(*count)++];
    *rounding = (Rounding){.format = format};
    if (!recipe_parse(recipe, &rounding->recipe, NULL))
        abort();
    snprintf(rounding->name, sizeof rounding->name, "%s", is_named ? recipe : format_name(format));
}

int rounding_list(Rounding list[ROUNDINGS_MOST]) {
    int count = 0;
    for (int f = 0; f < FORMAT_COUNT; f++) {
        const Format format = (Format)f;
        if (!format_is_scaled(format) && format_table[format].scaled != SCALED_ROW)
            continue;
        append(list, &count, format, "fp8=current", false);
        if (recipe_delays(&recipe_usual, format)) // then there are other ways
            append(list, &count, format, "fp8=blocks", true);
    }
    return count;
}

OpId rounding_asked_of(const Rounding *rounding, OpId op) {
    const bool is_gradient = op == OP_conv2d_backward_input || op == OP_conv2d_backward_weight;
    return is_gradient && format_is_scaled(rounding->format) ? OP_conv2d : op;
}

bool rounding_serves(const Rounding *rounding, OpId op) {
    return format_is_scaled(rounding->format) ? scale_serves(rounding_asked_of(rounding, op))
                                              : int8_serves(op);
}

// ---- by definition ------------------------------------------------------------------------------

// What the two factors are, and the dimensions that each is summed over: of a convolution's weight
// the channels that it reads, or, gone through backwards, those that it writes; of that weight's
// gradient every place in every image. Negative ones count from the end.
typedef struct Product {
    OpId op;
    FactorRole role[2];
    int first[2], dims;
    bool of_weight;
} Product;

static const Product products[] = {
    {OP_matmul, {FACTOR_ACTIVATION, FACTOR_ACTIVATION}, {-1, -2}, 1, false},
    {OP_linear, {FACTOR_ACTIVATION, FACTOR_WEIGHT}, {-1, -1}, 1, false},
    {OP_conv2d, {FACTOR_ACTIVATION, FACTOR_WEIGHT}, {-1, -1}, 1, false},
    {OP_conv2d_backward_input, {FACTOR_GRADIENT, FACTOR_WEIGHT}, {-1, 0}, 1, false},
    {OP_conv2d_backward_weight, {FACTOR_ACTIVATION, FACTOR_GRADIENT}, {0, 0}, 3, true},
    {OP_conv_transpose2d, {FACTOR_ACTIVATION, FACTOR_WEIGHT}, {-1, 0}, 1, false},
};

static const Product *product_of(OpId op) {
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (products[i].op == op)
            return &products[i];
    abort(); // a product that takes scaled factors, and has no definition here
}

static double *numbers_for(const CaseInput *input) {
    double *numbers = malloc(((size_t)view_count(&input->view) + 1) * sizeof *numbers);
    if (!numbers)
        abort();
    return numbers;
}

static CaseInput dense_input(Format format, const View *like, const double *values) {
    Shape shape = {.ndim = like->ndim};
    for (int i = 0; i < like->ndim; i++)
        shape.size[i] = like->shape[i];
    Case *holder = case_new_of(OP_scale_factor);
    case_add_given(holder, format, shape, values);
    CaseInput input = holder->input[0];
    holder->input[0].values = NULL;
    case_free(holder);
    return input;
}

static bool define_elements(const Rounding *rounding, Case *test, double *worth[2]) {
    const Product *product = product_of(test->op);
    bool done = true;
    for (int i = 0; i < 2; i++) {
        const View *view = &test->input[i].view;
        ScaleAttr *by = &test->rounded[i].by;
        *by =
            recipe_scale(&rounding->recipe, rounding->format, product->role[i], product->of_weight);
        by->first = product->first[i] < 0 ? view->ndim + product->first[i] : product->first[i];
        by->dims = product->dims;
        Case factor = {.op = OP_scale_factor, .input_count = 1, .attr.factor.by = *by};
        factor.input[0] = test->input[i];
        done = done && (view_count(view) == 0 || truth_scale_factor(&factor, worth[i]));
        test->rounded[i].from = test->input[i];
    }
    return done;
}

// Steps of a scale, which the nearest is taken of; NaN is 0.
static double whole_of(double x, float step) {
    const double steps = nearbyint((double)(float)(x * (double)(1.0f / step)));
    return isnan(steps) ? 0 : fmax(fmin(steps, INT8_LARGEST), -INT8_LARGEST);
}

static bool is_small(double x) {
    return x != 0 && fabs(x) < 0x1p-100;
}

// Of all numbers but the few largest, which are clipped.
static bool define_whole_input(Case *test, double *worth) {
    const CaseInput *x = &test->input[0];
    const float step = int8_step((float)(case_largest(test, 0) * 0.75));
    for (int64_t i = 0; i < view_count(&x->view); i++) {
        const double value = (double)truth_element(x, i);
        if (is_small(value))
            return false;
        worth[i] = whole_of(value, step) * (double)step;
    }
    test->attr.int8.step = step;
    test->rounded[0].from = *x;
    return true;
}

static bool define_whole_weight(Case *test, double *worth) {
    const CaseInput *w = &test->input[1];
    const int64_t rows = w->view.shape[0], depth = rows ? view_count(&w->view) / rows : 0;
    double *whole = numbers_for(w);
    bool done = true;
    test->steps = malloc(((size_t)rows + 1) * sizeof *test->steps);
    if (!test->steps)
        abort();
    test->step_count = rows;
    for (int64_t row = 0; row < rows && done; row++) {
        double largest = 0;
        for (int64_t i = row * depth; i < (row + 1) * depth; i++) {
            const double value = (double)truth_element(w, i);
            done = done && isfinite(value) && !is_small(value);
            largest = fmax(largest, fabs(value));
        }
        test->steps[row] = int8_step((float)largest);
        for (int64_t i = row * depth; i < (row + 1) * depth; i++) {
            whole[i] = whole_of((double)truth_element(w, i), test->steps[row]);
            worth[i] = whole[i] * (double)test->steps[row];
        }
    }
    test->rounded[1].from = dense_input(FORMAT_INT8, &w->view, whole);
    if (done)
        free(w->values);
    else
        free(test->rounded[1].from.values);
    free(whole);
    return done;
}

// How many roundings in fp32 lie between a term of the exact sum and one of the device's: each
// scale of more digits rounds what its elements are worth, and the product of both what the sum is.
static double roundings_of(const Case *test) {
    double count = 0;
    for (int i = 0; i < 2; i++)
        count += test->rounded[i].by.scale == FORMAT_E8M0 ? 0 : 3;
    return count;
}

bool rounding_define(const Rounding *rounding, Case *test) {
    double *worth[2] = {numbers_for(&test->input[0]), numbers_for(&test->input[1])};
    test->is_rounded = format_is_scaled(rounding->format) ? define_elements(rounding, test, worth)
                                                          : define_whole_input(test, worth[0]) &&
                                                                define_whole_weight(test, worth[1]);
    for (int i = 0; i < 2; i++) {
        if (test->is_rounded)
            test->input[i] = dense_input(FORMAT_FP32, &test->input[i].view, worth[i]);
        free(worth[i]);
    }
    for (int i = 0; i < test->output_count; i++)
        test->bound[i].absolute += roundings_of(test);
    return test->is_rounded;
}

// ---- on a device --------------------------------------------------------------------------------

static bool leaves_apart(const Device *device, const Case *test, int i) {
    return device->backend->parts_scales && scale_parts(&test->rounded[i].by);
}

// What both factors are kept in that are to meet: bf16 where it holds what either is worth.
static Format kept_in(const Device *device, const Case *test) {
    for (int i = 0; i < 2; i++)
        if (test->rounded[i].by.scale != FORMAT_E8M0 && !leaves_apart(device, test, i))
            return FORMAT_FP32;
    return FORMAT_BF16;
}

static bool take(void **memory, Device *device, size_t bytes, Error *error) {
    *memory = allocator_take(device->allocator, bytes ? bytes : 1, MEMORY_DATA, error);
    return *memory != NULL;
}

static bool make_elements(RoundedFactors *factors, Device *device, const Case *test,
                          KernelCall *call, OpAttr *attr, Error *error) {
    for (int i = 0; i < 2; i++) {
        OpAttr own = {.factor.by = test->rounded[i].by};
        KernelCall round = {.op = OP_scale_factor, .input_count = 1, .output_count = 1};
        const View *x = &call->input[i];
        View worth = view_dense(NULL, kept_in(device, test), x->ndim, x->shape);
        const size_t bytes = (size_t)view_count(&worth) * format_table[worth.format].bytes;
        if (!take(&factors->worth[i], device, bytes, error) ||
            (leaves_apart(device, test, i) &&
             !take(&factors->apart[i], device, sizeof(float), error)))
            return false;
        worth.data = factors->worth[i];
        own.factor.by.apart = factors->apart[i];
        attr->times[i] = factors->apart[i];
        round.attr = &own;
        round.input[0] = *x;
        round.output[0] = worth;
        if (!device_run(device, &round, error))
            return false;
        call->input[i] = worth;
    }
    return true;
}

// Weights were rounded when the case was made: devices are given them so.
static bool give_steps(RoundedFactors *factors, Device *device, const Case *test, OpAttr *attr,
                       Error *error) {
    const size_t bytes = (size_t)test->step_count * sizeof *test->steps;
    if (!take(&factors->steps, device, bytes, error))
        return false;
    device_write(device, factors->steps, test->steps, bytes);
    attr->int8.steps = factors->steps;
    return true;
}

bool rounded_make(RoundedFactors *factors, Device *device, const Case *test, KernelCall *call,
                  OpAttr *attr, Error *error) {
    return test->steps ? give_steps(factors, device, test, attr, error)
                       : make_elements(factors, device, test, call, attr, error);
}

void rounded_clear(RoundedFactors *factors, Device *device) {
    void *memory[] = {factors->worth[0], factors->worth[1], factors->apart[0], factors->apart[1],
                      factors->steps};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        if (memory[i])
            allocator_give(device->allocator, memory[i]);
    *factors = (RoundedFactors){.steps = NULL};
}
