// cli/screen/screen.h: the door to ui/ for the command line: opens the screen on the history that
// was asked for, or on a copy of the recording that comes with the program. The main thread calls.
#pragma once

#include "cli/cli.h"
#include "store/store.h"

// A history to try the screen with, in a folder of its own, which screen_forget_demo removes.
typedef struct ScreenDemo {
    char folder[STORE_PATH_SIZE];
    char path[STORE_PATH_SIZE];
    int lock; // of the folder: held, it is in use
} ScreenDemo;

bool screen_unpack_demo(ScreenDemo *demo, Error *error) MUST_CHECK;
void screen_forget_demo(const ScreenDemo *demo);

// Returns when the user is done, with cli->status. `run` NULL: at home; `demo` NULL: on --db.
bool screen_open(Cli *cli, const char *run, const ScreenDemo *demo, Error *error) MUST_CHECK;
