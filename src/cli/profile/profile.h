// cli/profile/profile.h: what the files of `mpbench profile` share: where the time of steps went,
// as rows, and how they are printed.
//
// A ProfileReport is made of a training whose every step was timed (rows.c), or of what the history
// holds of a run (of_run.c): then there is a row a layer. The main thread calls.
#pragma once

#include "base/json.h"
#include "cli/cli.h"
#include "compare/step_lines.h"
#include "store/runs.h"
#include "store/step_profile.h"

typedef struct ProfileRow {    // of a step in the mean
    char layer[RUN_NAME_SIZE]; // "": outside of all layers
    const char *operation;     // NULL: all of them
    const char *way;           // "forward", "backward", "step"; NULL: several
    int work;                  // an OpId or a ProfileWork; -1: several
    Format from, to;           // computed with, and given; FORMAT_COUNT: several
    double calls, seconds;
    double multiplications, bytes;
    // What what is limited of it would take at the device's limit, and took; 0: nothing is.
    double at_limit, limited;
    int64_t columns; // of products: the narrowest; 0: none
} ProfileRow;

enum { PROFILE_MOST_WORDS = 6, PROFILE_WORDS_SIZE = 320 };

typedef struct ProfileReport {
    char name[RUN_NAME_SIZE], precision[32], device[32], device_name[96];
    int threads;
    int64_t run;     // of the history; 0: trained for this
    int64_t kept_as; // then: the run that it is in the history; 0: it is not
    int64_t steps;   // that are in it
    int64_t late;    // that took far longer, and are not
    double late_seconds;
    double others;    // processors that other programs kept busy meanwhile; NaN: unknown
    ProfileRow *rows; // the longest first
    int row_count;
    double step_seconds; // of a step in the mean; of a run of the history of those that were timed
    double all_seconds;  // then: of all steps; NaN: they are the same ones
    double between;      // of these in no row
    double casts;        // a step; NaN: unknown
    double cast_bytes;   // read and written by them; NaN: unknown
    double cast_seconds; // also of what rounds factors to scaled elements; NaN: unknown
    double memory_limit; // bytes a second; NaN: not measured
    double product_limit[FORMAT_COUNT]; // multiplications a second; NaN: not measured
    // Than which the device has no faster one; all false where it was not asked.
    bool is_fastest[FORMAT_COUNT];
    char words[PROFILE_MOST_WORDS][PROFILE_WORDS_SIZE];
    int word_count;
    StepProfile kept; // of a run that was profiled: what rows name
} ProfileReport;

void profile_report_clear(ProfileReport *report);

// Of a run that has ended, its steps profiled; measures the device's limits. Fails where no step
// was.
bool profile_of_training(const Run *run, ProfileReport *report, Error *error) MUST_CHECK;
// The same, into the history: as a run of its own, whose id *id gets (kept.c).
bool profile_keep(Store *store, const Run *run, const ProfileReport *report, int64_t *id,
                  Error *error) MUST_CHECK;
// What is known of any run before its times are read.
void profile_begin_record(const RunRecord *record, ProfileReport *report);
// Of a run that was profiled; *is_there: it was.
bool profile_of_kept(Store *store, const RunRecord *record, ProfileReport *report, bool *is_there,
                     Error *error) MUST_CHECK;
// Of any other run: what the history holds of it.
bool profile_of_record(Store *store, const RunRecord *record, ProfileReport *report,
                       Error *error) MUST_CHECK;
// A row as it is kept; way and format are named.
void profile_write_part(const ProfileRow *row, StepPart *part);
// The other way; operation and work as the report's rows have them.
void profile_read_part(const ProfileReport *report, const StepPart *part, ProfileRow *row);
// What is one row then, into `rows`, which has room for the report's.
bool profile_group(const ProfileReport *report, StepBy by, ProfileRow *rows, int *count,
                   Error *error) MUST_CHECK;
double profile_share(const ProfileReport *report, double seconds);
// Sums up what rows say of casts.
void profile_add_casts(ProfileReport *report);
bool profile_is_cast(const ProfileRow *row); // or rounds factors to elements
bool profile_is_product(const ProfileRow *row);

// What to do about it, in sentences.
void profile_find_words(ProfileReport *report);

bool profile_print(const Cli *cli, const ProfileReport *report, Error *error) MUST_CHECK;
bool profile_write_json(const Cli *cli, const ProfileReport *report, Error *error) MUST_CHECK;
