// tests/emulator/emulator.h: the words of a card, for kernels compiled as C++ for this machine.
//
// gpu/kernels/card.h includes it in place of what it says to nvcc. All of CUDA that kernels use
// stands here; what is missing does not compile, and is added when a kernel needs it. Barriers and
// warp operations wait for others, so that a kernel runs here as on a card; what a card only
// sometimes punishes (a lane that is not in its mask, an address that is not aligned) is a failure
// each time.
#pragma once

#include <math.h>
#include <string.h>

#include "number/inline.h"
#include "tests/emulator/threads.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__

// As a default argument: the line of the call.
static inline EmulatorPlace emulator_here(const char *file = __builtin_FILE(),
                                          int line = __builtin_LINE()) {
    return EmulatorPlace{file, line};
}

// ---- who one is ---------------------------------------------------------------------------------

#define threadIdx (emulator_thread->index)
#define blockIdx  emulator_block_index
#define blockDim  emulator_block_size
#define gridDim   emulator_grid_size
#define warpSize  32

// ---- vectors ------------------------------------------------------------------------------------

#define EMULATOR_VECTORS(type, name)                                       \
    struct alignas(2 * sizeof(type)) name##2 {                             \
        type x, y;                                                         \
    };                                                                     \
    struct alignas(4 * sizeof(type)) name##4 {                             \
        type x, y, z, w;                                                   \
    };                                                                     \
    static inline name##2 make_##name##2(type x, type y) {                 \
        return name##2 {x, y};                                             \
    }                                                                      \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { \
        return name##4 {x, y, z, w};                                       \
    }
EMULATOR_VECTORS(float, float)
EMULATOR_VECTORS(int, int)
EMULATOR_VECTORS(unsigned, uint)

// ---- shared memory ------------------------------------------------------------------------------

// An address out of a table is taken to be global memory: here all of it is.
#define GLOBAL(pointer) ((void)(pointer))
#define SHARED(type, name, count)                                                       \
    static char name##_key;                                                             \
    type(&name)[count] = *(type(*)[count])emulator_shared(emulator_here(), &name##_key, \
                                                          sizeof(type[count]), SHARED_ALIGNMENT)
#define SHARED_DYNAMIC(type, name) type *name = (type *)emulator_shared_dynamic()

// ---- waiting for the block ----------------------------------------------------------------------

static inline void __syncthreads(EmulatorPlace place = emulator_here()) {
    emulator_barrier(place, false);
}
static inline int __syncthreads_count(int predicate, EmulatorPlace place = emulator_here()) {
    return (int)emulator_barrier(place, predicate != 0);
}
static inline int __syncthreads_or(int predicate, EmulatorPlace place = emulator_here()) {
    return emulator_barrier(place, predicate != 0) != 0;
}
static inline int __syncthreads_and(int predicate, EmulatorPlace place = emulator_here()) {
    return emulator_barrier(place, predicate == 0) == 0;
}

// Threads take turns here, and blocks too: what one wrote is there for the next.
static inline void __threadfence(void) {}
static inline void __threadfence_block(void) {}

// ---- waiting for lanes --------------------------------------------------------------------------

static inline void __syncwarp(unsigned mask = ~0u, EmulatorPlace place = emulator_here()) {
    emulator_meet(place, MEETING_SYNC, mask, nullptr, nullptr, 0, 0, warpSize);
}

template <class Value>
static inline Value emulator_join(EmulatorPlace place, EmulatorMeeting how, unsigned mask,
                                  Value value, int argument = 0, int width = warpSize) {
    static_assert(sizeof(Value) == 4 || sizeof(Value) == 8, "lanes exchange 4 or 8 bytes");
    Value result;
    emulator_meet(place, how, mask, &value, &result, sizeof value, argument, width);
    return result;
}

#define EMULATOR_SHUFFLE(name, how)                                                          \
    template <class Value>                                                                   \
    static inline Value name(unsigned mask, Value value, int argument, int width = warpSize, \
                             EmulatorPlace place = emulator_here()) {                        \
        return emulator_join(place, how, mask, value, argument, width);                      \
    }
EMULATOR_SHUFFLE(__shfl_sync, MEETING_SHUFFLE)
EMULATOR_SHUFFLE(__shfl_xor_sync, MEETING_SHUFFLE_XOR)
EMULATOR_SHUFFLE(__shfl_up_sync, MEETING_SHUFFLE_UP)
EMULATOR_SHUFFLE(__shfl_down_sync, MEETING_SHUFFLE_DOWN)

#define EMULATOR_REDUCE(name, type, how)                                                        \
    static inline type name(unsigned mask, type value, EmulatorPlace place = emulator_here()) { \
        return emulator_join(place, how, mask, value);                                          \
    }
EMULATOR_REDUCE(__reduce_add_sync, unsigned, MEETING_ADD)
EMULATOR_REDUCE(__reduce_add_sync, int, MEETING_ADD)
EMULATOR_REDUCE(__reduce_min_sync, unsigned, MEETING_MIN)
EMULATOR_REDUCE(__reduce_min_sync, int, MEETING_MIN_SIGNED)
EMULATOR_REDUCE(__reduce_max_sync, unsigned, MEETING_MAX)
EMULATOR_REDUCE(__reduce_max_sync, int, MEETING_MAX_SIGNED)
EMULATOR_REDUCE(__reduce_and_sync, unsigned, MEETING_AND)
EMULATOR_REDUCE(__reduce_or_sync, unsigned, MEETING_OR)
EMULATOR_REDUCE(__reduce_xor_sync, unsigned, MEETING_XOR)

static inline unsigned __ballot_sync(unsigned mask, int predicate,
                                     EmulatorPlace place = emulator_here()) {
    return emulator_join(place, MEETING_BALLOT, mask, (unsigned)(predicate != 0));
}
static inline int __any_sync(unsigned mask, int predicate, EmulatorPlace place = emulator_here()) {
    return __ballot_sync(mask, predicate, place) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, EmulatorPlace place = emulator_here()) {
    return __ballot_sync(mask, !predicate, place) == 0;
}

static inline void emulator_check_wide(EmulatorPlace place, const void *at, const char *what) {
    if ((uintptr_t)at % 16)
        emulator_fail(place, EMULATOR_MISALIGNED, "%s of 16 bytes at %p, no multiple of 16", what,
                      at);
}

// ---- tiles of a whole warp ----------------------------------------------------------------------

static inline void emulator_multiply(EmulatorPlace place, EmulatorMeeting how, float *sum,
                                     const unsigned *a, const unsigned *b) {
    const unsigned in[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    emulator_meet(place, how, ~0u, in, sum, 0, 0, warpSize);
}
static inline void multiply_tiles_bf16(float *sum, const unsigned *a, const unsigned *b,
                                       EmulatorPlace place = emulator_here()) {
    emulator_multiply(place, MEETING_MULTIPLY_BF16, sum, a, b);
}
static inline void multiply_tiles_fp16(float *sum, const unsigned *a, const unsigned *b,
                                       EmulatorPlace place = emulator_here()) {
    emulator_multiply(place, MEETING_MULTIPLY_FP16, sum, a, b);
}
// A card multiplies 19 of the 32 bits, and what it makes of the others is nobody's to rely on.
static inline void multiply_tiles_tf32(float *sum, const unsigned *a, const unsigned *b,
                                       EmulatorPlace place = emulator_here()) {
    for (int i = 0; i < 6; i++) {
        const unsigned word = i < 4 ? a[i] : b[i - 4];
        if (word & 0x1FFF && (word & 0x7FFFFFFF) <= 0x7F800000)
            emulator_fail(place, EMULATOR_WRONG_LAUNCH, "factor 0x%08x is not rounded to tf32",
                          word);
    }
    emulator_multiply(place, MEETING_MULTIPLY_TF32, sum, a, b);
}
// Each lane reads its row itself, so that who looks for races sees who reads.
static inline void emulator_load_row(EmulatorPlace place, EmulatorMeeting how, const void *row,
                                     unsigned *part) {
    emulator_check_wide(place, row, "row of a tile");
    unsigned own[4];
    memcpy(own, row, sizeof own);
    emulator_meet(place, how, ~0u, own, part, 0, 0, warpSize);
}
static inline void load_tiles(const void *row, unsigned *part,
                              EmulatorPlace place = emulator_here()) {
    emulator_load_row(place, MEETING_LOAD_TILES, row, part);
}
static inline void load_tiles_turned(const void *row, unsigned *part,
                                     EmulatorPlace place = emulator_here()) {
    emulator_load_row(place, MEETING_LOAD_TILES_TURNED, row, part);
}

// ---- atomics ------------------------------------------------------------------------------------

// One thread runs at a time; the operations are atomic for whoever looks for races.
template <class Value, class Rule> static inline Value emulator_atomic(Value *at, Rule rule) {
    Value old, changed;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    changed = rule(old);
    __atomic_store(at, &changed, __ATOMIC_RELAXED);
    return old;
}
template <class Value> struct EmulatorSame { typedef Value Type; }; // lets `at` alone say the type
#define EMULATOR_ATOMIC(name, changed)                                              \
    template <class Value>                                                          \
    static inline Value name(Value *at, typename EmulatorSame<Value>::Type value) { \
        return emulator_atomic(at, [=](Value old) -> Value { return changed; });    \
    }
EMULATOR_ATOMIC(atomicAdd, old + value)
EMULATOR_ATOMIC(atomicSub, old - value)
EMULATOR_ATOMIC(atomicMin, value < old ? value : old)
EMULATOR_ATOMIC(atomicMax, value > old ? value : old)
EMULATOR_ATOMIC(atomicAnd, old &value)
EMULATOR_ATOMIC(atomicOr, old | value)
EMULATOR_ATOMIC(atomicXor, old ^ value)
EMULATOR_ATOMIC(atomicExch, ((void)old, value))
template <class Value>
static inline Value atomicCAS(Value *at, typename EmulatorSame<Value>::Type expected,
                              typename EmulatorSame<Value>::Type value) {
    return emulator_atomic(at, [=](Value old) { return old == expected ? value : old; });
}

// ---- numbers ------------------------------------------------------------------------------------

static inline float __uint_as_float(unsigned bits) {
    return number_fp32_of_bits(bits);
}
static inline unsigned __float_as_uint(float value) {
    return number_bits_of_fp32(value);
}
static inline float __int_as_float(int bits) {
    return number_fp32_of_bits((unsigned)bits);
}
static inline int __float_as_int(float value) {
    return (int)number_bits_of_fp32(value);
}
static inline int __popc(unsigned value) {
    return __builtin_popcount(value);
}
static inline int __clz(int value) {
    return value ? __builtin_clz((unsigned)value) : 32;
}
static inline int __ffs(int value) {
    return __builtin_ffs(value);
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}
static inline float rsqrtf(float value) { // a card's is within 2 units of the last place
    return 1 / sqrtf(value);
}
#define EMULATOR_TWO(type)                   \
    static inline type min(type a, type b) { \
        return b < a ? b : a;                \
    }                                        \
    static inline type max(type a, type b) { \
        return a < b ? b : a;                \
    }
EMULATOR_TWO(int)
EMULATOR_TWO(unsigned)
EMULATOR_TWO(long)
EMULATOR_TWO(unsigned long)
EMULATOR_TWO(long long)
EMULATOR_TWO(unsigned long long)
static inline float min(float a, float b) {
    return fminf(a, b);
}
static inline float max(float a, float b) {
    return fmaxf(a, b);
}

// Of any NaN a card's conversions make this one.
static inline float fp32_of_fp16(uint16_t bits) {
    return number_fp16_to_fp32(bits);
}
static inline uint16_t fp16_of_fp32(float value) {
    return value == value ? number_fp32_to_fp16(value) : 0x7FFF;
}
static inline uint16_t bf16_of_fp32(float value) {
    return value == value ? number_fp32_to_bf16(value) : 0x7FFF;
}

// ---- 16 bytes at once ---------------------------------------------------------------------------

static inline uint4 load_wide(const void *from, EmulatorPlace place = emulator_here()) {
    emulator_check_wide(place, from, "load");
    uint4 value;
    memcpy(&value, from, sizeof value);
    return value;
}
static inline void store_wide(void *to, uint4 value, EmulatorPlace place = emulator_here()) {
    emulator_check_wide(place, to, "store");
    memcpy(to, &value, sizeof value);
}
