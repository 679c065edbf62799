#include "store/flight.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define TEXT(name) \
    { #name, offsetof(Flight, name), sizeof((Flight *)0)->name }
static const struct {
    const char *name;
    size_t at, size;
} texts[] = {TEXT(way),   TEXT(cause),  TEXT(tensor), TEXT(layer), TEXT(op),     TEXT(function),
             TEXT(place), TEXT(format), TEXT(first),  TEXT(led),   TEXT(remedy), TEXT(change)};

#define NUMBER(name) \
    { #name, offsetof(Flight, name) }
static const struct {
    const char *name;
    size_t at;
} numbers[] = {NUMBER(nans), NUMBER(infs), NUMBER(elements), NUMBER(from)};

#define WAY(name) \
    { "way." #name, offsetof(FlightWay, name) }
static const struct {
    const char *name;
    size_t at;
} ways[] = {WAY(activation), WAY(gradient), WAY(weight), WAY(near), WAY(scale)};

static const char limit_name[] = "limit", steps_name[] = "way.steps";

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))

// ---- written ------------------------------------------------------------------------------------

static double value_of(const FlightWay *way, size_t at) {
    double value;
    memcpy(&value, (const char *)way + at, sizeof value);
    return value;
}

static void write_way(const Flight *flight, size_t way, char text[EVENT_TEXT_SIZE]) {
    size_t used = 0;
    for (int i = 0; i < flight->count && used < EVENT_TEXT_SIZE - 24; i++) {
        const double value = value_of(&flight->each[i], ways[way].at);
        used += (size_t)snprintf(text + used, EVENT_TEXT_SIZE - used,
                                 isnan(value) ? "%s-" : "%s%.5g", i > 0 ? " " : "", value);
    }
}

void flight_write(const Flight *flight,
                  void (*put)(void *context, const char *name, const char *text), void *context) {
    char text[EVENT_TEXT_SIZE];
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        put(context, texts[i].name, (const char *)flight + texts[i].at);
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        int64_t number;
        memcpy(&number, (const char *)flight + numbers[i].at, sizeof number);
        snprintf(text, sizeof text, "%" PRId64, number);
        put(context, numbers[i].name, text);
    }
    snprintf(text, sizeof text, "%.9g", flight->limit);
    put(context, limit_name, text);
    text[0] = 0;
    size_t used = 0;
    for (int i = 0; i < flight->count && used < sizeof text - 24; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRId64, i > 0 ? " " : "",
                                 flight->steps[i]);
    put(context, steps_name, text);
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        text[0] = 0;
        write_way(flight, i, text);
        put(context, ways[i].name, text);
    }
}

// ---- read ---------------------------------------------------------------------------------------

// As many numbers as there are words, "-" for none; what is more than there is room for is left.
static int read_numbers(const char *text, double values[FLIGHT_STEPS]) {
    int count = 0;
    for (char word[32]; count < FLIGHT_STEPS && sscanf(text, "%31s", word) == 1; count++) {
        text = strstr(text, word) + strlen(word);
        values[count] = strcmp(word, "-") == 0 ? (double)NAN : strtod(word, NULL);
    }
    return count;
}

static void read_way(Flight *flight, size_t at, const char *text) {
    double values[FLIGHT_STEPS];
    const int count = read_numbers(text, values);
    for (int i = 0; i < count; i++)
        memcpy((char *)&flight->each[i] + at, &values[i], sizeof values[i]);
}

// Up to one that is none.
static void read_steps(Flight *flight, const char *text) {
    const double most = 0x1p53;
    double values[FLIGHT_STEPS];
    const int count = read_numbers(text, values);
    for (flight->count = 0; flight->count < count; flight->count++) {
        const double step = values[flight->count];
        if (!(step >= 0 && step <= most))
            return;
        flight->steps[flight->count] = (int64_t)step;
    }
}

static void read_value(Flight *flight, const char *name, const char *text) {
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (strcmp(name, texts[i].name) == 0)
            utf8_copy((char *)flight + texts[i].at, texts[i].size, text);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (strcmp(name, numbers[i].name) == 0) {
            const int64_t number = strtoll(text, NULL, 10);
            memcpy((char *)flight + numbers[i].at, &number, sizeof number);
        }
    if (strcmp(name, limit_name) == 0 && strtod(text, NULL) > 0)
        flight->limit = strtod(text, NULL);
    if (strcmp(name, steps_name) == 0)
        read_steps(flight, text);
    for (size_t i = 0; i < COUNT_OF(ways); i++)
        if (strcmp(name, ways[i].name) == 0)
            read_way(flight, ways[i].at, text);
}

static void clear(Flight *flight) {
    *flight = (Flight){.nans = -1, .infs = -1, .elements = -1, .limit = (double)NAN};
    for (int i = 0; i < FLIGHT_STEPS; i++)
        flight->each[i] =
            (FlightWay){(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
}

bool store_read_flight(Store *store, int64_t run, Flight *flight, bool *found, Error *error) {
    Event *events;
    int count;
    clear(flight);
    *found = false;
    if (!store_read_events(store, run, 0, 1U << EVENT_FAULT | 1U << EVENT_FLIGHT, 0, &events,
                           &count, error))
        return false;
    for (int i = 0; i < count; i++) {
        if (events[i].kind == EVENT_FAULT && *found)
            break; // that of a later start
        if (events[i].kind == EVENT_FAULT) {
            *found = true;
            flight->step = events[i].step;
            utf8_copy(flight->sentence, sizeof flight->sentence, events[i].text);
        } else if (*found) {
            read_value(flight, events[i].layer, events[i].text);
        }
    }
    free(events);
    return true;
}
