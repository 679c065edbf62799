// gpu/kernels/values.h: what a kernel does about a value that does not pass (kernel/status.h).
#pragma once

#include "gpu/kernels/card.h"

// Whether a value passes. If not, it is said, and nothing may be read or written by it. The first
// call that finds one is kept, and of its values that at the lowest position, whatever order the
// threads come in. A position past 2^32 is told as that.
static __device__ __forceinline__ bool value_holds(const ValueArguments &a, i64 position,
                                                   i32 value) {
    if (value_passes(&a.check, value))
        return true;
    const u64 told = position < 0xFFFFFFFF ? (u64)position : 0xFFFFFFFF;
    const u64 owner = atomicCAS(&a.found->call, FOUND_NOTHING, a.call);
    if (owner == FOUND_NOTHING) // this thread alone has seen it so
        a.found->check = a.check;
    if (owner == FOUND_NOTHING || owner == a.call)
        atomicMin(&a.found->first, told << 32 | (u32)value);
    return false;
}
