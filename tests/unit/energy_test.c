// Energy is summed over packages, through the counters' ends, and unknown where it cannot be read.
#include "run/energy.h"

#include <math.h>
#include <sys/stat.h>

#include "tests/folder.h"
#include "tests/test.h"

static char root[TEST_FOLDER_SIZE];

static void plant(const char *zone, const char *file, const char *text) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", root, zone);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", root, zone, file);
    FILE *out = fopen(path, "w");
    CHECK(out && fputs(text, out) >= 0);
    if (out)
        fclose(out);
}

static void plant_zone(const char *zone, const char *name, const char *energy) {
    plant(zone, "name", name);
    plant(zone, "max_energy_range_uj", "10000000\n");
    plant(zone, "energy_uj", energy);
}

static void packages_are_summed_through_their_ends(void) {
    plant_zone("intel-rapl:0", "package-0\n", "9000000\n");
    plant_zone("intel-rapl:1", "package-1\n", "1000000\n");
    plant_zone("intel-rapl:2", "psys\n", "0\n");
    plant_zone("intel-rapl:0:0", "core\n", "0\n");
    Energy energy;
    energy_begin(&energy, root);
    CHECK_INT(energy.count, 2);
    CHECK_NEAR(energy.joules, 0, 0);
    plant("intel-rapl:0", "energy_uj", "2000000\n"); // 3 J, around the end
    plant("intel-rapl:1", "energy_uj", "1500000\n"); // 0.5 J
    plant("intel-rapl:2", "energy_uj", "9000000\n"); // the board: holds both
    plant("intel-rapl:0:0", "energy_uj", "9000000\n");
    energy_sample(&energy);
    CHECK_NEAR(energy.joules, 3.5, 1e-9);
    energy_sample(&energy);
    CHECK_NEAR(energy.joules, 3.5, 1e-9);
}

static void what_is_left_out_is_not_counted_later_either(void) {
    Energy energy;
    plant("intel-rapl:0", "energy_uj", "9000000\n");
    energy_begin(&energy, root);
    plant("intel-rapl:0", "energy_uj", "9500000\n");
    energy_sample(&energy);
    plant("intel-rapl:0", "energy_uj", "1000000\n"); // 1.5 J, around the end
    energy_leave_out(&energy);
    CHECK_NEAR(energy.joules, 0.5, 1e-9);
    plant("intel-rapl:0", "energy_uj", "1250000\n");
    energy_sample(&energy);
    CHECK_NEAR(energy.joules, 0.75, 1e-9);
    energy.joules = NAN; // once it is unknown it stays so
    energy_leave_out(&energy);
    CHECK(isnan(energy.joules));
}

static void more_packages_than_are_known_of_are_unknown_and_not_left_out(void) {
    char zone[32];
    Energy energy;
    for (int i = 3; i < 3 + ENERGY_ZONES - 2; i++) {
        snprintf(zone, sizeof zone, "intel-rapl:%d", i);
        plant_zone(zone, "package\n", "0\n");
    }
    energy_begin(&energy, root);
    CHECK_INT(energy.count, ENERGY_ZONES);
    CHECK_NEAR(energy.joules, 0, 0);
    plant_zone("intel-rapl:99", "package\n", "0\n");
    energy_begin(&energy, root);
    CHECK(isnan(energy.joules));
}

static void what_cannot_be_read_is_unknown(void) {
    Energy energy;
    energy_begin(&energy, "/nowhere");
    CHECK(isnan(energy.joules));
    energy_sample(&energy);
    CHECK(isnan(energy.joules));
    energy_begin(&energy, root);
    plant("intel-rapl:1", "energy_uj", "none\n");
    energy_sample(&energy);
    CHECK(isnan(energy.joules));
}

int main(void) {
    if (!test_folder_make(root, sizeof root))
        return 1;
    RUN_TEST(packages_are_summed_through_their_ends);
    RUN_TEST(what_is_left_out_is_not_counted_later_either);
    RUN_TEST(more_packages_than_are_known_of_are_unknown_and_not_left_out);
    RUN_TEST(what_cannot_be_read_is_unknown);
    test_folder_remove(root);
    return test_end();
}
