// Products in whole numbers: the loops of cpu/int8.c. Sums are of 32 bits and exact, so that every
// level gives the same.
//
// What one instruction multiplies is a word of 32 bits along the depth. With VNNI that is four
// numbers of 8 bits, of which the first factor's have no sign: they are kept 128 too large, and
// what that adds to each sum is taken off again. Without, it is two numbers of 16 bits.
#include <string.h>

#include "cpu/simd.h"
#include "number/int8.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)

typedef uint8_t Number; // of the first factor
typedef int8_t Weight;  // of the second, packed
typedef __m512i Sums;
enum { ZERO = 128, LANES = 16, TILE_ROWS = 12 };
#define ADD_WORDS(sums, a, b) _mm512_dpbusd_epi32(sums, a, b)
#define LOAD(from)            _mm512_loadu_si512(from)
#define STORE(to, sums)       _mm512_storeu_si512(to, sums)
#define EACH(word)            _mm512_set1_epi32(word)

#elif defined(__AVX512BW__)

typedef int16_t Number;
typedef int16_t Weight;
typedef __m512i Sums;
enum { ZERO = 0, LANES = 16, TILE_ROWS = 10 };
#define ADD_WORDS(sums, a, b) _mm512_add_epi32(sums, _mm512_madd_epi16(a, b))
#define LOAD(from)            _mm512_loadu_si512(from)
#define STORE(to, sums)       _mm512_storeu_si512(to, sums)
#define EACH(word)            _mm512_set1_epi32(word)

#elif defined(__AVXVNNI__)

typedef uint8_t Number;
typedef int8_t Weight;
typedef __m256i Sums;
enum { ZERO = 128, LANES = 8, TILE_ROWS = 4 };
#define ADD_WORDS(sums, a, b) _mm256_dpbusd_avx_epi32(sums, a, b)
#define LOAD(from)            _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define STORE(to, sums)       _mm256_storeu_si256((__m256i *)(void *)(to), sums)
#define EACH(word)            _mm256_set1_epi32(word)

#elif defined(__AVX2__)

typedef int16_t Number;
typedef int16_t Weight;
typedef __m256i Sums;
enum { ZERO = 0, LANES = 8, TILE_ROWS = 4 };
#define ADD_WORDS(sums, a, b) _mm256_add_epi32(sums, _mm256_madd_epi16(a, b))
#define LOAD(from)            _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define STORE(to, sums)       _mm256_storeu_si256((__m256i *)(void *)(to), sums)
#define EACH(word)            _mm256_set1_epi32(word)

#else // whatever the compiler makes of it

typedef int16_t Number;
typedef int16_t Weight;
enum { ZERO = 0, LANES = 4, TILE_ROWS = 2 };
#define IS_PLAIN 1

#endif

// A panel has two vectors of columns: panel[word][column][number of the word].
enum { COLUMNS = 2 * LANES, WORD = 4 / sizeof(Number) };

static void quantise(const float *restrict x, void *restrict to, int64_t count, float inverse) {
    Number *restrict numbers = to;
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (Number)(int8_of(x[i], inverse) + ZERO);
}

static void pack(const int8_t *weight, int64_t stride, int64_t columns, int64_t depth, void *panel,
                 int32_t *offset) {
    Weight *to = panel;
    const int64_t words = (depth + WORD - 1) / WORD;
    for (int64_t c = 0; c < COLUMNS; c++) {
        int32_t sum = 0;
        const int8_t *from = weight + c * stride;
        for (int64_t i = 0; i < words * WORD; i++) {
            Weight number = c < columns && i < depth ? from[i] : 0;
            to[(i / WORD * COLUMNS + c) * WORD + i % WORD] = number;
            sum += number;
        }
        offset[c] = -ZERO * sum;
    }
}

// ---- tiles --------------------------------------------------------------------------------------

#ifdef IS_PLAIN

static inline void tile(const Number *a, int64_t stride, int rows, const Weight *panel,
                        const int32_t *offset, int64_t words, int32_t *out) {
    for (int r = 0; r < rows; r++)
        memcpy(out + r * COLUMNS, offset, COLUMNS * sizeof *out);
    for (int64_t word = 0; word < words; word++, panel += COLUMNS * WORD)
        for (int r = 0; r < rows; r++) {
            const Number *numbers = a + r * stride + word * WORD;
            for (int c = 0; c < COLUMNS; c++)
                out[r * COLUMNS + c] +=
                    numbers[0] * panel[WORD * c] + numbers[1] * panel[WORD * c + 1];
        }
}

#else

// `rows` is a constant where this is called: the sums lie in registers.
static inline __attribute__((always_inline)) void tile(const Number *a, int64_t stride,
                                                       const int rows, const Weight *panel,
                                                       const int32_t *offset, int64_t words,
                                                       int32_t *out) {
    Sums first[TILE_ROWS], second[TILE_ROWS];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
        first[r] = LOAD(offset);
        second[r] = LOAD(offset + LANES);
    }
    for (int64_t word = 0; word < words; word++, panel += COLUMNS * WORD) {
        const Sums b0 = LOAD(panel), b1 = LOAD(panel + LANES * WORD);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            int32_t bits;
            memcpy(&bits, a + r * stride + word * WORD, sizeof bits);
            const Sums each = EACH(bits);
            first[r] = ADD_WORDS(first[r], each, b0);
            second[r] = ADD_WORDS(second[r], each, b1);
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
        STORE(out + r * COLUMNS, first[r]);
        STORE(out + r * COLUMNS + LANES, second[r]);
    }
}

#endif

#define TILE(count) \
    case count: tile(from, stride, count, packed, offset, words, sums + row * COLUMNS); break;

static void multiply(const void *a, int64_t stride, int64_t rows, const void *panel,
                     const int32_t *offset, int64_t depth, int32_t *sums) {
    const Weight *packed = panel;
    const int64_t words = (depth + WORD - 1) / WORD;
    for (int64_t row = 0, count; row < rows; row += count) {
        const Number *from = (const Number *)a + row * stride;
        count = rows - row < TILE_ROWS ? rows - row : TILE_ROWS;
        switch (count) {
            TILE(1)
            TILE(2)
#if defined(__AVX2__)
            TILE(3)
            TILE(4)
#endif
#if defined(__AVX512BW__)
            TILE(5)
            TILE(6)
            TILE(7)
            TILE(8)
            TILE(9)
            TILE(10)
#endif
#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
            TILE(11)
            TILE(12)
#endif
        default: break;
        }
    }
}

// ---- one row by weights where they lie ----------------------------------------------------------

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)

// Past the end weights are 0, and add nothing.
static int32_t dot_row(const Number *numbers, const int8_t *row, int64_t depth) {
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i products = _mm512_setzero_si512(), all = _mm512_setzero_si512();
    for (int64_t i = 0; i < depth; i += 64) {
        const int64_t left = depth - i;
        const __mmask64 there = left < 64 ? ((__mmask64)1 << left) - 1 : ~(__mmask64)0;
        const __m512i w = _mm512_maskz_loadu_epi8(there, row + i);
        const __m512i x = _mm512_maskz_loadu_epi8(there, numbers + i);
        products = _mm512_dpbusd_epi32(products, x, w);
        all = _mm512_dpbusd_epi32(all, ones, w);
    }
    // Beyond 2^16 terms the first sum wraps, and what is taken off brings it back.
    return (int32_t)((uint32_t)_mm512_reduce_add_epi32(products) -
                     ZERO * (uint32_t)_mm512_reduce_add_epi32(all));
}

#elif defined(__AVXVNNI__)

// The same; what is left of the depth is copied, and 0 behind it. Left to gcc 12 a loop of this is
// multiplied as if the first factor had no sign to be taken off.
static int32_t dot_row(const Number *numbers, const int8_t *row, int64_t depth) {
    enum { STEPS = 32 };
    const __m256i ones = _mm256_set1_epi8(1);
    __m256i products = _mm256_setzero_si256(), all = products;
    for (int64_t i = 0; i < depth; i += STEPS) {
        const size_t here = depth - i < STEPS ? (size_t)(depth - i) : STEPS;
        uint8_t x[STEPS] = {0}, w[STEPS] = {0};
        memcpy(x, numbers + i, here);
        memcpy(w, row + i, here);
        products = _mm256_dpbusd_avx_epi32(products, LOAD(x), LOAD(w));
        all = _mm256_dpbusd_avx_epi32(all, ones, LOAD(w));
    }
    uint32_t sums[LANES], weights[LANES], sum = 0;
    STORE(sums, products);
    STORE(weights, all);
    for (int i = 0; i < LANES; i++)
        sum += sums[i] - ZERO * weights[i];
    return (int32_t)sum;
}

#else

static int32_t dot_row(const Number *numbers, const int8_t *row, int64_t depth) {
    int32_t sum = 0;
    for (int64_t i = 0; i < depth; i++)
        sum += numbers[i] * row[i];
    return sum;
}

#endif

static void dot(const void *a, const int8_t *weight, int64_t stride, int64_t columns, int64_t depth,
                int32_t *sums) {
    for (int64_t c = 0; c < columns; c++)
        sums[c] = dot_row(a, weight + c * stride, depth);
}

// ---- what sums are worth ------------------------------------------------------------------------

static void finish(const int32_t *restrict sums, const float *restrict worth,
                   const float *restrict bias, bool clips, float *restrict y, int64_t count) {
    if (!bias) {
        for (int64_t i = 0; i < count; i++)
            y[i] = int8_worth(sums[i], worth[i]);
    } else {
        for (int64_t i = 0; i < count; i++) {
            float value = int8_worth(sums[i], worth[i]);
            y[i] = value + bias[i];
        }
    }
    if (clips)
        for (int64_t i = 0; i < count; i++)
            y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

extern const CpuInt8 ISA_NAME(cpu_int8);
const CpuInt8 ISA_NAME(cpu_int8) = {
    .zero = ZERO,
    .number_bytes = sizeof(Number),
    .word = WORD,
    .columns = COLUMNS,
    .quantise = quantise,
    .pack = pack,
    .multiply = multiply,
    .dot = dot,
    .finish = finish,
};
