#include "data/order.h"

#include "kernel/random.h"

// The key of an epoch: other users of the same seed draw from blocks near position 0 of the seed
// itself, so the shuffle takes its own.
static uint64_t epoch_key(uint64_t seed, uint64_t epoch) {
    RandomBlock block = random_block(seed ^ UINT64_C(0x6F72646572), epoch);
    return (uint64_t)block.word[1] << 32 | block.word[0];
}

// A row of words, block after block.
typedef struct Words {
    uint64_t key, position;
    RandomBlock block;
    int left;
} Words;

static uint32_t next_word(Words *words) {
    if (words->left == 0) {
        words->block = random_block(words->key, words->position++);
        words->left = 4;
    }
    return words->block.word[--words->left];
}

// Below `range` without bias: a word times the range, its upper half the result; the few words
// whose lower half falls into the uneven rest are drawn again (Lemire, 2019).
static uint32_t next_below(Words *words, uint32_t range) {
    uint64_t product = (uint64_t)next_word(words) * range;
    if ((uint32_t)product < range) {
        uint32_t uneven = (uint32_t)(-range) % range;
        while ((uint32_t)product < uneven)
            product = (uint64_t)next_word(words) * range;
    }
    return (uint32_t)(product >> 32);
}

void order_shuffle(uint32_t *order, uint32_t count, uint64_t seed, uint64_t epoch) {
    Words words = {.key = epoch_key(seed, epoch)};
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t left = count; left > 1; left--) {
        uint32_t chosen = next_below(&words, left), kept = order[left - 1];
        order[left - 1] = order[chosen];
        order[chosen] = kept;
    }
}

uint32_t order_draw(uint32_t range, uint64_t position, uint64_t seed, uint64_t epoch) {
    // A 64-bit fraction times the range: the bias is below range / 2^64.
    RandomBlock block = random_block(epoch_key(seed, epoch), position);
    uint64_t low = (uint64_t)block.word[1] * range >> 32;
    return (uint32_t)(((uint64_t)block.word[0] * range + low) >> 32);
}
