// The CPU backend: each instruction level gives what plain C gives, the one pass over the gradients
// counts exactly, and the same call gives the same bits.
#include "cpu/cpu.h"
#include "kernel/allocator.h"
#include "kernel/random.h"
#include "tests/test.h"

enum { MOST = 100000 };

static Device *device;
static int level;

static float *numbers(int64_t count) {
    return allocator_take(device->allocator, (size_t)count * sizeof(float), MEMORY_DATA, NULL);
}
static void give(void *memory) {
    allocator_give(device->allocator, memory);
}

// Numbers in (-1, 1) of a stream.
static void draw(float *out, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count; i++)
        out[i] = 2 * random_uniform(random_block(seed, (uint64_t)i).word[0]) - 1;
}

static View vector(void *data, Format format, int64_t count) {
    return view_dense(data, format, 1, (int64_t[]){count});
}
static View matrix(void *data, Format format, int64_t rows, int64_t columns) {
    return view_dense(data, format, 2, (int64_t[]){rows, columns});
}

static bool run(KernelCall call) {
    static const OpAttr none;
    Error error = {0};
    for (int i = 0; i < OP_MAX_INPUTS && call.input[i].data; i++)
        call.input_count = i + 1;
    for (int i = 0; i < OP_MAX_OUTPUTS && call.output[i].data; i++)
        call.output_count = i + 1;
    if (!call.attr)
        call.attr = &none;
    bool done = device_run(device, &call, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    return done;
}

// ---- element by element -------------------------------------------------------------------------

static double true_gelu(double x) {
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}
static double true_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static void functions_are_near_the_truth(void) {
    static const struct {
        OpId op;
        double (*truth)(double);
        double scale;
    } rows[] = {{OP_exp, exp, 80},
                {OP_tanh, tanh, 6},
                {OP_sigmoid, true_sigmoid, 20},
                {OP_gelu, true_gelu, 4},
                {OP_softplus, NULL, 20}};
    const int64_t count = 3001;
    float *x = numbers(count), *y = numbers(count);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        draw(x, count, k);
        for (int64_t i = 0; i < count; i++)
            x[i] *= (float)rows[k].scale;
        run((KernelCall){.op = rows[k].op,
                         .input = {vector(x, FORMAT_FP32, count)},
                         .output = {vector(y, FORMAT_FP32, count)}});
        for (int64_t i = 0; i < count; i++) {
            double truth = rows[k].truth ? rows[k].truth((double)x[i]) : log1p(exp((double)x[i]));
            CHECK_MESSAGE(fabs(y[i] - truth) <= 1e-6 * fabs(truth) + 1e-7,
                          "%s(%g) is %.9g, expected %.9g", op_table[rows[k].op].name, x[i], y[i],
                          truth);
        }
    }
    give(x), give(y);
}

static void special_values_come_through(void) {
    float x[] = {INFINITY, -INFINITY, NAN, 0, -1}, *y = numbers(5);
    KernelCall call = {.input = {vector(x, FORMAT_FP32, 5)}, .output = {vector(y, FORMAT_FP32, 5)}};
    call.op = OP_exp;
    run(call);
    CHECK(isinf(y[0]) && y[1] == 0 && isnan(y[2]) && y[3] == 1);
    call.op = OP_log;
    run(call);
    CHECK(isinf(y[0]) && isnan(y[1]) && isnan(y[2]) && y[3] == -INFINITY && isnan(y[4]));
    call.op = OP_tanh;
    run(call);
    CHECK(y[0] == 1 && y[1] == -1 && isnan(y[2]) && y[3] == 0);
    call.op = OP_relu;
    run(call);
    CHECK(isinf(y[0]) && y[1] == 0 && isnan(y[2]) && y[4] == 0);
    give(y);
}

static void strides_and_broadcasts_are_followed(void) {
    enum { ROWS = 37, COLUMNS = 29 };
    float *x = numbers(ROWS * COLUMNS), *bias = numbers(COLUMNS), *y = numbers(ROWS * COLUMNS);
    draw(x, ROWS * COLUMNS, 1);
    draw(bias, COLUMNS, 2);
    View turned = matrix(x, FORMAT_FP32, ROWS, COLUMNS);
    turned.stride[0] = 1;
    turned.stride[1] = ROWS;
    run((KernelCall){.op = OP_sub,
                     .input = {turned, vector(bias, FORMAT_FP32, COLUMNS)},
                     .output = {matrix(y, FORMAT_FP32, ROWS, COLUMNS)}});
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            CHECK(y[r * COLUMNS + c] == x[c * ROWS + r] - bias[c]);
    give(x), give(bias), give(y);
}

static void casts_keep_whole_numbers(void) {
    int32_t from[] = {16777217, -16777219, 7}, to[6];
    View spread = vector(from, FORMAT_INT32, 3);
    run((KernelCall){.op = OP_cast, .input = {spread}, .output = {vector(to, FORMAT_INT32, 3)}});
    CHECK(memcmp(from, to, sizeof from) == 0);
    uint8_t pixels[] = {0, 128, 255};
    float out[3];
    run((KernelCall){.op = OP_cast,
                     .input = {vector(pixels, FORMAT_UINT8, 3)},
                     .output = {vector(out, FORMAT_FP32, 3)}});
    CHECK(out[0] == 0 && out[1] == 128 && out[2] == 255);
}

// ---- sums, rows, norms --------------------------------------------------------------------------

static void columns_are_summed(void) {
    static const int64_t shapes[][2] = {{1, 1},     {7, 3},    {256, 10},
                                        {1000, 32}, {333, 65}, {64, 1024}};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        int64_t rows = shapes[k][0], columns = shapes[k][1];
        float *x = numbers(rows * columns), *y = numbers(columns);
        draw(x, rows * columns, k);
        OpAttr attr = {.reduce = {.dims = 1}};
        run((KernelCall){.op = OP_sum,
                         .attr = &attr,
                         .input = {matrix(x, FORMAT_FP32, rows, columns)},
                         .output = {vector(y, FORMAT_FP32, columns)}});
        for (int64_t c = 0; c < columns; c++) {
            double sum = 0;
            for (int64_t r = 0; r < rows; r++)
                sum += x[r * columns + c];
            CHECK_NEAR(y[c], sum, 2e-5);
        }
        give(x), give(y);
    }
}

static void extremes_let_nan_win(void) {
    float x[100], y;
    for (int at = 0; at < 100; at += 33) {
        for (int i = 0; i < 100; i++)
            x[i] = (float)(i % 7);
        KernelCall call = {.op = OP_max,
                           .input = {vector(x, FORMAT_FP32, 100)},
                           .output = {view_dense(&y, FORMAT_FP32, 0, NULL)}};
        run(call);
        CHECK(y == 6);
        x[at] = at % 2 ? NAN : -NAN;
        run(call);
        CHECK(isnan(y));
        call.op = OP_min;
        run(call);
        CHECK(isnan(y));
    }
}

static void softmax_survives_large_logits(void) {
    float x[] = {1000, 1001, 999, -1000}, y[4];
    run((KernelCall){.op = OP_softmax,
                     .input = {matrix(x, FORMAT_FP32, 1, 4)},
                     .output = {matrix(y, FORMAT_FP32, 1, 4)}});
    CHECK_NEAR(y[0] + y[1] + y[2] + y[3], 1, 1e-6);
    CHECK_NEAR(y[1] / y[0], exp(1), 1e-5);
    CHECK(y[3] == 0);
}

static void a_class_past_the_end_is_named(void) {
    float logits[60] = {0}, loss, sums[6];
    int32_t classes[6] = {0, 1, 2, -1, 9, 12};
    OpAttr attr = {0};
    KernelCall call = {
        .op = OP_cross_entropy,
        .attr = &attr,
        .input_count = 2,
        .output_count = 2,
        .input = {matrix(logits, FORMAT_FP32, 6, 10), vector(classes, FORMAT_INT32, 6)},
        .output = {view_dense(&loss, FORMAT_FP32, 0, NULL), vector(sums, FORMAT_FP32, 6)}};
    Error error = {0};
    CHECK(!device_run(device, &call, &error));
    CHECK_TEXT(error.text, "class 12 at row 5: the logits have 10 classes");
    classes[5] = 3;
    CHECK(device_run(device, &call, &error));
    CHECK_NEAR(loss, log(10), 1e-6);
}

static void a_distant_mean_leaves_the_variance(void) {
    enum { ROWS = 500, CHANNELS = 3 };
    float *x = numbers(ROWS * CHANNELS), *y = numbers(ROWS * CHANNELS);
    float weight[] = {1, 2, 0}, bias[] = {0, 1, 5}, mean[CHANNELS], inverse[CHANNELS];
    draw(x, ROWS * CHANNELS, 5);
    for (int i = 0; i < ROWS * CHANNELS; i++)
        x[i] = 1000 + x[i];
    OpAttr attr = {.norm = {.epsilon = 1e-5}};
    run((KernelCall){
        .op = OP_batch_norm,
        .attr = &attr,
        .input = {matrix(x, FORMAT_FP32, ROWS, CHANNELS), vector(weight, FORMAT_FP32, CHANNELS),
                  vector(bias, FORMAT_FP32, CHANNELS)},
        .output = {matrix(y, FORMAT_FP32, ROWS, CHANNELS), vector(mean, FORMAT_FP32, CHANNELS),
                   vector(inverse, FORMAT_FP32, CHANNELS)}});
    for (int c = 0; c < CHANNELS; c++) {
        double sum = 0, squares = 0;
        for (int r = 0; r < ROWS; r++)
            sum += x[r * CHANNELS + c];
        for (int r = 0; r < ROWS; r++)
            squares += pow(x[r * CHANNELS + c] - sum / ROWS, 2);
        CHECK_NEAR(inverse[c] * sqrt(squares / ROWS + 1e-5), 1, 1e-5);
        CHECK_NEAR(mean[c], sum / ROWS, 1e-4);
    }
    CHECK(y[2] == 5);
    give(x), give(y);
}

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
    GradStats stats, expected = {0};
    StepFlags flags;
    ScaleState state = {.scale = scale};
    ScanItem item = {vector(gradient, FORMAT_FP32, count), round_to, &stats};
    CHECK(device->backend->multi->scan(device, &item, 1, &state, &flags, NULL));
    float inverse = (float)(1.0 / scale);
    bool found = false;
    double squares = 0;
    for (int64_t i = 0; i < count; i++) {
        double rounded = format_round(round_to, before[i], OVERFLOW_TO_SPECIAL);
        double value = fabs((double)before[i] * inverse);
        expected.zeros += before[i] == 0;
        expected.nans += isnan(before[i]) != 0;
        expected.infinities += isinf(before[i]) != 0;
        found = found || !isfinite(rounded);
        if (isfinite(rounded)) {
            CHECK(gradient[i] == (float)(rounded * inverse));
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
    CHECK_INT(stats.count, count);
    CHECK_INT(stats.zeros, expected.zeros);
    CHECK_INT(stats.nans, expected.nans);
    CHECK_INT(stats.infinities, expected.infinities);
    CHECK_INT(stats.flushed, expected.flushed);
    CHECK_INT(stats.subnormal, expected.subnormal);
    CHECK_INT(stats.overflowed, expected.overflowed);
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
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int wild = 0; wild < 2; wild++)
            for (int powers = 20; powers <= 100; powers += 80)
                check_scan(counts[i], powers, wild, formats[i % 5], wild ? 65536 : 1);
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
                              i == 3 ? NULL : &stats[i]};
        all += sizes[i];
        squares += (double)sizes[i] * 0.25;
    }
    StepFlags flags;
    CHECK(device->backend->multi->scan(device, items, ITEMS, NULL, &flags, NULL));
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
                       .lr_factor = 1,
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
        CHECK(device->backend->multi->update(device, &rule, &item, 1, &flags, &progress, NULL));
    float before = p;
    flags.found_inf = 1;
    CHECK(device->backend->multi->update(device, &rule, &item, 1, &flags, &progress, NULL));
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
                       .gradient = vector(g, FORMAT_FP32, COUNT),
                       .lr_factor = 1};
    UpdateRule rule = {.kind = OPTIMIZER_SGD,
                       .schedule = {SCHEDULE_CONSTANT, .rate = 1},
                       .stochastic = true,
                       .random = {.seed = 3}};
    Progress progress = {0};
    CHECK(device->backend->multi->update(device, &rule, &item, 1, NULL, &progress, NULL));
    double sum = 0;
    for (int i = 0; i < COUNT; i++) {
        CHECK(p[i] == 0x3F80 || p[i] == 0x3F81);
        sum += format_decode(FORMAT_BF16, p[i]);
    }
    CHECK_NEAR(sum / COUNT, 1.001, 1e-4); // five deviations
    give(p), give(g);
}

// ---- the whole device ---------------------------------------------------------------------------

static void the_same_call_gives_the_same_bits(void) {
    enum { ROWS = 700, COLUMNS = 140 };
    float *x = numbers(ROWS * COLUMNS), *y = numbers(COLUMNS), first[COLUMNS];
    draw(x, ROWS * COLUMNS, 9);
    OpAttr attr = {.reduce = {.dims = 1}};
    for (int i = 0; i < 5; i++) {
        run((KernelCall){.op = OP_sum,
                         .attr = &attr,
                         .input = {matrix(x, FORMAT_FP32, ROWS, COLUMNS)},
                         .output = {vector(y, FORMAT_FP32, COLUMNS)}});
        if (i == 0)
            memcpy(first, y, sizeof first);
        CHECK(memcmp(first, y, sizeof first) == 0);
    }
    give(x), give(y);
}

static void random_numbers_do_not_depend_on_the_level(void) {
    enum { COUNT = 1237 };
    float *y = numbers(COUNT);
    OpAttr attr = {.create = {.ndim = 1, .shape = {COUNT}, .a = 0, .b = 1},
                   .random = {.seed = 11, .offset = 5}};
    run((KernelCall){.op = OP_uniform, .attr = &attr, .output = {vector(y, FORMAT_FP32, COUNT)}});
    for (int i = 0; i < COUNT; i++)
        CHECK(y[i] == random_uniform(random_block(11, 5 + (uint64_t)i / 4).word[i % 4]));
    run((KernelCall){.op = OP_normal, .attr = &attr, .output = {vector(y, FORMAT_FP32, COUNT)}});
    for (int i = 0; i + 1 < COUNT; i += 2) {
        RandomBlock block = random_block(11, 5 + (uint64_t)i / 4);
        double radius = sqrt(-2 * log(1 - (double)random_uniform(block.word[i % 4])));
        double angle = 2 * 3.14159265358979 * random_uniform(block.word[i % 4 + 1]);
        CHECK_NEAR(y[i], radius * cos(angle), 2e-6);
        CHECK_NEAR(y[i + 1], radius * sin(angle), 2e-6);
    }
    give(y);
}

// Half of them lie nearer to the limit than to the only number below it.
static void uniform_numbers_stay_below_their_limit(void) {
    enum { COUNT = 1000 };
    static const Format formats[] = {FORMAT_FP32, FORMAT_BF16, FORMAT_FP16};
    float *y = numbers(COUNT), *wide = numbers(COUNT);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        double limit = 1 + ldexp(1, -format_table[formats[f]].mantissa_bits);
        OpAttr attr = {.create = {.ndim = 1, .shape = {COUNT}, .a = 1, .b = limit},
                       .random = {.seed = 11, .offset = 5}};
        View made = vector(y, formats[f], COUNT);
        run((KernelCall){.op = OP_uniform, .attr = &attr, .output = {made}});
        run((KernelCall){
            .op = OP_cast, .input = {made}, .output = {vector(wide, FORMAT_FP32, COUNT)}});
        for (int i = 0; i < COUNT; i++)
            CHECK_MESSAGE(wide[i] == 1, "%s: %.9g", format_name(formats[f]), (double)wide[i]);
    }
    give(y), give(wide);
}

static void denormals_are_flushed_in_every_thread(void) {
    enum { COUNT = 1 << 20 };
    float *x = numbers(COUNT);
    for (int i = 0; i < COUNT; i++)
        x[i] = 1e-30f;
    run((KernelCall){.op = OP_mul,
                     .input = {vector(x, FORMAT_FP32, COUNT), vector(x, FORMAT_FP32, COUNT)},
                     .output = {vector(x, FORMAT_FP32, COUNT)}});
    uint32_t any = 0, bits;
    for (int i = 0; i < COUNT; i++, any |= bits)
        memcpy(&bits, &x[i], sizeof bits);
    CHECK_INT(any, 0);
    give(x);
}

// ---- attention ----------------------------------------------------------------------------------

enum { TIME = 70, DEPTH = 4 }; // queries that see some keys, whole vectors of them and a rest

// Causal attention of one head, and its gradients for dy = v: in double, as the formula says.
typedef struct TrueAttention {
    double y[TIME][DEPTH], dq[TIME][DEPTH], dk[TIME][DEPTH], dv[TIME][DEPTH];
} TrueAttention;

static double dot_of(const float *a, const float *b) {
    double sum = 0;
    for (int d = 0; d < DEPTH; d++)
        sum += (double)a[d] * (double)b[d];
    return sum;
}

static TrueAttention true_attention(float (*q)[DEPTH], float (*k)[DEPTH], float (*v)[DEPTH]) {
    TrueAttention truth = {0};
    for (int i = 0; i < TIME; i++) {
        double share[TIME], sum = 0, delta = 0;
        for (int j = 0; j <= i; j++)
            sum += share[j] = exp(dot_of(q[i], k[j]));
        for (int j = 0; j <= i; j++) {
            share[j] /= sum;
            delta += share[j] * dot_of(v[i], v[j]);
            for (int d = 0; d < DEPTH; d++)
                truth.y[i][d] += share[j] * (double)v[j][d];
        }
        for (int j = 0; j <= i; j++)
            for (int d = 0; d < DEPTH; d++) {
                double score = share[j] * (dot_of(v[i], v[j]) - delta);
                truth.dq[i][d] += score * (double)k[j][d];
                truth.dk[j][d] += score * (double)q[i][d];
                truth.dv[j][d] += share[j] * (double)v[i][d];
            }
    }
    return truth;
}

static void attention_is_near_the_truth(void) {
    enum { ALL = TIME * DEPTH, ARRAYS = 7 }; // q k v, y dq dk dv
    float *memory = numbers(ARRAYS * ALL + TIME);
    View array[ARRAYS],
        sums = view_dense(memory + ARRAYS * ALL, FORMAT_FP32, 3, (int64_t[]){1, 1, TIME});
    for (int i = 0; i < ARRAYS; i++)
        array[i] = view_dense(memory + i * ALL, FORMAT_FP32, 4, (int64_t[]){1, TIME, 1, DEPTH});
    draw(memory, 3 * ALL, 31);
    OpAttr attr = {.attention = {.scale = 1, .causal = true}};
    run((KernelCall){.op = OP_attention,
                     .attr = &attr,
                     .input = {array[0], array[1], array[2]},
                     .output = {array[3], sums}});
    run((KernelCall){.op = OP_attention_backward,
                     .attr = &attr,
                     .input = {array[2], array[0], array[1], array[2], array[3], sums},
                     .output = {array[4], array[5], array[6]}});
    TrueAttention truth = true_attention(array[0].data, array[1].data, array[2].data);
    const double *expected = &truth.y[0][0];
    for (int i = 0; i < 4 * ALL; i++)
        CHECK_NEAR(memory[3 * ALL + i], expected[i], 1e-5);
    give(memory);
}

#define AT_LEVEL(test)                                                                  \
    do {                                                                                \
        char name_[128];                                                                \
        snprintf(name_, sizeof name_, "%s %s", #test, isa_level_name((IsaLevel)level)); \
        test_run(name_, test);                                                          \
    } while (0)

int main(void) {
    Error error = {0};
    if (!device_open("cpu", 2, &device, &error)) {
        printf("not ok cpu_opens: %s\n", error.text);
        return 1;
    }
    for (level = 0; level < ISA_COUNT && cpu_set_level(device, (IsaLevel)level); level++) {
        AT_LEVEL(functions_are_near_the_truth);
        AT_LEVEL(special_values_come_through);
        AT_LEVEL(strides_and_broadcasts_are_followed);
        AT_LEVEL(casts_keep_whole_numbers);
        AT_LEVEL(columns_are_summed);
        AT_LEVEL(extremes_let_nan_win);
        AT_LEVEL(softmax_survives_large_logits);
        AT_LEVEL(a_class_past_the_end_is_named);
        AT_LEVEL(a_distant_mean_leaves_the_variance);
        AT_LEVEL(gradients_are_counted_exactly);
        AT_LEVEL(tensors_that_threads_share_are_counted_whole);
        AT_LEVEL(updates_follow_their_formulas);
        AT_LEVEL(stochastic_rounding_is_right_on_average);
        AT_LEVEL(the_same_call_gives_the_same_bits);
        AT_LEVEL(random_numbers_do_not_depend_on_the_level);
        AT_LEVEL(uniform_numbers_stay_below_their_limit);
        AT_LEVEL(attention_is_near_the_truth);
        AT_LEVEL(denormals_are_flushed_in_every_thread);
    }
    device_close(device);
    return test_end();
}
