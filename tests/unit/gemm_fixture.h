// tests/unit/gemm_fixture.h: products of all formats and layouts, with guards around what is
// written, held against double precision; by the kernels and tiles that a test names.
#pragma once

#include "cpu/gemm.h"

#include <stdint.h>

#include "base/isa.h"
#include "cpu/gemm_kernels.h"
#include "cpu/gemm_way.h"
#include "number/format.h"
#include "number/scaled.h"
#include "tests/test.h"

enum { GUARD = 64 }; // bytes around everything that is written
static const unsigned char GUARD_BYTE = 0xA5;
static const double UNIT_FP32 = 0x1p-24;

static const Format formats[] = {FORMAT_FP32, FORMAT_BF16, FORMAT_FP16};
enum { FORMATS = 3 };

typedef enum Layout { ROWS, COLUMNS, APART, LAYOUTS } Layout; // which stride is 1, if any

static uint64_t random_state = 88172645463325252u;

static inline uint64_t random_next(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static inline double random_value(void) {
    return (double)(random_next() >> 11) * 0x1p-52 - 1.0;
}

static inline double unit_of(Format format) {
    return format == FORMAT_FP32 ? UNIT_FP32 : format == FORMAT_BF16 ? 0x1p-8 : 0x1p-11;
}

static inline size_t size_of(Format format) {
    return format_table[format].bytes;
}

static inline void put(void *data, Format format, int64_t at, double value) {
    uint32_t bits = format_encode(format, value, OVERFLOW_TO_SPECIAL);
    memcpy((char *)data + (size_t)at * size_of(format), &bits, size_of(format));
}

static inline double get(const void *data, Format format, int64_t at) {
    uint32_t bits = 0;
    memcpy(&bits, (const char *)data + (size_t)at * size_of(format), size_of(format));
    return format_decode(format, bits);
}

// Memory that ends where it should: AddressSanitizer sees what is read beyond it.
static inline void *filled(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    memset(memory, 0xFF, bytes); // NaN in every format
    return memory;
}

// A matrix of `values`, which are rounded to its format here and there; the gaps hold NaN.
static inline GemmOperand new_operand(double *values, int64_t rows, int64_t columns, Format format,
                                      Layout layout, bool gap, int64_t products) {
    GemmOperand operand = {.format = format};
    int64_t extra = gap ? 5 : 0;
    if (layout == ROWS) {
        operand.row_stride = columns + extra;
        operand.column_stride = 1;
    } else if (layout == COLUMNS) {
        operand.row_stride = 1;
        operand.column_stride = rows + extra;
    } else {
        operand.row_stride = 3 * columns + extra;
        operand.column_stride = 3;
    }
    int64_t span = rows && columns
                       ? (rows - 1) * operand.row_stride + (columns - 1) * operand.column_stride + 1
                       : 0;
    operand.batch_stride[0] = operand.batch_stride[1] = span;
    char *data = filled((size_t)(span * products) * size_of(format));
    for (int64_t p = 0; p < products; p++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                double *value = &values[(p * rows + i) * columns + j];
                *value = format_round(format, *value, OVERFLOW_TO_SPECIAL);
                put(data, format, p * span + i * operand.row_stride + j * operand.column_stride,
                    *value);
            }
    operand.data = data;
    return operand;
}

typedef void (*RunFunction)(const Gemm *gemm);

static GemmWays ways_under_test;

// The largest magnitude in C; NaN where it holds one.
static inline double largest_in(const Gemm *gemm) {
    const GemmResult *c = &gemm->c;
    double largest = 0;
    for (int64_t p = 0; p < gemm->batch[0] * gemm->batch[1]; p++)
        for (int64_t i = 0; i < gemm->rows; i++)
            for (int64_t j = 0; j < gemm->columns; j++) {
                const int64_t at = p / gemm->batch[1] * c->batch_stride[0] +
                                   p % gemm->batch[1] * c->batch_stride[1] + i * c->row_stride + j;
                const double value = fabs(get(c->data, c->format, at));
                if (isnan(value))
                    return value;
                largest = fmax(largest, value);
            }
    return largest;
}

// What was raised is the largest, once it is rounded as C is. Below fp32's normal numbers one may
// count as 0 and the other not.
static inline void check_largest(const Gemm *gemm) {
    uint32_t largest = 0;
    for (int i = 0; i < GEMM_LANES; i++)
        largest = gemm->largest[i] > largest ? gemm->largest[i] : largest;
    const double told =
        format_round(gemm->c.format, format_decode(FORMAT_FP32, largest), OVERFLOW_TO_SPECIAL);
    const double there = largest_in(gemm);
    CHECK_MESSAGE(
        told == there || (isnan(told) && isnan(there)) || (told < 0x1p-126 && there < 0x1p-126),
        "the largest of %s is told as %.9g and is %.9g", format_name(gemm->c.format), told, there);
}

static inline void run_checked(const Gemm *asked) {
    uint32_t largest[GEMM_LANES] = {0};
    Gemm gemm = *asked;
    gemm.largest = largest;
    size_t bytes = gemm_workspace_size_by(&ways_under_test, &gemm);
    char *workspace = filled(bytes + GUARD);
    memset(workspace + bytes, GUARD_BYTE, GUARD);
    gemm_run_by(&ways_under_test, &gemm, bytes ? workspace : NULL);
    check_largest(&gemm);
    for (int i = 0; i < GUARD; i++)
        CHECK_INT((unsigned char)workspace[bytes + (size_t)i], GUARD_BYTE);
    free(workspace);
}

static inline double activated(double value, GemmActivation activation) {
    switch (activation) {
    case GEMM_ACTIVATION_RELU: return value < 0 ? 0 : value;
    case GEMM_ACTIVATION_TANH: return tanh(value);
    case GEMM_ACTIVATION_SIGMOID: return 1 / (1 + exp(-value));
    default: return value;
    }
}

typedef struct Case {
    int64_t rows, columns, depth;
    Format a, b, c;
    Layout a_layout, b_layout;
    bool gap, accumulate, bias;
    bool splits_a;
    GemmActivation activation;
    int threads;
    int64_t products;
    bool whole_numbers;  // the result is then exact
    NumberBlocks blocks; // what numbers are rounded to first, along the depth
} Case;

// A case with its numbers: factors in double, and C with guards around it, as it is and as it was.
typedef struct Trial {
    const Case *test;
    double *a, *b;
    char *bias, *c, *before;
    size_t c_bytes;
    int64_t row_stride, span; // of C; of one of its products
    Gemm gemm;
} Trial;

static inline double *new_values(const Case *test, int64_t count) {
    double *values = malloc((size_t)(count + 1) * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = test->whole_numbers ? (double)(random_next() % 5) - 2 : random_value();
    return values;
}

// A line along the depth to what elements are worth, whose scales lie far apart.
static inline void round_line(double *line, int64_t stride, int64_t depth, Format format,
                              const NumberBlocks *blocks) {
    const NumberElement element = number_element(format);
    for (int64_t first = 0; first < depth; first += blocks->block) {
        const int64_t steps = depth - first < blocks->block ? depth - first : blocks->block;
        const double size = ldexp(1, (int)(random_next() % 5) - 2);
        float largest = 0;
        for (int64_t k = 0; k < steps; k++)
            largest = fmaxf(largest, (float)fabs(line[(first + k) * stride] * size));
        const NumberScale scale = blocks->scale == FORMAT_E8M0
                                      ? number_scale_of_power(largest, element, random_next() % 2)
                                      : number_scale_apart(largest, element, 0x1.23p-1f);
        const bool is_zero = random_next() % 8 == 0;
        for (int64_t k = 0; k < steps; k++) {
            double *value = &line[(first + k) * stride];
            const float wanted = (float)(*value * size) * scale.to_elements;
            *value = is_zero ? 0
                             : (double)(number_round_to_element(wanted, element, false, 0) *
                                        scale.to_numbers);
        }
    }
}

static inline void round_factors(Trial *trial) {
    const Case *test = trial->test;
    for (int64_t i = 0; i < test->products * test->rows; i++)
        round_line(trial->a + i * test->depth, 1, test->depth, test->blocks.element[0],
                   &test->blocks);
    for (int64_t p = 0; p < test->products; p++)
        for (int64_t j = 0; j < test->columns; j++)
            round_line(trial->b + p * test->depth * test->columns + j, test->columns, test->depth,
                       test->blocks.element[1], &test->blocks);
}

static inline void add_factors(Trial *trial) {
    const Case *test = trial->test;
    trial->a = new_values(test, test->rows * test->depth * test->products);
    trial->b = new_values(test, test->depth * test->columns * test->products);
    if (test->blocks.block > 0)
        round_factors(trial);
    trial->gemm = (Gemm){.rows = test->rows,
                         .columns = test->columns,
                         .depth = test->depth,
                         .batch = {1, test->products},
                         .alpha = test->whole_numbers ? 1.0f : 0.75f,
                         .accumulate = test->accumulate,
                         .activation = test->activation,
                         .blocks = test->blocks,
                         .pairs = true, // where the ways have them
                         .splits_a = test->splits_a,
                         .threads = test->threads};
    trial->gemm.a = new_operand(trial->a, test->rows, test->depth, test->a, test->a_layout,
                                test->gap, test->products);
    trial->gemm.b = new_operand(trial->b, test->depth, test->columns, test->b, test->b_layout,
                                test->gap, test->products);
}

static inline void add_bias(Trial *trial) {
    const Case *test = trial->test;
    const Format format = formats[random_next() % FORMATS];
    trial->bias = filled((size_t)test->columns * size_of(format));
    for (int64_t j = 0; j < test->columns; j++)
        put(trial->bias, format, j, (double)(random_next() % 9) / 4 - 1);
    trial->gemm.bias = test->bias ? trial->bias : NULL;
    trial->gemm.bias_format = format;
}

static inline int64_t place_in(const Trial *trial, int64_t product, int64_t i, int64_t j) {
    return product * trial->span + i * trial->row_stride + j;
}

static inline void add_result(Trial *trial) {
    const Case *test = trial->test;
    trial->row_stride = test->columns + (test->gap ? 3 : 0);
    trial->span = test->rows * trial->row_stride;
    trial->c_bytes = (size_t)(trial->span * test->products) * size_of(test->c);
    trial->c = filled(trial->c_bytes + 2 * GUARD);
    trial->before = filled(trial->c_bytes + 2 * GUARD);
    memset(trial->c, GUARD_BYTE, trial->c_bytes + 2 * GUARD);
    trial->gemm.c = (GemmResult){trial->c + GUARD, test->c, trial->row_stride, {0, trial->span}};
    for (int64_t p = 0; test->accumulate && p < test->products; p++)
        for (int64_t i = 0; i < test->rows; i++)
            for (int64_t j = 0; j < test->columns; j++)
                put(trial->gemm.c.data, test->c, place_in(trial, p, i, j),
                    (double)(random_next() % 17) / 4 - 2);
    memcpy(trial->before, trial->c, trial->c_bytes + 2 * GUARD);
}

// What an element is to be, and how far it may be from that.
static inline double expected_of(const Trial *trial, int64_t p, int64_t i, int64_t j,
                                 double *bound) {
    const Case *test = trial->test;
    double sum = 0, size = 0;
    for (int64_t k = 0; k < test->depth; k++) {
        const double product = trial->a[(p * test->rows + i) * test->depth + k] *
                               trial->b[(p * test->depth + k) * test->columns + j];
        sum += product;
        size += fabs(product);
    }
    sum *= (double)trial->gemm.alpha;
    const double old =
        test->accumulate ? get(trial->before + GUARD, test->c, place_in(trial, p, i, j)) : 0;
    const double bias = test->bias ? get(trial->bias, trial->gemm.bias_format, j) : 0;
    sum += old;
    sum += bias;
    size += fabs(old) + fabs(bias);
    const double expected = activated(sum, test->activation);
    const bool splits_a =
        test->splits_a && ways_under_test.tiles && test->a == FORMAT_FP32 && test->b == FORMAT_BF16;
    *bound = unit_of(test->c) * 1.001 * fabs(expected) + 0x1p-25 +
             ((double)(test->depth + 4) * UNIT_FP32 + (splits_a ? 0x1p-17 : 0)) * size +
             (test->activation > GEMM_ACTIVATION_RELU ? 2e-7 : 0);
    if (!test->whole_numbers)
        return expected;
    *bound = 0;
    return format_round(test->c, expected, OVERFLOW_TO_SPECIAL);
}

// Tells of an element that errs by more than any before it; `worst`: by so much. It is then taken
// out of both, so that what is left is what nobody may have written.
static inline void check_element(Trial *trial, int64_t p, int64_t i, int64_t j, double *worst) {
    const Case *test = trial->test;
    const int64_t where = place_in(trial, p, i, j);
    const size_t at = GUARD + (size_t)where * size_of(test->c);
    double bound;
    const double expected = expected_of(trial, p, i, j, &bound);
    const double got = get(trial->gemm.c.data, test->c, where);
    memset(trial->before + at, GUARD_BYTE, size_of(test->c));
    memset(trial->c + at, GUARD_BYTE, size_of(test->c));
    const double excess = fabs(got - expected) - bound;
    if (excess <= *worst)
        return;
    *worst = isnan(excess) ? INFINITY : excess;
    CHECK_MESSAGE(false,
                  "%lldx%lldx%lld %s,%s->%s layouts %d %d gap %d acc %d bias %d act %d "
                  "threads %d: C[%lld,%lld] is %.9g, expected %.9g +- %.3g",
                  (long long)test->rows, (long long)test->columns, (long long)test->depth,
                  format_name(test->a), format_name(test->b), format_name(test->c), test->a_layout,
                  test->b_layout, test->gap, test->accumulate, test->bias, test->activation,
                  test->threads, (long long)i, (long long)j, got, expected, bound);
}

static inline void trial_clear(Trial *trial) {
    free((void *)(uintptr_t)trial->gemm.a.data);
    free((void *)(uintptr_t)trial->gemm.b.data);
    free(trial->bias);
    free(trial->c);
    free(trial->before);
    free(trial->a);
    free(trial->b);
}

static inline void check_case(const Case *test, RunFunction run) {
    Trial trial = {.test = test};
    double worst = 0;
    add_factors(&trial);
    add_bias(&trial);
    add_result(&trial);
    run(&trial.gemm);
    for (int64_t p = 0; p < test->products; p++)
        for (int64_t i = 0; i < test->rows; i++)
            for (int64_t j = 0; j < test->columns; j++)
                check_element(&trial, p, i, j, &worst);
    // The guards and the gaps between rows are as they were.
    CHECK(memcmp(trial.c, trial.before, trial.c_bytes + 2 * GUARD) == 0);
    trial_clear(&trial);
}

// ---- what is checked of every route -------------------------------------------------------------

static inline void check_formats_and_layouts(RunFunction run) {
    static const int64_t sizes[] = {1, 3, 17, 33, 65, 129};
    int turn = 0;
    for (int mode = 0; mode < FORMATS * FORMATS * FORMATS; mode++)
        for (int layout = 0; layout < LAYOUTS * LAYOUTS; layout++, turn++) {
            Case test = {.rows = sizes[random_next() % 6],
                         .columns = sizes[random_next() % 6],
                         .depth = sizes[random_next() % 6],
                         .a = formats[mode % FORMATS],
                         .b = formats[mode / FORMATS % FORMATS],
                         .c = formats[mode / FORMATS / FORMATS],
                         .a_layout = (Layout)(layout % LAYOUTS),
                         .b_layout = (Layout)(layout / LAYOUTS),
                         .gap = turn % 2,
                         .accumulate = turn % 3 == 1,
                         .bias = turn % 5 < 3,
                         .splits_a = turn % 4 < 3,
                         .activation = (GemmActivation)(turn % 4),
                         .threads = 1 + turn % 2,
                         .products = 1};
            check_case(&test, run);
        }
}

static inline void check_whole_numbers(RunFunction run) {
    for (int turn = 0; turn < 36; turn++) {
        Case test = {.rows = 40 + turn,
                     .columns = 37 + turn,
                     .depth = 70,
                     .a = formats[turn % 3],
                     .b = formats[turn / 3 % 3],
                     .c = formats[turn / 9 % 3],
                     .a_layout = (Layout)(turn % 2),
                     .b_layout = (Layout)(turn / 2 % 2),
                     .bias = true,
                     .splits_a = true,
                     .threads = 1,
                     .products = 1,
                     .whole_numbers = true};
        check_case(&test, run);
    }
}

static inline void check_no_depth(RunFunction run) {
    for (int turn = 0; turn < 12; turn++) {
        Case test = {.rows = turn % 5,
                     .columns = 35,
                     .a = FORMAT_FP32,
                     .b = FORMAT_FP32,
                     .c = formats[turn % 3],
                     .accumulate = turn % 2,
                     .bias = turn % 4 > 1,
                     .activation = (GemmActivation)(turn % 4),
                     .threads = 2,
                     .products = 1};
        check_case(&test, run);
    }
}

static const char *class_of(double value) {
    return isnan(value) ? "NaN" : isinf(value) ? value > 0 ? "inf" : "-inf" : "finite";
}

// Infinities and NaN reach exactly the rows and columns that they must, in the right class.
static inline void check_classes(RunFunction run) {
    enum { M = 70, N = 67, K = 90 };
    static double a[M * K], b[K * N];
    for (int turn = 0; turn < 9; turn++) {
        for (int i = 0; i < M * K; i++)
            a[i] = random_value() + 1.5; // positive: what is infinite then stays so
        for (int i = 0; i < K * N; i++)
            b[i] = random_value() + 1.5;
        a[3 * K + 5] = INFINITY;
        a[17 * K + 80] = -INFINITY;
        b[80 * N + 66] = -INFINITY;
        a[40 * K + 41] = NAN;
        b[41 * N + 9] = 0; // infinity times zero is NaN in one element, if K = 41 met it
        a[60 * K + 41] = INFINITY;
        const Format a_format = formats[turn % 3], b_format = formats[(turn + turn / 3) % 3];
        Gemm gemm = {.rows = M,
                     .columns = N,
                     .depth = K,
                     .batch = {1, 1},
                     .alpha = 1,
                     .splits_a = true,
                     .threads = 1};
        gemm.a = new_operand(a, M, K, a_format, (Layout)(turn % 2), false, 1);
        gemm.b = new_operand(b, K, N, b_format, (Layout)(turn / 3 % 2), false, 1);
        gemm.activation = turn % 2 ? GEMM_ACTIVATION_RELU : GEMM_ACTIVATION_NONE;
        static float c[M * N];
        gemm.c = (GemmResult){c, FORMAT_FP32, N, {0}};
        run(&gemm);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int k = 0; k < K; k++)
                    sum += a[i * K + k] * b[k * N + j];
                sum = activated(sum, gemm.activation);
                CHECK_MESSAGE(strcmp(class_of(sum), class_of((double)c[i * N + j])) == 0,
                              "%s x %s C[%d,%d] is %s, expected %s", format_name(a_format),
                              format_name(b_format), i, j, class_of((double)c[i * N + j]),
                              class_of(sum));
            }
        free((void *)(uintptr_t)gemm.a.data);
        free((void *)(uintptr_t)gemm.b.data);
    }
}
