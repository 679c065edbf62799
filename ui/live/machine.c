// What the machine does for the run: speed, memory, power.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "compare/compare.h"
#include "ui/cells/bars.h"
#include "ui/live/live.h"

typedef struct Reading {
    const char *label;
    double share; // of the gauge; NaN: empty
    Ink ink;
    int rank; // the highest give way where there is no room for all
    char text[64];
} Reading;

enum { MOST_READINGS = 24 };

typedef struct Readings {
    Reading list[MOST_READINGS];
    int count;
} Readings;

static Reading *add(Readings *readings, const char *label, double share, Ink ink,
                    const char *text) {
    Reading *reading = &readings->list[readings->count++];
    *reading = (Reading){.label = label, .share = share, .ink = ink};
    snprintf(reading->text, sizeof reading->text, "%s", text);
    return reading;
}

static double ratio(double a, double b) {
    return a > 0 && b > 0 ? a / b : NAN;
}

static double known(int64_t bytes) {
    return bytes == RECORD_UNKNOWN ? NAN : (double)bytes;
}

static void add_ratio(Reading *reading, double of_full) {
    size_t used = strlen(reading->text);
    if (isfinite(of_full))
        snprintf(reading->text + used, sizeof reading->text - used, "  %.2f×", of_full);
}

// Of what there is nothing to compare it with.
static void say_why_none(const LiveData *data, char *text, size_t size) {
    if (data->is_full)
        snprintf(text, size, "– it is in fp32");
    else if (data->full.is_there)
        snprintf(text, size, "–");
    else if (data->broken_full > 0)
        snprintf(text, size, "– #%lld in fp32 %s", (long long)data->broken_full,
                 data->broken_status == RUN_DEAD       ? "died"
                 : data->broken_status == RUN_FAILED   ? "failed"
                 : data->broken_status == RUN_STOPPED  ? "was stopped"
                 : data->broken_status == RUN_FINISHED ? "finished"
                                                       : "is silent");
    else if (data->has_unlike_full)
        snprintf(text, size, "– no fp32 run of the same");
    else
        snprintf(text, size, "– no fp32 run yet");
}

static void add_speed(Readings *readings, const LiveData *data) {
    const RunRecord *run = &data->record;
    double best = fmax(run->samples_per_s, data->full.samples_per_s);
    bool has_samples = run->samples_per_s > 0;
    double speedup = !data->full.is_there ? NAN
                     : has_samples        ? ratio(run->samples_per_s, data->full.samples_per_s)
                                          : ratio(run->steps_per_s, data->full.steps_per_s);
    char text[64];
    add(readings, "samples/s", data->full.is_there ? ratio(run->samples_per_s, best) : NAN,
        INK_GOOD, word_rate(run->samples_per_s).text);
    add(readings, "steps/s", NAN, INK_GOOD, word_rate(run->steps_per_s).text)->rank = has_samples;
    say_why_none(data, text, sizeof text);
    bool is_even = data->speed.low <= 1 && data->speed.high >= 1;
    bool is_short =
        data->full.is_there && fmin(run->wall_s, data->full.wall_s) < compare_least_seconds;
    if (isfinite(speedup) && is_short) {
        snprintf(text, sizeof text, "– too short to tell (#%lld)", (long long)data->full.id);
        speedup = NAN;
    } else if (isfinite(speedup) && is_even) {
        snprintf(text, sizeof text, "~ as fast as #%lld", (long long)data->full.id);
    } else if (isfinite(speedup)) {
        snprintf(text, sizeof text, "%.2f× of #%lld", speedup, (long long)data->full.id);
    }
    const double most = 4; // times as fast: a full gauge
    add(readings, "vs fp32", speedup / most, live_ink(run->precision), text);
}

static Word whole_share(double share) {
    Word word = {"–"};
    if (isfinite(share))
        snprintf(word.text, sizeof word.text, "%.0f %%", 100 * share);
    return word;
}

static double share_of(const RunRecord *run, const char *fact) {
    double whole, part = record_fact_part(run, fact, &whole);
    return part / whole;
}

// What this run and other programs do to the processors, on average while it trained.
static Reading *add_processor(Readings *readings, const RunRecord *run) {
    double own = share_of(run, "load.own"), others = share_of(run, RECORD_FACT_OTHERS);
    char text[96] = "–";
    if (isfinite(own) || isfinite(others))
        snprintf(text, sizeof text, "%s, others %s", whole_share(own).text,
                 whole_share(others).text);
    return add(readings, "processors", own, INK_GOOD, text);
}

// How hot the device is, or became.
static void add_temperature(Readings *readings, const RunRecord *run, bool is_card) {
    double now = record_fact_number(run, is_card ? "card.temperature" : "temperature"),
           most = record_fact_number(run, is_card ? "card.temperature.most" : "temperature.most");
    char text[64] = "–";
    if (isfinite(most) && live_is_over(run))
        snprintf(text, sizeof text, "%.0f °C at most", most);
    else if (isfinite(now))
        snprintf(text, sizeof text, "%.0f °C", now);
    const double hot = 100;
    add(readings, "temperature", now / hot, INK_WARN, text)->rank = isnan(now);
}

static void add_watts(Readings *readings, const RunRecord *run) {
    double now = record_fact_number(run, "card.power"),
           most = record_fact_number(run, "card.power.most"),
           limit = record_fact_number(run, "card.power.limit");
    char text[64] = "–";
    if (isfinite(most) && live_is_over(run))
        snprintf(text, sizeof text, "%.0f W at most", most);
    else if (isfinite(now) && isfinite(limit))
        snprintf(text, sizeof text, "%.0f W of %.0f", now, limit);
    else if (isfinite(now))
        snprintf(text, sizeof text, "%.0f W", now);
    add(readings, "power", now / limit, INK_WARN, text)->rank = isnan(now);
}

static void add_clocks(Readings *readings, const RunRecord *run) {
    double core = record_fact_number(run, "card.clock"),
           memory = record_fact_number(run, "card.clock.memory");
    char text[64] = "–";
    if (isfinite(core) && isfinite(memory))
        snprintf(text, sizeof text, "%.0f, %.0f MHz", core, memory);
    else if (isfinite(core))
        snprintf(text, sizeof text, "%.0f MHz", core);
    add(readings, "clocks", NAN, INK_GOOD, text)->rank = isnan(core) ? 6 : 1;
}

// What the card does for all who use it, while it does; of its memory, what the run itself took
// stands above.
static void add_card(Readings *readings, const RunRecord *run) {
    double busy = record_fact_number(run, "card.busy"),
           used = record_fact_number(run, "card.memory.used"),
           total = record_fact_number(run, "card.memory.total");
    double captured = record_fact_number(run, "steps.captured");
    char text[2 * sizeof(Word) + 8] = "–";
    add_watts(readings, run);
    add(readings, "captured", captured, INK_GOOD, whole_share(captured).text)->rank =
        isnan(captured) ? 6 : 1;
    if (live_is_over(run))
        return;
    add_clocks(readings, run);
    add(readings, "card busy", busy, INK_GOOD, whole_share(busy).text)->rank = isnan(busy) ? 6 : 1;
    if (isfinite(used) && isfinite(total))
        snprintf(text, sizeof text, "%s of %s", word_bytes((int64_t)used).text,
                 word_bytes((int64_t)total).text);
    add(readings, "card memory", used / total, INK_FP32, text)->rank = isnan(used) ? 6 : 1;
}

static void add_memory(Readings *readings, const LiveData *data) {
    const RecordMemory *memory = &data->record.memory;
    RecordMemory held = *memory; // in steps: where that is known, without what began them
    const bool is_of_steps = record_memory_in_steps(&data->record, &held);
    // Like is held against like: of a run whose steps nobody counted the peak is all there is.
    const bool are_both = is_of_steps && data->full.held.activations != RECORD_UNKNOWN;
    const double activations =
        are_both ? ratio(known(held.activations), known(data->full.held.activations))
                 : ratio(known(memory->activations), known(data->full.activations));
    const struct {
        const char *label;
        int64_t bytes;
        double of_full;
        int rank;
    } rows[] = {
        {"peak memory", memory->peak, ratio(known(memory->peak), known(data->full.memory_peak)), 0},
        {"activations", held.activations, activations, 0},
        {"weights", held.weights, NAN, 2},
        {"masters", held.masters, NAN, 4},
        {"gradients", held.gradients, NAN, 3},
        {"optimizer", held.optimizer, NAN, 2},
        {"workspace", held.workspace, NAN, 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (i > 0 && (rows[i].bytes == 0 || rows[i].bytes == RECORD_UNKNOWN))
            continue; // there is none of it, or nobody counted
        double share = ratio(known(rows[i].bytes), known(memory->peak));
        Reading *reading =
            add(readings, rows[i].label, share, INK_FP32, word_bytes(rows[i].bytes).text);
        reading->rank = rows[i].rank;
        if (data->full.is_there)
            add_ratio(reading, rows[i].of_full);
    }
}

static Reading *add_share_of_step(Readings *readings, const char *label, double share) {
    char text[64] = "–";
    const double told = 0.0005; // the least that the worker notes: it is never nothing
    if (isfinite(share))
        snprintf(text, sizeof text, "%s of a step", word_share(share > 0 ? share : told / 2).text);
    return add(readings, label, share, INK_WARN, text);
}

static void gather_readings(Readings *readings, const LiveData *data) {
    const RunRecord *run = &data->record;
    add_speed(readings, data);
    add_memory(readings, data);
    bool is_card = record_fact(run, "card");
    if (is_card)
        add_card(readings, run);
    add_processor(readings, run)->rank = is_card ? 3 : 0;
    add_temperature(readings, run, is_card);
    char text[64] = "–";
    double watts = ratio(run->energy_j, run->wall_s);
    if (isfinite(watts))
        snprintf(text, sizeof text, "%.1f W  %s J", watts, word_number(run->energy_j).text);
    add(readings, is_card ? "energy" : "power", NAN, INK_GOOD, text);
    add_share_of_step(readings, "casting", run->cast_share);
    double watching = record_fact_number(run, "telemetry.share");
    add_share_of_step(readings, "watching", watching)->rank = isnan(watching) ? 6 : 0;
}

static void make_fit(Readings *readings, int rows) {
    while (readings->count > rows && readings->count > 0) {
        int least = 0;
        for (int i = 0; i < readings->count; i++)
            if (readings->list[i].rank >= readings->list[least].rank)
                least = i;
        readings->count--;
        memmove(readings->list + least, readings->list + least + 1,
                (size_t)(readings->count - least) * sizeof *readings->list);
    }
}

void live_draw_machine(const Live *live, Area area, bool focused) {
    enum { LABEL = 12, GAUGE_LEAST = 6, GAUGE_MOST = 30, TEXT = 18 };
    enum { TITLE = 18 }; // columns that it and the border take
    char name[160], device[160], right[160];
    const RunRecord *run = &live->data.record;
    live_clean(name, sizeof name, run->device_name[0] ? run->device_name : run->device);
    word_shorten(device, sizeof device, name, area.width - TITLE);
    bool follows = live->view.cursor == LIVE_FOLLOWS;
    snprintf(right, sizeof right, "%s",
             follows             ? device
             : live_is_over(run) ? "of the whole run"
                                 : "of all until now");
    Area inside = area_box(area, panel_name(PANEL_MACHINE), right, focused);
    if (!live->data.is_known) {
        area_wrap(area_part(inside, 1, 1, inside.width - 2, inside.height - 1), 0,
                  style_of(INK_DIM), live_say_no_run(live));
        return;
    }
    Readings readings = {.count = 0};
    gather_readings(&readings, &live->data);
    make_fit(&readings, inside.height);
    int gauge = inside.width - LABEL - TEXT - 3;
    gauge = gauge > GAUGE_MOST ? GAUGE_MOST : gauge < GAUGE_LEAST ? 0 : gauge;
    for (int row = 0; row < inside.height && row < readings.count; row++) {
        const Reading *reading = &readings.list[row];
        area_text_cut(inside, 1, row, LABEL - 1, style_of(INK_DIM), reading->label);
        // A sentence on why there is no number has the gauge's place.
        bool is_sentence = isnan(reading->share) && text_width(reading->text) > TEXT;
        if (gauge > 0 && isfinite(reading->share))
            gauge_draw(inside, LABEL + 1, row, gauge, reading->share, reading->ink);
        int column = LABEL + 1 + (gauge > 0 && !is_sentence ? gauge + 2 : 0);
        area_text_cut(inside, column, row, inside.width - column, style_of(INK_BRIGHT),
                      reading->text);
    }
}
