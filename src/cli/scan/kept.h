// cli/scan/kept.h: a scan and the history: the one that is kept is gone on with, a new one is kept.
//
// What makes two scans the same is their key: the hash of what was asked, of the script's text and
// place, of the checkpoint that a run is scanned from, of the machine and of this program.
#pragma once

#include "cli/cli.h"
#include "cli/train/past.h"
#include "run/scan.h"

typedef struct ScanKeeping {
    Store *store; // NULL: nothing is kept
    WorkerId worker;
} ScanKeeping;

// Before the sandbox. Nothing is opened where --no-history says so.
bool scan_keep_open(const Cli *cli, ScanKeeping *keeping, Error *error) MUST_CHECK;
// What is said of the subject: `past` is that of a run, else empty. With the key, for which the
// record must have all that is asked and the device.
bool scan_keep_describe(const Cli *cli, const Past *past, const char *script, ScanRecord *scan,
                        Error *error) MUST_CHECK;
// Reads the kept scan of this key in place of the record, where there is one and --again is not
// given; takes it, unless it has come to its end. Says so, unless --quiet.
bool scan_keep_begin(const Cli *cli, ScanKeeping *keeping, ScanRecord *scan,
                     Error *error) MUST_CHECK;
// Of one that is stopped, how far it came.
void scan_keep_tell(const Cli *cli, const ScanRecord *scan);
// It has come to its end, and its policy may be in a file.
bool scan_keep_end(const ScanKeeping *keeping, const ScanRecord *scan, Error *error) MUST_CHECK;
// Gives it back, so that another process may go on with it.
void scan_keep_close(ScanKeeping *keeping, const ScanRecord *scan);

// ---- those that are kept, for the commands on the history ---------------------------------------

// "scan:3", "scan:last": what a command is given in place of a run.
bool scan_is_named(const char *operand);
bool scan_find(Store *store, const char *operand, int64_t *id, Error *error) MUST_CHECK;
// Prints it as `mpbench scan` did.
bool scan_show(const Cli *cli, const char *operand, Error *error) MUST_CHECK;
// Writes its policy, as `mpbench scan -o` does.
bool scan_export(const Cli *cli, const char *operand, Error *error) MUST_CHECK;
