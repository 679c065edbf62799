// What `mpbench eval` concludes: what a format is over fp32, and whether that is worth it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "cli/print/text.h"
#include "cli/train/eval.h"

// What one would give for speed: of accuracy, and of the loss as a share of fp32's.
static const double accuracy_given = 0.005, loss_given = 0.01;
// Times that differ by less are alike.
static const double noticeable = 1.05;

// ---- what it was held against -------------------------------------------------------------------

const Evaluated *eval_baseline(const Evaluations *all) {
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->formats[i].precision, format_name(FORMAT_FP32)) == 0)
            return &all->formats[i];
    return NULL;
}

const RecordMetric *eval_leading(const Evaluation *found) {
    for (int i = 0; i < found->metric_count; i++)
        if (record_metric_leads(found->metrics[i].name))
            return &found->metrics[i];
    const RecordMetric *loss = evaluation_metric(found, "loss");
    return loss ? loss : found->metric_count > 0 ? &found->metrics[0] : NULL;
}

// ---- times --------------------------------------------------------------------------------------

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double eval_median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_size);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double eval_seconds(const EvaluationTime *time) {
    double rounds[EVALUATION_MOST_ROUNDS];
    memcpy(rounds, time->rounds, sizeof rounds);
    return time->round_count > 0 ? eval_median(rounds, time->round_count) : (double)NAN;
}

double eval_throughput(const Evaluation *found) {
    return (double)found->batch / eval_seconds(&found->times[EVALUATION_BATCH]);
}

// Of each round its own: what the machine was busy with hit both alike. Per sample, since a limit
// on memory gives every format the batch that fits. The true median lies between the least and the
// most of six rounds or more in 96 of 100 cases, so does it of nine or more without one at either
// end.
static void compare_rounds(EvalGain *gain, const Evaluation *base, const Evaluation *found,
                           bool in_turn) {
    const int enough = 6, plenty = 9;
    const EvaluationTime *was = &base->times[EVALUATION_BATCH],
                         *is = &found->times[EVALUATION_BATCH];
    const double samples = (double)found->batch / (double)base->batch;
    double gains[EVALUATION_MOST_ROUNDS];
    const int count = was->round_count < is->round_count ? was->round_count : is->round_count;
    if (count == 0)
        return;
    for (int i = 0; i < count; i++)
        gains[i] = samples * was->rounds[i] / is->rounds[i];
    gain->faster =
        in_turn ? eval_median(gains, count) : samples * eval_seconds(was) / eval_seconds(is);
    if (!in_turn || count < enough)
        return;
    const int left_out = count >= plenty;
    gain->least = gains[left_out];
    gain->most = gains[count - 1 - left_out];
}

// ---- what is worth it ---------------------------------------------------------------------------

EvalGain eval_gain(const Evaluations *all, const Evaluated *format) {
    EvalGain gain = {.faster = (double)NAN,
                     .least = (double)NAN,
                     .most = (double)NAN,
                     .lighter = (double)NAN,
                     .lost = (double)NAN};
    const Evaluated *base = eval_baseline(all);
    if (!base)
        return gain;
    compare_rounds(&gain, &base->found, &format->found, base->sitting == format->sitting);
    gain.lighter = (double)format->found.weights_memory / (double)base->found.weights_memory;
    const RecordMetric *was = eval_leading(&base->found);
    const RecordMetric *is = was ? evaluation_metric(&format->found, was->name) : NULL;
    if (!is)
        return gain;
    gain.has_metric = record_metric_leads(was->name);
    gain.lost = gain.has_metric ? was->value - is->value : is->value - was->value;
    gain.is_good = gain.lost <= (gain.has_metric ? accuracy_given : loss_given * fabs(was->value));
    return gain;
}

typedef enum Tempo { // over fp32
    TEMPO_UNKNOWN,   // not timed
    TEMPO_OPEN,      // times scatter too much to tell
    TEMPO_SLOWER,
    TEMPO_ALIKE,
    TEMPO_FASTER,
} Tempo;

static Tempo tempo_of(const EvalGain *gain) {
    if (isnan(gain->faster))
        return TEMPO_UNKNOWN;
    if (gain->least > 1 && gain->faster > noticeable)
        return TEMPO_FASTER;
    if (gain->most < 1 && gain->faster * noticeable < 1)
        return TEMPO_SLOWER;
    const bool is_alike = gain->least * noticeable >= 1 && gain->most <= noticeable;
    const bool is_clear =
        (gain->least > 1 || gain->most < 1) && fabs(log(gain->faster)) <= log(noticeable);
    return is_alike || is_clear ? TEMPO_ALIKE : TEMPO_OPEN;
}

// Whether the one is ahead of the other, however the rounds scattered.
static bool is_ahead(const EvalGain *gain, const EvalGain *other) {
    return gain->least > other->most && gain->faster > other->faster * noticeable;
}

// The fastest of those that lost little and are no slower for certain; of two that are alike, or
// that cannot be told apart, the one whose weights are smaller.
const Evaluated *eval_best(const Evaluations *all) {
    const Evaluated *best = NULL, *base = eval_baseline(all);
    EvalGain most = {.faster = 1, .least = 1, .most = 1, .lighter = 1};
    for (int i = 0; base && i < all->count; i++) {
        EvalGain gain = eval_gain(all, &all->formats[i]);
        if (&all->formats[i] == base || !gain.is_good || tempo_of(&gain) < TEMPO_ALIKE ||
            is_ahead(&most, &gain))
            continue;
        if (is_ahead(&gain, &most) || gain.lighter < most.lighter) {
            best = &all->formats[i];
            most = gain;
        }
    }
    return best;
}

// ---- in a sentence ------------------------------------------------------------------------------

// "0.12 points of accuracy lost"; what rounds to nothing is called that.
static void add_lost(Phrase *phrase, const Evaluations *all, const EvalGain *gain) {
    const RecordMetric *metric = eval_leading(&eval_baseline(all)->found);
    double lost = 100 * gain->lost / (gain->has_metric ? 1 : fabs(metric->value));
    const char *unit = gain->has_metric ? "points" : "%";
    if (fabs(lost) < 0.005)
        phrase_add(phrase, "the same %.40s", metric->name);
    else
        phrase_add(phrase, "%.40s %.2f %s %s", metric->name, fabs(lost), unit,
                   lost > 0 ? "worse" : "better");
}

// Of those that lose little and might be worth it, if times were steadier, the one that would be.
static const Evaluated *open_one(const Evaluations *all, EvalGain *most) {
    const Evaluated *found = NULL;
    for (int i = 0; i < all->count; i++) {
        EvalGain gain = eval_gain(all, &all->formats[i]);
        if (&all->formats[i] == eval_baseline(all) || !gain.is_good ||
            tempo_of(&gain) != TEMPO_OPEN)
            continue;
        if (!found || gain.faster > most->faster) {
            found = &all->formats[i];
            *most = gain;
        }
    }
    return found;
}

void eval_verdict(const Evaluations *all, char *text, size_t size) {
    const Evaluated *base = eval_baseline(all), *best = eval_best(all);
    Phrase phrase = phrase_begin(text, size);
    if (!base || all->count < 2 || !(eval_throughput(&base->found) > 0))
        return;
    EvalGain gain = {0};
    char busy[TEXT_LOAD_SIZE];
    text_load(busy, all->others);
    const char *hedge = busy[0] ? ", as far as a busy machine can tell" : "";
    if (best) {
        gain = eval_gain(all, best);
        phrase_add(&phrase,
                   "%s is worth it%s: %.2f times as fast as fp32 (%.2f to %.2f), weights %.2f of "
                   "its size, ",
                   best->precision, hedge, gain.faster, gain.least, gain.most, gain.lighter);
        add_lost(&phrase, all, &gain);
        phrase_add(&phrase, ".");
        return;
    }
    const Evaluated *open = open_one(all, &gain);
    if (open) {
        phrase_add(&phrase, "Whether %s is worth it cannot be told: ", open->precision);
        if (isnan(gain.least))
            phrase_add(&phrase, "%s",
                       open->sitting == base->sitting
                           ? "it was timed in too few rounds"
                           : "there was no memory to time it in turn with fp32");
        else
            phrase_add(&phrase, "rounds found it %.2f to %.2f times as fast as fp32", gain.least,
                       gain.most);
        phrase_add(&phrase, "; its weights have %.2f of the size, ", gain.lighter);
        add_lost(&phrase, all, &gain);
        phrase_add(&phrase, ".");
        return;
    }
    int good = 0;
    for (int i = 0; i < all->count; i++)
        good += eval_gain(all, &all->formats[i]).is_good;
    phrase_add(&phrase, "fp32 stays%s: %s.", good > 1 ? hedge : "",
               good > 1 ? "of the others, those that lose little are slower or no smaller"
                        : "all others lose more than half a point of accuracy, or 1 % of loss");
}
