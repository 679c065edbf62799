// Every screen on the recorded history, at three sizes, as it was stored: in UTF-8 and ASCII, in
// true colour, 256 colours, 16 and none, on a dark background and on a white one.
// tests/screen/expected/SCREEN-SIZE.txt holds blocks: the text in both kinds of characters, and the
// inks at each depth (shown_inks); each look is compared with two of them. UPDATE=1 writes the
// files anew: read the difference before you commit it.
#include <math.h>

#include "number/format.h"
#include "store/runs.h"
#include "store/scan.h"
#include "store/step_profile.h"
#include "tests/screen/place.h"

enum { FILE_MOST = 1 << 20 };

typedef enum Block { UTF8, ASCII, COLORS_256, NO_COLORS, COLORS_16, TRUE_COLOR, BLOCKS } Block;

static const char *const block_names[BLOCKS] = {"utf8",       "ascii",      "256 colours",
                                                "no colours", "16 colours", "true colour"};

typedef enum When { ALWAYS, WHEN_SMALL, WHEN_USUAL } When;

#define WHITE "BACKGROUND=ffff/ffff/ffff"

static const struct Look { // at the same screen
    Block text, inks;
    const char *locale, *terminal, *no_color;
    When when;
    const char *background; // NULL: it is not told, which is a dark one
} looks[] = {
    {UTF8, COLORS_256, "LC_ALL=C.UTF-8", "TERM=xterm-256color", "NO_COLOR", ALWAYS, NULL},
    {ASCII, NO_COLORS, "LC_ALL=C", "TERM=xterm-256color", "NO_COLOR=1", ALWAYS, NULL},
    // What touches the other: nothing.
    {UTF8, NO_COLORS, "LC_ALL=C.UTF-8", "TERM=xterm-256color", "NO_COLOR=1", WHEN_SMALL, NULL},
    {ASCII, COLORS_256, "LC_ALL=C", "TERM=xterm-256color", "NO_COLOR", WHEN_SMALL, NULL},
    {UTF8, COLORS_16, "LC_ALL=C.UTF-8", "TERM=mpbench-16", "NO_COLOR", WHEN_USUAL, NULL},
    {UTF8, TRUE_COLOR, "LC_ALL=C.UTF-8", "TERM=mpbench-true", "NO_COLOR", WHEN_USUAL, NULL},
    // The same inks, of the theme for light backgrounds.
    {UTF8, COLORS_256, "LC_ALL=C.UTF-8", "TERM=xterm-256color", "NO_COLOR", WHEN_USUAL, WHITE},
    {UTF8, TRUE_COLOR, "LC_ALL=C.UTF-8", "COLORTERM=truecolor", "NO_COLOR", WHEN_USUAL, WHITE},
};

// Terminals that are on few machines: not all of these colours are in ncurses-base.
static const char terminals[] =
    "mpbench-16|16 colours,\n\tcolors#16, pairs#256, use=xterm-256color,\n"
    "mpbench-true|true colour,\n\tRGB, colors#0x1000000, pairs#0x10000,\n"
    "\tsetaf=\\E[38;2;%p1%{65536}%/%d;%p1%{256}%/%{255}%&%d;%p1%{255}%&%dm,\n"
    "\tsetab=\\E[48;2;%p1%{65536}%/%d;%p1%{256}%/%{255}%&%d;%p1%{255}%&%dm,\n"
    "\tuse=xterm-256color,\n";

static const struct Size { int columns, rows; } sizes[] = {{80, 24}, {120, 36}, {200, 60}};

static const struct Stored { // keys, then what must be there before the screen is looked at
    const char *name, *keys, *mark;
    bool is_small; // at the smallest size only
} screens[] = {
    {"home", "1  ", "by age", false},
    {"launch", "1\t\t" KEY_RIGHT KEY_DOWN KEY_RIGHT, "loss scale", true},
    {"live", "G", "finished", false},
    {"live-back", "G{{{" KEY_DOWN KEY_DOWN "x", "scrubbed", false},
    {"events", "G\x1b[Z\x1b[Zz", "skipped since", false},
    {"map", "Gm", "share lost", false},
    {"what-if", "GW", "scales: these", false},
    {"profile", "GP", "a step", false},
    {"replay", "}}rr)", "paused", true},
    {"compare", "1  c", "accuracy", false},
    {"compare-memory", "1  cm", "in all", false},
    {"compare-exponents", "1  ce", "would flush", false},
    {"compare-eight", "1        c", "8 runs", false},
    {"formats", "4", "flushed", false},
    {"formats-block", "4b", "share a scale", false},
    {"scan", "5" KEY_DOWN KEY_RIGHT, "scan 1 of 1", false},
    {"help", "??", "Here", true},
    {"settings", "O", "smoothing", true},
};

enum {
    SIZES = sizeof sizes / sizeof *sizes,
    STORED = sizeof screens / sizeof *screens,
    LOOKS = sizeof looks / sizeof *looks,
};

static char terminfo[80];
static const char *update;

static void expected_path(char *path, size_t size, const struct Stored *stored, struct Size at) {
    snprintf(path, size, "tests/screen/expected/%s-%dx%d.txt", stored->name, at.columns, at.rows);
}

static bool is_looked_at(const struct Look *look, const struct Stored *stored, struct Size at) {
    bool is_small = at.columns == sizes[0].columns, is_usual = at.columns == sizes[1].columns;
    return look->when == ALWAYS || (look->when == WHEN_SMALL && is_small) ||
           (look->when == WHEN_USUAL && (stored->is_small || is_usual));
}

typedef struct Seen {
    char *text, *inks; // NULL: it was not looked at
} Seen;

static void start(Shown *one, const struct Look *look, struct Size at) {
    static const char *const arguments[] = {"--demo", NULL};
    const char *environment[] = {"MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK,
                                 SCREEN_NO_CONFIG,
                                 terminfo,
                                 look->locale,
                                 look->terminal,
                                 look->no_color,
                                 look->background,
                                 NULL};
    shown_start(one, at.columns, at.rows, environment, arguments);
}

static void type(Shown *one, const struct Stored *stored) {
    bool done = shown_wait(one, "fashion-cnn", true, 20) >= 0;
    shown_type(one, stored->keys);
    done = done && shown_wait(one, stored->mark, true, 20) >= 0;
    CHECK_MESSAGE(done, "%s at %dx%d: \"%s\" did not appear:\n%s", stored->name, one->columns,
                  one->rows, stored->mark, shown_text(one));
}

// All looks side by side, since most of the time is waited.
static void show(const struct Stored *stored, struct Size at, Seen seen[LOOKS]) {
    static Shown all[LOOKS];
    Shown *list[LOOKS];
    int count = 0;
    for (int i = 0; i < LOOKS; i++)
        if (is_looked_at(&looks[i], stored, at)) {
            list[count++] = &all[i];
            start(&all[i], &looks[i], at);
        }
    for (int i = 0; i < count; i++)
        type(list[i], stored);
    shown_settle_all(list, count, 0.2);
    for (int i = 0; i < LOOKS; i++)
        if (is_looked_at(&looks[i], stored, at)) {
            seen[i].text = strdup(shown_text(&all[i]));
            seen[i].inks = strdup(shown_inks(&all[i]));
        }
    for (int i = 0; i < count; i++)
        shown_type(list[i], "\x1b\x1bq");
    for (int i = 0; i < count; i++)
        shown_free(list[i]);
}

static void write_file(const char *path, const Seen seen[LOOKS]) {
    const char *blocks[BLOCKS] = {NULL};
    FILE *file = fopen(path, "w");
    if (!file) {
        CHECK_MESSAGE(false, "%s cannot be written", path);
        return;
    }
    for (int i = LOOKS - 1; i >= 0; i--)
        if (seen[i].text) {
            blocks[looks[i].text] = seen[i].text;
            blocks[looks[i].inks] = seen[i].inks;
        }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i])
            fprintf(file, "==== %s\n%s", block_names[i], blocks[i]);
    fclose(file);
}

static bool read_file(const char *path, char *blocks[BLOCKS]) {
    static char text[FILE_MOST];
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    for (int i = 0; i < BLOCKS; i++) {
        char head[32];
        snprintf(head, sizeof head, "==== %s\n", block_names[i]);
        char *start = strstr(text, head);
        char *end = start ? strstr(start + 1, "\n==== ") : NULL;
        if (!start)
            continue;
        start += strlen(head);
        blocks[i] = strndup(start, end ? (size_t)(end + 1 - start) : strlen(start));
    }
    return true;
}

static void compare(const char *path, Block block, const char *actual,
                    char *const expected_blocks[BLOCKS]) {
    const char *expected = expected_blocks[block], *name = block_names[block];
    if (!expected) {
        CHECK_MESSAGE(false, "%s has no block \"%s\"; UPDATE=1 makes it", path, name);
        return;
    }
    for (int line = 1; *actual || *expected; line++) {
        int a = (int)strcspn(actual, "\n"), b = (int)strcspn(expected, "\n");
        if (a != b || memcmp(actual, expected, (size_t)a) != 0) {
            CHECK_MESSAGE(false,
                          "%s, %s, line %d: \"%.*s\" where \"%.*s\" was stored; if that is meant: "
                          "UPDATE=1 and read the difference",
                          path, name, line, a, actual, b, expected);
            return;
        }
        actual += a + (actual[a] == '\n');
        expected += b + (expected[b] == '\n');
    }
}

static void compare_stored(const struct Stored *stored, struct Size at) {
    char path[128], *expected[BLOCKS] = {NULL};
    Seen seen[LOOKS] = {{NULL, NULL}};
    expected_path(path, sizeof path, stored, at);
    show(stored, at, seen);
    if (update)
        write_file(path, seen);
    if (!read_file(path, expected))
        CHECK_MESSAGE(false, "%s is not there; UPDATE=1 makes it", path);
    for (int i = 0; i < LOOKS && expected[UTF8]; i++)
        if (seen[i].text) {
            compare(path, looks[i].text, seen[i].text, expected);
            if (looks[i].when != WHEN_SMALL) // where dots are blanks in the other characters
                compare(path, looks[i].inks, seen[i].inks, expected);
        }
    for (int i = 0; i < LOOKS; i++) {
        free(seen[i].text);
        free(seen[i].inks);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(expected[i]);
}

static void every_screen_is_as_it_was_stored(void) {
    const char *only = getenv("SCREEN"); // one of them, while it is worked on
    for (int i = 0; i < STORED; i++)
        for (int size = 0; size < SIZES; size++)
            if ((size == 0 || !screens[i].is_small) &&
                (!only || strcmp(only, screens[i].name) == 0))
                compare_stored(&screens[i], sizes[size]);
}

static bool make_terminals(void) {
    char path[96], command[256];
    snprintf(path, sizeof path, "%s/source", folder);
    snprintf(terminfo, sizeof terminfo, "TERMINFO=%s", folder);
    FILE *file = fopen(path, "w");
    bool done = file && fputs(terminals, file) >= 0;
    done = file && fclose(file) == 0 && done;
    snprintf(command, sizeof command, "tic -x -o '%s' '%s'", folder, path);
    return done && system(command) == 0;
}

// Where the time of steps of the recorded run went; not measured, so that it stays as it is.
static bool put_profile(void) {
    static StepPart parts[] = {
        {"conv2", "conv2d_backward_weight", "backward", "fp16", "fp16", 1, 5.1e-3, 3e8, 4e6, 2.5e-3,
         16},
        {"conv2", "conv2d", "forward", "fp16", "fp16", 1, 4.2e-3, 3e8, 4e6, 2.5e-3, 16},
        {"conv2", "conv2d_backward_input", "backward", "fp16", "fp16", 1, 4e-3, 3e8, 4e6, 2.5e-3,
         16},
        {"hidden", "matmul", "backward", "fp16", "fp16", 2, 1.1e-3, 4e7, 1e6, 4e-4, 128},
        {"conv1", "cast", "forward", "fp32", "fp16", 1, 6e-4, 0, 6e5, 1e-4, 0},
        {"hidden", "linear", "forward", "fp16", "fp16", 1, 5e-4, 2e7, 5e5, 2e-4, 128},
        {"", "update of weights", "step", "", "", 1, 4e-4, 0, 0, 0, 0},
        {"", "next batch", "step", "", "", 3, 2e-4, 0, 0, 0, 0},
        {"", "cross_entropy", "forward", "fp16", "fp16", 1, 2e-5, 0, 5e3, 1e-6, 0},
    };
    const StepProfile profile = {.steps = 240,
                                 .late = 2,
                                 .late_seconds = 0.2,
                                 .others_busy = (double)NAN,
                                 .step_seconds = 0.0165,
                                 .between = 3.8e-4,
                                 .memory_limit = 7.5e9,
                                 .parts = parts,
                                 .part_count = sizeof parts / sizeof *parts};
    Error error = {0};
    int64_t run;
    Store *store = store_open(path_of("demo.db"), STORE_WRITE, &error);
    bool done = store && store_find_run(store, "@last", &run, &error) &&
                store_put_step_profile(store, run, &profile, &error);
    store_close(store);
    if (!done)
        printf("not ok the recorded history takes no profile: %s\n", error.text);
    return done;
}

// What a scan of it found; not measured either.
enum { SCAN_FORMATS = 3 };

static const struct ScannedUnit {
    const char *name;
    int64_t parameters;
    double damages[SCAN_FORMATS], flushed;
} scanned[] = {{"conv1", 160, {0.021, 0.0085, 0.16}, 0},
               {"conv2", 4640, {0.027, INFINITY, 0.11}, 0.0002},
               {"hidden", 589952, {0.0067, 0.3, 1.7}, 0.031},
               {"head", 1290, {0.0066, 0.0006, 0.11}, 0.0067}};

static void fill_scan(ScanRecord *scan) {
    static const Format formats[SCAN_FORMATS] = {FORMAT_BF16, FORMAT_FP16, FORMAT_MXFP8};
    static const char experiment[] = "fashion_cnn";
    snprintf(scan->key, sizeof scan->key, "stored");
    snprintf(scan->subject, sizeof scan->subject, "%s", experiment);
    snprintf(scan->experiment, sizeof scan->experiment, "%s", experiment);
    snprintf(scan->script_path, sizeof scan->script_path, "experiments/%s.lua", experiment);
    snprintf(scan->device, sizeof scan->device, "cpu");
    for (; scan->format_count < SCAN_FORMATS; scan->format_count++)
        snprintf(scan->formats[scan->format_count], SCAN_FORMAT_SIZE, "%s",
                 format_name(formats[scan->format_count]));
    scan->threads = 2;
    scan->seed = 1;
    scan->batches = 4;
    scan->steps = 60;
    scan->seeds = 3;
    scan->within = 0.01;
    scan->tolerance = 0.15;
    for (; scan->unit_count < (int)(sizeof scanned / sizeof *scanned); scan->unit_count++) {
        const struct ScannedUnit *unit = &scanned[scan->unit_count];
        snprintf(scan->units[scan->unit_count], RECORD_NAME_SIZE, "%s", unit->name);
        scan->parameters[scan->unit_count] = unit->parameters;
        for (int f = 0; f < SCAN_FORMATS; f++)
            scan->cells[scan->unit_count][f] = (ScanCell){.is_known = true,
                                                          .is_broken = isinf(unit->damages[f]),
                                                          .damage = unit->damages[f],
                                                          .own_error = unit->damages[f] / 2,
                                                          .own_degrees = 0.7,
                                                          .all_error = unit->damages[f] / 3,
                                                          .all_degrees = 0.4,
                                                          .loss_change = 0.001,
                                                          .flushed = unit->flushed,
                                                          .subnormal = (double)NAN,
                                                          .least_scale = (double)NAN,
                                                          .middle_scale = (double)NAN,
                                                          .most_scale = (double)NAN,
                                                          .scale = 65536};
    }
}

// Rounds about what each takes, which scatter by as large a share more or less.
static int fill_rounds(double rounds[ROUNDS_MOST], double seconds, double scatter) {
    const int count = 9, middle = count / 2;
    for (int i = 0; i < count; i++) // in no order
        rounds[i] = seconds * (1 + scatter * ((i * 5) % count - middle) / middle);
    return count;
}

static void fill_outcome(ScanRecord *scan) {
    static const ScanTraining trainings[] = {
        {.label = "fp32", .format = {3, 3, 3, 3}, .loss = 0.483, .seconds = 0.0412},
        {.label = "all bf16", .above = 0.0009, .interval = 0.0037, .seconds = 0.0206},
        {.label = "all fp16", .format = {1, 1, 1, 1}, .broken = 3, .seconds = 0.0331},
        {.label = "all mxfp8",
         .format = {2, 2, 2, 2},
         .above = 0.048,
         .interval = 0.01,
         .seconds = 0.0237},
        {.label = "policy", .above = 0.0009, .interval = 0.0037, .seconds = 0.0206}};
    static const double seconds[] = {0.0201, 0.0322, 0.0331, 0.0403};
    static const int64_t activations[] = {49283072, 49283072, 73400320, 68157440};
    memcpy(scan->seconds, seconds, sizeof seconds);
    memcpy(scan->activations, activations, sizeof activations);
    for (int i = 0; i <= SCAN_FORMATS; i++) // of the last what it is over fp32 stays open
        scan->pass_round_count[i] = fill_rounds(scan->pass_rounds[i], seconds[i],
                                                i == SCAN_FORMATS       ? 0
                                                : i == SCAN_FORMATS - 1 ? 0.9
                                                                        : 0.03);
    scan->training_count = sizeof trainings / sizeof *trainings;
    for (int i = 0; i < scan->training_count; i++) {
        scan->trainings[i] = trainings[i];
        scan->trainings[i].round_count =
            fill_rounds(scan->trainings[i].rounds, trainings[i].seconds, 0.02 * i);
        scan->trainings[i].is_known = true;
        scan->trainings[i].is_within = trainings[i].broken == 0 && trainings[i].above < 0.01;
    }
    scan->has_policy = scan->is_final = true; // all of them in the first
    scan->ended_ms = 1;
    scan->others = (double)NAN;
}

static bool put_found(Store *store, const ScanRecord *scan, const WorkerId *worker, Error *error) {
    bool done = store_put_scan_layers(store, scan, error);
    for (int i = 0; i < scan->unit_count * scan->format_count && done; i++)
        done =
            store_put_scan_cell(store, scan, i / scan->format_count, i % scan->format_count, error);
    for (int i = 0; i < scan->training_count && done; i++)
        done = store_put_scan_training(store, scan, i, error);
    return done && store_put_scan_costs(store, scan, error) &&
           store_end_scan(store, scan, worker, error);
}

static bool put_scan(void) {
    Error error = {0};
    WorkerId worker;
    ScanRecord *scan = scan_record_new(&error);
    Store *store = store_open(path_of("demo.db"), STORE_WRITE, &error);
    bool done = scan && store && worker_identify(&worker, &error);
    if (done) {
        fill_scan(scan);
        done = store_add_scan(store, scan, &worker, &error);
        fill_outcome(scan);
        done = done && put_found(store, scan, &worker, &error);
    }
    store_close(store);
    scan_record_free(scan);
    if (!done)
        printf("not ok the recorded history takes no scan: %s\n", error.text);
    return done;
}

// A copy of the program that has, of the experiments, those whose runs are recorded: what comes to
// them moves no stored screen.
static bool make_copy(void) {
    char command[1024];
    const char *program = getenv("MPBENCH"), *path = path_of("copy");
    snprintf(command, sizeof command,
             "mkdir -p '%s/experiments' && cp '%s' '%s/mpbench' && cd experiments && "
             "cp simple.lua underflow.lua fashion_cnn.lua fashion_mlp.lua gpt.lua "
             "'%s/experiments' && gzip -dc demo.history.gz >'%s'",
             path, program, path, path, path_of("demo.db"));
    if (system(command) != 0 || !put_profile() || !put_scan())
        return false;
    snprintf(command, sizeof command, "gzip -c '%s' >'%s/experiments/demo.history.gz'",
             path_of("demo.db"), path_of("copy"));
    return system(command) == 0 && setenv("MPBENCH", path_of("copy/mpbench"), 1) == 0;
}

int main(void) {
    if (!make_place() || !make_copy())
        return 1;
    update = getenv("UPDATE");
    if (make_terminals())
        RUN_TEST(every_screen_is_as_it_was_stored);
    else
        printf("not ok every_screen_is_as_it_was_stored: tic made no terminals\n");
    return end_tests();
}
