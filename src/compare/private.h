// compare/private.h: what the files of this room share.
#pragma once

#include "compare/compare.h"

// read.c: fills the runs, and what belongs to them, from the history.
bool compare_read_runs(Store *store, Comparison *comparison, const int64_t *ids,
                       Error *error) MUST_CHECK;
// group.c: which runs belong together, what tells the groups apart, and their labels.
bool compare_group_runs(Comparison *comparison, Error *error) MUST_CHECK;
// label.c: of groups whose differences are known.
void compare_label_groups(Comparison *comparison);
// side.c: fills everything of a side but its label, members and divergence.
bool compare_fill_side(Comparison *comparison, CompareSide *side, const CompareSide *baseline,
                       Error *error) MUST_CHECK;
// divergence.c: of side against baseline; nothing is known where they are of two experiments.
bool compare_is_one_experiment(const Comparison *comparison, const CompareSide *side,
                               const CompareSide *baseline);
bool compare_find_divergence(const Comparison *comparison, CompareSide *side,
                             const CompareSide *baseline, Error *error) MUST_CHECK;
// Windows are coarser than steps: a side does not part before the first bit in which its partner
// and the baseline's first run differ. Where those are of several seeds, the others may have.
void compare_bound_parting(CompareSide *side, const CompareSide *baseline);
// The first point that is not the same in both, among those that cover the same steps. Any point
// that both have makes it known.
void compare_first_difference(const SeriesPoint *a, int a_count, const SeriesPoint *b, int b_count,
                              CompareDivergence *divergence);
// offset.c: whether the loss of one of two runs of a seed stays above that of the other.
typedef struct CompareOffset {
    int64_t since; // -1: it does not
    bool is_at_end;
} CompareOffset;

// false: no memory.
bool compare_find_offset(const CompareCurve *a, const CompareCurve *b,
                         CompareOffset *offset) MUST_CHECK;
// target.c: of a run whose record was read.
extern const CompareReach compare_never;
bool compare_read_reach(Store *store, Comparison *comparison, int run, Error *error) MUST_CHECK;
// energy.c: whether all of both groups trained as many steps of their own, and for long enough to
// tell: else what they used is held against nothing.
bool compare_may_hold_energy(const Comparison *comparison, const CompareSide *side,
                             const CompareSide *baseline);
bool compare_tell_energy(Comparison *comparison, Error *error) MUST_CHECK;
// read.c: x of a curve by the seconds that steps took; without any it stays as it is.
bool compare_place_by_seconds(CompareCurve *curve, const SeriesPoint *points, int count,
                              Error *error) MUST_CHECK;
// axis.c
double compare_axis_of_step(const RunRecord *run, CompareAxis axis, double step);
// meeting.c: while some run goes on, sets the metrics of all back to the last place at which all
// that have any were evaluated, and says which; "" where there is none, or none is needed.
bool compare_meet(Store *store, RunRecord *runs, int count, char place[COMPARE_PLACE_SIZE],
                  Error *error) MUST_CHECK;
// caveats.c: why numbers may mislead.
bool compare_warn(Comparison *comparison);
// One more sentence, empty; NULL: no memory.
char *compare_add_line(char (**lines)[COMPARE_TEXT_SIZE], int *count);
// Whether the run shared its device with another run of the comparison.
bool compare_had_company(const Comparison *comparison, int run);
// side.c: why a speed is not told.
bool compare_is_too_short(const CompareSide *side, const CompareSide *baseline);
bool compare_is_too_uneven(const CompareSide *side);
// verdict.c
bool compare_judge(Comparison *comparison, Error *error) MUST_CHECK;

// What slowed a run of the side beside itself, so that its speed is no more than a hint: " while
// other programs ran"; NULL: nothing that is known.
const char *compare_slowed_by(const Comparison *comparison, const CompareSide *side);

// The end of the axis that all runs reach which have the series at all; 0: there is none, or of one
// no points were kept.
double compare_shared_end(const Comparison *comparison);
