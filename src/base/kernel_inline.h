// base/kernel_inline.h: how the little rules are declared that the host and kernels share.
//
// A rule (how a scale moves, how a number is rounded) is written once, in a header, in what C17 and
// C++17 have in common: no compound literal, every `enum` and pointer converted aloud. nvcc
// compiles it for both sides, all other compilers as the inline function that it is. `make lint`
// calls every one from a kernel (tests/lint/rules.cu).
#pragma once

#ifdef __CUDACC__
#define KERNEL_INLINE static inline __host__ __device__
#else
#define KERNEL_INLINE static inline
#endif
