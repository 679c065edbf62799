// The live screen: what keys order of a replay and of a run, and that nothing breaks it.
#include "ui_live_fixture.h"

#include "store/worker.h"

// ---- replay -------------------------------------------------------------------------------------

// The header after so many looks, a tenth of a second apart.
static const char *look_on(Ui *ui, int looks) {
    const char *text = "";
    for (int i = 0; i < looks; i++) {
        now_ms += 100;
        text = draw_screen(ui, 140, 36, false);
    }
    return text;
}

// 400 steps that took 20 seconds: the whole of it takes a minute at most at half of its pace.
static void a_run_is_replayed_paused_and_left_by_keys(void) {
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    CHECK(screen_live.request(ui, REQUEST_REPLAY));
    CHECK_CONTAINS(look_on(ui, 1), "replay 0.5×, r pauses");
    CHECK_CONTAINS(look_on(ui, 9), "11/800"); // 20 steps a second, in half
    CHECK(!screen_live.refresh(ui, 0.1));     // between two steps nothing is drawn
    CHECK(screen_live.request(ui, REQUEST_REPLAY_FASTER));
    CHECK_CONTAINS(look_on(ui, 60), "131/800");
    CHECK_CONTAINS(frame_text(&ui->frame), "replay 1×, r pauses");
    CHECK_CONTAINS(frame_text(&ui->frame), "inf in conv2.weight");
    CHECK(!strstr(frame_text(&ui->frame), "the scale grew")); // at 301
    screen_live.request(ui, REQUEST_REPLAY);
    CHECK_CONTAINS(look_on(ui, 10), "replay 1× paused, r goes on");
    CHECK_CONTAINS(frame_text(&ui->frame), "131/800");
    CHECK(!screen_live.refresh(ui, 0.1)); // nothing to be drawn
    screen_live.request(ui, REQUEST_REPLAY);
    CHECK_CONTAINS(look_on(ui, 10), "151/800");
    screen_live.request(ui, REQUEST_FREEZE);
    CHECK_CONTAINS(look_on(ui, 10), "frozen");
    screen_live.request(ui, REQUEST_FREEZE);
    CHECK_CONTAINS(look_on(ui, 10), "171/800");
    screen_live.request(ui, REQUEST_SCRUB_BACK); // ends it
    CHECK_CONTAINS(look_on(ui, 10), "167/800");
    CHECK_CONTAINS(frame_text(&ui->frame), "scrubbed, G shows the end");
    close_screen(ui);
    store_close(store);
}

static void pause_of_a_run_that_is_over_is_of_its_replay(void) {
    Store *store = make_history(RUN_FINISHED);
    UiOptions options = {.demo = true}; // there as well
    Ui *ui = open_screen(store, 2);
    ui->options = &options;
    look_on(ui, 0);
    CHECK(screen_live.request(ui, REQUEST_PAUSE));
    CHECK_TEXT(said, "#2 is over (finished): r replays it, then p pauses");
    said[0] = 0;
    screen_live.request(ui, REQUEST_REPLAY);
    CHECK_CONTAINS(look_on(ui, 1), "r pauses");
    screen_live.request(ui, REQUEST_PAUSE);
    CHECK_CONTAINS(look_on(ui, 1), "paused, r goes on");
    screen_live.request(ui, REQUEST_PAUSE);
    CHECK_CONTAINS(look_on(ui, 1), "r pauses");
    CHECK_TEXT(said, "");
    close_screen(ui);
    store_close(store);
}

static void a_replay_comes_to_the_end_and_waits_for_nobody_elsewhere(void) {
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    screen_live.request(ui, REQUEST_REPLAY);
    now_ms += 3600000; // somewhere else, or asleep: that time does not count
    CHECK_CONTAINS(look_on(ui, 1), "6/800");
    screen_live.request(ui, REQUEST_FIRST);
    for (int i = 0; i < 8; i++)
        screen_live.key(ui, '}'); // 321
    screen_live.request(ui, REQUEST_REPLAY);
    CHECK_CONTAINS(look_on(ui, 70), "391/800");
    CHECK_CONTAINS(look_on(ui, 10), "finished");
    CHECK_CONTAINS(frame_text(&ui->frame), "400/800");
    CHECK_CONTAINS(said, "the replay is over: r plays it again");
    screen_live.request(ui, REQUEST_REPLAY);
    CHECK_CONTAINS(look_on(ui, 10), "11/800");
    ui->run = 1; // another run is shown as it is
    CHECK_CONTAINS(look_on(ui, 1), "400/800");
    close_screen(ui);
    store_close(store);
    store = fresh_store("empty.db");
    ui = open_screen(store, 0);
    screen_live.request(ui, REQUEST_REPLAY);
    CHECK_CONTAINS(said, "nothing to replay");
    screen_live.request(ui, REQUEST_REPLAY_FASTER);
    CHECK_CONTAINS(said, "nothing is replayed");
    close_screen(ui);
    store_close(store);
}

// ---- orders -------------------------------------------------------------------------------------

// This process stands for the worker of run 2.
static Store *make_owned_history(WorkerId *worker) {
    Store *store = make_history(RUN_RUNNING);
    CHECK_DONE(worker_identify(worker, &error));
    CHECK_DONE(store_own_run(store, 2, worker, &error));
    return store;
}

// Claims what waits, checks the oldest, answers all.
static void answer(Store *store, const WorkerId *worker, const char *verb, const char *argument,
                   CommandState state) {
    RunCommand commands[8];
    int count = 0;
    CHECK_DONE(store_claim_commands(store, 2, worker->token, commands, 8, &count, &error));
    CHECK_MESSAGE(count > 0, "no order waits, %s was expected; said: %s", verb, said);
    for (int i = 0; i < count; i++) {
        if (i == 0) {
            CHECK_TEXT(commands[i].verb, verb);
            CHECK_TEXT(commands[i].argument, argument);
        }
        commands[i].state = state;
        commands[i].step = state == COMMAND_DONE ? 401 : -1;
        snprintf(commands[i].answer, sizeof commands[i].answer, "not now");
        CHECK_DONE(store_answer_command(store, &commands[i], &error));
    }
}

static void formats_are_pending_until_the_worker_answers(void) {
    WorkerId worker;
    Store *store = make_owned_history(&worker);
    Ui *ui = open_screen(store, 2);
    screen_live.request(ui, REQUEST_FORMAT);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "pending: conv1 fp16 → fp32  at the next step");
    answer(store, &worker, "set", "layer.conv1=fp32", COMMAND_DONE);
    CHECK(!strstr(draw_screen(ui, 120, 36, false), "pending"));
    CHECK_CONTAINS(said, "conv1 fp16 → fp32: done, at step 401");
    screen_live.request(ui, REQUEST_UNDO);
    answer(store, &worker, "set", "layer.conv1=auto", COMMAND_REFUSED);
    draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(said, "refused: not now");
    screen_live.request(ui, REQUEST_FORMAT_ALL);
    CHECK_TEXT(ui->prompt.label, "train all 5 layers of #2 in fp32 from now on?");
    prompt_key(ui, 'n');
    CHECK_INT(live_of(ui)->order_count, 0);
    screen_live.request(ui, REQUEST_FORMAT_ALL);
    prompt_key(ui, 'y');
    answer(store, &worker, "set", "layer.*=fp32", COMMAND_DONE);
    screen_live.request(ui, REQUEST_UNDO);
    answer(store, &worker, "set", "layer.*=auto", COMMAND_DONE);
    screen_live.request(ui, REQUEST_AUTO);
    answer(store, &worker, "set", "layer.conv1=auto", COMMAND_DONE);
    screen_live.request(ui, REQUEST_SCRUB_BACK);
    static const Request of_now[] = {REQUEST_FORMAT, REQUEST_AUTO, REQUEST_FORMAT_ALL,
                                     REQUEST_AUTO_ALL};
    const int before = live_of(ui)->order_count;
    for (size_t i = 0; i < sizeof of_now / sizeof *of_now; i++) {
        said[0] = 0;
        screen_live.request(ui, of_now[i]);
        CHECK_CONTAINS(said, "this is the past: G goes");
        CHECK(!ui->prompt.open);
        CHECK_INT(live_of(ui)->order_count, before);
    }
    screen_live.request(ui, REQUEST_LAST);
    screen_live.request(ui, REQUEST_AUTO_ALL);
    CHECK_TEXT(ui->prompt.label, "give all 5 layers of #2 back to the policy?");
    prompt_key(ui, 'y');
    answer(store, &worker, "set", "layer.*=auto", COMMAND_DONE);
    draw_screen(ui, 120, 36, false);
    CHECK_INT(live_of(ui)->order_count, 0);
    screen_live.request(ui, REQUEST_FORMAT); // pressed ahead of the run
    screen_live.request(ui, REQUEST_FORMAT);
    CHECK_TEXT(live_pending(live_of(ui), 0), "bf16");
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "and 1 more");
    screen_live.request(ui, REQUEST_UNDO);
    CHECK_TEXT(live_pending(live_of(ui), 0), "fp32"); // one step back, not two
    close_screen(ui);
    store_close(store);
}

// As the worker writes it when it has done what it was told.
static void write_run(Store *store, RunStatus status, const char *first_format) {
    RunRecord record;
    CHECK_DONE(store_read_run(store, 2, &record, &error));
    record.status = status;
    snprintf(record.layers[0].precision, sizeof record.layers[0].precision, "%s", first_format);
    CHECK_DONE(store_update_run(store, &record, &error));
    record_clear(&record);
}

// The picture stays, but orders and the names of keys are of the run as it is.
static void orders_of_a_frozen_picture_go_by_the_run_as_it_is(void) {
    WorkerId worker;
    Store *store = make_owned_history(&worker);
    Ui *ui = open_screen(store, 2);
    screen_live.request(ui, REQUEST_FREEZE);
    look_on(ui, 1);
    screen_live.request(ui, REQUEST_PAUSE);
    answer(store, &worker, "pause", "", COMMAND_DONE);
    write_run(store, RUN_PAUSED, "fp16");
    look_on(ui, 2);
    CHECK_TEXT(screen_live.label(ui, REQUEST_PAUSE, "pause"), "go on");
    screen_live.request(ui, REQUEST_PAUSE);
    answer(store, &worker, "resume", "", COMMAND_DONE);
    screen_live.request(ui, REQUEST_FORMAT);
    answer(store, &worker, "set", "layer.conv1=fp32", COMMAND_DONE);
    write_run(store, RUN_RUNNING, "fp32");
    CHECK_CONTAINS(look_on(ui, 2), "frozen");
    CHECK_CONTAINS(frame_text(&ui->frame), "▸conv1    fp16 auto");
    screen_live.request(ui, REQUEST_FORMAT);
    answer(store, &worker, "set", "layer.conv1=bf16", COMMAND_DONE);
    write_run(store, RUN_FINISHED, "bf16");
    look_on(ui, 2);
    screen_live.request(ui, REQUEST_PAUSE);
    CHECK_CONTAINS(said, "#2 is over (finished)");
    screen_live.request(ui, REQUEST_FREEZE);
    CHECK_CONTAINS(look_on(ui, 1), "finished");
    close_screen(ui);
    store_close(store);
}

static void orders_of_a_run_that_is_over_wait_no_longer(void) {
    WorkerId worker;
    Store *store = make_owned_history(&worker);
    Ui *ui = open_screen(store, 2);
    screen_live.request(ui, REQUEST_FORMAT);
    screen_live.request(ui, REQUEST_FORMAT);
    CHECK_CONTAINS(look_on(ui, 1), "pending");
    write_run(store, RUN_FAILED, "fp16"); // and nobody answered
    look_on(ui, 1);
    CHECK(!strstr(look_on(ui, 1), "pending"));
    CHECK_TEXT(said, "conv1 fp16 → fp32, and 1 more: never answered, #2 is over (failed)");
    close_screen(ui);
    store_close(store);
}

// As a scan gives its policy.
static void several_layers_are_one_change(void) {
    const LiveFormat policy[] = {{"conv1", format_name(FORMAT_BF16)},
                                 {"conv2", format_name(FORMAT_FP16)}};
    WorkerId worker;
    Store *store = make_owned_history(&worker);
    Ui *ui = open_screen(store, 2);
    RunRecord *run = &live_of(ui)->data.record;
    draw_screen(ui, 120, 36, false);
    live_set_formats(ui, policy, 2);
    answer(store, &worker, "set", "layer.conv1=bf16", COMMAND_DONE);
    CHECK_INT(live_of(ui)->change_count, 1);
    screen_live.request(ui, REQUEST_UNDO);
    answer(store, &worker, "set", "layer.*=auto", COMMAND_DONE);
    CHECK_INT(live_of(ui)->change_count, 0);
    snprintf(run->scale_rule, sizeof run->scale_rule, "none");
    live_set_formats(ui, policy, 2);
    answer(store, &worker, "set", "loss_scale=dynamic", COMMAND_DONE);
    close_screen(ui);
    store_close(store);
}

// The arguments of all orders that wait, in their order; they are answered.
static const char *orders_sent(Ui *ui, Store *store, const WorkerId *worker) {
    static char sent[400];
    RunCommand commands[8];
    int count = 0;
    size_t used = 0;
    sent[0] = 0;
    CHECK_DONE(store_claim_commands(store, 2, worker->token, commands, 8, &count, &error));
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(sent + used, sizeof sent - used, "%s%.100s", i > 0 ? " " : "",
                                 commands[i].argument);
        commands[i].state = COMMAND_DONE;
        CHECK_DONE(store_answer_command(store, &commands[i], &error));
    }
    live_poll_orders(ui, live_of(ui));
    return sent;
}

// What formats brought goes with them, unless another was chosen since.
static void the_scale_that_formats_brought_is_taken_back_with_them(void) {
    const LiveFormat policy[] = {{"conv2", format_name(FORMAT_FP16)}};
    WorkerId worker;
    Store *store = make_owned_history(&worker);
    Ui *ui = open_screen(store, 2);
    RunRecord *run = &live_of(ui)->data.record;
    draw_screen(ui, 120, 36, false);
    for (int i = 0; i <= LIVE_MOST_CHANGES; i++) { // the oldest are forgotten
        snprintf(run->scale_rule, sizeof run->scale_rule, "none");
        live_set_formats(ui, policy, 1);
        CHECK_TEXT(orders_sent(ui, store, &worker), "loss_scale=dynamic layer.conv2=fp16");
    }
    snprintf(run->scale_rule, sizeof run->scale_rule, "dynamic");
    screen_live.request(ui, REQUEST_UNDO);
    CHECK_TEXT(orders_sent(ui, store, &worker), "layer.*=auto loss_scale=none");
    snprintf(run->scale_rule, sizeof run->scale_rule, "torch");
    screen_live.request(ui, REQUEST_UNDO);
    CHECK_TEXT(orders_sent(ui, store, &worker), "layer.*=auto");
    close_screen(ui);
    store_close(store);
}

// The format that space asks for next, for the first layer, `presses` times.
static const char *format_after(Ui *ui, int presses) {
    while (presses-- > 0)
        screen_live.request(ui, REQUEST_FORMAT);
    return live_pending(live_of(ui), 0);
}

// A run on a device that trains in these.
static Store *make_history_of_formats(WorkerId *worker, const char *formats) {
    RunRecord record;
    Store *store = make_owned_history(worker);
    RecordFact fact = {.name = RECORD_FACT_FORMATS};
    snprintf(fact.value, sizeof fact.value, "%s", formats);
    CHECK_DONE(store_read_run(store, 2, &record, &error) &&
               record_set_facts(&record, &fact, 1, &error) &&
               store_update_run(store, &record, &error));
    record_clear(&record);
    return store;
}

static void space_offers_the_formats_of_the_runs_device(void) {
    WorkerId worker;
    Store *store = make_history_of_formats(&worker, "fp32 tf32 fp16");
    Ui *ui = open_screen(store, 2);
    draw_screen(ui, 120, 36, false);
    CHECK_TEXT(format_after(ui, 1), "fp32"); // behind fp16, the last
    CHECK_TEXT(format_after(ui, 1), format_name(FORMAT_TF32));
    CHECK_TEXT(format_after(ui, 1), format_name(FORMAT_FP16));
    screen_live.request(ui, REQUEST_FORMAT_SCALED);
    CHECK_CONTAINS(said, "trains in no format of that kind");
    CHECK_TEXT(live_pending(live_of(ui), 0), format_name(FORMAT_FP16));
    close_screen(ui);
    store_close(store);
}

// Each of the two keys stays among its own: whoever wants fp32 trains in nothing else on the way.
static void formats_that_share_scales_have_a_key_of_their_own(void) {
    WorkerId worker;
    Store *store = make_history_of_formats(&worker, "fp32 fp16 fp8 mxfp8 nvfp4");
    Ui *ui = open_screen(store, 2);
    static const char *const scaled[] = {"fp8", "mxfp8", "nvfp4", "fp8"};
    draw_screen(ui, 120, 36, false);
    for (int i = 0; i < 4; i++) {
        screen_live.request(ui, REQUEST_FORMAT_SCALED);
        CHECK_TEXT(live_pending(live_of(ui), 0), scaled[i]);
    }
    CHECK_TEXT(format_after(ui, 1), "fp32");
    CHECK_TEXT(format_after(ui, 1), "fp16");
    CHECK_TEXT(format_after(ui, 1), "fp32");
    close_screen(ui);
    store_close(store);
}

static void type(Ui *ui, const char *text) {
    for (; *text; text++)
        prompt_key(ui, *text);
}

static void a_run_is_paused_stopped_scaled_and_kept_by_keys(void) {
    WorkerId worker;
    Store *store = make_owned_history(&worker);
    Ui *ui = open_screen(store, 2);
    look_on(ui, 0);
    screen_live.request(ui, REQUEST_REPLAY);
    CHECK_CONTAINS(look_on(ui, 1), "r pauses");
    screen_live.request(ui, REQUEST_PAUSE); // the replay; nothing is asked of the training
    CHECK_CONTAINS(look_on(ui, 1), "paused, r goes on");
    CHECK_INT(live_of(ui)->order_count, 0);
    screen_live.request(ui, REQUEST_LAST);
    screen_live.request(ui, REQUEST_PAUSE);
    answer(store, &worker, "pause", "", COMMAND_DONE);
    screen_live.request(ui, REQUEST_CHECKPOINT);
    answer(store, &worker, "checkpoint", "", COMMAND_DONE);
    screen_live.request(ui, REQUEST_STOP); // asked first
    CHECK(ui->prompt.open && ui->prompt.is_question);
    prompt_key(ui, 'n');
    CHECK_INT(live_of(ui)->order_count, 2);
    screen_live.request(ui, REQUEST_STOP);
    prompt_key(ui, 'y');
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "pending: stop  as the run ends ");
    answer(store, &worker, "stop", "", COMMAND_DONE);
    screen_live.request(ui, REQUEST_SCALE);
    CHECK_TEXT(ui->prompt.label, "loss scale (now 2^16):");
    type(ui, "1024");
    prompt_key(ui, KEY_CODE_ENTER);
    answer(store, &worker, "set", "loss_scale=1024", COMMAND_DONE);
    screen_live.request(ui, REQUEST_SCALE);
    type(ui, "tourch");
    prompt_key(ui, KEY_CODE_ENTER);
    CHECK(ui->prompt.open); // and can be mended
    CHECK_CONTAINS(ui->prompt.note, "did you mean torch?");
    CHECK_INT(live_of(ui)->order_count, 2);
    prompt_key(ui, KEY_CODE_CONTROL('U'));
    type(ui, "torch");
    prompt_key(ui, KEY_CODE_ENTER);
    answer(store, &worker, "set", "loss_scale=torch", COMMAND_DONE);
    screen_live.request(ui, REQUEST_SCALE);
    type(ui, "2^24");
    prompt_key(ui, KEY_CODE_ENTER);
    answer(store, &worker, "set", "loss_scale=2^24", COMMAND_DONE);
    said[0] = 0;
    screen_live.request(ui, REQUEST_SCALE);
    prompt_key(ui, KEY_CODE_ENTER);
    CHECK(!ui->prompt.open);
    CHECK_TEXT(said, "");
    close_screen(ui);
    store_close(store);
}

static void a_run_that_is_over_says_what_to_do_instead(void) {
    Store *store = make_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 2);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "finished");
    static const Request requests[] = {REQUEST_FORMAT, REQUEST_AUTO_ALL, REQUEST_SCALE,
                                       REQUEST_STOP, REQUEST_CHECKPOINT};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        said[0] = 0;
        CHECK(screen_live.request(ui, requests[i]));
        CHECK_CONTAINS(said, "mpbench fork 2 --at STEP");
        CHECK(!ui->prompt.open);
    }
    CHECK(screen_live.request(ui, REQUEST_COMPARE));
    CHECK_INT(compared_count, 2);
    CHECK(compared[0] == 1 && compared[1] == 2);
    CHECK(screen_live.request(ui, REQUEST_SCRIPT));
    CHECK(ui->pager.open);
    CHECK_CONTAINS(ui->pager.text, "name = 'fashion-cnn'");
    close_screen(ui);
    store_close(store);
}

// ---- endurance ----------------------------------------------------------------------------------

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void random_keys_clicks_and_sizes_break_nothing(void) {
    WorkerId worker;
    Store *store = make_owned_history(&worker);
    Ui *ui = open_screen(store, 2);
    uint32_t seed = 7;
    int rounds = test_soaks() ? 100000 : 3000;
    int columns = 120, rows = 36;
    for (int i = 0; i < rounds; i++) {
        uint32_t what = next_random(&seed) % 16;
        if (what == 0) {
            columns = 1 + (int)(next_random(&seed) % 240);
            rows = 1 + (int)(next_random(&seed) % 80);
        } else if (what == 1) {
            ui->run = 1 + next_random(&seed) % 3; // 3: no such run
        } else if (what == 2 && ui->layout.count > 0) {
            ui->focus[SCREEN_LIVE] =
                ui->layout.panels[next_random(&seed) % (unsigned)ui->layout.count].id;
            ui->maximised[SCREEN_LIVE] =
                next_random(&seed) % 4 ? PANEL_NONE : ui->focus[SCREEN_LIVE];
        } else if (what == 3) {
            screen_live.click(ui, (PanelId)(next_random(&seed) % PANELS),
                              (int)(next_random(&seed) % 100), (int)(next_random(&seed) % 40),
                              (MouseAction)(next_random(&seed) % 4));
        } else if (ui->prompt.open) {
            prompt_key(ui, (int)(' ' + next_random(&seed) % 95));
            prompt_key(ui, next_random(&seed) % 2 ? KEY_CODE_ENTER : 'y');
        } else {
            int key = (int)(next_random(&seed) % 128);
            if (!screen_live.key(ui, key))
                screen_live.request(ui, (Request)(next_random(&seed) % REQUESTS));
        }
        if (next_random(&seed) % 4 == 0)
            draw_screen(ui, columns, rows, next_random(&seed) % 2);
        if (next_random(&seed) % 32 == 0) {
            RunCommand commands[8];
            int count = 0;
            CHECK_DONE(store_claim_commands(store, 2, worker.token, commands, 8, &count, &error));
            for (int j = 0; j < count; j++) {
                commands[j].state = COMMAND_DONE;
                CHECK_DONE(store_answer_command(store, &commands[j], &error));
            }
        }
        if (ui->pager.open)
            pager_close(ui);
        const LiveData *data = &live_of(ui)->data;
        CHECK(!data->is_known || data->left <= data->right);
        if (test_why[0])
            break;
    }
    close_screen(ui);
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(a_run_is_replayed_paused_and_left_by_keys);
    RUN_TEST(pause_of_a_run_that_is_over_is_of_its_replay);
    RUN_TEST(a_replay_comes_to_the_end_and_waits_for_nobody_elsewhere);
    RUN_TEST(formats_are_pending_until_the_worker_answers);
    RUN_TEST(orders_of_a_frozen_picture_go_by_the_run_as_it_is);
    RUN_TEST(orders_of_a_run_that_is_over_wait_no_longer);
    RUN_TEST(several_layers_are_one_change);
    RUN_TEST(the_scale_that_formats_brought_is_taken_back_with_them);
    RUN_TEST(space_offers_the_formats_of_the_runs_device);
    RUN_TEST(formats_that_share_scales_have_a_key_of_their_own);
    RUN_TEST(a_run_is_paused_stopped_scaled_and_kept_by_keys);
    RUN_TEST(a_run_that_is_over_says_what_to_do_instead);
    RUN_TEST(random_keys_clicks_and_sizes_break_nothing);
    return test_end();
}
