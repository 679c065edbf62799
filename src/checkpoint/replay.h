// checkpoint/replay.h: a device that accepts all work and does none, and how memory knows what a
// replay leaves out.
//
// A run that resumes replays its script: everything that the script does happens again, but for
// what the device would compute. While a device replays it is idle (device_is_idle): its backend is
// a copy of its own whose kernels succeed without doing anything; memory is handed out as before,
// with contents that nobody may read, and reading gives zeros. Absent kernels stay absent. The
// thread that drives the device.
//
// The first step of a script is computed in a replay too, so that what it makes once is there
// again. Later memory bears marks, which the device and its tensors carry without knowing what
// they mean (DeviceMarks in kernel/kernel.h); all that is done by them is done here and in
// pieces.c.
#pragma once

#include "kernel/kernel.h"

enum {               // marks of memory
    MARK_LATE = 1,   // made or written over since the first step ended: a checkpoint holds it
    MARK_HOLLOW = 2, // while the device replayed: nothing is in it until a checkpoint fills it
    MARK_LISTED = 4  // it is a piece of the checkpoint that is being put together
};

// A step has ended, of a replay too: what is made from now on is late.
void device_note_step(Device *device);
// Whether what is made now is.
bool device_is_late(const Device *device);

// Not twice in a row, and not in the first step.
bool device_begin_replay(Device *device, Error *error) MUST_CHECK;
// Where none is in progress nothing happens.
void device_end_replay(Device *device);
