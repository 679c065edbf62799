// base/clock.h: elapsed time, on a clock that never jumps. Any thread.
#pragma once

// Seconds since an arbitrary fixed moment.
double clock_seconds(void);
