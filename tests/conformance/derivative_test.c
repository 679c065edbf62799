// Every derivative rule against central differences, in float64 on the reference device.
//
// The cases are those of the conformance test: an operation that has a rule is differentiated in
// each case whose inputs are ordinary numbers (kinks, infinities and the ends of formats have no
// derivative to compare). The result is weighted by random numbers and summed; for each floating
// input, the slope along a random direction must be what the walk back says.
//
// Second derivatives the same way: of the gradients of all inputs, weighted and summed, as the
// plain walk gives them, against a walk back over a walk that was recorded.
#include "grad/tape.h"
#include "ops/engine.h"
#include "ops/gradient.h"
#include "tests/conformance/cases.h"
#include "tests/test.h"

static const FamilyCases families[OP_COUNT] = {
#define OP(name, inputs, outputs, class, family, ...) [OP_##name] = cases_##family,
#include "kernel/ops.def"
};

static Engine *engine;
static int compared;      // slopes, of the current operation
static char failure[800]; // the first that differs

// ---- inputs -------------------------------------------------------------------------------------

static double element(const CaseInput *input, int64_t index) {
    int64_t at = input->offset;
    for (int d = input->view.ndim - 1; d >= 0; d--) {
        at += index % input->view.shape[d] * input->view.stride[d];
        index /= input->view.shape[d];
    }
    return input->values[at];
}

// Whether two numbers of a row lie so near to each other that a step may make them change places.
static bool has_ties(const CaseInput *input) {
    int64_t length = input->view.shape[input->view.ndim - 1];
    for (int64_t first = 0; first < view_count(&input->view); first += length)
        for (int64_t i = 0; i < length; i++)
            for (int64_t j = 0; j < i; j++)
                if (!(fabs(input->values[first + i] - input->values[first + j]) > 1e-3))
                    return true;
    return false;
}

// Whether what is the largest, or the smallest, may change places with another: of two numbers of
// which one is taken, or of all that become one.
static bool has_rivals(const Case *test) {
    enum { MOST = 4096 };
    const double near = 1e-3;
    const View *x = &test->input[0].view;
    const bool smallest = test->op == OP_min;
    double extreme[MOST];
    int rivals[MOST] = {0};
    if (view_count(x) > MOST || view_count(&test->output[0]) > MOST)
        return true;
    if (test->op == OP_maximum || test->op == OP_minimum) {
        double least = INFINITY;
        const View *y = &test->input[1].view;
        for (int64_t i = 0; i < view_count(x); i++)
            for (int64_t j = 0; j < view_count(y); j++)
                least =
                    fmin(least, fabs(element(&test->input[0], i) - element(&test->input[1], j)));
        return least < 1e-4;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < view_count(x); i++) {
            int64_t to = 0, step = 1, rest = i;
            for (int d = x->ndim - 1; d >= 0; d--) {
                int64_t at = rest % x->shape[d];
                rest /= x->shape[d];
                if (test->attr.reduce.dims && !(test->attr.reduce.dims >> d & 1)) {
                    to += at * step;
                    step *= x->shape[d];
                }
            }
            double value = smallest ? -element(&test->input[0], i) : element(&test->input[0], i);
            if (pass == 0)
                extreme[to] = rivals[to]++ ? fmax(extreme[to], value) : value;
            else
                rivals[to] += value > extreme[to] - near ? MOST : 0;
        }
    for (int64_t i = 0; i < view_count(&test->output[0]); i++)
        if (rivals[i] >= 2 * MOST)
            return true;
    return false;
}

// Whether a slope exists: finite, of moderate size, and off the quarters on which kinks and ties
// lie; of topk, whose numbers may be whole, all of a row different.
static bool is_smooth(const Case *test) {
    if (test->op == OP_topk)
        return !has_ties(&test->input[0]) && case_largest(test, 0) < 1000;
    const bool chooses = test->op == OP_max || test->op == OP_min || test->op == OP_maximum ||
                         test->op == OP_minimum;
    if (chooses && has_rivals(test))
        return false;
    for (int i = 0; i < test->input_count; i++) {
        const CaseInput *input = &test->input[i];
        if (input->absent || !format_is_floating(input->view.format))
            continue;
        for (int64_t k = 0; k < input->storage; k++) {
            double value = input->values[k];
            bool smooth = fabs(value) > 1e-2 && fabs(value) < 1000 &&
                          fabs(4 * value - rint(4 * value)) > 1e-3;
            if (!isnan(value) && !smooth)
                return false;
        }
        if (view_count(&input->view) == 0)
            return false;
    }
    return true;
}

// The input as a dense tensor: fp64 for floating formats, moved by `step` along `direction`.
static Tensor *tensor_of(const CaseInput *input, const double *direction, double step) {
    int64_t count = view_count(&input->view);
    Format format = format_is_floating(input->view.format) ? FORMAT_FP64 : input->view.format;
    double *wide = malloc((size_t)count * sizeof *wide);
    int32_t *ints = malloc((size_t)count * sizeof *ints);
    uint8_t *bytes = malloc((size_t)count);
    for (int64_t i = 0; i < count; i++) {
        double value = element(input, i);
        wide[i] = value + (direction ? step * direction[i] : 0);
        ints[i] = (int32_t)value;
        bytes[i] = (uint8_t)value;
    }
    const void *host = format == FORMAT_FP64    ? (void *)wide
                       : format == FORMAT_INT32 ? (void *)ints
                                                : bytes;
    Tensor *tensor = tensor_from_host(engine->device, format, input->view.ndim, input->view.shape,
                                      host, MEMORY_DATA, NULL);
    free(wide);
    free(ints);
    free(bytes);
    return tensor;
}

// ---- one operation as a function of its inputs --------------------------------------------------

static double *random_numbers(Cases *cases, int64_t count) {
    double *numbers = malloc((size_t)(count ? count : 1) * sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = cases_uniform(cases) * 2 - 1;
    return numbers;
}

// Outputs that take part: floating ones whose gradient the rules expect to arrive.
static int outputs_that_count(OpId op) {
    return op_table[op].outputs > 0 ? 1 : 0;
}

// The weighted sum of the first output; NULL weights ask for its number of elements in *sum.
static bool run_forward(const Case *test, Tensor *const *inputs, const double *weights, double *sum,
                        Tensor **result, Error *error) {
    Tensor *outputs[OP_MAX_OUTPUTS];
    OpAttr attr = test->attr;
    attr.has_out_format = true;
    attr.out_format = FORMAT_FP64;
    if (!op_apply(engine, test->op, inputs, test->input_count, &attr, outputs, error))
        return false;
    for (int i = outputs_that_count(test->op); i < op_table[test->op].outputs; i++)
        tensor_release(outputs[i]);
    int64_t count = tensor_count(outputs[0]);
    *sum = (double)count;
    if (weights) {
        double *values = malloc((size_t)(count ? count : 1) * sizeof *values);
        *sum = 0;
        bool read =
            outputs[0]->view.format == FORMAT_FP64 && tensor_read(outputs[0], values, error);
        for (int64_t i = 0; read && i < count; i++)
            *sum += weights[i] * values[i];
        free(values);
    }
    if (result)
        *result = outputs[0];
    else
        tensor_release(outputs[0]);
    return true;
}

static bool differentiable_input(const Case *test, int input) {
    if (test->input[input].absent || !format_is_floating(test->input[input].view.format))
        return false;
    if ((test->op == OP_bce || test->op == OP_bce_with_logits) && input == 1)
        return false; // targets of these have no derivative here, by name
    return !(test->op == OP_batch_norm_infer && input > 2); // running statistics are constants
}

static void note(const Case *test, int input, double slope, double expected) {
    if (!failure[0])
        snprintf(failure, sizeof failure,
                 "%s, input %d: the walk back gives %.12g, differences %.12g", test->about, input,
                 slope, expected);
}

// The slope of the weighted sum along `direction` of one input, by differences of the fourth order:
// those of the second err by more than fp32 does where a function bends.
static double slope_by_differences(const Case *test, int moved, const double *direction,
                                   const double *weights) {
    static const double places[] = {-2, -1, 1, 2}, shares[] = {1, -8, 8, -1};
    const double step = 1e-5;
    double sum = 0;
    for (int s = 0; s < 4; s++) {
        Tensor *inputs[OP_MAX_INPUTS] = {NULL};
        double value = 0;
        for (int i = 0; i < test->input_count; i++)
            if (!test->input[i].absent)
                inputs[i] =
                    tensor_of(&test->input[i], i == moved ? direction : NULL, places[s] * step);
        sum += run_forward(test, inputs, weights, &value, NULL, NULL) ? shares[s] * value
                                                                      : (double)NAN;
        for (int i = 0; i < test->input_count; i++)
            tensor_release(inputs[i]);
    }
    return sum / (12 * step);
}

static double slope_by_gradient(const Tensor *input, const double *direction) {
    if (!input->grad)
        return 0;
    int64_t count = tensor_count(input);
    double *values = malloc((size_t)count * sizeof *values), sum = 0;
    bool read = input->grad->view.format == FORMAT_FP64 && tensor_count(input->grad) == count &&
                tensor_read(input->grad, values, NULL);
    for (int64_t i = 0; i < count; i++)
        sum += read ? values[i] * direction[i] : NAN;
    free(values);
    return sum;
}

static void differentiate(Cases *cases, const Case *test) {
    if (!is_smooth(test))
        return;
    Error error = {0};
    Tensor *inputs[OP_MAX_INPUTS] = {NULL};
    Tensor *result = NULL, *seed = NULL;
    double *weights = NULL, count = 0;
    for (int i = 0; i < test->input_count; i++) {
        if (test->input[i].absent)
            continue;
        inputs[i] = tensor_of(&test->input[i], NULL, 0);
        inputs[i]->requires_grad = differentiable_input(test, i);
    }
    bool done = run_forward(test, inputs, NULL, &count, &result, &error);
    if (done && tensor_wants_grad(result) && count > 0) {
        weights = random_numbers(cases, (int64_t)count);
        seed = tensor_from_host(engine->device, FORMAT_FP64, result->view.ndim, result->view.shape,
                                weights, MEMORY_DATA, NULL);
        done = engine_backward(engine, result, seed, NULL, &error);
        for (int i = 0; done && i < test->input_count; i++) {
            if (!inputs[i] || !inputs[i]->requires_grad)
                continue;
            double *direction = random_numbers(cases, tensor_count(inputs[i]));
            double slope = slope_by_gradient(inputs[i], direction);
            double expected = slope_by_differences(test, i, direction, weights);
            // Rounding in the differences themselves: sums of up to thousands, over 1e-5. Digits
            // that pass through fp32 do not come so near. A function that is NaN has no slope.
            if (!isnan(expected) &&
                !(fabs(slope - expected) <= 2e-8 * (1 + fabs(expected) + sqrt(count))))
                note(test, i, slope, expected);
            compared += !isnan(expected);
            free(direction);
        }
    }
    if (!done && !failure[0])
        snprintf(failure, sizeof failure, "%s: %s", test->about, error.text);
    free(weights);
    tensor_release(seed);
    tensor_release(result);
    for (int i = 0; i < test->input_count; i++)
        tensor_release(inputs[i]);
}

// ---- derivatives of derivatives -----------------------------------------------------------------

static Tensor *random_like(Cases *cases, const View *view) {
    double *numbers = random_numbers(cases, view_count(view));
    Tensor *tensor = tensor_from_host(engine->device, FORMAT_FP64, view->ndim, view->shape, numbers,
                                      MEMORY_DATA, NULL);
    free(numbers);
    return tensor;
}

// The sum of the products of two tensors, added to *total.
static bool add_product(Tensor **total, Tensor *x, Tensor *y, Error *error) {
    OpAttr attr = {.out_format = FORMAT_FP64, .has_out_format = true};
    Tensor *product = op_two(engine, OP_mul, x, y, &attr, error);
    Tensor *sum = product ? op_one(engine, OP_sum, product, &attr, error) : NULL;
    Tensor *next =
        sum && *total ? op_two(engine, OP_add, *total, sum, &attr, error) : tensor_hold(sum);
    tensor_release(product);
    tensor_release(sum);
    tensor_release(*total);
    *total = next;
    return next != NULL;
}

typedef struct Second { // what the gradients are weighted by
    Tensor *seed, *weights[OP_MAX_INPUTS];
} Second;

// The weighted sum of the gradients of all inputs; NULL without an error where none arrives.
static Tensor *gradients_weighted(const Case *test, Tensor *const *inputs, const Second *by,
                                  bool recorded, Error *error) {
    double count;
    Tensor *result = NULL, *total = NULL, *wanted[OP_MAX_INPUTS], *gradients[OP_MAX_INPUTS] = {0};
    int places[OP_MAX_INPUTS], found = 0;
    for (int i = 0; i < test->input_count; i++)
        if (inputs[i] && inputs[i]->requires_grad) {
            wanted[found] = inputs[i];
            places[found++] = i;
        }
    const BackwardOptions options = {
        .create_graph = recorded, .inputs = wanted, .results = gradients, .input_count = found};
    bool done = run_forward(test, inputs, NULL, &count, &result, error) &&
                engine_backward(engine, result, by->seed, &options, error);
    for (int i = 0; i < found; i++) {
        done = done &&
               (!gradients[i] || add_product(&total, gradients[i], by->weights[places[i]], error));
        tensor_release(gradients[i]);
    }
    tensor_release(result);
    if (done)
        return total;
    tensor_release(total);
    return NULL;
}

static double second_by_differences(const Case *test, int moved, const double *direction,
                                    const Second *by) {
    static const double places[] = {-2, -1, 1, 2}, shares[] = {1, -8, 8, -1};
    const double step = 1e-4;
    double sum = 0;
    for (int s = 0; s < 4; s++) {
        Tensor *inputs[OP_MAX_INPUTS] = {NULL};
        double value = 0;
        for (int i = 0; i < test->input_count; i++)
            if (!test->input[i].absent) {
                inputs[i] =
                    tensor_of(&test->input[i], i == moved ? direction : NULL, places[s] * step);
                inputs[i]->requires_grad = differentiable_input(test, i);
            }
        Tensor *total = gradients_weighted(test, inputs, by, false, NULL);
        if (total && !tensor_item(total, &value, NULL))
            value = NAN;
        sum += shares[s] * value;
        tensor_release(total);
        for (int i = 0; i < test->input_count; i++)
            tensor_release(inputs[i]);
    }
    return sum / (12 * step);
}

// Large cases would take minutes.
static bool is_small(const Case *test) {
    int64_t count = 0;
    for (int i = 0; i < test->input_count; i++)
        if (!test->input[i].absent)
            count += view_count(&test->input[i].view);
    return count <= 4000;
}

static void differentiate_twice(Cases *cases, const Case *test) {
    if (!is_smooth(test) || !is_small(test))
        return;
    Error error = {0};
    Tensor *inputs[OP_MAX_INPUTS] = {NULL}, *result = NULL;
    Second by = {.seed = NULL};
    double count = 0;
    for (int i = 0; i < test->input_count; i++) {
        if (test->input[i].absent)
            continue;
        inputs[i] = tensor_of(&test->input[i], NULL, 0);
        inputs[i]->requires_grad = differentiable_input(test, i);
        by.weights[i] = random_like(cases, &inputs[i]->view);
    }
    bool done = run_forward(test, inputs, NULL, &count, &result, &error);
    if (done && tensor_wants_grad(result) && count > 0) {
        by.seed = random_like(cases, &result->view);
        Tensor *total = gradients_weighted(test, inputs, &by, true, &error);
        done = total || error.code == ERROR_NONE;
        if (total && tensor_wants_grad(total))
            done = engine_backward(engine, total, NULL, NULL, &error);
        tensor_release(total);
        for (int i = 0; done && i < test->input_count; i++) {
            if (!inputs[i] || !inputs[i]->requires_grad)
                continue;
            double *direction = random_numbers(cases, tensor_count(inputs[i]));
            double slope = slope_by_gradient(inputs[i], direction);
            double expected = second_by_differences(test, i, direction, &by);
            if (!isnan(expected) &&
                !(fabs(slope - expected) <= 2e-7 * (1 + fabs(expected) + sqrt(count))))
                note(test, i, slope, expected);
            compared += !isnan(expected);
            free(direction);
        }
    }
    if (!done && !failure[0])
        snprintf(failure, sizeof failure, "%s: %s", test->about, error.text);
    tensor_release(by.seed);
    tensor_release(result);
    for (int i = 0; i < test->input_count; i++) {
        tensor_release(inputs[i]);
        tensor_release(by.weights[i]);
    }
}

static void slopes_agree(void) {
    CHECK_MESSAGE(!failure[0], "%s", failure);
    CHECK_MESSAGE(compared > 0, "no case was smooth enough to compare");
}

static void examine(OpId op, Device *device, const char *what,
                    void (*runner)(Cases *cases, const Case *test)) {
    Report report = {0};
    Cases cases = {.op = op,
                   .compute = FORMAT_COUNT,
                   .format = FORMAT_FP32,
                   .ref = device,
                   .ref_report = &report,
                   .random = (uint64_t)op + 77,
                   .runner = runner};
    compared = 0;
    failure[0] = 0;
    families[op](&cases);
    char name[64];
    snprintf(name, sizeof name, "%s of %s", what, op_table[op].name);
    test_run(name, slopes_agree);
}

int main(void) {
    Error error = {0};
    Device *device;
    Preset preset;
    if (!device_open("ref", 1, &device, &error) ||
        !preset_resolve("fp32", device, &preset, NULL, 0, &error) ||
        !(engine = engine_new(device, &preset, 1, &error))) {
        printf("not ok derivatives: %s\n", error.text);
        return 1;
    }
    for (int op = 0; op < OP_COUNT; op++) {
        if (!gradient_table[op]->rule)
            continue;
        examine((OpId)op, device, "derivative", differentiate);
        examine((OpId)op, device, "second derivative", differentiate_twice);
    }
    engine_free(engine);
    device_close(device);
    return test_end();
}
