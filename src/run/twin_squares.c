#include "run/twin_squares.h"

#include "base/isa.h"

extern const TwinSquares twin_squares_base;
#if defined(__x86_64__)
extern const TwinSquares twin_squares_avx2, twin_squares_avx512;
#endif

void twin_squares(const float *own, const float *other, int count, double sums[3]) {
    TwinSquares add = twin_squares_base;
#if defined(__x86_64__)
    IsaLevel level = isa_level();
    add = level >= ISA_AVX512 ? twin_squares_avx512
          : level >= ISA_AVX2 ? twin_squares_avx2
                              : twin_squares_base;
#endif
    add(own, other, count, sums);
}
