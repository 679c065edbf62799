// gpu/kernels/rows.h: rows of a dense array, each worked on by a team.
//
// A thread has parts of eight neighbours, cut where the whole array's sixteen bytes are, so that
// rows of any length come and go by 16 bytes but for their ends. What fits into the registers of
// the team is read once (`chunks` parts a thread); of longer rows (`chunks` 0) every walk reads
// anew.
#pragma once

#include "gpu/kernels/operands.h"
#include "gpu/kernels/team.h"

struct Part {
    i64 first;  // of eight elements, from the array's begin on
    bool whole; // all of them are the row's, and lie wide
};

template <int chunks> struct RowWalk {
    Team team;
    i64 row, begin, end; // elements, from the array's begin on
    i64 base, parts;     // of the row's parts
    bool valid, wide;

    __device__ __forceinline__ explicit RowWalk(const RowArguments &a)
        : RowWalk(a, ((i64)blockIdx.x * blockDim.x + threadIdx.x) / a.team, a.rows) {}

    // Of a row past the last of `rows`, as a block may have, its team has nothing.
    __device__ __forceinline__ RowWalk(const RowArguments &a, i64 own, i64 rows) {
        team = team_of(a.team);
        row = own;
        valid = own < rows;
        wide = a.wide;
        begin = valid ? row * a.length : 0;
        end = valid ? begin + a.length : 0;
        base = begin / EIGHT * EIGHT;
        parts = (end - base + EIGHT - 1) / EIGHT;
    }

    __device__ __forceinline__ Part part(i64 number) const {
        const i64 first = base + number * EIGHT;
        return Part{first, wide && first >= begin && first + EIGHT <= end};
    }

    __device__ __forceinline__ bool has(i64 at) const { return at >= begin && at < end; }

    // Calls with each part of this thread and its number. Of a long row `ahead` are on their way at
    // once.
    template <int ahead = 2, class Function>
    __device__ __forceinline__ void each(Function function) const {
        if constexpr (chunks > 0) {
#pragma unroll
            for (int i = 0; i < chunks; i++)
                if (team.member + i * team.size < parts)
                    function(i, part(team.member + i * team.size));
        } else {
#pragma unroll ahead
            for (i64 number = team.member; number < parts; number += team.size)
                function(0, part(number));
        }
    }

    // What lies outside of the row is `fill`.
    __device__ __forceinline__ void load(const Operand &from, const Part &at, float fill,
                                         float *value) const {
        if (at.whole) {
            load_eight(from, at.first, value);
            return;
        }
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            value[i] = has(at.first + i) ? load_float(from, at.first + i) : fill;
    }

    __device__ __forceinline__ void store(const Operand &to, const Part &at,
                                          const float *value) const {
        if (at.whole) {
            store_eight(to, at.first, value);
            return;
        }
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            if (has(at.first + i))
                store_float(to, at.first + i, value[i]);
    }
};

static __device__ __forceinline__ float sum_of_eight(const float *value) {
    return ((value[0] + value[1]) + (value[2] + value[3])) +
           ((value[4] + value[5]) + (value[6] + value[7]));
}

// A thread's parts of a row.
template <int chunks> struct RowValues {
    float value[chunks > 0 ? chunks : 1][EIGHT];

    // In a first walk.
    __device__ __forceinline__ float *load(const RowWalk<chunks> &walk, int number,
                                           const Operand &from, const Part &at, float fill) {
        walk.load(from, at, fill, value[number]);
        return value[number];
    }
    // In a later one, as the walk before left them, or from memory.
    __device__ __forceinline__ float *again(const RowWalk<chunks> &walk, int number,
                                            const Operand &from, const Part &at, float fill) {
        if (chunks == 0)
            walk.load(from, at, fill, value[number]);
        return value[number];
    }
};
