// The page of the flight recorder over the live screen: the first number of the run that was not
// finite and should be. Enter asks for the fork that mends it; where there is no step to fork from,
// the page has the command that begins again with the mend.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_stream.h"
#include "compare/flight_words.h"
#include "ui/live/live.h"

enum { LABEL = 10 };

static void write_row(FILE *out, const char *label, const char *text) {
    if (text[0])
        fprintf(out, "%-*s%s\n", LABEL, label, text);
}

static void write_page(FILE *out, const Flight *flight, const char *fork, const char *command) {
    FlightPlot plot;
    fprintf(out, "step %lld, %s: %s, in %s\n\n", (long long)flight->step, flight->way,
            flight->tensor, flight->format);
    write_row(out, "layer", flight->layer[0] ? flight->layer : "none: outside of every layer");
    write_row(out, "function", flight->function);
    write_row(out, "line", flight->place);
    write_row(out, "what led", flight->led);
    write_row(out, "remedy", flight->remedy);
    if (fork[0])
        fprintf(out, "%-10senter asks for it: %s\n", "", fork);
    else
        write_row(out, "command", command);
    flight_plot(flight, &plot);
    if (plot.count > 0)
        fprintf(out, "\nthe largest magnitudes %s\n",
                flight->layer[0] ? "of the layer" : "outside of every layer");
    for (int i = 0; i < plot.count; i++)
        fprintf(out, "%s\n", plot.lines[i]);
}

void live_show_flight(Ui *ui, const Live *live) {
    Flight flight;
    TextStream text;
    bool found;
    Error error = {0};
    char fork[FLIGHT_CHANGE_SIZE], command[FLIGHT_COMMAND_SIZE];
    if (!live->data.is_known) {
        ui_say(ui, INK_WARN, "%s", live_say_no_run(live));
        return;
    }
    if (!store_read_flight(ui->store, live->view.run, &flight, &found, &error)) {
        ui_fail(ui, &error);
        return;
    }
    if (!found) {
        ui_say(ui, INK_TEXT, "nothing was not finite in this run but what a loss scale expects");
        return;
    }
    flight_fork(&flight, fork);
    flight_command(&flight, &live->data.record, command);
    if (!text_stream_open(&text))
        return;
    write_page(text.stream, &flight, fork, command);
    if (!text_stream_close(&text))
        return;
    pager_show(ui, "first nan", text.text);
    if (ui->pager.open && launch_may(ui))
        snprintf(ui->pager.order, sizeof ui->pager.order, "%s", fork);
}
