#include "data/transform.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernel/random.h"

bool transform_fits(const Transform *transform, const Field *field, Error *error) {
    const bool asks = transform->flip != 0 || transform->crop != 0 || transform->noise != 0;
    if (!asks && !transform->has_mean)
        return true;
    if (field->kind != FIELD_BYTES && field->kind != FIELD_FLOATS)
        return error_fail(error, ERROR_USAGE,
                          "transform: these samples are whole numbers; images, or other numbers "
                          "in fp32, can be changed");
    if (!(transform->flip >= 0 && transform->flip <= 1))
        return error_fail(error, ERROR_USAGE,
                          "transform: flip is %g: a probability from 0 to 1 is expected",
                          transform->flip);
    if (!(transform->noise >= 0) || isinf(transform->noise))
        return error_fail(error, ERROR_USAGE,
                          "transform: noise is %g: a deviation from 0 on is expected",
                          transform->noise);
    if (transform_moves(transform) && field->ndim != 3)
        return error_fail(error, ERROR_USAGE,
                          "transform: flip and crop are of images [H,W,C]; these samples have %d "
                          "dimensions",
                          field->ndim);
    if (transform->crop < 0 || (transform->crop > 0 && (transform->crop >= field->shape[0] ||
                                                        transform->crop >= field->shape[1])))
        return error_fail(error, ERROR_USAGE,
                          "transform: crop is %" PRId64 ": from 0 to less than the image's %" PRId64
                          " by %" PRId64 " is possible",
                          transform->crop, field->shape[0], field->shape[1]);
    int64_t channels = field->ndim > 0 ? field->shape[field->ndim - 1] : 1;
    if (transform->has_mean && transform->channels != 1 && transform->channels != channels)
        return error_fail(error, ERROR_USAGE,
                          "transform: mean and std are of %d channels, the samples have %" PRId64
                          "; give one number, or one a channel",
                          transform->channels, channels);
    for (int i = 0; transform->has_mean && i < transform->channels; i++)
        if (!(transform->deviation[i] > 0) || !isfinite(transform->mean[i]) ||
            isinf(transform->deviation[i]))
            return error_fail(
                error, ERROR_USAGE,
                "transform: mean %g and std %g of channel %d: a number, and one above "
                "0, are expected",
                (double)transform->mean[i], (double)transform->deviation[i], i + 1);
    return true;
}

// The sample's own row of random numbers: other users of the seed draw from other keys.
static uint64_t sample_key(uint64_t seed, uint64_t epoch, int64_t sample) {
    RandomBlock block = random_block(seed ^ UINT64_C(0x7472616E73666F72), epoch);
    uint64_t key = (uint64_t)block.word[1] << 32 | block.word[0];
    block = random_block(key, (uint64_t)sample);
    return (uint64_t)block.word[1] << 32 | block.word[0];
}

// The image moved by so many rows and columns, what comes in being zeros, and turned round.
static void move(const Field *field, int64_t down, int64_t right, bool flips, const float *from,
                 float *to) {
    const int64_t height = field->shape[0], width = field->shape[1], channels = field->shape[2];
    memset(to, 0, (size_t)field->size * sizeof *to);
    for (int64_t h = 0; h < height; h++) {
        const int64_t row = h + down;
        if (row < 0 || row >= height)
            continue;
        for (int64_t w = 0; w < width; w++) {
            const int64_t column = (flips ? width - 1 - w : w) + right;
            if (column >= 0 && column < width)
                memcpy(to + (h * width + w) * channels, from + (row * width + column) * channels,
                       (size_t)channels * sizeof *to);
        }
    }
}

static void normalise(const Transform *transform, const Field *field, float *x) {
    const int64_t channels = field->ndim > 0 ? field->shape[field->ndim - 1] : 1;
    for (int64_t i = 0; i < field->size; i++) {
        const int64_t channel = transform->channels == 1 ? 0 : i % channels;
        x[i] = (x[i] - transform->mean[channel]) / transform->deviation[channel];
    }
}

static void add_noise(float deviation, uint64_t key, int64_t count, float *x) {
    for (int64_t i = 0; i < count; i += 4) {
        const RandomBlock block = random_block(key, 1 + (uint64_t)i / 4);
        float normal[4];
        random_normal(block.word, 0, deviation, normal);
        random_normal(block.word + 2, 0, deviation, normal + 2);
        for (int64_t k = 0; k < 4 && i + k < count; k++)
            x[i + k] += normal[k];
    }
}

void transform_sample(const Transform *transform, const Field *field, uint64_t seed, uint64_t epoch,
                      int64_t sample, float *x, float *scratch) {
    const uint64_t key = sample_key(seed, epoch, sample);
    if (transform_moves(transform)) {
        const RandomBlock block = random_block(key, 0);
        const uint64_t places = 2 * (uint64_t)transform->crop + 1;
        const int64_t down = random_whole(block.word[0], -transform->crop, places);
        const int64_t right = random_whole(block.word[1], -transform->crop, places);
        const bool flips = (double)random_uniform(block.word[2]) < transform->flip;
        memcpy(scratch, x, (size_t)field->size * sizeof *x);
        move(field, down, right, flips, scratch, x);
    }
    if (transform->has_mean)
        normalise(transform, field, x);
    if (transform->noise > 0)
        add_noise((float)transform->noise, key, field->size, x);
}
