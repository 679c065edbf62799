// Pictures to files, and grids of them.
#include "picture/png.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/out_file.h"

// ---- reading a file -----------------------------------------------------------------------------

static bool read_all(int file, uint8_t *bytes, size_t size) {
    for (size_t have = 0; have < size;) {
        ssize_t came = read(file, bytes + have, size - have);
        if (came <= 0 && !(came < 0 && errno == EINTR))
            return false;
        have += came > 0 ? (size_t)came : 0;
    }
    return true;
}

// What is no regular file could make us wait.
bool image_read(const char *path, Image *image, Error *error) {
    const off_t most = (off_t)64 << 20;
    struct stat about;
    *image = (Image){0};
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return error_fail(error, ERROR_FAILED, "%.250s: %s", path, error_cause(errno));
    bool done = fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= most;
    size_t size = done ? (size_t)about.st_size : 0;
    uint8_t *bytes = done ? malloc(size + 1) : NULL;
    if (!bytes || !read_all(file, bytes, size))
        done = error_fail(error, ERROR_FAILED, "%.250s: cannot be read as a picture", path);
    close(file);
    done = done && image_parse(bytes, size, path, image, error);
    free(bytes);
    return done;
}

// ---- writing ------------------------------------------------------------------------------------

static void put_big_endian(uint8_t *out, uint32_t value) {
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void write_chunk(FILE *stream, const char *kind, const uint8_t *data, uint32_t length) {
    uint8_t number[4];
    put_big_endian(number, length);
    fwrite(number, 1, 4, stream);
    fwrite(kind, 1, 4, stream);
    fwrite(data, 1, length, stream);
    uLong sum = crc32(crc32(0, (const uint8_t *)kind, 4), data, length);
    put_big_endian(number, (uint32_t)sum);
    fwrite(number, 1, 4, stream);
}

// The rows, each behind the number of its filter: none.
static uint8_t *pack_rows(const Image *image, uLong *packed) {
    const size_t row = (size_t)image->width * (size_t)image->channels;
    const size_t all = (size_t)image->height * (row + 1);
    *packed = compressBound(all);
    uint8_t *rows = malloc(all), *out = malloc(*packed);
    for (int64_t h = 0; rows && h < image->height; h++) {
        uint8_t *to = rows + (size_t)h * (row + 1);
        *to = 0;
        memcpy(to + 1, image->data + (size_t)h * row, row);
    }
    if (!rows || !out || compress(out, packed, rows, all) != Z_OK) {
        free(out);
        out = NULL;
    }
    free(rows);
    return out;
}

bool image_write(const Image *image, const char *path, Error *error) {
    uint8_t header[13] = {[8] = 8, [9] = image->channels == 3 ? 2 : 0};
    uLong size;
    OutFile out;
    put_big_endian(header, (uint32_t)image->width);
    put_big_endian(header + 4, (uint32_t)image->height);
    uint8_t *packed = pack_rows(image, &size);
    if (!packed)
        return error_fail(error, ERROR_MEMORY, "%.250s: no memory to write it", path);
    bool done = out_file_open(&out, path, true, error);
    if (done) {
        fwrite(png_signature, 1, sizeof png_signature, out.stream);
        write_chunk(out.stream, "IHDR", header, sizeof header);
        write_chunk(out.stream, "IDAT", packed, (uint32_t)size);
        write_chunk(out.stream, "IEND", header, 0);
        done = out_file_close(&out, true, error);
    }
    free(packed);
    return done;
}

// ---- grids --------------------------------------------------------------------------------------

static uint8_t byte_of(float value, int64_t *broken) {
    *broken += !isfinite(value);
    return !(value > 0) ? 0 : value >= 1 ? 255 : (uint8_t)(value * 255 + 0.5F);
}

bool image_of_grid(const ImageGrid *grid, const float *values, Image *image, int64_t *broken,
                   Error *error) {
    int64_t columns = grid->columns > 0 ? grid->columns : (int64_t)ceil(sqrt((double)grid->count));
    columns = columns < grid->count ? columns : grid->count;
    const int64_t rows = (grid->count + columns - 1) / columns;
    const int64_t height = rows * (grid->height + 1) - 1, width = columns * (grid->width + 1) - 1;
    *image = (Image){0};
    *broken = 0;
    if (height > IMAGE_MOST_SIDE || width > IMAGE_MOST_SIDE)
        return error_fail(error, ERROR_FAILED,
                          "%" PRId64 " pictures side by side are more than %d pixels; fewer fit",
                          grid->count, IMAGE_MOST_SIDE);
    uint8_t *data = calloc((size_t)height * (size_t)width, (size_t)grid->channels);
    if (!data)
        return error_fail(error, ERROR_MEMORY, "no memory for %" PRId64 " pictures", grid->count);
    for (int64_t n = 0; n < grid->count; n++)
        for (int64_t h = 0; h < grid->height; h++) {
            int64_t row = n / columns * (grid->height + 1) + h;
            int64_t column = n % columns * (grid->width + 1);
            uint8_t *to = data + (row * width + column) * grid->channels;
            for (int64_t i = 0; i < grid->width * grid->channels; i++)
                *to++ = byte_of(*values++, broken);
        }
    *image = (Image){height, width, grid->channels, data};
    return true;
}
