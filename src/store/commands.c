// Orders to a worker: each is claimed once and answered.
#include "store/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "store/store_private.h"

enum {
    MOST_WAITING = 1000, // orders of one run
    PASS = 1000,         // rows looked through in one transaction
    MOST_PASSES = 1000,
    VERB_LIST_SIZE = 128,
};

static const struct {
    const char *name, *when; // when it is answered
} verbs[COMMAND_VERBS] = {[VERB_PAUSE] = {"pause", "at the next step"},
                          [VERB_RESUME] = {"resume", "at the next step"},
                          [VERB_STOP] = {"stop", "as the run ends"},
                          [VERB_CHECKPOINT] = {"checkpoint", "at the next step"},
                          [VERB_SET] = {"set", "at the next step"}};
static const char *const state_names[] = {"queued", "claimed", "done", "refused"};

const char *command_verb_when(const char *text) {
    CommandVerb verb;
    return command_verb_parse(text, &verb) ? verbs[verb].when : "";
}

bool command_verb_parse(const char *text, CommandVerb *verb) {
    for (int i = 0; i < COMMAND_VERBS; i++)
        if (strcmp(text, verbs[i].name) == 0) {
            *verb = (CommandVerb)i;
            return true;
        }
    return false;
}

bool command_is(const RunCommand *command, CommandVerb verb) {
    return strcmp(command->verb, verbs[verb].name) == 0;
}

static bool refuse_verb(const char *verb, Error *error) {
    char list[VERB_LIST_SIZE] = "";
    Nearest nearest;
    nearest_begin(&nearest, verb);
    for (size_t i = 0, used = 0; i < COMMAND_VERBS && used < sizeof list; i++) {
        nearest_offer(&nearest, verbs[i].name);
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", verbs[i].name);
    }
    return error_fail(error, ERROR_USAGE, "%.40s: no such order%s%s: there are %s", verb,
                      nearest.best ? "; did you mean " : "", nearest.best ? nearest.best : "",
                      list);
}

static bool check_order(const char *verb, const char *argument, Error *error) {
    CommandVerb known;
    if (!command_verb_parse(verb, &known))
        return refuse_verb(verb, error);
    if (strlen(argument) >= COMMAND_ARGUMENT_SIZE)
        return error_fail(error, ERROR_USAGE, "%s: its value is longer than %d bytes: shorten it",
                          verb, COMMAND_ARGUMENT_SIZE - 1);
    if (known != VERB_SET && argument[0])
        return error_fail(error, ERROR_USAGE, "%s: takes nothing after it, and %.60s is too much",
                          verb, argument);
    const char *equals = strchr(argument, '=');
    if (known == VERB_SET && (!equals || equals == argument))
        return error_fail(error, ERROR_USAGE, "set: write KEY=VALUE, such as layer.head=fp32");
    return true;
}

// ---- sending ------------------------------------------------------------------------------------

static bool check_run(Store *store, int64_t run, Error *error) {
    Query query;
    char status[16] = "";
    if (!query_begin(&query, store, "SELECT status FROM runs WHERE id = ?", error))
        return false;
    query_put_integer(&query, run);
    while (query_next(&query))
        query_text(&query, 0, status, sizeof status);
    if (!query_end(&query, "the run cannot be read", error))
        return false;
    if (!status[0])
        return error_fail(error, ERROR_USAGE, "no run %" PRId64 " in %s: see mpbench ls", run,
                          store->path);
    if (strcmp(status, "finished") == 0)
        return error_fail(error, ERROR_FAILED,
                          "run %" PRId64 " is over (finished): mpbench fork %" PRId64
                          " --at STEP trains on from there in another way",
                          run, run);
    if (strcmp(status, "running") != 0 && strcmp(status, "paused") != 0)
        return error_fail(error, ERROR_FAILED,
                          "run %" PRId64 " is over (%s): mpbench resume goes on with it", run,
                          status);
    bool is_trained;
    if (!store_is_trained(store, run, &is_trained, error))
        return false;
    return is_trained ||
           error_fail(error, ERROR_FAILED,
                      "the worker of run %" PRId64 " is gone: mpbench resume goes on with it", run);
}

static bool check_waiting(Store *store, int64_t run, Error *error) {
    Query query;
    int64_t waiting = 0;
    if (!query_begin(&query, store,
                     "SELECT count(*) FROM (SELECT 1 FROM commands WHERE run = ? AND"
                     " state = 'queued' LIMIT ?)",
                     error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, MOST_WAITING);
    while (query_next(&query))
        waiting = query_integer(&query, 0);
    if (!query_end(&query, "the orders of the run cannot be read", error))
        return false;
    return waiting < MOST_WAITING ||
           error_fail(error, ERROR_TAKEN,
                      "%d orders wait for run %" PRId64 " already: try again when it took them",
                      MOST_WAITING, run);
}

static bool add_order(Store *store, int64_t run, const char *verb, const char *argument,
                      int64_t *id, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "INSERT INTO commands (run, created_ms, state, verb, argument)"
                     " VALUES (?, ?, 'queued', ?, ?) RETURNING id",
                     error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, store_wall_ms());
    query_put_text(&query, verb);
    query_put_text(&query, argument);
    while (query_next(&query))
        *id = query_integer(&query, 0);
    return query_end(&query, "the order cannot be sent", error);
}

bool store_send_command(Store *store, int64_t run, const char *verb, const char *argument,
                        int64_t *id, Error *error) {
    const char *value = argument ? argument : "";
    if (!check_order(verb, value, error) || !store_begin(store, error))
        return false;
    bool done = check_run(store, run, error) && check_waiting(store, run, error) &&
                add_order(store, run, verb, value, id, error);
    return store_end(store, done, error);
}

bool store_read_command(Store *store, int64_t id, RunCommand *command, Error *error) {
    Query query;
    *command = (RunCommand){.step = -1};
    if (!query_begin(
            &query, store,
            "SELECT id, run, state, verb, argument, step, answer FROM commands WHERE id = ?",
            error))
        return false;
    query_put_integer(&query, id);
    while (query_next(&query)) {
        command->id = query_integer(&query, 0);
        command->run = query_integer(&query, 1);
        const char *state = query_word(&query, 2);
        for (int i = 0; i < 4; i++)
            if (strcmp(state, state_names[i]) == 0)
                command->state = (CommandState)i;
        query_text(&query, 3, command->verb, sizeof command->verb);
        query_text(&query, 4, command->argument, sizeof command->argument);
        if (!query_is_null(&query, 5))
            command->step = query_integer(&query, 5);
        query_text(&query, 6, command->answer, sizeof command->answer);
    }
    if (!query_end(&query, "the order cannot be read", error))
        return false;
    return command->id != 0 ||
           error_fail(error, ERROR_USAGE, "no order %" PRId64 " in %s", id, store->path);
}

static bool add_setting(Query *query, RunCommand **orders, int *count) {
    RunCommand *more = realloc(*orders, (size_t)(*count + 1) * sizeof *more);
    if (!more)
        return false;
    *orders = more;
    RunCommand *order = &more[(*count)++];
    *order = (RunCommand){.state = COMMAND_DONE, .step = query_integer(query, 1)};
    snprintf(order->verb, sizeof order->verb, "%s", verbs[VERB_SET].name);
    query_text(query, 0, order->argument, sizeof order->argument);
    return true;
}

bool store_list_settings(Store *store, int64_t run, int64_t from, RunCommand **orders, int *count,
                         Error *error) {
    enum { MOST = 100000 };
    Query query;
    bool has_memory = true;
    *orders = NULL;
    *count = 0;
    if (!query_begin(&query, store,
                     "SELECT argument, step FROM commands WHERE run = ? AND state = 'done' AND"
                     " verb = 'set' AND step >= ? ORDER BY step, answered_ms, id LIMIT ?",
                     error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, from);
    query_put_integer(&query, MOST);
    while (has_memory && query_next(&query))
        has_memory = add_setting(&query, orders, count);
    return query_end(&query, "the orders of the run cannot be read", error) &&
           (has_memory || error_fail(error, ERROR_MEMORY, "no memory for the orders of the run"));
}

// ---- the worker's half --------------------------------------------------------------------------

// Refuses, among the oldest rows that wait, what other programs wrote and no order is.
static bool refuse_nonsense(Store *store, int64_t run, int64_t *refused, Error *error) {
    char list[VERB_LIST_SIZE] = "", sql[640];
    for (size_t i = 0, used = 0; i < COMMAND_VERBS && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s'%s'", i ? "," : "",
                                 verbs[i].name);
    snprintf(
        sql, sizeof sql,
        "UPDATE commands SET state = 'refused', answered_ms = ?,"
        " answer = 'no order that this worker knows'"
        " WHERE id IN (SELECT id FROM commands WHERE run = ? AND state = 'queued'"
        " ORDER BY id LIMIT %d) AND (verb NOT IN (%s)"
        " OR length(CAST(argument AS BLOB)) >= %d OR instr(CAST(argument AS BLOB), x'00') > 0)",
        PASS, list, COMMAND_ARGUMENT_SIZE);
    Query query;
    if (!query_begin(&query, store, sql, error))
        return false;
    query_put_integer(&query, store_wall_ms());
    query_put_integer(&query, run);
    query_next(&query);
    *refused = query_changes(&query);
    return query_end(&query, "the orders of the run cannot be read", error);
}

static void sort_commands(RunCommand *commands, int count) { // RETURNING promises no order
    for (int i = 1; i < count; i++) {
        RunCommand moved = commands[i];
        int at = i;
        for (; at > 0 && commands[at - 1].id > moved.id; at--)
            commands[at] = commands[at - 1];
        commands[at] = moved;
    }
}

static bool claim_oldest(Store *store, int64_t run, const char *token, RunCommand *commands,
                         int most, int *count, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "UPDATE commands SET state = 'claimed', token = ? WHERE state = 'queued' AND"
                     " id IN (SELECT id FROM commands WHERE run = ? AND state = 'queued'"
                     " ORDER BY id LIMIT ?) RETURNING id, verb, argument",
                     error))
        return false;
    query_put_text(&query, token);
    query_put_integer(&query, run);
    query_put_integer(&query, most < PASS ? most : PASS);
    while (query_next(&query) && *count < most) {
        RunCommand *command = &commands[(*count)++];
        *command = (RunCommand){.run = run, .state = COMMAND_CLAIMED, .step = -1};
        command->id = query_integer(&query, 0);
        query_text(&query, 1, command->verb, sizeof command->verb);
        query_text(&query, 2, command->argument, sizeof command->argument);
    }
    sort_commands(commands, *count);
    return query_end(&query, "the orders of the run cannot be claimed", error);
}

// The first rows that wait are cleared of nonsense, so what is claimed among them is none.
static bool claim_pass(Store *store, int64_t run, const char *token, RunCommand *commands, int most,
                       int *count, int64_t *refused, Error *error) {
    *count = 0;
    if (!store_begin(store, error))
        return false;
    bool done = refuse_nonsense(store, run, refused, error);
    if (done && *refused < PASS)
        done = claim_oldest(store, run, token, commands, most, count, error);
    if (!store_end(store, done, error)) {
        *count = 0;
        return false;
    }
    return true;
}

bool store_claim_commands(Store *store, int64_t run, const char *token, RunCommand *commands,
                          int most, int *count, Error *error) {
    int64_t refused = 0;
    *count = 0;
    // Most calls find nothing, and need no lock of a writer for that.
    Query query;
    bool waits = false;
    if (!query_begin(&query, store,
                     "SELECT 1 FROM commands WHERE run = ? AND state = 'queued' LIMIT 1", error))
        return false;
    query_put_integer(&query, run);
    while (query_next(&query))
        waits = true;
    if (!query_end(&query, "the orders of the run cannot be read", error))
        return false;
    if (!waits || most <= 0)
        return true;
    int pass = 0;
    do {
        if (!claim_pass(store, run, token, commands, most, count, &refused, error))
            return false;
    } while (*count == 0 && refused > 0 && ++pass < MOST_PASSES);
    return true;
}

bool store_answer_command(Store *store, const RunCommand *command, Error *error) {
    Query query;
    const char *state = command->state == COMMAND_DONE ? "done" : "refused";
    if (!query_begin(&query, store,
                     "UPDATE commands SET state = ?, step = ?, answer = ?, answered_ms = ?"
                     " WHERE id = ? AND run = ? AND state = 'claimed'",
                     error))
        return false;
    query_put_text(&query, state);
    query_put_known(&query, command->step < 0 ? RECORD_UNKNOWN : command->step);
    query_put_text(&query, command->answer);
    query_put_integer(&query, store_wall_ms());
    query_put_integer(&query, command->id);
    query_put_integer(&query, command->run);
    query_next(&query);
    int64_t changes = query_changes(&query);
    if (!query_end(&query, "the order cannot be answered", error))
        return false;
    return changes > 0 ||
           error_fail(error, ERROR_FAILED,
                      "order %" PRId64 " was answered before, or is not claimed", command->id);
}

bool store_refuse_commands(Store *store, int64_t run, const char *answer, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "UPDATE commands SET state = 'refused', answer = ?, answered_ms = ?"
                     " WHERE run = ? AND state IN ('queued', 'claimed')",
                     error))
        return false;
    query_put_text(&query, answer);
    query_put_integer(&query, store_wall_ms());
    query_put_integer(&query, run);
    query_next(&query);
    return query_end(&query, "the orders that wait cannot be refused", error);
}

bool store_last_command(Store *store, int64_t run, int64_t *id, Error *error) {
    // A look into the index for each state; the largest over all of them would read every row.
    Query query;
    *id = 0;
    for (int i = 0; i < 4; i++) {
        if (!query_begin(
                &query, store,
                "SELECT id FROM commands WHERE run = ? AND state = ? ORDER BY id DESC LIMIT 1",
                error))
            return false;
        query_put_integer(&query, run);
        query_put_text(&query, state_names[i]);
        while (query_next(&query))
            if (query_integer(&query, 0) > *id)
                *id = query_integer(&query, 0);
        if (!query_end(&query, "the orders of the run cannot be read", error))
            return false;
    }
    return true;
}
