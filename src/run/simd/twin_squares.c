#include "run/twin_squares.h"

#include "base/isa.h"

static void add(const float *own, const float *other, int count, double sums[3]) {
    double apart = 0, a = 0, b = 0;
#pragma omp simd reduction(+ : apart, a, b)
    for (int i = 0; i < count; i++) {
        const double x = (double)own[i], y = (double)other[i];
        apart += (x - y) * (x - y);
        a += x * x;
        b += y * y;
    }
    sums[0] += apart;
    sums[1] += a;
    sums[2] += b;
}

extern const TwinSquares ISA_NAME(twin_squares);
const TwinSquares ISA_NAME(twin_squares) = add;
