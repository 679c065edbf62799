// compare/compare.h: two or more runs side by side, the first of them the baseline.
//
// A Comparison owns the records of the runs and all that was computed from them; it prints nothing,
// knows no SQL, and is not changed after it was made: any thread, one at a time. What cannot be
// known (energy that nobody measured, the noise of a single seed) is NaN or LIKENESS_UNKNOWN.
//
// Runs that are the same but for their seed (experiment and its script, precision, loss scale,
// parameters, device, threads, options, what layers were set to) make one group, and groups are
// compared seed by seed where both have the same, else by Welch's test over their seeds
// (statistic_contrast_samples); speeds always by the latter. A run repeated with the same seed is a
// group of its own: it is there to see whether the bits are equal.
#pragma once

#include "base/hash.h"
#include "compare/pace.h"
#include "compare/statistics.h"
#include "store/record.h"
#include "store/runs.h"
#include "store/series.h"

enum {
    COMPARE_LABEL_SIZE = 192,
    COMPARE_TEXT_SIZE = 512,
    COMPARE_MOST_METRICS = 256, // names of results that are asked for
    COMPARE_PLACE_SIZE = 32,
    COMPARE_MOST_RUNS = STATISTIC_MOST_SEEDS
};

typedef enum CompareAxis {
    COMPARE_BY_STEP,
    COMPARE_BY_EPOCH,
    COMPARE_BY_SECONDS,
    COMPARE_BY_SAMPLES,
    COMPARE_AXES
} CompareAxis;

const char *compare_axis_name(CompareAxis axis); // "step"
bool compare_axis_parse(const char *name, CompareAxis *axis);

// What is as good as a target: what its name says, as "loss" that it falls, or what was asked.
typedef enum CompareToward {
    COMPARE_BY_NAME,
    COMPARE_AT_LEAST, // >=
    COMPARE_AT_MOST   // <=
} CompareToward;

typedef struct CompareOptions {
    CompareAxis axis;
    double grams_per_kwh; // of CO2; NaN: unknown
    bool prefers_fp32;    // the first in fp32 comes first, of those with losses where some have any
    const char *series;   // what is compared as the loss; NULL: "loss", else what all of them log
    bool takes_any_series; // what some of the runs lack, too
    double watts;          // what a run takes whose energy nobody measured; 0: unknown
    const char *target;    // the series that is to come to target_value; NULL: none
    double target_value;
    CompareToward toward;
} CompareOptions;

// "accuracy=0.9", "pixels>=0.9", "gap<=2". How many bytes of it are the name; 0: it is no target.
size_t compare_target_parse(const char *text, double *value, CompareToward *toward);
typedef struct Comparison Comparison;
// Whether what is at most its target is as good.
bool compare_target_falls(const Comparison *comparison);

// When a run was first as good as the target; NaN: never.
typedef struct CompareReach {
    double steps, seconds; // that its steps took
} CompareReach;

// Points of a series over the axis: x says where on it each stands.
typedef struct CompareCurve {
    SeriesPoint *points;
    double *x;
    int count;
} CompareCurve;

// The code of the run's script, by which scripts are told apart: its hash, without comments. "":
// that of the text is, since all runs have one or it is not known.
typedef struct CompareCode {
    char hash[HASH_HEX_SIZE];
} CompareCode;

// What was set while the run went on, by whoever watched it, in order: "head is fp32 from step
// 240".
typedef struct CompareOrders {
    char text[RECORD_TEXT_SIZE]; // "": nothing
} CompareOrders;

// When a run trained, in order; none where the history does not say.
typedef struct CompareStretches {
    RunStretch *list;
    int count;
} CompareStretches;

typedef struct CompareMetric {
    char name[RECORD_NAME_SIZE];
    Statistic baseline, value; // over the seeds of the two sides
    Contrast contrast;
} CompareMetric;

// Where two trainings part. Two answers, since they are two questions:
// - `different`: the first step at which the loss was not the same to the bit. -1: nowhere in what
//   was kept of both. `different_width` > 1: somewhere in so many steps, which were summed up.
// - `parted`: the first step from which the smoothed losses differ by more than noise. The steps
//   that both have are cut into windows (at most 64, of at least 4 points a side); two windows in a
//   row must differ, by more than 1 % of the larger mean, and by more than the noise: over several
//   seeds the 95 % interval of Welch's test on the seeds' means in that window (of pairs, which are
//   far narrower, two among so many windows would differ by chance), else 3 standard errors of the
//   two means, from the scatter of the points in the window. A window differs whatever the scatter
//   where one side is mostly not finite and the other is not, or most points of one are over ten
//   times the largest of the other, as where a loss grows by the step: `parted` is then the first
//   step from which on all are so, and a last window alone suffices, however short. Of two runs of
//   one seed, which share first weights and data, also where the difference of the losses, step by
//   step, stays on one side: the steps that both have are cut into windows (at most 16, of at least
//   16 points), and in a quarter of them in a row, in at least 3, its mean is more than 1 % of the
//   larger loss and more than 3 standard errors (as Student's t has it of so few) by the scatter of
//   8 batches of neighbours. Not before `different`, but where that is later than the windows that
//   other seeds parted in. -1: never.
typedef struct CompareDivergence {
    bool is_known; // both logged a loss at the same steps
    int64_t different, different_width;
    int64_t parted;
    int64_t parted_before; // the end of the windows that showed it
    bool is_parted_at_end;
} CompareDivergence;

// One run, or one group of seeds, against the baseline.
typedef struct CompareSide {
    char label[COMPARE_LABEL_SIZE]; // the shortest that tells it from the others: "bf16, lr=0.01"
    const int *members;             // indexes of runs
    int member_count;
    // Over the members. `loss` is the mean over the last tenth of the axis that all runs share; the
    // last loss where no points were kept of any.
    Statistic steps_per_s, samples_per_s, wall_s, memory, energy_j, co2_g, loss;
    Statistic target_steps, target_seconds; // of those that came to the target
    int64_t skipped;                        // by all members together
    // Against the baseline; of the baseline itself 1, 0 and nothing. Ratios of means: speedup > 1
    // is faster, in samples a second where all of both count them, else in steps; wall_ratio > 1
    // took longer.
    double speedup, wall_ratio, memory_ratio, energy_ratio, co2_ratio, target_ratio;
    // Of the speedup: what 95 of 100 cases lie between, by the seeds where both sides have several,
    // else by the steps' own times (pace.h). Where it holds 1 the two are about as fast.
    double speedup_low, speedup_high;        // NaN: unknown
    Contrast loss_contrast, target_contrast; // of the loss, and of target_seconds
    char leads[RECORD_NAME_SIZE];            // of its results, as its script says; "": by the name
    CompareMetric *metrics;                  // that this side or the baseline has
    int metric_count;
    // Its seeds gave the same to the bit, in loss and results, and so did the baseline's: they are
    // one seed, and contrasts of them tell nothing.
    bool seeds_are_alike;
    int partner; // the run that `different` is of: it has the seed of the baseline's first, if any
    CompareDivergence divergence;
} CompareSide;

// Something that is not the same in all groups: a parameter, an option, a layer's precision.
typedef struct CompareDifference {
    char name[RECORD_NAME_SIZE + 8];  // "precision", "lr", "layer head"
    char (*values)[RECORD_TEXT_SIZE]; // one a group; "" where it has none
} CompareDifference;

struct Comparison {
    CompareOptions options;
    RunRecord *runs;      // in the order that was asked for; see prefers_fp32
    CompareCurve *losses; // of the series that is compared
    Pace *paces;
    CompareOrders *orders;
    CompareCode *codes;
    CompareStretches *stretches;
    CompareReach *reached;
    bool knows_target; // some run has that series
    int run_count;
    char series[RECORD_NAME_SIZE]; // that is compared
    // What all runs log, "loss" first; then, with takes_any_series, what most of them do, and so
    // on.
    char (*all_series)[RECORD_NAME_SIZE];
    int all_series_count;
    // While a run goes on metrics are not the last ones, but those of the last place that all runs
    // evaluated: "epoch 2". "": as each run ended.
    char results_at[COMPARE_PLACE_SIZE];
    CompareSide *sides;  // one a run: alone, against the first run
    CompareSide *groups; // the baseline's first
    int group_count;
    CompareDifference *differences;
    int difference_count;
    char (*energies)[COMPARE_TEXT_SIZE]; // energy, kWh and CO2 of each group that has them
    int energy_count;
    char (*caveats)[COMPARE_TEXT_SIZE]; // why numbers may mislead, a sentence each
    int caveat_count;
    char (*verdicts)[COMPARE_TEXT_SIZE]; // one a group after the first; at least one
    int verdict_count;
    int *members; // what sides and groups point into
};

// The least is what a run is looked at by: "loss", else what the name of a loss is in, as with a
// network and its opponent; else anything, the engine's own series last.
int compare_series_rank(const char *name);

// Reads the runs and their losses. Takes one run or more, each once; of one it says what it
// reached.
Comparison *compare_new(Store *store, const int64_t *runs, int count, const CompareOptions *options,
                        Error *error);
void compare_free(Comparison *comparison);
// When a group came to the target, and how that stands to the baseline's time, as a sentence. There
// is a target.
void compare_say_target(const Comparison *comparison, int group, char text[COMPARE_TEXT_SIZE]);
// How the differences between groups were tested, in a sentence; "": too few seeds to test any.
void compare_say_test(const Comparison *comparison, char text[COMPARE_TEXT_SIZE]);
// The result that people look at first (record_result_leads), else the first; NULL: there is none.
const CompareMetric *compare_leading_metric(const CompareSide *side);
// By its name; NULL: the group has none.
const CompareMetric *compare_metric(const CompareSide *side, const char *name);
// What the members of a side have of it.
void compare_sample_metric(const Comparison *comparison, const CompareSide *side, const char *name,
                           Sample *sample);
// Of those that any group has `most` at the most, the most telling first. How many there are.
int compare_metric_names(const Comparison *comparison, const char **names, int most);
extern const double compare_least_seconds; // shorter runs are start and noise
// The speedup, where the runs can tell it; NaN: they are too short, or their steps too uneven.
double compare_told_speedup(const Comparison *comparison, const CompareSide *side);
// Whether the interval of the speedup holds 1.
bool compare_is_about_as_fast(const CompareSide *side);
// In joules, measured or stated (options.watts); NaN: unknown.
double compare_energy(const Comparison *comparison, int run);
bool compare_is_stated(const Comparison *comparison, int run);
double compare_kwh(double joules);
// Of one run: measured, else what it takes at so many watts; 0 watts: not stated.
double compare_joules(const RunRecord *run, double watts);

// What memory is for. Each purpose is known at its own highest.
typedef struct ComparePurpose {
    const char *name;
    size_t offset; // in RecordMemory
} ComparePurpose;

enum { COMPARE_PURPOSES = 6 };
extern const ComparePurpose compare_purposes[COMPARE_PURPOSES];
// The mean over the side's runs; NaN: not known of all.
double compare_bytes(const Comparison *comparison, const CompareSide *side,
                     const ComparePurpose *purpose);

// Processors that other programs kept busy while the run trained, on average, of how many there
// are; NaN: unknown.
double compare_load_of_others(const RunRecord *run, int *processors);
// Whether that is enough to tell in its speed.
bool compare_was_busy(const RunRecord *run);
// Whether any run has points of the series that is compared; and whether this one has nothing of
// it, or its last value alone where others have points.
bool compare_has_curves(const Comparison *comparison);
bool compare_lacks_series(const Comparison *comparison, int run);
// Whether none of its runs had a finite loss in the end.
bool compare_loss_is_broken(const CompareSide *side);

// The same from records and curves in memory: takes both over, also when it fails. `losses` may be
// NULL; their `x` may be NULL, and is then computed from the record.
Comparison *compare_records(RunRecord *runs, CompareCurve *losses, int count,
                            const CompareOptions *options, Error *error);

// The loss of every run on one grid of `cells` along the axis, from 0 to the largest x: values has
// run_count rows of `cells` means, NaN where a run has no point and infinite where most points of
// the cell are not finite. `last_x` is the end of the axis.
void compare_align(const Comparison *comparison, int cells, double *values, double *last_x);
