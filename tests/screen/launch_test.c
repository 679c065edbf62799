// The screen waits for the run of the worker that it started, for that one alone, and takes nobody
// away from what they type.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/runs.h"
#include "tests/screen/place.h"

static void expect_home(void) {
    shown_pump(&shown, 1);
    CHECK_MESSAGE(strstr(shown_text(&shown), "experiments") != NULL, "it left home:\n%s",
                  shown_text(&shown));
}

static char card[512]; // MPBENCH_GPU=the emulated one; "": it is not built

static void find_card(void) {
    const char *program = getenv("MPBENCH"), *slash = strrchr(program, '/');
    snprintf(card, sizeof card, "MPBENCH_GPU=%.*s/emulator/mpbench-gpu.so",
             slash ? (int)(slash - program) : 1, slash ? program : ".");
    if (access(strchr(card, '=') + 1, R_OK) != 0)
        card[0] = 0;
}

// On a history without runs, in the form of `simple`; `emulated` says how the card is, NULL: there
// is none.
static void open_form_beside(const char *emulated) {
    static const char *const nothing[] = {NULL};
    const char *environment[] = {database, emulated ? card : "MPBENCH_GPU=/nowhere", emulated,
                                 NULL};
    unlink(history_path);
    shown_start(&shown, 120, 36, environment, nothing);
    expect("▸fashion_cnn");
    choose_experiment("simple");
    press("\r", "enter trains");
}

static void open_form(void) {
    open_form_beside(NULL);
}

static void the_form_offers_the_devices_that_are_there(void) {
    open_form();
    press(KEY_DOWN KEY_DOWN KEY_RIGHT, "‹ auto ›");
    press(KEY_RIGHT, "‹ cpu ›");
    press(KEY_RIGHT, "‹ ref ›");
    press(KEY_RIGHT, "‹ default ›");
    leave();
}

static void of_these_cards_come_first(void) {
    open_form_beside("MPBENCH_EMULATOR=cards=2");
    press(KEY_DOWN KEY_DOWN KEY_RIGHT, "‹ gpu ›");
    press(KEY_RIGHT, "‹ gpu:1 ›");
    press(KEY_RIGHT, "‹ auto ›");
    leave();
}

// What has no room is left out, not cut.
static void the_form_tells_the_keys_of_its_field(void) {
    static const char *const nothing[] = {NULL};
    const char *environment[] = {database, "MPBENCH_GPU=/nowhere", NULL};
    unlink(history_path);
    shown_start(&shown, 100, 30, environment, nothing);
    expect("▸fashion_cnn");
    choose_experiment("simple");
    press("\r", "e script ");
    CHECK(!strstr(shown_text(&shown), "m mat│") && !strstr(shown_text(&shown), "m matri│"));
    press(KEY_DOWN KEY_DOWN KEY_DOWN, "digits type · esc: out");
    expect("= edit  L layers");
    press(KEY_DOWN, "letters type · esc: out");
    expect("= edit  esc out");
    CHECK(!strstr(shown_text(&shown), "L layers"));
    leave();
}

// As left and right turn through formats; nothing is typed there that it could not be.
static void a_parameter_of_a_few_texts_is_turned_through(void) {
    static const char *const nothing[] = {NULL};
    const char *environment[] = {database, "MPBENCH_GPU=/nowhere", NULL};
    unlink(history_path);
    shown_start(&shown, 120, 36, environment, nothing);
    expect("▸fashion_cnn");
    choose_experiment("scalers");
    press("\r", "‹ run ›");
    for (int row = 0; row < 11; row++)
        shown_type(&shown, KEY_DOWN);
    press(KEY_RIGHT, "‹ follow ›");
    press(KEY_RIGHT KEY_RIGHT KEY_RIGHT, "‹ run ›");
    press(KEY_LEFT, "‹ clipping ›");
    press("f", "no key of the form");
    expect("‹ clipping ›");
    click_row_of("‹ clipping", 16, "‹ mean ›");
    click_row_of("‹ mean", 23, "‹ clipping ›");
    press("\x7f", "‹ run ›"); // the default
    leave();
}

static const char own_script[] =
    "local mp = require \"mp\"\n"
    "return mp.experiment { name = \"mine\", about = \"written by hand\", run = function(run)\n"
    "    local net = run:model(mp.nn.Linear(2, 1))\n"
    "    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })\n"
    "    net(mp.ones(1, 2)):sum():backward()\n"
    "    opt:step()\n"
    "end }\n";

// The same with a parameter more.
static const char grown_script[] =
    "local mp = require \"mp\"\n"
    "return mp.experiment { name = \"mine\", about = \"written by hand\",\n"
    "    params = { level = { \"low\", \"high\" } }, run = function(run)\n"
    "    local net = run:model(mp.nn.Linear(2, 1))\n"
    "    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })\n"
    "    net(mp.ones(1, 2)):sum():backward()\n"
    "    opt:step()\n"
    "end }\n";

// And with another.
static const char wider_script[] =
    "local mp = require \"mp\"\n"
    "return mp.experiment { name = \"mine\", about = \"written by hand\",\n"
    "    params = { band = { \"wide\", \"narrow\" }, level = { \"low\", \"high\" } }, run = "
    "function(run)\n"
    "    local net = run:model(mp.nn.Linear(2, 1))\n"
    "    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })\n"
    "    net(mp.ones(1, 2)):sum():backward()\n"
    "    opt:step()\n"
    "end }\n";

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "we");
    CHECK(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

static void scripts_of_the_folder_come_first_and_train(void) {
    static const char *const left_out[] = {"config.lua", "-p.lua",   "hidden.lua",
                                           "linked.lua", "lost.lua", "folder.lua"};
    static const char *const nothing[] = {NULL};
    const char *environment[] = {database, "MPBENCH_GPU=/nowhere", NULL};
    char before[4096], shipped[4200], own[TEST_FOLDER_SIZE];
    CHECK(getcwd(before, sizeof before) && test_folder_make(own, sizeof own) && chdir(own) == 0);
    snprintf(shipped, sizeof shipped, "%s/experiments/simple.lua", before);
    write_file("mine.lua", own_script);
    write_file("config.lua", "return { colours = 16 }\n");
    write_file("-p.lua", own_script); // would be an option
    write_file(".hidden.lua", own_script);
    CHECK(symlink(shipped, "linked.lua") == 0 && symlink("nowhere", "lost.lua") == 0);
    CHECK(mkdir("folder.lua", 0700) == 0);
    unlink(history_path);
    shown_start(&shown, 120, 36, environment, nothing);
    expect("▸mine.lua      written by hand");
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        CHECK_MESSAGE(!strstr(shown_text(&shown), left_out[i]), "%s is listed", left_out[i]);
    press("\r", "enter trains");
    write_file("mine.lua", grown_script);
    expect("‹ low ›"); // read anew, without a key
    press(KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN KEY_RIGHT, "‹ high ›");
    write_file("mine.lua", wider_script);
    expect("‹ wide ›"); // which was chosen stays where it is possible
    expect("‹ high ›");
    press("\r", "#1 mine-1");
    leave();
    CHECK(chdir(before) == 0);
    test_folder_remove(own);
}

static const char two_numbers[] =
    "return require(\"mp\").experiment { name = \"mine\", about = \"has two numbers\",\n"
    "    params = { first = 1, second = 2 }, run = print }\n";
static const char one_number[] =
    "return require(\"mp\").experiment { name = \"mine\", about = \"has one number\",\n"
    "    params = { second = 2 }, run = print }\n";

// The script that has the parameter is written anew meanwhile, with another one in its row, or
// none.
static void what_is_typed_goes_to_the_parameter_that_it_was_typed_for(void) {
    static const char *const nothing[] = {NULL};
    const char *environment[] = {database, "MPBENCH_GPU=/nowhere", NULL};
    char before[4096], own[TEST_FOLDER_SIZE];
    CHECK(getcwd(before, sizeof before) && test_folder_make(own, sizeof own) && chdir(own) == 0);
    write_file("mine.lua", two_numbers);
    unlink(history_path);
    shown_start(&shown, 120, 36, environment, nothing);
    expect("has two numbers");
    press("\rG7", " second 7");
    write_file("mine.lua", one_number);
    shown_pump(&shown, 1);
    press("\r", "has one number");
    expect("second       7");
    leave();
    CHECK(chdir(before) == 0);
    test_folder_remove(own);
}

static void train_elsewhere(void) {
    char command[300];
    snprintf(command, sizeof command,
             "MPBENCH_DB='%s' '%s' run simple --steps 5 --quiet >/dev/null 2>&1", history_path,
             getenv("MPBENCH"));
    CHECK(system(command) == 0);
}

static bool is_finished(int64_t run) {
    Error error;
    RunRecord record = {.id = 0};
    Store *store = store_open(history_path, STORE_READ, &error);
    bool done = store && store_read_run(store, run, &record, &error);
    bool finished = done && record.status == RUN_FINISHED;
    record_clear(&record);
    store_close(store);
    return finished;
}

static void a_run_of_somebody_else_does_not_open(void) {
    open_form_beside("MPBENCH_EMULATOR=fail=cuStreamCreate/1:999");
    press(KEY_DOWN KEY_DOWN KEY_RIGHT, "‹ gpu ›");
    press("\r", "making a stream"); // the worker's own word: it ended before it had a run
    train_elsewhere();
    expect("done");
    expect_home();
    leave();
}

// The process that the program started last; 0: it has none.
static pid_t last_child(pid_t program) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)program, (int)program);
    FILE *file = fopen(path, "r");
    if (file && !fgets(line, sizeof line, file))
        line[0] = 0;
    if (file)
        fclose(file);
    pid_t last = 0;
    for (char *rest = NULL, *at = strtok_r(line, " \n", &rest); at;
         at = strtok_r(NULL, " \n", &rest))
        last = (pid_t)strtol(at, NULL, 10);
    return last;
}

static void a_worker_that_leaves_no_word_is_told_of(void) {
    pid_t worker = 0;
    open_form();
    shown_type(&shown, "\r");
    for (double end = shown_clock() + 10 * test_patience(); worker == 0 && shown_clock() < end;)
        worker = last_child(shown.program);
    CHECK(worker > 0 && kill(worker, SIGKILL) == 0); // before it has a run, as where memory ends
    expect("ended by signal 9");
    train_elsewhere();
    expect("done");
    expect_home();
    leave();
}

static void nothing_opens_under_what_is_typed(void) {
    open_form();
    shown_type(&shown, "\r:");
    for (int i = 0; i < 200 && !is_finished(1); i++)
        shown_pump(&shown, 0.1);
    CHECK(is_finished(1));
    expect_home();
    expect("tab completes");
    press("\x1b", "#1 simple-1"); // what was announced opens now
    leave();
}

static void nothing_opens_under_the_next_form(void) {
    open_form();
    shown_type(&shown, "\r\t"); // from the runs back to the form
    for (int i = 0; i < 200 && !is_finished(1); i++)
        shown_pump(&shown, 0.1);
    CHECK(is_finished(1));
    expect_home();
    press("\x1b", "#1 simple-1");
    leave();
}

static const char *option_of(const RunRecord *record, const char *name) {
    for (int i = 0; i < record->option_count; i++)
        if (strcmp(record->options[i].name, name) == 0)
            return record->options[i].value;
    return "not given";
}

// A word that a recipe does not know is mended where it was typed, and what is right goes along.
static void a_recipe_is_checked_and_goes_to_the_run(void) {
    open_form();
    press(KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN, "recipe       usual");
    press("roundign=random\r", "did you mean rounding?");
    press("\x15rounding=random,rounding=nearest\r", "rounding is there twice");
    press("\x15rounding=random\r", "recipe       rounding=random");
    press("=,margin=2\r", "recipe       rounding=random,margin=2");
    press("\r", "#1 simple-1");
    for (int i = 0; i < 200 && !is_finished(1); i++)
        shown_pump(&shown, 0.1);
    Error error;
    RunRecord record = {.id = 0};
    Store *store = store_open(history_path, STORE_READ, &error);
    CHECK(store && store_read_run(store, 1, &record, &error));
    CHECK_TEXT(option_of(&record, "recipe"), "rounding=random,margin=2");
    record_clear(&record);
    store_close(store);
    leave();
}

static int count_runs(void) {
    Error error;
    RunFilter all = {.words = NULL};
    RunRecord *runs;
    int count = -1;
    Store *store = store_open(history_path, STORE_READ, &error);
    if (store && store_list_runs(store, &all, &runs, &count, &error))
        store_free_runs(runs, count);
    store_close(store);
    return count;
}

// Neither in the list, where the cursor went, nor back in the form.
static void enter_pressed_again_starts_no_second_run(void) {
    open_form();
    press("\r\r\t\r", "simple is starting already");
    press("\x1b", "#1 simple-1");
    for (int i = 0; i < 200 && !is_finished(1); i++)
        shown_pump(&shown, 0.1);
    shown_pump(&shown, 1);
    CHECK_INT(count_runs(), 1);
    leave();
}

// Nine trainings at one key, or two, are asked about, with how long they take.
static void one_key_starts_nothing_unasked(void) {
    static const struct {
        const char *key, *question;
    } cases[] = {
        {"m", "train simple 9 times, 3 seeds each in fp32, bf16 and fp16, one after another?"},
        {"f", "train fashion_cnn 2 times, in fp32 and amp, side by side?"}};
    open_form();
    press("\x1b", "enter: the form");
    for (int i = 0; i < 2; i++) {
        press(cases[i].key, cases[i].question);
        expect("No run so far tells how long that takes.");
        shown_type(&shown, "n");
        expect_gone(cases[i].question);
        shown_pump(&shown, 0.5);
        CHECK(!is_finished(1));
    }
    leave();
}

static void earlier_runs_tell_how_long_it_takes(void) {
    char command[300];
    snprintf(command, sizeof command, "MPBENCH_DB='%s' '%s' run simple --quiet >/dev/null 2>&1",
             history_path, getenv("MPBENCH"));
    open_form();
    press("\x1b", "enter: the form");
    train_elsewhere(); // of five steps, which tell nothing
    press("m", "No run so far tells");
    shown_type(&shown, "n");
    expect_gone("No run so far tells");
    CHECK(system(command) == 0);
    press("m", " s, as earlier runs went.");
    shown_type(&shown, "n");
    leave();
}

static void a_matrix_is_not_started_twice(void) {
    open_form();
    press("\x1b", "enter: the form");
    press("m", "train simple 9 times");
    press("y", "simple: its runs show up here");
    press("m", "its matrix is being trained");
    for (int i = 0; i < 600 && !is_finished(9); i++)
        shown_pump(&shown, 0.1);
    CHECK(is_finished(9) && !is_finished(10));
    leave();
}

int main(void) {
    if (!make_place())
        return 1;
    find_card();
    RUN_TEST(the_form_offers_the_devices_that_are_there);
    RUN_TEST(the_form_tells_the_keys_of_its_field);
    RUN_TEST(a_parameter_of_a_few_texts_is_turned_through);
    RUN_TEST(scripts_of_the_folder_come_first_and_train);
    RUN_TEST(what_is_typed_goes_to_the_parameter_that_it_was_typed_for);
    if (card[0]) {
        RUN_TEST(of_these_cards_come_first);
        RUN_TEST(a_run_of_somebody_else_does_not_open);
    } else {
        printf("skip of_these_cards_come_first: no emulated card is built\n");
    }
    RUN_TEST(a_worker_that_leaves_no_word_is_told_of);
    RUN_TEST(nothing_opens_under_what_is_typed);
    RUN_TEST(nothing_opens_under_the_next_form);
    RUN_TEST(a_recipe_is_checked_and_goes_to_the_run);
    RUN_TEST(enter_pressed_again_starts_no_second_run);
    RUN_TEST(one_key_starts_nothing_unasked);
    RUN_TEST(earlier_runs_tell_how_long_it_takes);
    RUN_TEST(a_matrix_is_not_started_twice);
    return end_tests();
}
