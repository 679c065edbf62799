// `mpbench note`: a text that is kept with a run.
#include <string.h>

#include "cli/cli.h"
#include "cli/history/history.h"

static bool join(const Cli *cli, char note[RECORD_TEXT_SIZE], Error *error) {
    size_t used = 0;
    note[0] = 0;
    for (int i = 1; i < cli->operand_count; i++) {
        const size_t length = strlen(cli->operands[i]), blank = used > 0;
        if (used + blank + length >= RECORD_TEXT_SIZE)
            return error_fail(error, ERROR_USAGE, "note: longer than %d bytes",
                              RECORD_TEXT_SIZE - 1);
        if (blank)
            note[used++] = ' ';
        memcpy(note + used, cli->operands[i], length + 1);
        used += length;
    }
    return true;
}

bool command_note(Cli *cli, Error *error) {
    char note[RECORD_TEXT_SIZE];
    int64_t id;
    if (!join(cli, note, error))
        return false;
    Store *store = history_open(cli, STORE_WRITE, error);
    bool done = store && store_find_run(store, cli->operands[0], &id, error) &&
                store_set_note(store, id, note, error);
    if (done && cli->json)
        history_write_set(id, "note", note);
    store_close(store);
    return done;
}
