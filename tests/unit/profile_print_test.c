// What `mpbench profile` prints, whatever formats the model's products were in.
#include <math.h>
#include <unistd.h>

#include "cli/profile/profile.h"
#include "tests/test.h"

// What it writes to standard output.
static void print_to(char *text, size_t size, const ProfileReport *report) {
    Error error = {0};
    FILE *file = tmpfile();
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    CHECK(file && before >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    const bool done = profile_print(&(Cli){.color = false}, report, &error);
    fflush(stdout);
    CHECK(dup2(before, STDOUT_FILENO) >= 0);
    close(before);
    CHECK_MESSAGE(done, "%s", error.text);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

static void limits_of_all_formats_fit(void) {
    static char text[1 << 14];
    ProfileRow row = {.layer = "fc", .operation = "linear", .way = "forward", .seconds = 1e-3};
    ProfileReport report = {.name = "all", .device = "cpu", .threads = 1, .steps = 9};
    report.rows = &row;
    report.row_count = 1;
    report.step_seconds = 2e-3;
    report.all_seconds = report.others = report.cast_seconds = (double)NAN;
    report.memory_limit = 2e10;
    for (int i = 0; i < FORMAT_COUNT; i++)
        report.product_limit[i] = 1.2345e12;
    print_to(text, sizeof text, &report);
    for (int i = 0; i < FORMAT_COUNT; i++)
        CHECK(strstr(text, format_name((Format)i)));
    CHECK(strstr(text, "GB/s"));
}

int main(void) {
    RUN_TEST(limits_of_all_formats_fit);
    return test_end();
}
