// gpu/kernels/pieces.h: which part of which tensor a block has, of all that a plan runs over.
#pragma once

#include "gpu/kernels/operands.h"

enum { PIECE_THREADS = 256, PIECE_WARPS = PIECE_THREADS / WARP };

template <class Record> struct Piece {
    const Record *record;
    u32 tensor;
    i64 begin, end; // elements of it
};

template <class Record>
static __device__ __forceinline__ Piece<Record> piece_of_block(const PieceTable &table) {
    GLOBAL(table.records);
    GLOBAL(table.tensor_of);
    const u32 tensor = table.tensor_of[blockIdx.x];
    const Record *record = (const Record *)table.records + tensor;
    const i64 begin = (i64)(blockIdx.x - record->pieces.first) * PIECE_ELEMENTS;
    const i64 left = record->pieces.count - begin, most = PIECE_ELEMENTS;
    return Piece<Record>{record, tensor, begin, begin + (left < most ? left : most)};
}

// A span as operands.h takes it.
static __device__ __forceinline__ Operand operand_of(const Span &span) {
    Operand operand;
    operand.data = span.data;
    operand.format = span.format;
    operand.kind = OPERAND_WIDE;
    return operand;
}

// Neighbours of a span: eight, of one that lies wide, or a single one.
template <int N>
static __device__ __forceinline__ void load_span(const Span &from, i64 at, float (&value)[N]) {
    if (N == EIGHT)
        load_eight(operand_of(from), at, value);
    else
        value[0] = load_one(operand_of(from), at);
}
template <int N>
static __device__ __forceinline__ void store_span(const Span &to, i64 at, const float (&value)[N]) {
    if (N == EIGHT)
        store_eight(operand_of(to), at, value);
    else
        store_one(operand_of(to), at, value[0]);
}

// Calls the body for every element of a piece that is the thread's: by eights where they lie wide,
// and by ones behind the last eight, and where they do not. The body's call is a template over how
// many it gets: body.run<N>(at).
template <class Record, class Body>
static __device__ __forceinline__ void for_piece(const Piece<Record> &piece, bool wide,
                                                 Body &body) {
    const i64 whole = wide ? piece.begin + (piece.end - piece.begin) / EIGHT * EIGHT : piece.begin;
#pragma unroll 1
    for (i64 at = piece.begin + threadIdx.x * EIGHT; at < whole; at += PIECE_THREADS * EIGHT)
        body.template run<EIGHT>(at);
#pragma unroll 1
    for (i64 at = whole + threadIdx.x; at < piece.end; at += PIECE_THREADS)
        body.template run<1>(at);
}
