#include "ui/live/pace.h"

static const double paces[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
                               1,     2,     5,     10,   20,   50,   100, 200, 500,
                               1000,  2000,  5000,  1e4,  2e4,  5e4,  1e5};
enum { PACES = sizeof paces / sizeof *paces };

static void choose_pace(Replay *replay, const ReplayRun *run) {
    const double most_seconds = 60;
    double seconds = (double)(run->last - run->first) / run->rate;
    replay->pace = 0;
    while (replay->pace < PACES - 1 && seconds > most_seconds * paces[replay->pace])
        replay->pace++;
    replay->has_pace = true;
}

void replay_begin(Replay *replay, const ReplayRun *run, int64_t step) {
    if (!replay->has_pace)
        choose_pace(replay, run);
    replay->is_on = true;
    replay->is_paused = false;
    replay->at = (double)step;
}

int64_t replay_advance(Replay *replay, const ReplayRun *run, double seconds) {
    if (replay->is_on && !replay->is_paused && seconds > 0)
        replay->at += seconds * run->rate * paces[replay->pace];
    if (replay->at >= (double)run->last) {
        replay->is_on = false;
        return run->last;
    }
    return replay->at > (double)run->first ? (int64_t)replay->at : run->first;
}

bool replay_change_pace(Replay *replay, int by) {
    int pace = replay->pace + by;
    if (pace < 0 || pace >= PACES)
        return false;
    replay->pace = pace;
    return true;
}

double replay_pace(const Replay *replay) {
    return paces[replay->pace];
}
