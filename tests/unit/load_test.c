// How busy other programs keep the processors: what another process does counts, what we do does
// not.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/load.h"
#include "tests/test.h"

static void spin(double seconds) {
    volatile double sum = 0;
    for (double end = clock_seconds() + seconds; clock_seconds() < end;)
        for (int i = 0; i < 1000; i++)
            sum += i;
}

static void another_process_is_load_and_we_are_none(void) {
    Load before, after;
    CHECK(load_look(&before));
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            spin(1);
    }
    spin(1);
    CHECK(load_look(&after));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    double own = (after.own - before.own) / (after.at - before.at);
    double others = load_of_others(&before, &after);
    // The two share whatever the machine has left.
    CHECK_MESSAGE(others > 0.2, "others %g", others);
    CHECK_MESSAGE(own > 0.05 && own < 1.05, "own %g", own);
    CHECK_MESSAGE(own + others < load_processors() + 0.1, "%g of %d", own + others,
                  load_processors());
}

static void looks_that_tell_nothing_are_no_load(void) {
    Load one = {.busy = 10, .own = 2, .at = 5}, busier = {.busy = 11, .own = 4, .at = 6};
    CHECK_NEAR(load_of_others(&one, &one), 0, 0);
    CHECK_NEAR(load_of_others(&one, &busier), 0, 0); // ticks are coarser than our own clock
    CHECK(load_processors() > 0);
}

int main(void) {
    RUN_TEST(another_process_is_load_and_we_are_none);
    RUN_TEST(looks_that_tell_nothing_are_no_load);
    return test_end();
}
