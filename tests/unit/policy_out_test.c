// The process that writes a scan's policy comes and goes with it.
#define _XOPEN_SOURCE 700 // mkdtemp
#include "cli/scan/policy_out.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static char folder[] = "/tmp/mpbench-policy-XXXXXX", file[64];

static void nobody_is_left_to_wait_for(void) {
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void what_is_written_is_there_when_it_is_closed(void) {
    PolicyOut out;
    Error error = {0};
    char text[16] = "";
    CHECK_MESSAGE(policy_out_open(&out, file, &error), "%s", error.text);
    CHECK(access(file, F_OK) != 0);
    fputs("return {}\n", out.stream);
    CHECK_MESSAGE(policy_out_close(&out, true, &error), "%s", error.text);
    nobody_is_left_to_wait_for();
    FILE *stream = fopen(file, "r");
    CHECK(stream && fgets(text, sizeof text, stream));
    fclose(stream);
    CHECK_TEXT(text, "return {}\n");
}

static void what_is_given_up_leaves_nothing(void) {
    PolicyOut out;
    Error error = {0};
    remove(file);
    CHECK_MESSAGE(policy_out_open(&out, file, &error), "%s", error.text);
    fputs("return {}\n", out.stream);
    CHECK(!policy_out_close(&out, false, &error));
    nobody_is_left_to_wait_for();
    CHECK(access(file, F_OK) != 0);
    CHECK(!policy_out_open(&out, folder, &error));
    CHECK_CONTAINS(error.text, "a folder: name a file");
    nobody_is_left_to_wait_for();
}

int main(void) {
    CHECK(mkdtemp(folder) != NULL);
    snprintf(file, sizeof file, "%s/policy.lua", folder);
    RUN_TEST(what_is_written_is_there_when_it_is_closed);
    RUN_TEST(what_is_given_up_leaves_nothing);
    remove(file);
    rmdir(folder);
    return test_end();
}
