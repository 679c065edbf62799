#include "gpu/sort.h"

#include <assert.h>

#include "gpu/launch.h"

enum { DIGIT_BITS = 8 };
static_assert(1 << DIGIT_BITS == SORT_DIGITS, "digits are whole bits");

static int64_t tiles_of(int64_t count) {
    return (count + SORT_TILE - 1) / SORT_TILE;
}

// Rounded up so that what follows begins at a multiple of 16 too.
static size_t bytes_of(int64_t count, size_t each) {
    return ((size_t)count * each + 15) / 16 * 16;
}

size_t gpu_sort_bytes(int64_t count, int64_t rows) {
    return 4 * bytes_of(count, sizeof(u32)) + bytes_of(tiles_of(count) * SORT_DIGITS, sizeof(u32)) +
           bytes_of(rows, sizeof(SortBounds));
}

static void *carve(char **at, size_t bytes) {
    char *piece = *at;
    *at += bytes;
    return piece;
}

static bool clear(Device *device, void *memory, size_t bytes, Error *error) {
    FillArguments a = {.output = memory, .count = (i64)(bytes / 16), .bytes = 16};
    return gpu_launch_fill(device, gpu_grid(GPU_KERNEL_fill, a.count, 8), &a, error);
}

static bool pass(Device *device, SortArguments *a, Error *error) {
    const GpuGrid tiles = {.x = a->tiles};
    return gpu_launch_sort_count(device, tiles, a, error) &&
           gpu_launch_sort_scan(device, (GpuGrid){.x = a->tiles ? 1 : 0}, a, error) &&
           gpu_launch_sort_move(device, tiles, a, error);
}

bool gpu_sort(Device *device, const View *index, ValueArguments values, void *workspace,
              GpuSorted *sorted, Error *error) {
    const int64_t count = view_count(index), rows = values.check.bound;
    char *at = workspace;
    u32 *key[2], *position[2];
    for (int i = 0; i < 2; i++) {
        key[i] = carve(&at, bytes_of(count, sizeof(u32)));
        position[i] = carve(&at, bytes_of(count, sizeof(u32)));
    }
    SortArguments a = {.index = index->data, .count = count, .values = values};
    a.tiles = (u32)tiles_of(count);
    a.starts = carve(&at, bytes_of((int64_t)a.tiles * SORT_DIGITS, sizeof(u32)));
    a.bounds = carve(&at, bytes_of(rows, sizeof(SortBounds)));
    // What does not pass has the number past the last row: it takes part.
    for (int turn = 0;; turn ^= 1) {
        a.key_out = key[turn];
        a.position_out = position[turn];
        if (!pass(device, &a, error))
            return false;
        a.key = a.key_out;
        a.position = a.position_out;
        a.shift += DIGIT_BITS;
        if (rows >> a.shift == 0)
            break;
    }
    *sorted = (GpuSorted){a.key, a.position, a.bounds};
    return clear(device, a.bounds, bytes_of(rows, sizeof(SortBounds)), error) &&
           gpu_launch_sort_bounds(device, gpu_grid(GPU_KERNEL_sort_bounds, count, 1), &a, error);
}
