// The line above all panels: which run, how far, and what it does.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "store/twin.h"
#include "ui/cells/bars.h"
#include "ui/live/live.h"

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
    double rate = live->late_rate > 0 ? live->late_rate : run->steps_per_s;
    double left = rate > 0 && run->total_steps > run->step
                      ? (double)(run->total_steps - run->step) / rate
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
        if (live->data.is_gone)
            snprintf(state, sizeof state, "#%lld was removed", (long long)live->view.run);
        else
            snprintf(state, sizeof state, "no run");
        area_text_right(area, area.width, 0, style_of(live->data.is_gone ? INK_WARN : INK_DIM),
                        state);
        return;
    }
    live_clean(name, sizeof name, run->name);
    char brief[RECORD_PRECISION_SIZE];
    record_precision_brief(run, brief);
    live_clean(precision, sizeof precision, brief);
    int64_t twin = record_twin(run);
    int used = snprintf(rest, sizeof rest, "%s · %s", word_rule(run->scale_rule).text, run->device);
    if (twin > 0 && used > 0 && (size_t)used < sizeof rest)
        snprintf(rest + used, sizeof rest - (size_t)used, " · beside #%lld", (long long)twin);
    char clean[400];
    live_clean(clean, sizeof clean, rest);
    enum { WIDE = 60, NARROW = 24 };
    Ink ink = describe_state(live, area.width < WIDE, state, sizeof state);
    int end = area.width, state_width = text_width(state);
    if (area.width < NARROW) { // which run, and what it does
        int after = area_print(area, 0, 0, style_bold(live_ink(run->precision)), "#%lld ",
                               (long long)run->id);
        area_text_cut(area, after, 0, area.width - after, style_of(ink), state);
        return;
    }
    if (state_width + NAME_LEAST <= area.width) {
        area_text_right(area, end, 0, style_of(ink), state);
        end -= state_width + 1;
    }
    snprintf(title, sizeof title, "#%lld %s", (long long)run->id, name);
    // The format itself first, then the name, then what else the label says of layers.
    Progress progress = progress_of(live);
    int format_width = text_width(run->precision), title_width = text_width(title);
    int room = end - text_width(progress.steps) - 4;
    int title_most = room - format_width;
    title_most = title_most > NAME_MOST + 8 ? NAME_MOST + 8 : title_most;
    title_most = title_most < NAME_LEAST ? NAME_LEAST : title_most;
    title_width = title_width < title_most ? title_width : title_most;
    int precision_width = text_width(precision), precision_most = room - title_width;
    precision_most = precision_most < format_width ? format_width : precision_most;
    precision_width = precision_width < precision_most ? precision_width : precision_most;
    int least = title_width + 1 + precision_width + 1;
    int spare = end - least - text_width(clean) - 2;
    bool has_rest =
        spare > LEAST_PROGRESS + text_width(progress.steps) + text_width(progress.epoch);
    end = draw_progress(&progress, area, end, has_rest ? spare : end - least);
    int column = area_text_cut(area, 0, 0, title_width, style_bold(INK_BRIGHT), title);
    column = area_text_cut(area, column + 1, 0, precision_width,
                           style_bold(live_ink(run->precision)), precision);
    if (has_rest)
        area_text_cut(area, column + 1, 0, end - column - 1, style_of(INK_DIM), clean);
}
