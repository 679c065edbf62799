// What goes element by element over many tensors: statistics that a skipped step takes back, the
// average of the weights, gradients whose values are held to a limit or multiplied by a number.
#include "gpu/kernels/pieces.h"

struct Restore {
    const PairRecord &record;
    template <int N> __device__ __forceinline__ void run(i64 at) {
        float value[N];
        load_span<N>(record.source, at, value);
        store_span<N>(record.target, at, value);
    }
};

struct Average {
    const PairRecord &record;
    const float decay, rest;
    template <int N> __device__ __forceinline__ void run(i64 at) {
        float mean[N], value[N];
        load_span<N>(record.target, at, mean);
        load_span<N>(record.source, at, value);
#pragma unroll
        for (int i = 0; i < N; i++)
            mean[i] = fmaf(decay, mean[i], rest * value[i]);
        store_span<N>(record.target, at, mean);
    }
};

struct ClipValue {
    const ScanRecord &record;
    const float limit;
    template <int N> __device__ __forceinline__ void run(i64 at) {
        float value[N];
        load_span<N>(record.gradient, at, value);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float low = value[i] > limit ? limit : value[i];
            value[i] = low < -limit ? -limit : low;
        }
        store_span<N>(record.gradient, at, value);
    }
};

struct Multiply {
    const ScanRecord &record;
    const float factor;
    template <int N> __device__ __forceinline__ void run(i64 at) {
        float value[N];
        load_span<N>(record.gradient, at, value);
#pragma unroll
        for (int i = 0; i < N; i++)
            value[i] *= factor;
        store_span<N>(record.gradient, at, value);
    }
};

GPU_DEFINE(restore) {
    if (!a.flags->found_inf)
        return;
    const Piece<PairRecord> piece = piece_of_block<PairRecord>(a.table);
    Restore body = {*piece.record};
    for_piece(piece, piece.record->wide, body);
}

GPU_DEFINE(average) {
    if (a.flags && a.flags->found_inf)
        return;
    const Piece<PairRecord> piece = piece_of_block<PairRecord>(a.table);
    Average body = {*piece.record, a.decay, a.rest};
    for_piece(piece, piece.record->wide, body);
}

GPU_DEFINE(clip_value) {
    const Piece<ScanRecord> piece = piece_of_block<ScanRecord>(a.table);
    ClipValue body = {*piece.record, a.limit};
    for_piece(piece, piece.record->wide, body);
}

GPU_DEFINE(multiply) {
    const float factor = *a.factor;
    if (factor == 1) // mostly nothing is clipped
        return;
    const Piece<ScanRecord> piece = piece_of_block<ScanRecord>(a.table);
    Multiply body = {*piece.record, factor};
    for_piece(piece, piece.record->wide, body);
}
