// kernel/plugin.h: a backend that lies in a file of its own, loaded when it is asked for.
//
// A plugin is a shared object with one function, mpbench_plugin, that returns its table. It has
// its own copies of the functions that it uses and shares only data with the program: so both must
// have been built of the same contract, which the stamp proves.
#pragma once

#include "kernel/about.h"
#include "kernel/kernel.h"
#include "kernel/multi.h"

typedef struct Plugin {
    uint64_t stamp; // plugin_stamp() as its compiler saw it; first, whatever else changes
    const Backend *backend;
} Plugin;

typedef const Plugin *(*PluginEntry)(void);
#define PLUGIN_ENTRY "mpbench_plugin"

// Of the texts that both were built of: the contract's headers and tables, and what a plugin has a
// copy of that works on data of the program. Make gives it to the two files that ask.
#define plugin_stamp() ((uint64_t)MPBENCH_CONTRACT)
