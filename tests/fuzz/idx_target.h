// tests/fuzz/idx_target.h: what the fuzz programs promise about the reader of IDX files.
//
// The reader of IDX files keeps its promises for any input: a good result has the size of its
// shape, a bad one has a message, and the same bytes inside gzip give the same answer.
#pragma once

#include "data/idx.h"
#include "tests/data_files.h"
#include "tests/fuzz/driver.h"

static size_t fuzz_idx_seed(int index, uint8_t *out) {
    static const uint32_t shape[] = {3, 4, 2, 1};
    uint8_t plain[64];
    size_t size;
    switch (index) {
    case 0: return idx_bytes(out, 3, shape, 24);
    case 1: return idx_bytes(out, 1, shape, 3);
    case 2: return idx_bytes(out, 4, shape, 24);
    case 3: size = idx_bytes(plain, 3, shape, 24); break;
    case 4: size = idx_bytes(plain, 1, shape, 3); break;
    default: return 0;
    }
    return gzip_bytes(out, FUZZ_MAX_SIZE, plain, size, 9);
}

static int check_answer(bool done, const IdxArray *array, const Error *error) {
    if (!done)
        return array->data != NULL || error->code == ERROR_NONE || error->text[0] == 0;
    int64_t product = 1;
    for (int i = 0; i < array->ndim; i++)
        product *= array->shape[i];
    return array->data == NULL || array->count < 1 || product != array->count;
}

static int fuzz_idx_one(const uint8_t *bytes, size_t size) {
    static uint8_t packed[2 * FUZZ_MAX_SIZE + 256];
    IdxArray plain, inside;
    Error error = {0}, inside_error = {0};
    bool done = idx_parse(bytes, size, "input", 1, 4, &plain, &error);
    int broken = check_answer(done, &plain, &error);
    bool was_gzip = size >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
    if (!was_gzip && size > 0 && size <= FUZZ_MAX_SIZE) {
        size_t packed_size = gzip_bytes(packed, sizeof packed, bytes, size, 0);
        bool same = idx_parse(packed, packed_size, "input", 1, 4, &inside, &inside_error);
        broken |= check_answer(same, &inside, &inside_error) || same != done;
        if (same && done)
            broken |= plain.count != inside.count ||
                      memcmp(plain.data, inside.data, (size_t)plain.count) != 0;
        idx_clear(&inside);
    }
    idx_clear(&plain);
    return broken;
}
