// store/scan.h: what the history keeps of `mpbench scan`: of which subject, with which settings and
// on which machine; of each layer in each format what was measured; the policy that followed, and
// the trainings that verified it, seed by seed.
//
// A scan is kept as it is measured, a cell or a training at a time, each as one commit, so that one
// that was killed lacks what it was about. What it is the same scan by is its key: the hash of all
// that its numbers follow from. While a process measures it, it owns it as a worker owns a run
// (worker.h), and no other adds to it. Files of before have no room for scans: it is made when it
// is needed, and who reads finds none. A scan of a run goes with the run.
//
// Unknown is NaN; a number may be infinite. run/scan.h fills a ScanRecord, compare/scan.h says in
// words what it found. Any thread, one at a time.
#pragma once

#include "base/rounds.h"
#include "store/record.h"
#include "store/store.h"
#include "store/worker.h"

enum {
    SCAN_MOST_UNITS = 256,
    SCAN_MOST_FORMATS = 16,
    SCAN_MOST_TRAININGS = 32, // fp32, each format, and a policy a round
    SCAN_MOST_SEEDS = 32,
    SCAN_FORMAT_SIZE = 16,
    SCAN_KIND_SIZE = 16,
    SCAN_LABEL_SIZE = 64,
    SCAN_SUBJECT_SIZE = 112
};

// One unit in one format, all else in fp32, on the same batches.
typedef struct ScanCell {
    bool is_known;  // it was measured
    bool is_broken; // the loss or a gradient was not finite, at any loss scale
    double damage;  // own_noise or all_noise, whichever is more; infinite where it is broken
    // Of its own gradients, and of all together: the distance to fp32's, as a share of their length
    // and as one of what they differ by from batch to batch; and the angle between them.
    double own_error, own_noise, own_degrees;
    double all_error, all_noise, all_degrees;
    double loss_change; // a share of the loss
    // Of its own gradients, at the loss scale below; of a format whose numbers share scales, of all
    // that its products take, at those scales: then overflowed are those beyond the largest
    // element.
    double flushed, overflowed;
    double subnormal;                             // of such a format alone, as what follows:
    double least_scale, middle_scale, most_scale; // of blocks, exponents of 2
    double scale;
} ScanCell;

// The readings of a cell, in the order in which people look at them.
typedef struct ScanReading {
    const char *name; // "own_error"
    size_t offset;    // in ScanCell
} ScanReading;
extern const ScanReading scan_readings[]; // ended by a NULL name
double *scan_reading(ScanCell *cell, const ScanReading *reading);

typedef struct ScanSeed {
    bool is_known;
    double loss;    // the mean of the last third of the steps
    double seconds; // a step, by the quickest quarter; of trainings one after the other
    bool has_result;
    double result;    // of the scan's metric, at the end
    bool has_skipped; // else it is of before
    int64_t skipped;  // steps whose gradients were not finite
} ScanSeed;

// All units in one format, or in those of a policy, trained on from the same state.
typedef struct ScanTraining {
    char label[SCAN_LABEL_SIZE];   // "fp32", "all fp16", "policy": of a later round once more
    short format[SCAN_MOST_UNITS]; // of each unit, an index of `formats`; format_count: fp32
    ScanSeed seeds[SCAN_MOST_SEEDS];
    // Of a step with these formats, timed in turn with the other trainings; seconds is their
    // median, before they are known that of the seeds.
    double rounds[ROUNDS_MOST];
    int round_count;
    // Over the seeds, once all of them are known.
    bool is_known;
    double loss, above, interval; // the mean; of fp32's: a share of it, and its 95 % interval
    double seconds;
    int broken; // seeds that did not end with a finite loss
    // Where the scan has a metric: the mean; by how much it is worse than fp32's, whichever way it
    // gets better, a share of that, and the 95 % interval of it.
    double result, worse, worse_interval;
    bool is_within; // above and worse are, over the seeds, no more than asked
} ScanTraining;

typedef struct ScanRecord {
    int64_t id;                   // 0: not in a history
    int64_t created_ms, ended_ms; // wall clock, since 1970; 0: it has not come to its end
    bool is_live;                 // a process measures it

    // Of what, on what: with what is asked below this makes the key.
    char key[65];
    char subject[SCAN_SUBJECT_SIZE];   // "fashion_cnn", "run 7 at step 20"
    int64_t run, run_step;             // 0: of an experiment, by its script alone
    char told[RECORD_DIAGNOSIS_SIZE];  // by the run of itself, by now: scan_take_told; "": nothing
    char experiment[RECORD_NAME_SIZE]; // as it is named, or that of the run
    char script_path[512], script_hash[65];
    RecordOption *options; // as they were typed, or as the run's were: {"set", "lr=0.1"}; owned
    int option_count;
    int64_t seed;
    char device[32], device_name[128]; // "cpu", "Intel ..."
    int threads;
    char ways[RECORD_TEXT_SIZE]; // RECORD_FACT_WAYS; "": none

    // Asked.
    char formats[SCAN_MOST_FORMATS][SCAN_FORMAT_SIZE];
    int format_count;
    int64_t batches;  // looked at
    int64_t warm_up;  // steps trained in fp32 before, where there are no weights
    int64_t steps;    // of each training that verifies; 0: none
    int64_t seeds;    // of them
    double within;    // by how much, as a share, loss and result may be worse than fp32's
    double tolerance; // of damage
    bool by_block;    // what begins with the same name is one unit

    // Found.
    double loss; // of those batches in fp32, before; NaN: not yet
    char units[SCAN_MOST_UNITS][RECORD_NAME_SIZE];
    int64_t parameters[SCAN_MOST_UNITS]; // how many numbers each has
    int unit_count;                      // 0: not known yet
    // Of a norm or an embedding its kind, as --keep-fp32 names it: in its cells that kind is not
    // kept, and the unit computes in the format. "": what multiplies.
    char kept[SCAN_MOST_UNITS][SCAN_KIND_SIZE];
    char rests[SCAN_MOST_UNITS]
              [SCAN_FORMAT_SIZE]; // what such a unit is set to else: "auto", "fp32"
    int left_out;                 // units beyond the most
    ScanCell cells[SCAN_MOST_UNITS][SCAN_MOST_FORMATS];
    // Of a forward and backward pass with all in it that multiplies, timed in turn; [format_count]
    // is fp32. seconds is the median of its rounds; 0: not yet.
    double seconds[SCAN_MOST_FORMATS + 1];
    double pass_rounds[SCAN_MOST_FORMATS + 1][ROUNDS_MOST];
    int pass_round_count[SCAN_MOST_FORMATS + 1]; // 0 also of scans of before
    int64_t activations[SCAN_MOST_FORMATS + 1];
    struct {
        double seconds, rounds[ROUNDS_MOST];
        int round_count; // 0: there are none
        int64_t activations;
    } lowered[SCAN_MOST_FORMATS]; // the same with norms and embeddings in it too, in the same turns
    // The result by which trainings are verified beside their loss, of those that the experiment's
    // `eval` gives the one that people look at first; "": it gives none.
    char metric[RECORD_NAME_SIZE];
    bool has_policy;
    int policy[SCAN_MOST_UNITS]; // the format that each is to have, as in ScanTraining
    ScanTraining trainings[SCAN_MOST_TRAININGS];
    int training_count;
    int rounds;            // times that the policy had to be made higher
    bool is_final;         // it was verified, and holds
    double others;         // processors that other programs kept busy meanwhile; NaN: unknown
    char policy_file[512]; // that was written; "": none
} ScanRecord;

// An empty one, on the heap: it is large. NULL: no memory.
ScanRecord *scan_record_new(Error *error);
void scan_record_free(ScanRecord *scan); // NULL is fine
// A diagnosis of the run that is scanned, in their order: the first that bears on its numbers is
// kept. It may lie where no layer multiplies, and then nothing that a scan measures shows it.
void scan_take_told(ScanRecord *scan, const char *kind, const char *text);
int scan_cells_known(const ScanRecord *scan); // of unit_count * format_count
// The last that was typed of an option; NULL: none was.
const char *scan_option(const ScanRecord *scan, const char *name);
bool scan_is_kept(const ScanRecord *scan, int unit); // a norm or an embedding
// "fp16"; of the index behind the last "fp32".
const char *scan_format_name(const ScanRecord *scan, int format);
// The most steps that one of its seeds skipped; 0 also where it is not known.
int64_t scan_most_skipped(const ScanTraining *training);
// How many times as fast as in fp32 a pass is with all units in a format, and a step of a training.
RoundsGain scan_pass_gain(const ScanRecord *scan, int format);
RoundsGain scan_lowered_gain(const ScanRecord *scan, int format); // with norms and embeddings in it
RoundsGain scan_step_gain(const ScanRecord *scan, const ScanTraining *training);
// What a pass costs in the formats of a training: known where all that multiplies is in one of
// them, and norms and embeddings are all low with it, or none.
typedef struct ScanPass {
    int64_t activations; // 0: nobody knows
    RoundsGain gain;
} ScanPass;
ScanPass scan_pass_of(const ScanRecord *scan, const ScanTraining *training);
bool scan_is_all_fp32(const ScanRecord *scan, const ScanTraining *training);
// The training of this label that all seeds of are known, of policies the last; NULL: there is
// none.
const ScanTraining *scan_training_of(const ScanRecord *scan, const char *label);
// What the seeds of a training say of its loss and its result against what is allowed. One that may
// be either way leaves it open, unless the other is beyond however they scatter.
typedef enum ScanOutcome {
    SCAN_OPEN,
    SCAN_WITHIN,
    SCAN_BEYOND,
    SCAN_OUTCOMES,
} ScanOutcome;
ScanOutcome scan_outcome(const ScanRecord *scan, const ScanTraining *training);
// Whether its seeds, and those in fp32, gave the same to the bit, as of a script whose data have
// one order and that draws nothing at random: then they are one seed, and tell nothing of chance.
bool scan_seeds_are_alike(const ScanRecord *scan, const ScanTraining *training);
// Of such a training no interval is known.
void scan_forget_alike(const ScanRecord *scan, ScanTraining *training);
// Whether trainings are held by the scan's metric, too: there is one, and in fp32 it is finite.
bool scan_result_counts(const ScanRecord *scan);

// ---- reading ------------------------------------------------------------------------------------

typedef struct ScanEntry { // a line of a list
    int64_t id, run;       // run: 0: of an experiment
    char subject[SCAN_SUBJECT_SIZE], experiment[RECORD_NAME_SIZE];
    int64_t created_ms, ended_ms;
    bool is_live, is_final;
    int units, formats, cells; // cells: that were measured
} ScanEntry;

// All, the newest first. The caller frees the list.
bool store_list_scans(Store *store, ScanEntry **list, int *count, Error *error) MUST_CHECK;
// As people type it behind "scan:": a number, or "last". ERROR_USAGE where there is none.
bool store_find_scan(Store *store, const char *text, int64_t *id, Error *error) MUST_CHECK;
// The newest with this key; *id is 0 where there is none.
bool store_find_scan_by_key(Store *store, const char *key, int64_t *id, Error *error) MUST_CHECK;
// All of it, into a record that scan_record_new made.
bool store_read_scan(Store *store, int64_t id, ScanRecord *scan, Error *error) MUST_CHECK;

// ---- writing ------------------------------------------------------------------------------------

// A new scan with a new id, which is the worker's: all but what is found.
bool store_add_scan(Store *store, ScanRecord *scan, const WorkerId *worker,
                    Error *error) MUST_CHECK;
// Takes one that is there: refused (ERROR_TAKEN) while another worker lives.
bool store_own_scan(Store *store, int64_t id, const WorkerId *worker, Error *error) MUST_CHECK;
// Each writes what its name says, as the record has it now; with the layers the policy, and what is
// known of the whole.
bool store_put_scan_layers(Store *store, const ScanRecord *scan, Error *error) MUST_CHECK;
bool store_put_scan_cell(Store *store, const ScanRecord *scan, int unit, int format,
                         Error *error) MUST_CHECK;
bool store_put_scan_costs(Store *store, const ScanRecord *scan, Error *error) MUST_CHECK;
bool store_put_scan_training(Store *store, const ScanRecord *scan, int training,
                             Error *error) MUST_CHECK;
// That it came to its end: ended_ms, and what else is known then. Gives it back, where it still is
// the worker's: one that was silent for long may have been taken for dead.
bool store_end_scan(Store *store, const ScanRecord *scan, const WorkerId *worker,
                    Error *error) MUST_CHECK;
// Gives it back as it is, to be gone on with.
bool store_release_scan(Store *store, int64_t id, const WorkerId *worker, Error *error) MUST_CHECK;
// With all that is kept of it; refused while its worker lives.
bool store_remove_scan(Store *store, int64_t id, Error *error) MUST_CHECK;
