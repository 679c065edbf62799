// `mpbench show RUN --first-nan`: the page of the flight recorder.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/history/history.h"
#include "cli/history/show.h"
#include "cli/print/text.h"
#include "compare/flight_words.h"

static void print_row(const char *label, const char *text) {
    enum { LABEL = 12 };
    if (!text[0])
        return;
    printf("  %-*s", LABEL - 2, label);
    cli_print_wrapped(text, LABEL);
}

static void print_nothing(const RunRecord *run) {
    char text[320];
    if (run->skipped > 0)
        snprintf(text, sizeof text,
                 "Nothing was not finite but what is expected: %" PRId64 " step%s skipped, as the "
                 "loss scale was too large for %s gradients, and it was lowered.",
                 run->skipped, run->skipped == 1 ? " was" : "s were",
                 run->skipped == 1 ? "its" : "their");
    else
        snprintf(text, sizeof text, "Nothing was not finite in the %" PRId64 " step%s of this run.",
                 run->step, run->step == 1 ? "" : "s");
    cli_print_wrapped(text, 0);
}

static void print_tensor(const Flight *flight) {
    char text[4 * FLIGHT_NAME_SIZE];
    snprintf(text, sizeof text, "%s, in %s", flight->tensor, flight->format);
    print_row("tensor", text);
    print_row("layer", flight->layer[0] ? flight->layer : "none: outside of every layer");
    print_row("function", flight->function);
    print_row("line", flight->place);
}

static void print_found(const Flight *flight, const RunRecord *run, const ShowPage *page) {
    FlightPlot plot;
    char command[FLIGHT_COMMAND_SIZE];
    fputs(page->strong, stdout);
    cli_print_wrapped(flight->sentence, 0);
    fputs(page->plain, stdout);
    putchar('\n');
    print_tensor(flight);
    print_row("what led", flight->led);
    print_row("remedy", flight->remedy);
    flight_command(flight, run, command);
    if (command[0]) {
        printf("  %-10s%s", "command", page->strong);
        cli_print_outside(stdout, command); // in one line, to be copied
        printf("%s\n", page->plain);
    }
    flight_plot(flight, &plot);
    if (plot.count > 0)
        printf("\nThe way there: the largest magnitudes %s\n\n",
               flight->layer[0] ? "of the layer" : "outside of every layer");
    for (int i = 0; i < plot.count; i++) {
        cli_print_outside(stdout, plot.lines[i]);
        putchar('\n');
    }
}

static void write_way(JsonWriter *json, const Flight *flight) {
    json_key(json, "steps");
    json_begin_array(json);
    for (int i = 0; i < flight->count; i++) {
        const FlightWay *way = &flight->each[i];
        json_begin_object(json);
        json_put_integer(json, "step", flight->steps[i]);
        json_put_reading(json, "activation", way->activation);
        json_put_reading(json, "gradient", way->gradient);
        json_put_reading(json, "weight", way->weight);
        json_put_reading(json, "near_limit", way->near);
        json_put_reading(json, "scale", way->scale);
        json_end_object(json);
    }
    json_end_array(json);
}

static void put_count(JsonWriter *json, const char *key, int64_t count) {
    json_put_known(json, key, (double)count, count >= 0);
}

static void write_json(const Flight *flight, bool found, const RunRecord *run) {
    JsonWriter json = {.stream = stdout};
    char command[FLIGHT_COMMAND_SIZE];
    json_begin_object(&json);
    json_put_integer(&json, "id", run->id);
    json_put_text(&json, "name", run->name);
    json_put_boolean(&json, "found", found);
    json_put_integer(&json, "skipped", run->skipped);
    if (found) {
        flight_command(flight, run, command);
        json_put_integer(&json, "step", flight->step);
        json_put_text(&json, "sentence", flight->sentence);
        json_put_text(&json, "way", flight->way);
        json_put_text(&json, "cause", flight->cause);
        json_put_text(&json, "tensor", flight->tensor);
        json_put_text(&json, "layer", flight->layer);
        json_put_text(&json, "op", flight->op);
        json_put_text(&json, "function", flight->function);
        json_put_text(&json, "place", flight->place);
        json_put_text(&json, "format", flight->format);
        put_count(&json, "nans", flight->nans);
        put_count(&json, "infs", flight->infs);
        put_count(&json, "elements", flight->elements);
        json_put_text(&json, "first", flight->first);
        json_put_reading(&json, "limit", flight->limit);
        json_put_text(&json, "led", flight->led);
        json_put_text(&json, "remedy", flight->remedy);
        json_put_text(&json, "command", command[0] ? command : NULL);
        write_way(&json, flight);
    }
    json_end_object(&json);
    putchar('\n');
}

bool show_first_nan(const Cli *cli, const ShowPage *page, Store *store, const RunRecord *run,
                    Error *error) {
    Flight flight;
    bool found;
    if (!store_read_flight(store, run->id, &flight, &found, error))
        return false;
    if (cli->json)
        write_json(&flight, found, run);
    else if (found)
        print_found(&flight, run, page);
    else
        print_nothing(run);
    return true;
}
