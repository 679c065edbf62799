// tests/unit/gemm_test.c: the matrix product against double precision, at every ISA level that this
// processor has.
#include "tests/unit/gemm_fixture.h"

static void at_every_level(void (*body)(RunFunction run)) {
    for (IsaLevel level = ISA_BASE; level <= isa_level() && level <= ISA_BF16; level++) {
        ways_under_test = gemm_ways_at(level);
        body(run_checked);
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
        {150, 96, 1100}, {1000, 70, 400}, {600, 1100, 33}, {33, 1200, 700}, {37, 83, 3300}};
    for (int shape = 0; shape < 5; shape++)
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
                         .activation = (GemmActivation)((shape + c) % GEMM_ACTIVATION_COUNT),
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

int main(void) {
    RUN_TEST(every_format_and_layout_agrees_with_double);
    RUN_TEST(every_edge_size_agrees_with_double);
    RUN_TEST(products_beyond_one_block_agree_with_double);
    RUN_TEST(batches_agree_with_double);
    RUN_TEST(small_whole_numbers_are_exact);
    RUN_TEST(no_depth_gives_bias_and_activation);
    RUN_TEST(infinity_and_nan_keep_their_class);
    RUN_TEST(heads_are_multiplied_in_place);
    return test_end();
}
