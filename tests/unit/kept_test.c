// Figures that are kept are numbers, whatever lies in the file.
#include "base/kept.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

static char folder[] = "/tmp/mpbench-kept-XXXXXX", file[64];

static void a_figure_is_read_as_it_was_kept_last(void) {
    double figure = 0;
    CHECK(!kept_read("subject", "pairs", "this machine", &figure));
    kept_write("subject", "pairs", "this machine", 1.5);
    kept_write("subject", "pairs", "another", 3);
    kept_write("subject", "pairs", "this machine", 2);
    CHECK(kept_read("subject", "pairs", "this machine", &figure) && figure == 2);
    CHECK(!kept_read("subject", "triples", "this machine", &figure));
}

static void what_is_no_number_is_neither_kept_nor_read(void) {
    double figure = 0;
    kept_write("subject", "share", "this machine", (double)NAN);
    kept_write("subject", "share", "this machine", (double)INFINITY);
    CHECK(!kept_read("subject", "share", "this machine", &figure));
    FILE *stream = fopen(file, "a");
    CHECK(stream != NULL);
    fputs("share 0.5 this machine\nshare nan this machine\nshare inf this machine\n", stream);
    fclose(stream);
    CHECK(kept_read("subject", "share", "this machine", &figure) && figure == 0.5);
}

int main(void) {
    CHECK(mkdtemp(folder) != NULL);
    setenv("XDG_CACHE_HOME", folder, 1);
    snprintf(file, sizeof file, "%s/mpbench/subject", folder);
    RUN_TEST(a_figure_is_read_as_it_was_kept_last);
    RUN_TEST(what_is_no_number_is_neither_kept_nor_read);
    remove(file);
    *strrchr(file, '/') = 0;
    rmdir(file);
    rmdir(folder);
    return test_end();
}
