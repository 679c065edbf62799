// gpu/clock.h: the card's own clock, by events: the ClockKernels of kernel/kernel.h. A card that
// fails to stamp goes on without: only a time is lost.
#pragma once

#include "gpu/gpu.h"

extern const ClockKernels gpu_clock;

void gpu_close_clock(Gpu *gpu);
