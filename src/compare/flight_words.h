// compare/flight_words.h: what a page of the flight recorder (store/flight.h) shows beside its
// words: the way there as lines of text, and the command that mends it. Pure; any thread.
#pragma once

#include "store/flight.h"
#include "store/record.h"

enum {
    FLIGHT_PLOT_ROWS = 12,
    FLIGHT_PLOT_COLUMNS = 104,
    FLIGHT_COMMAND_SIZE = 1024,
    FLIGHT_CHANGE_SIZE = FLIGHT_TEXT_SIZE + 32
};

typedef struct FlightPlot {
    int count; // 0: no step is known
    char lines[FLIGHT_PLOT_ROWS + 3][FLIGHT_PLOT_COLUMNS];
} FlightPlot;

// Powers of two over the last steps: a activations, g gradients at the loss scale, w weights, *
// where they meet, ! not finite, as what the page tells of is in its step; the format's end is a
// line.
void flight_plot(const Flight *flight, FlightPlot *plot);
// What a shell can run as it stands; "" where no option mends it, or there is no room for all of
// it. Before its first step a run has nothing to fork: it is begun again.
void flight_command(const Flight *flight, const RunRecord *run, char text[FLIGHT_COMMAND_SIZE]);
// What `:fork` of the screen takes; "" likewise.
void flight_fork(const Flight *flight, char text[FLIGHT_CHANGE_SIZE]);
