#include "compare/flight_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- the way there ------------------------------------------------------------------------------

enum { LABEL = 8, STEP_COLUMNS = 2, KINDS = 3 };

static const char marks[KINDS] = {'a', 'g', 'w'};

static double value_of(const FlightWay *way, int kind) {
    return kind == 0 ? way->activation : kind == 1 ? way->gradient : way->weight;
}

typedef struct PlotRange { // powers of two
    double low, high;
    bool has_limit;
} PlotRange;

static bool find_range(const Flight *flight, PlotRange *range) {
    const double near = 24; // a limit so many powers of two above all is no part of the picture
    bool any = false;
    for (int i = 0; i < flight->count; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            const double value = value_of(&flight->each[i], kind);
            if (!isfinite(value) || !(value > 0))
                continue;
            const double power = log2(value);
            range->low = any ? fmin(range->low, power) : power;
            range->high = any ? fmax(range->high, power) : power;
            any = true;
        }
    range->has_limit =
        isfinite(flight->limit) && (!any || log2(flight->limit) < range->high + near);
    if (range->has_limit) {
        const double end = log2(flight->limit);
        range->low = any ? fmin(range->low, end) : end;
        range->high = any ? fmax(range->high, end) : end;
    }
    range->high = ceil(range->high);
    range->low = fmin(floor(range->low), range->high - (FLIGHT_PLOT_ROWS - 2));
    return flight->count > 0 && (any || range->has_limit);
}

static int row_of(const PlotRange *range, double value) {
    const double share = (range->high - log2(value)) / (range->high - range->low);
    const int row = 1 + (int)lround(share * (FLIGHT_PLOT_ROWS - 2));
    return row < 1 ? 1 : row > FLIGHT_PLOT_ROWS - 1 ? FLIGHT_PLOT_ROWS - 1 : row;
}

static void put_mark(char *cell, char mark) {
    const bool is_free = *cell == ' ' || *cell == '-' || *cell == mark;
    *cell = is_free ? mark : '*';
}

static void draw_rows(const Flight *flight, const PlotRange *range, FlightPlot *plot) {
    const int width = STEP_COLUMNS * flight->count;
    for (int row = 0; row < FLIGHT_PLOT_ROWS; row++) {
        const double power = range->high - (range->high - range->low) * (double)(row - 1) /
                                               (double)(FLIGHT_PLOT_ROWS - 2);
        char *line = plot->lines[row];
        if (row > 0)
            snprintf(line, FLIGHT_PLOT_COLUMNS, "2^%ld |", lround(power));
        const size_t used = row > 0 ? strlen(line) : 0;
        char label[LABEL + 1];
        snprintf(label, sizeof label, "%.*s", (int)used, line);
        snprintf(line, FLIGHT_PLOT_COLUMNS, "%*s%*s", LABEL, label, width, "");
    }
    const int limit = range->has_limit ? row_of(range, flight->limit) : 0;
    for (int i = 0; limit > 0 && i < width; i++)
        plot->lines[limit][LABEL + i] = '-';
    for (int i = 0; i < flight->count; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            const double value = value_of(&flight->each[i], kind);
            const int column = LABEL + STEP_COLUMNS * i + 1;
            if (isinf(value))
                plot->lines[0][column] = '!';
            else if (value > 0)
                put_mark(&plot->lines[row_of(range, value)][column], marks[kind]);
        }
}

void flight_plot(const Flight *flight, FlightPlot *plot) {
    PlotRange range = {.low = 0};
    plot->count = 0;
    if (!find_range(flight, &range))
        return;
    draw_rows(flight, &range, plot);
    const int last = flight->count - 1;
    char *axis = plot->lines[FLIGHT_PLOT_ROWS], *legend = axis + FLIGHT_PLOT_COLUMNS;
    snprintf(axis, FLIGHT_PLOT_COLUMNS, "%*sstep %" PRId64 " to %" PRId64, LABEL, "",
             flight->steps[0], flight->steps[last]);
    char end[36];
    snprintf(end, sizeof end, ", --- %.8s ends", flight->format);
    snprintf(legend, FLIGHT_PLOT_COLUMNS,
             "%*sa activations, g gradients, w weights, ! not finite%s", 2, "",
             range.has_limit ? end : "");
    plot->count = FLIGHT_PLOT_ROWS + 2;
}

// ---- what mends it ------------------------------------------------------------------------------

void flight_options(const Flight *flight, char text[FLIGHT_CHANGE_SIZE]) {
    static const struct {
        const char *begins, *option;
    } kinds[] = {{"layer.", "--layer"}, {"loss_scale=", "--loss-scale"}};
    text[0] = 0;
    if (!flight->change[0])
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(flight->change, kinds[i].begins, strlen(kinds[i].begins)) == 0) {
            snprintf(text, FLIGHT_CHANGE_SIZE, "%s %s", kinds[i].option,
                     flight->change + strlen(kinds[i].begins));
            return;
        }
    snprintf(text, FLIGHT_CHANGE_SIZE, "%s %s",
             strchr(flight->change, '=') ? "--set" : "--precision", flight->change);
}

static size_t put_word(char text[FLIGHT_COMMAND_SIZE], size_t used, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=.,/:@%*";
    const bool is_plain = word[0] && strspn(word, plain) == strlen(word) && !strchr(word, '*');
    const size_t room = FLIGHT_COMMAND_SIZE - used;
    const int length = snprintf(text + used, room, is_plain ? " %s" : " '%s'", word);
    return (size_t)length < room ? used + (size_t)length : FLIGHT_COMMAND_SIZE - 1;
}

void flight_command(const Flight *flight, const RunRecord *run, char text[FLIGHT_COMMAND_SIZE]) {
    char options[FLIGHT_CHANGE_SIZE];
    flight_options(flight, options);
    text[0] = 0;
    if (!options[0])
        return;
    if (flight->from > 0) {
        snprintf(text, FLIGHT_COMMAND_SIZE, "mpbench fork %" PRId64 " --at %" PRId64 " %s", run->id,
                 flight->from, options);
        return;
    }
    size_t used = (size_t)snprintf(text, FLIGHT_COMMAND_SIZE, "mpbench run");
    used = put_word(text, used, run->script_path[0] ? run->script_path : run->experiment);
    for (int i = 0; i < run->option_count; i++) {
        char name[RECORD_NAME_SIZE + 4];
        snprintf(name, sizeof name, "--%s", run->options[i].name);
        used = put_word(text, used, name);
        if (run->options[i].value[0])
            used = put_word(text, used, run->options[i].value);
    }
    snprintf(text + used, FLIGHT_COMMAND_SIZE - used, " %s", options);
}

void flight_fork(const Flight *flight, char text[FLIGHT_CHANGE_SIZE]) {
    text[0] = 0;
    if (flight->change[0] && flight->from > 0)
        snprintf(text, FLIGHT_CHANGE_SIZE, "fork %" PRId64 " %s", flight->from, flight->change);
}
