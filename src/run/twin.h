// run/twin.h: two trainings of one script in lock step, each in a process of its own: the run that
// was asked for, and its twin, which differs from it in the precision.
//
// A TwinLink is made before the process forks, and before any device, thread or sandbox: two ends
// of a socket, and memory that both see. Each process then takes its side. At the end of every step
// the two meet: each says how far it is, and neither goes on before the other has come as far, but
// for a few steps where those are short. Meanwhile the twin leaves samples of what it computes in
// the shared memory, where the run holds those of every step against its own (run/twin_private.h
// says how, and what "beyond rounding" means).
//
// Nobody is waited for who is not there: a process that ends, however, ends its side of the socket.
// The run goes on alone then, and says so; the twin ends with the run. A signal or an order to stop
// is heeded while the other is waited for.
#pragma once

#include "run/run.h"
#include "store/twin.h"

typedef enum TwinSide { TWIN_RUN, TWIN_TWIN, TWIN_SIDES } TwinSide;

TwinLink *twin_new(Error *error);
// After the fork, in each of both processes, once.
void twin_take_side(TwinLink *link, TwinSide side);
// Ends this side. NULL is fine.
void twin_free(TwinLink *link);

// What is known of the pair now, on the run's side, borrowed; NULL: nothing was held against
// anything yet, or this is the twin.
const TwinReport *run_twin(const Run *run);
// How the twin failed, on the run's side, once that has ended; false: it did not.
bool twin_link_failed(const TwinLink *link, Error *error);
