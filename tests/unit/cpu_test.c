// The CPU backend: each instruction level gives what plain C gives, and the same call gives the
// same bits.
#include "tests/unit/cpu_fixture.h"

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
    float logits[60] = {0}, loss, sums[12];
    int32_t classes[6] = {0, 1, 2, -1, 9, 12};
    OpAttr attr = {0};
    KernelCall call = {
        .op = OP_cross_entropy,
        .attr = &attr,
        .input_count = 2,
        .output_count = 2,
        .input = {matrix(logits, FORMAT_FP32, 6, 10), vector(classes, FORMAT_INT32, 6)},
        .output = {view_dense(&loss, FORMAT_FP32, 0, NULL), matrix(sums, FORMAT_FP32, 2, 6)}};
    Error error = {0};
    CHECK(!device_run(device, &call, &error));
    CHECK_TEXT(error.text, "class 12 at row 6: the logits have 10 classes");
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

// Half of them lie nearer to the limit than to the only number below it; where limit and beginning
// are one, there is only that.
static void uniform_numbers_stay_below_their_limit(void) {
    enum { COUNT = 1000, DRAWN_BITS = 23 };
    static const Format formats[] = {FORMAT_FP32, FORMAT_BF16, FORMAT_FP16, FORMAT_FP64};
    float *y = numbers(2 * COUNT), *wide = numbers(COUNT);
    for (size_t i = 0; i < 2 * sizeof formats / sizeof *formats; i++) {
        Format format = formats[i / 2];
        int bits = (int)fmin(DRAWN_BITS, format_table[format].mantissa_bits);
        double limit = i % 2 ? 1 : 1 + ldexp(1, -bits);
        OpAttr attr = {.create = {.ndim = 1, .shape = {COUNT}, .a = 1, .b = limit},
                       .random = {.seed = 11, .offset = 5}};
        View made = vector(y, format, COUNT);
        run((KernelCall){.op = OP_uniform, .attr = &attr, .output = {made}});
        run((KernelCall){
            .op = OP_cast, .input = {made}, .output = {vector(wide, FORMAT_FP32, COUNT)}});
        for (int k = 0; k < COUNT; k++)
            CHECK_MESSAGE(wide[k] == 1, "%s below %.9g: %.9g", format_name(format), limit,
                          (double)wide[k]);
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
    float *memory = numbers(ARRAYS * ALL + 2 * TIME);
    View array[ARRAYS],
        sums = view_dense(memory + ARRAYS * ALL, FORMAT_FP32, 4, (int64_t[]){2, 1, 1, TIME});
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

int main(void) {
    if (!cpu_test_begin())
        return 1;
    while (cpu_next_level()) {
        AT_LEVEL(functions_are_near_the_truth);
        AT_LEVEL(special_values_come_through);
        AT_LEVEL(strides_and_broadcasts_are_followed);
        AT_LEVEL(casts_keep_whole_numbers);
        AT_LEVEL(columns_are_summed);
        AT_LEVEL(extremes_let_nan_win);
        AT_LEVEL(softmax_survives_large_logits);
        AT_LEVEL(a_class_past_the_end_is_named);
        AT_LEVEL(a_distant_mean_leaves_the_variance);
        AT_LEVEL(the_same_call_gives_the_same_bits);
        AT_LEVEL(random_numbers_do_not_depend_on_the_level);
        AT_LEVEL(uniform_numbers_stay_below_their_limit);
        AT_LEVEL(attention_is_near_the_truth);
        AT_LEVEL(denormals_are_flushed_in_every_thread);
    }
    return cpu_test_end();
}
