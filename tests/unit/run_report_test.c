// What the boundary between two steps asks of the device.
#include "tests/unit/recorder_fixture.h"

// How often the host waits for the device in a step that is recorded, with nothing unusual in it.
static uint64_t waits_of_a_steady_step(void) {
    enum { STEPS = 32 };
    bool stop;
    begin("steady");
    for (int i = 0; i < STEPS; i++)
        CHECK(train(1, &stop));
    uint64_t before = model.run->device->waits;
    for (int i = 0; i < STEPS; i++)
        CHECK(train(1, &stop));
    uint64_t waits = (model.run->device->waits - before) / STEPS;
    run_finish(model.run, NULL);
    CHECK(recorder_end(model.recorder, model.run, &error));
    end();
    return waits;
}

static void waits_of_a_step_are_counted(void) {
    uint64_t waits = waits_of_a_steady_step();
    printf("# a steady step waits %llu times\n", (unsigned long long)waits);
    CHECK(waits < 10);
}

int main(void) {
    make_place();
    RUN_TEST(waits_of_a_step_are_counted);
    return end_tests();
}
