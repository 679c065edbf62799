// tests/fuzz/orders_target.h: what the fuzz programs promise about orders to a worker.
//
// Whatever another program puts into a row of the table of orders: the worker claims it once, does
// it or refuses it, and the row has an answer. An input is the verb, a zero, the argument; it is
// inserted past the functions that would refuse it.
#pragma once

#include "run/run_private.h"
#include "store/commands.h"
#include "tests/fuzz/driver.h"
#include "tests/unit/store_fixture.h"

static size_t fuzz_orders_seed(int index, uint8_t *out) {
    static const char *const orders[][2] = {
        {"pause", ""},
        {"resume", ""},
        {"stop", ""},
        {"checkpoint", ""},
        {"set", "lr=1e-3"},
        {"set", "layer.head=fp32"},
        {"set", "lr.1=0.5"},
        {"set", "layer.*=auto"},
        {"set", "loss_scale=1024"},
        {"set", "loss_scale=torch"},
    };
    if (index >= (int)(sizeof orders / sizeof *orders))
        return 0;
    size_t verb = strlen(orders[index][0]) + 1, argument = strlen(orders[index][1]);
    memcpy(out, orders[index][0], verb);
    memcpy(out + verb, orders[index][1], argument);
    return verb + argument;
}

typedef struct OrdersFuzz {
    Store *store;
    int64_t id;
    Run *run;
    int since_commit;
} OrdersFuzz;

static inline OrdersFuzz *fuzz_orders_begin(void) {
    static OrdersFuzz fuzz;
    static RunOptions options = {.device = "cpu", .threads = 1, .seed = 1};
    if (fuzz.store)
        return &fuzz;
    make_folder();
    atexit(remove_folder);
    fuzz.store = fresh_store("orders.db");
    RunRecord record = some_run("cnn", "fp16");
    record.status = RUN_RUNNING;
    fuzz.id = add_run(fuzz.store, record);
    fuzz.run = run_new(&options, &error);
    if (!fuzz.run || !run_configure(fuzz.run, "cnn", "fp16", NULL, 0, &error) ||
        policy_add_layer(fuzz.run->engine->policy, "head", 0, &error) < 0)
        abort();
    return &fuzz;
}

static inline int64_t fuzz_insert_order(OrdersFuzz *fuzz, const uint8_t *bytes, size_t size) {
    const uint8_t *end = memchr(bytes, 0, size);
    size_t verb = end ? (size_t)(end - bytes) : size, rest = end ? verb + 1 : size;
    sqlite3_stmt *insert = NULL;
    sqlite3_prepare_v2(fuzz->store->db,
                       "INSERT INTO commands (run, created_ms, state, verb, argument) "
                       "VALUES (?1, 0, 'queued', CAST(?2 AS TEXT), CAST(?3 AS TEXT))",
                       -1, &insert, NULL);
    sqlite3_bind_int64(insert, 1, fuzz->id);
    sqlite3_bind_blob(insert, 2, bytes, (int)verb, SQLITE_STATIC);
    sqlite3_bind_blob(insert, 3, size > rest ? (const void *)(bytes + rest) : "",
                      (int)(size - rest), SQLITE_STATIC);
    bool done = sqlite3_step(insert) == SQLITE_DONE;
    sqlite3_finalize(insert);
    return done ? sqlite3_last_insert_rowid(fuzz->store->db) : 0;
}

static int fuzz_orders_one(const uint8_t *bytes, size_t size) {
    enum { COMMIT_EVERY = 500, MOST = 4 };
    OrdersFuzz *fuzz = fuzz_orders_begin();
    RunCommand claimed[MOST], kept;
    Error why = {0};
    int count = 0;
    if (fuzz->since_commit == 0 && !store_begin(fuzz->store, &why))
        return 1;
    int64_t id = fuzz_insert_order(fuzz, bytes, size);
    bool good =
        id > 0 && store_claim_commands(fuzz->store, fuzz->id, "token", claimed, MOST, &count, &why);
    for (int i = 0; good && i < count; i++) {
        run_obey(fuzz->run, &claimed[i]);
        good = store_answer_command(fuzz->store, &claimed[i], &why);
    }
    good = good && store_read_command(fuzz->store, id, &kept, &why) &&
           (kept.state == COMMAND_DONE || kept.state == COMMAND_REFUSED) && kept.answer[0];
    good = good && count <= 1 &&
           store_claim_commands(fuzz->store, fuzz->id, "token", claimed, MOST, &count, &why) &&
           count == 0;
    if (++fuzz->since_commit == COMMIT_EVERY) {
        good = good && store_execute(fuzz->store, "DELETE FROM commands", "orders", &why) &&
               store_commit(fuzz->store, &why);
        fuzz->since_commit = 0;
    }
    return !good;
}
