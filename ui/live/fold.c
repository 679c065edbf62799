// The events as they are listed: what repeats is one row with a count, and what led to something
// stands above it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/live/live.h"

// ---- folding ------------------------------------------------------------------------------------

enum { PAIR = 2 }; // grown, and skipped for it

static LiveRowClass class_of(const Event *event) {
    return event->kind == EVENT_SKIP || event->kind == EVENT_SCALE ? ROW_SCALE
           : event->kind == EVENT_CHECKPOINT                       ? ROW_SAVED
           : event->kind == EVENT_PICTURE                          ? ROW_DRAWN
                                                                   : ROW_OTHER;
}

bool live_row_has(const Live *live, const LiveRow *row, int at) {
    return at >= row->first && at <= row->last &&
           (row->class != ROW_OTHER || row->count == 1 ||
            strcmp(live->data.events[at].text, live->data.events[row->first].text) == 0) &&
           class_of(&live->data.events[at]) == row->class;
}

static bool may_join(const LiveData *data, const LiveRow *row, const Event *event) {
    enum { GAP = 16 }; // steps: more than that is another burst
    const Event *last = &data->events[row->last];
    switch (row->class) {
    case ROW_SCALE: return event->step - last->step <= GAP;
    case ROW_SAVED:
    case ROW_DRAWN: return true;
    default: return last->kind == event->kind && strcmp(last->text, event->text) == 0;
    }
}

static void join(LiveRow *row, const LiveRow *next) {
    row->last = next->last;
    row->count += next->count;
    row->skips += next->skips;
}

// What somebody ordered, or a new start, begins all rows anew.
static bool is_break(const Event *event) {
    return event->kind == EVENT_COMMAND || event->kind == EVENT_LIFE;
}

static int fold_bursts(const LiveData *data, LiveRow *rows) {
    int open[ROW_CLASSES] = {-1, -1, -1, -1}, count = 0, chain = 0;
    for (int i = 0; i < data->event_count; i++) {
        const Event *event = &data->events[i];
        LiveRow row = {.first = i, .last = i, .count = 1, .class = class_of(event), .chain = chain};
        row.skips = event->kind == EVENT_SKIP;
        int at = open[row.class];
        if (is_break(event))
            chain++;
        if (at >= 0 && rows[at].chain == chain && may_join(data, &rows[at], event)) {
            join(&rows[at], &row);
            continue;
        }
        row.chain = chain;
        open[row.class] = count;
        rows[count++] = row;
    }
    return count;
}

static bool is_pair(const LiveRow *row) {
    return row->class == ROW_SCALE && row->count <= PAIR;
}

// The next row of the scale after i; `count`: there is none.
static int next_move(const LiveRow *rows, int count, int i) {
    do
        i++;
    while (i < count && rows[i].class != ROW_SCALE);
    return i;
}

// A rule that looks for its limit grows and overflows again and again, thousands of steps apart:
// such pairs are one row. A burst of more stands for itself.
static void fold_pairs(LiveRow *rows, int count) {
    for (int i = next_move(rows, count, -1); i < count; i = next_move(rows, count, i)) {
        int skips = rows[i].skips, next = i;
        if (!is_pair(&rows[i]))
            continue;
        while ((next = next_move(rows, count, next)) < count && is_pair(&rows[next]) &&
               rows[next].chain == rows[i].chain)
            skips += rows[next].skips;
        for (int j = next_move(rows, count, i); j < next && skips > PAIR;
             j = next_move(rows, count, j)) {
            join(&rows[i], &rows[j]);
            rows[i].is_spread = true;
            rows[j].count = 0;
        }
        i = next - 1;
    }
}

// Leaves out what was folded into others; one skip and one move are no repeat, but two rows.
static int settle_rows(const LiveData *data, const LiveRow *folded, int count, LiveRow *rows) {
    int kept = 0;
    for (int i = 0; i < count; i++) {
        const LiveRow *row = &folded[i];
        if (row->count == 0)
            continue;
        bool is_repeat = row->class != ROW_SCALE || row->count > PAIR || row->skips != 1;
        rows[kept++] = *row;
        if (is_repeat || row->count == 1)
            continue;
        for (int half = 0; half < 2; half++) {
            LiveRow *one = &rows[kept - 1 + half];
            *one = *row;
            one->first = one->last = half == 0 ? row->first : row->last;
            one->count = 1;
            one->skips = data->events[one->first].kind == EVENT_SKIP;
        }
        kept++;
    }
    return kept;
}

// ---- order --------------------------------------------------------------------------------------

// Orders and what the run noticed come before the skips, those before what became of the scale.
static int rank_of(const Event *event) {
    enum { LAST = 4 };
    static const int ranks[EVENT_KINDS] = {
        [EVENT_COMMAND] = 0,    [EVENT_DIAGNOSIS] = 1,  [EVENT_SKIP] = 2,
        [EVENT_SCALE] = 3,      [EVENT_MESSAGE] = LAST, [EVENT_CHECKPOINT] = LAST,
        [EVENT_PICTURE] = LAST, [EVENT_LIFE] = LAST,    [EVENT_APART] = 1,
        [EVENT_FAULT] = 1,      [EVENT_FLIGHT] = LAST};
    return event->kind >= 0 && event->kind < EVENT_KINDS ? ranks[event->kind] : LAST;
}

// What led to a burst, or was noticed in it, stands above it.
static void settle_places(const LiveData *data, LiveRow *rows, int count) {
    for (int i = 0; i < count; i++) {
        const Event *event = &data->events[rows[i].last];
        rows[i].place = event->step;
        rows[i].rank = rows[i].skips > 0 ? rank_of(&(Event){.kind = EVENT_SKIP}) : rank_of(event);
    }
    for (int i = 0; i < count; i++) {
        const LiveRow *burst = &rows[i];
        int64_t from = data->events[burst->first].step - 1, to = data->events[burst->last].step + 1;
        if (burst->skips < 2 || burst->is_spread)
            continue;
        for (int j = 0; j < count; j++) {
            const Event *event = &data->events[rows[j].last];
            bool is_cause = event->kind == EVENT_COMMAND || event->kind == EVENT_DIAGNOSIS;
            if (is_cause && event->step >= from && event->step <= to)
                rows[j].place = to - 1;
        }
    }
}

// The newest first; of one place causes first, and they in the order in which they came.
static int by_place(const void *a, const void *b) {
    const LiveRow *one = a, *other = b;
    enum { IN_ORDER = 2 };
    if (one->place != other->place)
        return one->place > other->place ? -1 : 1;
    if (one->rank != other->rank)
        return one->rank - other->rank;
    return one->rank < IN_ORDER ? one->last - other->last : other->last - one->last;
}

bool live_fold_events(LiveData *data) {
    size_t size = ((size_t)data->event_count + 1) * sizeof *data->rows;
    LiveRow *folded = malloc(size);
    free(data->rows);
    data->rows = malloc(size);
    data->row_count = 0;
    if (folded && data->rows) {
        int count = fold_bursts(data, folded);
        fold_pairs(folded, count);
        data->row_count = settle_rows(data, folded, count, data->rows);
        settle_places(data, data->rows, data->row_count);
        qsort(data->rows, (size_t)data->row_count, sizeof *data->rows, by_place);
    }
    free(folded);
    return folded && data->rows;
}

const LiveRow *live_row(const Live *live, int at) {
    return at >= 0 && at < live->data.row_count ? &live->data.rows[at] : NULL;
}

// ---- what a row says ----------------------------------------------------------------------------

typedef struct Blamed { // a layer, and how often
    char name[EVENT_LAYER_SIZE * 2];
    int count;
} Blamed;

enum { MOST_BLAMED = 16 };

static int gather_blamed(const Live *live, const LiveRow *row, Blamed list[MOST_BLAMED]) {
    int count = 0;
    for (int i = row->first; i <= row->last; i++) {
        char name[EVENT_LAYER_SIZE * 2];
        int at = 0;
        if (live->data.events[i].kind != EVENT_SKIP)
            continue;
        live_culprit(&live->data.record, &live->data.events[i], name, sizeof name);
        while (at < count && strcmp(list[at].name, name) != 0)
            at++;
        if (at == MOST_BLAMED || !name[0])
            continue;
        if (at == count) {
            memcpy(list[at].name, name, sizeof name);
            list[count++].count = 0;
        }
        list[at].count++;
        for (; at > 0 && list[at].count > list[at - 1].count; at--) {
            Blamed higher = list[at];
            list[at] = list[at - 1];
            list[at - 1] = higher;
        }
    }
    return count;
}

// "head", or "head 96, conv1 8, ..".
static void say_blamed(const Live *live, const LiveRow *row, char *out, size_t size) {
    enum { TOLD = 4 };
    Blamed list[MOST_BLAMED];
    int count = gather_blamed(live, row, list);
    size_t used = 0;
    out[0] = 0;
    if (count == 1) {
        snprintf(out, size, "%s", list[0].name);
        return;
    }
    for (int i = 0; i < count && i < TOLD && used + sizeof list[i].name < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s %d", i > 0 ? ", " : "",
                                 list[i].name, list[i].count);
    if (count > TOLD && used + 16 < size)
        snprintf(out + used, size - used, ", %d more", count - TOLD);
}

typedef struct Scales { // of a row: before it, after it, and beyond both
    double before, after, least, most;
    int grown;
} Scales;

// Of a move the text tells from where it went, where nothing before it does.
static double scale_before(const Event *event, double known) {
    double before = known;
    const char *from = strstr(event->text, " from ");
    if (event->kind == EVENT_SKIP)
        return live_skipped_at(event);
    if (isnan(known) && from && sscanf(from, " from %lf to ", &before) != 1)
        return known;
    return before;
}

static Scales scales_of(const LiveData *data, const LiveRow *row) {
    Scales scales = {NAN, NAN, INFINITY, -INFINITY, 0};
    for (int i = row->first; i <= row->last; i++) {
        const Event *event = &data->events[i];
        if (class_of(event) != ROW_SCALE)
            continue;
        double before = scale_before(event, scales.after);
        if (isnan(scales.before))
            scales.before = before;
        scales.grown += event->kind == EVENT_SCALE && event->value > before;
        scales.after = event->value;
        const double seen[] = {before, event->value};
        for (int j = 0; j < 2; j++) {
            scales.least = seen[j] > 0 && seen[j] < scales.least ? seen[j] : scales.least;
            scales.most = seen[j] > 0 && seen[j] > scales.most ? seen[j] : scales.most;
        }
    }
    return scales;
}

// "2^24 → 2^16 (2^15 to 2^24)"; "" where it is not known.
static void say_scales(const Scales *scales, bool brief, char *out, size_t size) {
    out[0] = 0;
    if (!(scales->after > 0))
        return;
    size_t used = 0;
    bool moved = scales->before > 0 && scales->before != scales->after;
    used += (size_t)snprintf(out, size, moved ? "%s → %s" : "%.0s%s",
                             word_scale(scales->before).text, word_scale(scales->after).text);
    double low = scales->before < scales->after ? scales->before : scales->after;
    double high = scales->before > scales->after ? scales->before : scales->after;
    if (!brief && scales->before > 0 && (scales->least < low || scales->most > high))
        snprintf(out + used, size - used, " (%s to %s)", word_scale(scales->least).text,
                 word_scale(scales->most).text);
}

static const char *cause_of(const LiveData *data, const LiveRow *row) {
    for (int i = row->last; i >= row->first; i--)
        if (data->events[i].kind == EVENT_SKIP)
            return live_overflowed_forward(&data->events[i]) ? "; the loss is not finite either"
                   : strstr(data->events[i].text, "scale was too large")
                       ? "; the scale was too large"
                       : "";
    return "";
}

static void say_moves(const Live *live, const LiveRow *row, bool brief, char *out, size_t size) {
    const LiveData *data = &live->data;
    Scales scales = scales_of(data, row);
    char who[4 * EVENT_LAYER_SIZE], scale[96], grown[48] = "";
    say_blamed(live, row, who, sizeof who);
    say_scales(&scales, brief, scale, sizeof scale);
    Word from = word_count(data->events[row->first].step);
    if (brief) {
        snprintf(out, size, "%d×%s%s%s%s", row->skips > 0 ? row->skips : row->count,
                 who[0] ? " by " : "", who, scale[0] ? "; " : "", scale);
        return;
    }
    if (scales.grown > 0)
        snprintf(grown, sizeof grown, ", grown %d time%s", scales.grown,
                 scales.grown == 1 ? "" : "s");
    if (row->skips == 0)
        snprintf(out, size, "scale %s%s since step %s", scale, grown, from.text);
    else
        snprintf(out, size, "%d skipped since step %s%s%s%s%s%s%s", row->skips, from.text,
                 who[0] ? ", by " : "", who, scale[0] ? "; scale " : "", scale, grown,
                 cause_of(data, row));
}

void live_say_row(const Live *live, const LiveRow *row, bool brief, char *out, size_t size) {
    const Event *event = &live->data.events[row->last];
    char text[2 * EVENT_TEXT_SIZE];
    if (row->class == ROW_SCALE && row->count > 1) {
        say_moves(live, row, brief, out, size);
        return;
    }
    live_say_event(live, event, brief && row->count == 1, text, sizeof text);
    if (row->count > 1 && (row->class == ROW_SAVED || row->class == ROW_DRAWN))
        snprintf(out, size, "%.*s; %d before it", (int)(size - 32), text, row->count - 1);
    else if (row->count > 1)
        snprintf(out, size, "%d× %.*s", row->count, (int)(size - 32), text);
    else
        snprintf(out, size, "%s", text);
}
