// Threads of the emulated card: what kernels compute, in every order, and the mistakes that end
// one.
#include "tests/emulator/fixture.h"

static void same_result_in_every_conduct(void) {
    float x[COUNT], y[COUNT], sums[BLOCKS];
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i % 17);
    for (int c = 0; c < CONDUCTS; c++) {
        emulator_control.set(conducts[c]);
        float *on_card = card_floats(COUNT), *result = card_floats(COUNT);
        write_floats(on_card, x, COUNT, NULL);
        launch("add_one", NULL, (PlantedArguments){on_card, result, COUNT, 0});
        read_floats(y, result, COUNT, NULL);
        launch("sum_blocks", NULL, (PlantedArguments){on_card, result, COUNT, 0});
        read_floats(sums, result, BLOCKS, NULL);
        for (int i = 0; i < COUNT; i++)
            CHECK_NEAR(y[i], x[i] + 1, 0);
        for (int b = 0; b < BLOCKS; b++) {
            float expected = 0;
            for (int i = b * THREADS; i < COUNT && i < (b + 1) * THREADS; i++)
                expected += x[i];
            CHECK_NEAR(sums[b], expected, 0);
        }
        card_free(on_card);
        card_free(result);
    }
}

static void largest_blocks_run_in_every_order(void) {
    enum { LARGE = 1024 };
    static float x[LARGE];
    for (int i = 0; i < LARGE; i++)
        x[i] = (float)(i % 17);
    for (int seed = 0; seed < 10; seed++) {
        char settings[64];
        snprintf(settings, sizeof settings, "order=shuffled,seed=%d", seed);
        emulator_control.set(settings);
        float sum, expected = 0, *on_card = card_floats(LARGE), *result = card_floats(1);
        write_floats(on_card, x, LARGE, NULL);
        PlantedArguments arguments = {.x = on_card, .y = result};
        CHECK_INT(launch_as("sum_large", 1, LARGE, 0, NULL, arguments), CUDA_SUCCESS);
        read_floats(&sum, result, 1, NULL);
        for (int i = 0; i < LARGE; i++)
            expected += x[i];
        CHECK_NEAR(sum, expected, 0);
        card_free(on_card);
        card_free(result);
    }
}

static void warps_exchange_as_cuda_says(void) {
    enum { WORDS = 64, LANES = 128 };
    static float y[WORDS * LANES];
    for (int c = 0; c < CONDUCTS; c++) {
        emulator_control.set(conducts[c]);
        float *result = card_floats(WORDS * LANES);
        CHECK_INT(launch_as("warp_words", 1, LANES, 0, NULL, (PlantedArguments){.y = result}),
                  CUDA_SUCCESS);
        read_floats(y, result, WORDS * LANES, NULL);
        for (int i = 0; i < LANES; i++) {
            int lane = i % 32, warp = i - lane;
            const float *got = y + WORDS * i;
            CHECK_NEAR(got[0], warp + 5, 0);
            CHECK_NEAR(got[1], i / 8 * 8 + 3, 0);
            CHECK_NEAR(got[2], i ^ 1, 0);
            CHECK_NEAR(got[3], lane < 2 ? i : i - 2, 0);
            CHECK_NEAR(got[4], lane > 29 ? i : i + 2, 0);
            CHECK_NEAR(got[5], i % 8 > 5 ? i : i + 2, 0);
            CHECK_NEAR(got[6], 7, 0);
            CHECK_NEAR(got[7], 1, 0);
            CHECK_NEAR(got[8], 0, 0);
            CHECK_NEAR(got[9], 496, 0);
            CHECK_NEAR(got[10], -4, 0);
            CHECK_NEAR(got[11], 31, 0);
            CHECK_NEAR(got[12], 31, 0);
            CHECK_NEAR(got[13], 32, 0);
            CHECK_NEAR(got[14], 9.5, 0);
            CHECK_NEAR(got[15], 16, 0);
            if (lane < 4)
                CHECK_NEAR(got[16], 6, 0);
        }
        card_free(result);
    }
}

static void warps_multiply_tiles(void) {
    enum { SIDE = 16, WIDE = 8 };
    static float x[2 * SIDE * SIDE], y[SIDE * WIDE];
    for (int i = 0; i < 2 * SIDE * SIDE; i++)
        x[i] = (float)(i * 7 % 31 - 15); // exact in 16 bits, and so are the sums in fp32
    for (int c = 0; c < CONDUCTS; c++) {
        emulator_control.set(conducts[c]);
        float *on_card = card_floats(2 * SIDE * SIDE), *result = card_floats(SIDE * WIDE);
        write_floats(on_card, x, 2 * SIDE * SIDE, NULL);
        PlantedArguments arguments = {.x = on_card, .y = result};
        CHECK_INT(launch_as("tiles", 1, 32, 0, NULL, arguments), CUDA_SUCCESS);
        read_floats(y, result, SIDE * WIDE, NULL);
        for (int i = 0; i < SIDE * WIDE; i++) {
            float expected = 0;
            for (int k = 0; k < SIDE; k++)
                expected += x[i / WIDE * SIDE + k] * x[(SIDE + k) * SIDE + i % WIDE];
            CHECK_NEAR(y[i], expected, 0);
        }
        card_free(on_card);
        card_free(result);
    }
}

static void shared_arrays_lie_no_better_than_declared(void) {
    float y[4] = {0};
    emulator_control.set("");
    float *result = card_floats(4);
    PlantedArguments arguments = {.y = result};
    CHECK_INT(launch_as("shared_places", 1, 32, 64, NULL, arguments), CUDA_SUCCESS);
    read_floats(y, result, 4, NULL);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(y[i], 16, 0); // at multiples of 16, and of no more
    card_free(result);
}

static void barriers_count_predicates(void) {
    static float y[3 * THREADS];
    for (int c = 0; c < CONDUCTS; c++) {
        emulator_control.set(conducts[c]);
        float *result = card_floats(3 * THREADS);
        launch("block_words", NULL, (PlantedArguments){.y = result});
        read_floats(y, result, 3 * THREADS, NULL);
        for (int i = 0; i < THREADS; i++) {
            CHECK_NEAR(y[3 * i], 86, 0);
            CHECK_NEAR(y[3 * i + 1], 1, 0);
            CHECK_NEAR(y[3 * i + 2], 0, 0);
        }
        card_free(result);
    }
}

static void atomics_lose_nothing(void) {
    uint32_t y[8] = {0};
    emulator_control.set("order=shuffled");
    float *result = card_floats(8);
    write_floats(result, (const float *)y, 8, NULL);
    launch("atomics", NULL, (PlantedArguments){.y = result});
    read_floats((float *)y, result, 8, NULL);
    CHECK_INT(y[0], BLOCKS * THREADS);
    CHECK_INT(y[1], THREADS - 1);
    CHECK_INT((int)y[2], 1 - THREADS);
    CHECK_INT(y[3], 0xFFFFFFFF);
    CHECK_INT(y[4], 7);
    CHECK_INT(y[5], 9);
    CHECK_INT(y[6], 0);
    CHECK_INT(y[7], BLOCKS * THREADS);
    card_free(result);
}

static void dynamic_shared_memory_is_what_was_asked(void) {
    float x[THREADS], y[THREADS];
    for (int i = 0; i < THREADS; i++)
        x[i] = (float)i;
    emulator_control.set("order=reverse");
    float *on_card = card_floats(THREADS), *result = card_floats(THREADS);
    write_floats(on_card, x, THREADS, NULL);
    PlantedArguments arguments = {.x = on_card, .y = result};
    CHECK_INT(launch_as("dynamic_shared", 1, THREADS, sizeof x, NULL, arguments), CUDA_SUCCESS);
    read_floats(y, result, THREADS, NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK_NEAR(y[i], THREADS - 1 - i, 0);
    CHECK_INT(launch_as("dynamic_shared", 1, THREADS, (48 << 10) + 1, NULL, arguments),
              CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(launch_as("dynamic_shared", 1, THREADS, 48 << 10, NULL, arguments), CUDA_SUCCESS);
    CHECK_INT(driver->cuStreamSynchronize(NULL), CUDA_SUCCESS);
    card_free(on_card);
    card_free(result);
}

static void launch_that_no_card_takes_is_refused(void) {
    emulator_control.set("");
    PlantedArguments none = {0};
    CHECK_INT(launch_as("fill", 0, 256, 0, NULL, none), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(launch_as("fill", 1, 0, 0, NULL, none), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(launch_as("fill", 1, 257, 0, NULL, none), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(launch_as("fill", 1, 250, 0, NULL, none), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(launch_as("fill", 1u << 31, 256, 0, NULL, none), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(launch_as("nothing", 1, 256, 0, NULL, none), CUDA_ERROR_NOT_FOUND);
}

// ---- mistakes -----------------------------------------------------------------------------------

// Kernels whose result depends on an order that nothing promises: wrong, or NaN, in some conduct.
static bool is_right_in(const char *kernel, const char *settings) {
    float x[THREADS], y[THREADS];
    for (int i = 0; i < THREADS; i++)
        x[i] = (float)i;
    emulator_control.set(settings);
    float *on_card = card_floats(THREADS), *result = card_floats(THREADS);
    write_floats(on_card, x, THREADS, NULL);
    CHECK_INT(launch_as(kernel, 1, THREADS, 0, NULL, (PlantedArguments){on_card, result, 0, 0}),
              CUDA_SUCCESS);
    read_floats(y, result, THREADS, NULL);
    bool right = true;
    for (int i = 0; i < THREADS; i++)
        right = right && !isnan(y[i]) && y[i] == (float)((i + 1) % THREADS);
    card_free(on_card);
    card_free(result);
    return right;
}

static void missing_barrier_is_seen(void) {
    CHECK(!is_right_in("no_barrier", "order=forward"));
    CHECK(!is_right_in("no_barrier", "order=reverse"));
    CHECK(!is_right_in("no_barrier", "order=shuffled"));
}

static void unset_shared_memory_is_nan(void) {
    emulator_control.set("");
    float y[32], *result = card_floats(32);
    CHECK_INT(launch_as("unset_shared", 1, 32, 0, NULL, (PlantedArguments){.y = result}),
              CUDA_SUCCESS);
    read_floats(y, result, 32, NULL);
    CHECK(isnan(y[0]) && isnan(y[31]));
    card_free(result);
}

typedef struct Mistake {
    const char *kernel;
    unsigned threads;
    CUresult result;
    const char *said;
} Mistake;

static int make_mistake(const void *argument) {
    const Mistake *mistake = argument;
    emulator_control.set("");
    float *x = card_floats(256), *y = card_floats(256);
    CUresult launched =
        launch_as(mistake->kernel, 1, mistake->threads, 0, NULL, (PlantedArguments){x, y, 256, 1});
    CUresult waited = driver->cuStreamSynchronize(NULL);
    CUdeviceptr more;
    if (waited == CUDA_SUCCESS || driver->cuMemAlloc(&more, 16) != waited)
        return -1; // a card that failed must go on failing
    return (int)(launched == CUDA_SUCCESS ? waited : launched);
}

static void kernel_that_breaks_a_rule_fails(void) {
    static const Mistake mistakes[] = {
        {"divergent_barrier", 64, CUDA_ERROR_LAUNCH_FAILED, "at a barrier that not all"},
        {"different_barriers", 64, CUDA_ERROR_LAUNCH_FAILED, "at different barriers"},
        {"large_shared", 32, CUDA_ERROR_LAUNCH_FAILED, "49156 bytes of shared arrays"},
        {"not_in_own_mask", 32, CUDA_ERROR_LAUNCH_FAILED, "not in its own mask 0000ffff"},
        {"reads_absent_lane", 32, CUDA_ERROR_LAUNCH_FAILED, "which is not in mask 0000ffff"},
        {"waits_for_absent", 32, CUDA_ERROR_LAUNCH_TIMEOUT, "for lanes of its mask"},
        {"different_meetings", 32, CUDA_ERROR_LAUNCH_FAILED, "meet here and at line"},
        {"misaligned_load", 32, CUDA_ERROR_MISALIGNED_ADDRESS, "load of 16 bytes"},
        {"misaligned_store", 32, CUDA_ERROR_MISALIGNED_ADDRESS, "store of 16 bytes"},
        {"misaligned_tile", 32, CUDA_ERROR_MISALIGNED_ADDRESS, "row of a tile"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        Outcome outcome = try_apart(make_mistake, &mistakes[i]);
        CHECK_MESSAGE(!outcome.died && outcome.result == (int)mistakes[i].result,
                      "%s: %d, expected %d", mistakes[i].kernel, outcome.result,
                      (int)mistakes[i].result);
        CHECK_CONTAINS(outcome.said, mistakes[i].said);
        CHECK_CONTAINS(outcome.said, mistakes[i].kernel);
    }
}

int main(void) {
    if (!start_card()) {
        printf("not ok threads_test: the emulated card does not start\n");
        return 1;
    }
    RUN_TEST(same_result_in_every_conduct);
    RUN_TEST(largest_blocks_run_in_every_order);
    RUN_TEST(warps_exchange_as_cuda_says);
    RUN_TEST(warps_multiply_tiles);
    RUN_TEST(shared_arrays_lie_no_better_than_declared);
    RUN_TEST(barriers_count_predicates);
    RUN_TEST(atomics_lose_nothing);
    RUN_TEST(dynamic_shared_memory_is_what_was_asked);
    RUN_TEST(launch_that_no_card_takes_is_refused);
    RUN_TEST(missing_barrier_is_seen);
    RUN_TEST(unset_shared_memory_is_nan);
    RUN_TEST(kernel_that_breaks_a_rule_fails);
    return test_end();
}
