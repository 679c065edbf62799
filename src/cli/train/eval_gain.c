// What `mpbench eval` concludes: what a format is over fp32, and whether that is worth it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "cli/print/text.h"
#include "cli/train/eval.h"

// What one would give for speed: of accuracy, a little more than half a point, since 0.9 - 0.895 is
// that; and of the loss as a share of fp32's.
static const double accuracy_given = 0.005 + 1e-9, loss_given = 0.01;

// ---- what it was held against -------------------------------------------------------------------

const Evaluated *eval_baseline(const Evaluations *all) {
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->formats[i].precision, format_name(FORMAT_FP32)) == 0)
            return &all->formats[i];
    return NULL;
}

const RecordMetric *eval_leading(const Evaluation *found) {
    const RecordMetric *said = found->leads[0] ? evaluation_metric(found, found->leads) : NULL;
    if (said)
        return said;
    for (int i = 0; i < found->metric_count; i++)
        if (record_metric_leads(found->metrics[i].name))
            return &found->metrics[i];
    const RecordMetric *loss = evaluation_metric(found, "loss");
    return loss ? loss : found->metric_count > 0 ? &found->metrics[0] : NULL;
}

// ---- times --------------------------------------------------------------------------------------

double eval_seconds(const EvaluationTime *time) {
    double rounds[ROUNDS_MOST];
    memcpy(rounds, time->rounds, sizeof rounds);
    return time->round_count > 0 ? rounds_median(rounds, time->round_count) : (double)NAN;
}

double eval_throughput(const Evaluation *found) {
    return (double)found->batch / eval_seconds(&found->times[EVALUATION_BATCH]);
}

// Per sample, since a limit on memory gives every format the batch that fits. What was not timed in
// turn has no rounds in common: nobody knows its spread.
static RoundsGain gain_of_times(const Evaluation *base, const Evaluation *found, bool in_turn) {
    const EvaluationTime *was = &base->times[EVALUATION_BATCH],
                         *is = &found->times[EVALUATION_BATCH];
    const double samples = (double)found->batch / (double)base->batch;
    const int count = was->round_count < is->round_count ? was->round_count : is->round_count;
    RoundsGain gain = rounds_gain(was->rounds, is->rounds, count);
    if (!in_turn)
        gain = (RoundsGain){eval_seconds(was) / eval_seconds(is), (double)NAN, (double)NAN};
    return (RoundsGain){samples * gain.faster, samples * gain.least, samples * gain.most};
}

// ---- what is worth it ---------------------------------------------------------------------------

static double given_of(const EvalGain *gain, const RecordMetric *fp32) {
    return gain->has_metric ? accuracy_given : loss_given * fabs(fp32->value);
}

EvalGain eval_gain(const Evaluations *all, const Evaluated *format) {
    EvalGain gain = {
        .speed = rounds_gain(NULL, NULL, 0), .lighter = (double)NAN, .lost = (double)NAN};
    const Evaluated *base = eval_baseline(all);
    if (!base)
        return gain;
    gain.speed = gain_of_times(&base->found, &format->found, base->sitting == format->sitting);
    gain.lighter = (double)format->found.weights_memory / (double)base->found.weights_memory;
    const RecordMetric *was = eval_leading(&base->found);
    const RecordMetric *is = was ? evaluation_metric(&format->found, was->name) : NULL;
    if (!is)
        return gain;
    const bool falls = base->found.falls[was - base->found.metrics];
    gain.has_metric = record_metric_leads(was->name) && !falls;
    gain.lost = falls ? is->value - was->value : was->value - is->value;
    gain.is_good = gain.lost <= given_of(&gain, was);
    return gain;
}

// Beside fp32; of what did not fit, or was not timed, nobody knows whether it is worth it.
static bool is_candidate(const Evaluations *all, const Evaluated *format) {
    const Evaluation *found = &format->found;
    return format != eval_baseline(all) && found->samples > 0 &&
           found->times[EVALUATION_BATCH].round_count > 0;
}

// The fastest of those that lost little and are no slower for certain; of two that are alike, or
// that cannot be told apart, the one whose weights take less memory.
const Evaluated *eval_best(const Evaluations *all) {
    const Evaluated *best = NULL, *base = eval_baseline(all);
    EvalGain most = {.speed = rounds_same, .lighter = 1};
    for (int i = 0; base && i < all->count; i++) {
        EvalGain gain = eval_gain(all, &all->formats[i]);
        if (!is_candidate(all, &all->formats[i]) || !gain.is_good ||
            rounds_tempo(&gain.speed) < TEMPO_ALIKE || rounds_ahead(&most.speed, &gain.speed))
            continue;
        if (rounds_ahead(&gain.speed, &most.speed) || gain.lighter < most.lighter) {
            best = &all->formats[i];
            most = gain;
        }
    }
    return best;
}

// ---- in a sentence ------------------------------------------------------------------------------

// How many samples the difference comes to, if fewer than MOST_TOLD; 0: more, or the metric is no
// share of samples (of the words of a text, say).
static int64_t few_samples(const Evaluations *all, const EvalGain *gain) {
    enum { MOST_TOLD = 10 };
    static const double of_rounding = 0.01; // that far from a whole number is one
    const Evaluated *base = eval_baseline(all);
    const double samples = (double)base->found.samples, some = fabs(gain->lost) * samples;
    const double was = eval_leading(&base->found)->value * samples;
    const bool is_whole =
        fabs(some - round(some)) < of_rounding && fabs(was - round(was)) < of_rounding;
    return gain->has_metric && is_whole && some < MOST_TOLD ? llround(some) : 0;
}

// "accuracy 0.12 points worse"; what rounds to nothing is called that.
static void add_lost(Phrase *phrase, const Evaluations *all, const EvalGain *gain) {
    const RecordMetric *metric = eval_leading(&eval_baseline(all)->found);
    const bool has_share = !gain->has_metric && metric->value != 0; // of 0 there is none
    double lost = gain->has_metric ? 100 * gain->lost
                  : has_share      ? 100 * gain->lost / fabs(metric->value)
                                   : gain->lost;
    const char *unit = gain->has_metric ? "points" : has_share ? "%" : "in all";
    if (fabs(lost) < 0.005) {
        phrase_add(phrase, "the same %.40s", metric->name);
        return;
    }
    phrase_add(phrase, "%.40s %.2f %s %s", metric->name, fabs(lost), unit,
               lost > 0 ? "worse" : "better");
    const int64_t few = few_samples(all, gain);
    char samples[TEXT_SIZE];
    if (few > 0)
        phrase_add(phrase, " (net %lld of %s samples)", (long long)few,
                   text_count(samples, eval_baseline(all)->found.samples));
}

// Beside the best the one that rounds do not tell from it in speed and that loses clearly less, if
// there is one: by a tenth of what one would give, and by more than a sample.
static void add_gentler(Phrase *phrase, const Evaluations *all, const Evaluated *best) {
    const EvalGain chosen = eval_gain(all, best);
    const Evaluated *gentler = NULL;
    EvalGain least = {.lost = chosen.lost -
                              given_of(&chosen, eval_leading(&eval_baseline(all)->found)) / 10};
    if (few_samples(all, &chosen) == 1)
        return;
    for (int i = 0; i < all->count; i++) {
        const EvalGain gain = eval_gain(all, &all->formats[i]);
        if (!is_candidate(all, &all->formats[i]) || rounds_tempo(&gain.speed) < TEMPO_ALIKE ||
            rounds_ahead(&chosen.speed, &gain.speed) || rounds_ahead(&gain.speed, &chosen.speed) ||
            !(gain.lost < least.lost))
            continue;
        gentler = &all->formats[i];
        least = gain;
    }
    if (!gentler)
        return;
    phrase_add(phrase,
               " %s cannot be told from %s in speed: %.2f times fp32's memory for weights, ",
               gentler->precision, best->precision, least.lighter);
    add_lost(phrase, all, &least);
    phrase_add(phrase, ".");
}

// It loses little, and steadier times might show that it is worth it.
static bool is_open(const Evaluations *all, const Evaluated *format) {
    EvalGain gain = eval_gain(all, format);
    return is_candidate(all, format) && gain.is_good && rounds_tempo(&gain.speed) == TEMPO_OPEN;
}

// Of those, the one that would be the fastest.
static const Evaluated *open_one(const Evaluations *all, EvalGain *most) {
    const Evaluated *found = NULL;
    for (int i = 0; i < all->count; i++) {
        EvalGain gain = eval_gain(all, &all->formats[i]);
        if (!is_open(all, &all->formats[i]))
            continue;
        if (!found || gain.speed.faster > most->speed.faster) {
            found = &all->formats[i];
            *most = gain;
        }
    }
    return found;
}

// " Nor can it be told of bf16, fp16 and int8."
static void add_other_open(Phrase *phrase, const Evaluations *all, const Evaluated *told) {
    int left = 0, count = 0;
    for (int i = 0; i < all->count; i++)
        left += &all->formats[i] != told && is_open(all, &all->formats[i]);
    for (int i = 0; i < all->count; i++)
        if (&all->formats[i] != told && is_open(all, &all->formats[i])) {
            phrase_add(phrase, "%s", count == 0 ? " Nor can it be told of " : "");
            phrase_add_joint(phrase, count++, left, " and ");
            phrase_add(phrase, "%s", all->formats[i].precision);
        }
    if (count > 0)
        phrase_add(phrase, ".");
}

void eval_verdict(const Evaluations *all, char *text, size_t size) {
    const Evaluated *base = eval_baseline(all), *best = eval_best(all);
    Phrase phrase = phrase_begin(text, size);
    if (!base || all->count < 2 || !(eval_throughput(&base->found) > 0))
        return;
    const RecordMetric *metric = eval_leading(&base->found);
    EvalGain gain = eval_gain(all, base);
    if (!metric || !isfinite(metric->value)) // nothing to lose any of
        return;
    char busy[TEXT_LOAD_SIZE];
    text_load(busy, all->others);
    const char *hedge = busy[0] ? ", as far as a busy machine can tell" : "";
    if (best) {
        gain = eval_gain(all, best);
        phrase_add(&phrase,
                   "%s is worth it%s: %.2f times as fast as fp32 (%.2f to %.2f), %.2f times its "
                   "memory for weights, ",
                   best->precision, hedge, gain.speed.faster, gain.speed.least, gain.speed.most,
                   gain.lighter);
        add_lost(&phrase, all, &gain);
        phrase_add(&phrase, ".");
        add_gentler(&phrase, all, best);
        return;
    }
    const Evaluated *open = open_one(all, &gain);
    if (open) {
        phrase_add(&phrase, "Whether %s is worth it cannot be told: ", open->precision);
        if (isnan(gain.speed.least))
            phrase_add(&phrase, "%s",
                       open->sitting == base->sitting
                           ? "it was timed in too few rounds"
                           : "there was no memory to time it in turn with fp32");
        else
            phrase_add(&phrase, "rounds found it %.2f to %.2f times as fast as fp32",
                       gain.speed.least, gain.speed.most);
        phrase_add(&phrase, "; it takes %.2f times fp32's memory for weights, ", gain.lighter);
        add_lost(&phrase, all, &gain);
        phrase_add(&phrase, ".");
        add_other_open(&phrase, all, open);
        return;
    }
    int others = 0, good = 0;
    for (int i = 0; i < all->count; i++)
        if (is_candidate(all, &all->formats[i])) {
            others++;
            good += eval_gain(all, &all->formats[i]).is_good;
        }
    if (others == 0)
        return;
    if (good > 0)
        phrase_add(&phrase,
                   "fp32 stays%s: of the others, those that lose little are slower or take no less "
                   "memory for weights.",
                   hedge);
    else
        phrase_add(&phrase, "fp32 stays: all others lose more than %s of %.40s.",
                   gain.has_metric ? "half a point" : "1 %", metric->name);
}
