// What formats would do to gradients of which the history holds a histogram: held against rounding
// the numbers themselves.
#include "compare/what_if.h"

#include <math.h>
#include <stdlib.h>

#include "kernel/random.h"
#include "number/scaled.h"
#include "tests/test.h"

enum { COUNT = 1 << 14 };

static float numbers[COUNT];

static double uniform_at(uint64_t seed, int i) {
    return (double)random_uniform(random_block(seed, (uint64_t)i).word[0]);
}

// Exponents spread over `spread` powers of two below 2^top, mantissas evenly; both by chance.
static LayerSample draw(int top, int spread, int zeros) {
    LayerSample sample = {.width = 1, .count = COUNT, .zeros = zeros};
    for (int i = 0; i < COUNT; i++) {
        const int exponent = top - 1 - (int)(uniform_at(1, i) * spread);
        numbers[i] = i < zeros ? 0 : (float)ldexp(1 + uniform_at(2, i), exponent);
        if (numbers[i] == 0)
            continue;
        sample.bins[exponent - LAYER_LOWEST_EXPONENT]++;
        sample.largest = fmax(sample.largest, (double)numbers[i]);
    }
    return sample;
}

static int larger(const void *a, const void *b) {
    const float left = *(const float *)a, right = *(const float *)b;
    return left < right ? -1 : left > right;
}

// What rounding does to them as they lie now.
static double flushed_in_blocks(Format format) {
    const FormatInfo *info = &format_table[format];
    const NumberElement element = number_element(info->gradients);
    float all = 0;
    int flushed = 0;
    for (int i = 0; i < COUNT; i++)
        all = number_larger_magnitude(all, numbers[i]);
    const float tensor = number_scale_of_tensor(all, element);
    const int size = info->scaled == SCALED_BLOCK ? info->block : COUNT;
    for (int block = 0; block < COUNT; block += size) {
        float largest = 0;
        for (int i = 0; i < size; i++)
            largest = number_larger_magnitude(largest, numbers[block + i]);
        const NumberScale scale =
            number_scale_of_block(info->scale, largest, element, true, tensor);
        for (int i = 0; i < size; i++) {
            const float x = numbers[block + i];
            flushed +=
                x != 0 && number_round_to_element(x * scale.to_elements, element, false, 0) == 0;
        }
    }
    return (double)flushed / COUNT;
}

static const WhatIfRow *row_for(const WhatIfRow *rows, int count, Format format) {
    for (int i = 0; i < count; i++)
        if (rows[i].format == format)
            return &rows[i];
    CHECK(false);
    return rows;
}

static const Format scaled[] = {FORMAT_FP8,        FORMAT_E4M3,  FORMAT_MXFP8, FORMAT_MXFP6,
                                FORMAT_MXFP6_E2M3, FORMAT_MXFP4, FORMAT_NVFP4};

static void scaled_formats_do_to_mixed_numbers_what_is_foretold(void) {
    static const int spreads[] = {2, 6, 12, 24, 40};
    for (size_t s = 0; s < sizeof spreads / sizeof *spreads; s++)
        for (int zeros = 0; zeros <= COUNT / 2; zeros += COUNT / 2) {
            LayerSample sample = draw(-5, spreads[s], 0);
            if (zeros > 0) { // by chance too
                sample = (LayerSample){.width = 1, .count = COUNT};
                for (int i = 0; i < COUNT; i++) {
                    int exponent;
                    numbers[i] = uniform_at(3, i) < 0.5 ? 0 : numbers[i];
                    sample.zeros += numbers[i] == 0;
                    if (numbers[i] == 0)
                        continue;
                    frexpf(numbers[i], &exponent);
                    sample.bins[exponent - 1 - LAYER_LOWEST_EXPONENT]++;
                    sample.largest = fmax(sample.largest, (double)numbers[i]);
                }
            }
            WhatIfRow rows[FORMAT_COUNT];
            const int count = what_if_rows(&sample, 65536, rows);
            for (size_t f = 0; f < sizeof scaled / sizeof *scaled; f++) {
                const WhatIfRow *row = row_for(rows, count, scaled[f]);
                const double flushed = flushed_in_blocks(scaled[f]);
                CHECK_MESSAGE(fabs(row->shares.flushed - flushed) <= 0.02,
                              "%s, spread %d, %d zeros: %g are flushed, %g foretold",
                              format_name(scaled[f]), spreads[s], zeros, flushed,
                              row->shares.flushed);
                CHECK(row->least <= row->shares.flushed && row->shares.flushed <= row->most);
                CHECK_NEAR(row->shares.broken, 0, 0);
            }
        }
}

// In order, blocks hold their like; with one of the largest in each they lose most.
static void no_order_of_numbers_is_outside_of_the_bounds(void) {
    LayerSample sample = draw(3, 30, 0);
    WhatIfRow rows[FORMAT_COUNT];
    const int count = what_if_rows(&sample, 1, rows);
    qsort(numbers, COUNT, sizeof *numbers, larger);
    for (size_t f = 0; f < sizeof scaled / sizeof *scaled; f++) {
        const WhatIfRow *row = row_for(rows, count, scaled[f]);
        CHECK(flushed_in_blocks(scaled[f]) >= row->least - 0.02);
        CHECK(flushed_in_blocks(scaled[f]) <= row->most + 0.02);
    }
    enum { BLOCK = 16 };
    for (int i = 0; i < COUNT / BLOCK; i++) { // the largest, one a block
        const float x = numbers[i * BLOCK];
        numbers[i * BLOCK] = numbers[COUNT - 1 - i];
        numbers[COUNT - 1 - i] = x;
    }
    for (size_t f = 0; f < sizeof scaled / sizeof *scaled; f++)
        CHECK(flushed_in_blocks(scaled[f]) <= row_for(rows, count, scaled[f])->most + 0.02);
}

// Of numbers about 2^-30: fp16 needs a scale, and says which; bf16 none; fp8 brings its own.
static void plain_formats_are_at_the_loss_scale(void) {
    LayerSample sample = draw(-28, 3, 0);
    WhatIfRow rows[FORMAT_COUNT];
    int count = what_if_rows(&sample, 1, rows);
    CHECK_NEAR(row_for(rows, count, FORMAT_FP16)->shares.flushed, 1, 0);
    CHECK_INT(row_for(rows, count, FORMAT_FP16)->suited.least, 6); // all but half of the last bin's
    CHECK_NEAR(row_for(rows, count, FORMAT_BF16)->shares.flushed, 0, 0);
    CHECK_NEAR(row_for(rows, count, FORMAT_FP8)->shares.flushed, 0, 0);
    count = what_if_rows(&sample, 0x1p16, rows);
    CHECK_NEAR(row_for(rows, count, FORMAT_FP16)->shares.flushed, 0, 0);
    CHECK_NEAR(row_for(rows, count, FORMAT_FP16)->shares.broken, 0, 0);
    count = what_if_rows(&sample, 0x1p45, rows); // a third would be 2^16 and more
    CHECK_NEAR(row_for(rows, count, FORMAT_FP16)->shares.broken, 1.0 / 3, 0.02);
    CHECK_NEAR(row_for(rows, count, FORMAT_BF16)->shares.broken, 0, 0);
    CHECK_NEAR(row_for(rows, count, FORMAT_MXFP8)->shares.broken, 0, 0);
}

static void nothing_is_foretold_of_what_nobody_counted(void) {
    LayerSample none = {.width = 0}, zeros = {.width = 1, .count = 8, .zeros = 8};
    WhatIfRow rows[FORMAT_COUNT];
    int count = what_if_rows(&none, 1, rows);
    CHECK(count >= 12);
    for (int i = 0; i < count; i++)
        CHECK(!rows[i].shares.is_known && !rows[i].suited.is_known);
    count = what_if_rows(&zeros, 1, rows);
    for (int i = 0; i < count; i++)
        CHECK(rows[i].shares.is_known && rows[i].shares.flushed == 0 && rows[i].shares.zero == 1);
}

int main(void) {
    RUN_TEST(scaled_formats_do_to_mixed_numbers_what_is_foretold);
    RUN_TEST(no_order_of_numbers_is_outside_of_the_bounds);
    RUN_TEST(plain_formats_are_at_the_loss_scale);
    RUN_TEST(nothing_is_foretold_of_what_nobody_counted);
    return test_end();
}
