// run/twin_squares.h: how far two arrays of numbers are apart, and how large they are.
//
// Compiled once per level of vector instructions (run/simd/); levels may differ in the last bits,
// as they add up in another order. Any thread.
#pragma once

// Adds the squares of own[i] - other[i] to sums[0], of own[i] to sums[1] and of other[i] to
// sums[2]; not finite where anything was.
typedef void (*TwinSquares)(const float *own, const float *other, int count, double sums[3]);

// On this processor.
void twin_squares(const float *own, const float *other, int count, double sums[3]);
