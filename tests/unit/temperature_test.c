// The hottest sensor of a processor counts, and what cannot be read is unknown.
#include "run/temperature.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/test.h"

static char root[TEST_FOLDER_SIZE];

static void plant(const char *class, const char *device, const char *file, const char *text) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", root, class);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", root, class, device);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s/%s", root, class, device, file);
    FILE *out = fopen(path, "w");
    CHECK(out && fputs(text, out) >= 0);
    if (out)
        fclose(out);
}

static void what_cannot_be_read_is_unknown(void) {
    Temperature temperature;
    temperature_begin(&temperature, "/nowhere");
    CHECK_INT(temperature.count, 0);
    CHECK(isnan(temperature_read(&temperature)));
    plant("hwmon", "hwmon0", "name", "nvme\n"); // a disk
    plant("hwmon", "hwmon0", "temp1_input", "38000\n");
    temperature_begin(&temperature, root);
    CHECK(isnan(temperature_read(&temperature)));
}

static void zones_tell_where_no_sensor_does(void) {
    Temperature temperature;
    plant("thermal", "thermal_zone0", "type", "acpitz\n");
    plant("thermal", "thermal_zone0", "temp", "90000\n");
    plant("thermal", "thermal_zone1", "type", "x86_pkg_temp\n");
    plant("thermal", "thermal_zone1", "temp", "55000\n");
    temperature_begin(&temperature, root);
    CHECK_NEAR(temperature_read(&temperature), 55, 1e-9);
}

static void the_hottest_of_the_processors_counts(void) {
    Temperature temperature;
    plant("hwmon", "hwmon1", "name", "coretemp\n");
    plant("hwmon", "hwmon1", "temp1_input", "61000\n");
    plant("hwmon", "hwmon1", "temp2_input", "71500\n");
    plant("hwmon", "hwmon1", "temp2_crit", "100000\n");
    plant("hwmon", "hwmon2", "name", "k10temp\n");
    plant("hwmon", "hwmon2", "temp1_input", "0\n"); // a sensor that is off
    temperature_begin(&temperature, root);
    CHECK_INT(temperature.count, 3);
    CHECK_NEAR(temperature_read(&temperature), 71.5, 1e-9);
    plant("hwmon", "hwmon1", "temp2_input", "nonsense\n");
    CHECK_NEAR(temperature_read(&temperature), 61, 1e-9);
    plant("hwmon", "hwmon1", "temp1_input", "999999\n");
    CHECK(isnan(temperature_read(&temperature)));
}

int main(void) {
    if (!test_folder_make(root, sizeof root))
        return 1;
    RUN_TEST(what_cannot_be_read_is_unknown);
    RUN_TEST(zones_tell_where_no_sensor_does);
    RUN_TEST(the_hottest_of_the_processors_counts);
    test_folder_remove(root);
    return test_end();
}
