// gpu/kernels/columns.h: walking down [rows, columns] of a dense array or one with strides.
//
// A block is rows of `across` threads, each of which has `width` neighbouring columns and every so
// many rows of the block's part, which is blockIdx.y.
#pragma once

#include "gpu/kernels/operands.h"

enum { COLUMN_BLOCK = 256 };

template <int width> struct ColumnWalk {
    u32 across, down, row; // threads of a row; rows of threads; that of this thread
    i64 column;            // the first of the thread's
    i64 begin, end;        // rows of the block's part, or none
    bool valid;

    __device__ __forceinline__ ColumnWalk(u32 across_, i64 columns, i64 rows, i64 part) {
        across = across_;
        down = COLUMN_BLOCK / across;
        row = threadIdx.x / across;
        column = ((i64)blockIdx.x * across + threadIdx.x % across) * width;
        valid = column < columns;
        begin = (i64)blockIdx.y * part;
        end = valid ? min(begin + part, rows) : begin;
    }

    __device__ __forceinline__ void load(const Operand &from, i64 at, float *value) const {
        if (width == EIGHT)
            load_eight(from, at, value);
        else
            value[0] = load_float(from, at);
    }
    __device__ __forceinline__ void store(const Operand &to, i64 at, const float *value) const {
        if (width == EIGHT)
            store_eight(to, at, value);
        else
            store_float(to, at, value[0]);
    }
    // Of a vector with a number a column; `missing` where there is no such vector.
    __device__ __forceinline__ void load_vector(const Operand &from, float missing,
                                                float *value) const {
#pragma unroll
        for (int k = 0; k < width; k++)
            value[k] =
                valid && from.kind != OPERAND_ABSENT ? load_float(from, column + k) : missing;
    }

    // Joins what the rows of threads have; those of the first row get it.
    template <class Value, class Join>
    __device__ __forceinline__ void join(Value (&value)[width], Join rule) const {
        SHARED(Value, between, COLUMN_BLOCK * width);
#pragma unroll
        for (int k = 0; k < width; k++)
            between[threadIdx.x * width + k] = value[k];
        for (u32 rows = down / 2; rows > 0; rows /= 2) {
            __syncthreads();
            if (row < rows)
#pragma unroll
                for (int k = 0; k < width; k++) {
                    value[k] = rule(value[k], between[(threadIdx.x + rows * across) * width + k]);
                    between[threadIdx.x * width + k] = value[k];
                }
        }
    }
};
