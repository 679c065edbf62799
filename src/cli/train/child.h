// cli/train/child.h: this program, started again as a process of its own, and signals passed on to
// it.
//
// A child has a process group of its own, so that ^C on the terminal reaches it once: from us. It
// says nothing on standard output. However we end, it is told to stop, with a checkpoint; where it
// stands still then, once somebody has it go on, which the kernel does unless a process of this
// session takes it over. Main thread.
#pragma once

#include <sys/types.h>

#include "base/error.h"

// From here on the first of SIGINT, SIGTERM and SIGHUP asks for the end (run_stop_requested), and a
// third one is ours. Whoever waits for children passes on those that came: the first asks a run to
// stop, the second ends it at once.
void child_catch_signals(void);
int child_signals(void); // how many came

// `arguments` are those of main, ended by NULL. The process is set before a signal can be taken: it
// is among those that signals are passed on to from the start.
bool child_start(char *const *arguments, pid_t *process, Error *error) MUST_CHECK;

void child_send(const pid_t *processes, int count, int number); // a signal

// Where Ctrl-Z was pressed: stops these first, which the terminal does not reach, then us, and has
// them go on with us. Between stops_hold and stops_let, once a turn of the loop that waits.
void child_heed_stop(const pid_t *processes, int count);
