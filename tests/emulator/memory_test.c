// Memory of the emulated card: what is new, freed, past an end, or the host's.
#include "tests/emulator/fixture.h"

static void new_memory_is_nan(void) {
    emulator_control.set("");
    float y[COUNT], *memory = card_floats(COUNT);
    read_floats(y, memory, COUNT, NULL);
    for (int i = 0; i < COUNT; i++)
        CHECK(isnan(y[i]));
    card_free(memory);
}

static void card_has_no_more_than_its_memory(void) {
    emulator_control.set("memory=1M");
    CUdeviceptr most, more;
    CHECK_INT(driver->cuMemAlloc(&most, 1 << 20), CUDA_SUCCESS);
    CHECK_INT(driver->cuMemAlloc(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_INT(driver->cuMemFree(most), CUDA_SUCCESS);
    CHECK_INT(driver->cuMemAlloc(&more, 1), CUDA_SUCCESS);
    CHECK_INT(driver->cuMemFree(more), CUDA_SUCCESS);
}

static void copy_past_an_end_is_refused(void) {
    emulator_control.set("");
    float host[32] = {0}, *memory = card_floats(32);
    size_t bytes = sizeof host;
    CUdeviceptr at = address_of(memory);
    CHECK_INT(driver->cuMemcpyHtoDAsync(at + 4, host, bytes, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(driver->cuMemcpyDtoHAsync(host, at + 4, bytes, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(driver->cuMemcpyDtoDAsync(at, at + 4, bytes, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(driver->cuMemsetD8Async(at, 0, bytes + 1, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(driver->cuMemcpyHtoDAsync(at, memory, bytes, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(driver->cuMemFree(at + 4), CUDA_ERROR_INVALID_VALUE);
    card_free(memory);
    CHECK_INT(driver->cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(driver->cuMemsetD8Async(at, 0, bytes, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void address_is_not_used_again(void) {
    emulator_control.set("");
    float *before = card_floats(100);
    card_free(before);
    float *after = card_floats(100);
    CHECK(after != before);
    card_free(after);
}

// Where all addresses were used, those of freed blocks are used again.
static int take_more_than_there_are_addresses(const void *argument) {
    (void)argument;
    enum { LARGE = 3 << 20 };
    emulator_control.set("memory=8M,addresses=16M");
    float *kept = card_floats(100);
    for (int i = 0; i < 40; i++) {
        CUdeviceptr large;
        if (driver->cuMemAlloc(&large, LARGE) != CUDA_SUCCESS)
            return i;
        if (large + LARGE > address_of(kept) && large < address_of(kept + 100))
            return 100;
        CHECK_INT(driver->cuMemsetD8Async(large, 0, LARGE, NULL), CUDA_SUCCESS);
        card_free((void *)(uintptr_t)large);
    }
    return 40;
}

static void addresses_come_round(void) {
    Outcome outcome = try_apart(take_more_than_there_are_addresses, NULL);
    CHECK_INT(outcome.died, false);
    CHECK_INT(outcome.result, 40);
}

// ---- mistakes -----------------------------------------------------------------------------------

typedef struct Mistake {
    const char *about, *settings, *kernel;
    int64_t (*count)(const float *x, const float *y);
    CUresult result;
    const char *said;
} Mistake;

static int64_t of_block(const float *x, const float *y) {
    (void)x, (void)y;
    return 256;
}
static int64_t far_away(const float *x, const float *y) {
    (void)x;
    return (int64_t)(intptr_t)y + (1 << 30);
}
static int64_t of_no_card(const float *x, const float *y) {
    (void)x, (void)y;
    return 16;
}
static int64_t of_what_was_freed(const float *x, const float *y) {
    (void)x, (void)y;
    float *large = card_floats(1 << 20);
    card_free(large);
    return (int64_t)(intptr_t)(large + (1 << 19));
}

// `x` holds the address of another block than y.
static int make_mistake(const void *argument) {
    const Mistake *mistake = argument;
    emulator_control.set(mistake->settings);
    float *x = card_floats(256), *y = card_floats(256), *hidden = card_floats(256);
    CHECK_INT(driver->cuMemcpyHtoDAsync(address_of(x), &hidden, sizeof hidden, NULL), CUDA_SUCCESS);
    PlantedArguments arguments = {x, y, mistake->count(x, y), 1};
    CUresult launched = launch_as(mistake->kernel, 1, 32, 0, NULL, arguments);
    if (launched == CUDA_SUCCESS)
        launched = driver->cuStreamSynchronize(NULL);
    return (int)launched;
}

static void kernel_that_writes_elsewhere_fails(void) {
    static const Mistake mistakes[] = {
        {"past its block", "", "writes_past_end", of_block, CUDA_ERROR_ILLEGAL_ADDRESS,
         "writes_past_end: a write past the end: byte 1024 of a block of 1024 bytes"},
        {"past one it was not given", "", "writes_hidden", of_block, CUDA_ERROR_ILLEGAL_ADDRESS,
         "one of the last 1 kernels: a write past the end"},
        {"far from all", "", "writes_far", far_away, CUDA_ERROR_ILLEGAL_ADDRESS,
         "where no block lives"},
        {"to no card", "", "writes_far", of_no_card, CUDA_ERROR_ILLEGAL_ADDRESS,
         "no memory of a card"},
        {"after it was freed", "", "writes_far", of_what_was_freed, CUDA_ERROR_ILLEGAL_ADDRESS,
         "where no block lives"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        Outcome outcome = try_apart(make_mistake, &mistakes[i]);
        if (EMULATOR_ASAN) {
            CHECK_MESSAGE(outcome.died, "%s: nobody saw it", mistakes[i].about);
            CHECK_CONTAINS(outcome.said, "AddressSanitizer");
            continue;
        }
        CHECK_MESSAGE(!outcome.died && outcome.result == (int)mistakes[i].result,
                      "%s: %d, expected %d", mistakes[i].about, outcome.result,
                      (int)mistakes[i].result);
        CHECK_CONTAINS(outcome.said, mistakes[i].said);
    }
}

static int touch_from_host(const void *argument) {
    emulator_control.set("protect=1");
    float *memory = card_floats(256);
    launch("fill", NULL, (PlantedArguments){.y = memory, .count = 256, .value = 3});
    float value = -1;
    read_floats(&value, memory, 1, NULL);
    if (argument) {
        volatile float *touched = memory;
        value = *touched;
    }
    card_free(memory);
    return (int)value;
}

static void host_cannot_touch_protected_memory(void) {
    Outcome right = try_apart(touch_from_host, NULL), wrong = try_apart(touch_from_host, "");
    CHECK_INT(right.died, false);
    CHECK_INT(right.result, 3);
    CHECK_INT(wrong.died, true);
    CHECK_CONTAINS(wrong.said,
                   EMULATOR_ASAN ? "AddressSanitizer" : "the host touches memory of the device");
}

int main(void) {
    if (!start_card()) {
        printf("not ok memory_test: the emulated card does not start\n");
        return 1;
    }
    RUN_TEST(addresses_come_round); // first: nothing has an address yet
    RUN_TEST(new_memory_is_nan);
    RUN_TEST(card_has_no_more_than_its_memory);
    RUN_TEST(copy_past_an_end_is_refused);
    RUN_TEST(address_is_not_used_again);
    RUN_TEST(kernel_that_writes_elsewhere_fails);
    RUN_TEST(host_cannot_touch_protected_memory);
    return test_end();
}
