// The run that is looked at, played again: the step cursor goes on by itself.
#include <stdio.h>

#include "ui/live/live.h"

static ReplayRun run_of(const LiveData *data) {
    const RunRecord *record = &data->record;
    const double usual = 10; // of a run that took no time that was noted
    double rate = record->steps_per_s > 0 ? record->steps_per_s
                  : record->wall_s > 0    ? (double)record->step / record->wall_s
                                          : usual;
    return (ReplayRun){data->first, data->last, rate > 0 ? rate : usual};
}

// The wall clock, which tests hold still; not the time that was spent elsewhere, or asleep.
static double seconds_passed(Live *live) {
    const double most = 0.5;
    int64_t now = ui_now_ms();
    double seconds = (double)(now - live->replayed_ms) / 1000;
    live->replayed_ms = now;
    return seconds < 0 ? 0 : seconds > most ? most : seconds;
}

void live_replay_on(Ui *ui, Live *live) {
    Replay *replay = &live->replay;
    double seconds = seconds_passed(live);
    if (!replay->is_on || replay->is_paused || live->view.frozen)
        return;
    ReplayRun run = run_of(&live->data);
    int64_t step = replay_advance(replay, &run, seconds);
    if (replay->is_on) {
        if (step != live->view.cursor) // at a slow pace it stands most of the time
            live_put_cursor(ui, live, step);
        return;
    }
    live_put_cursor(ui, live, LIVE_FOLLOWS);
    ui_say(ui, INK_TEXT, "the replay is over: r plays it again, 1 goes to the other runs");
}

// From the cursor; where that follows the run, from its first step.
static void begin(Ui *ui, Live *live) {
    const LiveData *data = &live->data;
    if (!data->is_known || data->first >= data->last) {
        ui_say(ui, INK_WARN, "there is nothing to replay here yet");
        return;
    }
    ReplayRun run = run_of(data);
    int64_t step = live->view.cursor == LIVE_FOLLOWS ? data->first : live->view.cursor;
    live->view.frozen = false;
    live->axis.is_known = false;
    seconds_passed(live);
    live_put_cursor(ui, live, step);
    replay_begin(&live->replay, &run, step);
}

static void change_pace(Ui *ui, Live *live, int by) {
    if (!live->replay.is_on)
        ui_say(ui, INK_DIM, "nothing is replayed: r does");
    else if (!replay_change_pace(&live->replay, by))
        ui_say(ui, INK_DIM, "there is no %s pace", by > 0 ? "faster" : "slower");
    ui->dirty = true;
}

// What is replayed is paused, and not the training behind it; of a run that is over there is
// nothing else to pause.
static bool pause_replay(Ui *ui, Live *live) {
    const RunRecord *run = &live->data.record;
    if (live->replay.is_on)
        live->replay.is_paused = !live->replay.is_paused;
    else if (live->data.is_known && live_is_over(run))
        ui_say(ui, INK_WARN, "#%lld is over (%s): r replays it, then p pauses", (long long)run->id,
               run_status_name(run->status));
    else
        return false;
    ui->dirty = true;
    return true;
}

bool live_replay(Ui *ui, Live *live, Request request) {
    switch (request) {
    case REQUEST_REPLAY:
        if (live->replay.is_on)
            live->replay.is_paused = !live->replay.is_paused;
        else
            begin(ui, live);
        ui->dirty = true;
        return true;
    case REQUEST_PAUSE: return pause_replay(ui, live);
    case REQUEST_REPLAY_SLOWER: change_pace(ui, live, -1); return true;
    case REQUEST_REPLAY_FASTER: change_pace(ui, live, 1); return true;
    default: return false;
    }
}
