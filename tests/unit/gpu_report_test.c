// A card tells of its steps while it goes on: each as it was, in order, and nobody waits. Over the
// card that MPBENCH_GPU names, else over the emulated one.
#include "kernel/report.h"
#include "tests/unit/gpu_fixture.h"

static Error error;

enum { NUMBERS = 4096 };

static void write_step(double *memory, int step) {
    static double numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = step + i / (double)NUMBERS;
    device_write(gpu, memory, numbers, sizeof numbers);
}

static void post_step(Reports *reports, const double *memory) {
    int all, one;
    (void)reports_begin(reports);
    CHECK(reports_add(reports, memory, NUMBERS * sizeof *memory, &all, &error));
    CHECK(reports_add(reports, &memory[NUMBERS - 1], sizeof *memory, &one, &error));
    CHECK_MESSAGE(reports_post(reports, &error), "%s", error.text);
    CHECK(all == 0 && one == 1);
}

static void check_step(const Reports *reports, int place, int step) {
    const double last = step + (NUMBERS - 1) / (double)NUMBERS;
    const double *all = reports_piece(reports, place, 0), *one = reports_piece(reports, place, 1);
    CHECK_NEAR(all[0], step, 0);
    CHECK_NEAR(all[NUMBERS - 1], last, 0);
    CHECK_NEAR(*one, last, 0);
}

static void reports_come_in_order_as_the_steps_were_and_nobody_waits(void) {
    enum { STEPS = 40 };
    double *memory =
        allocator_take(gpu->allocator, NUMBERS * sizeof *memory, MEMORY_WORKSPACE, &error);
    Reports *reports = reports_new(gpu, &error);
    CHECK(memory && reports && reports_places(reports) == 5);
    uint64_t waits = gpu->waits;
    int seen = 0;
    for (int step = 0; step < STEPS; step++) {
        write_step(memory, step);
        post_step(reports, memory);
        for (int place; (place = reports_take(reports, false)) >= 0; seen++) {
            check_step(reports, place, seen);
            reports_done(reports, place);
        }
        CHECK(seen >= step - 3); // at most four are under way
    }
    CHECK_INT(gpu->waits, waits);
    for (int place; (place = reports_take(reports, true)) >= 0; seen++) {
        check_step(reports, place, seen);
        reports_done(reports, place);
    }
    CHECK_INT(seen, STEPS);
    reports_free(reports);
    allocator_give(gpu->allocator, memory);
    CHECK_MESSAGE(device_check(gpu, &error), "%s", error.text);
}

static void what_is_under_way_is_dropped_with_the_reports(void) {
    double *memory =
        allocator_take(gpu->allocator, NUMBERS * sizeof *memory, MEMORY_WORKSPACE, &error);
    Reports *reports = reports_new(gpu, &error);
    write_step(memory, 1);
    post_step(reports, memory);
    reports_free(reports);
    allocator_give(gpu->allocator, memory);
    CHECK_MESSAGE(device_check(gpu, &error), "%s", error.text);
}

// Whoever closes a card leaves the thread without one.
static void another_card_that_is_closed_takes_nothing_along(void) {
    double *memory =
        allocator_take(gpu->allocator, NUMBERS * sizeof *memory, MEMORY_WORKSPACE, &error);
    write_step(memory, 1);
    Device *other;
    if (device_open("gpu:1", 1, &other, &error)) // else the machine has one card alone
        device_close(other);
    Reports *reports = reports_new(gpu, &error);
    post_step(reports, memory);
    int place = reports_take(reports, true);
    CHECK(place >= 0);
    if (place >= 0)
        check_step(reports, place, 1);
    if (device_open("gpu:1", 1, &other, &error))
        device_close(other);
    reports_free(reports);
    allocator_give(gpu->allocator, memory);
    CHECK_MESSAGE(device_check(gpu, &error), "%s", error.text);
}

int main(void) {
    int status;
    (void)setenv("MPBENCH_EMULATOR", "cards=2", 0);
    if (!gpu_test_begin(&status))
        return status;
    RUN_TEST(reports_come_in_order_as_the_steps_were_and_nobody_waits);
    RUN_TEST(what_is_under_way_is_dropped_with_the_reports);
    RUN_TEST(another_card_that_is_closed_takes_nothing_along);
    return gpu_test_end();
}
