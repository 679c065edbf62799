#define _POSIX_C_SOURCE 200809L

#include "base/load.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

// user, nice, system, idle, waiting, interrupts (two kinds), stolen: all but the fourth and fifth.
static bool read_busy(double *seconds) {
    enum { FIELDS = 8, IDLE = 3, WAITING = 4 };
    unsigned long long ticks[FIELDS] = {0}, busy = 0;
    FILE *file = fopen("/proc/stat", "re");
    int count =
        file ? fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1],
                      &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7])
             : 0;
    if (file)
        fclose(file);
    for (int i = 0; i < FIELDS; i++)
        busy += i == IDLE || i == WAITING ? 0 : ticks[i];
    long a_second = sysconf(_SC_CLK_TCK);
    *seconds = (double)busy / (a_second > 0 ? (double)a_second : 100);
    return count > IDLE;
}

bool load_look(Load *load) {
    struct timespec own;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) != 0 || !read_busy(&load->busy))
        return false;
    load->own = (double)own.tv_sec + 1e-9 * (double)own.tv_nsec;
    load->at = clock_seconds();
    return true;
}

double load_of_others(const Load *from, const Load *to) {
    double seconds = to->at - from->at;
    double others = (to->busy - from->busy) - (to->own - from->own);
    return seconds > 0 && others > 0 ? others / seconds : 0;
}

int load_processors(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 1;
}
