// tests/fuzz/pictures_target.h: what the fuzz programs promise about the reader of pictures.
//
// For any input: a good result has a size and all its pixels, a bad one has a message and no
// memory. The sums of a PNG's parts are set right first, or nothing behind them would ever be
// tried.
#pragma once

#include "picture/png.h"
#include "tests/fuzz/driver.h"
#include "tests/picture_bytes.h"

static size_t fuzz_pictures_seed(int index, uint8_t *out) {
    static const uint8_t rows[] = {0, 1, 2, 3, 4, 5, 6, 4, 1, 2, 3, 4, 5, 6};
    static const uint8_t palette[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const char *const texts[] = {"P5 3 1 255\n123", "P6 1 1 65535\n123456"};
    switch (index) {
    case 0: return png_bytes(out, &(PngShape){2, 2, 8, 2, NULL, 0}, rows, 14, 99);
    case 1: return png_bytes(out, &(PngShape){6, 2, 8, 0, NULL, 0}, rows, 14, 5);
    case 2: return png_bytes(out, &(PngShape){3, 1, 2, 3, palette, 9}, rows, 2, 99);
    case 3: return png_bytes(out, &(PngShape){3, 2, 16, 0, NULL, 0}, rows, 14, 99);
    case 4:
    case 5:
        memcpy(out, texts[index - 4], strlen(texts[index - 4]));
        return strlen(texts[index - 4]);
    default: return 0;
    }
}

static void mend_sums(uint8_t *bytes, size_t size) {
    for (size_t at = 8; size >= 12 && at <= size - 12;) {
        uint32_t length = (uint32_t)bytes[at] << 24 | (uint32_t)bytes[at + 1] << 16 |
                          (uint32_t)bytes[at + 2] << 8 | bytes[at + 3];
        if (length > size - 12 - at)
            return;
        big_endian_bytes(bytes + at + 8 + length,
                         (uint32_t)crc32(0, bytes + at + 4, (uInt)length + 4));
        at += 12 + (size_t)length;
    }
}

static int fuzz_pictures_one(const uint8_t *bytes, size_t size) {
    static uint8_t mended[FUZZ_MAX_SIZE];
    int broken = 0;
    for (int mends = 0; mends < 2 && size <= sizeof mended; mends++) {
        Image image;
        Error error = {0};
        memcpy(mended, bytes, size);
        if (mends)
            mend_sums(mended, size);
        if (image_parse(mended, size, "input", &image, &error)) {
            int64_t count = image.width * image.height * image.channels, sum = 0;
            for (int64_t i = 0; i < count; i++) // all of it is there
                sum += image.data[i];
            broken |= count < 1 || sum < 0;
        } else {
            broken |= image.data != NULL || error.code == ERROR_NONE || error.text[0] == 0;
        }
        image_clear(&image);
    }
    return broken;
}
