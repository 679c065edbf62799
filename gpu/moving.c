#include "gpu/moving.h"

#include <string.h>

enum { LARGEST = 16 }; // bytes of a piece

Moving gpu_moving(Format from, Format to) {
    return (Moving){.bytes = from == to ? LARGEST : 0, .from = from, .to = to};
}

static void bound(Moving *moving, uint64_t bytes) {
    while (moving->bytes && bytes % moving->bytes)
        moving->bytes /= 2;
}

void gpu_moving_address(Moving *moving, const void *data) {
    bound(moving, (uintptr_t)data);
}

void gpu_moving_distance(Moving *moving, int64_t numbers) {
    bound(moving, (uint64_t)numbers * format_table[moving->from].bytes);
}

int64_t gpu_moving_pieces(const Moving *moving, int64_t numbers) {
    int64_t bytes = (int64_t)format_table[moving->from].bytes;
    return moving->bytes ? numbers * bytes / moving->bytes : numbers;
}

Pattern gpu_pattern(Format format, double value) {
    Pattern pattern;
    const size_t bytes = format_table[format].bytes;
    for (size_t at = 0; at < sizeof pattern; at += bytes)
        format_store(format, (char *)&pattern + at, value, OVERFLOW_SATURATES);
    return pattern;
}
