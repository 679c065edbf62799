// The largest of rows. NaN comes before everything, then the larger, of equals the first.
#include "gpu/kernels/rows.h"

enum { ABOVE_ALL = 0xFF900000u }; // of what rises with the numbers, +inf is the largest

// A number and where in its row it is, as one whole number: what comes first is the larger. 0:
// none.
static __device__ __forceinline__ u64 place_of(float value, i64 column) {
    const u32 bits = __float_as_uint(value + 0.0f); // -0 is 0
    const u32 rising = bits >> 31 ? ~bits : bits | 0x80000000;
    return (u64)(value == value ? rising : ABOVE_ALL) << 32 | (u32) ~(u32)column;
}

static __device__ __forceinline__ i32 column_of(u64 place) {
    return (i32) ~(u32)place;
}

struct First {
    __device__ __forceinline__ u64 operator()(u64 a, u64 b) const { return a > b ? a : b; }
};

// The first of a row, of what comes after `last`.
static __device__ __forceinline__ u64 first_of_row(const RowWalk<0> &walk, const Operand &x,
                                                   u64 last) {
    u64 first = 0;
    walk.each<1>([&](int number, const Part &at) {
        float value[EIGHT];
        (void)number;
        walk.load(x, at, 0, value);
#pragma unroll
        for (int i = 0; i < EIGHT; i++) {
            const u64 place = place_of(value[i], at.first + i - walk.begin);
            if (walk.has(at.first + i) && place > first && place < last)
                first = place;
        }
    });
    return join_team(walk.team, first, First());
}

enum { ANY = -1 }; // comes before all

GPU_DEFINE(argmax) {
    const RowWalk<0> walk(a);
    const u64 first = first_of_row(walk, a.input[0], (u64)ANY);
    if (walk.valid && walk.team.member == 0)
        ((i32 *)a.output.data)[walk.row] = column_of(first);
}

// One after the other: those that are asked for are few.
GPU_DEFINE(topk) {
    const RowWalk<0> walk(a.rows);
    u64 last = (u64)ANY;
    for (i64 k = 0; k < a.count; k++) {
        last = first_of_row(walk, a.rows.input[0], last);
        if (walk.valid && walk.team.member == 0) {
            const i32 column = column_of(last);
            const i64 to = walk.row * a.count + k;
            store_float(a.rows.output, to, load_float(a.rows.input[0], walk.begin + column));
            a.indices[to] = column;
        }
    }
}
