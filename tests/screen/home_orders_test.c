// The home screen's line for orders: what is typed there is done to the run that it is about, and
// answered.
#define _GNU_SOURCE // prlimit
#include <sys/resource.h>

#include "store/checkpoints.h"
#include "store/commands.h"
#include "store/worker.h"
#include "tests/screen/home_place.h"

static void the_command_line_completes_lists_and_cycles(void) {
    open_home(120, 36);
    press(":", "tab completes: pause resume stop checkpoint set fork open option help quit");
    press("\t", "pause  resume  stop");
    press("\t", ": resume");
    press("\x1b[Z", ": pause");
    press("\x15"
          "frobnicate\t",
          "nothing to complete here");
    press("\x15"
          "o\t",
          "open  option");
    press("\x15"
          "op\t",
          "open  option");
    press("\x15"
          "opt\t",
          ": option");
    press("c\t", "characters  colors  co2");
    press("\x15"
          "open b\t",
          ": open beta-3");
    press("\x15"
          "fork 5 mixed_b\t",
          ": fork 5 mixed_bfloat16");
    press("\x15"
          "frobnicate\r",
          "not known; tab lists what there is");
    shown_type(&shown, ":q\r");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
}

static void what_was_completed_is_taken(void) {
    open_home(120, 36);
    press(":open b\t\r", "#3 beta-3");
    press("1:open alpha-2 \r", "#2 alpha-2"); // a blank at the end is not meant
    press("1:option fra\t 30\r", "frames is 30");
    press(":option frames=1.5\r", "frames is 2"); // a whole number
    press(":option frames = 20\r", "frames is 20");
    leave();
}

static void a_series_that_was_completed_is_a_target(void) {
    open_demo();
    press("1", "experiments");
    press("  c", "what differs");
    press("t", "steps and seconds to:");
    press("acc\t=0.8\r", "came to accuracy >= 0.8");
    leave();
}

static void what_stands_behind_the_cursor_stays_there(void) {
    open_home(120, 36);
    press(":set lr=1\x01\t", ": pauseset lr=1");
    press("\t", ": resumeset lr=1");
    press("\x15\x05\x15 lr=1\x01se\t", ": set lr=1");
    press("\x15\x1b", "loss of run");
    leave();
}

static void the_command_line_recalls_what_was_ordered(void) {
    open_home(120, 36);
    press(":" KEY_UP, "tab completes"); // nothing yet
    press("\x1b:frobnicate\r", "not known");
    press(":fork far\r", "a whole number is wanted");
    press(":fork far\r", "a whole number is wanted"); // kept once
    press(":sto" KEY_UP, ": fork far");
    press(KEY_UP, ": frobnicate");
    press(KEY_UP KEY_DOWN, ": fork far"); // there is no earlier one
    press(KEY_DOWN, ": sto");             // what was typed is not lost
    shown_type(&shown, "\x15quit" KEY_UP KEY_DOWN "\r");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
}

// Where the screen went back to a step, a fork begins there, and says where it comes from.
static void a_fork_begins_at_the_step_that_is_looked_at(void) {
    static const char *const watch[] = {"watch", "1", NULL};
    const char *environment[] = {database, NULL};
    char command[300];
    Error error;
    RunRecord run = {.id = 0};
    unlink(history_path);
    snprintf(command, sizeof command,
             "MPBENCH_DB='%s' '%s' run simple --steps 20 --quiet -p fp16 >/dev/null", history_path,
             getenv("MPBENCH"));
    CHECK(system(command) == 0);
    shown_start(&shown, 120, 36, environment, watch);
    expect("finished after step 20");
    press(":fork bf16\r", "fork bf16: after which step?");
    press(":fork\r", "fork wants STEP");
    press("{", "18/20");
    press(":fork bf16 fp16\r", "\"fp16\" is too much");
    press(":fork nonsense\r", "a whole number is wanted");
    press(":fork 999 bf16\r", "fork 999: #1 ended at step 20");
    expect("18/20"); // it is still there
    press(":fork bf16\r", "#2 simple-2 bf16");
    expect("finished after step");
    expect("forked from run 1 after step 18");
    expect("from #1 at 18");
    Store *store = store_open(history_path, STORE_READ, &error);
    CHECK_MESSAGE(store && store_read_run(store, 2, &run, &error), "%s", error.text);
    CHECK_INT(run.parent_step, 18);
    CHECK(strcmp(run.precision, "bf16") == 0);
    record_clear(&run);
    store_close(store);
    leave();
}

static const char *option_of(const RunRecord *run, const char *name) {
    for (int i = run->option_count - 1; i >= 0; i--)
        if (strcmp(run->options[i].name, name) == 0)
            return run->options[i].value;
    return "";
}

// What differs is said in the words of `set`.
static void a_fork_takes_changes_as_an_order_does(void) {
    static const char *const watch[] = {"watch", "1", NULL};
    const char *environment[] = {database, NULL};
    Error error;
    RunRecord run = {.id = 0};
    shown_start(&shown, 120, 36, environment, watch);
    expect("finished after step 20");
    press(":fork lr=0.001\r", "fork lr=0.001: after which step?");
    press(":fork 10 lr=0.001 recipe.sca\t", ": fork 10 lr=0.001 recipe.scales=up");
    // What is said until it is there is gone within a frame at times: its parent has 20 steps.
    press(" layer.fc1=fp32 bf16\r", "#3 simple-3 bf16");
    expect("finished after step");
    Store *store = store_open(history_path, STORE_READ, &error);
    CHECK_MESSAGE(store && store_read_run(store, 3, &run, &error), "%s", error.text);
    CHECK_INT(run.parent_step, 10);
    CHECK_TEXT(run.precision, "bf16");
    CHECK_TEXT(option_of(&run, "set"), "lr=0.001");
    CHECK_TEXT(option_of(&run, "recipe"), "scales=up");
    CHECK_TEXT(option_of(&run, "layer"), "fc1=fp32");
    record_clear(&run);
    store_close(store);
    leave();
}

static void set_status(int64_t run, RunStatus status) {
    Error error;
    RunRecord record;
    Store *store = store_open(history_path, STORE_WRITE, &error);
    CHECK(store && store_read_run(store, run, &record, &error));
    record.status = status;
    CHECK_MESSAGE(store_update_run(store, &record, &error), "%s", error.text);
    record_clear(&record);
    store_close(store);
}

// Its row: nothing reads the file here.
static void keep_checkpoint(int64_t run) {
    Error error;
    CheckpointRow row = {.run = run, .step = 10, .why = "stop", .file = "none.safetensors"};
    Store *store = store_open(history_path, STORE_WRITE, &error);
    CHECK_MESSAGE(store && store_add_checkpoint(store, &row, &error), "%s", error.text);
    store_close(store);
}

static void the_line_for_orders_is_in_every_row_of_keys_with_room(void) {
    open_home(100, 30);
    for (int screen = 1; screen <= 4; screen++) {
        shown_type(&shown, (char[]){(char)('0' + screen), 0});
        expect(": command  tab panel  ? help  q quit");
    }
    leave();
}

// On home, of the run under the cursor, which here nobody trains: what would be ordered is told.
static void commands_mean_the_run_under_the_cursor(void) {
    open_home(120, 36);
    shown_type(&shown, KEY_DOWN);
    press(":fork 1e3\r", "fork 1e3: #3 ended at step 10");
    press(":pause\r", "#3 is over (finished); :fork STEP");
    expect("mpbench fork 3 --at STEP");
    set_status(3, RUN_STOPPED);
    expect("stopped");
    press(":resume\r", "#3 is over (stopped), without a checkpoint; :fork STEP trains it again");
    keep_checkpoint(3);
    press(":stop\r", "#3 is over (stopped); :resume goes on with it (mpbench resume 3)");
    press(":fork far\r", "a whole number is wanted; fork STEP");
    press(":fork 0\r", "fork 0: from 1 to");
    press(":fork 3 fp16 now please\r", "\"now please\" is too much; fork STEP, or fork STEP PREC");
    press(":stop at once\r", "stop: \"at once\" is too much; it takes nothing");
    press(":fork 3\r", "run beta-3: its script"); // a worker was started, and says why it cannot
    leave();
}

// As if this process trained it.
static WorkerId own_run(int64_t run) {
    Error error;
    WorkerId worker = {.pid = 0};
    Store *store = store_open(history_path, STORE_WRITE, &error);
    CHECK_MESSAGE(store && worker_identify(&worker, &error) &&
                      store_own_run(store, run, &worker, &error),
                  "%s", error.text);
    store_close(store);
    set_status(run, RUN_RUNNING);
    return worker;
}

// The list moves on beneath a question: another run lies under the cursor when it is answered.
static void what_is_asked_about_a_run_is_done_to_no_other(void) {
    open_home(120, 36);
    own_run(3);
    own_run(2);
    press("/status:running\r", "loss of run 3");
    press(":stop\r", "stop #3 beta-3 after its step");
    set_status(3, RUN_FINISHED);
    expect_gone("3 beta ");
    press("y", "#3 is over (finished)");
    set_status(3, RUN_RUNNING);
    expect("3 beta ");
    press("g", "loss of run 3");
    press("t", "tag");
    set_status(3, RUN_FINISHED);
    expect_gone("3 beta ");
    press("mine\r", "run 3: tag kept");
    leave();
}

static void runs_that_are_left_behind_are_told_of(void) {
    open_home(120, 36);
    own_run(2);
    own_run(3);
    set_status(3, RUN_PAUSED);
    expect("paused");
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    CHECK_CONTAINS(shown_text(&shown), "run 2 goes on; mpbench watch 2");
    CHECK_CONTAINS(shown_text(&shown), "run 3 is paused; mpbench watch 3");
    shown_free(&shown);
}

// As the worker would that this process is: all are claimed, the last one is answered.
static void answer_last_order(const WorkerId *worker, int most) {
    Error error;
    RunCommand orders[64];
    int count = 0;
    Store *store = store_open(history_path, STORE_WRITE, &error);
    bool done =
        store && store_claim_commands(store, 4, worker->token, orders, most, &count, &error);
    CHECK_INT(count, most);
    if (done && count > 0) {
        RunCommand *last = &orders[count - 1];
        last->state = COMMAND_DONE;
        snprintf(last->answer, sizeof last->answer, "so it is");
        done = store_answer_command(store, last, &error);
    }
    CHECK_MESSAGE(done, "%s", error.text);
    store_close(store);
}

static void every_order_that_waits_gets_its_answer_told(void) {
    enum { ORDERS = 40 };
    open_home(120, 36);
    WorkerId worker = own_run(4);
    expect("●");
    for (int i = 1; i <= ORDERS; i++) {
        char keys[32];
        snprintf(keys, sizeof keys, ":set lr=%d\r", i);
        shown_type(&shown, keys);
    }
    expect("set lr=40 #4: asked; the answer comes at the next step");
    answer_last_order(&worker, ORDERS);
    expect("set lr=40 #4: done: so it is");
    press(":stop\r", "after its step, with a checkpoint?");
    press("y", "stop #4: asked; the answer comes as the run ends");
    leave();
}

static void a_worker_that_cannot_be_started_is_not_announced(void) {
    const struct rlimit no_more_files = {.rlim_cur = 3, .rlim_max = 3};
    open_home(120, 36);
    CHECK(prlimit(shown.program, RLIMIT_NOFILE, &no_more_files, NULL) == 0);
    press(":fork 3\r", "cannot start a run");
    shown_type(&shown, KEY_DOWN);
    set_status(3, RUN_STOPPED);
    expect("stopped");
    keep_checkpoint(3);
    press(":resume\r", "cannot start a run");
    leave();
}

int main(void) {
    if (!make_place())
        return 1;
    RUN_TEST(the_command_line_completes_lists_and_cycles);
    RUN_TEST(what_was_completed_is_taken);
    RUN_TEST(a_series_that_was_completed_is_a_target);
    RUN_TEST(what_stands_behind_the_cursor_stays_there);
    RUN_TEST(the_command_line_recalls_what_was_ordered);
    RUN_TEST(a_fork_begins_at_the_step_that_is_looked_at);
    RUN_TEST(a_fork_takes_changes_as_an_order_does);
    RUN_TEST(the_line_for_orders_is_in_every_row_of_keys_with_room);
    RUN_TEST(commands_mean_the_run_under_the_cursor);
    RUN_TEST(what_is_asked_about_a_run_is_done_to_no_other);
    RUN_TEST(runs_that_are_left_behind_are_told_of);
    RUN_TEST(every_order_that_waits_gets_its_answer_told);
    RUN_TEST(a_worker_that_cannot_be_started_is_not_announced);
    return end_tests();
}
