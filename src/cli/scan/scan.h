// cli/scan/scan.h: what the files of `mpbench scan` share, and the policy files that it writes.
//
// A policy file is a Lua table of layers' names or patterns and formats, so that a script can
// `require` it too: return { ["encoder.*"] = "bf16", head = "fp32" }. It is read here as text, and
// runs nothing.
#pragma once

#include "cli/cli.h"
#include "run/scan.h"

typedef struct ScanPage {
    const Scan *scan;
    const char *subject; // what was scanned: "fashion_cnn", "run 7"
    char device[32];
    int threads;
    double others;           // processors that other programs kept busy meanwhile; NaN: unknown
    const char *policy_file; // that was written; NULL: none
} ScanPage;

bool scan_print(const Cli *cli, const ScanPage *page, Error *error) MUST_CHECK;
void scan_write_json(const ScanPage *page);
// What to do, in a few words; `text` is empty where nothing was found.
void scan_verdict(const ScanPage *page, char *text, size_t size);
// The format that the policy gives a unit: "fp16".
const char *scan_format_of(const Scan *scan, int unit);
// The verified training of this label; NULL: there is none.
const ScanTraining *scan_training_of(const Scan *scan, const char *label);

void policy_file_write(FILE *out, const ScanPage *page);
// Each row as --layer would be given it, from the first on. `take` copies what it needs.
bool policy_file_read(const char *path,
                      bool (*take)(void *context, const char *pattern, const char *precision,
                                   Error *error),
                      void *context, Error *error) MUST_CHECK;
