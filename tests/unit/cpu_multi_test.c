// The CPU backend over all tensors at once: the one pass over the gradients counts exactly, and
// updates follow their formulas, at each instruction level.
#include "tests/plans.h"
#include "tests/unit/cpu_fixture.h"

enum { MOST = 100000 };

// ---- the pass over the gradients ----------------------------------------------------------------

static int bin_of(double magnitude) {
    int bin = ilogb(magnitude) - EXPONENT_LOWEST;
    return bin < 0 ? 0 : bin < EXPONENT_BINS ? bin : EXPONENT_BINS - 1;
}

// Numbers over many powers of two, some zero, and on request some that are not finite.
static void draw_gradients(float *out, int64_t count, uint64_t seed, int powers, bool wild) {
    for (int64_t i = 0; i < count; i++) {
        RandomBlock block = random_block(seed, (uint64_t)i);
        out[i] = ldexpf(2 * random_uniform(block.word[0]) - 1, -(int)(block.word[1] % powers));
        if (block.word[2] % 9 == 0)
            out[i] = 0;
        if (wild && block.word[3] % 50 == 0)
            out[i] = block.word[3] % 3 == 0 ? NAN : block.word[3] % 3 == 1 ? INFINITY : 1e30f;
    }
}

static void check_scan(int64_t count, int powers, bool wild, Format round_to, float scale) {
    static float before[MOST];
    float *gradient = numbers(count + 1);
    draw_gradients(gradient, count, (uint64_t)count, powers, wild);
    memcpy(before, gradient, (size_t)count * sizeof *gradient);
    GradStats stats, expected = {.count = (uint64_t)count};
    StepFlags flags;
    ScaleState state = {.scale = scale};
    ScanItem item = {vector(gradient, FORMAT_FP32, count), round_to, &stats, false};
    CHECK(device->backend->multi->scan(device, SCANS(&item, 1), &state, &flags, NULL));
    float inverse = (float)(1.0 / scale);
    bool found = false;
    double squares = 0;
    for (int64_t i = 0; i < count; i++) {
        double rounded = format_round(round_to, before[i], OVERFLOW_TO_SPECIAL);
        double value = fabs((double)before[i] * inverse);
        expected.zeros += before[i] == 0;
        expected.nans += isnan(before[i]) != 0;
        expected.infs += isinf(before[i]) != 0;
        found = found || !isfinite(rounded);
        if (isfinite(rounded)) {
            CHECK(gradient[i] == (float)(rounded * inverse));
            if (isfinite(gradient[i]))
                squares += pow(rounded * inverse, 2);
        }
        if (!isfinite(before[i]))
            continue;
        expected.flushed += before[i] != 0 && rounded == 0;
        expected.overflowed += !isfinite(rounded);
        expected.subnormal +=
            rounded != 0 && fabs(rounded) < format_table[round_to].smallest_normal;
        expected.sum += value;
        if (value > 0)
            expected.exponents[bin_of(value)]++;
    }
#define COUNT(name) CHECK_INT(stats.name, expected.name);
#include "number/statistics.def"
    for (int bin = 0; bin < EXPONENT_BINS; bin++)
        CHECK_INT(stats.exponents[bin], expected.exponents[bin]);
    CHECK_NEAR(stats.sum, expected.sum, 1e-5 * expected.sum);
    CHECK_NEAR(flags.norm_squared, squares, 1e-5 * squares);
    CHECK_INT(flags.found_inf, found);
    give(gradient);
}

static void gradients_are_counted_exactly(void) {
    static const int64_t counts[] = {0, 1, 15, 127, 128, 511, 640, 16384, 16385, 50000, MOST};
    static const Format formats[] = {FORMAT_FP32, FORMAT_FP16, FORMAT_BF16, FORMAT_E5M2,
                                     FORMAT_E4M3};
    static const int powers[] = {1, 9, 20, 28, 100}; // with AVX2 each is counted in another way
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int wild = 0; wild < 2; wild++)
            for (size_t k = 0; k < sizeof powers / sizeof *powers; k++)
                check_scan(counts[i], powers[k], wild, formats[i % 5], wild ? 65536 : 1);
    check_scan(16384, 9, true, FORMAT_FP32, 0x1p-40f); // the largest are inf once unscaled
}

static void tensors_that_threads_share_are_counted_whole(void) {
    enum { ITEMS = 40 };
    ScanItem items[ITEMS];
    static GradStats stats[ITEMS];
    float *data = numbers((int64_t)ITEMS * 50000);
    int64_t sizes[ITEMS], all = 0;
    double squares = 0;
    for (int i = 0; i < ITEMS; i++) {
        sizes[i] = i % 3 == 0 ? 50000 : i % 3 == 1 ? i : 0;
        float *gradient = data + (int64_t)i * 50000;
        for (int64_t k = 0; k < sizes[i]; k++)
            gradient[k] = 0.5f;
        items[i] = (ScanItem){vector(gradient, FORMAT_FP32, sizes[i]), FORMAT_FP32,
                              i == 3 ? NULL : &stats[i], false};
        all += sizes[i];
        squares += (double)sizes[i] * 0.25;
    }
    StepFlags flags;
    CHECK(device->backend->multi->scan(device, SCANS(items, ITEMS), NULL, &flags, NULL));
    CHECK_INT(flags.count, all);
    CHECK_NEAR(flags.norm_squared, squares, 1e-6 * squares);
    for (int i = 0; i < ITEMS; i++) {
        if (i == 3)
            continue;
        CHECK_INT(stats[i].count, sizes[i]);
        CHECK_INT(stats[i].exponents[-1 - EXPONENT_LOWEST], sizes[i]);
        CHECK_NEAR(stats[i].sum, 0.5 * (double)sizes[i], 1e-6);
    }
    give(data);
}

// ---- updates ------------------------------------------------------------------------------------

// Three steps from 1 with gradient 0.5, rate 0.1 and decay 0.1: where it ends.
static float three_steps(OptimizerKind kind, Format low_format, void *low) {
    float p = 1, g = 0.5f, m = 0, v = 0;
    UpdateItem item = {.parameter = vector(&p, FORMAT_FP32, 1),
                       .gradient = vector(&g, FORMAT_FP32, 1),
                       .moment = {vector(&m, FORMAT_FP32, 1), vector(&v, FORMAT_FP32, 1)},
                       .weight_decay = 0.1f};
    if (low)
        item.low = vector(low, low_format, 1);
    UpdateRule rule = {.kind = kind,
                       .schedule = {SCHEDULE_CONSTANT, .rate = 0.1},
                       .momentum = 0.9f,
                       .beta1 = 0.9f,
                       .beta2 = 0.999f,
                       .epsilon = 1e-8f,
                       .bias_correction = true};
    Progress progress = {0};
    StepFlags flags = {.clip = 1};
    for (int step = 0; step < 3; step++)
        CHECK(device->backend->multi->update(device, &rule, UPDATES(&item, 1), &flags, &progress,
                                             NULL));
    float before = p;
    flags.found_inf = 1;
    CHECK(
        device->backend->multi->update(device, &rule, UPDATES(&item, 1), &flags, &progress, NULL));
    CHECK(p == before && progress.applied == 3 && progress.skipped == 1);
    return p;
}

static void updates_follow_their_formulas(void) {
    uint16_t low = 0;
    CHECK_NEAR(three_steps(OPTIMIZER_ADAM, FORMAT_BF16, &low), 0.7001746, 2e-6);
    CHECK_INT(low, 0x3F33); // 0.69921875
    CHECK_NEAR(three_steps(OPTIMIZER_ADAMW, FORMAT_FP32, NULL), 0.6732890, 2e-6);
    double p = 1, velocity = 0;
    for (int step = 0; step < 3; step++) {
        double g = 0.5 + 0.1 * p;
        velocity = step ? 0.9 * velocity + g : g;
        p -= 0.1 * velocity;
    }
    CHECK_NEAR(three_steps(OPTIMIZER_SGD, FORMAT_FP32, NULL), p, 2e-7);
}

static void stochastic_rounding_is_right_on_average(void) {
    enum { COUNT = 40000 };
    uint16_t *p = (uint16_t *)numbers(COUNT);
    float *g = numbers(COUNT);
    for (int i = 0; i < COUNT; i++) {
        p[i] = 0x3F80; // 1
        g[i] = -0.001f;
    }
    UpdateItem item = {.parameter = vector(p, FORMAT_BF16, COUNT),
                       .gradient = vector(g, FORMAT_FP32, COUNT)};
    UpdateRule rule = {.kind = OPTIMIZER_SGD,
                       .schedule = {SCHEDULE_CONSTANT, .rate = 1},
                       .stochastic = true,
                       .random = {.seed = 3}};
    Progress progress = {0};
    CHECK(device->backend->multi->update(device, &rule, UPDATES(&item, 1), NULL, &progress, NULL));
    double sum = 0;
    for (int i = 0; i < COUNT; i++) {
        CHECK(p[i] == 0x3F80 || p[i] == 0x3F81);
        sum += format_decode(FORMAT_BF16, p[i]);
    }
    CHECK_NEAR(sum / COUNT, 1.001, 1e-4); // five deviations
    give(p), give(g);
}

int main(void) {
    if (!cpu_test_begin())
        return 1;
    while (cpu_next_level()) {
        AT_LEVEL(gradients_are_counted_exactly);
        AT_LEVEL(tensors_that_threads_share_are_counted_whole);
        AT_LEVEL(updates_follow_their_formulas);
        AT_LEVEL(stochastic_rounding_is_right_on_average);
    }
    return cpu_test_end();
}
