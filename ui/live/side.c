// What happened, what the machine does, and the line above all panels.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "ui/cells/bars.h"
#include "ui/cells/glyphs.h"
#include "ui/live/live.h"

// ---- events -------------------------------------------------------------------------------------

static const struct {
    const char *word;
    Ink ink;
} kinds[EVENT_KINDS] = {
    [EVENT_SKIP] = {"skip", INK_BAD},      [EVENT_SCALE] = {"scale", INK_GOOD},
    [EVENT_COMMAND] = {"you", INK_BRIGHT}, [EVENT_DIAGNOSIS] = {"note", INK_WARN},
    [EVENT_MESSAGE] = {"log", INK_TEXT},   [EVENT_CHECKPOINT] = {"saved", INK_GOOD},
    [EVENT_LIFE] = {"run", INK_DIM},
};

// The step stands beside it already. Older runs counted the one that was skipped otherwise.
static const char *without_step(const Event *event) {
    static const char start[] = "step ", end[] = " skipped: ";
    if (event->kind != EVENT_SKIP || strncmp(event->text, start, sizeof start - 1) != 0)
        return event->text;
    const char *rest = event->text + sizeof start - 1;
    rest += strspn(rest, "0123456789");
    return strncmp(rest, end, sizeof end - 1) == 0 ? rest + sizeof end - 1 : event->text;
}

// Of a skip that has no room for its text: the scale before and after, and whose gradient it was.
static void write_brief(const Event *event, char *text, size_t size) {
    const char *layer = event->layer[0] ? event->layer : "a gradient";
    double before = live_skipped_at(event);
    if (before > 0 && event->value > 0 && before != event->value)
        snprintf(text, size, "%s -> %s by %s", word_scale(before).text,
                 word_scale(event->value).text, layer);
    else if (before > 0)
        snprintf(text, size, "at %s by %s", word_scale(before).text, layer);
    else
        snprintf(text, size, "%s not finite", layer);
}

// In `most` rows at most, the last of them cut; returns the row after.
static int draw_text(Area area, int row, int most, const char *text) {
    char clean[2 * EVENT_TEXT_SIZE], line[2 * EVENT_TEXT_SIZE];
    live_clean(clean, sizeof clean, text);
    const char *rest = clean;
    for (int left = most < area.height - row ? most : area.height - row; left > 0; left--, row++) {
        size_t fits = text_fit(rest, area.width, NULL), cut = fits;
        if (left == 1 || !rest[fits]) {
            area_text_cut(area, 0, row, area.width, style_of(INK_TEXT), rest);
            return row + 1;
        }
        while (cut > 0 && rest[cut] != ' ')
            cut--;
        cut = cut > 0 ? cut : fits;
        snprintf(line, sizeof line, "%.*s", (int)cut, rest);
        area_text(area, 0, row, style_of(INK_TEXT), line);
        rest += cut + (rest[cut] == ' ');
    }
    return row;
}

static const char *kind_of(const Event *event, Ink *ink) {
    int kind = event->kind >= 0 && event->kind < EVENT_KINDS ? (int)event->kind : EVENT_LIFE;
    *ink = kinds[kind].ink;
    return kinds[kind].word;
}

// As wide as the longest step that `rows` may show, and a gap.
static int step_columns(const Live *live, int rows) {
    int columns = 9;
    for (int i = 0; i < rows; i++) {
        const Event *event = live_event(live, live->view.event_top + i);
        int wanted = event ? text_width(word_count(event->step).text) + 1 : 0;
        columns = wanted > columns ? wanted : columns;
    }
    return columns;
}

// In as many rows as there are for it; a skip is told briefly rather than cut.
static int draw_event(Area area, int row, int most, const Event *event) {
    char brief[EVENT_LAYER_SIZE + 96], clean[2 * EVENT_TEXT_SIZE];
    const char *text = without_step(event);
    int room = most < area.height - row ? most : area.height - row;
    live_clean(clean, sizeof clean, text);
    if (event->kind == EVENT_SKIP &&
        area_wrap(area_to_measure(area.width), 0, style_of(INK_TEXT), clean) > room) {
        write_brief(event, brief, sizeof brief);
        text = brief;
    }
    return draw_text(area, row, most, text);
}

// The one at the top, the newest where nothing was scrolled, is shown whole.
void live_draw_events(const Live *live, Area area, bool focused) {
    enum { KIND_COLUMNS = 6, ROWS_TO_WRAP = 6, WHOLE = EVENT_TEXT_SIZE };
    const LiveData *data = &live->data;
    char right[64] = "";
    if (live->view.event_top > 0)
        snprintf(right, sizeof right, "%d newer above", live->view.event_top);
    else if (focused && data->event_count > 0)
        snprintf(right, sizeof right, "enter: all of it");
    Area inside = area_box(area, panel_name(PANEL_EVENTS), right, focused);
    if (data->event_count == 0)
        area_text_cut(inside, 1, 1, inside.width - 2, style_of(INK_DIM), "nothing happened yet");
    int kinds_at = step_columns(live, inside.height), texts_at = kinds_at + KIND_COLUMNS;
    Area texts = area_part(inside, texts_at, 0, inside.width - texts_at, inside.height);
    int others = inside.height >= ROWS_TO_WRAP ? 2 : 1;
    for (int row = 0, i = live->view.event_top; row < inside.height; i++) {
        const Event *event = live_event(live, i);
        if (!event)
            break;
        Ink ink;
        const char *kind = kind_of(event, &ink);
        bool is_top = i == live->view.event_top;
        int first = row;
        area_text_right(inside, kinds_at - 1, row, style_of(INK_DIM), word_count(event->step).text);
        area_text_cut(inside, kinds_at, row, KIND_COLUMNS, style_bold(ink), kind);
        row =
            area_is_empty(texts) ? row + 1 : draw_event(texts, row, is_top ? WHOLE : others, event);
        if (focused && is_top)
            area_set_ground(area_part(inside, 0, first, inside.width, row - first),
                            GROUND_SELECTED);
    }
}

void live_show_event(Ui *ui, const Live *live) {
    const Event *event = live_event(live, live->view.event_top);
    Ink ink;
    char title[64];
    if (!event)
        return;
    snprintf(title, sizeof title, "step %s: %s", word_count(event->step).text,
             kind_of(event, &ink));
    pager_show(ui, title, strdup(without_step(event)));
}

// ---- the machine --------------------------------------------------------------------------------

typedef struct Reading {
    const char *label;
    double share; // of the gauge; NaN: empty
    Ink ink;
    int rank; // the highest give way where there is no room for all
    char text[64];
} Reading;

enum { MOST_READINGS = 20 };

typedef struct Readings {
    Reading list[MOST_READINGS];
    int count;
} Readings;

static Reading *add(Readings *readings, const char *label, double share, Ink ink,
                    const char *text) {
    Reading *reading = &readings->list[readings->count++];
    *reading = (Reading){.label = label, .share = share, .ink = ink};
    snprintf(reading->text, sizeof reading->text, "%s", text);
    return reading;
}

static double ratio(double a, double b) {
    return a > 0 && b > 0 ? a / b : NAN;
}

static double known(int64_t bytes) {
    return bytes == RECORD_UNKNOWN ? NAN : (double)bytes;
}

static void add_ratio(Reading *reading, double of_full) {
    size_t used = strlen(reading->text);
    if (isfinite(of_full))
        snprintf(reading->text + used, sizeof reading->text - used, "  %.2f×", of_full);
}

static void add_speed(Readings *readings, const LiveData *data) {
    const RunRecord *run = &data->record;
    double best = fmax(run->samples_per_s, data->full.is_there ? data->full.samples_per_s : NAN);
    bool has_samples = run->samples_per_s > 0;
    double speedup = !data->full.is_there ? NAN
                     : has_samples        ? ratio(run->samples_per_s, data->full.samples_per_s)
                                          : ratio(run->steps_per_s, data->full.steps_per_s);
    char text[64];
    add(readings, "samples/s", ratio(run->samples_per_s, best), INK_GOOD,
        word_rate(run->samples_per_s).text);
    add(readings, "steps/s", NAN, INK_GOOD, word_rate(run->steps_per_s).text)->rank = has_samples;
    if (isfinite(speedup))
        snprintf(text, sizeof text, "%.2f× of #%lld", speedup, (long long)data->full.id);
    else
        snprintf(text, sizeof text, "–%s",
                 data->is_full         ? " it is in fp32"
                 : data->full.is_there ? ""
                                       : " no fp32 run yet");
    const double most = 4; // times as fast: a full gauge
    add(readings, "vs fp32", speedup / most, live_ink(run->precision), text);
}

static void add_memory(Readings *readings, const LiveData *data) {
    const RecordMemory *memory = &data->record.memory;
    const struct {
        const char *label;
        int64_t bytes;
        double of_full;
        int rank;
    } rows[] = {
        {"peak memory", memory->peak, ratio(known(memory->peak), known(data->full.memory_peak)), 0},
        {"activations", memory->activations,
         ratio(known(memory->activations), known(data->full.activations)), 0},
        {"weights", memory->weights, NAN, 2},
        {"masters", memory->masters, NAN, 4},
        {"gradients", memory->gradients, NAN, 3},
        {"optimizer", memory->optimizer, NAN, 2},
        {"workspace", memory->workspace, NAN, 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (i > 0 && (rows[i].bytes == 0 || rows[i].bytes == RECORD_UNKNOWN))
            continue; // there is none of it, or nobody counted
        double share = ratio(known(rows[i].bytes), known(memory->peak));
        Reading *reading =
            add(readings, rows[i].label, share, INK_FP32, word_bytes(rows[i].bytes).text);
        reading->rank = rows[i].rank;
        if (data->full.is_there)
            add_ratio(reading, rows[i].of_full);
    }
}

static Reading *add_share_of_step(Readings *readings, const char *label, double share) {
    char text[64] = "–";
    if (isfinite(share))
        snprintf(text, sizeof text, "%s of a step", word_share(share).text);
    return add(readings, label, share, INK_WARN, text);
}

static void gather_readings(Readings *readings, const LiveData *data) {
    const RunRecord *run = &data->record;
    add_speed(readings, data);
    add_memory(readings, data);
    char text[64] = "–";
    double watts = ratio(run->energy_j, run->wall_s);
    if (isfinite(watts))
        snprintf(text, sizeof text, "%.1f W  %s J", watts, word_number(run->energy_j).text);
    add(readings, "power", NAN, INK_GOOD, text);
    add_share_of_step(readings, "casting", run->cast_share);
    double watching = live_fact(run, "telemetry.share");
    add_share_of_step(readings, "watching", watching)->rank = isnan(watching) ? 6 : 0;
}

static void make_fit(Readings *readings, int rows) {
    while (readings->count > rows && readings->count > 0) {
        int least = 0;
        for (int i = 0; i < readings->count; i++)
            if (readings->list[i].rank >= readings->list[least].rank)
                least = i;
        readings->count--;
        memmove(readings->list + least, readings->list + least + 1,
                (size_t)(readings->count - least) * sizeof *readings->list);
    }
}

void live_draw_machine(const Live *live, Area area, bool focused) {
    enum { LABEL = 12, GAUGE_LEAST = 6, GAUGE_MOST = 30, TEXT = 18 };
    char device[160], right[160];
    const RunRecord *run = &live->data.record;
    live_clean(device, sizeof device, run->device_name[0] ? run->device_name : run->device);
    bool follows = live->view.cursor == LIVE_FOLLOWS;
    snprintf(right, sizeof right, "%s",
             follows             ? device
             : live_is_over(run) ? "of the whole run"
                                 : "of all until now");
    Area inside = area_box(area, panel_name(PANEL_MACHINE), right, focused);
    if (!live->data.is_known) {
        area_text_cut(inside, 1, 1, inside.width - 2, style_of(INK_DIM), "no run is open");
        return;
    }
    Readings readings = {.count = 0};
    gather_readings(&readings, &live->data);
    make_fit(&readings, inside.height);
    int gauge = inside.width - LABEL - TEXT - 3;
    gauge = gauge > GAUGE_MOST ? GAUGE_MOST : gauge < GAUGE_LEAST ? 0 : gauge;
    for (int row = 0; row < inside.height && row < readings.count; row++) {
        const Reading *reading = &readings.list[row];
        area_text_cut(inside, 1, row, LABEL - 1, style_of(INK_DIM), reading->label);
        if (gauge > 0)
            gauge_draw(inside, LABEL + 1, row, gauge, reading->share, reading->ink);
        int column = LABEL + 1 + (gauge > 0 ? gauge + 2 : 0);
        area_text_cut(inside, column, row, inside.width - column, style_of(INK_BRIGHT),
                      reading->text);
    }
}

// ---- the header ---------------------------------------------------------------------------------

// Where a replay or a hand put the cursor, and how to get back; `brief` where there is little room.
static void describe_past(const Live *live, bool brief, char *text, size_t size) {
    const Replay *replay = &live->replay;
    bool is_over = live_is_over(&live->data.record);
    const char *paused = live->data.record.status == RUN_PAUSED ? "paused · " : "";
    if (replay->is_on)
        snprintf(text, size, "replay %g×%s%s", replay_pace(replay),
                 replay->is_paused ? " paused" : "",
                 brief               ? ""
                 : replay->is_paused ? ", r goes on"
                                     : ", r pauses");
    else if (brief)
        snprintf(text, size, "%sG to %s", paused, is_over ? "the end" : "follow");
    else
        snprintf(text, size, "%sscrubbed, G %s", paused,
                 is_over ? "shows the end" : "follows again");
}

// What stands at the far right: the time left, or what became of the run.
static Ink describe_state(const Live *live, bool brief, char *text, size_t size) {
    const RunRecord *run = &live->data.record;
    bool follows = live->view.cursor == LIVE_FOLLOWS;
    if (live->view.frozen && (follows || live->replay.is_on)) {
        snprintf(text, size, brief ? "frozen" : "frozen, f goes on");
        return INK_WARN;
    }
    if (!follows) {
        describe_past(live, brief, text, size);
        return INK_WARN;
    }
    double left = run->steps_per_s > 0 && run->total_steps > run->step
                      ? (double)(run->total_steps - run->step) / run->steps_per_s
                      : NAN;
    if (run->status == RUN_RUNNING && !run->stale && isfinite(left)) {
        snprintf(text, size, "%s left", word_time(left).text);
        return INK_DIM;
    }
    snprintf(text, size, "%s", live_status(run));
    bool is_bad = run->status == RUN_FAILED || run->status == RUN_DEAD;
    return is_bad ? INK_BAD : run->status == RUN_FINISHED ? INK_GOOD : INK_WARN;
}

typedef struct Progress { // of the run, or at the cursor
    char steps[96], epoch[80];
    double share; // NaN: unknown
} Progress;

static Progress progress_of(const Live *live) {
    const RunRecord *run = &live->data.record;
    bool follows = live->view.cursor == LIVE_FOLLOWS;
    int64_t step = follows ? run->step : live->data.step, epoch = run->epoch;
    int64_t total = run->total_steps > 0 || follows ? run->total_steps : run->step;
    Progress progress = {.share = total > 0 ? (double)step / (double)total : NAN};
    if (total > 0)
        snprintf(progress.steps, sizeof progress.steps, "%s/%s", word_count(step).text,
                 word_count(total).text);
    else
        snprintf(progress.steps, sizeof progress.steps, "step %s", word_count(step).text);
    if (!follows && step > 0) // epochs are of one length
        epoch = 1 + (int64_t)((double)(step - 1) / (double)total * (double)run->epochs);
    if (run->epochs > 1 && epoch > 0)
        snprintf(progress.epoch, sizeof progress.epoch, "epoch %s/%s", word_count(epoch).text,
                 word_count(run->epochs).text);
    return progress;
}

// Before `end`, in `room` columns; the epoch and the bar where they fit. Returns the column before.
static int draw_progress(const Progress *progress, Area area, int end, int room) {
    enum { GAUGE_LEAST = 6, GAUGE_MOST = 16, GAP = 1 };
    int width = text_width(progress->steps), epoch = text_width(progress->epoch) + GAP;
    int least = isfinite(progress->share) ? GAUGE_LEAST + GAP : 0;
    if (room < width)
        return end;
    epoch = progress->epoch[0] && room >= width + epoch + least ? epoch : 0;
    int gauge = room - width - epoch - 2 * GAP;
    gauge = least == 0 || gauge < GAUGE_LEAST ? 0 : gauge > GAUGE_MOST ? GAUGE_MOST : gauge;
    if (gauge > 0) {
        end -= gauge;
        gauge_draw(area, end, 0, gauge, progress->share, INK_GOOD);
        end -= GAP;
    }
    if (epoch > 0)
        area_text_right(area, end, 0, style_of(INK_DIM), progress->epoch);
    area_text_right(area, end - epoch, 0, style_of(INK_BRIGHT), progress->steps);
    return end - epoch - width - 2 * GAP;
}

void live_draw_header(const Live *live, Area area) {
    enum { NAME_MOST = 24, NAME_LEAST = 10, LEAST_PROGRESS = 9 }; // with a bar
    const RunRecord *run = &live->data.record;
    char name[RECORD_NAME_SIZE * 2], precision[64], rest[200], state[96],
        title[RECORD_NAME_SIZE * 2 + 32];
    if (!live->data.is_known) {
        area_text_right(area, area.width, 0, style_of(INK_DIM), "no run");
        return;
    }
    live_clean(name, sizeof name, run->name);
    live_clean(precision, sizeof precision, run->precision);
    snprintf(rest, sizeof rest, "%s · %s", run->scale_rule[0] ? run->scale_rule : "–", run->device);
    char clean[400];
    live_clean(clean, sizeof clean, rest);
    enum { WIDE = 60, NARROW = 24 };
    Ink ink = describe_state(live, area.width < WIDE, state, sizeof state);
    int end = area.width, state_width = text_width(state);
    if (area.width < NARROW) { // which run, and what it does
        int after =
            area_print(area, 0, 0, style_bold(live_ink(precision)), "#%lld ", (long long)run->id);
        area_text_cut(area, after, 0, area.width - after, style_of(ink), state);
        return;
    }
    if (state_width + NAME_LEAST <= area.width) {
        area_text_right(area, end, 0, style_of(ink), state);
        end -= state_width + 1;
    }
    snprintf(title, sizeof title, "#%lld %s", (long long)run->id, name);
    int precision_width = text_width(precision), title_width = text_width(title);
    Progress progress = progress_of(live);
    int title_most = end - precision_width - 2 - text_width(progress.steps) - 2;
    title_most = title_most > NAME_MOST + 8 ? NAME_MOST + 8 : title_most;
    title_most = title_most < NAME_LEAST ? NAME_LEAST : title_most;
    title_width = title_width < title_most ? title_width : title_most;
    int least = title_width + 1 + precision_width + 1;
    int spare = end - least - text_width(clean) - 2;
    bool has_rest =
        spare > LEAST_PROGRESS + text_width(progress.steps) + text_width(progress.epoch);
    end = draw_progress(&progress, area, end, has_rest ? spare : end - least);
    int column = area_text_cut(area, 0, 0, title_width, style_bold(INK_BRIGHT), title);
    column = area_text_cut(area, column + 1, 0, precision_width, style_bold(live_ink(precision)),
                           precision);
    if (has_rest)
        area_text_cut(area, column + 1, 0, end - column - 1, style_of(INK_DIM), clean);
}
