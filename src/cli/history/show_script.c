// `mpbench show RUN --script`: into a file as it was, to the byte; a terminal is given what does it
// no harm.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/history/show.h"
#include "store/runs.h"

bool show_script(const Cli *cli, Store *store, const RunRecord *run, Error *error) {
    size_t length;
    char *text = store_read_script(store, run->script_hash, &length, error);
    if (!text)
        return false;
    if (terminal_of(stdout, cli->color).is_terminal) {
        for (char *line = text, *end; *line; line = end) {
            end = line + strcspn(line, "\n");
            const bool is_last = !*end;
            *end = 0;
            cli_print_outside(stdout, line);
            putchar('\n');
            end += !is_last;
        }
    } else {
        fwrite(text, 1, length, stdout);
    }
    free(text);
    return true;
}
