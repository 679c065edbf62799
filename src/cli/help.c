// What `mpbench`, `help` and `version` print, all of it from the two tables and the experiments.
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/sanitize.h"
#include "cli/cli.h"
#include "cli/describe.h"
#include "cli/experiments.h"
#include "cli/history/history.h"
#include "cli/print/terminal.h"
#include "cli/print/wrap.h"
#include "cli/topics.h"

bool command_version(Cli *cli, Error *error) {
    (void)cli, (void)error;
    printf("mpbench %s\n", MPBENCH_VERSION);
    return true;
}

void cli_print_wrapped(const char *text, int column) {
    enum { READABLE = 100 };
    const Terminal terminal = terminal_of(stdout, COLOR_NEVER);
    const int width = terminal_width(&terminal);
    wrap_print_outside(stdout, text, width > 0 && width < READABLE ? width : READABLE, column,
                       column);
    putchar('\n');
}

static void print_options(int mask, bool common) {
    enum { COLUMN = 30 };
    for (const Option *option = option_table; option->name; option++) {
        if (!option->help || (option->commands == FOR_ALL) != common ||
            (!common && !(option->commands & mask)))
            continue;
        char letter[8] = "   ";
        if (option->letter)
            snprintf(letter, sizeof letter, "-%c,", option->letter);
        const char *between = !option->argument || option->argument[0] == '[' ? "" : " ";
        int used = printf("  %s --%s%s%s", letter, option->name, between,
                          option->argument ? option->argument : "");
        printf("%*s", used < COLUMN ? COLUMN - used : 1, "");
        cli_print_wrapped(option->help, COLUMN);
    }
}

enum { TOP_SIZE = 8192 }; // of a script: a page

// A name of a script or a file, in its column.
static void print_name(const char *name) {
    char clean[8 * RECORD_NAME_SIZE];
    sanitize_line(clean, sizeof clean, name, strlen(name));
    printf("  %-20s ", clean);
}

static void print_experiments(void) {
    int count;
    ExperimentFile *files = experiment_list(&count);
    if (count > 0)
        puts("\nExperiments:");
    for (int i = 0; i < count; i++) {
        LuaExperimentInfo *info = calloc(1, sizeof *info);
        Error error;
        print_name(files[i].name);
        if (info && describe_experiment(files[i].path, info, &error))
            cli_print_outside(stdout, info->about);
        else if (info)
            cli_print_outside(stdout, error.text);
        putchar('\n');
        free(info);
    }
    free(files);
}

static void print_commands(const Command *commands) {
    puts("Commands:");
    for (const Command *command = commands; command->name; command++) {
        char usage[80];
        snprintf(usage, sizeof usage, "%s%s%s", command->name, command->arguments[0] ? " " : "",
                 command->arguments);
        printf("  %-34s %s\n", usage, command->summary);
    }
}

static void print_quick_start(void) {
    printf("mpbench %s: mixed precision on the workbench\n", MPBENCH_VERSION);
    puts("\n  mpbench run NAME           trains one of the experiments below, or a Lua file\n"
         "  mpbench formats 1e-4*1e-4  a number in every format, bit by bit\n"
         "  mpbench doctor             what this machine can do\n"
         "  mpbench help [COMMAND]     all of it");
    print_experiments();
}

bool cli_print_history(const Cli *cli, Error *error) {
    enum { SHOWN = 20 };
    const RunFilter filter = {.limit = SHOWN};
    Store *store;
    int count = 0;
    if (!history_open_to_read(cli, STORE_RESCUE, &store, error))
        return false;
    bool done = !store || history_print_list(cli, store, &filter, &count, error);
    done = history_tell_losses(store, done, error);
    store_close(store);
    if (done && count == 0)
        print_quick_start();
    else if (done)
        puts("\nmpbench ls lists all of them, mpbench show RUN says what is known of one, mpbench "
             "compare RUN RUN\nholds two side by side, mpbench help tells the rest.");
    return done;
}

static void print_overview(const Cli *cli) {
    puts("mpbench COMMAND [arguments] [options]\n");
    print_commands(cli->commands + 1); // the first is what happens without a command
    puts("\nOptions of every command:");
    print_options(0, true);
    puts("\nTopics of help:");
    for (const Topic *topic = topic_table; topic->name; topic++)
        printf("  %-34s %s\n", topic->name, topic->summary);
    print_experiments();
    puts("\nExit status: 0 done; 1 failed; 2 usage; 3 a device, library, format or\n"
         "terminal is not there; 4 the history cannot be opened or written, or is damaged; 128+N\n"
         "ended by signal N.");
}

static void print_command(const Command *command) {
    printf("mpbench %s%s%s [options]\n\n%s.\n", command->name, command->arguments[0] ? " " : "",
           command->arguments, command->summary);
    if (command->text)
        printf("\n%s\n", command->text);
    if (command->options & ~FOR_HELP) {
        puts("\nOptions:");
        print_options(command->options, false);
    }
    puts("\nOptions of every command:");
    print_options(0, true);
}

static void print_field(const char *label, const char *text) {
    cli_print_outside(stdout, label);
    cli_print_outside(stdout, text);
    putchar('\n');
}

// What its author wrote at its top: line by line, as it stands there.
static void print_top(const char *path) {
    char text[TOP_SIZE];
    experiment_read_top(path, text, sizeof text);
    if (text[0])
        putchar('\n');
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = 0;
        cli_print_outside(stdout, line);
        putchar('\n');
    }
}

static void print_usual(const LuaExperimentInfo *info, int which) {
    char choices[2 * PARAMETER_CHOICES_SIZE];
    parameter_list_choices(info->parameters[which].choices, choices, sizeof choices);
    cli_print_outside(stdout, info->parameters[which].value);
    if (choices[0]) {
        fputs(" (", stdout);
        cli_print_outside(stdout, choices);
        putchar(')');
    }
    putchar('\n');
}

static bool print_experiment(const char *path, Error *error) {
    LuaExperimentInfo *info = calloc(1, sizeof *info);
    if (!info)
        return error_fail(error, ERROR_MEMORY, "no memory to read the experiment");
    bool done = describe_experiment(path, info, error);
    if (done) {
        print_field(info->name, "");
        if (info->about[0])
            print_field("  ", info->about);
        print_field("  ", path);
        print_top(path);
        if (info->parameter_count > 0)
            puts("\nParameters (--set KEY=VALUE):");
        for (int i = 0; i < info->parameter_count; i++) {
            print_name(info->parameters[i].usual.name);
            print_usual(info, i);
        }
    }
    free(info);
    return done;
}

// `nearest` has been offered commands and topics.
static bool fail_unknown(const char *wanted, Nearest *nearest, Error *error) {
    int count;
    char group[256];
    ExperimentFile *files = experiment_list(&count);
    for (int i = 0; files && i < count; i++)
        nearest_offer(nearest, files[i].name);
    const char *meant = cli_command_called(wanted);
    if (!meant)
        meant = nearest->best;
    if (meant)
        error_fail(error, ERROR_USAGE,
                   "help: %.60s: no such command, topic or experiment; did you mean %s?", wanted,
                   meant);
    else if (experiment_group(wanted, group, sizeof group))
        error_fail(error, ERROR_USAGE, "help: %.60s: a folder of experiments:%s", wanted, group);
    else
        error_fail(error, ERROR_USAGE,
                   "help: %.60s: no such command, topic or experiment; `mpbench help` lists them",
                   wanted);
    free(files);
    return false;
}

bool command_help(Cli *cli, Error *error) {
    if (cli->operand_count == 0) {
        print_overview(cli);
        return true;
    }
    const char *wanted = cli->operands[0];
    Nearest nearest;
    nearest_begin(&nearest, wanted);
    for (const Command *command = cli->commands + 1; command->name; command++) {
        nearest_offer(&nearest, command->name);
        if (strcmp(command->name, wanted) == 0) {
            print_command(command);
            return true;
        }
    }
    const Topic *topic = topic_named(wanted);
    if (topic) {
        topic->print();
        return true;
    }
    for (topic = topic_table; topic->name; topic++)
        nearest_offer(&nearest, topic->name);
    char path[EXPERIMENT_PATH_SIZE];
    if (experiment_find(wanted, path, sizeof path, NULL))
        return print_experiment(path, error);
    return fail_unknown(wanted, &nearest, error);
}
