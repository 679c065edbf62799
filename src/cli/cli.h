// cli/cli.h: the command line: what was typed, and the tables that parsing, help and errors follow.
//
// main.c has the one table of commands, options.c the one of options. cli_main parses, calls the
// command, prints the error of one that failed and returns the exit status that fits it
// (error_exit_status). Standard output carries results only. Only cli/ prints; it runs in the main
// thread.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "compare/compare.h"
#include "compare/step_lines.h"
#include "run/run.h"

enum { CLI_MAX_OPERANDS = 256, CLI_MAX_RULES = 256, CLI_MAX_TEXTS = 512 };

typedef enum ColorChoice { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } ColorChoice;

typedef struct Cli Cli;

// Which commands an option belongs to: a bit each.
enum {
    FOR_RUN = 1 << 0,
    FOR_FORMATS = 1 << 1,
    FOR_DOCTOR = 1 << 2,
    FOR_HELP = 1 << 3,
    FOR_CTL = 1 << 4,
    FOR_RM = 1 << 5,
    FOR_TAG = 1 << 6,
    FOR_NOTE = 1 << 7,
    FOR_LS = 1 << 8,
    FOR_SHOW = 1 << 9,
    FOR_COMPARE = 1 << 10,
    FOR_EXPORT = 1 << 11,
    FOR_GC = 1 << 12,
    FOR_MATRIX = 1 << 13,
    FOR_RESUME = 1 << 14,
    FOR_FORK = 1 << 15,
    FOR_BENCH = 1 << 16,
    FOR_EVAL = 1 << 17,
    FOR_HOME = 1 << 18,
    FOR_PROFILE = 1 << 19,
    FOR_REPORT = 1 << 20,
    FOR_SCAN = 1 << 21,
    FOR_CLAIMS = 1 << 22,
    FOR_ALL = ~0,
};

typedef struct Command {
    const char *name;
    int options;           // its bit above; 0: only those of all commands
    const char *arguments; // "EXPERIMENT"; "" for none
    const char *summary;   // one line
    const char *text;      // what help says beyond it; may be NULL
    int least, most;       // how many operands
    // True: done, with cli->status as the exit status.
    bool (*run)(Cli *cli, Error *error);
} Command;

typedef struct Option Option;
struct Option {
    const char *name; // without the dashes
    char letter;      // 0: none
    int commands;
    const char *argument; // NULL: a flag; "[=LAYER]": it may be left out
    const char *help;     // NULL: for the program itself, not shown
    bool (*set)(Cli *cli, const Option *option, const char *value, Error *error);
    size_t field; // offset in Cli, for the setters that share one
};

extern const Option option_table[]; // ended by a NULL name

struct Cli {
    const Command *commands; // ended by a NULL name
    const Command *command;
    char **arguments;                       // of main, as they came
    const char *operands[CLI_MAX_OPERANDS]; // of the command
    int operand_count;
    int status;

    RunOptions run;
    RunLayerRule layers[CLI_MAX_RULES];
    RunSetting settings[CLI_MAX_RULES];
    RecordOption typed[CLI_MAX_TEXTS]; // the run's options, kept with it
    const char *database;
    const char *axis, *format, *output; // --by, --format, --output
    const char *series;                 // --series
    double grams_per_kwh, watts;        // 0: not given
    const char *target;                 // --target NAME=VALUE; NULL: not given
    double target_value;
    CompareToward target_toward;
    int64_t limit, seeds, workers, top; // 0: not given
    StepBy by;                          // what is one row of a profile
    bool what_if;                       // of show;
    const char *layer;                  // of which layer; NULL: of all
    bool first_nan, script;             // of show
    bool demo, block;
    bool dry_run;
    const char *formats; // --formats
    double within;       // --within, as a share; 0: not given
    int64_t batches;     // 0: not given
    bool by_block;
    bool again; // --again
    bool list;  // --list
    bool markdown;
    bool quick; // less exactly, in less time
    bool no_history, json, quiet, verbose, trust, help, version;
    int64_t checkpoint_every, at; // steps; 0: not given
    int64_t calibrate;            // batches; 0: not given
    int64_t memory;               // bytes; 0: not given
    bool by_largest;              // --calibrate N,largest
    bool weights_only;
    const char *weights;      // NULL: those that the script makes
    const char *weights_hash; // that they must have; NULL: any
    const char *twin;         // --twin P; NULL: none
    ColorChoice color;

    char *texts[CLI_MAX_TEXTS]; // pieces of arguments, freed at the end
    int text_count;
};

// The whole program. `commands` is ended by a NULL name; without a command the first is run.
int cli_main(const Command *commands, int argc, char **argv);

// Parses into cli, which is zeroed but for `commands`.
bool cli_parse(Cli *cli, int argc, char **argv, Error *error) MUST_CHECK;
// Sets an option of a run as if it had been typed, and keeps it with the run's. Both texts are
// copied. Others are passed over: a history's rows may say anything.
bool cli_set_option(Cli *cli, const char *name, const char *value, Error *error) MUST_CHECK;
// "mpbench: text" on standard error, sanitised: one line, which a terminal gets broken at words.
void cli_print_error(const Error *error);
// The command of ours that other programs call so; NULL: nothing that is known.
const char *cli_command_called(const char *name);
// Prints text from outside, sanitised, without a line end.
void cli_print_outside(FILE *out, const char *text);
// Prints words, sanitised, on standard output, in lines that begin at `column`, where the first one
// stands, and end where a terminal does, or at 100 columns.
void cli_print_wrapped(const char *text, int column);

// The newest runs and what to do next; where there are none, how to begin.
bool cli_print_history(const Cli *cli, Error *error) MUST_CHECK;

// Before training: starts the program again with waiting threads that soon sleep, unless the
// environment settles that. Returns when there is nothing to do.
void cli_limit_spinning(char **arguments);

// ---- the commands -------------------------------------------------------------------------------

bool command_home(Cli *cli, Error *error);
bool command_watch(Cli *cli, Error *error);
bool command_run(Cli *cli, Error *error);
bool command_resume(Cli *cli, Error *error);
bool command_fork(Cli *cli, Error *error);
bool command_eval(Cli *cli, Error *error);
bool command_formats(Cli *cli, Error *error);
bool command_doctor(Cli *cli, Error *error);
bool command_bench(Cli *cli, Error *error);
bool command_profile(Cli *cli, Error *error);
bool command_ctl(Cli *cli, Error *error);
bool command_ls(Cli *cli, Error *error);
bool command_show(Cli *cli, Error *error);
bool command_compare(Cli *cli, Error *error);
bool command_matrix(Cli *cli, Error *error);
bool command_export(Cli *cli, Error *error);
bool command_report(Cli *cli, Error *error);
bool command_scan(Cli *cli, Error *error);
bool command_claims(Cli *cli, Error *error);
bool command_rm(Cli *cli, Error *error);
bool command_tag(Cli *cli, Error *error);
bool command_note(Cli *cli, Error *error);
bool command_gc(Cli *cli, Error *error);
bool command_help(Cli *cli, Error *error);
bool command_version(Cli *cli, Error *error);
