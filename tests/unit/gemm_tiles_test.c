// tests/unit/gemm_tiles_test.c: the products on tiles. The tile code itself runs on emulated ones
// here, whatever this processor has, and on its own where it has them.
#include "tests/unit/gemm_fixture.h"

#define TILE_EMULATED
#include "cpu/amx/gemm_tiles.c"

static bool any_low_format(const Gemm *gemm) {
    const bool splits_a = gemm->splits_a && gemm->b.format == FORMAT_BF16;
    return (gemm->a.format != FORMAT_FP32 || splits_a) && gemm->b.format != FORMAT_FP32;
}

// This processor's own, or NULL.
static const GemmWay *tiles_here(void) {
    return gemm_ways_here().tiles;
}

// With the kernels of one level: every product that tiles can do, whatever its size.
static void on_tiles(const GemmWay *way, IsaLevel level, void (*body)(RunFunction run)) {
    GemmWay tiles = *way;
    tiles.suits = any_low_format;
    ways_under_test = gemm_ways_at(level);
    ways_under_test.tiles = &tiles;
    body(run_checked);
}

static void on_all_tiles(void (*body)(RunFunction run)) {
    on_tiles(&gemm_tiles_emulated, isa_level(), body);
    on_tiles(&gemm_tiles_emulated, ISA_BASE, body);
    if (tiles_here())
        on_tiles(tiles_here(), isa_level(), body);
}

static void check_tiles_large(RunFunction run) {
    static const int64_t shapes[][3] = {{70, 100, 600}, {33, 1000, 64}, {100, 65, 33}};
    for (int turn = 0; turn < 18; turn++) {
        const bool splits_a = turn >= 12;
        Case test = {.rows = shapes[turn % 3][0],
                     .columns = shapes[turn % 3][1],
                     .depth = shapes[turn % 3][2],
                     .a = splits_a ? FORMAT_FP32 : formats[1 + turn % 2],
                     .b = splits_a ? FORMAT_BF16 : formats[1 + turn / 2 % 2],
                     .splits_a = splits_a,
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
    on_all_tiles(check_formats_and_layouts);
    on_all_tiles(check_tiles_large);
}

// The last part of a product is smaller than the others, and is cut into other groups.
static void check_parts(RunFunction run) {
    static const int64_t shapes[][3] = {{96, 1312, 64}, {288, 96, 64}, {544, 32, 512}};
    for (int turn = 0; turn < 18; turn++) {
        Case test = {.rows = shapes[turn % 3][0],
                     .columns = shapes[turn % 3][1],
                     .depth = shapes[turn % 3][2],
                     .a = turn < 9 ? formats[1 + turn % 2] : FORMAT_FP32,
                     .b = FORMAT_BF16,
                     .c = FORMAT_FP32,
                     .splits_a = true,
                     .threads = 2 + turn % 9 / 3,
                     .products = 1};
        check_case(&test, run);
    }
}

static void parts_fit_the_memory_that_is_asked_for(void) {
    on_all_tiles(check_parts);
}

static void tiles_are_exact_on_small_whole_numbers(void) {
    on_all_tiles(check_whole_numbers);
}

static void tiles_keep_the_class_of_infinity_and_nan(void) {
    on_all_tiles(check_classes);
}

// Every finite fp16 number times one, through the split, is itself; its square loses no digit that
// fp32 has.
static void check_splitting(const GemmWay *way) {
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
    CHECK(way->suits(&gemm));
    ways_under_test = gemm_ways_at(isa_level());
    ways_under_test.tiles = way;
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
    for (int i = 0; i < SIDE; i++) {
        double value = format_decode(FORMAT_FP16, a[i * SIDE + i]);
        CHECK((double)c[i * SIDE + i] == value * value);
    }
}

static void splitting_loses_nothing(void) {
    check_splitting(&gemm_tiles_emulated);
    if (tiles_here())
        check_splitting(tiles_here());
}

static void small_products_and_whole_fp32_stay_on_vectors(void) {
    Gemm gemm = {.rows = 32, .columns = 64, .depth = 128};
    gemm.a.format = gemm.b.format = FORMAT_FP16;
    CHECK(!gemm_tiles_emulated.suits(&gemm));
    gemm.rows = 2048;
    CHECK(gemm_tiles_emulated.suits(&gemm));
    gemm.b.format = FORMAT_FP32;
    CHECK(!gemm_tiles_emulated.suits(&gemm));
    gemm.a.format = FORMAT_FP32;
    gemm.b.format = FORMAT_BF16;
    CHECK(!gemm_tiles_emulated.suits(&gemm));
    gemm.splits_a = true;
    CHECK(gemm_tiles_emulated.suits(&gemm));
    gemm.b.format = FORMAT_FP16;
    CHECK(!gemm_tiles_emulated.suits(&gemm));
}

// With infinity in a row: tiles compute again what lies near it.
static void check_same_bits(const GemmWays *ways, Format of_a, Format of_b, int64_t rows,
                            int64_t columns) {
    enum { M = 200, N = 190, K = 520 };
    static float a[M * K], b[K * N], one[M * N], more[M * N];
    for (int i = 0; i < M * K; i++)
        put(a, of_a, i, i == 50 * K ? INFINITY : random_value());
    for (int i = 0; i < K * N; i++)
        put(b, of_b, i, random_value());
    for (int threads = 1; threads <= 4; threads++) {
        Gemm gemm = {.rows = rows,
                     .columns = columns,
                     .depth = K,
                     .batch = {1, 1},
                     .a = {a, of_a, K, 1, {0}},
                     .b = {b, of_b, N, 1, {0}},
                     .c = {threads == 1 ? one : more, FORMAT_FP32, N, {0}},
                     .alpha = 1,
                     .pairs = true,
                     .splits_a = true,
                     .threads = threads};
        void *space = filled(gemm_workspace_size_by(ways, &gemm));
        gemm_run_by(ways, &gemm, space);
        free(space);
        CHECK(threads == 1 || memcmp(one, more, sizeof one) == 0);
    }
}

static void the_same_bits_for_any_number_of_threads(void) {
    GemmWays ways = gemm_ways_at(isa_level());
    check_same_bits(&ways, FORMAT_FP32, FORMAT_FP32, 200, 190);
    check_same_bits(&ways, FORMAT_BF16, FORMAT_BF16, 200, 190);
    ways.tiles = &gemm_tiles_emulated;
    check_same_bits(&ways, FORMAT_FP16, FORMAT_FP16, 104, 40);
    check_same_bits(&ways, FORMAT_FP32, FORMAT_BF16, 104, 40);
    ways.tiles = tiles_here();
    check_same_bits(&ways, FORMAT_BF16, FORMAT_BF16, 200, 190);
    check_same_bits(&ways, FORMAT_FP16, FORMAT_FP16, 200, 190);
    check_same_bits(&ways, FORMAT_FP32, FORMAT_BF16, 200, 190);
}

int main(void) {
    RUN_TEST(tiles_agree_with_double);
    RUN_TEST(parts_fit_the_memory_that_is_asked_for);
    RUN_TEST(tiles_are_exact_on_small_whole_numbers);
    RUN_TEST(tiles_keep_the_class_of_infinity_and_nan);
    RUN_TEST(splitting_loses_nothing);
    RUN_TEST(small_products_and_whole_fp32_stay_on_vectors);
    RUN_TEST(the_same_bits_for_any_number_of_threads);
    return test_end();
}
