// What the reference device does over all tensors of a model: the one pass over the gradients, and
// the optimizers against the golden numbers.
#include "tests/plans.h"
#include "tests/unit/ref_arrays.h"

static const MultiKernels *multi;
static Error error;

static View floats(int64_t count, const double *values) {
    return array_of(FORMAT_FP32, 1, &count, values);
}
#define FLOATS(...) floats(sizeof(VALUES(__VA_ARGS__)) / sizeof(double), VALUES(__VA_ARGS__))

// ---- the scan -----------------------------------------------------------------------------------

static void scan_counts_what_the_format_does_to_gradients(void) {
    // Scaled by 4, on the way through fp16: zero, flushed, subnormal, exact, rounded.
    View gradient = FLOATS(0, 0x1p-26, 0x1p-20, -2, 2049);
    GradStats stats;
    StepFlags flags;
    ScaleState scale = {.scale = 4};
    ScanItem item = {.gradient = gradient, .round_to = FORMAT_FP16, .stats = &stats};
    CHECK(multi->scan(&device, SCANS(&item, 1), &scale, &flags, &error));
    CHECK_VALUES(gradient, 0, 0, 0, 0x1p-22, -0.5, 512);
    CHECK_INT(stats.count, 5);
    CHECK_INT(stats.zeros, 1);
    CHECK_INT(stats.flushed, 1);
    CHECK_INT(stats.subnormal, 1);
    CHECK_INT(stats.overflowed + stats.nans + stats.infs, 0);
    CHECK_INT(stats.exponents[-28 - EXPONENT_LOWEST], 1); // true values, before rounding
    CHECK_INT(stats.exponents[-22 - EXPONENT_LOWEST], 1);
    CHECK_INT(stats.exponents[-1 - EXPONENT_LOWEST], 1);
    CHECK_INT(stats.exponents[9 - EXPONENT_LOWEST], 1);
    CHECK_NEAR(stats.largest, 512.25, 0);
    CHECK_NEAR(stats.sum, 512.75 + 0x1p-22 + 0x1p-28, 0);
    CHECK_NEAR(stats.sum_squares, 512.25 * 512.25 + 0.25, 1e-9);
    CHECK_INT(flags.found_inf, 0);
    CHECK_NEAR(flags.clip, 1, 0);
    CHECK_NEAR(flags.largest, 512, 0);
    CHECK_INT(flags.count, 5);
    CHECK_NEAR(flags.sum, 512.5 + 0x1p-22, 0);
    CHECK_NEAR(flags.norm_squared, 512 * 512 + 0.25, 1e-9);
}

static void scan_tells_overflow_from_infinity_and_nan(void) {
    View low = FLOATS(65520, INFINITY, -INFINITY, NAN, 3), clean = FLOATS(4);
    GradStats stats;
    StepFlags flags = {.clip = 0.5f};
    ScanItem items[] = {{.gradient = low, .round_to = FORMAT_FP16, .stats = &stats},
                        {.gradient = clean, .round_to = FORMAT_FP32}};
    CHECK(multi->scan(&device, SCANS(items, 2), NULL, &flags, &error));
    CHECK_INT(stats.overflowed, 1);
    CHECK_INT(stats.infs, 2);
    CHECK_INT(stats.nans, 1);
    CHECK_NEAR(stats.sum, 65523, 0);
    CHECK_NEAR(stats.largest, 65520, 0);
    CHECK_INT(flags.found_inf, 1);
    CHECK_INT(flags.count, 2);
    CHECK_NEAR(flags.norm_squared, 25, 0);
    CHECK_NEAR(flags.clip, 1, 0);
    CHECK_VALUES(low, 0, INFINITY, INFINITY, -INFINITY, NAN, 3);
    // The format of a gradient decides: fp32 holds the same number.
    View wide = FLOATS(65520);
    items[0] = (ScanItem){.gradient = wide, .round_to = FORMAT_BF16, .stats = &stats};
    CHECK(multi->scan(&device, SCANS(items, 1), NULL, &flags, &error));
    CHECK_INT(flags.found_inf, 0);
    CHECK_VALUES(wide, 0, 65536);
    View eight = FLOATS(448, 465);
    items[0] = (ScanItem){.gradient = eight, .round_to = FORMAT_E4M3, .stats = &stats};
    CHECK(multi->scan(&device, SCANS(items, 1), NULL, &flags, &error));
    CHECK_INT(flags.found_inf, 1);
    CHECK_INT(stats.overflowed, 1);
}

static void scan_keeps_extreme_exponents_in_the_outer_bins(void) {
    View gradient = FLOATS(0x1p-100, -0x1p-64, 0x1p63, 0x1p100);
    GradStats stats;
    StepFlags flags;
    ScanItem item = {.gradient = gradient, .round_to = FORMAT_FP32, .stats = &stats};
    CHECK(multi->scan(&device, SCANS(&item, 1), NULL, &flags, &error));
    CHECK_INT(stats.exponents[0], 2);
    CHECK_INT(stats.exponents[EXPONENT_BINS - 1], 2);
}

static void clipping_bounds_the_norm_or_each_value(void) {
    StepFlags flags = {.norm_squared = 25, .clip = 1};
    CHECK(multi->clip_norm(&device, 10, &flags, &error));
    CHECK_NEAR(flags.clip, 1, 0);
    CHECK(multi->clip_norm(&device, 1, &flags, &error));
    CHECK_NEAR(flags.clip, 0.2, 1e-8);
    flags.norm_squared = 0;
    CHECK(multi->clip_norm(&device, 1, &flags, &error));
    CHECK_NEAR(flags.clip, 1, 0);
    View gradient = FLOATS(-3, 0.5, 2, NAN);
    CHECK(multi->clip_value(&device, SCANS(&(ScanItem){.gradient = gradient}, 1), 1, &error));
    CHECK_VALUES(gradient, 0, -1, 0.5, 1, NAN);
    const float half = 0.5f;
    CHECK(multi->multiply(&device, SCANS(&(ScanItem){.gradient = gradient}, 1), &half, &error));
    CHECK_VALUES(gradient, 0, -0.5, 0.25, 0.5, NAN);
}

// ---- updates ------------------------------------------------------------------------------------

static UpdateRule rule_of(OptimizerKind kind, double rate) {
    return (UpdateRule){.kind = kind,
                        .schedule = {.kind = SCHEDULE_CONSTANT, .rate = rate},
                        .beta1 = 0.9f,
                        .beta2 = 0.999f,
                        .epsilon = 1e-8f,
                        .bias_correction = true};
}

// The parameter after `steps` updates from 1 with gradient 0.5, rate 0.1, decay 0.1.
static double after(UpdateRule rule, int steps) {
    UpdateItem item = {.parameter = FLOATS(1),
                       .gradient = FLOATS(0.5),
                       .moment = {FLOATS(rule.kind == OPTIMIZER_SGD ? 9 : 0), FLOATS(0)},
                       .weight_decay = 0.1f};
    Progress progress = {0};
    for (int i = 0; i < steps; i++)
        CHECK(multi->update(&device, &rule, UPDATES(&item, 1), NULL, &progress, &error));
    CHECK_INT(progress.applied, steps);
    return at(&item.parameter, 0);
}

static void adam_and_adamw_give_the_golden_numbers(void) {
    CHECK_NEAR(after(rule_of(OPTIMIZER_ADAM, 0.1), 3), 0.7001746, 1e-6);
    CHECK_NEAR(after(rule_of(OPTIMIZER_ADAMW, 0.1), 3), 0.6732890, 2e-7);
    UpdateRule rule = rule_of(OPTIMIZER_ADAMW, 0.1);
    rule.bias_correction = false; // the first ratio is .05 / sqrt(.00025)
    CHECK_NEAR(after(rule, 1), 1 - 0.1 * (0.05 / sqrt(0.00025) + 0.1), 1e-5);
}

static void sgd_starts_its_momentum_with_the_gradient(void) {
    UpdateRule rule = rule_of(OPTIMIZER_SGD, 0.1);
    CHECK_NEAR(after(rule, 1), 1 - 0.1 * 0.6, 1e-7);
    CHECK_NEAR(after(rule, 2), 0.94 - 0.1 * 0.594, 1e-7);
    rule.momentum = 0.5f;
    CHECK_NEAR(after(rule, 1), 0.94, 1e-7);
    CHECK_NEAR(after(rule, 2), 0.94 - 0.1 * (0.594 + 0.5 * 0.6), 1e-7);
    rule.nesterov = true;
    CHECK_NEAR(after(rule, 1), 1 - 0.1 * (0.6 + 0.5 * 0.6), 1e-7);
}

static void lamb_normalises_by_all_gradients_and_trusts_by_tensor(void) {
    UpdateRule rule = rule_of(OPTIMIZER_LAMB, 0.1);
    UpdateItem items[2];
    for (int k = 0; k < 2; k++)
        items[k] = (UpdateItem){.moment = {FLOATS(0, 0), FLOATS(0, 0)}};
    items[0].parameter = FLOATS(3, 4);
    items[0].gradient = FLOATS(1, -1); // first step: u = sign(g), norm sqrt(2); r = 5 / sqrt(2)
    items[1].parameter = FLOATS(0, 0);
    items[1].gradient = FLOATS(2, 2); // no parameter norm: r = 1
    Progress progress = {0};
    CHECK(multi->update(&device, &rule, UPDATES(items, 2), NULL, &progress, &error));
    CHECK_VALUES(items[0].parameter, 1e-6, 3 - 0.5 / sqrt(2), 4 + 0.5 / sqrt(2));
    CHECK_VALUES(items[1].parameter, 1e-6, -0.1, -0.1);
    CHECK_NEAR(at(&items[1].moment[0], 0), 0.2, 1e-7);
    // The norm of all is sqrt(10): with a limit of sqrt(10) / 4, a quarter of each gradient.
    rule.max_grad_norm = (float)(sqrt(10) / 4);
    progress.applied = 0;
    StepFlags flags = {.norm_squared = 10, .clip = 1};
    for (int with_flags = 0; with_flags < 2; with_flags++) {
        set(&items[1].moment[0], 0, 0);
        CHECK(multi->update(&device, &rule, UPDATES(items, 2), with_flags ? &flags : NULL,
                            &progress, &error));
        CHECK_NEAR(at(&items[1].moment[0], 0), 0.05, 1e-6);
    }
    // Clipped to an eighth, the gradients are within the limit.
    flags.clip = 0.125f;
    set(&items[1].moment[0], 0, 0);
    CHECK(multi->update(&device, &rule, UPDATES(items, 2), &flags, &progress, &error));
    CHECK_NEAR(at(&items[1].moment[0], 0), 0.025, 1e-6);
}

static void an_overflow_skips_the_update_bit_for_bit(void) {
    UpdateRule rule = rule_of(OPTIMIZER_ADAM, 0.1);
    UpdateItem item = {.parameter = FLOATS(1),
                       .gradient = FLOATS(NAN),
                       .moment = {FLOATS(0.25), FLOATS(0.125)},
                       .low = array_of(FORMAT_FP16, SHAPE(1), VALUES(7))};
    StepFlags flags = {.found_inf = 1, .clip = 1};
    Progress progress = {.applied = 3};
    CHECK(multi->update(&device, &rule, UPDATES(&item, 1), &flags, &progress, &error));
    CHECK_INT(progress.applied, 3);
    CHECK_INT(progress.skipped, 1);
    CHECK_VALUES(item.parameter, 0, 1);
    CHECK_VALUES(item.moment[0], 0, 0.25);
    CHECK_VALUES(item.moment[1], 0, 0.125);
    CHECK_VALUES(item.low, 0, 7);
}

static void update_clips_and_rewrites_the_low_copy(void) {
    UpdateRule rule = rule_of(OPTIMIZER_SGD, 2);
    rule.schedule = (Schedule){.kind = SCHEDULE_STEP, .rate = 2, .every = 1, .factor = 0.5};
    UpdateItem item = {.parameter = FLOATS(2050),
                       .gradient = FLOATS(4),
                       .low = array(FORMAT_FP16, SHAPE(1)),
                       .group = 1};
    rule.rates = (const double[]){2, 1, 0.5};
    StepFlags flags = {.clip = 0.25f};
    Progress progress = {0};
    CHECK(multi->update(&device, &rule, UPDATES(&item, 1), &flags, &progress, &error));
    CHECK_VALUES(item.parameter, 0, 2049);
    CHECK_VALUES(item.low, 0, 2048);
    CHECK(multi->update(&device, &rule, UPDATES(&item, 1), &flags, &progress, &error));
    CHECK_VALUES(item.parameter, 0, 2048.5); // the rate has halved
}

static void stochastic_rounding_is_unbiased(void) {
    enum { COUNT = 512 };
    UpdateRule rule = rule_of(OPTIMIZER_SGD, 1);
    UpdateItem item = {.parameter = array(FORMAT_BF16, SHAPE(COUNT)),
                       .gradient = array(FORMAT_FP32, SHAPE(COUNT))};
    double mean[3] = {0};
    int differ = 0;
    for (int run = 0; run < 3; run++) { // nearest, then two seeds
        Progress progress = {0};
        rule.stochastic = run > 0;
        rule.random.seed = (uint64_t)run;
        for (int i = 0; i < COUNT; i++) {
            set(&item.parameter, i, -1);
            set(&item.gradient, i, 0x1p-9); // a quarter of the step of bf16 above 1
        }
        CHECK(multi->update(&device, &rule, UPDATES(&item, 1), NULL, &progress, &error));
        for (int i = 0; i < COUNT; i++) {
            double moved = -1 - at(&item.parameter, i);
            CHECK(moved == 0 || moved == 0x1p-7);
            mean[run] += moved / 0x1p-7 / COUNT;
        }
        differ += run == 2 && mean[1] != mean[2];
    }
    CHECK_NEAR(mean[0], 0, 0);
    CHECK_NEAR(mean[1], 0.25, 0.08);
    CHECK_NEAR(mean[2], 0.25, 0.08);
    CHECK_INT(differ, 1);
}

// ---- what follows -------------------------------------------------------------------------------

static void scale_backs_off_if_any_optimizer_overflowed(void) {
    ScaleRule rule = {.kind = SCALE_DYNAMIC,
                      .init = 4,
                      .growth = 2,
                      .backoff = 0.25,
                      .floor = 1,
                      .ceiling = 0x1p24,
                      .interval = 2,
                      .hysteresis = 1};
    ScaleState state = scale_state_initial(&rule);
    StepFlags clean = {.count = 1}, found = {.found_inf = 1};
    const StepFlags *both_clean[] = {&clean, &clean}, *one_found[] = {&clean, &found};
    CHECK(multi->scale_update(&device, &rule, &state, both_clean, 2, &error));
    CHECK_NEAR(state.scale, 4, 0);
    CHECK_INT(state.good, 1);
    CHECK(multi->scale_update(&device, &rule, &state, both_clean, 2, &error));
    CHECK_NEAR(state.scale, 8, 0);
    CHECK(multi->scale_update(&device, &rule, &state, one_found, 2, &error));
    CHECK_NEAR(state.scale, 2, 0);
    CHECK_INT(state.good, 0);
}

static void restore_and_average_heed_the_overflow(void) {
    View now = FLOATS(1, 2), before = FLOATS(5, 6), average = FLOATS(0, 10);
    StepFlags flags = {0};
    CHECK(multi->restore(&device, PAIR(now, before), &flags, &error));
    CHECK_VALUES(now, 0, 1, 2);
    CHECK(multi->average(&device, PAIR(average, now), 0.75, NULL, &error));
    CHECK_VALUES(average, 0, 0.25, 8);
    flags.found_inf = 1;
    CHECK(multi->average(&device, PAIR(average, now), 0.75, &flags, &error));
    CHECK_VALUES(average, 0, 0.25, 8);
    CHECK(multi->restore(&device, PAIR(now, before), &flags, &error));
    CHECK_VALUES(now, 0, 5, 6);
}

int main(void) {
    multi = ref_backend.multi;
    if (!ref_test_begin())
        return 1;
    RUN_TEST(scan_counts_what_the_format_does_to_gradients);
    RUN_TEST(scan_tells_overflow_from_infinity_and_nan);
    RUN_TEST(scan_keeps_extreme_exponents_in_the_outer_bins);
    RUN_TEST(clipping_bounds_the_norm_or_each_value);
    RUN_TEST(adam_and_adamw_give_the_golden_numbers);
    RUN_TEST(sgd_starts_its_momentum_with_the_gradient);
    RUN_TEST(lamb_normalises_by_all_gradients_and_trusts_by_tensor);
    RUN_TEST(an_overflow_skips_the_update_bit_for_bit);
    RUN_TEST(update_clips_and_rewrites_the_low_copy);
    RUN_TEST(stochastic_rounding_is_unbiased);
    RUN_TEST(scale_backs_off_if_any_optimizer_overflowed);
    RUN_TEST(restore_and_average_heed_the_overflow);
    return ref_test_end();
}
