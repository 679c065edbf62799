// `mpbench tag`: a word to find a run by.
#include "cli/cli.h"
#include "cli/history/history.h"

bool command_tag(Cli *cli, Error *error) {
    int64_t id;
    Store *store = history_open(cli, STORE_WRITE, error);
    bool done = store && store_find_run(store, cli->operands[0], &id, error) &&
                store_set_tag(store, id, cli->operands[1], error);
    if (done && cli->json)
        history_write_set(id, "tag", cli->operands[1]);
    store_close(store);
    return done;
}
