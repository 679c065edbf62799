// gpu/kernels/fragments.h: factors in shared memory, and what of them a warp multiplies at once.
//
// A factor lies there as in memory, [outer][depth] or [depth][outer], in rows of a pitch by which
// eight of them begin in different banks. A fragment is sixteen of the outer dimension by so many
// of the depth as are added at once: four tiles of eight by half of those (gpu/kernels/tiles.h).
#pragma once

#include "gpu/kernels/product.h"
#include "gpu/kernels/tiles.h"

// In what order the tiles of a fragment come: down the outer dimension first, as of a left factor,
// or down the depth, as of a right one.
enum Side { SIDE_LEFT, SIDE_RIGHT };

// Where a factor's tile lies, in rows of these pitches, and where in it the lane's part of the
// first fragment begins. `paired`: of two neighbours in depth the first is taken for the first
// tile, the other for the second, as of a left factor that lies in registers as sums do.
template <class Number, int along, int across, bool paired = false> struct Stage {
    typename Number::Stored *memory;
    int outer, depth; // strides
    int lane;
};

template <class Number, int along, int across, Side side, bool paired = false>
static __device__ __forceinline__ Stage<Number, along, across, paired>
stage_of(bool along_depth, typename Number::Stored *memory) {
    const int lane = (int)threadIdx.x % 32, within = lane % 8;
    const int second = lane / 8 % 2, third = lane / 16;
    const int o = (side == SIDE_LEFT ? second : third) * 8 + (along_depth ? within : 0);
    const int d =
        (side == SIDE_LEFT ? third : second) * (Number::AT_ONCE / 2) + (along_depth ? 0 : within);
    const int outer = along_depth ? along : 1, depth = along_depth ? 1 : across;
    const bool single = sizeof(typename Number::Stored) == 4 && !along_depth;
    return {memory, outer, depth,
            single ? lane / 4 + lane % 4 * (paired ? 2 : 1) * across : o * outer + d * depth};
}

// `count` fragments one behind the other in the outer dimension, from (outer, depth) of the tile
// on that begins `at` elements into the memory.
template <int count, Side side, class Number, int along, int across, bool paired>
static __device__ __forceinline__ void fragments(bool along_depth,
                                                 const Stage<Number, along, across, paired> &stage,
                                                 int at, int outer, int depth, u32 part[count][4]) {
    const typename Number::Stored *from =
        stage.memory + at + stage.lane + outer * stage.outer + depth * stage.depth;
    if (along_depth) {
#pragma unroll
        for (int i = 0; i < count; i++)
            load_tiles(from + 16 * i * along, part[i]);
    } else if constexpr (sizeof(typename Number::Stored) == 2) {
#pragma unroll
        for (int i = 0; i < count; i++)
            load_tiles_turned(from + 16 * i, part[i]);
    } else { // what turns tiles turns 16 bits
        const int down = (paired ? 1 : Number::AT_ONCE / 2) * across;
        const int second = side == SIDE_LEFT ? 8 : down, third = side == SIDE_LEFT ? down : 8;
#pragma unroll
        for (int i = 0; i < count; i++) {
            part[i][0] = from[16 * i];
            part[i][1] = from[16 * i + second];
            part[i][2] = from[16 * i + third];
            part[i][3] = from[16 * i + second + third];
        }
    }
}

// Eight neighbours of a factor on their way into tiles; fp32 is rounded as it is put there.
template <class Number> struct Eight {
    enum { WORDS = sizeof(typename Number::Stored) / 2 };
    uint4 bits[WORDS];
};

template <class Number>
static __device__ __forceinline__ Eight<Number> bring_eight(const ProductSource &source, i64 outer,
                                                            i64 depth) {
    Eight<Number> eight;
    const ProductRun run = product_run(source, outer, depth);
    if constexpr (Eight<Number>::WORDS == 1) {
        eight.bits[0] = product_load_bits(source, run);
    } else {
        float value[EIGHT];
        product_load(source, run, value);
        eight.bits[0] = bits_of_four(value);
        eight.bits[1] = bits_of_four(value + 4);
    }
    return eight;
}

template <class Number>
static __device__ __forceinline__ void put_eight(const Eight<Number> &eight,
                                                 typename Number::Stored *to) {
    if constexpr (Eight<Number>::WORDS == 1) {
        store_wide(to, eight.bits[0]);
    } else {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float value[4];
            four_of_bits(eight.bits[i], value);
#pragma unroll
            for (int k = 0; k < 4; k++)
                value[k] = number_fp32_through_tf32(value[k]);
            store_wide(to + 4 * i, bits_of_four(value));
        }
    }
}
