// run/scan.h: which layers of a model may go into which formats, while it is measured.
//
// The command fills what is asked into a record (store/scan.h) and lends it to the script's machine
// (lua/experiment.h), whose binding tells here what lua/mp/scan.lua and its parts measure. Each
// piece is kept at once, where there is a history to keep it in. A record that holds pieces already
// is gone on with: they are not measured again, and what a scan must find as they did is held
// against them. One thread.
#pragma once

#include "store/scan.h"

typedef struct Scan {
    ScanRecord *record; // borrowed
    Store *store;       // borrowed; NULL: nothing is kept
    WorkerId worker;    // this process, to the history
    bool goes_on;       // the record is that of a scan that was ended before
    int seen;           // layers that the model was found to have
    void (*progress)(void *context, const char *what, int64_t done, int64_t of);
    void *context;
} Scan;

// The next layer; *has_room is false where it is beyond the most. `kept` and `rests` are those of a
// norm or an embedding, else "".
bool scan_take_layer(Scan *scan, const char *name, int64_t parameters, const char *kept,
                     const char *rests, bool *has_room, Error *error) MUST_CHECK;
// All layers are known, and the loss of the batches in fp32, which tells whether the state is the
// same as before. From here on a new scan is in the history.
bool scan_take_loss(Scan *scan, double loss, Error *error) MUST_CHECK;
bool scan_take_cell(Scan *scan, int unit, int format, const ScanCell *cell,
                    Error *error) MUST_CHECK;
// Of all units in a format, a time a round; kept with that of fp32, which is the last.
bool scan_take_cost(Scan *scan, int format, const double *rounds, int round_count,
                    int64_t activations, Error *error) MUST_CHECK;
// Of all units in a format, norms and embeddings too; before that of fp32.
void scan_take_lowered(Scan *scan, int format, const double *rounds, int round_count,
                       int64_t activations);
bool scan_has_costs(const Scan *scan);
bool scan_take_policy(Scan *scan, const short formats[SCAN_MOST_UNITS], int rounds, bool is_final,
                      Error *error) MUST_CHECK;
// The result that trainings are held against beside their loss: of these names the one that leads,
// else the first.
void scan_take_metric(Scan *scan, const char *const *names, int count);
// A training with these formats, whatever it was called, that has this seed (from 1); NULL: none.
const ScanTraining *scan_trained(const Scan *scan, const short formats[SCAN_MOST_UNITS],
                                 int64_t seed);
bool scan_take_seed(Scan *scan, const char *label, const short formats[SCAN_MOST_UNITS],
                    int64_t seed, const ScanSeed *found, Error *error) MUST_CHECK;
// What all its seeds come to: of `over` all but the label, the formats and the seeds.
bool scan_take_training(Scan *scan, const char *label, const short formats[SCAN_MOST_UNITS],
                        const ScanTraining *over, Error *error) MUST_CHECK;
// A time a round of a step with these formats: of all trainings that have them, whatever their
// labels, later ones too.
bool scan_take_rounds(Scan *scan, const short formats[SCAN_MOST_UNITS], const double *rounds,
                      int round_count, Error *error) MUST_CHECK;
// It has come to its end: now.
void scan_end(ScanRecord *record);

// ---- what follows, of any record ----------------------------------------------------------------

// The format that serves a unit best, of those that damage it no more than is tolerated, and fp32:
// none that is faster however rounds scattered; where that cannot be told, the one that needs the
// least memory, then the one that does the least damage. A norm or an embedding goes low only with
// what multiplies, into the format that most of that is in, and where that gains time or memory.
int scan_choose_format(const ScanRecord *scan, int unit);
// The training whose formats are to be the policy, an index, of those that hold: none that is
// faster however rounds scattered; where that cannot be told, the one that needs the least memory,
// as far as that is known and its passes are not slower, then the policy's own. All units in one
// format must be sure to hold, since layers spoke against it. -1: there are none.
int scan_choose_training(const ScanRecord *scan);
