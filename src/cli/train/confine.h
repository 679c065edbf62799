// cli/train/confine.h: the sandbox of a training: what it reads and writes, and nothing else.
#pragma once

#include "cli/cli.h"

// Before there are other threads, unless --trust. `script` is the path of the experiment, `written`
// a folder beside the history that is written too, or NULL. Later calls do nothing.
void confine(const Cli *cli, const char *script, const char *written);
// The same for reading what a script says of itself: nothing is written.
void confine_to_script(const char *script);
// Tries in a child process what a sandbox forbids: the parts (base/sandbox.h) that hold here.
int confine_try(void);
