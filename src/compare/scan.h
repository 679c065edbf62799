// compare/scan.h: what a scan says: its verdict in words, its layers from the one that suffers
// most, which training is which. `mpbench scan`, `show` and the screen say it by these.
//
// Only reads the record. Any thread.
#pragma once

#include "store/scan.h"

enum { SCAN_VERDICT_SIZE = 512 + RECORD_DIAGNOSIS_SIZE };

// What to do, in a few words, and what the run that was scanned said of itself, which no format of
// a layer may mend; "" where nothing was found, or not all of it yet.
void scan_verdict(const ScanRecord *scan, char text[SCAN_VERDICT_SIZE]);
// Which trainings skipped steps, how many and what to do; "": none that ended well did.
void scan_say_skipped(const ScanRecord *scan, char text[SCAN_VERDICT_SIZE]);
// Units by the worst of their damages, the largest first; as many as the scan has.
void scan_rank(const ScanRecord *scan, int units[SCAN_MOST_UNITS]);
// The format that the policy gives a unit: "fp16"; of a norm or an embedding that stays as it is
// "auto", or "fp32" where it would follow the layer that it lies in; "" where there is no policy
// yet.
const char *scan_format_of(const ScanRecord *scan, int unit);
// Whether it is worth a line: the last of its label, and not a policy that is fp32 over again.
bool scan_shows_training(const ScanRecord *scan, const ScanTraining *training);
// How far it came, in a word or two: "verified" only where seeds told that the policy holds.
const char *scan_state_name(const ScanRecord *scan);
// NULL: it is verified; else what is in the way of that, as "cannot be told".
const char *scan_unverified(const ScanRecord *scan);
const char *scan_outcome_name(ScanOutcome outcome); // "within", "beyond", "cannot be told"
// By the policy; norms and embeddings that stay as they are, too.
int scan_units_in_fp32(const ScanRecord *scan);
// Whether a run that trains with its policy is told this option, too. Settings and recipes add up;
// of all else the last holds.
bool scan_option_repeats(const ScanRecord *scan, int at);
// What --keep-fp32 must say beside the policy, so that the norms and embeddings that it puts low
// are; unit: were that one low alone; SCAN_BY_POLICY: of the policy. As it was typed, where it was;
// "": it need not be said.
enum { SCAN_KEEP_SIZE = 128, SCAN_BY_POLICY = -1 };
void scan_keep_fp32(const ScanRecord *scan, int unit, char text[SCAN_KEEP_SIZE]);
// Whether its steps are faster than those of fp32.
Tempo scan_step_tempo(const ScanRecord *scan, const ScanTraining *training);
