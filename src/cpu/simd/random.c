// Random numbers and what is made of them.
#include "kernel/random.h"
#include "cpu/simd.h"

enum { LANES = 16 };

static void random_words(uint64_t seed, uint64_t position, uint32_t *restrict words,
                         int64_t count) {
    int64_t i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES, position += LANES) {
        uint32_t word[4][LANES];
        for (int lane = 0; lane < LANES; lane++) {
            RandomBlock block = random_block(seed, position + (uint64_t)lane);
            word[0][lane] = block.word[0];
            word[1][lane] = block.word[1];
            word[2][lane] = block.word[2];
            word[3][lane] = block.word[3];
        }
        for (int lane = 0; lane < LANES; lane++)
            for (int k = 0; k < 4; k++)
                words[i + 4 * lane + k] = word[k][lane];
    }
    for (; i < count; i += 4, position++) {
        RandomBlock block = random_block(seed, position);
        for (int k = 0; k < 4 && i + k < count; k++)
            words[i + k] = block.word[k];
    }
}

static void dropout(const float *restrict x, float *restrict y, const uint32_t *restrict words,
                    int64_t count, float probability, float factor) {
    for (int64_t i = 0; i < count; i++)
        y[i] = random_drops(words[i], probability) ? 0.0f : x[i] * factor;
}

static void uniform(const uint32_t *restrict words, float *restrict y, int64_t count, double low,
                    double range, float last) {
    for (int64_t i = 0; i < count; i++)
        y[i] = random_uniform_in(words[i], low, range, last);
}

static void normal(const uint32_t *restrict words, float *restrict y, int64_t count, float mean,
                   float deviation) {
    for (int64_t pair = 0; pair < count / 2; pair++)
        random_normal(words + 2 * pair, mean, deviation, y + 2 * pair);
}

extern const CpuRandom ISA_NAME(cpu_random);
const CpuRandom ISA_NAME(cpu_random) = {
    .words = random_words,
    .dropout = dropout,
    .uniform = uniform,
    .normal = normal,
};
