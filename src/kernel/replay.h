// kernel/replay.h: a device that accepts all work and does none.
//
// A run that resumes replays its script: everything that the script does happens again, but for
// what the device would compute. While a device replays, its backend is a copy of its own whose
// kernels succeed without doing anything; memory is handed out as before, with contents that nobody
// may read, and reading gives zeros. Absent kernels stay absent. The thread that drives the device.
#pragma once

#include "kernel/kernel.h"

// Neither may be called twice in a row.
bool device_begin_replay(Device *device, Error *error) MUST_CHECK;
void device_end_replay(Device *device);
