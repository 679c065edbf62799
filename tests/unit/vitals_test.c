// The energy of a device is its counter's, or the sum of its power over time, and unknown where it
// tells neither; it goes on past a sample that failed.
#include "run/vitals.h"

#include <time.h>

#include "tests/test.h"

static DeviceReadings told;

static void tell(Device *device, DeviceReadings *readings) {
    (void)device;
    *readings = told;
}

static const Backend backend = {.name = "told", .readings = tell};
static const Backend silent = {.name = "silent"};

static void say(ReadingId id, double value) {
    told.known = 0;
    reading_set(&told, id, value);
}

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void energy_is_what_the_counter_went_on_by(void) {
    Device device = {.backend = &backend};
    Vitals vitals;
    say(READING_ENERGY, 1e6);
    reading_set(&told, READING_POWER, 9999); // of no account beside a counter
    vitals_begin(&vitals, &device);
    CHECK_NEAR(vitals.joules, 0, 0);
    say(READING_ENERGY, 1e6 + 20);
    vitals_sample(&vitals);
    told.known = 0; // one that failed
    vitals_sample(&vitals);
    CHECK_NEAR(vitals.joules, 20, 1e-9);
    say(READING_ENERGY, 1e6 + 25);
    vitals_sample(&vitals);
    CHECK_NEAR(vitals.joules, 25, 1e-9);
    say(READING_ENERGY, 1e6 + 30);
    vitals_leave_out(&vitals);
    CHECK_NEAR(vitals.joules, 25, 1e-9);
    say(READING_ENERGY, 1e6 + 31);
    vitals_sample(&vitals);
    CHECK_NEAR(vitals.joules, 26, 1e-9);
    say(READING_ENERGY, 3); // it began anew
    vitals_sample(&vitals);
    CHECK(isnan(vitals.joules));
}

static void without_a_counter_power_is_summed_over_time(void) {
    Device device = {.backend = &backend};
    Vitals vitals;
    say(READING_POWER, 100);
    vitals_begin(&vitals, &device);
    CHECK_NEAR(vitals.joules, 0, 0);
    const double from = vitals.at;
    sleep_ms(20);
    told.known = 0;
    vitals_sample(&vitals); // one that failed: the next makes up for it
    CHECK_NEAR(vitals.joules, 0, 0);
    sleep_ms(20);
    say(READING_POWER, 300);
    vitals_sample(&vitals);
    CHECK_NEAR(vitals.joules, 200 * (vitals.at - from), 1e-9);
    CHECK(vitals.joules > 0);
    CHECK_NEAR(vitals.most_watts, 300, 0);
}

static void what_is_not_told_is_unknown_and_not_0(void) {
    Device device = {.backend = &backend};
    Vitals vitals;
    say(READING_TEMPERATURE, 40);
    vitals_begin(&vitals, &device);
    vitals_sample(&vitals);
    CHECK(isnan(vitals.joules) && isnan(vitals.most_watts));
    CHECK_NEAR(vitals.most_degrees, 40, 0);
    device.backend = &silent;
    vitals_begin(&vitals, &device);
    vitals_sample(&vitals);
    CHECK(isnan(vitals.joules) && isnan(vitals.most_degrees) && !vitals.device);
}

int main(void) {
    RUN_TEST(energy_is_what_the_counter_went_on_by);
    RUN_TEST(without_a_counter_power_is_summed_over_time);
    RUN_TEST(what_is_not_told_is_unknown_and_not_0);
    return test_end();
}
