// store/flight.h: what the flight recorder of a run kept of its first number that is not finite and
// should be: which tensor, where, why, the steps that led there, and what mends it.
//
// It lies in the history as events: one of EVENT_FAULT in words, then one of EVENT_FLIGHT a value,
// by the names of flight_fields. Written by run/, read by all who show it. Any thread.
#pragma once

#include "store/events.h"

enum { FLIGHT_STEPS = 32, FLIGHT_NAME_SIZE = 64, FLIGHT_TEXT_SIZE = 320 };

// The largest magnitudes of the steps up to the fault, oldest first; NaN: not looked at then.
typedef struct FlightWay {
    double activation; // that operations of the layer gave
    double gradient;   // that they handed back, and of its weights, at the loss scale
    double weight;
    double near;  // share of the gradients within a factor of 2 of the format's end
    double scale; // the loss scale
} FlightWay;

typedef struct Flight {
    int64_t step; // that it is of
    char sentence[EVENT_TEXT_SIZE];
    char way[FLIGHT_NAME_SIZE];    // "forward", "backward"
    char cause[FLIGHT_NAME_SIZE];  // overflow made weight data sum rounding
    char tensor[FLIGHT_NAME_SIZE]; // "output of linear", "weight fc1.weight"
    char layer[FLIGHT_NAME_SIZE];  // ""; outside of every layer
    char op[FLIGHT_NAME_SIZE];
    char function[FLIGHT_NAME_SIZE];  // mp.custom that it is in; ""
    char place[2 * FLIGHT_NAME_SIZE]; // line of the script; ""
    char format[FLIGHT_NAME_SIZE];
    char first[2 * FLIGHT_NAME_SIZE]; // indices of the first such element: "3 17"; ""
    char led[FLIGHT_TEXT_SIZE];       // what led there
    char remedy[FLIGHT_TEXT_SIZE];    // what to do
    char change[FLIGHT_TEXT_SIZE];    // "layer.fc1=bf16", "loss_scale=dynamic": for a fork; ""
    int64_t nans, infs, elements;     // of the tensor; -1: not counted
    int64_t from;                     // the step to fork after; 0: there is none before
    double limit;                     // where the format ends
    int count;                        // steps of the way
    int64_t steps[FLIGHT_STEPS];
    FlightWay each[FLIGHT_STEPS];
} Flight;

// The values as events, of EVENT_FLIGHT: `put` gets the name and the text of each.
void flight_write(const Flight *flight,
                  void (*put)(void *context, const char *name, const char *text), void *context);
// The first of the run that counts; *found is false where nothing is amiss.
bool store_read_flight(Store *store, int64_t run, Flight *flight, bool *found,
                       Error *error) MUST_CHECK;
