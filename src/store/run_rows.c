// The rows of the table runs: one list of columns, from which every statement over them is made.
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "store/store_private.h"

typedef enum FieldKind {
    FIELD_TEXT,
    FIELD_INTEGER,
    FIELD_INT,      // in a C int
    FIELD_KNOWN,    // NULL: RECORD_UNKNOWN
    FIELD_POSITIVE, // NULL: 0
    FIELD_NUMBER,   // NULL: NaN
    FIELD_SECONDS,  // never NULL
    FIELD_STATUS,
    FIELD_SCRIPT, // a hash that the table of scripts knows
} FieldKind;

typedef struct Field {
    const char *column;
    FieldKind kind;
    size_t offset, size;
    bool is_fixed; // at the start of the run
} Field;

#define AT(member) offsetof(RunRecord, member), sizeof(((RunRecord *)0)->member)

static const Field fields[] = {
    {"name", FIELD_TEXT, AT(name), true},
    {"experiment", FIELD_TEXT, AT(experiment), true},
    {"tag", FIELD_TEXT, AT(tag), true},
    {"note", FIELD_TEXT, AT(note), true},
    {"status", FIELD_STATUS, AT(status), false},
    {"error", FIELD_TEXT, AT(error), false},
    {"precision", FIELD_TEXT, AT(precision), false},
    {"scale_rule", FIELD_TEXT, AT(scale_rule), false},
    {"device", FIELD_TEXT, AT(device), false},
    {"device_name", FIELD_TEXT, AT(device_name), false},
    {"threads", FIELD_INT, AT(threads), false},
    {"seed", FIELD_INTEGER, AT(seed), true},
    {"step", FIELD_INTEGER, AT(step), false},
    {"applied", FIELD_INTEGER, AT(applied), false},
    {"skipped", FIELD_INTEGER, AT(skipped), false},
    {"total_steps", FIELD_POSITIVE, AT(total_steps), false},
    {"epoch", FIELD_POSITIVE, AT(epoch), false},
    {"epochs", FIELD_POSITIVE, AT(epochs), false},
    {"samples", FIELD_POSITIVE, AT(samples), false},
    {"loss_first", FIELD_NUMBER, AT(loss_first), false},
    {"loss_last", FIELD_NUMBER, AT(loss_last), false},
    {"loss_best", FIELD_NUMBER, AT(loss_best), false},
    {"scale_last", FIELD_NUMBER, AT(scale_last), false},
    {"scale_min", FIELD_NUMBER, AT(scale_min), false},
    {"scale_max", FIELD_NUMBER, AT(scale_max), false},
    {"steps_per_s", FIELD_NUMBER, AT(steps_per_s), false},
    {"samples_per_s", FIELD_NUMBER, AT(samples_per_s), false},
    {"wall_s", FIELD_SECONDS, AT(wall_s), false},
    {"cast_share", FIELD_NUMBER, AT(cast_share), false},
    {"energy_j", FIELD_NUMBER, AT(energy_j), false},
    {"memory_peak", FIELD_KNOWN, AT(memory.peak), false},
    {"memory_weights", FIELD_KNOWN, AT(memory.weights), false},
    {"memory_masters", FIELD_KNOWN, AT(memory.masters), false},
    {"memory_activations", FIELD_KNOWN, AT(memory.activations), false},
    {"memory_gradients", FIELD_KNOWN, AT(memory.gradients), false},
    {"memory_optimizer", FIELD_KNOWN, AT(memory.optimizer), false},
    {"memory_workspace", FIELD_KNOWN, AT(memory.workspace), false},
    {"created_ms", FIELD_INTEGER, AT(created_ms), true},
    {"ended_ms", FIELD_POSITIVE, AT(ended_ms), false},
    {"parent", FIELD_POSITIVE, AT(parent), true},
    {"parent_step", FIELD_POSITIVE, AT(parent_step), true},
    {"matrix", FIELD_POSITIVE, AT(matrix), true},
    {"script_path", FIELD_TEXT, AT(script_path), false},
    {"script_hash", FIELD_SCRIPT, AT(script_hash), false},
};

enum { FIELDS = sizeof fields / sizeof *fields };

// ---- losses: not finite ones are words in loss_kinds --------------------------------------------

static const char *kind_word(double value) {
    return isfinite(value) ? "finite" : isnan(value) ? "nan" : value > 0 ? "+inf" : "-inf";
}

static void format_kinds(const RunRecord *record, char text[32]) {
    snprintf(text, 32, "%s %s %s", kind_word(record->loss_first), kind_word(record->loss_last),
             kind_word(record->loss_best));
}

static double value_of_kind(double value, const char *kind) {
    if (!isnan(value))
        return value;
    return strcmp(kind, "+inf") == 0   ? (double)INFINITY
           : strcmp(kind, "-inf") == 0 ? -(double)INFINITY
                                       : (double)NAN;
}

static void apply_kinds(RunRecord *record, const char *kinds) {
    char words[3][8] = {"", "", ""};
    record->has_loss = kinds[0] != 0;
    if (strcmp(kinds, "finite finite finite") == 0)
        return;
    if (sscanf(kinds, "%7s %7s %7s", words[0], words[1], words[2]) < 1)
        return;
    record->loss_first = value_of_kind(record->loss_first, words[0]);
    record->loss_last = value_of_kind(record->loss_last, words[1]);
    record->loss_best = value_of_kind(record->loss_best, words[2]);
}

// ---- reading ------------------------------------------------------------------------------------

// Text under construction; statements are far shorter than their room, which a test proves.
typedef struct Sql {
    char *text;
    size_t used;
} Sql;

static void add(Sql *sql, const char *text) {
    size_t length = strlen(text);
    if (length >= RUN_SQL_SIZE - sql->used)
        length = RUN_SQL_SIZE - 1 - sql->used;
    memcpy(sql->text + sql->used, text, length);
    sql->used += length;
    sql->text[sql->used] = 0;
}

void run_rows_select(char text[RUN_SQL_SIZE], const char *rest) {
    Sql sql = {text, 0};
    add(&sql, "SELECT runs.id, loss_kinds, " WORKER_COLUMNS);
    for (int i = 0; i < FIELDS; i++) {
        add(&sql, ", ");
        add(&sql, fields[i].column);
    }
    // Only for runs that go on: thousands that are over need no look at workers.
    add(&sql, " FROM runs LEFT JOIN workers w ON w.run ="
              " CASE WHEN status IN ('running', 'paused') THEN runs.id END ");
    add(&sql, rest);
}

enum { WORKER_COLUMN = 2, FIRST_FIELD = 10 }; // columns of that SELECT

static void get_field(Query *query, int column, const Field *field, RunRecord *record) {
    void *at = (char *)record + field->offset;
    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_SCRIPT: query_text(query, column, at, field->size); break;
    case FIELD_INTEGER:
    case FIELD_POSITIVE: *(int64_t *)at = query_integer(query, column); break;
    case FIELD_INT: *(int *)at = (int)query_integer(query, column); break;
    case FIELD_KNOWN: *(int64_t *)at = query_known(query, column); break;
    case FIELD_NUMBER:
    case FIELD_SECONDS: *(double *)at = query_number(query, column); break;
    case FIELD_STATUS:
        if (!run_status_parse(query_word(query, column), at))
            *(RunStatus *)at = RUN_DEAD;
        break;
    }
}

// Nobody wrote down why it ended: what can be known of it.
static void tell_death(RunRecord *record, const WorkerId *worker, const WorkerId *here) {
    bool is_before_boot =
        worker && strcmp(worker->host, here->host) == 0 && strcmp(worker->boot, here->boot) != 0;
    if (!record->error[0])
        snprintf(record->error, sizeof record->error,
                 "%s; `mpbench resume %" PRId64 "` goes on from its last checkpoint",
                 is_before_boot ? "the machine went down while it trained"
                                : "its process ended without a word: it was killed, as by a second "
                                  "Ctrl-C or where memory runs out, or could not write the history",
                 record->id);
}

// A run goes on while its worker does. One without a worker had none yet, or lost it.
static void settle_status(Query *query, RunRecord *record, const WorkerId *here) {
    if (!run_status_goes_on(record->status))
        return;
    WorkerRow row;
    WorkerLife life = WORKER_NONE;
    if (worker_row_get(query, WORKER_COLUMN, &row))
        life = worker_judge(&row, here, &(pid_t){0});
    int64_t age = store_wall_ms() - record->created_ms;
    bool is_new = life == WORKER_NONE && age > -5000 && age < 5000;
    if (life == WORKER_DEAD || (life == WORKER_NONE && !is_new)) {
        record->status = RUN_DEAD;
        tell_death(record, life == WORKER_DEAD ? &row.id : NULL, here);
    }
    record->stale = life == WORKER_STALE;
}

void run_rows_get(Query *query, RunRecord *record, const WorkerId *here) {
    record->id = query_integer(query, 0);
    for (int i = 0; i < FIELDS; i++)
        get_field(query, FIRST_FIELD + i, &fields[i], record);
    apply_kinds(record, query_word(query, 1));
    settle_status(query, record, here);
}

// ---- writing ------------------------------------------------------------------------------------

static void put_field(Query *query, const Field *field, const RunRecord *record) {
    const void *at = (const char *)record + field->offset;
    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_SCRIPT: query_put_text(query, at); break;
    case FIELD_INTEGER: query_put_integer(query, *(const int64_t *)at); break;
    case FIELD_POSITIVE: query_put_positive(query, *(const int64_t *)at); break;
    case FIELD_INT: query_put_integer(query, *(const int *)at); break;
    case FIELD_KNOWN: query_put_known(query, *(const int64_t *)at); break;
    case FIELD_NUMBER: query_put_number(query, *(const double *)at); break;
    case FIELD_SECONDS:
        query_put_number(query, isfinite(*(const double *)at) ? *(const double *)at : 0);
        break;
    case FIELD_STATUS: query_put_text(query, run_status_name(*(const RunStatus *)at)); break;
    }
}

static const char *parameter_text(const Field *field) {
    return field->kind == FIELD_SCRIPT ? "(SELECT hash FROM scripts WHERE hash = ?)" : "?";
}

bool run_rows_insert(Store *store, RunRecord *record, Error *error) {
    char text[RUN_SQL_SIZE], kinds[32];
    Sql sql = {text, 0};
    add(&sql, "INSERT INTO runs (loss_kinds");
    for (int i = 0; i < FIELDS; i++) {
        add(&sql, ", ");
        add(&sql, fields[i].column);
    }
    add(&sql, ") VALUES (?");
    for (int i = 0; i < FIELDS; i++) {
        add(&sql, ", ");
        add(&sql, parameter_text(&fields[i]));
    }
    add(&sql, ") RETURNING id");
    format_kinds(record, kinds);
    Query query;
    if (!query_begin(&query, store, text, error))
        return false;
    query_put_text(&query, record->has_loss ? kinds : NULL);
    for (int i = 0; i < FIELDS; i++)
        put_field(&query, &fields[i], record);
    while (query_next(&query))
        record->id = query_integer(&query, 0);
    return query_end(&query, "the run cannot be added to the history", error);
}

bool run_rows_update(Store *store, const RunRecord *record, Error *error) {
    char text[RUN_SQL_SIZE], kinds[32];
    Sql sql = {text, 0};
    add(&sql, "UPDATE runs SET loss_kinds = ?");
    for (int i = 0; i < FIELDS; i++) {
        if (fields[i].is_fixed)
            continue;
        bool is_script = fields[i].kind == FIELD_SCRIPT;
        add(&sql, ", ");
        add(&sql, fields[i].column);
        add(&sql, is_script ? " = coalesce(" : " = ");
        add(&sql, parameter_text(&fields[i]));
        add(&sql, is_script ? ", script_hash)" : "");
    }
    add(&sql, " WHERE id = ?");
    format_kinds(record, kinds);
    Query query;
    if (!query_begin(&query, store, text, error))
        return false;
    query_put_text(&query, record->has_loss ? kinds : NULL);
    for (int i = 0; i < FIELDS; i++)
        if (!fields[i].is_fixed)
            put_field(&query, &fields[i], record);
    query_put_integer(&query, record->id);
    query_next(&query);
    int64_t changes = query_changes(&query);
    if (!query_end(&query, "the run cannot be updated in the history", error))
        return false;
    return changes > 0 || error_fail(error, ERROR_HISTORY,
                                     "run %" PRId64 " is no longer in the history: somebody "
                                     "removed it",
                                     record->id);
}
