// tests/unit/gemm_test.c: the matrix product against double precision, at every ISA level that this
// processor has.
#include "cpu/gemm.h"

#include <stdint.h>

#include "base/isa.h"
#include "cpu/gemm_kernels.h"
#include "number/format.h"
#include "tests/test.h"

// The tile code itself, on emulated tiles: it runs here whatever this processor has.
#define TILE_EMULATED
#include "cpu/amx/gemm_tiles.c"

enum { GUARD = 64 }; // bytes around everything that is written
static const unsigned char GUARD_BYTE = 0xA5;
static const double UNIT_FP32 = 0x1p-24;

static const Format formats[] = {FORMAT_FP32, FORMAT_BF16, FORMAT_FP16};
enum { FORMATS = 3 };

typedef enum Layout { ROWS, COLUMNS, APART, LAYOUTS } Layout; // which stride is 1, if any

static uint64_t random_state = 88172645463325252u;

static uint64_t random_next(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static double random_value(void) {
    return (double)(random_next() >> 11) * 0x1p-52 - 1.0;
}

static double unit_of(Format format) {
    return format == FORMAT_FP32 ? UNIT_FP32 : format == FORMAT_BF16 ? 0x1p-8 : 0x1p-11;
}

static size_t size_of(Format format) {
    return format_table[format].bytes;
}

static void put(void *data, Format format, int64_t at, double value) {
    uint32_t bits = format_encode(format, value, OVERFLOW_TO_SPECIAL);
    memcpy((char *)data + (size_t)at * size_of(format), &bits, size_of(format));
}

static double get(const void *data, Format format, int64_t at) {
    uint32_t bits = 0;
    memcpy(&bits, (const char *)data + (size_t)at * size_of(format), size_of(format));
    return format_decode(format, bits);
}

// Memory that ends where it should: AddressSanitizer sees what is read beyond it.
static void *filled(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    memset(memory, 0xFF, bytes); // NaN in every format
    return memory;
}

// A matrix of `values`, which are rounded to its format here and there; the gaps hold NaN.
static GemmOperand new_operand(double *values, int64_t rows, int64_t columns, Format format,
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

static const GemmKernels *kernels_under_test;
static const GemmTiles *tiles_under_test; // NULL: vectors

static void run_checked(const Gemm *gemm) {
    size_t bytes = gemm_workspace_size_with(kernels_under_test, tiles_under_test, gemm);
    char *workspace = filled(bytes + GUARD);
    memset(workspace + bytes, GUARD_BYTE, GUARD);
    gemm_run_with(kernels_under_test, tiles_under_test, gemm, bytes ? workspace : NULL);
    for (int i = 0; i < GUARD; i++)
        CHECK_INT((unsigned char)workspace[bytes + (size_t)i], GUARD_BYTE);
    free(workspace);
}

static double activated(double value, GemmActivation activation) {
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
    GemmActivation activation;
    int threads;
    int64_t products;
    bool whole_numbers; // the result is then exact
} Case;

static void check_case(const Case *test, RunFunction run) {
    int64_t a_count = test->rows * test->depth * test->products;
    int64_t b_count = test->depth * test->columns * test->products;
    double *a = malloc((size_t)(a_count + 1) * sizeof *a);
    double *b = malloc((size_t)(b_count + 1) * sizeof *b);
    for (int64_t i = 0; i < a_count; i++)
        a[i] = test->whole_numbers ? (double)(random_next() % 5) - 2 : random_value();
    for (int64_t i = 0; i < b_count; i++)
        b[i] = test->whole_numbers ? (double)(random_next() % 5) - 2 : random_value();
    Gemm gemm = {.rows = test->rows,
                 .columns = test->columns,
                 .depth = test->depth,
                 .batch = {1, test->products},
                 .alpha = test->whole_numbers ? 1.0f : 0.75f,
                 .accumulate = test->accumulate,
                 .activation = test->activation,
                 .threads = test->threads};
    gemm.a =
        new_operand(a, test->rows, test->depth, test->a, test->a_layout, test->gap, test->products);
    gemm.b = new_operand(b, test->depth, test->columns, test->b, test->b_layout, test->gap,
                         test->products);
    Format bias_format = formats[random_next() % FORMATS];
    char *bias = filled((size_t)test->columns * size_of(bias_format));
    for (int64_t j = 0; j < test->columns; j++)
        put(bias, bias_format, j, (double)(random_next() % 9) / 4 - 1);
    gemm.bias = test->bias ? bias : NULL;
    gemm.bias_format = bias_format;
    int64_t row_stride = test->columns + (test->gap ? 3 : 0), span = test->rows * row_stride;
    size_t c_bytes = (size_t)(span * test->products) * size_of(test->c);
    char *c = filled(c_bytes + 2 * GUARD), *before = filled(c_bytes + 2 * GUARD);
    memset(c, GUARD_BYTE, c_bytes + 2 * GUARD);
    gemm.c = (GemmResult){c + GUARD, test->c, row_stride, {0, span}};
    if (test->accumulate)
        for (int64_t p = 0; p < test->products; p++)
            for (int64_t i = 0; i < test->rows; i++)
                for (int64_t j = 0; j < test->columns; j++)
                    put(gemm.c.data, test->c, p * span + i * row_stride + j,
                        (double)(random_next() % 17) / 4 - 2);
    memcpy(before, c, c_bytes + 2 * GUARD);

    run(&gemm);

    double worst = 0;
    for (int64_t p = 0; p < test->products; p++)
        for (int64_t i = 0; i < test->rows; i++)
            for (int64_t j = 0; j < test->columns; j++) {
                double sum = 0, size = 0;
                for (int64_t k = 0; k < test->depth; k++) {
                    double product = a[(p * test->rows + i) * test->depth + k] *
                                     b[(p * test->depth + k) * test->columns + j];
                    sum += product;
                    size += fabs(product);
                }
                sum *= (double)gemm.alpha;
                int64_t where = p * span + i * row_stride + j;
                if (test->accumulate) {
                    double old = get(before + GUARD, test->c, where);
                    sum += old;
                    size += fabs(old);
                }
                if (test->bias) {
                    sum += get(bias, bias_format, j);
                    size += fabs(get(bias, bias_format, j));
                }
                double expected = activated(sum, test->activation);
                double got = get(gemm.c.data, test->c, where);
                memset(before + GUARD + (size_t)where * size_of(test->c), GUARD_BYTE,
                       size_of(test->c));
                memset((char *)gemm.c.data + (size_t)where * size_of(test->c), GUARD_BYTE,
                       size_of(test->c));
                double bound = unit_of(test->c) * 1.001 * fabs(expected) + 0x1p-25 +
                               (double)(test->depth + 4) * UNIT_FP32 * size +
                               (test->activation > GEMM_ACTIVATION_RELU ? 2e-7 : 0);
                if (test->whole_numbers)
                    bound = 0, expected = format_round(test->c, expected, OVERFLOW_TO_SPECIAL);
                double excess = fabs(got - expected) - bound;
                if (!(excess <= worst)) {
                    worst = isnan(excess) ? INFINITY : excess;
                    CHECK_MESSAGE(
                        false,
                        "%lldx%lldx%lld %s,%s->%s layouts %d %d gap %d acc %d bias %d act %d "
                        "threads %d: C[%lld,%lld] is %.9g, expected %.9g +- %.3g",
                        (long long)test->rows, (long long)test->columns, (long long)test->depth,
                        format_name(test->a), format_name(test->b), format_name(test->c),
                        test->a_layout, test->b_layout, test->gap, test->accumulate, test->bias,
                        test->activation, test->threads, (long long)i, (long long)j, got, expected,
                        bound);
                }
            }
    // The guards and the gaps between rows are as they were.
    CHECK(memcmp(c, before, c_bytes + 2 * GUARD) == 0);
    free((void *)(uintptr_t)gemm.a.data);
    free((void *)(uintptr_t)gemm.b.data);
    free(bias);
    free(c);
    free(before);
    free(a);
    free(b);
}

static void at_every_level(void (*body)(RunFunction run)) {
    for (IsaLevel level = ISA_BASE; level <= isa_level() && level <= ISA_AVX512; level++) {
        kernels_under_test = gemm_kernels_at(level);
        body(run_checked);
    }
}

// ---- what is checked ----------------------------------------------------------------------------

static void check_formats_and_layouts(RunFunction run) {
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
                         .activation = (GemmActivation)(turn % 4),
                         .threads = 1 + turn % 2,
                         .products = 1};
            check_case(&test, run);
        }
}

static void check_sizes(RunFunction run) {
    static const int64_t sizes[] = {1, 2, 13, 14, 15, 16, 31, 32, 48, 63};
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 10; j++) {
            Case test = {.rows = sizes[i],
                         .columns = sizes[j],
                         .depth = sizes[random_next() % 10],
                         .a = FORMAT_FP32,
                         .b = FORMAT_FP32,
                         .c = FORMAT_FP32,
                         .a_layout = (Layout)(random_next() % LAYOUTS),
                         .b_layout = (Layout)(random_next() % LAYOUTS),
                         .gap = random_next() % 2,
                         .threads = 1,
                         .products = 1};
            check_case(&test, run);
        }
}

// Beyond one block of the depth, of the rows and of the columns.
static void check_large(RunFunction run) {
    static const int64_t shapes[][3] = {
        {150, 96, 1100}, {1000, 70, 400}, {600, 1100, 33}, {33, 1200, 700}};
    for (int shape = 0; shape < 4; shape++)
        for (int c = 0; c < FORMATS; c++) {
            Format format = formats[random_next() % FORMATS];
            Case test = {.rows = shapes[shape][0],
                         .columns = shapes[shape][1],
                         .depth = shapes[shape][2],
                         .a = format,
                         .b = format,
                         .c = formats[c],
                         .a_layout = (Layout)(random_next() % 2),
                         .b_layout = (Layout)(random_next() % 2),
                         .accumulate = (shape + c) % 2,
                         .bias = true,
                         .activation = GEMM_ACTIVATION_RELU,
                         .threads = 1 + (shape + c) % 3,
                         .products = 1};
            check_case(&test, run);
        }
}

static void check_batches(RunFunction run) {
    for (int64_t products = 0; products < 9; products += 2) {
        Case test = {.rows = 65,
                     .columns = 48,
                     .depth = 64,
                     .a = FORMAT_FP32,
                     .b = FORMAT_BF16,
                     .c = FORMAT_FP32,
                     .b_layout = COLUMNS,
                     .gap = true,
                     .threads = 1 + (int)products % 3,
                     .products = products};
        check_case(&test, run);
    }
}

static void check_whole_numbers(RunFunction run) {
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
                     .threads = 1,
                     .products = 1,
                     .whole_numbers = true};
        check_case(&test, run);
    }
}

static void check_no_depth(RunFunction run) {
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
static void check_classes(RunFunction run) {
    enum { M = 70, N = 67, K = 90 };
    static double a[M * K], b[K * N];
    for (int turn = 0; turn < 6; turn++) {
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
        Format format = formats[turn % 3];
        Gemm gemm = {
            .rows = M, .columns = N, .depth = K, .batch = {1, 1}, .alpha = 1, .threads = 1};
        gemm.a = new_operand(a, M, K, format, (Layout)(turn % 2), false, 1);
        gemm.b = new_operand(b, K, N, format, (Layout)(turn / 3), false, 1);
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
                              "%s C[%d,%d] is %s, expected %s", format_name(format), i, j,
                              class_of((double)c[i * N + j]), class_of(sum));
            }
        free((void *)(uintptr_t)gemm.a.data);
        free((void *)(uintptr_t)gemm.b.data);
    }
}

static bool any_low_format(const Gemm *gemm) {
    return gemm->a.format != FORMAT_FP32 && gemm->b.format != FORMAT_FP32;
}

// With the kernels of one level: every product that tiles can do, whatever its size.
static void on_emulated_tiles(void (*body)(RunFunction run)) {
    GemmTiles tiles = gemm_tiles_emulated;
    tiles.suits = any_low_format;
    tiles_under_test = &tiles;
    kernels_under_test = gemm_kernels_at(isa_level());
    body(run_checked);
    kernels_under_test = gemm_kernels_at(ISA_BASE);
    body(run_checked);
    tiles_under_test = NULL;
}

static void check_tiles_large(RunFunction run) {
    static const int64_t shapes[][3] = {{70, 100, 600}, {33, 1000, 64}, {100, 65, 33}};
    for (int turn = 0; turn < 12; turn++) {
        Case test = {.rows = shapes[turn % 3][0],
                     .columns = shapes[turn % 3][1],
                     .depth = shapes[turn % 3][2],
                     .a = formats[1 + turn % 2],
                     .b = formats[1 + turn / 2 % 2],
                     .c = formats[turn % 3],
                     .a_layout = (Layout)(turn % 2),
                     .b_layout = (Layout)(turn / 3 % 2),
                     .accumulate = turn % 4 == 1,
                     .bias = true,
                     .threads = 1 + turn % 2,
                     .products = 1 + turn % 3};
        check_case(&test, run);
    }
}

static void tiles_agree_with_double(void) {
    on_emulated_tiles(check_formats_and_layouts);
    on_emulated_tiles(check_tiles_large);
    on_emulated_tiles(check_no_depth);
}
static void tiles_are_exact_on_small_whole_numbers(void) {
    on_emulated_tiles(check_whole_numbers);
}
static void tiles_keep_the_class_of_infinity_and_nan(void) {
    on_emulated_tiles(check_classes);
}

// Every finite fp16 number times one, through the split, is itself; its square loses no digit that
// fp32 has.
static void splitting_loses_nothing(void) {
    enum { SIDE = 256 };
    static uint16_t a[SIDE * SIDE], one[SIDE * SIDE];
    static float c[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++)
        a[i] = (uint16_t)((i & 0x7C00) == 0x7C00 ? 0 : i);
    for (int i = 0; i < SIDE; i++)
        one[i * SIDE + i] = 0x3C00;
    Gemm gemm = {.rows = SIDE,
                 .columns = SIDE,
                 .depth = SIDE,
                 .batch = {1, 1},
                 .a = {a, FORMAT_FP16, SIDE, 1, {0}},
                 .b = {one, FORMAT_FP16, SIDE, 1, {0}},
                 .c = {c, FORMAT_FP32, SIDE, {0}},
                 .alpha = 1,
                 .threads = 1};
    CHECK(gemm_tiles_emulated.suits(&gemm));
    kernels_under_test = gemm_kernels_at(isa_level());
    tiles_under_test = &gemm_tiles_emulated;
    run_checked(&gemm);
    for (int i = 0; i < SIDE * SIDE; i++)
        CHECK_MESSAGE((double)c[i] == format_decode(FORMAT_FP16, a[i]), "fp16 %04x became %.9g",
                      a[i], (double)c[i]);
    for (int i = 0; i < SIDE; i++) {
        a[i * SIDE + i] = (uint16_t)(0x3C00 + 4 * i + 1);
        for (int j = 0; j < SIDE; j++)
            if (i != j)
                a[i * SIDE + j] = 0;
    }
    gemm.b.data = a;
    run_checked(&gemm);
    tiles_under_test = NULL;
    for (int i = 0; i < SIDE; i++) {
        double value = format_decode(FORMAT_FP16, a[i * SIDE + i]);
        CHECK((double)c[i * SIDE + i] == value * value);
    }
}

static void small_products_and_fp32_stay_on_vectors(void) {
    Gemm gemm = {.rows = 32, .columns = 64, .depth = 128};
    gemm.a.format = gemm.b.format = FORMAT_FP16;
    CHECK(!gemm_tiles_emulated.suits(&gemm));
    gemm.rows = 2048;
    CHECK(gemm_tiles_emulated.suits(&gemm));
    gemm.b.format = FORMAT_FP32;
    CHECK(!gemm_tiles_emulated.suits(&gemm));
}

static void every_format_and_layout_agrees_with_double(void) {
    at_every_level(check_formats_and_layouts);
}
static void every_edge_size_agrees_with_double(void) {
    at_every_level(check_sizes);
}
static void products_beyond_one_block_agree_with_double(void) {
    at_every_level(check_large);
}
static void batches_agree_with_double(void) {
    at_every_level(check_batches);
}
static void small_whole_numbers_are_exact(void) {
    at_every_level(check_whole_numbers);
}
static void no_depth_gives_bias_and_activation(void) {
    at_every_level(check_no_depth);
}
static void infinity_and_nan_keep_their_class(void) {
    at_every_level(check_classes);
}

// The nested batch of attention: heads lie inside the rows.
static void heads_are_multiplied_in_place(void) {
    enum { SAMPLES = 2, HEADS = 3, LENGTH = 5, WIDTH = 4 };
    static float q[SAMPLES * LENGTH * HEADS * WIDTH], k[SAMPLES * LENGTH * HEADS * WIDTH];
    static float scores[SAMPLES * HEADS * LENGTH * LENGTH];
    for (size_t i = 0; i < sizeof q / sizeof *q; i++) {
        q[i] = (float)(random_next() % 7) - 3;
        k[i] = (float)(random_next() % 7) - 3;
    }
    int64_t row = HEADS * WIDTH, sample = LENGTH * HEADS * WIDTH;
    Gemm gemm = {.rows = LENGTH,
                 .columns = LENGTH,
                 .depth = WIDTH,
                 .batch = {SAMPLES, HEADS},
                 .a = {q, FORMAT_FP32, row, 1, {sample, WIDTH}},
                 .b = {k, FORMAT_FP32, 1, row, {sample, WIDTH}},
                 .c = {scores, FORMAT_FP32, LENGTH, {HEADS * LENGTH * LENGTH, LENGTH * LENGTH}},
                 .alpha = 0.5f,
                 .threads = 1};
    void *workspace = filled(gemm_workspace_size(&gemm));
    gemm_run(&gemm, workspace);
    free(workspace);
    for (int s = 0; s < SAMPLES; s++)
        for (int h = 0; h < HEADS; h++)
            for (int i = 0; i < LENGTH; i++)
                for (int j = 0; j < LENGTH; j++) {
                    float sum = 0;
                    for (int d = 0; d < WIDTH; d++)
                        sum += q[((s * LENGTH + i) * HEADS + h) * WIDTH + d] *
                               k[((s * LENGTH + j) * HEADS + h) * WIDTH + d];
                    CHECK_NEAR(scores[((s * HEADS + h) * LENGTH + i) * LENGTH + j], sum / 2, 0);
                }
}

// With infinity in a row: tiles compute again what lies near it.
static void check_same_bits(const GemmTiles *tiles, Format format, int64_t rows, int64_t columns) {
    enum { M = 200, N = 190, K = 520 };
    static float a[M * K], b[K * N], one[M * N], more[M * N];
    for (int i = 0; i < M * K; i++)
        put(a, format, i, i == 50 * K ? INFINITY : random_value());
    for (int i = 0; i < K * N; i++)
        put(b, format, i, random_value());
    for (int threads = 1; threads <= 4; threads++) {
        Gemm gemm = {.rows = rows,
                     .columns = columns,
                     .depth = K,
                     .batch = {1, 1},
                     .a = {a, format, K, 1, {0}},
                     .b = {b, format, N, 1, {0}},
                     .c = {threads == 1 ? one : more, FORMAT_FP32, N, {0}},
                     .alpha = 1,
                     .threads = threads};
        const GemmKernels *kernels = gemm_kernels_at(isa_level());
        void *space = filled(gemm_workspace_size_with(kernels, tiles, &gemm));
        gemm_run_with(kernels, tiles, &gemm, space);
        free(space);
        CHECK(threads == 1 || memcmp(one, more, sizeof one) == 0);
    }
}

static void the_same_bits_for_any_number_of_threads(void) {
    check_same_bits(NULL, FORMAT_FP32, 200, 190);
    check_same_bits(&gemm_tiles_emulated, FORMAT_FP16, 104, 40);
}

int main(void) {
    RUN_TEST(every_format_and_layout_agrees_with_double);
    RUN_TEST(every_edge_size_agrees_with_double);
    RUN_TEST(products_beyond_one_block_agree_with_double);
    RUN_TEST(batches_agree_with_double);
    RUN_TEST(small_whole_numbers_are_exact);
    RUN_TEST(no_depth_gives_bias_and_activation);
    RUN_TEST(infinity_and_nan_keep_their_class);
    RUN_TEST(heads_are_multiplied_in_place);
    RUN_TEST(the_same_bits_for_any_number_of_threads);
    RUN_TEST(tiles_agree_with_double);
    RUN_TEST(tiles_are_exact_on_small_whole_numbers);
    RUN_TEST(tiles_keep_the_class_of_infinity_and_nan);
    RUN_TEST(splitting_loses_nothing);
    RUN_TEST(small_products_and_fp32_stay_on_vectors);
    return test_end();
}
