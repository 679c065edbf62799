// `mpbench` alone, `mpbench --demo` and `mpbench watch RUN`: the screen; where standard output is
// no terminal, the newest runs.
#include <unistd.h>

#include "cli/cli.h"
#include "cli/history/history.h"
#include "cli/screen/screen.h"

bool command_home(Cli *cli, Error *error) {
    ScreenDemo demo;
    if (!cli->demo)
        return isatty(STDOUT_FILENO) ? screen_open(cli, NULL, NULL, error)
                                     : cli_print_history(cli, error);
    if (!screen_unpack_demo(&demo, error))
        return false;
    bool done = screen_open(cli, NULL, &demo, error);
    screen_forget_demo(&demo);
    return done;
}

bool command_watch(Cli *cli, Error *error) {
    return history_check_there(cli, error) && screen_open(cli, cli->operands[0], NULL, error);
}
