// `mpbench profile`: where the time of steps goes: of an experiment that is trained for it, or of
// what the history holds of a run.
#include "cli/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/load.h"
#include "cli/experiments.h"
#include "cli/history/history.h"
#include "cli/train/training.h"

static const double usual_seconds = 4, most_seconds = 60; // of training
enum { LEAST_STEPS = 5 };

typedef struct Profiling {
    const Cli *cli;
    int64_t wanted; // steps; 0: as many as some seconds take
    double began;   // clock_seconds, after the first step
    Load load;      // then,
    bool knows_load;
    Store *store; // that it is kept in; NULL: nowhere
} Profiling;

// So many steps as were asked for; else for some seconds, and a few steps where those take long.
static bool is_enough(const Profiling *profiling, int64_t steps, double seconds) {
    if (profiling->wanted > 0)
        return steps >= profiling->wanted;
    return seconds >= most_seconds || (steps >= LEAST_STEPS && seconds >= usual_seconds);
}

static void look_at_step(void *context, Run *run) {
    Profiling *profiling = context;
    RunProfile profile;
    const double now = clock_seconds();
    if (profiling->began <= 0) {
        profiling->began = now;
        profiling->knows_load = load_look(&profiling->load);
    }
    if (run_profile(run, &profile) && is_enough(profiling, profile.steps, now - profiling->began))
        run_stop(run, "profiled");
}

static bool print_report(const Cli *cli, const ProfileReport *report, Error *error) {
    return cli->json ? profile_write_json(cli, report, error) : profile_print(cli, report, error);
}

static bool report_training(void *context, const Run *run, Error *error) {
    const Profiling *profiling = context;
    Load after;
    const bool is_counted = profiling->knows_load && load_look(&after);
    ProfileReport *report = calloc(1, sizeof *report);
    if (!report)
        return error_fail(error, ERROR_MEMORY, "no memory for the profile");
    bool done = profile_of_training(run, report, error);
    if (done && is_counted)
        report->others = load_of_others(&profiling->load, &after);
    Error lost = {0};
    bool is_kept = done && profiling->store;
    if (is_kept && !profile_keep(profiling->store, run, report, &report->kept_as, &lost))
        error_prefix(&lost, "the profile is not in the history");
    done = done && print_report(profiling->cli, report, error);
    if (done && lost.code != ERROR_NONE) {
        *error = lost;
        done = false;
    } else if (done && is_kept && !profiling->cli->quiet) {
        fflush(stdout); // where both go to one place
        fprintf(stderr,
                "kept as run %lld, which is @last now: mpbench profile %lld prints it again, and "
                "its screen shows it (P)\n",
                (long long)report->kept_as, (long long)report->kept_as);
    }
    profile_report_clear(report);
    free(report);
    return done;
}

static bool profile_experiment(Cli *cli, const char *path, Error *error) {
    cli_limit_spinning(cli->arguments); // starts anew: before anything is said
    Profiling profiling = {.cli = cli, .wanted = cli->run.steps};
    const TrainingWatch watch = {&profiling, look_at_step, report_training};
    char history[STORE_PATH_SIZE];
    cli->run.profiles = true;
    if (!cli->quiet && profiling.wanted > 0)
        fprintf(stderr, "trains %lld steps, every one profiled, after the first few\n",
                (long long)profiling.wanted);
    else if (!cli->quiet)
        fprintf(stderr, "trains for about %.0f s, every step profiled\n", usual_seconds);
    cli->run.steps = 0;     // they are counted here, from where the first few have passed
    if (!cli->no_history && // before the script is confined
        (!store_path(cli->database, history, error) ||
         !(profiling.store = store_open(history, STORE_WRITE, error))))
        return false;
    bool done = training_run(cli, &(TrainingPlan){.path = path, .watch = &watch}, error);
    store_close(profiling.store);
    return done;
}

static bool profile_of_history(const Cli *cli, Error *error) {
    RunRecord run = {.id = 0};
    ProfileReport *report = calloc(1, sizeof *report);
    if (!report)
        return error_fail(error, ERROR_MEMORY, "no memory for the profile");
    Store *store = history_open(cli, STORE_RESCUE, error);
    bool is_there = false;
    bool done = store && history_read_run(store, cli->operands[0], &run, error) &&
                profile_of_kept(store, &run, report, &is_there, error) &&
                (is_there || profile_of_record(store, &run, report, error)) &&
                print_report(cli, report, error);
    done = history_tell_losses(store, done, error);
    profile_report_clear(report);
    free(report);
    record_clear(&run);
    store_close(store);
    return done;
}

static bool names_a_run(const char *name) {
    return name[0] == '@' || (name[0] && name[strspn(name, "0123456789")] == 0);
}

static bool is_in_history(const Cli *cli, const char *name, Error *error) {
    Store *store = NULL;
    int64_t id;
    bool done = history_open_to_read(cli, STORE_READ, &store, error) && store &&
                store_find_run(store, name, &id, error);
    store_close(store);
    return done;
}

// An experiment goes before a run of its name.
bool command_profile(Cli *cli, Error *error) {
    char path[EXPERIMENT_PATH_SIZE];
    const char *name = cli->operands[0];
    Error ignored = {0};
    if (!names_a_run(name) && experiment_find(name, path, sizeof path, error))
        return profile_experiment(cli, path, error);
    if (!names_a_run(name) && !is_in_history(cli, name, &ignored))
        return false; // it is told as an experiment that is not there
    return profile_of_history(cli, error);
}
