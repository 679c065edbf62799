#include "number/int8.h"

#include <math.h>

bool int8_from_rows(const float *weights, int64_t rows, int64_t depth, int8_t *numbers,
                    float *steps) {
    for (int64_t row = 0; row < rows; row++) {
        const float *from = weights + row * depth;
        float largest = 0;
        for (int64_t i = 0; i < depth; i++) {
            if (!isfinite(from[i]))
                return false;
            largest = fabsf(from[i]) > largest ? fabsf(from[i]) : largest;
        }
        steps[row] = int8_step(largest);
        const float inverse = 1.0f / steps[row];
        for (int64_t i = 0; i < depth; i++)
            numbers[row * depth + i] = int8_of(from[i], inverse);
    }
    return true;
}
