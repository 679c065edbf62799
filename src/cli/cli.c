// From what was typed to the command that does it.
#include "cli/cli.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/sanitize.h"
#include "base/stops.h"
#include "base/whole_path.h"
#include "cli/experiments.h"
#include "cli/print/terminal.h"
#include "cli/print/wrap.h"

void cli_print_outside(FILE *out, const char *text) {
    char line[2 * ERROR_TEXT_SIZE];
    sanitize_line(line, sizeof line, text, strlen(text));
    fputs(line, out);
}

void cli_print_error(const Error *error) {
    const Terminal terminal = terminal_of(stderr, COLOR_NEVER);
    const int width = terminal_width(&terminal), column = fprintf(stderr, "mpbench: ");
    if (width > 0)
        wrap_print_outside(stderr, error->text, width, column, 0);
    else
        cli_print_outside(stderr, error->text); // whole, beside what other processes write
    fputc('\n', stderr);
}

// ---- options ------------------------------------------------------------------------------------

typedef struct Given { // an option as it was typed
    const Option *option;
    const char *value;
} Given;

typedef struct Parse {
    char **arguments;
    int count, at;
    Given given[CLI_MAX_TEXTS];
    int given_count;
    Cli *cli;
    Error *error;
} Parse;

static bool add_given(Parse *parse, const Option *option, const char *value) {
    if (parse->given_count == CLI_MAX_TEXTS)
        return error_fail(parse->error, ERROR_USAGE, "more than %d options", CLI_MAX_TEXTS);
    parse->given[parse->given_count++] = (Given){option, value};
    return true;
}

// What is empty is most often a variable of a shell that was never set.
static bool take_value(Parse *parse, const Option *option, const char *attached) {
    if (!attached && parse->at == parse->count)
        return error_fail(parse->error, ERROR_USAGE, "--%s: %s is missing after it", option->name,
                          option->argument);
    const char *value = attached ? attached : parse->arguments[parse->at++];
    if (!value[0])
        return error_fail(parse->error, ERROR_USAGE,
                          "--%s: its value is empty: %s is wanted, or the option left out",
                          option->name, option->argument);
    return add_given(parse, option, value);
}

static bool parse_long(Parse *parse, const char *argument) {
    const char *name = argument + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%.*s", (int)(length < 63 ? length : 63), name);
    Nearest nearest;
    nearest_begin(&nearest, wanted);
    for (const Option *option = option_table; option->name; option++) {
        if (option->help)
            nearest_offer(&nearest, option->name);
        if (strcmp(option->name, wanted) != 0)
            continue;
        if (option->argument && (equals || option->argument[0] != '['))
            return take_value(parse, option, equals ? equals + 1 : NULL);
        if (equals)
            return error_fail(parse->error, ERROR_USAGE, "--%s: takes no value", option->name);
        return add_given(parse, option, NULL);
    }
    if (nearest.best)
        return error_fail(parse->error, ERROR_USAGE, "--%s: no such option; did you mean --%s?",
                          wanted, nearest.best);
    return error_fail(parse->error, ERROR_USAGE,
                      "--%s: no such option; `mpbench help COMMAND` lists them", wanted);
}

static bool parse_letters(Parse *parse, const char *argument) {
    for (const char *letter = argument + 1; *letter; letter++) {
        const Option *option = option_table;
        while (option->name && option->letter != *letter)
            option++;
        if (!option->name)
            return error_fail(parse->error, ERROR_USAGE,
                              "%.60s: no such option; `mpbench help COMMAND` lists them", argument);
        if (option->argument)
            return take_value(parse, option, letter[1] ? letter + 1 : NULL);
        if (!add_given(parse, option, NULL))
            return false;
    }
    return true;
}

// -2^-25, -.5, -(1+1), -inf: numbers, as `formats` takes them.
static bool looks_like_number(const char *argument) {
    const char *text = argument + 1;
    return isdigit((unsigned char)*text) || *text == '.' || *text == '(' ||
           strncmp(text, "inf", 3) == 0 || strncmp(text, "nan", 3) == 0;
}

static bool add_operand(Parse *parse, const char *argument) {
    if (parse->cli->operand_count == CLI_MAX_OPERANDS)
        return error_fail(parse->error, ERROR_USAGE, "more than %d arguments", CLI_MAX_OPERANDS);
    parse->cli->operands[parse->cli->operand_count++] = argument;
    return true;
}

static bool split(Parse *parse) {
    bool only_operands = false;
    while (parse->at < parse->count) {
        const char *argument = parse->arguments[parse->at++];
        bool is_option = argument[0] == '-' && argument[1] && !looks_like_number(argument);
        bool done = true;
        if (only_operands || !is_option)
            done = add_operand(parse, argument);
        else if (strcmp(argument, "--") == 0)
            only_operands = true;
        else
            done =
                argument[1] == '-' ? parse_long(parse, argument) : parse_letters(parse, argument);
        if (!done)
            return false;
    }
    return true;
}

// Whether a run keeps it: what it was asked for, not where its history lies or what is printed. Of
// a policy file it keeps the rows, since the file may be another by then.
static bool is_of_a_run(const Option *option) {
    return option->commands != FOR_ALL && (option->commands & FOR_RUN) &&
           strcmp(option->name, "layers") != 0;
}

// For the run's record: a resume asks for the same, to the last byte.
static bool keep_typed(Cli *cli, const Given *given, Error *error) {
    RecordOption *typed = &cli->typed[cli->run.typed_count];
    const char *value = given->value ? given->value : "";
    if (strlen(value) >= sizeof typed->value)
        return error_fail(error, ERROR_USAGE, "--%s: longer than %zu bytes: shorten it",
                          given->option->name, sizeof typed->value - 1);
    snprintf(typed->name, sizeof typed->name, "%s", given->option->name);
    const char *argument = given->option->argument;
    if (argument && strcmp(argument, "FILE") == 0) // a fork may stand in another folder
        whole_path(typed->value, sizeof typed->value, value);
    else
        snprintf(typed->value, sizeof typed->value, "%s", value);
    cli->run.typed_count++;
    return true;
}

bool cli_set_option(Cli *cli, const char *name, const char *value, Error *error) {
    if (cli->run.typed_count == CLI_MAX_TEXTS)
        return error_fail(error, ERROR_USAGE, "more than %d options", CLI_MAX_TEXTS);
    for (const Option *option = option_table; option->name; option++)
        if (is_of_a_run(option) && strcmp(option->name, name) == 0) {
            const Given given = {option, value};
            return keep_typed(cli, &given, error) &&
                   option->set(cli, option, cli->typed[cli->run.typed_count - 1].value, error);
        }
    return true; // of another version, or what somebody put there
}

// The row of that name which the command has: what --by takes is not everywhere the same.
static const Option *option_of(const Command *command, const Option *option) {
    for (const Option *other = option; other->name; other++)
        if (strcmp(other->name, option->name) == 0 &&
            (other->commands == FOR_ALL || (other->commands & command->options)))
            return other;
    return NULL;
}

static bool apply(const Parse *parse) {
    Cli *cli = parse->cli;
    for (int i = 0; i < parse->given_count; i++) {
        const Option *option = option_of(cli->command, parse->given[i].option);
        if (!option)
            return error_fail(parse->error, ERROR_USAGE,
                              "%s: has no option --%s; `mpbench help %s` lists those it has",
                              cli->command->name, parse->given[i].option->name, cli->command->name);
        if (!option->set(cli, option, parse->given[i].value, parse->error))
            return false;
        // The runs of a matrix keep what each of them is given.
        bool is_kept = is_of_a_run(option) && !(cli->command->options & FOR_MATRIX);
        if (is_kept && !keep_typed(cli, &parse->given[i], parse->error))
            return false;
    }
    return true;
}

// ---- commands -----------------------------------------------------------------------------------

const char *cli_command_called(const char *name) {
    static const char *const others[][2] = {
        {"train", "run"},       {"fit", "run"},       {"start", "run"},    {"list", "ls"},
        {"runs", "ls"},         {"history", "ls"},    {"delete", "rm"},    {"remove", "rm"},
        {"diff", "compare"},    {"evaluate", "eval"}, {"test", "eval"},    {"benchmark", "bench"},
        {"continue", "resume"}, {"info", "show"},     {"sweep", "matrix"}, {"ui", "watch"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i][0], name) == 0)
            return others[i][1];
    return NULL;
}

// The first operand names the command; the rest are its own.
static bool find_command(Cli *cli, Error *error) {
    cli->command = cli->commands;
    if (cli->operand_count == 0)
        return true;
    const char *wanted = cli->operands[0];
    Nearest nearest;
    nearest_begin(&nearest, wanted);
    for (const Command *command = cli->commands + 1; command->name; command++) {
        nearest_offer(&nearest, command->name);
        if (strcmp(command->name, wanted) != 0)
            continue;
        cli->command = command;
        cli->operand_count--;
        memmove(cli->operands, cli->operands + 1,
                (size_t)cli->operand_count * sizeof *cli->operands);
        return true;
    }
    char path[EXPERIMENT_PATH_SIZE];
    if (experiment_find(wanted, path, sizeof path, NULL))
        return error_fail(error, ERROR_USAGE, "%.60s: an experiment; `mpbench run %.60s` trains it",
                          wanted, wanted);
    const char *meant = cli_command_called(wanted);
    if (nearest.best || meant)
        return error_fail(error, ERROR_USAGE, "%.60s: no such command; did you mean %s?", wanted,
                          meant ? meant : nearest.best);
    char group[256];
    if (experiment_group(wanted, group, sizeof group))
        return error_fail(error, ERROR_USAGE,
                          "%.60s: a folder of experiments:%s; `mpbench run NAME` trains one",
                          wanted, group);
    return error_fail(error, ERROR_USAGE, "%.60s: no such command; `mpbench help` lists them",
                      wanted);
}

static bool check_operands(const Cli *cli, Error *error) {
    const Command *command = cli->command;
    if (cli->operand_count > 0 && cli->operand_count < command->least)
        return error_fail(error, ERROR_USAGE,
                          "%s: one more is wanted beside %.60s: %s %s; `mpbench help %s` explains",
                          command->name, cli->operands[cli->operand_count - 1], command->name,
                          command->arguments, command->name);
    if (cli->operand_count < command->least)
        return error_fail(error, ERROR_USAGE, "%s: %s is missing; `mpbench help %s` explains",
                          command->name, command->arguments, command->name);
    if (cli->operand_count > command->most)
        return error_fail(error, ERROR_USAGE, "%s: %.60s is one argument too many", command->name,
                          cli->operands[command->most]);
    return true;
}

bool cli_parse(Cli *cli, int argc, char **argv, Error *error) {
    Parse *parse = calloc(1, sizeof *parse);
    if (!parse)
        return error_fail(error, ERROR_MEMORY, "no memory for the command line");
    cli->run.layers = cli->layers;
    cli->run.settings = cli->settings;
    cli->run.typed = cli->typed;
    cli->run.seed = 1;
    *parse = (Parse){.arguments = argv, .count = argc, .at = 1, .cli = cli, .error = error};
    bool done = split(parse) && find_command(cli, error) && apply(parse);
    if (done && !cli->help && !cli->version)
        done = check_operands(cli, error);
    free(parse);
    return done;
}

static bool dispatch(Cli *cli, int argc, char **argv, Error *error) {
    if (!cli_parse(cli, argc, argv, error))
        return false;
    if (cli->version)
        return command_version(cli, error);
    if (cli->help) { // of the command, as `help COMMAND`
        cli->operands[0] = cli->command->name;
        cli->operand_count = cli->command != cli->commands;
        return command_help(cli, error);
    }
    return cli->command->run(cli, error);
}

int cli_main(const Command *commands, int argc, char **argv) {
    Error error = {.code = ERROR_NONE};
    Cli *cli = calloc(1, sizeof *cli);
    if (!cli) {
        error_fail(&error, ERROR_MEMORY, "no memory to start");
        cli_print_error(&error);
        return error_exit_status(error.code);
    }
    cli->commands = commands;
    cli->arguments = argv;
    stops_put_off();          // until no lock of the history is held
    signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error, which can be told
    bool done = dispatch(cli, argc, argv, &error);
    // A result that could not be written is none: a full disk must not look like success.
    if (done && (fflush(stdout) != 0 || ferror(stdout)))
        done = error_fail(&error, ERROR_FAILED, "standard output: the result cannot be written");
    if (!done)
        cli_print_error(&error);
    int status = done ? cli->status : error_exit_status(error.code);
    for (int i = 0; i < cli->text_count; i++)
        free(cli->texts[i]);
    free(cli);
    return status;
}
