// cli/machine/findings.h: what `mpbench doctor` found on this machine, before it says any of it.
//
// Every finding is asked of the room that knows: the devices, the readers of data, the history.
#pragma once

#include "cli/cli.h"
#include "kernel/about.h"
#include "kernel/kernel.h"
#include "number/format.h"
#include "store/store.h"

enum {
    MOST_DEVICES = 18,
    MOST_LIBRARIES = MOST_DEVICES + 2,
};

typedef struct FoundDevice {
    char name[32];
    bool is_preferred;
    Device *device; // NULL: error says why
    Error error;
    DevicePart parts[DEVICE_MOST_PARTS]; // what it is made of and works with, where it tells
    int part_count;
} FoundDevice;

typedef struct FoundLibrary {
    char name[64], version[64];
} FoundLibrary;

typedef struct Findings {
    FoundDevice devices[MOST_DEVICES];
    int device_count;
    FoundLibrary libraries[MOST_LIBRARIES];
    int library_count;
    bool has_fashion, has_text;
    Error fashion_error;
    int text_files, text_expected;
    double memory; // bytes; 0: unknown
    int sandbox;   // the parts that hold, see base/sandbox.h
    char history[STORE_PATH_SIZE];
    bool has_history, is_checked; // every page
    int runs;
    Error history_error; // ERROR_NONE: it can be read
} Findings;

// Looks at everything but the history; before there are other threads.
void findings_look(Findings *findings);
// Every page of the file is looked at only where `whole`: that of many runs takes a while.
void findings_look_at_history(Findings *findings, const Cli *cli, bool whole);
void findings_clear(Findings *findings);

// The one that trains where none is asked for; NULL: none can be opened.
const Device *findings_best_device(const Findings *findings);
// Whether it trains in a format, and whether large products in it are faster than in fp32.
bool findings_trains(const Device *device, Format format);
bool findings_gains(const Device *device, Format format);
bool findings_runs(const Device *device, OpId op, Format format);
// Operations of users; what only gradients call follows them.
bool operation_is_shown(OpId op);

void doctor_write_json(const Findings *findings, FILE *stream);
