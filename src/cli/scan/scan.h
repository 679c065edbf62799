// cli/scan/scan.h: what the files of `mpbench scan` share, and the policy files that it writes.
//
// A policy file is a Lua table of layers' names or patterns and formats, so that a script can
// `require` it too: return { ["encoder.*"] = "bf16", head = "fp32" }. It is read here as text, and
// runs nothing.
#pragma once

#include "cli/cli.h"
#include "run/scan.h"

// What it found, as far as it came.
bool scan_print(const Cli *cli, const ScanRecord *scan, Error *error) MUST_CHECK;
void scan_write_json(const ScanRecord *scan);
// The command that trains with a policy that lies in a file, as the scan verified it, with all of
// the subject's options that bear on it.
enum { SCAN_NEXT_SIZE = 8192 };
void scan_next_command(const ScanRecord *scan, const char *policy, char text[SCAN_NEXT_SIZE]);
void scan_print_next(const ScanRecord *scan);

void policy_file_write(FILE *out, const ScanRecord *scan);
// Each row as --layer would be given it, from the first on. `take` copies what it needs.
bool policy_file_read(const char *path,
                      bool (*take)(void *context, const char *pattern, const char *precision,
                                   Error *error),
                      void *context, Error *error) MUST_CHECK;
