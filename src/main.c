// The door: one table of commands, nothing else. The first is what `mpbench` alone does.
#include "cli/cli.h"

static const Command commands[] = {
    {"home", 0, "", "the experiments, and where to begin", NULL, 0, 0, command_home},
    {"run", FOR_RUN, "EXPERIMENT", "train here, in the foreground",
     "EXPERIMENT is the path of a Lua file, or the name of one that ships.\n"
     "Progress goes to standard error, the result to standard output. SIGINT and SIGTERM finish\n"
     "the step and end the run; a second one ends it at once.\n"
     "Without --precision the experiment's own holds, else auto: fp16 where the device gains from\n"
     "it, else bf16, else fp32.",
     1, 1, command_run},
    {"formats", FOR_FORMATS, "[NUMBER|EXPRESSION ...]", "a number in every format, bit by bit",
     "An expression is computed in each format: + - * / ^ and parentheses, 1e-4*1e-4, 2^-25,\n"
     "0x1.8p3, inf, nan. Without one: what each format is made of.",
     0, CLI_MAX_OPERANDS, command_formats},
    {"doctor", FOR_DOCTOR, "", "devices, formats, data, limits, and what to do", NULL, 0, 0,
     command_doctor},
    {"help", FOR_HELP, "[COMMAND|TOPIC|EXPERIMENT]",
     "how to use a command, what an experiment does", NULL, 0, 1, command_help},
    {"version", 0, "", "the version", NULL, 0, 0, command_version},
    {NULL, 0, NULL, NULL, NULL, 0, 0, NULL},
};

int main(int argc, char **argv) {
    return cli_main(commands, argc, argv);
}
