// tests/unit/gemm_elements_test.c: products of elements that share scales, as whole numbers.
#include "tests/unit/gemm_fixture.h"

static const NumberBlocks kinds[] = {
    {32, {FORMAT_E2M1, FORMAT_E2M1}, FORMAT_E8M0}, {32, {FORMAT_E2M3, FORMAT_E2M3}, FORMAT_E8M0},
    {32, {FORMAT_E2M3, FORMAT_E2M1}, FORMAT_E8M0}, {16, {FORMAT_E2M1, FORMAT_E2M1}, FORMAT_E4M3},
    {16, {FORMAT_E2M1, FORMAT_E2M3}, FORMAT_E8M0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const GemmWay *ways_there[4];
static int ways_count;

// All that this processor can do, not only what it does best.
static void find_ways(void) {
#if defined(__x86_64__)
    if (isa_level() >= ISA_AVX2)
        ways_there[ways_count++] = &gemm_elements_avx2;
    if (isa_level() >= ISA_AVX2 && isa_has_vnni(ISA_AVX2))
        ways_there[ways_count++] = &gemm_elements_avxvnni;
    if (isa_level() >= ISA_AVX512)
        ways_there[ways_count++] = &gemm_elements_avx512;
    if (isa_level() >= ISA_AVX512 && isa_has_vnni(ISA_AVX512))
        ways_there[ways_count++] = &gemm_elements_avx512vnni;
#endif
}

// What the other ways are asked for is counted.
static const GemmKernels *plain;
static int by_others; // blocks

static void multiply_counted(const GemmBlock *block) {
#pragma omp atomic
    by_others++;
    plain->multiply(block);
}

static void on_each_way(void (*body)(void)) {
    if (ways_count == 0)
        SKIP("this processor has no instructions for them");
    plain = gemm_ways_at(isa_level()).plain;
    GemmKernels counted = *plain;
    counted.multiply = multiply_counted;
    for (int i = 0; i < ways_count; i++) {
        ways_under_test = (GemmWays){.elements = ways_there[i], .plain = &counted};
        by_others = 0;
        body();
    }
}

static int any_of(int count) {
    return (int)(random_next() % (uint64_t)count);
}

static Case case_of(int turn) {
    static const int64_t sizes[] = {16, 17, 31, 33, 64, 65, 129};
    return (Case){.rows = sizes[any_of(7)],
                  .columns = sizes[any_of(7)],
                  .depth = sizes[any_of(7)],
                  .a = FORMAT_BF16,
                  .b = FORMAT_BF16,
                  .c = formats[any_of(FORMATS)],
                  .a_layout = (Layout)(turn / KINDS % LAYOUTS),
                  .b_layout = (Layout)(turn / KINDS / LAYOUTS % LAYOUTS),
                  .gap = any_of(2),
                  .accumulate = any_of(3) == 0,
                  .bias = any_of(2),
                  .activation = (GemmActivation)any_of(GEMM_ACTIVATION_COUNT),
                  .threads = 1 + any_of(2),
                  .products = 1 + any_of(3),
                  .blocks = kinds[turn % KINDS]};
}

static bool is_by_elements(const Case *test) {
    const Gemm gemm = {.rows = test->rows,
                       .columns = test->columns,
                       .depth = test->depth,
                       .a.format = test->a,
                       .b.format = test->b,
                       .blocks = test->blocks};
    return ways_under_test.elements->suits(&gemm);
}

static void check_cases(void) {
    for (int turn = 0; turn < 180; turn++) {
        const Case test = case_of(turn);
        CHECK(is_by_elements(&test));
        check_case(&test, run_checked);
    }
    CHECK_INT(by_others, 0);
}

// More than is packed at once, of rows and of columns; and a depth that is cut where C holds sums.
static void check_large(void) {
    for (int turn = 0; turn < 8; turn++) {
        Case test = case_of(turn);
        test.rows = turn % 2 ? 40 : 400;
        test.columns = turn % 2 ? 700 : 50;
        test.depth = 1100 + turn;
        test.products = test.threads = 1; // of two each has half
        if (turn < 4) {
            test.c = FORMAT_FP32;
            test.bias = false;
            test.activation = GEMM_ACTIVATION_NONE;
        }
        check_case(&test, run_checked);
    }
    CHECK_INT(by_others, 0);
}

static void check_whole(void) {
    for (int turn = 0; turn < 60; turn++) {
        Case test = case_of(turn);
        test.whole_numbers = true;
        test.activation = GEMM_ACTIVATION_NONE;
        check_case(&test, run_checked);
    }
    CHECK_INT(by_others, 0);
}

// Blocks whose largest number is 4, 3 or 6, with and without halves, times scales of e4m3: a step
// is found that is exact, and so are sums.
static void check_steps(void) {
    static const double few[][4] = {{4, 2, 1, 0},    {4, 3, -0.5, 1.5}, {-3, 1, 1, 0},
                                    {3, 0.5, -1, 0}, {6, -4, 3, 0.5},   {2, 1, 0, -1}};
    enum { M = 16, N = 16, K = 64 };
    static uint16_t a[M * K], b[K * N];
    static float c[M * N];
    for (int turn = 0; turn < 12; turn++) {
        for (int i = 0; i < M * K; i++)
            put(a, FORMAT_BF16, i, few[turn % 6][any_of(4)] * (double)(8 + (i / K + i / 16) % 8));
        for (int i = 0; i < K * N; i++)
            put(b, FORMAT_BF16, i, few[(turn + 1) % 6][any_of(4)] * (double)(8 + i % N / 2));
        Gemm gemm = {.rows = M, .columns = N, .depth = K, .batch = {1, 1}, .alpha = 1};
        gemm.a = (GemmOperand){a, FORMAT_BF16, K, 1, {0}};
        gemm.b = (GemmOperand){b, FORMAT_BF16, N, 1, {0}};
        gemm.c = (GemmResult){c, FORMAT_FP32, N, {0}};
        gemm.blocks = kinds[3];
        gemm.threads = 1;
        run_checked(&gemm);
        for (int i = 0; i < M * N; i++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += get(a, FORMAT_BF16, i / N * K + k) * get(b, FORMAT_BF16, k * N + i % N);
            CHECK_MESSAGE((double)c[i] == sum, "turn %d: %.9g, exactly %.9g", turn, (double)c[i],
                          sum);
        }
    }
    CHECK_INT(by_others, 0);
}

static void they_agree_with_double(void) {
    on_each_way(check_cases);
    on_each_way(check_large);
}

static void they_are_exact_where_sums_are(void) {
    on_each_way(check_whole);
    on_each_way(check_steps);
}

// What cannot be packed: infinity and NaN, and numbers so large or small that scaled sums might
// overflow or vanish on their way.
static void check_others(void) {
    enum { M = 70, N = 67, K = 90 };
    static const double others[] = {INFINITY, -INFINITY, NAN, 0x1p90, 0x1p-70, 0x1p-90};
    static double a[M * K], b[K * N];
    for (int turn = 0; turn < 12; turn++) {
        const Format format = FORMAT_BF16;
        Gemm gemm = {.rows = M, .columns = N, .depth = K, .batch = {1, 1}, .alpha = 1};
        gemm.blocks = kinds[turn % KINDS];
        gemm.threads = 1;
        for (int i = 0; i < M * K; i++)
            a[i] = (double)(random_next() % 4) - 1;
        for (int i = 0; i < K * N; i++)
            b[i] = (double)(random_next() % 4) - 1;
        for (int i = 0; i < 3; i++) { // of the very small a whole block
            const double x = others[any_of(6)], y = others[any_of(6)];
            const int row = any_of(M), column = any_of(N);
            for (int k = 0; k < (fabs(x) < 1 ? 32 : 1); k++)
                a[row * K + k] = x;
            for (int k = 0; k < (fabs(y) < 1 ? 32 : 1); k++)
                b[k * N + column] = y;
        }
        gemm.a = new_operand(a, M, K, format, (Layout)(turn % 2), false, 1);
        gemm.b = new_operand(b, K, N, format, (Layout)(turn / 2 % 2), false, 1);
        static float c[M * N];
        gemm.c = (GemmResult){c, FORMAT_FP32, N, {0}};
        CHECK(ways_under_test.elements->suits(&gemm));
        run_checked(&gemm);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double sum = 0, size = 0;
                for (int k = 0; k < K; k++) {
                    const double product = a[i * K + k] * b[k * N + j];
                    sum += product;
                    size += fabs(product);
                }
                const double got = (double)c[i * N + j];
                if (isfinite(sum) && fabs(sum) < 0x1p127)
                    CHECK_MESSAGE(fabs(got - sum) <= 1e-5 * size, "C[%d,%d] is %.9g, expected %.9g",
                                  i, j, got, sum);
                else
                    CHECK_TEXT(class_of(got), class_of((double)(float)sum));
            }
        free((void *)(uintptr_t)gemm.a.data);
        free((void *)(uintptr_t)gemm.b.data);
    }
    CHECK(by_others > 0);
}

static void they_keep_the_class_of_what_they_cannot_multiply(void) {
    on_each_way(check_others);
}

// With infinity in a row, whose neighbours are multiplied by others.
static void check_threads(void) {
    enum { M = 203, N = 190, K = 150 };
    static uint16_t a[M * K], b[K * N];
    static float one[M * N], more[M * N];
    for (int i = 0; i < M * K; i++)
        put(a, FORMAT_BF16, i, i == 50 * K ? INFINITY : (double)(random_next() % 9) - 4);
    for (int i = 0; i < K * N; i++)
        put(b, FORMAT_BF16, i, (double)(random_next() % 9) - 4);
    for (int threads = 1; threads <= 4; threads++) {
        Gemm gemm = {.rows = M, .columns = N, .depth = K, .batch = {1, 1}, .alpha = 0.3f};
        gemm.a = (GemmOperand){a, FORMAT_BF16, K, 1, {0}};
        gemm.b = (GemmOperand){b, FORMAT_BF16, N, 1, {0}};
        gemm.c = (GemmResult){threads == 1 ? one : more, FORMAT_FP32, N, {0}};
        gemm.blocks = kinds[1];
        gemm.threads = threads;
        run_checked(&gemm);
        CHECK(threads == 1 || memcmp(one, more, sizeof one) == 0);
    }
    CHECK(by_others > 0);
}

static void the_same_bits_for_any_number_of_threads(void) {
    on_each_way(check_threads);
}

// Elements of more digits, other scales and small products are left to the other ways.
static void check_left(void) {
    Gemm gemm = {.rows = 64, .columns = 64, .depth = 64};
    gemm.a.format = gemm.b.format = FORMAT_BF16;
    CHECK(!ways_under_test.elements->suits(&gemm));
    gemm.blocks = kinds[0];
    CHECK(ways_under_test.elements->suits(&gemm));
    gemm.blocks.element[1] = FORMAT_E4M3;
    CHECK(!ways_under_test.elements->suits(&gemm));
    gemm.blocks.element[1] = FORMAT_E3M2;
    CHECK(!ways_under_test.elements->suits(&gemm));
    gemm.blocks = kinds[0];
    gemm.blocks.scale = FORMAT_FP32;
    CHECK(!ways_under_test.elements->suits(&gemm));
    gemm.blocks = kinds[0];
    gemm.rows = 8;
    CHECK(!ways_under_test.elements->suits(&gemm));
}

static void what_does_not_fit_is_left_to_the_other_ways(void) {
    on_each_way(check_left);
}

int main(void) {
    find_ways();
    RUN_TEST(they_agree_with_double);
    RUN_TEST(they_are_exact_where_sums_are);
    RUN_TEST(they_keep_the_class_of_what_they_cannot_multiply);
    RUN_TEST(the_same_bits_for_any_number_of_threads);
    RUN_TEST(what_does_not_fit_is_left_to_the_other_ways);
    return test_end();
}
