// The home screen on a history made for it: what its keys do to the runs that are listed, and that
// they touch no other.
#include <sys/stat.h>
#include <time.h>

#include "store/series.h"
#include "store/step_profile.h"
#include "tests/screen/home_place.h"

// ---- choosing and deleting ----------------------------------------------------------------------

static void runs_that_a_filter_hides_are_not_deleted(void) {
    open_home(120, 36);
    press("  ", "2 chosen"); // 4 and 3
    press("/alpha\r", "2 chosen, 2 hidden by the filter");
    press("d", "delete 2 alpha-2? What the filter hides stays.");
    press("y", "really?");
    shown_type(&shown, "y");
    expect_gone("  2 alpha");
    CHECK_INT(count_runs(), 3);
    press("\x1b", "gamma"); // the filter goes, what is chosen stays
    press("d", "delete 4 gamma-4, 3 beta-3?");
    shown_type(&shown, "yy");
    expect_gone("gamma");
    expect("loss of run 1"); // the preview follows
    CHECK_INT(count_runs(), 1);
    leave();
}

static void space_moves_on_as_the_row_of_keys_says(void) {
    open_home(120, 36);
    expect("space select, next");
    press("\t", "m matrix  e script"); // in the form
    expect_gone("space select");
    press("\x1b[Z", "space select, next");
    shown_type(&shown, " "); // 4: now on 3
    press("\r", "#3 beta-3");
    leave();
}

static void the_digit_compares_what_is_chosen_as_c_does(void) {
    open_home(120, 36);
    press("  ", "2 chosen");
    press("3", "what differs");
    expect_gone("Choose two runs");
    leave();
}

static void back_from_a_run_the_list_is_at_it(void) {
    open_home(120, 36);
    press(":open scale 4\r", "scale 4: no such run"); // as it was typed
    press(":open beta-3\r", "#3 beta-3");
    press("\x1b", "loss of run 3");
    press(KEY_DOWN "3", "Choose two runs"); // elsewhere
    press("1", "loss of run 2");            // it stays
    press("2", "#3 beta-3");
    press("1/fp32\r", "loss of run 2");
    press("2", "#3 beta-3");
    press("1", "loss of run 2"); // what the filter hides is not gone to
    leave();
}

static void what_a_list_has_below_is_counted(void) {
    open_home(80, 24);
    expect("more below: down"); // experiments
    leave();
}

static void the_result_of_a_run_is_the_one_that_leads(void) {
    static const RecordMetric metrics[] = {{"margin", 0.25}, {"val_accuracy", 0.875}};
    Error error;
    RunRecord record = {.id = 0};
    open_home(120, 36);
    Store *store = store_open(history_path, STORE_WRITE, &error);
    bool done = store && store_read_run(store, 3, &record, &error) &&
                record_set_metrics(&record, metrics, 2, &error) &&
                store_update_run(store, &record, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    record_clear(&record);
    store_close(store);
    expect("0.875");
    leave();
}

static void escape_lets_go_of_what_was_chosen(void) {
    open_home(120, 36);
    press("   ", "3 chosen");
    expect("esc: none");
    press("d", "delete 4 gamma-4, 3 beta-3, 2 alpha-2?");
    shown_type(&shown, "n");
    press("\x1b", "loss of run");
    expect_gone("chosen");
    CHECK_INT(count_runs(), 4);
    leave();
}

static void notes_are_confirmed_and_shown(void) {
    open_home(120, 36);
    press("nkeep this one\r", "run 4: note kept");
    expect("note: keep this one");
    press("n\x15\r", "run 4: note removed");
    expect_gone("keep this one");
    leave();
}

// ---- filtering ----------------------------------------------------------------------------------

static void filters_act_as_they_are_typed_and_speak_as_the_table_does(void) {
    open_home(120, 36);
    press("/", "status:failed format:fp16 acc>0.9");
    shown_type(&shown, "format:bf16");
    expect_gone("gamma");
    expect("beta");
    shown_type(&shown, "\x15");
    expect("gamma");
    shown_type(&shown, "nothing-such"); // then no run is previewed
    expect_gone("· seed");
    shown_type(&shown, "\x15");
    expect("· seed");
    shown_type(&shown, "bf16 done\r");
    expect_gone("gamma");
    expect("beta");
    shown_type(&shown, "/\x15"
                       "fp32");
    expect_gone("beta");
    shown_type(&shown, "\x1b"); // as it was before
    expect("beta");
    press("/\x15"
          "state:lost\r",
          "no such status"); // and it stays open
    press("\x15\r", "gamma");
    leave();
}

static void remove_elsewhere(int64_t run) {
    Error error;
    Store *store = store_open(history_path, STORE_WRITE, &error);
    CHECK_MESSAGE(store && store_remove_run(store, run, &error), "%s", error.text);
    store_close(store);
}

static void the_cursor_stays_where_it_was(void) {
    open_home(120, 36);
    press(KEY_DOWN, "loss of run 3");
    remove_elsewhere(3);
    expect("loss of run 2");
    press("/gamma", "loss of run 4");
    press("\x1b", "loss of run 2"); // the filter was dropped
    remove_elsewhere(1);
    press("dyy", "loss of run 4"); // the last that is left
    leave();
}

static void all_runs_are_counted_behind_a_filter(void) {
    open_home(120, 36);
    press("/alpha\r", "history 4 runs");
    remove_elsewhere(3);
    expect("history 3 runs");
    leave();
}

// ---- the launch form ----------------------------------------------------------------------------

// Of fashion_cnn: format, loss scale, device, seed, recipe, keep fp32, layers, batch, epochs, lr,
// width.
static void what_would_train_nothing_is_refused_at_the_field(void) {
    static const struct {
        int row;
        const char *text, *why;
    } cases[] = {{3, "1e99", "too large"},
                 {3, "1.5", "a whole number"},
                 {4, "fp8=curent", "did you mean current?"},
                 {4, "9", "KEY=VALUE is wanted"},
                 {5, "losess", "did you mean losses"},
                 {7, "0", "batch=0: a whole"},
                 {7, "-5", "from 0 up"},
                 {9, "1e-9999", "it would be 0"},
                 {9, "9..1e-9", "a number expected"}};
    open_home(120, 36);
    shown_type(&shown, "\t"); // to the form
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int row = 0; row < cases[i].row; row++)
            shown_type(&shown, KEY_DOWN);
        shown_type(&shown, cases[i].text);
        press("\r", cases[i].why);
        press("\x15"
              "7",
              "7"); // the prompt is still there
        shown_type(&shown, "\x1b");
        expect_gone(cases[i].why);
        for (int row = 0; row < cases[i].row; row++) // letters would begin what fields of text take
            shown_type(&shown, KEY_UP);
    }
    leave();
}

static void fields_are_gone_through_while_values_are_typed(void) {
    open_home(120, 36);
    press("\t", "enter trains");
    press(KEY_DOWN "512", "loss scale 512");
    press(KEY_DOWN, "‹ 512 ›"); // kept, and on the next row
    press(KEY_DOWN "7\t", "seed         7");
    press(KEY_DOWN KEY_DOWN KEY_DOWN "64" KEY_UP, "batch        64"); // past the recipe
    press(KEY_UP KEY_UP "margin=1" KEY_UP, "recipe       margin=1");
    press("9\r", "seed         9");
    press("d", "no key of the form"); // and nothing is deleted
    press("2\x1b", "digits type · esc: out");
    press("\x1b", "enter: the form");
    press("2", "gamma-4");
    shown_type(&shown, "\x1bOP"); // F1
    expect("experiments");
    press("4", "flushed");
    expect("F1 home  F2 live  F3 compare  F4 formats"); // and 1 to 4 do not go there
    press("1", "a number or an expression");            // a digit is typed there
    press("\x1bOP", "experiments");
    leave();
}

// A click on the bracket at either side of a choice goes that way.
static void brackets_are_clicked(void) {
    open_home(120, 36);
    press("\t" KEY_RIGHT KEY_RIGHT, "‹ fp32 ›");
    click_row_of("‹ fp32", 16, "‹ auto ›");
    click_row_of("‹ auto", 23, "‹ fp32 ›");
    leave();
}

// A click means the row that it hits, wherever the form was scrolled to.
static void rows_of_a_scrolled_form_are_clicked(void) {
    open_home(80, 24);
    press("\x1b[Z", "batch"); // in the form
    press("G", "width");
    click_row_of("epochs ", 50, "epochs");
    press("7", " epochs 7");
    shown_type(&shown, "\x1b");
    click_row_of("= edit", 50, "epochs"); // what tells the keys is no row
    press("9", " epochs 9");
    shown_type(&shown, "\x1b");
    leave();
}

static void the_wheel_goes_through_the_form(void) {
    static const char down[] = "\x1b[<65;20;26M", up[] = "\x1b[<64;20;26M";
    open_home(120, 36);
    press("\t", "enter trains");
    for (int i = 0; i < 4; i++)
        shown_type(&shown, down);
    press(up, "digits type");
    press("7", " seed 7"); // and no choice was turned
    shown_type(&shown, "\x1b");
    expect("device       ‹ default ›");
    leave();
}

// Enter goes to the form there, too, as its title says, and trains nothing.
static void enter_in_the_large_list_goes_to_the_form(void) {
    open_home(120, 36);
    press("\x1b[Z", "e script");
    shown_type(&shown, "z");
    expect_gone("gamma");
    press("\r", "gamma");
    expect("enter trains");
    press(KEY_DOWN KEY_DOWN KEY_DOWN, "digits type"); // the cursor is in it
    CHECK_INT(count_runs(), 4);
    leave();
}

static void a_typed_scale_stays_among_the_choices(void) {
    open_home(120, 36);
    press("\t" KEY_DOWN "512\r", "‹ 512 ›");
    shown_type(&shown, KEY_RIGHT);
    expect_gone("‹ 512 ›");
    press(KEY_LEFT, "‹ 512 ›");
    shown_type(&shown, KEY_LEFT);
    expect_gone("‹ 512 ›");
    press(KEY_RIGHT, "‹ 512 ›");
    shown_type(&shown, "=\x15\r"); // removed
    expect_gone("512");
    shown_type(&shown, KEY_LEFT KEY_RIGHT KEY_LEFT);
    shown_settle(&shown);
    CHECK(!strstr(shown_text(&shown), "512"));
    leave();
}

// ---- a window that is too small -----------------------------------------------------------------

static void what_is_not_seen_is_not_answered(void) {
    open_home(120, 36);
    press("d", "delete 4 gamma-4?");
    shown_resize(&shown, 40, 10);
    expect("q quits; runs go on");
    shown_type(&shown, "yy");
    shown_settle(&shown);
    shown_resize(&shown, 120, 36);
    press("", "delete 4 gamma-4?"); // it is asked still
    shown_type(&shown, "n");
    CHECK_INT(count_runs(), 4);
    leave();
}

static void the_way_out_of_a_small_window_is_by_the_key_that_quits(void) {
    mkdir(path_of("config"), 0700);
    mkdir(path_of("config/mpbench"), 0700);
    write_text(path_of("config/mpbench/config.lua"), "key.quit = \"Q\"\n");
    open_home(120, 36);
    shown_resize(&shown, 40, 10);
    expect("Q quits; runs go on");
    shown_type(&shown, "Q");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
    unlink(path_of("config/mpbench/config.lua"));
}

// ---- hints --------------------------------------------------------------------------------------

static void the_screens_and_their_keys_are_in_sight_on_a_small_terminal(void) {
    open_home(80, 24);
    expect("1 home  2 live  3 compare  4 formats");
    expect("f start");
    expect(": command  tab panel  ? help  q quit");
    press("\x1b[<0;14;1M\x1b[<0;14;1m", "gamma-4"); // a click on live
    expect("1  2 live 3 4");
    press("?", "? all keys");
    press("?", "up down scroll");
    expect_gone("q quit");
    press("\x1b"
          "1",
          "1 home");
    press("  ", "◆   3");
    press("t\r", "tag removed");
    expect("? help  q quit"); // beside the message
    leave();
}

// Questions, hints and messages take more rows where they are long: their end says what to do.
static void what_stands_at_the_foot_is_whole_on_a_small_terminal(void) {
    open_home(80, 24);
    press("/", "with < = >");
    expect("status:failed");
    shown_type(&shown, "\x1b");
    expect_gone("with < = >");
    press(":", "tab completes: pause resume stop checkpoint set fork open option help quit");
    press("\x1bj:pause\r", "(mpbench fork 3 --at STEP)");
    expect("#3 is over (finished)");
    expect("1 alpha"); // what it covers is at the foot alone
    press("k    /id>1\rd", "delete 4 gamma-4, 3 beta-3, 2 alpha-2? What the filter hides stays.");
    expect("\n y yes  n no\n");
    leave();
}

// The row of keys; good until the next call.
static const char *foot(void) {
    static char text[512];
    const char *all = shown_text(&shown), *end = all + strlen(all) - 1;
    const char *start = end;
    while (start > all && start[-1] != '\n')
        start--;
    snprintf(text, sizeof text, "%.*s", (int)(end - start), start);
    return text;
}

static void settings_are_offered_and_explained(void) {
    open_home(120, 36);
    expect("O settings");
    press("O", "left right turn · ? explains");
    press("?", "How the screen looks and acts");
    press("?", "Everywhere");
    press("\x1b", "left right turn");
    press("\x1b", "O settings");
    leave();
}

static void the_row_of_keys_offers_what_works_there(void) {
    open_home(120, 36);
    CHECK(!strstr(foot(), "c compare")); // nothing is chosen
    press(" ", "1 chosen");
    CHECK(!strstr(foot(), "c compare"));
    press(" ", "c compare");
    press("/nosuch\r", "No run matches");
    shown_settle(&shown);
    CHECK(!strstr(foot(), "delete") && !strstr(foot(), "select"));
    CHECK_CONTAINS(foot(), "/ filter");
    press("\x1b\t", "m matrix  e script"); // the form
    shown_settle(&shown);
    CHECK(!strstr(foot(), "f start") && !strstr(foot(), "delete"));
    CHECK_CONTAINS(foot(), "z zoom");
    shown_type(&shown, "z");
    expect_gone("gamma");
    press("z", "gamma");
    leave();
    static const char *const nothing[] = {NULL};
    const char *environment[] = {database, NULL};
    unlink(history_path);
    shown_start(&shown, 120, 36, environment, nothing);
    expect("No runs yet");
    for (int panel = 0; panel < 4; panel++) {
        shown_type(&shown, "\t");
        shown_settle(&shown);
        CHECK(!strstr(foot(), "select") && !strstr(foot(), "compare") && !strstr(foot(), "delete"));
    }
    leave();
}

static void keys_at_the_foot_are_clicked(void) {
    open_home(120, 36);
    expect("q quit");
    const char *last = strstr(shown_text(&shown), " space select");
    int column = 0;
    for (const char *at = last; at && at < strstr(last, "/ filter"); at++)
        column++;
    char click[64];
    snprintf(click, sizeof click, "\x1b[<0;%d;36M\x1b[<0;%d;36m", column + 1, column + 1);
    press(click, "status:failed format:fp16");
    leave();
}

// Run 4 fails, with a loss, while the screen is elsewhere.
static void fail_with_a_loss(void) {
    Error error;
    RunRecord record = {.id = 0};
    Store *store = store_open(history_path, STORE_WRITE, &error);
    SeriesWriter *writer = store ? series_writer_new(store, 4, 0, "start", &error) : NULL;
    bool done = writer && store_read_run(store, 4, &record, &error);
    for (int step = 1; step <= 5 && done; step++)
        done = series_add(writer, "loss", step, 1.0 / step, &error);
    record.status = RUN_FAILED;
    done = done && store_begin(store, &error) && series_flush(writer, 0.1, &error) &&
           store_update_run(store, &record, &error) && store_commit(store, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    record_clear(&record);
    series_writer_free(writer);
    store_close(store);
}

static void the_preview_is_of_what_the_run_has_come_to(void) {
    open_home(120, 36);
    expect("No loss was logged");
    press("\r", "gamma-4");
    fail_with_a_loss();
    press("1", "experiments");
    shown_pump(&shown, 0.6);
    CHECK(!strstr(shown_text(&shown), "No loss was logged"));
    leave();
}

static void the_preview_of_a_profile_says_where_it_is_shown(void) {
    Error error;
    StepProfile profile = {.steps = 8, .step_seconds = 0.01};
    make_history();
    Store *store = store_open(history_path, STORE_WRITE, &error);
    CHECK_MESSAGE(store && store_put_step_profile(store, 4, &profile, &error), "%s", error.text);
    store_close(store);
    show_home(120, 36);
    expect("A profile: where the time of steps goes");
    CHECK(!strstr(shown_text(&shown), "No loss was logged"));
    press("\rP", "8 steps profiled");
    leave();
}

// ---- what the list says -------------------------------------------------------------------------

static void add_named(Store *store, const char *name, const char *metric) {
    Error error;
    RunRecord record = {
        .status = RUN_FINISHED, .step = 10, .seed = 42, .created_ms = 1795245000000};
    RecordMetric result = {.value = 0.75};
    snprintf(record.name, sizeof record.name, "%s", name);
    snprintf(record.experiment, sizeof record.experiment, "alpha");
    snprintf(record.precision, sizeof record.precision, "fp16");
    snprintf(record.scale_rule, sizeof record.scale_rule, "1024");
    snprintf(record.device, sizeof record.device, "cpu");
    snprintf(result.name, sizeof result.name, "%s", metric);
    CHECK_MESSAGE(record_set_metrics(&record, &result, 1, &error) &&
                      store_add_run(store, &record, NULL, 0, &error),
                  "%s", error.text);
    record_clear(&record);
}

// At any size: its name, its loss scale, its seed, and what its result measures.
static void a_run_is_known_by_its_own_name_and_result(void) {
    Error error;
    static const int sizes[][2] = {{80, 24}, {120, 36}, {200, 60}};
    const char *environment[] = {database, NULL};
    static const char *const nothing[] = {NULL};
    unlink(history_path);
    Store *store = store_open(history_path, STORE_WRITE, &error);
    add_named(store, "seen", "f1");
    for (int i = 0; i < 3; i++) {
        shown_start(&shown, sizes[i][0], sizes[i][1], environment, nothing);
        expect("seen alpha");
        expect("  f1 "); // over the column, since all results are of it
        if (i > 0)
            expect("seen · f1 0.7500 · loss scale 2^10 · seed 42");
        if (i == 2)
            expect("2^10   42 done");
        quit();
    }
    add_named(store, "other", "perplexity");
    store_close(store);
    shown_start(&shown, 120, 36, environment, nothing);
    expect("other · perplexity 0.7500");
    expect(" result "); // of several
    quit();
}

static void ages_grow_while_nobody_types(void) {
    static const char *const nothing[] = {NULL};
    const char *environment[] = {database, NULL};
    Error error;
    RunRecord record = {.experiment = "young", .precision = "fp16", .device = "cpu"};
    unlink(history_path);
    Store *store = store_open(history_path, STORE_WRITE, &error);
    record.created_ms = (int64_t)time(NULL) * 1000;
    CHECK_MESSAGE(store_add_run(store, &record, NULL, 0, &error), "%s", error.text);
    store_close(store);
    shown_start(&shown, 200, 60, environment, nothing);
    expect("young");
    expect(" 6 s");
    expect(" 8 s");
    leave();
}

// Of 34 runs the last are shown, as many as there is room for.
static void a_larger_window_is_filled(void) {
    Error error;
    make_history();
    Store *store = store_open(history_path, STORE_WRITE, &error);
    for (int i = 0; i < 30; i++)
        add_run(store, "gamma", "fp32");
    store_close(store);
    show_home(80, 24);
    press("G", "1 alpha");
    shown_resize(&shown, 80, 60);
    expect(" 20 gamma");
    expect(" 1 alpha");
    leave();
}

// Each is read by a process of its own, and may take long.
static void the_first_picture_waits_for_no_experiment(void) {
    static const char *const nothing[] = {NULL};
    char folders[600];
    const char *own = path_of("own");
    mkdir(own, 0700);
    write_text(path_of("own/b_quick.lua"),
               "local mp = require 'mp'\n"
               "return mp.experiment{name='a', about='says it at once', run=print}\n");
    write_text(path_of("own/fashion_cnn.lua"), "while true do end\n"); // under the cursor
    snprintf(folders, sizeof folders, "MPBENCH_EXPERIMENTS=%s", own);
    const char *environment[] = {folders, database, NULL};
    make_history();
    shown_start(&shown, 120, 36, environment, nothing);
    expect("fashion_cnn");
    CHECK(!strstr(shown_text(&shown), "fashion_cnn   /")); // its path, and why it says nothing
    expect("fashion_cnn   /");
    expect("says it at once");
    leave();
}

int main(void) {
    if (!make_place())
        return 1;
    RUN_TEST(a_run_is_known_by_its_own_name_and_result);
    RUN_TEST(a_larger_window_is_filled);
    RUN_TEST(ages_grow_while_nobody_types);
    RUN_TEST(the_cursor_stays_where_it_was);
    RUN_TEST(all_runs_are_counted_behind_a_filter);
    RUN_TEST(what_is_not_seen_is_not_answered);
    RUN_TEST(the_way_out_of_a_small_window_is_by_the_key_that_quits);
    RUN_TEST(the_first_picture_waits_for_no_experiment);
    RUN_TEST(runs_that_a_filter_hides_are_not_deleted);
    RUN_TEST(space_moves_on_as_the_row_of_keys_says);
    RUN_TEST(the_digit_compares_what_is_chosen_as_c_does);
    RUN_TEST(back_from_a_run_the_list_is_at_it);
    RUN_TEST(what_a_list_has_below_is_counted);
    RUN_TEST(the_result_of_a_run_is_the_one_that_leads);
    RUN_TEST(escape_lets_go_of_what_was_chosen);
    RUN_TEST(filters_act_as_they_are_typed_and_speak_as_the_table_does);
    RUN_TEST(notes_are_confirmed_and_shown);
    RUN_TEST(what_would_train_nothing_is_refused_at_the_field);
    RUN_TEST(fields_are_gone_through_while_values_are_typed);
    RUN_TEST(brackets_are_clicked);
    RUN_TEST(rows_of_a_scrolled_form_are_clicked);
    RUN_TEST(the_wheel_goes_through_the_form);
    RUN_TEST(enter_in_the_large_list_goes_to_the_form);
    RUN_TEST(a_typed_scale_stays_among_the_choices);
    RUN_TEST(the_screens_and_their_keys_are_in_sight_on_a_small_terminal);
    RUN_TEST(what_stands_at_the_foot_is_whole_on_a_small_terminal);
    RUN_TEST(settings_are_offered_and_explained);
    RUN_TEST(the_row_of_keys_offers_what_works_there);
    RUN_TEST(the_preview_is_of_what_the_run_has_come_to);
    RUN_TEST(the_preview_of_a_profile_says_where_it_is_shown);
    RUN_TEST(keys_at_the_foot_are_clicked);
    return end_tests();
}
