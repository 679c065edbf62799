// What NVML reads of a card comes in the units of the contract, and what it does not read is
// unknown. Each machine is a process of its own: a plugin asks for the library once.
#include <math.h>
#include <sys/wait.h>

#include "kernel/about.h"
#include "tests/unit/gpu_fixture.h"

typedef bool (*Look)(const DeviceReadings *readings);

static bool open_and_look(const char *settings, Look look) {
    Error error;
    DeviceReadings readings;
    Device *card;
    if (setenv("MPBENCH_EMULATOR", settings, 1) != 0 || !device_open("gpu", 1, &card, &error))
        return false;
    memset(&readings, 0xa5, sizeof readings);
    card->backend->readings(card, &readings);
    bool good = look(&readings);
    device_close(card);
    return good;
}

// Whether `look` is content with what is read of a machine.
static bool reads(const char *settings, Look look) {
    int status = 1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(open_and_look(settings, look) ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool is(const DeviceReadings *readings, ReadingId id, double value) {
    return fabs(reading_of(readings, id) - value) <= 1e-9 * value;
}

static bool is_all_unknown(const DeviceReadings *readings) {
    for (int id = 0; id < READINGS; id++)
        if (!isnan(reading_of(readings, (ReadingId)id)) || !isnan(readings->value[id]))
            return false;
    return true;
}

static bool is_whole(const DeviceReadings *readings) {
    return is(readings, READING_POWER, 123.456) && is(readings, READING_POWER_LIMIT, 700) &&
           reading_of(readings, READING_ENERGY) > 0 && is(readings, READING_TEMPERATURE, 44) &&
           is(readings, READING_CORE_CLOCK, 1755) && is(readings, READING_MEMORY_CLOCK, 2619) &&
           is(readings, READING_BUSY, 0.31) && is(readings, READING_MEMORY_TOTAL, 1 << 30) &&
           reading_of(readings, READING_MEMORY_USED) > 0;
}

static bool lacks_what_came_late(const DeviceReadings *readings) {
    return isnan(reading_of(readings, READING_ENERGY)) &&
           isnan(reading_of(readings, READING_CORE_CLOCK)) && is(readings, READING_POWER, 250) &&
           is(readings, READING_TEMPERATURE, 61);
}

// A card that is idle may well say 0, and then it is known.
static bool knows_zero(const DeviceReadings *readings) {
    return readings->known >> READING_BUSY & 1 && reading_of(readings, READING_BUSY) == 0;
}

static void readings_come_in_watts_joules_degrees_and_bytes(void) {
    CHECK(reads("power=123456,degrees=44,clock=1755,busy=31,memory=1G", is_whole));
    CHECK(reads("busy=0", knows_zero));
}

static void what_nvml_does_not_read_is_unknown(void) {
    CHECK(reads("nvml=none", is_all_unknown));
    CHECK(reads("nvml=broken", is_all_unknown));
    CHECK(reads("nvml=deaf", is_all_unknown));
    CHECK(reads("nvml=old", lacks_what_came_late));
}

int main(void) {
    char why[4200];
    if (!gpu_find(why, sizeof why)) {
        printf("skip gpu_opens: %s\n", why);
        return 0;
    }
    RUN_TEST(readings_come_in_watts_joules_degrees_and_bytes);
    RUN_TEST(what_nvml_does_not_read_is_unknown);
    return test_end();
}
