// How long threads that wait for the next piece of work keep their processor busy.
//
// Left alone, the OpenMP library lets them spin for milliseconds. Where other programs want the
// same processors, the thread that has the work then waits for one that only spins, and a training
// step takes ten times as long. A short spin costs nothing measurable on an idle machine. The
// library reads its settings before main, from the environment alone: so the program starts itself
// again.
#define _GNU_SOURCE // the files under /proc that lead back to this program are Linux's
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

void cli_limit_spinning(char **arguments) {
    static const char setting[] = "GOMP_SPINCOUNT", rounds[] = "2000"; // about 100 µs
    if (getenv(setting) || getenv("OMP_WAIT_POLICY") || setenv(setting, rounds, 1) != 0)
        return;
    char path[4096]; // the name that process lists show comes from it
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return; // it trains all the same
    path[length] = 0;
    execv(path, arguments);
}
