// The clock of `mpbench eval`: calls of models that wait, in rounds.
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/train/eval.h"

enum { WARMING_CALLS = 3, MOST_CALLS = 50 };

// Of one model's calls of one kind, in all rounds.
static const double patience = 0.6;

static bool call(const Evaluated *format, EvaluationCall what, double *seconds, Error *error) {
    return format->caller->call(format->caller->model, what, seconds, error);
}

static bool is_timed(const Evaluated *format, EvaluationCall what) {
    return what != EVALUATION_ONE || !format->found.one_fails[0];
}

// A model that parts its batch, or takes none but whole ones, is timed without a single sample.
// What the machine lacks is no fault of the model's.
static bool leaves_one_out(Evaluated *format, EvaluationCall what, const Error *error) {
    if (what != EVALUATION_ONE || format->found.batch == 1 || run_stop_requested() ||
        error->code == ERROR_MEMORY || error->code == ERROR_UNAVAILABLE)
        return false;
    utf8_copy(format->found.one_fails, sizeof format->found.one_fails,
              error->text[0] ? error->text : "it fails");
    return true;
}

// The first calls make what later ones find made.
static bool warm_up(Evaluated *const *formats, int count, Error *error) {
    double seconds;
    for (int i = 0; i < count; i++)
        for (int what = 0; what < EVALUATION_CALLS; what++)
            for (int warming = 0; warming < WARMING_CALLS; warming++) {
                Error why = {0};
                if (run_stop_requested())
                    return false;
                if (!is_timed(formats[i], (EvaluationCall)what) ||
                    call(formats[i], (EvaluationCall)what, &seconds, &why) ||
                    leaves_one_out(formats[i], (EvaluationCall)what, &why))
                    continue;
                *error = why;
                return false;
            }
    return true;
}

// A call of one kind again and again, for a share of the patience.
static bool time_calls(Evaluated *format, EvaluationCall what, int round, Error *error) {
    EvaluationTime *time = &format->found.times[what];
    double times[MOST_CALLS];
    const double began = clock_seconds();
    int calls = 0;
    while (calls == 0 || (calls < MOST_CALLS && clock_seconds() - began < patience / ROUNDS_MOST))
        if (run_stop_requested() || !call(format, what, &times[calls++], error))
            return false;
    time->rounds[round] = rounds_median(times, calls);
    time->count += calls;
    return true;
}

static bool go_round(Evaluated *const *formats, int count, int round, Error *error) {
    for (int i = 0; i < count; i++)
        for (int what = 0; what < EVALUATION_CALLS; what++) {
            Evaluated *format = formats[round % 2 ? count - 1 - i : i];
            if (is_timed(format, (EvaluationCall)what) &&
                !time_calls(format, (EvaluationCall)what, round, error))
                return false;
        }
    for (int i = 0; i < count; i++)
        for (int what = 0; what < EVALUATION_CALLS; what++)
            if (is_timed(formats[i], (EvaluationCall)what))
                formats[i]->found.times[what].round_count = round + 1;
    return true;
}

static int64_t calls_of(Evaluated *const *formats, int count) {
    int64_t calls = 0;
    for (int i = 0; i < count; i++)
        for (int what = 0; what < EVALUATION_CALLS; what++)
            calls += formats[i]->found.times[what].count;
    return calls;
}

bool eval_time(Evaluated *const *formats, int count,
               void (*tell)(void *context, const char *what, int64_t done, int64_t of),
               void *context, Error *error) {
    bool done = warm_up(formats, count, error);
    const double began = clock_seconds(), limit = patience * EVALUATION_CALLS * count;
    for (int round = 0; done && round < ROUNDS_MOST; round++) {
        if (round >= ROUNDS_LEAST && clock_seconds() - began > limit)
            break;
        done = go_round(formats, count, round, error);
        tell(context, "times all in turn", calls_of(formats, count), 0);
    }
    return done || run_stop_requested();
}
