// The harness must bite: a device with a known fault is held against the reference, and every fault
// must be found. The faulty device is the reference device with one thing done wrong.
#include <math.h>

#include "tests/conformance/cases.h"
#include "tests/test.h"

typedef enum Plant {
    PLANT_NONE,
    PLANT_LAST_PLACES, // one element off by a few units of its last place
    PLANT_BEHIND,      // one element written past the end
    PLANT_BEFORE,      // one written before the beginning
    PLANT_NO_NAN,      // NaN comes out as a number
    PLANT_SIGN_OF_INFINITY,
    PLANT_ZEROS,        // nothing but zeros
    PLANT_UNTOUCHED,    // nothing at all
    PLANT_STRIDES,      // inputs read as if they were dense
    PLANT_BROADCAST,    // strides of 0 taken for 1
    PLANT_INPUT,        // an input is overwritten
    PLANT_CLEARS_FIRST, // the output is cleared before the inputs are read
    PLANT_LARGER,       // every element is larger by a little
    PLANT_AT_LIMIT,     // the last number below 2 comes out as 2
    PLANT_ROUNDED_LOW,  // the result goes through bf16 on its way
    PLANT_SUBNORMALS,   // subnormal fp16 numbers come out as 0
    PLANT_NO_REFUSAL,   // a class past the end is taken
    PLANT_SILENT_LABEL, // the refusal does not name the index
    PLANT_FAILS,
    // Formulas that were once in use, on this device and on the reference alike.
    PLANT_MULTIPLIED,    // a gradient is multiplied by 0 or 1 instead of chosen
    PLANT_POWER_SLOPE,   // x^0 has the slope 0 x^-1
    PLANT_COMMON_OFFSET, // the largest and the logarithm of the sum are subtracted as one number
    PLANT_KEPT_AS_ONE,   // they are kept for the gradient as one number
    PLANT_NOT_HELD,      // bce has the logarithm of 0
    PLANT_BIAS_LATE,     // a bias is added to what has been rounded
    PLANT_COUNT
} Plant;

static Plant fault; // what the faulty device does at the moment

static View dense_again(const View *view) {
    return view_dense(view->data, view->format, view->ndim, view->shape);
}

static KernelCall with_wrong_strides(const KernelCall *call) {
    KernelCall changed = *call;
    for (int i = 0; i < call->input_count; i++) {
        if (fault == PLANT_STRIDES)
            changed.input[i] = dense_again(&call->input[i]);
        for (int d = 0; fault == PLANT_BROADCAST && d < call->input[i].ndim; d++)
            if (changed.input[i].stride[d] == 0)
                changed.input[i].stride[d] = 1;
    }
    return changed;
}

static void set_element(const View *view, int64_t index, uint32_t bits) {
    switch (format_table[view->format].bytes) {
    case 4: ((uint32_t *)view->data)[index] = bits; break;
    case 2: ((uint16_t *)view->data)[index] = (uint16_t)bits; break;
    default: ((uint8_t *)view->data)[index] = (uint8_t)bits; break;
    }
}

static uint32_t get_element(const View *view, int64_t index) {
    switch (format_table[view->format].bytes) {
    case 4: return ((const uint32_t *)view->data)[index];
    case 2: return ((const uint16_t *)view->data)[index];
    default: return ((const uint8_t *)view->data)[index];
    }
}

static void change_every_element(const View *view, double (*change)(double value)) {
    for (int64_t i = 0; i < view_count(view); i++) {
        double value = format_decode(view->format, get_element(view, i));
        set_element(view, i, format_encode(view->format, change(value), OVERFLOW_SATURATES));
    }
}

static double without_nan(double value) {
    return isnan(value) ? 1 : value;
}

static double without_sign_of_infinity(double value) {
    return isinf(value) ? (double)INFINITY : value;
}

static double zero(double value) {
    return 0 * (isfinite(value) ? value : 0);
}

static double through_bf16(double value) {
    return format_round(FORMAT_BF16, value, OVERFLOW_SATURATES);
}

static double larger(double value) {
    return value + 0.0003;
}

static double at_limit(double value) {
    return value == format_below(FORMAT_FP16, 2) ? 2 : value;
}

static double without_subnormals(double value) {
    return fabs(value) < format_table[FORMAT_FP16].smallest_normal ? 0 : value;
}

static void spoil(const KernelCall *call) {
    static double (*const changes[PLANT_COUNT])(double value) = {
        [PLANT_NO_NAN] = without_nan,
        [PLANT_SIGN_OF_INFINITY] = without_sign_of_infinity,
        [PLANT_ZEROS] = zero,
        [PLANT_LARGER] = larger,
        [PLANT_AT_LIMIT] = at_limit,
        [PLANT_ROUNDED_LOW] = through_bf16,
        [PLANT_SUBNORMALS] = without_subnormals,
    };
    const View *y = &call->output[0];
    int64_t count = view_count(y), last = count - 1;
    if (changes[fault])
        change_every_element(y, changes[fault]);
    else if (fault == PLANT_LAST_PLACES && count)
        set_element(y, last, get_element(y, last) + 3);
    else if (fault == PLANT_BEHIND)
        set_element(y, count, 0);
    else if (fault == PLANT_BEFORE)
        set_element(y, -1, 0);
    else if (fault == PLANT_INPUT)
        set_element(&call->input[0], 0, 0x1234);
}

// ---- formulas of old ----------------------------------------------------------------------------

static double number_at(const View *view, int64_t index) {
    if (view->format == FORMAT_FP64)
        return ((const double *)view->data)[index];
    return format_decode(view->format, get_element(view, index));
}

static void put_number(const View *view, int64_t index, double value) {
    if (view->format == FORMAT_FP64)
        ((double *)view->data)[index] = value;
    else
        set_element(view, index, format_encode(view->format, value, OVERFLOW_SATURATES));
}

// relu, clamp and abs all have slopes of -1, 0 or 1, which the kernel itself gives for a dy of 1.
static void multiply_by_slope(Device *device, const KernelCall *call) {
    extern const Backend ref_backend;
    KernelCall slopes = *call;
    Error error;
    int64_t count = view_count(&call->output[0]);
    float one = 1;
    if (!view_is_dense(&call->input[0]))
        return; // the fault is the formula's alone
    slopes.input[0] = call->output[0];
    slopes.input[0].data = &one;
    slopes.input[0].format = FORMAT_FP32;
    memset(slopes.input[0].stride, 0, sizeof slopes.input[0].stride);
    double *arriving = malloc((size_t)(count + 1) * sizeof *arriving);
    for (int64_t i = 0; i < count; i++)
        arriving[i] = number_at(&call->input[0], i);
    bool done = ref_backend.kernels[call->op](device, &slopes, &error);
    for (int64_t i = 0; done && i < count; i++)
        put_number(&call->output[0], i, arriving[i] * number_at(&call->output[0], i));
    free(arriving);
}

static void slope_of_power(const KernelCall *call) {
    double a = call->attr->scalar.a;
    for (int64_t i = 0; a == 0 && i < view_count(&call->output[0]); i++)
        if (view_is_dense(&call->input[0]) && view_is_dense(&call->input[1]))
            put_number(&call->output[0], i,
                       number_at(&call->input[0], i) *
                           (a * pow(number_at(&call->input[1], i), a - 1)));
}

// log_softmax as x - (largest + log sum), in fp32 on a device in fp32 and in double on the
// reference.
static void subtract_as_one(const KernelCall *call) {
    const View *x = &call->input[0], *y = &call->output[0];
    int64_t length = x->shape[x->ndim - 1];
    for (int64_t row = 0; row < view_count(x); row += length) {
        double largest = -(double)INFINITY, sum = 0;
        for (int64_t j = 0; j < length; j++)
            largest = fmax(largest, number_at(x, row + j));
        for (int64_t j = 0; j < length; j++)
            sum += exp(number_at(x, row + j) - largest);
        double one = largest + log(sum);
        for (int64_t j = 0; j < length; j++)
            put_number(y, row + j,
                       number_at(x, row + j) - (y->format == FORMAT_FP64 ? one : (float)one));
    }
}

static void keep_as_one(const KernelCall *call) {
    const View *sums = &call->output[1];
    int64_t rows = view_count(sums) / 2;
    for (int64_t row = 0; row < rows; row++) {
        put_number(sums, row, (float)(number_at(sums, row) + number_at(sums, rows + row)));
        put_number(sums, rows + row, 0);
    }
}

static void let_logarithms_go(const KernelCall *call) {
    const View *x = &call->input[0], *t = &call->input[1];
    double sum = 0;
    int64_t count = view_count(x);
    if (!view_is_dense(x) || !view_is_dense(t))
        return;
    for (int64_t i = 0; i < count; i++) {
        double p = number_at(x, i), wanted = number_at(t, i);
        sum -= wanted * log(p) + (1 - wanted) * log(1 - p);
    }
    put_number(&call->output[0], 0, sum / (double)count);
}

static bool add_bias_late(Device *device, const KernelCall *call, Error *error) {
    extern const Backend ref_backend;
    KernelCall bare = *call;
    const View *y = &call->output[0], *bias = &call->input[2];
    bare.input[2].data = NULL;
    if (!ref_backend.kernels[call->op](device, &bare, error))
        return false;
    for (int64_t i = 0; bias->data && i < view_count(y); i++)
        put_number(y, i, number_at(y, i) + number_at(bias, i % y->shape[3]));
    return true;
}

static void compute_as_of_old(Device *device, const KernelCall *call) {
    if (fault == PLANT_MULTIPLIED)
        multiply_by_slope(device, call);
    else if (fault == PLANT_POWER_SLOPE)
        slope_of_power(call);
    else if (fault == PLANT_COMMON_OFFSET)
        subtract_as_one(call);
    else if (fault == PLANT_KEPT_AS_ONE && call->op == OP_cross_entropy)
        keep_as_one(call);
    else if (fault == PLANT_NOT_HELD)
        let_logarithms_go(call);
}

static bool faulty_kernel(Device *device, const KernelCall *call, Error *error) {
    extern const Backend ref_backend;
    if (fault == PLANT_BIAS_LATE)
        return add_bias_late(device, call, error);
    if (fault == PLANT_UNTOUCHED)
        return true;
    if (fault == PLANT_FAILS)
        return error_fail(error, ERROR_FAILED, "planted");
    if (fault == PLANT_CLEARS_FIRST)
        change_every_element(&call->output[0], zero);
    KernelCall changed = with_wrong_strides(call);
    bool done = ref_backend.kernels[call->op](device, &changed, error);
    if (!done && fault == PLANT_NO_REFUSAL)
        return true;
    if (!done)
        return fault == PLANT_SILENT_LABEL
                   ? error_fail(error, ERROR_FAILED, "something is wrong somewhere")
                   : false;
    spoil(call);
    compute_as_of_old(device, call);
    return true;
}

static const FamilyCases families[OP_COUNT] = {
#define OP(name, inputs, outputs, class, family, ...) [OP_##name] = cases_##family,
#include "kernel/ops.def"
};

// All cases of an operation on the faulty device. on_both: the reference device has the fault too,
// so that only the definition can tell.
typedef struct Found {
    Report of_ref, of_device;
} Found;

static Found found_in(Plant planted, OpId op, Format format, bool on_both) {
    static Kernel kernels[OP_COUNT];
    Found found = {.of_ref = {0}};
    Error error;
    Device *ref, *faulty;
    if (!device_open("ref", 1, &ref, &error) || !device_open("ref", 1, &faulty, &error)) {
        found.of_ref.failures = found.of_device.failures = -1;
        return found;
    }
    for (int i = 0; i < OP_COUNT; i++)
        kernels[i] = faulty_kernel;
    Backend backend = *faulty->backend;
    backend.kernels = kernels;
    faulty->backend = &backend;
    if (on_both)
        ref->backend = &backend;
    Cases cases = {.op = op,
                   .compute = FORMAT_COUNT,
                   .format = format,
                   .ref = ref,
                   .ref_report = &found.of_ref,
                   .devices = &faulty,
                   .reports = &found.of_device,
                   .device_count = 1,
                   .random = 1,
                   .until_failure = planted != PLANT_NONE};
    fault = planted;
    families[op](&cases);
    device_close(faulty);
    device_close(ref);
    return found;
}

static Report report_of(Plant planted, OpId op, Format format) {
    Found found = found_in(planted, op, format, false);
    CHECK_MESSAGE(found.of_ref.failures == 0, "%s", found.of_ref.first);
    return found.of_device;
}

// A fault that the reference device shares.
static void check_told_by_definition(Plant planted, OpId op, Format format) {
    Found found = found_in(planted, op, format, true);
    CHECK_MESSAGE(found.of_ref.failures > 0, "%s in %s: the fault that both share is not found",
                  op_table[op].name, format_name(format));
}

static void check_found(Plant planted, OpId op, Format format) {
    Report report = report_of(planted, op, format);
    CHECK_MESSAGE(report.failures > 0, "%s in %s: the fault is not found in %d cases",
                  op_table[op].name, format_name(format), report.cases);
}

static void no_fault_is_found_where_there_is_none(void) {
    static const OpId ops[] = {OP_add, OP_relu, OP_conv2d, OP_sum, OP_softmax, OP_gather};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        Report report = report_of(PLANT_NONE, ops[i], FORMAT_FP16);
        CHECK_MESSAGE(report.failures == 0 && report.cases > 0, "%s", report.first);
    }
}

// Operations whose results have one right rounding, and a product's cases of whole numbers.
static void an_element_off_by_last_places_is_found(void) {
    static const OpId ops[] = {OP_relu, OP_add, OP_conv2d, OP_max, OP_where, OP_cat};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        check_found(PLANT_LAST_PLACES, ops[i], i & 1 ? FORMAT_FP32 : FORMAT_BF16);
}

static void a_write_outside_an_output_is_found(void) {
    check_found(PLANT_BEHIND, OP_mul, FORMAT_FP32);
    check_found(PLANT_BEHIND, OP_softmax, FORMAT_FP16);
    check_found(PLANT_BEFORE, OP_mul, FORMAT_BF16);
}

static void a_lost_nan_or_sign_is_found(void) {
    check_found(PLANT_NO_NAN, OP_add, FORMAT_FP16);
    check_found(PLANT_NO_NAN, OP_conv2d, FORMAT_BF16);
    check_found(PLANT_SIGN_OF_INFINITY, OP_conv2d, FORMAT_FP16);
    check_found(PLANT_SIGN_OF_INFINITY, OP_neg, FORMAT_FP32);
}

static void zeros_and_untouched_results_are_found(void) {
    check_found(PLANT_ZEROS, OP_layer_norm, FORMAT_FP32);
    check_found(PLANT_ZEROS, OP_attention_backward, FORMAT_BF16);
    check_found(PLANT_ZEROS, OP_cross_entropy, FORMAT_FP16);
    check_found(PLANT_UNTOUCHED, OP_avg_pool2d, FORMAT_FP16);
    check_found(PLANT_FAILS, OP_avg_pool2d, FORMAT_FP16);
}

static void strides_that_are_ignored_are_found(void) {
#if defined(__SANITIZE_ADDRESS__) // reading beyond the input ends the program there
    SKIP("the sanitizer finds this fault itself");
    return;
#endif
    check_found(PLANT_STRIDES, OP_tanh, FORMAT_FP32);
    check_found(PLANT_STRIDES, OP_attention, FORMAT_FP16);
    check_found(PLANT_STRIDES, OP_sum, FORMAT_BF16);
    check_found(PLANT_BROADCAST, OP_sub, FORMAT_FP32);
}

static void an_input_that_is_overwritten_is_found(void) {
    check_found(PLANT_INPUT, OP_cast, FORMAT_FP32);
}

static void an_output_that_spoils_the_input_it_lies_on_is_found(void) {
    check_found(PLANT_CLEARS_FIRST, OP_add, FORMAT_FP32);
    check_found(PLANT_CLEARS_FIRST, OP_mul, FORMAT_BF16);
}

static void rounding_twice_or_too_low_is_found(void) {
    check_found(PLANT_ROUNDED_LOW, OP_layer_norm, FORMAT_FP16);
    check_found(PLANT_ROUNDED_LOW, OP_attention, FORMAT_BF16);
    check_found(PLANT_ROUNDED_LOW, OP_mse, FORMAT_FP32);
    check_found(PLANT_ROUNDED_LOW, OP_conv2d_backward_weight, FORMAT_FP32);
}

static void random_numbers_in_the_wrong_place_are_found(void) {
    check_found(PLANT_LARGER, OP_uniform, FORMAT_FP32);
    check_found(PLANT_LARGER, OP_uniform, FORMAT_BF16);
    check_found(PLANT_LARGER, OP_uniform, FORMAT_FP16);
    check_found(PLANT_AT_LIMIT, OP_uniform, FORMAT_FP16);
}

static void lost_subnormals_of_fp16_are_found(void) {
    check_found(PLANT_SUBNORMALS, OP_conv2d, FORMAT_FP16);
    check_found(PLANT_SUBNORMALS, OP_relu, FORMAT_FP16);
}

static void values_that_should_be_refused_are_found(void) {
    check_found(PLANT_NO_REFUSAL, OP_cross_entropy, FORMAT_FP32);
    check_found(PLANT_SILENT_LABEL, OP_embedding, FORMAT_FP32);
}

static void a_gradient_that_is_multiplied_by_0_is_found(void) {
    static const OpId ops[] = {OP_relu_backward, OP_clamp_backward, OP_abs_backward};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int both = 0; both < 2; both++)
            (both ? check_told_by_definition : check_found)(PLANT_MULTIPLIED, ops[i],
                                                            both ? FORMAT_FP16 : FORMAT_FP32);
    check_found(PLANT_POWER_SLOPE, OP_pow_backward, FORMAT_FP32);
    check_told_by_definition(PLANT_POWER_SLOPE, OP_pow_backward, FORMAT_FP16);
}

static void a_common_offset_that_takes_digits_is_found(void) {
    check_found(PLANT_COMMON_OFFSET, OP_log_softmax, FORMAT_FP32);
    check_told_by_definition(PLANT_COMMON_OFFSET, OP_log_softmax, FORMAT_FP32);
    check_told_by_definition(PLANT_KEPT_AS_ONE, OP_cross_entropy_backward, FORMAT_FP32);
}

static void a_logarithm_of_0_and_a_late_bias_are_found(void) {
    check_found(PLANT_NOT_HELD, OP_bce, FORMAT_FP32);
    check_told_by_definition(PLANT_NOT_HELD, OP_bce, FORMAT_FP32);
    check_found(PLANT_BIAS_LATE, OP_conv_transpose2d, FORMAT_FP16);
}

// The bounds themselves, at the edges of the formats.
static void numbers_are_accepted_up_to_their_bounds(void) {
    CHECK(compare_number(FORMAT_FP32, 1, 1, 0));
    CHECK(!compare_number(FORMAT_FP32, 1 + 0x1p-23, 1, 0));
    CHECK(compare_number(FORMAT_FP32, 1 + 0x1p-23, 1, 0x1p-23));
    CHECK(compare_number(FORMAT_BF16, 1, 1 + 0x1p-8, 0)); // a tie: to even
    CHECK(!compare_number(FORMAT_BF16, 1 + 0x1p-7, 1 + 0x1p-8, 0));
    CHECK(compare_number(FORMAT_FP16, (double)INFINITY, 65520, 0));
    CHECK(!compare_number(FORMAT_FP16, 65504, 65520, 0));
    CHECK(compare_number(FORMAT_FP16, 65504, 65520, 1));
    CHECK(!compare_number(FORMAT_FP32, (double)NAN, 1, 1));
    CHECK(!compare_number(FORMAT_FP32, 1, (double)NAN, 1));
    CHECK(!compare_number(FORMAT_FP32, (double)INFINITY, -(double)INFINITY, 1));
    CHECK(compare_number(FORMAT_FP32, 0, 0x1p-127, 0)); // may be flushed
    CHECK(!compare_number(FORMAT_FP32, 0, 0x1p-126, 0));
    CHECK(!compare_number(FORMAT_FP16, 0, 0x1p-24, 0));
}

int main(void) {
    RUN_TEST(no_fault_is_found_where_there_is_none);
    RUN_TEST(an_element_off_by_last_places_is_found);
    RUN_TEST(a_write_outside_an_output_is_found);
    RUN_TEST(a_lost_nan_or_sign_is_found);
    RUN_TEST(zeros_and_untouched_results_are_found);
    RUN_TEST(strides_that_are_ignored_are_found);
    RUN_TEST(an_input_that_is_overwritten_is_found);
    RUN_TEST(an_output_that_spoils_the_input_it_lies_on_is_found);
    RUN_TEST(rounding_twice_or_too_low_is_found);
    RUN_TEST(random_numbers_in_the_wrong_place_are_found);
    RUN_TEST(lost_subnormals_of_fp16_are_found);
    RUN_TEST(values_that_should_be_refused_are_found);
    RUN_TEST(a_gradient_that_is_multiplied_by_0_is_found);
    RUN_TEST(a_common_offset_that_takes_digits_is_found);
    RUN_TEST(a_logarithm_of_0_and_a_late_bias_are_found);
    RUN_TEST(numbers_are_accepted_up_to_their_bounds);
    return test_end();
}
