// cpu/denormal.h: has the calling thread treat denormal numbers as zero, which costs nothing,
// instead of computing with them, which costs a hundred times an ordinary step. Any thread.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

static inline void denormal_flush(void) {
#if defined(__SSE2__)
    const unsigned flush_results = 1u << 15, flush_inputs = 1u << 6;
    unsigned now = _mm_getcsr(), wanted = now | flush_results | flush_inputs;
    if (now != wanted)
        _mm_setcsr(wanted);
#elif defined(__aarch64__)
    unsigned long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | 1ul << 24));
#endif
}
