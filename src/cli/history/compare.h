// cli/history/compare.h: how a comparison is shown; `compare` and `matrix` end with it.
#pragma once

#include "cli/cli.h"
#include "compare/compare.h"

// Compares the runs as the options say and prints the page or, with --json, the object.
bool cli_compare_runs(const Cli *cli, Store *store, const int64_t *runs, int count,
                      Error *error) MUST_CHECK;
// What `compare --json` prints; other programs read it.
void comparison_write_json(const Comparison *comparison, JsonWriter *json);
