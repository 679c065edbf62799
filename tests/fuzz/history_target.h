// tests/fuzz/history_target.h: what the fuzz programs promise about the run history.
//
// A damaged file, and rows that another program put there, are read, or refused with a message:
// never a crash, an endless loop or memory by a number that the file names. What is asked for is
// asked of every execution: the list, a run with its lists, series, layers, events, checkpoints,
// orders. Some executions read past the damage, some open the file for writing too.
#pragma once

#include "store/checkpoints.h"
#include "store/commands.h"
#include "store/events.h"
#include "store/layers.h"
#include "tests/fuzz/driver.h"
#include "tests/unit/store_fixture.h"

typedef struct HistoryFuzz {
    char path[300];
    uint8_t *pristine;
    size_t size;
    int file;
    // Stay open over most executions: opening takes ten times as long as reading.
    Store *store, *rescue; // the second reads past damage
    uint32_t changes;
} HistoryFuzz;

// ---- a history with something of everything -----------------------------------------------------

static inline void fuzz_add_series(Store *store, int64_t run) {
    SeriesWriter *writer = series_writer_new(store, run, 0, "start", &error);
    CHECK_MESSAGE(writer != NULL, "%s", error.text);
    for (int64_t step = 0; writer && step < 300; step++) {
        CHECK(
            series_add(writer, "loss", step, step == 100 ? NAN : 1.0 / (double)(step + 1), &error));
        LayerSample sample = {.step = step, .width = 1, .count = 128, .precision = "fp16"};
        sample.bins[60] = 100;
        sample.bins[61] = 28;
        if (step < 40)
            CHECK(layers_add(writer, 0, &sample, &error));
    }
    CHECK(writer && series_flush(writer, 1, &error));
    series_writer_free(writer);
}

static inline void fuzz_add_run(Store *store, const char *name) {
    RunRecord record = some_run("cnn", "fp16");
    RecordParameter parameter = {.name = "lr", .kind = RECORD_NUMBER, .number = 1e-3};
    RecordLayer layer = {.name = "head", .parent = -1, .precision = "fp16", .set = "auto"};
    RecordMetric metric = {.name = "accuracy", .value = 0.9};
    RecordDiagnosis diagnosis = {.kind = "no_scaler", .step = 3, .text = "use a scaler"};
    snprintf(record.name, sizeof record.name, "%s", name);
    CHECK(record_set_parameters(&record, &parameter, 1, &error));
    CHECK(record_set_layers(&record, &layer, 1, &error));
    CHECK(record_set_metrics(&record, &metric, 1, &error));
    CHECK(record_set_diagnoses(&record, &diagnosis, 1, &error));
    CHECK(store_add_run(store, &record, "return 1", 8, &error));
    CHECK(store_update_run(store, &record, &error));
    Event event = {.step = 2, .kind = EVENT_SKIP, .value = 32768, .text = "skipped"};
    CHECK(store_add_event(store, record.id, &event, &error));
    CheckpointRow row = {.run = record.id, .step = 5, .why = "asked", .file = "1/step-5"};
    CHECK(store_add_checkpoint(store, &row, &error));
    fuzz_add_series(store, record.id);
    record_clear(&record);
}

static inline bool fuzz_open_stores(HistoryFuzz *fuzz) {
    Error why = {0};
    fuzz->store = store_open(fuzz->path, STORE_READ, &why);
    fuzz->rescue = store_open(fuzz->path, STORE_RESCUE, &why);
    return fuzz->store && fuzz->rescue;
}

static inline void fuzz_close_stores(HistoryFuzz *fuzz) {
    store_close(fuzz->store);
    store_close(fuzz->rescue);
    fuzz->store = fuzz->rescue = NULL;
}

static inline bool history_fuzz_begin(HistoryFuzz *fuzz) {
    make_folder();
    Store *store = fresh_store("fuzz.db");
    snprintf(fuzz->path, sizeof fuzz->path, "%s", path_of("fuzz.db"));
    fuzz_add_run(store, "first");
    fuzz_add_run(store, "second");
    store_close(store);
    struct stat status;
    fuzz->file = open(fuzz->path, O_RDWR);
    if (fuzz->file < 0 || fstat(fuzz->file, &status) != 0)
        return false;
    fuzz->size = (size_t)status.st_size;
    fuzz->pristine = malloc(fuzz->size);
    return fuzz_open_stores(fuzz) && fuzz->pristine &&
           pread(fuzz->file, fuzz->pristine, fuzz->size, 0) == status.st_size;
}

static inline void history_fuzz_end(HistoryFuzz *fuzz) {
    fuzz_close_stores(fuzz);
    close(fuzz->file);
    free(fuzz->pristine);
    remove_folder();
}

// ---- one execution ------------------------------------------------------------------------------

// A refusal must say why.
static inline bool fuzz_told(bool done, Error *why) {
    bool told = done || why->text[0];
    *why = (Error){0};
    return told;
}

static inline bool fuzz_read_run(Store *store, int64_t id) {
    Error why = {0};
    RunRecord record = {0};
    bool kept = fuzz_told(store_read_run(store, id, &record, &why), &why);
    record_clear(&record);
    SeriesInfo *series = NULL;
    SeriesPoint *points = NULL;
    LayerSample *samples = NULL, at;
    Event *events = NULL;
    CheckpointRow *rows = NULL;
    int count = 0;
    kept &= fuzz_told(store_list_series(store, id, &series, &count, &why), &why);
    kept &= fuzz_told(store_read_series(store, id, "loss", 0, INT64_MAX, 50, &points, &count, &why),
                      &why);
    kept &=
        fuzz_told(store_read_layer(store, id, 0, 0, INT64_MAX, 50, &samples, &count, &why), &why);
    kept &= fuzz_told(store_read_layers_at(store, id, 10, &at, 1, &why), &why);
    kept &= fuzz_told(store_read_events(store, id, 0, 0, 0, &events, &count, &why), &why);
    kept &= fuzz_told(store_list_checkpoints(store, id, &rows, &count, &why), &why);
    int64_t next;
    kept &= fuzz_told(store_next_step(store, id, "loss", 7, &next, &why), &why);
    kept &= fuzz_told(store_next_layer_step(store, id, 0, 7, &next, &why), &why);
    free(series);
    free(points);
    free(samples);
    free(events);
    free(rows);
    return kept;
}

static inline bool fuzz_write(Store *store) {
    Error why = {0};
    int64_t id;
    RunCommand commands[8];
    int count;
    bool kept = fuzz_told(store_set_tag(store, 1, "t", &why), &why);
    kept &= fuzz_told(store_send_command(store, 1, "pause", "", &id, &why), &why);
    kept &= fuzz_told(store_claim_commands(store, 1, "token", commands, 8, &count, &why), &why);
    return kept & fuzz_told(store_remove_run(store, 2, &why), &why);
}

static inline bool fuzz_read_history(Store *store) {
    Error why = {0};
    RunRecord *runs = NULL;
    int count = 0;
    int64_t id;
    bool kept = fuzz_told(store_list_runs(store, &(RunFilter){0}, &runs, &count, &why), &why);
    store_free_runs(runs, count);
    kept &= fuzz_told(store_find_run(store, "@last", &id, &why), &why);
    return kept & fuzz_read_run(store, 1);
}

static inline bool fuzz_open_history(const char *path, StoreMode mode) {
    Error why = {0};
    Store *store = store_open(path, mode, &why);
    if (!store)
        return why.text[0] != 0;
    bool kept = fuzz_read_history(store);
    if (mode == STORE_WRITE)
        kept &= fuzz_write(store);
    store_close(store);
    return kept;
}

// The number by which an open connection knows that the file is another one now.
static inline bool fuzz_tell_change(HistoryFuzz *fuzz) {
    enum { CHANGE_COUNTER = 24 };
    uint32_t number = ++fuzz->changes;
    uint8_t bytes[4] = {(uint8_t)(number >> 24 | 0x80), (uint8_t)(number >> 16),
                        (uint8_t)(number >> 8), (uint8_t)number};
    return pwrite(fuzz->file, bytes, sizeof bytes, CHANGE_COUNTER) == sizeof bytes;
}

static inline size_t fuzz_history_offset(const HistoryFuzz *fuzz, uint64_t *state) {
    enum { PAGE = 4096, HEAD = 64 };
    size_t page = fuzz_below(state, fuzz->size / PAGE) * PAGE;
    // The header of a page, with the addresses of its cells, decides most.
    return page + fuzz_below(state, fuzz_random(state) & 1 ? HEAD : PAGE);
}

static inline bool fuzz_restore(HistoryFuzz *fuzz) {
    static const char *const endings[] = {"-journal", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char beside[320];
        snprintf(beside, sizeof beside, "%s%s", fuzz->path, endings[i]);
        unlink(beside);
    }
    return ftruncate(fuzz->file, 0) == 0 &&
           pwrite(fuzz->file, fuzz->pristine, fuzz->size, 0) == (ssize_t)fuzz->size;
}

// Mutates the file in place, uses it, puts it back. Returns 0 when every promise was kept.
static inline int fuzz_history_one(HistoryFuzz *fuzz, uint64_t execution, uint64_t seed) {
    enum { OPEN_EVERY = 16, WRITE_EVERY = 64, CUT_EVERY = 50, RESCUE_EVERY = 3, MOST_CHANGES = 6 };
    uint64_t state = seed ^ execution << 32;
    int changes = execution == 1 ? 0 : 1 + (int)fuzz_below(&state, MOST_CHANGES);
    size_t at[MOST_CHANGES];
    for (int i = 0; i < changes; i++) {
        at[i] = fuzz_history_offset(fuzz, &state);
        uint8_t byte = fuzz_random(&state) & 1 ? (uint8_t)fuzz_random(&state)
                                               : fuzz->pristine[at[i]] ^ 1 << fuzz_below(&state, 8);
        if (pwrite(fuzz->file, &byte, 1, (off_t)at[i]) != 1)
            return 1;
    }
    bool is_cut = execution % CUT_EVERY == 0, writes = execution % WRITE_EVERY == 0,
         rescues = execution % RESCUE_EVERY == 0;
    if (is_cut && ftruncate(fuzz->file, (off_t)fuzz_below(&state, fuzz->size)) != 0)
        return 1;
    bool kept = is_cut || fuzz_tell_change(fuzz);
    if (writes) // a header that tells of another journal may have made the reader hold its lock
        fuzz_close_stores(fuzz);
    if (execution % OPEN_EVERY == 0)
        kept &= fuzz_open_history(fuzz->path, writes    ? STORE_WRITE
                                              : rescues ? STORE_RESCUE
                                                        : STORE_READ);
    else
        kept &= fuzz_read_history(rescues ? fuzz->rescue : fuzz->store);
    if (writes || is_cut) { // all of it may have changed
        kept &= fuzz_restore(fuzz);
        return !(kept && (!writes || fuzz_open_stores(fuzz)));
    }
    for (int i = 0; i < changes; i++)
        kept &= pwrite(fuzz->file, fuzz->pristine + at[i], 1, (off_t)at[i]) == 1;
    return !kept;
}

static inline uint64_t fuzz_history_run(uint64_t executions, uint64_t seed) {
    HistoryFuzz fuzz = {0};
    uint64_t broken = history_fuzz_begin(&fuzz) ? 0 : 1;
    for (uint64_t i = 1; !broken && i <= executions; i++)
        if (fuzz_history_one(&fuzz, i, seed))
            broken = i;
    history_fuzz_end(&fuzz);
    return broken;
}
