// Streams of the emulated card: nothing happens before it must, and nothing is ordered that no
// event orders.
#include "tests/emulator/fixture.h"

// The work of a step that reports: a stream that brings data, a stream that computes, a report in
// pinned memory. Each mistake leaves one thing out that a card needs.
typedef enum StepMistake {
    NO_MISTAKE,
    NO_WAIT_BETWEEN_STREAMS,
    NO_WAIT_FOR_REPORT,
    NO_WAIT_BEFORE_REFILL,
    FREES_UNDER_WAY
} StepMistake;

typedef struct Step {
    const char *settings;
    StepMistake mistake;
} Step;

static CUstream new_stream(void) {
    CUstream stream = NULL;
    CHECK_INT(driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return stream;
}
static CUevent new_event(unsigned flags) {
    CUevent event = NULL;
    CHECK_INT(driver->cuEventCreate(&event, flags), CUDA_SUCCESS);
    return event;
}
static float *pinned_floats(void) {
    void *memory = NULL;
    CHECK_INT(driver->cuMemHostAlloc(&memory, COUNT * sizeof(float), 0), CUDA_SUCCESS);
    return memory;
}

// 0: the report is right. 1: it is wrong. Else what the driver said.
static int do_step(const void *argument) {
    const Step *step = argument;
    emulator_control.set(step->settings);
    CUstream loads = new_stream(), computes = new_stream();
    CUevent loaded = new_event(CU_EVENT_DISABLE_TIMING), reported = new_event(0);
    float *batch = pinned_floats(), *report = pinned_floats();
    float *x = card_floats(COUNT), *y = card_floats(COUNT);
    for (int i = 0; i < COUNT; i++)
        batch[i] = 100;
    write_floats(x, batch, COUNT, loads);
    driver->cuEventRecord(loaded, loads);
    if (step->mistake == NO_WAIT_BEFORE_REFILL)
        batch[3] = 0;
    if (step->mistake == FREES_UNDER_WAY)
        return (int)driver->cuMemFreeHost(batch);
    if (step->mistake != NO_WAIT_BETWEEN_STREAMS)
        driver->cuStreamWaitEvent(computes, loaded, 0);
    launch("add_one", computes, (PlantedArguments){x, y, COUNT, 0});
    read_floats(report, y, COUNT, computes);
    driver->cuEventRecord(reported, computes);
    CUresult waited = CUDA_SUCCESS;
    if (step->mistake != NO_WAIT_FOR_REPORT)
        waited = driver->cuEventSynchronize(reported);
    if (waited != CUDA_SUCCESS)
        return (int)waited;
    for (int i = 0; i < COUNT; i++)
        if (!(report[i] == 101))
            return 1;
    return 0;
}

static void step_is_right_in_every_conduct(void) {
    for (int c = 0; c < CONDUCTS; c++) {
        Outcome outcome = try_apart(do_step, &(Step){conducts[c], NO_MISTAKE});
        CHECK_MESSAGE(!outcome.died && outcome.result == 0, "%s: %d: %s", conducts[c],
                      outcome.result, outcome.said);
    }
}

static void missing_wait_between_streams_is_seen(void) {
    Outcome lazy = try_apart(do_step, &(Step){"streams=lazy", NO_WAIT_BETWEEN_STREAMS});
    CHECK_INT(lazy.result, 1);
    int wrong = 0;
    for (int seed = 1; seed <= 20; seed++) {
        char settings[40];
        snprintf(settings, sizeof settings, "streams=shuffled,seed=%d", seed);
        wrong += try_apart(do_step, &(Step){settings, NO_WAIT_BETWEEN_STREAMS}).result;
    }
    CHECK_MESSAGE(wrong > 0 && wrong < 20, "wrong for %d of 20 seeds", wrong);
}

static void report_that_was_not_waited_for_is_nan(void) {
    Outcome outcome = try_apart(do_step, &(Step){"streams=lazy", NO_WAIT_FOR_REPORT});
    CHECK_INT(outcome.result, 1);
}

static void pinned_memory_under_way_must_be_left_alone(void) {
    Outcome refilled = try_apart(do_step, &(Step){"streams=lazy", NO_WAIT_BEFORE_REFILL});
    CHECK_INT(refilled.result, CUDA_ERROR_LAUNCH_FAILED);
    CHECK_CONTAINS(refilled.said, "pinned memory was changed");
    Outcome freed = try_apart(do_step, &(Step){"streams=lazy", FREES_UNDER_WAY});
    CHECK_INT(freed.result, CUDA_ERROR_LAUNCH_FAILED);
    CHECK_CONTAINS(freed.said, "pinned memory was freed");
}

static void lazy_stream_does_no_more_than_is_waited_for(void) {
    emulator_control.set("streams=lazy");
    CUstream stream = new_stream(), other = new_stream();
    CUevent first = new_event(0), second = new_event(0);
    float *y = card_floats(COUNT);
    uint64_t before = card_state().kernels;
    launch("fill", other, (PlantedArguments){.y = y, .count = COUNT});
    launch("fill", stream, (PlantedArguments){.y = y, .count = COUNT});
    driver->cuEventRecord(first, stream);
    launch("fill", stream, (PlantedArguments){.y = y, .count = COUNT});
    driver->cuEventRecord(second, stream);
    CHECK_INT(card_state().kernels - before, 0);
    CHECK_INT(driver->cuEventSynchronize(first), CUDA_SUCCESS);
    CHECK_INT(card_state().kernels - before, 1);
    CHECK_INT(driver->cuEventQuery(first), CUDA_SUCCESS);
    float passed = -1;
    CHECK_INT(driver->cuEventElapsedTime(&passed, first, second), CUDA_ERROR_NOT_READY);
    int questions = 0;
    while (driver->cuEventQuery(second) == CUDA_ERROR_NOT_READY && questions < 100)
        questions++;
    CHECK_INT(questions, 2);
    CHECK_INT(card_state().kernels - before, 2);
    CHECK_INT(driver->cuEventElapsedTime(&passed, first, second), CUDA_SUCCESS);
    CHECK(passed >= 0);
    card_free(y); // waits for the card
    CHECK_INT(card_state().kernels - before, 3);
    driver->cuEventDestroy(first);
    driver->cuEventDestroy(second);
    driver->cuStreamDestroy(stream);
    driver->cuStreamDestroy(other);
}

// From pageable memory the bytes are taken at the call; into it a copy waits.
static void pageable_memory_may_be_used_at_once(void) {
    emulator_control.set("streams=lazy");
    CUstream stream = new_stream();
    float host[COUNT], *x = card_floats(COUNT);
    for (int i = 0; i < COUNT; i++)
        host[i] = 5;
    write_floats(x, host, COUNT, stream);
    memset(host, 0, sizeof host);
    read_floats(host, x, COUNT, stream);
    CHECK_NEAR(host[COUNT - 1], 5, 0);
    card_free(x);
    driver->cuStreamDestroy(stream);
}

// An event that is recorded anew means the last record to who asks, and the one that was to who
// waits for it already.
static void wait_means_the_record_before_it(void) {
    emulator_control.set("streams=lazy");
    CUstream writes = new_stream(), reads = new_stream();
    CUevent event = new_event(0);
    float *y = card_floats(COUNT), *copy = card_floats(COUNT), value = 0;
    launch("fill", writes, (PlantedArguments){.y = y, .count = COUNT, .value = 1});
    driver->cuEventRecord(event, writes);
    driver->cuStreamWaitEvent(reads, event, 0);
    launch("fill", writes, (PlantedArguments){.y = y, .count = COUNT, .value = 2});
    driver->cuEventRecord(event, writes);
    driver->cuMemcpyDtoDAsync(address_of(copy), address_of(y), COUNT * sizeof(float), reads);
    read_floats(&value, copy, 1, reads);
    CHECK_NEAR(value, 1, 0);
    CHECK_INT(driver->cuEventQuery(event), CUDA_ERROR_NOT_READY);
    card_free(y);
    card_free(copy);
    driver->cuEventDestroy(event);
    driver->cuStreamDestroy(writes);
    driver->cuStreamDestroy(reads);
}

static void what_was_destroyed_is_refused(void) {
    emulator_control.set("");
    CUstream stream = new_stream();
    CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
    CHECK_INT(driver->cuEventRecord(event, stream), CUDA_SUCCESS);
    float passed;
    CHECK_INT(driver->cuEventElapsedTime(&passed, event, event), CUDA_ERROR_INVALID_HANDLE);
    driver->cuEventDestroy(event);
    driver->cuStreamDestroy(stream);
    CHECK_INT(driver->cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(driver->cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(driver->cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(driver->cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
}

int main(void) {
    if (!start_card()) {
        printf("not ok streams_test: the emulated card does not start\n");
        return 1;
    }
    RUN_TEST(step_is_right_in_every_conduct);
    RUN_TEST(missing_wait_between_streams_is_seen);
    RUN_TEST(report_that_was_not_waited_for_is_nan);
    RUN_TEST(pinned_memory_under_way_must_be_left_alone);
    RUN_TEST(lazy_stream_does_no_more_than_is_waited_for);
    RUN_TEST(pageable_memory_may_be_used_at_once);
    RUN_TEST(wait_means_the_record_before_it);
    RUN_TEST(what_was_destroyed_is_refused);
    return test_end();
}
