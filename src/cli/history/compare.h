// cli/history/compare.h: how a comparison is shown; `compare` and `matrix` end with it.
#pragma once

#include "cli/cli.h"
#include "compare/compare.h"

// Compares the runs as the options say and prints the page or, with --json, the object, with
// --markdown the table.
bool cli_compare_runs(const Cli *cli, Store *store, const int64_t *runs, int count,
                      Error *error) MUST_CHECK;
// What `compare --markdown` prints: a table with a column a group, what may mislead about it, and
// where it was trained.
void comparison_print_markdown(const Comparison *comparison);
// What `compare --json` prints; other programs read it.
void comparison_write_json(const Comparison *comparison, JsonWriter *json);
