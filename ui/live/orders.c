// What the screen asks of a run's worker: orders, their answers, and taking formats back.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/commands.h"
#include "store/runs.h"
#include "ui/live/live.h"

enum { SCALE_TEXT_SIZE = 64 };

static const char scale_brought[] = "dynamic"; // by formats that need a loss scale, where none is

static Live *state_of(Ui *ui) {
    return ui->state[SCREEN_LIVE];
}

void live_forget_orders(Live *live) {
    for (int i = 0; i < live->change_count; i++)
        free(live->changes[i].before);
    live->change_count = live->order_count = 0;
}

const char *live_pending(const Live *live, int layer) {
    for (int i = live->order_count - 1; i >= 0; i--)
        if (live->orders[i].layer == layer)
            return live->orders[i].target;
    return "";
}

// ---- sending ------------------------------------------------------------------------------------

static bool takes_orders(Ui *ui, const Live *live) {
    if (live->data.is_known)
        return launch_takes_orders(ui, live_run_now(live));
    ui_say(ui, INK_WARN, "%s", live_say_no_run(live));
    return false;
}

static bool send(Ui *ui, Live *live, const char *verb, const char *argument,
                 const LiveOrder *order) {
    Error error;
    int64_t id;
    if (live->order_count == LIVE_MOST_ORDERS) {
        ui_say(ui, INK_WARN, "%d orders wait for an answer already", LIVE_MOST_ORDERS);
        return false;
    }
    if (!store_send_command(ui->store, live->view.run, verb, argument, &id, &error)) {
        ui_fail(ui, &error);
        return false;
    }
    LiveOrder *kept = &live->orders[live->order_count++];
    *kept = *order;
    kept->id = id;
    kept->when = command_verb_when(verb);
    ui->dirty = true;
    return true;
}

static void send_plain(Ui *ui, Live *live, const char *verb, const char *argument,
                       const char *what) {
    LiveOrder order = {.layer = -1};
    live_clean(order.what, sizeof order.what, what);
    send(ui, live, verb, argument, &order);
}

static bool send_format(Ui *ui, Live *live, int layer, const char *format) {
    const RecordLayer *recorded = layer >= 0 ? &live_run_now(live)->layers[layer] : NULL;
    char argument[COMMAND_ARGUMENT_SIZE], what[160];
    LiveOrder order = {.layer = layer};
    snprintf(argument, sizeof argument, "layer.%s=%s", recorded ? recorded->name : "*", format);
    if (recorded)
        snprintf(what, sizeof what, "%s %s → %s", recorded->name, recorded->precision, format);
    else
        snprintf(what, sizeof what, "all layers → %s", format);
    live_clean(order.what, sizeof order.what, what);
    snprintf(order.target, sizeof order.target, "%s", format);
    return send(ui, live, "set", argument, &order);
}

// ---- formats ------------------------------------------------------------------------------------

// Those that the run's device trains in.
static int pick_formats(const RunRecord *run, Format formats[FORMAT_COUNT]) {
    const char *names = record_fact(run, RECORD_FACT_FORMATS);
    if (!names)
        return format_pick(formats, format_trains);
    int count = 0;
    for (char name[16]; sscanf(names, "%15s", name) == 1; names += strlen(name)) {
        names += strspn(names, " ");
        Format format = format_named(name);
        if (format != FORMAT_COUNT && count < FORMAT_COUNT)
            formats[count++] = format;
    }
    return count > 0 ? count : format_pick(formats, format_trains);
}

// Of those that scale what they round, or of the others: a key that went through all would train in
// ten formats on its way to the one that is meant. "": there is none. What is asked for already
// counts as what there is, so that keys can be pressed ahead of the run.
static const char *next_format(const Live *live, int layer, bool scaled) {
    Format formats[FORMAT_COUNT];
    const int all = pick_formats(live_run_now(live), formats);
    int count = 0;
    for (int i = 0; i < all; i++)
        if (format_is_scaled(formats[i]) == scaled)
            formats[count++] = formats[i];
    const char *pending = live_pending(live, layer);
    const char *now = pending[0] && strcmp(pending, "auto") != 0
                          ? pending
                          : live_run_now(live)->layers[layer].precision;
    for (int i = 0; i < count; i++)
        if (strcmp(now, format_name(formats[i])) == 0)
            return format_name(formats[(i + 1) % count]);
    return count > 0 ? format_name(formats[0]) : "";
}

static void copy_set(const Live *live, int layer, char out[16]) {
    const char *set = live_run_now(live)->layers[layer].set;
    snprintf(out, 16, "%.15s", set[0] ? set : "auto");
}

// Keeps what the layers are set to now; the oldest change is forgotten when there are many. NULL:
// there was no memory for it.
static LiveChange *note_change(Live *live, int layer) {
    int first = layer >= 0 ? layer : 0, count = layer >= 0 ? 1 : live_run_now(live)->layer_count;
    char(*before)[16] = malloc((size_t)count * sizeof *before);
    if (!before)
        return NULL;
    for (int i = 0; i < count; i++)
        copy_set(live, first + i, before[i]);
    if (live->change_count == LIVE_MOST_CHANGES) {
        free(live->changes[0].before);
        memmove(live->changes, live->changes + 1, (LIVE_MOST_CHANGES - 1) * sizeof *live->changes);
        live->change_count--;
    }
    LiveChange *change = &live->changes[live->change_count++];
    *change = (LiveChange){.layer = layer, .count = count, .before = before};
    return change;
}

// Layers are set as they are now: false, and says so, where the picture is that of then.
static bool is_now(Ui *ui, const Live *live) {
    bool follows = live->view.cursor == LIVE_FOLLOWS;
    if (!follows)
        ui_say(ui, INK_WARN, "this is the past: G goes to the newest step, where layers are set");
    return follows;
}

static void set_format(Ui *ui, Live *live, int layer, const char *format) {
    char before[16] = "";
    if (live_run_now(live)->layer_count == 0) {
        ui_say(ui, INK_WARN, "this run has no layers to set");
        return;
    }
    if (!format[0]) {
        ui_say(ui, INK_WARN, "this run's device trains in no format of that kind");
        return;
    }
    if (!is_now(ui, live))
        return;
    if (layer >= 0)
        snprintf(before, sizeof before, "%s", live_pending(live, layer));
    if (!send_format(ui, live, layer, format))
        return;
    note_change(live, layer);
    // What was asked for a moment ago is what undo goes back to.
    if (before[0] && live->change_count > 0)
        memcpy(live->changes[live->change_count - 1].before[0], before, sizeof before);
}

static void set_all(Ui *ui, const char *text) {
    (void)text;
    Live *live = state_of(ui);
    set_format(ui, live, -1, live->asked_of_all);
}

// Asked first, and only where the picture is that of now: every layer that trains is changed.
static void ask_all(Ui *ui, Live *live, const char *format) {
    char question[160];
    const RunRecord *run = live_run_now(live);
    if (run->layer_count == 0) {
        set_format(ui, live, -1, format);
        return;
    }
    if (!is_now(ui, live))
        return;
    snprintf(live->asked_of_all, sizeof live->asked_of_all, "%s", format);
    if (strcmp(format, "auto") == 0)
        snprintf(question, sizeof question,
                 "give all %d layers of #%" PRId64 " back to the policy?", run->layer_count,
                 run->id);
    else
        snprintf(question, sizeof question,
                 "train all %d layers of #%" PRId64 " in %s from now on?", run->layer_count,
                 run->id, format);
    prompt_confirm(ui, question, set_all);
}

static bool are_alike(const LiveChange *change) {
    for (int i = 1; i < change->count; i++)
        if (strcmp(change->before[0], change->before[i]) != 0)
            return false;
    return true;
}

static void send_scale(Ui *ui, Live *live, const char *rule) {
    char argument[SCALE_TEXT_SIZE + 16], what[SCALE_TEXT_SIZE + 64];
    snprintf(argument, sizeof argument, "loss_scale=%.*s", SCALE_TEXT_SIZE - 1, rule);
    snprintf(what, sizeof what, "loss scale %s → %s", word_scale(live->data.scale).text,
             word_rule(rule).text);
    send_plain(ui, live, "set", argument, what);
}

// As it was before formats that need a scale brought theirs; one that was chosen since stays. After
// the formats, so that no step trains in them without it.
static void undo_scale(Ui *ui, Live *live, const char *before) {
    const char *now = live_run_now(live)->scale_rule;
    if (before[0] && (strcmp(now, scale_brought) == 0 || strcmp(now, before) == 0))
        send_scale(ui, live, before);
}

static void undo(Ui *ui, Live *live) {
    if (live->change_count == 0) {
        ui_say(ui, INK_DIM, "no format was changed from here");
        return;
    }
    LiveChange *change = &live->changes[live->change_count - 1];
    bool fits = change->layer < live_run_now(live)->layer_count &&
                (change->layer >= 0 || change->count == live_run_now(live)->layer_count);
    bool done = fits;
    if (fits && change->layer >= 0) {
        done = send_format(ui, live, change->layer, change->before[0]);
    } else if (fits) {
        bool alike = are_alike(change);
        done = send_format(ui, live, -1, alike ? change->before[0] : "auto");
        for (int i = 0; i < change->count && done && !alike; i++)
            if (strcmp(change->before[i], "auto") != 0)
                done = send_format(ui, live, i, change->before[i]);
    }
    if (done)
        undo_scale(ui, live, change->scale);
    if (done || !fits) {
        free(change->before);
        live->change_count--;
    }
}

static bool send_named(Ui *ui, Live *live, const LiveFormat *wanted) {
    const RunRecord *run = live_run_now(live);
    char argument[COMMAND_ARGUMENT_SIZE], what[160];
    LiveOrder order = {.layer = -1}; // a block has no row of its own
    for (int i = 0; i < run->layer_count; i++)
        if (strcmp(run->layers[i].name, wanted->layer) == 0)
            return send_format(ui, live, i, wanted->format);
    snprintf(argument, sizeof argument, "layer.%s=%s", wanted->layer, wanted->format);
    snprintf(what, sizeof what, "%.100s → %s", wanted->layer, wanted->format);
    live_clean(order.what, sizeof order.what, what);
    return send(ui, live, "set", argument, &order);
}

void live_set_formats(Ui *ui, const LiveFormat *formats, int count) {
    Live *live = state_of(ui);
    bool has_fp16 = false;
    if (!takes_orders(ui, live))
        return;
    for (int i = 0; i < count; i++)
        has_fp16 = has_fp16 || strcmp(formats[i].format, format_name(FORMAT_FP16)) == 0;
    LiveChange *change = note_change(live, -1);
    const char *rule = live_run_now(live)->scale_rule;
    if (has_fp16 && strcmp(rule, "none") == 0) {
        if (change)
            snprintf(change->scale, sizeof change->scale, "%s", rule);
        send_scale(ui, live, scale_brought);
    }
    for (int i = 0; i < count; i++)
        if (!send_named(ui, live, &formats[i]))
            return;
}

// ---- the rest -----------------------------------------------------------------------------------

static bool check_scale(Ui *ui, const char *text, Error *error) {
    if (strlen(text) >= SCALE_TEXT_SIZE)
        return error_fail(error, ERROR_USAGE, "a loss scale has up to %d characters",
                          SCALE_TEXT_SIZE - 1);
    return !text[0] || ui->host->check_loss_scale(text, error);
}

static void take_scale(Ui *ui, const char *text) {
    Live *live = state_of(ui);
    if (*text) // else thought better of it
        send_scale(ui, live, text);
}

static void ask_scale(Ui *ui, const Live *live) {
    char label[80];
    snprintf(label, sizeof label, "loss scale (now %s):", word_scale(live->data.scale).text);
    prompt_ask(ui, label, "", take_scale);
    ui->prompt.check = check_scale;
    ui->prompt.hint = "a number, such as 32768 or 2^15, or a rule: dynamic, none, torch, apex, ...";
}

static void stop_run(Ui *ui, const char *text) {
    (void)text;
    send_plain(ui, state_of(ui), "stop", "", "stop");
}

static void ask_stop(Ui *ui, const Live *live) {
    char question[160];
    snprintf(question, sizeof question, "stop #%" PRId64 " %s after its step, with a checkpoint?",
             live_run_now(live)->id, live_run_now(live)->name);
    prompt_confirm(ui, question, stop_run);
}

static void pause_run(Ui *ui, Live *live) {
    bool is_paused = live_run_now(live)->status == RUN_PAUSED;
    send_plain(ui, live, is_paused ? "resume" : "pause", "", is_paused ? "go on" : "pause");
}

static void compare(Ui *ui, const Live *live) {
    int64_t runs[] = {live->data.ghost.id, live->view.run};
    if (!live->data.is_known || !live->data.ghost.is_there)
        ui_say(ui, INK_WARN,
               "no run of this experiment and these parameters went through or goes on: choose "
               "others at home (1) with space");
    else
        ui_compare(ui, runs, 2);
}

static void show_script(Ui *ui, const Live *live) {
    const RunRecord *run = &live->data.record;
    Error error;
    size_t length;
    if (!live->data.is_known || !run->script_hash[0]) {
        ui_say(ui, INK_WARN, "the script of this run was not kept");
        return;
    }
    char *text = store_read_script(ui->store, run->script_hash, &length, &error);
    if (!text) {
        ui_fail(ui, &error);
        return;
    }
    char title[64];
    live_clean(title, sizeof title, run->experiment);
    pager_show(ui, title, text);
}

bool live_order(Ui *ui, Live *live, Request request) {
    int layer = live->view.layer;
    bool has_layers = live_run_now(live)->layer_count > 0;
    switch (request) {
    case REQUEST_COMPARE: compare(ui, live); return true;
    case REQUEST_SCRIPT: show_script(ui, live); return true;
    case REQUEST_FORMAT:
    case REQUEST_FORMAT_ALL:
    case REQUEST_FORMAT_SCALED:
    case REQUEST_AUTO:
    case REQUEST_AUTO_ALL:
    case REQUEST_UNDO:
    case REQUEST_SCALE:
    case REQUEST_PAUSE:
    case REQUEST_STOP:
    case REQUEST_CHECKPOINT: break;
    default: return false;
    }
    if (!takes_orders(ui, live))
        return true;
    switch (request) {
    case REQUEST_FORMAT:
    case REQUEST_FORMAT_SCALED:
        set_format(ui, live, layer,
                   has_layers ? next_format(live, layer, request == REQUEST_FORMAT_SCALED) : "");
        break;
    case REQUEST_FORMAT_ALL:
        ask_all(ui, live, has_layers ? next_format(live, layer, false) : "");
        break;
    case REQUEST_AUTO: set_format(ui, live, layer, "auto"); break;
    case REQUEST_AUTO_ALL: ask_all(ui, live, "auto"); break;
    case REQUEST_UNDO: undo(ui, live); break;
    case REQUEST_SCALE: ask_scale(ui, live); break;
    case REQUEST_PAUSE: pause_run(ui, live); break;
    case REQUEST_STOP: ask_stop(ui, live); break;
    default: send_plain(ui, live, "checkpoint", "", "checkpoint"); break;
    }
    return true;
}

// ---- answers ------------------------------------------------------------------------------------

static void tell_answer(Ui *ui, const LiveOrder *order, const RunCommand *command) {
    bool done = command->state == COMMAND_DONE;
    char at[64] = "";
    if (done && command->step >= 0)
        snprintf(at, sizeof at, ", at step %s", word_count(command->step).text);
    if (done)
        ui_say(ui, INK_GOOD, "%s: done%s", order->what, at);
    else
        ui_say(ui, INK_WARN, "%s: refused%s%s", order->what, command->answer[0] ? ": " : "",
               command->answer);
}

// Nobody is left who could answer: their worker died with them.
static void drop_orders(Ui *ui, Live *live) {
    const RunRecord *run = live_run_now(live);
    char more[32] = "";
    if (live->order_count > 1)
        snprintf(more, sizeof more, ", and %d more", live->order_count - 1);
    ui_say(ui, INK_WARN, "%s%s: never answered, #%" PRId64 " is over (%s)", live->orders[0].what,
           more, run->id, run_status_name(run->status));
    live->order_count = 0;
}

bool live_poll_orders(Ui *ui, Live *live) {
    int kept = 0, count = live->order_count;
    for (int i = 0; i < count; i++) {
        LiveOrder *order = &live->orders[i];
        RunCommand command;
        Error error;
        bool is_read = store_read_command(ui->store, order->id, &command, &error);
        bool waits = is_read ? command.state == COMMAND_QUEUED || command.state == COMMAND_CLAIMED
                             : error.code == ERROR_BUSY;
        if (is_read && !waits)
            tell_answer(ui, order, &command);
        if (waits)
            live->orders[kept++] = *order;
    }
    live->order_count = kept;
    if (kept > 0 && live->data.is_known && live_is_over(live_run_now(live)))
        drop_orders(ui, live);
    return live->order_count != count;
}
