// Arrays out of nothing: constants, and random numbers as kernel/random.h deals them out.
#include <math.h>

#include "kernel/random.h"
#include "ref/access.h"
#include "ref/kernels.h"

static const double two_pi = 6.28318530717958647692;

REF_KERNEL(fill) {
    const View *y = &call->output[0];
    for (int64_t i = 0; i < view_count(y); i++)
        ref_put(y, i, call->attr->create.a);
    return true;
}

REF_KERNEL(arange) {
    const View *y = &call->output[0];
    for (int64_t i = 0; i < view_count(y); i++)
        ref_put(y, i, call->attr->create.a + (double)i * call->attr->create.b);
    return true;
}

static RandomBlock block_of(const OpAttr *attr, int64_t i) {
    return random_block(attr->random.seed, random_begin(&attr->random) + (uint64_t)i / 4);
}

REF_KERNEL(uniform) {
    const View *y = &call->output[0];
    double low = call->attr->create.a, high = call->attr->create.b;
    double last = random_uniform_last(y->format, low, high);
    for (int64_t i = 0; i < view_count(y); i++) {
        uint32_t word = block_of(call->attr, i).word[i % 4];
        ref_put(y, i, fmin(low + (high - low) * (double)random_uniform(word), last));
    }
    return true;
}

// Box-Muller: two words give two independent normal numbers, a cosine and a sine.
REF_KERNEL(normal) {
    const View *y = &call->output[0];
    double mean = call->attr->create.a, deviation = call->attr->create.b;
    for (int64_t i = 0; i < view_count(y); i++) {
        RandomBlock block = block_of(call->attr, i);
        const uint32_t *pair = &block.word[i % 4 / 2 * 2];
        double radius = sqrt(-2 * log(1 - (double)random_uniform(pair[0])));
        double angle = two_pi * (double)random_uniform(pair[1]);
        ref_put(y, i, mean + deviation * radius * (i % 2 ? sin(angle) : cos(angle)));
    }
    return true;
}

REF_KERNEL(randint) {
    const View *y = &call->output[0];
    int64_t low = (int64_t)call->attr->create.a;
    uint64_t range = (uint64_t)((int64_t)call->attr->create.b - low);
    for (int64_t i = 0; i < view_count(y); i++) {
        uint64_t word = block_of(call->attr, i).word[i % 4];
        ref_put(y, i, (double)(low + (int64_t)(word * range >> 32)));
    }
    return true;
}
