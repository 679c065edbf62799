#include "compare/flight_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/phrase.h"

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
    const int last = flight->count - 1; // of what is neither, as a norm's statistics
    if (last >= 0 && flight->steps[last] == flight->step)
        plot->lines[0][LABEL + STEP_COLUMNS * last + 1] = '!';
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
             "a activations, g gradients, w weights, * several, ! not finite%s",
             range.has_limit ? end : "");
    plot->count = FLIGHT_PLOT_ROWS + 2;
}

// ---- what mends it ------------------------------------------------------------------------------

// The option that makes the change, and its value.
static const char *option_of(const Flight *flight, const char **value) {
    static const struct {
        const char *begins, *option;
    } kinds[] = {{"layer.", "--layer"}, {"loss_scale=", "--loss-scale"}};
    *value = flight->change;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(flight->change, kinds[i].begins, strlen(kinds[i].begins)) == 0) {
            *value += strlen(kinds[i].begins);
            return kinds[i].option;
        }
    return strchr(flight->change, '=') ? "--set" : "--precision";
}

static void add_option(Phrase *command, const char *name, const char *value) {
    phrase_add(command, " ");
    phrase_add_word(command, name);
    phrase_add(command, "%s", value[0] ? " " : "");
    if (value[0])
        phrase_add_word(command, value);
}

// Whether the change takes the place of an option that was given: the same one, and of those that
// have keys, as "lr=2", of the same key.
static bool is_replaced(const RecordOption *given, const char *option, const char *value) {
    const char *equals = strchr(value, '=');
    const size_t key = equals ? (size_t)(equals - value) + 1 : 0;
    return strcmp(given->name, option + strlen("--")) == 0 &&
           strncmp(given->value, value, key) == 0;
}

// The name is the first run's.
static void begin_again(Phrase *command, const RunRecord *run, const char *option,
                        const char *value) {
    phrase_add(command, "mpbench run ");
    phrase_add_word(command, run->script_path[0] ? run->script_path : run->experiment);
    for (int i = 0; i < run->option_count; i++) {
        char name[RECORD_NAME_SIZE + 4];
        if (strcmp(run->options[i].name, "name") == 0 ||
            !record_option_is_typed(&run->options[i]) ||
            is_replaced(&run->options[i], option, value))
            continue;
        snprintf(name, sizeof name, "--%s", run->options[i].name);
        add_option(command, name, run->options[i].value);
    }
}

void flight_command(const Flight *flight, const RunRecord *run, char text[FLIGHT_COMMAND_SIZE]) {
    const char *value, *option = option_of(flight, &value);
    Phrase command = phrase_begin(text, FLIGHT_COMMAND_SIZE);
    if (!flight->change[0])
        return;
    if (flight->from > 0)
        phrase_add(&command, "mpbench fork %" PRId64 " --at %" PRId64, run->id, flight->from);
    else
        begin_again(&command, run, option, value);
    add_option(&command, option, value);
    if (command.is_cut)
        text[0] = 0; // what is left of it would do something else
}

void flight_fork(const Flight *flight, char text[FLIGHT_CHANGE_SIZE]) {
    text[0] = 0;
    if (flight->change[0] && flight->from > 0)
        snprintf(text, FLIGHT_CHANGE_SIZE, "fork %" PRId64 " %s", flight->from, flight->change);
}
