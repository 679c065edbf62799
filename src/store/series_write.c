// The writer of a run's series and layers.
//
// What a flush wrote is let go when the next flush finds that it was committed: the segment's row
// counts the flushes, in their own transaction. So a transaction that was undone, by whomever, only
// means that the next flush writes it again.
#include <stdlib.h>
#include <string.h>

#include "store/series_private.h"

static LadderSource series_source(const SeriesWriter *writer, const WriterSeries *series) {
    return (LadderSource){.store = writer->store, .owner = series->id, .name = series->name};
}

// ---- beginning ----------------------------------------------------------------------------------

static bool next_segment(SeriesWriter *writer, Error *error) {
    Query query;
    if (!query_begin(&query, writer->store,
                     "SELECT coalesce(max(segment), -1) + 1 FROM segments WHERE run = ?1", error))
        return false;
    query_put_integer(&query, writer->run);
    int64_t segment = query_next(&query) ? query_integer(&query, 0) : 0;
    if (!query_end(&query, "the segments of a run cannot be read", error))
        return false;
    if (segment < 0 || segment >= INT32_MAX)
        return error_fail(error, ERROR_HISTORY, "the history is damaged: run %lld has segment %lld",
                          (long long)writer->run, (long long)segment - 1);
    writer->segment = (int)segment;
    return true;
}

static bool add_segment(SeriesWriter *writer, int64_t from, const char *why, Error *error) {
    Query query;
    if (!query_begin(&query, writer->store,
                     "INSERT INTO segments (run, segment, after, why, began_ms) "
                     "VALUES (?1, ?2, ?3, ?4, ?5)",
                     error))
        return false;
    query_put_integer(&query, writer->run);
    query_put_integer(&query, writer->segment);
    query_put_integer(&query, from);
    query_put_text(&query, why);
    query_put_integer(&query, store_wall_ms());
    query_next(&query);
    return query_end(&query, "a segment cannot be written", error);
}

// A series with nothing in it; NULL: no room.
static WriterSeries *new_series(SeriesWriter *writer, const char *name, Error *error) {
    if (writer->series_count == WRITER_MOST_SERIES) {
        error_fail(error, ERROR_FAILED, "log: %s: a run has up to %d series", name,
                   WRITER_MOST_SERIES);
        return NULL;
    }
    if (!store_grow((void **)&writer->series, writer->series_count, &writer->series_capacity,
                    sizeof *writer->series, error))
        return NULL;
    WriterSeries *series = &writer->series[writer->series_count];
    *series = (WriterSeries){0};
    if (!ladder_make(&series->ladder, &series_kind, writer->from, error))
        return NULL;
    utf8_copy(series->name, sizeof series->name, name);
    writer->series_count++;
    return series;
}

static bool list_series(SeriesWriter *writer, Error *error) {
    Query query;
    if (!query_begin(&query, writer->store,
                     "SELECT id, name FROM series WHERE run = ?1 ORDER BY id", error))
        return false;
    query_put_integer(&query, writer->run);
    while (query_next(&query)) {
        WriterSeries *series = new_series(writer, query_word(&query, 1), error);
        if (!series) {
            query_drop(&query);
            return false;
        }
        series->id = query_integer(&query, 0);
        series->id_is_sure = true;
    }
    return query_end(&query, "the series of a run cannot be read", error);
}

static bool find_edge(const SeriesWriter *writer, WriterSeries *series, const LadderSource *source,
                      const Lineage *lineage, Error *error) {
    Rows rows = {.size = sizeof(SeriesPoint)};
    bool done = ladder_read_level(&series_kind, source, lineage, 0, writer->from, writer->from, 1,
                                  &rows, error);
    series->has_edge = rows.count > 0;
    rows_clear(&rows);
    return done;
}

// What the older segments know of the buckets that this one begins inside of, as rows of its own.
static bool rebuild(SeriesWriter *writer, Error *error) {
    Lineage lineage;
    if (!lineage_read(&lineage, writer->store, writer->run, error))
        return false;
    bool done = list_series(writer, error);
    for (int i = 0; done && i < writer->series_count; i++) {
        WriterSeries *series = &writer->series[i];
        LadderSource source = series_source(writer, series);
        done = (writer->from < 0 || find_edge(writer, series, &source, &lineage, error)) &&
               ladder_rebuild(&series->ladder, &source, &lineage, writer->from, error) &&
               ladder_write(&series->ladder, &source, writer->segment, 0, error);
        ladder_settle(&series->ladder, done);
    }
    done = done && writer_rebuild_layers(writer, &lineage, error);
    lineage_clear(&lineage);
    return done;
}

SeriesWriter *series_writer_new(Store *store, int64_t run, int64_t from, const char *why,
                                Error *error) {
    if (from < 0 || from > LADDER_LAST_STEP) {
        error_fail(error, ERROR_USAGE, "a run cannot go on after step %lld", (long long)from);
        return NULL;
    }
    SeriesWriter *writer = calloc(1, sizeof *writer);
    if (!writer) {
        error_fail(error, ERROR_MEMORY, "no memory for the points of a run");
        return NULL;
    }
    writer->store = store;
    writer->run = run;
    if (!store_begin(store, error)) {
        series_writer_free(writer);
        return NULL;
    }
    bool done = next_segment(writer, error) && add_segment(writer, from, why, error);
    // A fork has nothing that comes before: its first segment may begin with the step it is from.
    writer->from = from > 0 && writer->segment > 0 ? from : -1;
    done = done && rebuild(writer, error);
    if (!store_end(store, done, error)) {
        series_writer_free(writer);
        return NULL;
    }
    return writer;
}

void series_writer_free(SeriesWriter *writer) {
    if (!writer)
        return;
    for (int i = 0; i < writer->series_count; i++)
        ladder_clear(&writer->series[i].ladder);
    for (int i = 0; i < writer->layer_count; i++)
        ladder_clear(&writer->layers[i]);
    free(writer->series);
    free(writer->layers);
    free(writer);
}

int series_writer_segment(const SeriesWriter *writer) {
    return writer->segment;
}

// ---- points -------------------------------------------------------------------------------------

static WriterSeries *find_series(SeriesWriter *writer, const char *name, Error *error) {
    for (int i = 0; i < writer->series_count; i++) {
        int index = (writer->next_series + i) % writer->series_count;
        if (strcmp(writer->series[index].name, name) == 0) {
            writer->next_series = index + 1;
            return &writer->series[index];
        }
    }
    if (!name[0] || strlen(name) >= SERIES_NAME_SIZE) {
        error_fail(error, ERROR_FAILED, "log: the name of a series has 1 to %d bytes, not %zu",
                   SERIES_NAME_SIZE - 1, strlen(name));
        return NULL;
    }
    return new_series(writer, name, error);
}

// Between its checkpoint and the next step a run that is resumed does again what it did.
static void add_late(WriterSeries *series, const SeriesPoint *point) {
    if (series->has_edge)
        return; // the same, from before
    series->has_edge = series->has_late = true;
    series->late = *point;
    ladder_include(&series->ladder, point);
}

bool series_add(SeriesWriter *writer, const char *name, int64_t step, double value, Error *error) {
    WriterSeries *series = find_series(writer, name, error);
    if (!series)
        return false;
    SeriesPoint point = series_point_of(step, value);
    if (step >= 0 && step <= writer->from && series->ladder.last_step == writer->from) {
        if (step == writer->from)
            add_late(series, &point);
        return true;
    }
    return ladder_add(&series->ladder, &point, error) || error_prefix(error, "series %s", name);
}

// ---- writing ------------------------------------------------------------------------------------

static void settle(SeriesWriter *writer, bool kept) {
    for (int i = 0; i < writer->series_count; i++) {
        WriterSeries *series = &writer->series[i];
        ladder_settle(&series->ladder, kept);
        series->has_late = series->has_late && !(kept && series->late_is_written);
        series->late_is_written = false;
        if (kept)
            series->id_is_sure = series->id != 0;
        else if (!series->id_is_sure)
            series->id = 0;
    }
    for (int i = 0; i < writer->layer_count; i++)
        if (writer->layers[i].kind)
            ladder_settle(&writer->layers[i], kept);
    if (kept) {
        writer->flushes++;
        writer->seconds = 0;
    }
    writer->is_unsure = false;
}

// Whether the last flush was committed.
static bool look_back(SeriesWriter *writer, Error *error) {
    Query query;
    if (!query_begin(&query, writer->store,
                     "SELECT flushes FROM segments WHERE run = ?1 AND segment = ?2", error))
        return false;
    query_put_integer(&query, writer->run);
    query_put_integer(&query, writer->segment);
    int64_t flushes = query_next(&query) ? query_integer(&query, 0) : -1;
    if (!query_end(&query, "the segment of a run cannot be read", error))
        return false;
    if (flushes == writer->flushes || (writer->is_unsure && flushes == writer->flushes + 1)) {
        if (writer->is_unsure)
            settle(writer, flushes != writer->flushes);
        return true;
    }
    return error_fail(error, ERROR_STOPPED,
                      "segment %d of run %lld was taken away or is written by somebody else",
                      writer->segment, (long long)writer->run);
}

static bool count_flush(SeriesWriter *writer, Error *error) {
    Query query;
    if (!query_begin(&query, writer->store,
                     "UPDATE segments SET flushes = ?3 WHERE run = ?1 AND segment = ?2", error))
        return false;
    query_put_integer(&query, writer->run);
    query_put_integer(&query, writer->segment);
    query_put_integer(&query, writer->flushes + 1);
    query_next(&query);
    return query_end(&query, "the segment of a run cannot be written", error);
}

static bool find_id(SeriesWriter *writer, WriterSeries *series, Error *error) {
    Query query;
    if (!query_begin(&query, writer->store,
                     "INSERT INTO series (run, name) VALUES (?1, ?2) RETURNING id", error))
        return false;
    query_put_integer(&query, writer->run);
    query_put_text(&query, series->name);
    int64_t id = 0;
    while (query_next(&query))
        id = query_integer(&query, 0);
    if (!query_end(&query, "a series cannot be written", error))
        return false;
    series->id = id;
    return true;
}

static int owner_of(const Lineage *lineage, int64_t step) {
    for (int i = 0; i < lineage->count; i++)
        if (step > lineage->spans[i].after && step <= lineage->spans[i].until)
            return lineage->spans[i].segment;
    return 0;
}

// The late point goes to the segment that owns its step, with the buckets that end there.
static bool write_late(SeriesWriter *writer, const WriterSeries *series, const LadderSource *source,
                       Error *error) {
    Lineage lineage;
    if (!lineage_read(&lineage, writer->store, writer->run, error))
        return false;
    Rows rows = {.size = sizeof(SeriesPoint)};
    int64_t step = series->late.step;
    int segment = owner_of(&lineage, step);
    bool done = series_kind.write(source, 0, segment, &series->late, 1, error);
    for (int level = 1; done && level < LADDER_LEVELS; level++) {
        if (ladder_begin(step, level) == ladder_begin(step + 1, level))
            break; // ours, from here on
        rows.count = 0;
        done =
            ladder_read_level(&series_kind, source, &lineage, level, step, step, 1, &rows, error);
        SeriesPoint bucket = series->late;
        series_kind.open(&bucket, level);
        if (done && rows.count > 0) {
            bucket = *(const SeriesPoint *)rows_at(&rows, 0);
            series_point_merge(&bucket, &series->late);
        }
        done = done && series_kind.write(source, level, segment, &bucket, 1, error);
    }
    rows_clear(&rows);
    lineage_clear(&lineage);
    return done;
}

static bool write_all(SeriesWriter *writer, Error *error) {
    for (int i = 0; i < writer->series_count; i++) {
        WriterSeries *series = &writer->series[i];
        if (series->id == 0 && !find_id(writer, series, error))
            return false;
        LadderSource source = series_source(writer, series);
        if (series->has_late && !write_late(writer, series, &source, error))
            return false;
        series->late_is_written = series->has_late;
        if (!ladder_write(&series->ladder, &source, writer->segment, writer->seconds, error))
            return false;
    }
    for (int i = 0; i < writer->layer_count; i++) {
        LadderSource source = writer_layer_source(writer, i);
        if (writer->layers[i].kind &&
            !ladder_write(&writer->layers[i], &source, writer->segment, writer->seconds, error))
            return false;
    }
    return true;
}

bool series_flush(SeriesWriter *writer, double seconds, Error *error) {
    if (!store_begin(writer->store, error))
        return false;
    bool done = look_back(writer, error);
    if (done) {
        writer->seconds += seconds > 0 ? seconds : 0;
        done = count_flush(writer, error) && write_all(writer, error);
        writer->is_unsure = true;
    }
    return store_end(writer->store, done, error);
}
