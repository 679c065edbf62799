// measure [STEPS [SECONDS]]: what the screen costs, on a real terminal: how soon the first picture
// of a run with many steps and 50 layers is there, how soon a key shows, and how much of a core it
// takes when nothing happens, while a recorded run is replayed, and while a run goes on and 20
// pictures a second are drawn. Exit status 1: something could not be measured; a bar that is not
// met is no failure.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/screen/history.h"
#include "tests/screen/shown.h"

enum { LAYERS = 50, FRAMES = 20, COLUMNS = 120, ROWS = 36 };

static double seconds = 10;
static char folder[TEST_FOLDER_SIZE], path[96], database[128];

static double processor_seconds(pid_t process) {
    char name[64], text[1024];
    unsigned long user = 0, system = 0;
    snprintf(name, sizeof name, "/proc/%d/stat", (int)process);
    FILE *file = fopen(name, "r");
    if (!file)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *after = strrchr(text, ')');
    if (after)
        sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void report(const char *what, double value, double bar, const char *unit) {
    bool is_met = value <= bar;
    printf("  %-52s %8.2f %-4s (at most %g)%s\n", what, value, unit, bar, is_met ? "" : "  MISSED");
}

// The share of a core that the screen takes while keys come `per_second`.
static double share_of_core(Shown *shown, int per_second) {
    double start = shown_clock(), before = processor_seconds(shown->program);
    for (long i = 0; shown_clock() - start < seconds; i++) {
        if (per_second > 0)
            shown_type(shown, i % 2 ? ">" : "<");
        shown_pump(shown, per_second > 0 ? 1.0 / per_second : 0.5);
    }
    double used = processor_seconds(shown->program) - before;
    return 100 * used / (shown_clock() - start);
}

static void open_screen(Shown *shown, const char *const *arguments, const char *mark) {
    const char *environment[] = {database, SCREEN_NO_CONFIG, NULL};
    shown_start(shown, COLUMNS, ROWS, environment, arguments);
    if (shown_wait(shown, mark, true, 60) < 0) {
        fprintf(stderr, "measure: \"%s\" did not appear:\n%s", mark, shown_text(shown));
        exit(1);
    }
}

static void end(Shown *shown) {
    shown_type(shown, "q");
    shown_wait_end(shown, 10);
    shown_free(shown);
}

static void measure_start(const char *const *arguments, const char *mark, const char *what) {
    enum { ROUNDS = 5 };
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) { // the machine may be at something else
        Shown shown;
        double start = shown_clock();
        open_screen(&shown, arguments, mark);
        double taken = shown_clock() - start;
        best = taken < best ? taken : best;
        end(&shown);
    }
    report(what, 1000 * best, 100, "ms");
}

// From a key to what it shows: half of the keys are sooner.
static void measure_keys(const char *const *arguments, const char *mark, const char *what) {
    enum { ROUNDS = 21 };
    double taken[ROUNDS];
    Shown shown;
    open_screen(&shown, arguments, mark);
    shown_settle(&shown);
    for (int i = 0; i < ROUNDS; i++) {
        shown_type(&shown, i % 2 ? "\x1b" : "?");
        taken[i] = shown_wait(&shown, "esc closes", i % 2 == 0, 20);
        for (int j = i; j > 0 && taken[j] < taken[j - 1]; j--) {
            double earlier = taken[j];
            taken[j] = taken[j - 1];
            taken[j - 1] = earlier;
        }
    }
    report(what, 1000 * taken[ROUNDS / 2], 200, "ms");
    end(&shown);
}

static void measure_idle(const char *const *arguments, const char *mark, const char *what) {
    Shown shown;
    open_screen(&shown, arguments, mark);
    shown_settle(&shown);
    report(what, share_of_core(&shown, 0), 1, "%");
    end(&shown);
}

static void measure_replay(void) {
    static const char *const demo[] = {"--demo", NULL};
    Shown shown;
    open_screen(&shown, demo, "r pauses");
    shown_type(&shown, "(");
    shown_pump(&shown, 0.5);
    report("the demo plays", share_of_core(&shown, 0), 5, "%");
    shown_type(&shown, "r");
    shown_settle(&shown);
    report("the demo is paused", share_of_core(&shown, 0), 1, "%");
    end(&shown);
}

static void measure_live(void) {
    static const char *const watch[] = {"watch", "@last", NULL};
    Error error;
    fflush(stdout);
    pid_t worker = fork();
    if (worker == 0)
        _exit(history_feed(path, LAYERS, 2 * seconds + 10, &error) ? 0 : 1);
    sleep(1);
    Shown shown;
    open_screen(&shown, watch, "fed");
    shown_settle(&shown);
    report("a run goes on, 50 steps a second", share_of_core(&shown, 0), 5, "%");
    report("the same, and 20 keys a second", share_of_core(&shown, FRAMES), 5, "%");
    end(&shown);
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
}

int main(int count, char **arguments) {
    static const char *const home[] = {NULL};
    static const char *const watch[] = {"watch", "long", NULL};
    int64_t steps = count > 1 ? atoll(arguments[1]) : 1000000;
    seconds = count > 2 ? atof(arguments[2]) : seconds;
    Error error;
    if (!test_folder_make(folder, sizeof folder))
        return 1;
    snprintf(path, sizeof path, "%s/history.db", folder);
    snprintf(database, sizeof database, "MPBENCH_DB=%s", path);
    if (!history_make_long(path, steps, LAYERS, &error)) {
        fprintf(stderr, "measure: %s\n", error.text);
        return 1;
    }
    printf("screen, %d x %d, a run of %lld steps and %d layers\n", COLUMNS, ROWS, (long long)steps,
           LAYERS);
    measure_start(home, "experiments", "first picture, home");
    measure_start(watch, "true values", "first picture, the run");
    measure_keys(watch, "true values", "from a key to what it shows");
    measure_idle(home, "experiments", "nothing happens, home");
    measure_idle(watch, "true values", "nothing happens, the run");
    measure_replay();
    measure_live();
    test_folder_remove(folder);
    return 0;
}
