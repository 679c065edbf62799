// store/series_private.h: ladders, which series and layers share. Seen by series*.c, layers*.c and
// their tests only.
//
// A ladder sums samples up over 8^k steps, k = 0 .. 6 (level 0: the samples themselves). In memory
// each level has one bucket that is open, the one of the last step, and the closed ones that wait
// to be written; a bucket that closes is added to the open one above it, so that the open bucket
// of a level lacks nothing but the open buckets below it. A flush writes the finest level that is
// cheap and all coarser ones.
//
// In the file a row belongs to a segment. Segments divide the steps between them (Lineage, of
// store_private.h): each owns those after its own beginning and up to where the next one begins
// that supersedes it. A bucket belongs to the segment that owns its last step. A segment that
// begins inside a bucket starts with what the older ones know of it, so its bucket replaces theirs
// whole, and for every level and bucket one row at most is in force.
#pragma once

#include "store/layers.h"
#include "store/store_private.h"

enum {
    LADDER_LEVELS = 7,
    LADDER_SHIFT = 3, // a level is 2^3 times as wide as the one below
    LADDER_TOP = LADDER_LEVELS - 1,
    WRITER_MOST_SERIES = 256,
    WRITER_MOST_LAYERS = 4096,
};

#define LADDER_LAST_STEP (INT64_MAX / 4) // steps are 0 .. this

static inline int64_t ladder_width(int level) {
    return (int64_t)1 << (LADDER_SHIFT * level);
}

// The first step of the bucket that holds `step`.
static inline int64_t ladder_begin(int64_t step, int level) {
    return step & ~(ladder_width(level) - 1);
}

// ---- rows that were read ------------------------------------------------------------------------

// Elements begin with their step (int64_t), of SeriesPoint and LayerSample alike.
typedef struct Rows {
    size_t size; // of an element
    char *items;
    unsigned char *levels; // from which level each one is
    int count, capacity, level_capacity;
} Rows;

void rows_clear(Rows *rows);
void *rows_at(const Rows *rows, int index);
int64_t rows_step(const Rows *rows, int index);
void *rows_add(Rows *rows, int level, Error *error); // zeroed; NULL: no memory

// Whose rows: of a series, or of a layer of a run.
typedef struct LadderSource {
    Store *store;
    int64_t owner; // the id of the series, or of the run
    int layer;
    const char *name; // for messages
} LadderSource;

typedef struct LadderKind {
    size_t size;                           // of an element
    double rows_a_second;                  // that are cheap
    int least_rows;                        // that a flush may always write of one level
    int64_t always;                        // so many first steps are always rows of level 0
    int most_samples;                      // of level 0 that wait
    int most_buckets;                      // of every other level
    bool keeps_tail;                       // a flush also writes what the open buckets are made of
    void (*open)(void *bucket, int level); // makes a copied element the first of a bucket
    void (*merge)(void *a, const void *b);
    int64_t (*weight)(const void *element); // adds up: a bucket's is that of its parts
    bool weighs_points;                     // the weight is the number of samples
    int64_t (*width)(const void *element);  // steps that it spans
    bool (*write)(const LadderSource *source, int level, int segment, const void *elements,
                  int count, Error *error);
    // Adds the rows of a segment from step `first` to `last`, in order, `most` at most.
    bool (*read)(const LadderSource *source, int level, int segment, int64_t first, int64_t last,
                 int most, Rows *rows, Error *error);
} LadderKind;

extern const LadderKind series_kind, layer_kind;

// layers_rows.c: adds the last row of the segment from step `first` to `last`, if there is one.
bool layer_row_read_last(const LadderSource *source, int level, int segment, int64_t first,
                         int64_t last, Rows *rows, Error *error) MUST_CHECK;

// ---- in the file --------------------------------------------------------------------------------

// The rows in force of one level whose buckets touch from .. to; `most` or more: there may be more.
bool ladder_read_level(const LadderKind *kind, const LadderSource *source, const Lineage *lineage,
                       int level, int64_t from, int64_t to, int most, Rows *rows,
                       Error *error) MUST_CHECK;
// The window at the finest level that fits `most` (0: the finest there is).
bool ladder_read(const LadderKind *kind, const LadderSource *source, const Lineage *lineage,
                 int64_t from, int64_t to, int most, Rows *rows, Error *error) MUST_CHECK;
// The first step from `from` on at which a row begins, at any level; -1: there is none.
bool ladder_next_step(const LadderKind *kind, const LadderSource *source, const Lineage *lineage,
                      int64_t from, int64_t *step, Error *error) MUST_CHECK;
// series_rescue.c: the window of a damaged file: the finest rows that can be reached, each step
// from one level, however few of their neighbours are there.
bool ladder_rescue(const LadderKind *kind, const LadderSource *source, const Lineage *lineage,
                   int64_t from, int64_t to, Rows *rows, Error *error) MUST_CHECK;
// The first or the last row there is, as fine as is known; no row in `rows`: none. `weight`: of
// all.
bool ladder_read_edge(const LadderKind *kind, const LadderSource *source, const Lineage *lineage,
                      bool is_last, int64_t *weight, Rows *rows, Error *error) MUST_CHECK;

// ---- in memory, while a run goes on -------------------------------------------------------------

typedef struct Rung {
    char *waiting; // closed elements, in order
    int count, capacity;
    int written;       // of the waiting, by the last flush
    bool is_open;      // the open bucket has something
    bool lost;         // some of the waiting were let go: there were too many
    bool lost_written; // before the last flush
} Rung;

typedef struct Ladder {
    const LadderKind *kind;
    Rung rungs[LADDER_LEVELS];
    char *open; // an element a level, and one to work with
    int64_t first_step, last_step;
    bool is_begun;           // first_step is known
    bool is_copied;          // the open sample of level 0 waits already
    bool is_changed;         // since the last flush
    bool is_changed_written; // before it
} Ladder;

// Empty; the first sample comes after step `after`.
bool ladder_make(Ladder *ladder, const LadderKind *kind, int64_t after, Error *error) MUST_CHECK;
void ladder_clear(Ladder *ladder);
// The same step again replaces the sample.
bool ladder_add(Ladder *ladder, const void *sample, Error *error) MUST_CHECK;
// A sample of the last step, which an older segment owns, in a ladder that goes on after it. Rows
// of buckets that end with that step are the older segment's, and the caller's to write.
void ladder_include(Ladder *ladder, const void *sample);
// What the flush writes, in the caller's transaction; ladder_settle says what became of that.
bool ladder_write(Ladder *ladder, const LadderSource *source, int segment, double seconds,
                  Error *error) MUST_CHECK;
void ladder_settle(Ladder *ladder, bool kept);
// After the older segments' rows up to step `from`; to be written at once.
bool ladder_rebuild(Ladder *ladder, const LadderSource *source, const Lineage *lineage,
                    int64_t from, Error *error) MUST_CHECK;

// ---- the writer ---------------------------------------------------------------------------------

typedef struct WriterSeries {
    char name[SERIES_NAME_SIZE];
    int64_t id;           // 0: has no row yet
    bool id_is_sure;      // its row is committed
    bool has_edge;        // a point of the step after which the segment goes on
    bool has_late;        // that point came only now, and is not committed yet
    bool late_is_written; // by the last flush
    SeriesPoint late;
    Ladder ladder;
} WriterSeries;

struct SeriesWriter {
    Store *store;
    int64_t run, from; // from: -1 where no segment is before this one
    int segment;
    int64_t flushes; // that are known to be committed
    bool is_unsure;  // whether the last one is
    double seconds;  // since the last committed flush
    WriterSeries *series;
    int series_count, series_capacity;
    int next_series; // a guess: they come in the same order, step after step
    Ladder *layers;  // kind NULL: no sample yet
    int layer_count;
};

// layers_write.c: the layers of a run that goes on.
bool writer_rebuild_layers(SeriesWriter *writer, const Lineage *lineage, Error *error) MUST_CHECK;
LadderSource writer_layer_source(const SeriesWriter *writer, int layer);

// ---- points and histograms ----------------------------------------------------------------------

SeriesPoint series_point_of(int64_t step, double value);
void series_point_merge(SeriesPoint *a, const SeriesPoint *b); // b follows a; the width stays

// layers_histogram.c: histograms as they are in the file:
//     byte 0: 1 counts as they were, 2 counts that were scaled down alike
//     byte 1: the index of the first bin that is not zero
//     then the counts from there up to the last one that is not zero, as LEB128: 7 bits a byte,
//     the low ones first, bit 7 set where more follow, no longer than needed.
// Without a count byte 0 is all there is.
enum { HISTOGRAM_MOST_BYTES = 2 + 5 * LAYER_BINS };

size_t histogram_pack(const LayerSample *sample, unsigned char bytes[HISTOGRAM_MOST_BYTES]);
// NULL: done. Else what is wrong with the bytes; the sample is then half filled.
const char *histogram_unpack(LayerSample *sample, const unsigned char *bytes, size_t size);
