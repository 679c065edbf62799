// The screen's host: what it needs from the rooms that it does not know: the experiments, the
// presets, the path of this program.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/describe.h"
#include "cli/experiments.h"
#include "cli/own_scripts.h"
#include "cli/scan/scan.h"
#include "cli/screen/screen.h"
#include "precision/policy.h"
#include "precision/scaler.h"
#include "store/runs.h"
#include "ui/cells/theme.h"
#include "ui/ui.h"

enum { MOST_CHOICES = 32, SCRIPT_MOST = 1024 * 1024 };

// ---- experiments --------------------------------------------------------------------------------

// One's own first, then those that ship.
static bool list_experiments(void *context, UiExperiment **list, int *count, Error *error) {
    (void)context;
    int own, shipped;
    ExperimentFile *scripts = own_scripts_list(&own), *files = experiment_list(&shipped);
    *count = own + shipped;
    UiExperiment *experiments = calloc((size_t)*count + 1, sizeof *experiments);
    for (int i = 0; experiments && i < *count; i++) {
        experiments[i].is_own = i < own;
        snprintf(experiments[i].name, sizeof experiments[i].name, "%s",
                 i < own ? scripts[i].name : files[i - own].name);
    }
    free(scripts);
    free(files);
    *list = experiments;
    return experiments || error_fail(error, ERROR_MEMORY, "no memory to list the experiments");
}

// Of its file, in nanoseconds; 0: there is none.
static int64_t changed_at(const UiExperiment *experiment) {
    struct stat status;
    return experiment->is_own && stat(experiment->name, &status) == 0
               ? (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec
               : 0;
}

static bool has_changed(void *context, const UiExperiment *experiment) {
    (void)context;
    return changed_at(experiment) != experiment->changed;
}

// By its name, wherever it was installed then, unless it is one's own of that name.
static bool is_of_script(void *context, const UiExperiment *experiment, const char *script) {
    (void)context;
    char end[sizeof experiment->name + 8], subject[EXPERIMENT_NAME_SIZE];
    if (experiment->is_own)
        return own_scripts_is(experiment->name, script);
    const size_t length = strlen(script);
    const size_t tail = (size_t)snprintf(end, sizeof end, "/%s.lua", experiment->name);
    if (length < tail || strcmp(script + length - tail, end) != 0)
        return false;
    const char *base = strrchr(script, '/') + 1;
    return !own_scripts_is(base, script) || experiment_subject(script, subject) == subject;
}

static void take_info(UiExperiment *experiment, const LuaExperimentInfo *info) {
    experiment->parameter_count = 0;
    snprintf(experiment->about, sizeof experiment->about, "%.*s", (int)sizeof experiment->about - 1,
             info->about);
    for (int i = 0; i < info->parameter_count && i < UI_MOST_PARAMETERS; i++) {
        experiment->parameters[i].usual = info->parameters[i].usual;
        snprintf(experiment->parameters[i].value, sizeof experiment->parameters[i].value, "%s",
                 info->parameters[i].value);
        snprintf(experiment->parameters[i].choices, sizeof experiment->parameters[i].choices, "%s",
                 info->parameters[i].choices);
        experiment->parameter_count++;
    }
}

// Of one that cannot be read, what is wrong is its line.
static void describe_for_screen(void *context, UiExperiment *experiment) {
    (void)context;
    char path[EXPERIMENT_PATH_SIZE];
    Error failure = {0};
    LuaExperimentInfo *info = malloc(sizeof *info);
    experiment->changed = changed_at(experiment);
    if (!info)
        snprintf(experiment->about, sizeof experiment->about, "no memory to read it");
    else if (experiment_find(experiment->name, path, sizeof path, &failure) &&
             describe_experiment(path, info, &failure))
        take_info(experiment, info);
    else
        snprintf(experiment->about, sizeof experiment->about, "%.*s",
                 (int)sizeof experiment->about - 1, failure.text);
    experiment->is_described = true;
    free(info);
}

static char *read_experiment(void *context, const char *name, Error *error) {
    (void)context;
    char path[EXPERIMENT_PATH_SIZE];
    if (!experiment_find(name, path, sizeof path, error))
        return NULL;
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(SCRIPT_MOST + 1) : NULL;
    if (text)
        text[fread(text, 1, SCRIPT_MOST, file)] = 0;
    if (!text || ferror(file)) {
        error_fail(error, ERROR_FAILED, "%s: %s", path, error_cause(errno));
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    return text;
}

static bool check_loss_scale(const char *text, Error *error) {
    ScaleRule rule;
    return scale_rule_parse(text, &rule, error);
}

static bool check_recipe(const char *text, Error *error) {
    Recipe recipe;
    return recipe_parse(text, &recipe, error);
}

static bool check_keep(const char *text, Error *error) {
    Keep keep;
    return keep_parse(text, &keep, error);
}

// ---- opening it ---------------------------------------------------------------------------------

typedef struct Host {
    char program[EXPERIMENT_PATH_SIZE], database[STORE_PATH_SIZE], settings[STORE_PATH_SIZE];
    const char *precisions[MOST_CHOICES], *loss_scales[MOST_CHOICES], *devices[MOST_CHOICES];
    char device_names[MOST_CHOICES][32];
} Host;

static bool find_settings(char path[STORE_PATH_SIZE]) {
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int length = -1;
    if (config && config[0] == '/') // others are to be ignored, says the specification
        length = snprintf(path, STORE_PATH_SIZE, "%s/mpbench/config.lua", config);
    else if (home && home[0])
        length = snprintf(path, STORE_PATH_SIZE, "%s/.config/mpbench/config.lua", home);
    return length > 0 && length < STORE_PATH_SIZE;
}

static void add_devices(Host *host, int *count, const Backend *backend, int most) {
    for (int i = 0; i < most && *count < MOST_CHOICES - 1; i++) {
        char *name = host->device_names[*count];
        int length = snprintf(name, sizeof host->device_names[0], "%s", backend->name);
        if (i > 0)
            snprintf(name + length, sizeof host->device_names[0] - (size_t)length, ":%d", i);
        host->devices[(*count)++] = name;
    }
}

// Those that this machine has, cards first. They are counted, which is quick, and not opened.
static void list_devices(Host *host, bool is_demo) {
    int count = 0;
    for (int i = 0; backend_list[i]; i++)
        if (backend_list[i]->preferred && !is_demo)
            add_devices(host, &count, backend_list[i], backend_list[i]->count());
    host->devices[count++] = "auto";
    for (int i = 0; backend_list[i]; i++)
        if (!backend_list[i]->preferred)
            add_devices(host, &count, backend_list[i], 1);
}

static void list_choices(Host *host) {
    int count = 0;
    host->precisions[count++] = "auto";
    for (const Preset *preset = preset_table; preset->name && count < MOST_CHOICES - 1; preset++)
        host->precisions[count++] = preset->name;
    count = 0;
    for (const ScalePreset *preset = scale_preset_table; preset->name && count < MOST_CHOICES - 1;
         preset++)
        host->loss_scales[count++] = preset->name;
}

static int depth_of(ColorChoice color) {
    static const int depths[] = {
        [COLOR_AUTO] = -1, [COLOR_ALWAYS] = DEPTH_TRUE, [COLOR_NEVER] = DEPTH_MONO};
    return depths[color];
}

// Behind the screen, where the shell is again: runs whose workers it left behind, and the way back.
static void tell_what_goes_on(const char *database) {
    static const struct {
        const char *words, *what;
    } kinds[] = {{"status:running", "goes on"}, {"status:paused", "is paused"}};
    Error error;
    Store *store = store_open(database, STORE_READ, &error);
    for (size_t i = 0; store && i < sizeof kinds / sizeof *kinds; i++) {
        RunRecord *runs;
        int count;
        if (!store_list_runs(store, &(RunFilter){.words = kinds[i].words}, &runs, &count, &error))
            continue;
        for (int j = 0; j < count; j++)
            printf("run %lld %s; mpbench watch %lld\n", (long long)runs[j].id, kinds[i].what,
                   (long long)runs[j].id);
        store_free_runs(runs, count);
    }
    store_close(store);
}

bool screen_open(Cli *cli, const char *run, const ScreenDemo *demo, Error *error) {
    Host *host = calloc(1, sizeof *host);
    if (!host)
        return error_fail(error, ERROR_MEMORY, "no memory for the screen");
    int signal = 0;
    bool done = false;
    if (readlink("/proc/self/exe", host->program, sizeof host->program - 1) < 0)
        snprintf(host->program, sizeof host->program, "%s", cli->arguments[0]);
    if (!store_path(demo ? demo->path : cli->database, host->database, error))
        goto done;
    list_choices(host);
    list_devices(host, demo != NULL);
    const UiHost ui_host = {.program = host->program,
                            .list_experiments = list_experiments,
                            .describe_experiment = describe_for_screen,
                            .has_changed = has_changed,
                            .is_of_script = is_of_script,
                            .read_experiment = read_experiment,
                            .check_loss_scale = check_loss_scale,
                            .check_recipe = check_recipe,
                            .check_keep = check_keep,
                            .read_policy = policy_file_read,
                            .precisions = host->precisions,
                            .loss_scales = host->loss_scales,
                            .devices = host->devices};
    const UiOptions options = {.database = host->database,
                               .run = run,
                               .settings = find_settings(host->settings) ? host->settings : NULL,
                               .demo = demo != NULL,
                               .depth = depth_of(cli->color)};
    done = ui_run(&ui_host, &options, &signal, error);
    if (done && signal > 0)
        cli->status = 128 + signal;
    else if (done && !demo)
        tell_what_goes_on(host->database);
done:
    free(host);
    return done;
}
