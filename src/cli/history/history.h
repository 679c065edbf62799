// cli/history/history.h: what the commands on the history share: opening it, and how its readings
// look in words. The main thread calls.
#pragma once

#include "cli/cli.h"
#include "cli/print/terminal.h"
#include "cli/print/text.h"
#include "store/layers.h"
#include "store/runs.h"

// --db, else MPBENCH_DB, else the usual place. True with *store NULL when nothing was recorded yet.
bool history_open_to_read(const Cli *cli, StoreMode mode, Store **store, Error *error) MUST_CHECK;
// For commands that need a run: a history that is not there is an error that says so.
Store *history_open(const Cli *cli, StoreMode mode, Error *error);
// The same error before something else opens it, which would make the file.
bool history_check_there(const Cli *cli, Error *error) MUST_CHECK;
// Finds and reads the run that was asked for; the caller clears the record.
bool history_read_run(Store *store, const char *text, RunRecord *record, Error *error) MUST_CHECK;

// After reading with STORE_RESCUE (or NULL): where damage was met it is the error of the command,
// whose result is then what could be read. Else `done`.
bool history_tell_losses(const Store *store, bool done, Error *error) MUST_CHECK;

// --output, or standard output: what is written to is none of the history's files, by whatever
// name.
bool history_check_output(const Cli *cli, const Store *store, Error *error) MUST_CHECK;

// The runs that the filter lets through, as a table or (--json) an array; `count` gets how many.
bool history_print_list(const Cli *cli, Store *store, const RunFilter *filter, int *count,
                        Error *error) MUST_CHECK;

// "running", but "stale" where the worker is silent; its style for the terminal.
const char *history_status(const RunRecord *record);
const char *history_status_style(const Terminal *terminal, const RunRecord *record);
// The colour of the low format that a preset names; "" for what names none.
const char *history_precision_style(const Terminal *terminal, const char *precision);

// The layers of a run at its end, `samples` with room for as many: how far updates moved them and
// the time that they took as they were last measured, which not every step is.
bool history_read_layers(Store *store, const RunRecord *run, LayerSample *samples,
                         Error *error) MUST_CHECK;

enum { HISTORY_STEPS_SIZE = 64 };

// "in step 500" or "in steps 449 to 500": of what steps they are, which are summed where many come
// in a second; "at the end" where there are none.
const char *history_layer_steps(char text[HISTORY_STEPS_SIZE], const RunRecord *run,
                                const LayerSample *samples);

// Readings in words, each into the caller's buffer; what is unknown is a dash.
const char *history_reading(char text[TEXT_SIZE], double value, int digits);
const char *history_size(char text[TEXT_SIZE], int64_t bytes);
const char *history_age(char text[TEXT_SIZE], int64_t created_ms);
const char *history_time(char text[TEXT_SIZE], int64_t wall_ms);

// The JSON of a command that set a text of a run: {"id": 3, "tag": "..."}.
void history_write_set(int64_t id, const char *key, const char *text);

// Grams of CO2 a kWh: the option, else MPBENCH_CO2; NaN: unknown.
double history_grams_per_kwh(const Cli *cli);
