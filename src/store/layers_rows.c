// Samples of layers as samples of a ladder, and their rows.
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

static bool write_row(const LadderSource *source, int level, int segment, const LayerSample *sample,
                      Error *error) {
    unsigned char bytes[HISTOGRAM_MOST_BYTES];
    size_t size = histogram_pack(sample, bytes);
    Query query;
    if (!query_begin(&query, source->store,
                     "INSERT OR REPLACE INTO layer_samples (run, layer, level, step, segment, "
                     "width, precision, count, zeros, nans, infs, flushed, subnormal, overflowed, "
                     "largest, sum, sum_squares, update_ratio, seconds, histogram) VALUES (?1, ?2, "
                     "?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, "
                     "?19, ?20)",
                     error))
        return false;
    const int64_t integers[] = {source->owner, source->layer, level,
                                sample->step,  segment,       sample->width};
    const int64_t counts[] = {sample->count,   sample->zeros,     sample->nans,      sample->infs,
                              sample->flushed, sample->subnormal, sample->overflowed};
    // A sum too large for a double is kept as the largest one.
    const double sums[] = {sample->largest, sample->sum, sample->sum_squares};
    for (int i = 0; i < 6; i++)
        query_put_integer(&query, integers[i]);
    query_put_text(&query, sample->precision);
    for (int i = 0; i < 7; i++)
        query_put_integer(&query, counts[i]);
    for (int i = 0; i < 3; i++)
        query_put_number(&query, fmin(sums[i], 1.7976931348623157e308));
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
    const int64_t counts[] = {sample->count,   sample->zeros,     sample->nans,      sample->infs,
                              sample->flushed, sample->subnormal, sample->overflowed};
    for (int i = 0; i < 7; i++)
        if (counts[i] < 0 || counts[i] > sample->count)
            return "its counts make no sense";
    if (sample->width < 1 || sample->width > LADDER_LAST_STEP)
        return "its width makes no sense";
    if (!isfinite(sample->largest) || !isfinite(sample->sum) || !isfinite(sample->sum_squares))
        return "its sums are not finite";
    return NULL;
}

static const char *take_row(Query *query, LayerSample *sample) {
    *sample = (LayerSample){
        .step = query_integer(query, 0),
        .width = query_integer(query, 1),
        .count = query_integer(query, 3),
        .zeros = query_integer(query, 4),
        .nans = query_integer(query, 5),
        .infs = query_integer(query, 6),
        .flushed = query_integer(query, 7),
        .subnormal = query_integer(query, 8),
        .overflowed = query_integer(query, 9),
        .largest = query_number(query, 10),
        .sum = query_number(query, 11),
        .sum_squares = query_number(query, 12),
        .update_ratio = query_number(query, 13),
        .seconds = query_number(query, 14),
    };
    query_text(query, 2, sample->precision, sizeof sample->precision);
    size_t size;
    const unsigned char *bytes = query_blob(query, 15, &size);
    const char *wrong = histogram_unpack(sample, bytes, size);
    return wrong ? wrong : what_is_wrong(sample);
}

#define SELECT_ROWS                                                                               \
    "SELECT step, width, precision, count, zeros, nans, infs, flushed, subnormal, overflowed, "   \
    "largest, sum, sum_squares, update_ratio, seconds, histogram FROM layer_samples WHERE run = " \
    "?1 AND layer = ?2 AND level = ?3 AND segment = ?4 AND step BETWEEN ?5 AND ?6 "

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
    return read_selected(source, SELECT_ROWS "ORDER BY step LIMIT ?7", level, segment, first, last,
                         most, rows, error);
}

bool layer_row_read_last(const LadderSource *source, int level, int segment, int64_t first,
                         int64_t last, Rows *rows, Error *error) {
    return read_selected(source, SELECT_ROWS "ORDER BY step DESC LIMIT ?7", level, segment, first,
                         last, 1, rows, error);
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
