// Samples of layers as samples of a ladder, and their rows.
#include <float.h>
#include <math.h>
#include <string.h>

#include "store/series_private.h"

static void open_bucket(void *bucket, int level) {
    // A sample says itself what it spans.
    (void)bucket;
    (void)level;
}

static void merge(void *a, const void *b) {
    layer_sample_merge(a, b);
}

static int64_t weigh(const void *element) {
    return ((const LayerSample *)element)->count;
}

static int64_t width_of(const void *element) {
    return ((const LayerSample *)element)->width;
}

static const char insert_row[] =
    "INSERT OR REPLACE INTO layer_samples (run, layer, level, step, segment, width, precision"
#define COUNT(name) ", " #name
#define SUM(name)   ", " #name
#include "number/statistics.def"
    ", update_ratio, seconds, histogram) VALUES (?, ?, ?, ?, ?, ?, ?"
#define COUNT(name) ", ?"
#define SUM(name)   ", ?"
#include "number/statistics.def"
    ", ?, ?, ?)";

static bool write_row(const LadderSource *source, int level, int segment, const LayerSample *sample,
                      Error *error) {
    unsigned char bytes[HISTOGRAM_MOST_BYTES];
    size_t size = histogram_pack(sample, bytes);
    Query query;
    if (!query_begin(&query, source->store, insert_row, error))
        return false;
    const int64_t integers[] = {source->owner, source->layer, level,
                                sample->step,  segment,       sample->width};
    for (int i = 0; i < 6; i++)
        query_put_integer(&query, integers[i]);
    query_put_text(&query, sample->precision);
// A sum too large for a double is kept as the largest one.
#define COUNT(name) query_put_integer(&query, sample->name);
#define SUM(name)   query_put_number(&query, fmin(sample->name, DBL_MAX));
#include "number/statistics.def"
    query_put_number(&query, sample->update_ratio);
    query_put_number(&query, sample->seconds);
    query_put_blob(&query, bytes, size);
    query_next(&query);
    return query_end(&query, "samples of layers cannot be written", error);
}

static bool write_rows(const LadderSource *source, int level, int segment, const void *elements,
                       int count, Error *error) {
    const LayerSample *samples = elements;
    for (int i = 0; i < count; i++)
        if (!write_row(source, level, segment, &samples[i], error))
            return false;
    return true;
}

static const char *what_is_wrong(const LayerSample *sample) {
    bool is_count = true, is_finite = true;
#define COUNT(name) is_count = is_count && sample->name >= 0 && sample->name <= sample->count;
#define SUM(name)   is_finite = is_finite && isfinite(sample->name);
#include "number/statistics.def"
    if (!is_count)
        return "its counts make no sense";
    if (sample->width < 1 || sample->width > LADDER_LAST_STEP)
        return "its width makes no sense";
    if (!is_finite)
        return "its sums are not finite";
    return NULL;
}

static const char *take_row(Query *query, LayerSample *sample) {
    int column = 3;
    *sample = (LayerSample){.step = query_integer(query, 0), .width = query_integer(query, 1)};
    query_text(query, 2, sample->precision, sizeof sample->precision);
#define COUNT(name) sample->name = query_integer(query, column++);
#define SUM(name)   sample->name = query_number(query, column++);
#include "number/statistics.def"
    sample->update_ratio = query_number(query, column++);
    sample->seconds = query_number(query, column++);
    size_t size;
    const unsigned char *bytes = query_blob(query, column, &size);
    const char *wrong = histogram_unpack(sample, bytes, size);
    return wrong ? wrong : what_is_wrong(sample);
}

#define FROM_ROWS                                                                              \
    ", update_ratio, seconds, histogram FROM layer_samples WHERE run = ?1 AND layer = ?2 AND " \
    "level = ?3 AND segment = ?4 AND step BETWEEN ?5 AND ?6 "

static const char select_rows[] = "SELECT step, width, precision"
#define COUNT(name) ", " #name
#define SUM(name)   ", " #name
#include "number/statistics.def"
    FROM_ROWS "ORDER BY step LIMIT ?7";

static const char select_last[] = "SELECT step, width, precision"
#define COUNT(name) ", " #name
#define SUM(name)   ", " #name
#include "number/statistics.def"
    FROM_ROWS "ORDER BY step DESC LIMIT ?7";

static bool read_selected(const LadderSource *source, const char *sql, int level, int segment,
                          int64_t first, int64_t last, int most, Rows *rows, Error *error) {
    Query query;
    if (!query_begin(&query, source->store, sql, error))
        return false;
    const int64_t values[] = {source->owner, source->layer, level, segment, first, last, most};
    for (int i = 0; i < 7; i++)
        query_put_integer(&query, values[i]);
    while (query_next(&query)) {
        LayerSample *sample = rows_add(rows, level, error);
        if (!sample) {
            query_drop(&query);
            return false;
        }
        const char *wrong = take_row(&query, sample);
        if (wrong && rescue_lose(source->store)) {
            rows->count--;
        } else if (wrong) {
            error_fail(error, ERROR_HISTORY,
                       "the history is damaged: the row of layer_samples of run %lld, layer %d, "
                       "level %d, step %lld, segment %d: %s",
                       (long long)source->owner, source->layer, level, (long long)sample->step,
                       segment, wrong);
            query_drop(&query);
            return false;
        }
    }
    return query_end(&query, "samples of layers cannot be read", error);
}

static bool read_rows(const LadderSource *source, int level, int segment, int64_t first,
                      int64_t last, int most, Rows *rows, Error *error) {
    return read_selected(source, select_rows, level, segment, first, last, most, rows, error);
}

bool layer_row_read_last(const LadderSource *source, int level, int segment, int64_t first,
                         int64_t last, Rows *rows, Error *error) {
    return read_selected(source, select_last, level, segment, first, last, 1, rows, error);
}

const LadderKind layer_kind = {
    .size = sizeof(LayerSample),
    .rows_a_second = 10,
    .least_rows = 2,
    .always = 256,
    .most_samples = 320,
    .most_buckets = 32,
    .open = open_bucket,
    .merge = merge,
    .weight = weigh,
    .width = width_of,
    .write = write_rows,
    .read = read_rows,
};
