// The live screen: one run, as it trains or as it was.
#include "ui/live/live.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/runs.h"

static Live *state_of(const Ui *ui) {
    return ui->state[SCREEN_LIVE];
}

static bool open_live(Ui *ui, Error *error) {
    Live *live = calloc(1, sizeof *live);
    if (!live)
        return error_fail(error, ERROR_MEMORY, "no memory for the screen of a run");
    live->data.scale = NAN;
    live->view.smoothing = ui->settings.smoothing;
    live->view.log_axis = ui->settings.log_axis != 0;
    ui->state[SCREEN_LIVE] = live;
    return true;
}

void live_forget_run(Live *live) {
    live_data_clear(&live->data);
    live_forget_orders(live);
    live_map_clear(&live->map);
    live_profile_clear(&live->profile);
    live->replay = (Replay){.is_on = false};
    live->axis = (LiveAxis){.is_known = false};
}

static void close_live(Ui *ui) {
    Live *live = state_of(ui);
    live_forget_run(live);
    free(live);
    ui->state[SCREEN_LIVE] = NULL;
}

// Smoothing and axis stay as they were set for the run before.
static void open_run(Live *live, int64_t run) {
    live_forget_run(live);
    live->view = (LiveView){.run = run,
                            .cursor = LIVE_FOLLOWS,
                            .window_end = LIVE_FOLLOWS,
                            .smoothing = live->view.smoothing,
                            .log_axis = live->view.log_axis};
    live->moved = true;
    live->complaint[0] = 0;
}

static void choose_run(Ui *ui) {
    const char *asked = ui->options && ui->options->run ? ui->options->run : NULL;
    Error error;
    int64_t run;
    if (ui->run != 0)
        return;
    if (store_find_run(ui->store, asked ? asked : "@last", &run, &error))
        ui->run = run;
    else if (asked)
        ui_fail(ui, &error);
}

static bool refresh(Ui *ui, double seconds) {
    Live *live = state_of(ui);
    if (live->view.run != ui->run)
        open_run(live, ui->run);
    live_replay_on(ui, live);
    bool answered = live_poll_orders(ui, live);
    bool changed = live_data_look(ui, live, seconds);
    live_hold_axis(live, seconds);
    return changed || answered;
}

static void enter(Ui *ui) {
    choose_run(ui);
    state_of(ui)->moved = true;
    state_of(ui)->recent.count = 0; // the run went on while another screen was looked at
    refresh(ui, 0);
}

// ---- drawing ------------------------------------------------------------------------------------

static void draw_header(Ui *ui, Area area) {
    live_draw_header(state_of(ui), area);
}

static void draw_panel(Ui *ui, PanelId panel, Area area, bool focused) {
    static void (*const panels[PANELS])(const Live *live, Area area, bool focused) = {
        [PANEL_LOSS] = live_draw_loss,       [PANEL_SCALE] = live_draw_scale,
        [PANEL_LAYERS] = live_draw_layers,   [PANEL_HISTOGRAM] = live_draw_histogram,
        [PANEL_HEAT] = live_draw_heat,       [PANEL_EVENTS] = live_draw_events,
        [PANEL_MACHINE] = live_draw_machine, [PANEL_MAP] = live_draw_map,
        [PANEL_WHAT_IF] = live_draw_what_if, [PANEL_PROFILE] = live_draw_profile,
    };
    if (panels[panel] && !area_is_empty(area))
        panels[panel](state_of(ui), area, focused);
}

// ---- input --------------------------------------------------------------------------------------

static bool request(Ui *ui, Request asked) {
    Live *live = state_of(ui);
    if (asked == REQUEST_PICTURES) {
        pictures_show(ui, live->view.run,
                      live->view.cursor == LIVE_FOLLOWS ? INT64_MAX : live->data.step);
        return true;
    }
    if (asked == REQUEST_FIRST_NAN) {
        live_show_flight(ui, live);
        return true;
    }
    return live_page_request(ui, live, asked) || live_move(ui, live, asked) ||
           live_replay(ui, live, asked) || live_order(ui, live, asked);
}

// The second keys of scrubbing go further than the first.
static bool take_key(Ui *ui, int key) {
    if (key == KEY_CODE_NONE)
        return false;
    bool back = key == ui->keymap.bindings[REQUEST_SCRUB_BACK].second;
    bool forward = key == ui->keymap.bindings[REQUEST_SCRUB_FORWARD].second;
    if (back || forward)
        live_scrub_tenth(ui, state_of(ui), back ? -1 : 1);
    return back || forward;
}

static bool is_set_by_hand(const RunRecord *run, int layer) {
    const char *set = layer < run->layer_count ? run->layers[layer].set : "";
    return set[0] && strcmp(set, "auto") != 0;
}

static bool has_event(const LiveData *data, EventKind kind) {
    for (int i = 0; i < data->event_count; i++)
        if (data->events[i].kind == kind)
            return true;
    return false;
}

// What both keys do to a replay that is on, whatever the run behind it does.
static const char *replay_label(const Replay *replay) {
    return replay->is_paused ? "go on" : "pause";
}

// Of a run that is over nothing but its replay goes on.
static const char *label(const Ui *ui, Request asked, const char *usual) {
    const Live *live = state_of(ui);
    const LiveData *data = &live->data;
    const Replay *replay = &live->replay;
    int layer = live->view.layer;
    const RunRecord *now = live_run_now(live);
    bool goes_on = data->is_known && !live_is_over(now);
    bool has_layers = data->record.layer_count > 0, can = true;
    PanelId focus = ui->focus[SCREEN_LIVE];
    bool is_back = live->view.cursor != LIVE_FOLLOWS;
    if (live_page_label(ui, live, asked, &usual))
        return usual;
    switch (asked) {
    case REQUEST_FORMAT:
    case REQUEST_FORMAT_SCALED:
    case REQUEST_FORMAT_ALL: can = goes_on && has_layers; break;
    case REQUEST_AUTO: can = goes_on && is_set_by_hand(now, layer); break;
    case REQUEST_UNDO: can = goes_on && live->change_count > 0; break;
    case REQUEST_SCALE:
    case REQUEST_STOP: can = goes_on; break;
    case REQUEST_PAUSE:
        can = goes_on;
        usual = replay->is_on ? replay_label(replay) : now->status == RUN_PAUSED ? "go on" : usual;
        break;
    case REQUEST_REPLAY:
        can = data->is_known && data->first < data->last;
        usual = replay->is_on ? replay_label(replay) : usual;
        break;
    case REQUEST_REPLAY_SLOWER:
    case REQUEST_REPLAY_FASTER: can = replay->is_on; break;
    case REQUEST_SCRUB_BACK:
        can = data->is_known && data->first < data->last;
        usual = is_back ? "earlier" : usual;
        break;
    case REQUEST_SCRUB_FORWARD: can = data->is_known && is_back; break;
    case REQUEST_HYPOTHESIS_DOWN:
        can = layer < data->layer_count && data->layers[layer].count > 0;
        break;
    case REQUEST_SERIES:
        can = focus == PANEL_LOSS ? data->line.count > 0 : focus == PANEL_HISTOGRAM && has_layers;
        usual = focus == PANEL_LOSS ? usual : live->view.heat ? "histogram" : "over time";
        break;
    case REQUEST_CROSS_HAIR: can = data->line.count > 0; break;
    case REQUEST_COMPARE: can = data->ghost.is_there; break;
    case REQUEST_SETTINGS: can = false; break; // home offers them
    case REQUEST_PICTURES: can = has_event(data, EVENT_PICTURE); break;
    case REQUEST_FIRST_NAN: can = has_event(data, EVENT_FAULT); break;
    case REQUEST_SCRIPT: can = data->record.script_hash[0] != 0; break;
    default: break;
    }
    return can ? usual : NULL;
}

static const char *explain(PanelId panel) {
    static const char *const texts[PANELS] = {
        [PANEL_LOSS] =
            "The loss at every step: the line is smoothed (w), the dim dots behind it are what was "
            "logged, a red cross is a value that was not finite. The second line is the run this "
            "one was forked from, or else the last one with the same parameters, in another "
            "precision if there is such a run: as long as they lie on each other, the cheaper "
            "format costs nothing.",
        [PANEL_SCALE] =
            "What the loss is multiplied with so that small gradients survive in a narrow format; "
            "it is halved when a gradient overflows, and grows again after many clean steps. A red "
            "cross is a step that was skipped, above at the scale that overflowed, below with the "
            "layer to blame: a few are how the rule finds its limit, many in a row mean trouble.",
        [PANEL_LAYERS] =
            "One line a layer: the format it computes in, where the exponents of its gradients "
            "lie, which share of them was zero already, which its format rounds to zero at this "
            "loss scale (flushed) or keeps with fewer digits (subnormal), which is inf or nan "
            "(over), how far a step moves its weights, and its share of the time. In a format that "
            "has scales of its own, flushed, subnormal and over, what saturates, are of what the "
            "layer multiplies (activations, weights or gradients, which lose most), counted now "
            "and then at those scales. Space gives the layer the next format while the run goes "
            "on, b the next of those that share scales (fp8, mxfp8, nvfp4), a gives it back to the "
            "policy, u takes that back; red is what is wrong: over 5 % flushed, nothing left but "
            "zeros, inf or nan.",
        [PANEL_HISTOGRAM] =
            "How many gradients of the selected layer lie at each power of two, in true values "
            "(unscaled); the line below is the range of its format at this loss scale: dots are "
            "flushed to zero, thin is subnormal, thick is normal, crosses overflow. < and > move "
            "a supposed scale and say what it would lose, beside those that suit the layer; v "
            "shows the exponents over time.",
        [PANEL_HEAT] =
            "The exponents of the selected layer's gradients from left to right over the steps of "
            "the window; the denser a cell, the more gradients lie there. Red cells are lost at "
            "the present scale; a cloud that sinks towards them will need more scale, or bf16.",
        [PANEL_EVENTS] =
            "What happened, the newest first, causes above what they led to: skipped steps and "
            "why, changes of the scale, what you changed, checkpoints, and what the run noticed "
            "about itself. What repeats is one line with a count. Up and down scroll, enter goes "
            "to the step of the line at the top, and there shows all of it; with the step cursor "
            "in the past the list ends there.",
        [PANEL_MACHINE] =
            "How fast it trains, against the fp32 run of the same experiment and parameters (a "
            "dash: no fp32 run of the same went through or goes on on this device; about as fast: "
            "within the noise of steps), what holds the memory, what this run and other programs "
            "do to the processors, how hot they are, the power drawn, and how much of a step goes "
            "into casting and into recording all this (watching). Another dash is a reading that "
            "this machine or run does not give.",
        [PANEL_MAP] =
            "A row a layer, a column some steps: the denser a cell, the larger the share of the "
            "layer's gradients that its format lost there (flushed to zero, overflowed, or not "
            "finite at all: over), the limits are below; of several steps or layers it shows the "
            "worst. "
            "Left and right move the step cursor, up and down the layer, and enter goes there. "
            "Space folds the block around a layer, enter opens one, v shows fewer parts of all "
            "names; / finds a layer, o sorts by what is lost or as the model has them.",
        [PANEL_WHAT_IF] =
            "What every format would do to the selected layer's gradients of this step, from the "
            "histogram of their exponents: the share that it would lose (flushed to zero, or "
            "overflowed), keep with fewer digits (subnormal), and the loss scales that suit it. "
            "Plain formats are at the loss scale, which < and > move; fp8 and its kind bring a "
            "scale along; of blocks it is what chance would make of them, between the bounds "
            "(by order). Up and down take another layer, left and right another step, and space "
            "gives the layer the next format.",
        [PANEL_PROFILE] =
            "Where the time of a step goes, in the mean of steps that were all timed (mpbench "
            "profile): by layer, operation and way, the longest first, and what each reaches of "
            "what the device can do; v sums up by layer or by operation. Casts are what formats "
            "cost beside what they gain. A run that was not profiled shows the newest profile of "
            "one that was trained as it was, or else the times of its layers; enter measures one: "
            "it trains for some seconds, beside what goes on.",
    };
    return texts[panel];
}

const Screen screen_live = {
    .name = "live",
    .on = ON_LIVE,
    .open = open_live,
    .close = close_live,
    .enter = enter,
    .refresh = refresh,
    .draw_header = draw_header,
    .draw_panel = draw_panel,
    .request = request,
    .key = take_key,
    .click = live_click,
    .explain = explain,
    .label = label,
};
