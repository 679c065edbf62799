// What the settings of the emulated card make fail, and what it says of those who use it.
#include "tests/emulator/fixture.h"

// ---- before the driver starts -------------------------------------------------------------------

typedef struct Start {
    const char *settings, *said;
} Start;

static int start_with(const void *argument) {
    const Start *start = argument;
    setenv("MPBENCH_EMULATOR", start->settings, 1);
    Error error = {0};
    if (!gpu_driver(&error)) {
        fprintf(stderr, "%s", error.text);
        return (int)error.code;
    }
    return start_card() ? 0 : -1;
}

static void machine_without_a_usable_card_says_why(void) {
    static const Start starts[] = {
        {"cards=0", "no card that its driver serves"},
        {"driver=11080", "the driver serves CUDA 11.8, this build needs"},
        {"fail=cuInit/1:999", "the driver does not start: unknown error (cuInit: 999)"},
        {"fail=cuInit/1:12345", "it has no words for why (cuInit: 12345)"},
    };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        Outcome outcome = try_apart(start_with, &starts[i]);
        CHECK_INT(outcome.died, false);
        CHECK_INT(outcome.result, ERROR_UNAVAILABLE);
        CHECK_CONTAINS(outcome.said, starts[i].said);
    }
}

static void unknown_setting_ends_the_program(void) {
    static const char *const wrong[] = {"ordre=reverse",   "order=backward", "order=",  "seed=x",
                                        "fail=cuMemAlloc", "memory=12Q",     "streams", "fail=3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Outcome outcome = try_apart(start_with, &(Start){wrong[i], NULL});
        CHECK_MESSAGE(outcome.died, "\"%s\" was taken", wrong[i]);
        CHECK_CONTAINS(outcome.said, "is none of:");
        CHECK_CONTAINS(outcome.said, "order=forward reverse shuffled");
    }
}

// ---- calls that fail ----------------------------------------------------------------------------

static void nth_call_fails_and_no_other(void) {
    emulator_control.set("fail=3:2");
    CUdeviceptr memory[4] = {0};
    CHECK_INT(driver->cuMemAlloc(&memory[0], 16), CUDA_SUCCESS);
    CHECK_INT(driver->cuMemAlloc(&memory[1], 16), CUDA_SUCCESS);
    CHECK_INT(driver->cuMemAlloc(&memory[2], 16), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_INT(driver->cuMemAlloc(&memory[3], 16), CUDA_SUCCESS);
    for (int i = 0; i < 4; i++)
        CHECK_INT(driver->cuMemFree(memory[i]), CUDA_SUCCESS);
    emulator_control.set("fail=cuMemAlloc/2:999");
    CHECK_INT(driver->cuMemAlloc(&memory[0], 16), CUDA_SUCCESS);
    CHECK_INT(driver->cuStreamSynchronize(NULL), CUDA_SUCCESS);
    CHECK_INT(driver->cuMemAlloc(&memory[1], 16), CUDA_ERROR_UNKNOWN);
    CHECK_INT(driver->cuMemFree(memory[0]), CUDA_SUCCESS);
    emulator_control.set("");
}

static int lasting_failure(const void *argument) {
    (void)argument;
    emulator_control.set("fail=2:700");
    CUdeviceptr memory;
    if (driver->cuMemAlloc(&memory, 16) != CUDA_SUCCESS ||
        driver->cuMemAlloc(&memory, 16) != CUDA_ERROR_ILLEGAL_ADDRESS ||
        driver->cuMemAlloc(&memory, 16) != CUDA_ERROR_ILLEGAL_ADDRESS)
        return 1;
    int version;
    if (driver->cuDriverGetVersion(&version) != CUDA_SUCCESS)
        return 2;
    emulator_control.heal();
    return (int)driver->cuMemAlloc(&memory, 16);
}

static void failure_of_the_card_lasts(void) {
    Outcome outcome = try_apart(lasting_failure, NULL);
    CHECK_INT(outcome.died, false);
    CHECK_INT(outcome.result, 0);
}

// The second kernel dies. Its launch went well, and so do calls until one waits for it.
static int die_in_second_kernel(const void *argument) {
    (void)argument;
    emulator_control.set("");
    float *y = card_floats(COUNT), host[COUNT] = {0};
    char settings[40];
    snprintf(settings, sizeof settings, "crash=%d:719", (int)card_state().kernels + 2);
    emulator_control.set(settings);
    CUstream stream;
    if (driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return 1;
    PlantedArguments arguments = {.y = y, .count = COUNT, .value = 1};
    for (int i = 0; i < 3; i++)
        if (launch_as("fill", 1, 256, 0, stream, arguments) != CUDA_SUCCESS)
            return 2;
    if (driver->cuMemcpyDtoHAsync(host, address_of(y), sizeof host, stream) !=
        CUDA_ERROR_LAUNCH_FAILED)
        return 3;
    return host[0] == 0 ? (int)driver->cuStreamSynchronize(stream) : 4; // nothing came back
}

static void kernel_that_dies_is_told_when_waited_for(void) {
    Outcome outcome = try_apart(die_in_second_kernel, NULL);
    CHECK_INT(outcome.result, CUDA_ERROR_LAUNCH_FAILED);
    CHECK_CONTAINS(outcome.said, "fill: dies as MPBENCH_EMULATOR wants it");
}

// ---- what is known of a program -----------------------------------------------------------------

static int leave_things_behind(const void *argument) {
    (void)argument;
    CUstream stream;
    emulator_control.set("");
    (void)card_floats(25);
    driver->cuStreamCreate(&stream, 0);
    driver->cuModuleUnload(module);
    return (int)driver->cuDevicePrimaryCtxRelease(0);
}

static void what_is_left_at_the_end_is_told(void) {
    Outcome outcome = try_apart(leave_things_behind, NULL);
    CHECK_INT(outcome.result, CUDA_SUCCESS);
    CHECK_CONTAINS(outcome.said, "card 0 is left with 100 bytes of memory, 1 streams, 0 events");
}

static void state_counts_what_is_there(void) {
    emulator_control.set("");
    EmulatorState before = card_state();
    float *memory = card_floats(10);
    void *pinned;
    CUevent event;
    CHECK_INT(driver->cuMemHostAlloc(&pinned, 10, 0), CUDA_SUCCESS);
    CHECK_INT(driver->cuEventCreate(&event, 0), CUDA_SUCCESS);
    EmulatorState during = card_state();
    CHECK_INT(during.calls - before.calls, 3);
    CHECK_INT(during.device_bytes - before.device_bytes, 40);
    CHECK_INT(during.device_blocks - before.device_blocks, 1);
    CHECK_INT(during.pinned_blocks - before.pinned_blocks, 1);
    CHECK_INT(during.events - before.events, 1);
    CHECK_INT(during.contexts, 1);
    card_free(memory);
    CHECK_INT(driver->cuMemFreeHost(pinned), CUDA_SUCCESS);
    CHECK_INT(driver->cuEventDestroy(event), CUDA_SUCCESS);
    EmulatorState after = card_state();
    CHECK_INT(after.device_blocks, before.device_blocks);
    CHECK_INT(after.pinned_blocks, before.pinned_blocks);
    CHECK_INT(after.events, before.events);
}

// ---- several cards ------------------------------------------------------------------------------

static void cards_know_nothing_of_each_other(void) {
    emulator_control.set("cards=2");
    int count = 0;
    CUcontext second;
    CHECK_INT(driver->cuDeviceGetCount(&count), CUDA_SUCCESS);
    CHECK_INT(count, 2);
    float *memory = card_floats(16), host[16] = {0};
    CHECK_INT(driver->cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
    CHECK_INT(driver->cuDevicePrimaryCtxRetain(&second, 2), CUDA_ERROR_INVALID_DEVICE);
    CHECK_INT(driver->cuCtxSetCurrent(second), CUDA_SUCCESS);
    CHECK_INT(driver->cuMemcpyHtoDAsync(address_of(memory), host, sizeof host, NULL),
              CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(driver->cuMemFree(address_of(memory)), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(launch_as("fill", 1, 32, 0, NULL, (PlantedArguments){.y = memory}),
              CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(driver->cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
    CHECK_INT(driver->cuMemFree(address_of(memory)), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_INT(driver->cuCtxSetCurrent(context), CUDA_SUCCESS);
    card_free(memory);
    emulator_control.set("");
}

static void old_card_has_no_kernels(void) {
    emulator_control.set("capability=75");
    CUmodule none;
    int major = 0, minor = 0;
    CHECK_INT(driver->cuModuleLoadData(&none, &planted_image), CUDA_ERROR_NO_BINARY_FOR_GPU);
    driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    CHECK_INT(10 * major + minor, 75);
    CHECK_INT(driver->cuModuleLoadData(&none, "no image of any kind"), CUDA_ERROR_INVALID_IMAGE);
    emulator_control.set("");
}

int main(void) {
    RUN_TEST(machine_without_a_usable_card_says_why);
    RUN_TEST(unknown_setting_ends_the_program);
    if (!start_card()) {
        printf("not ok faults_test: the emulated card does not start\n");
        return 1;
    }
    RUN_TEST(nth_call_fails_and_no_other);
    RUN_TEST(failure_of_the_card_lasts);
    RUN_TEST(kernel_that_dies_is_told_when_waited_for);
    RUN_TEST(what_is_left_at_the_end_is_told);
    RUN_TEST(state_counts_what_is_there);
    RUN_TEST(cards_know_nothing_of_each_other);
    RUN_TEST(old_card_has_no_kernels);
    return test_end();
}
