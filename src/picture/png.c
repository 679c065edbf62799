#include "picture/png.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define NAME "%.250s" // cut, so that a long one leaves room for the cause

const uint8_t png_signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

void image_clear(Image *image) {
    free(image->data);
    *image = (Image){0};
}

void image_convert(const Image *image, int channels, uint8_t *out) {
    const int64_t pixels = image->height * image->width;
    if (image->channels == channels) {
        memcpy(out, image->data, (size_t)(pixels * channels));
        return;
    }
    for (int64_t i = 0; i < pixels; i++) {
        if (channels == 3) {
            memset(out + 3 * i, image->data[i], 3);
        } else {
            const uint8_t *from = image->data + 3 * i;
            out[i] =
                (uint8_t)((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
        }
    }
}

static bool sides_fit(int64_t height, int64_t width, const char *name, Error *error) {
    if (height >= 1 && width >= 1 && height <= IMAGE_MOST_SIDE && width <= IMAGE_MOST_SIDE)
        return true;
    return error_fail(error, ERROR_FAILED,
                      NAME ": is %" PRId64 " high and %" PRId64
                           " wide; from 1 to %d pixels a side are read",
                      name, height, width, IMAGE_MOST_SIDE);
}

static bool allocate(uint8_t **data, int64_t bytes, const char *name, Error *error) {
    *data = malloc((size_t)bytes);
    return *data ||
           error_fail(error, ERROR_MEMORY, NAME ": no memory for %" PRId64 " bytes", name, bytes);
}

// ---- PNG ----------------------------------------------------------------------------------------

typedef struct Png {
    const char *name;
    Error *error;
    int64_t height, width;
    int depth, samples; // bits a sample; samples a pixel
    bool is_palette, has_alpha, is_grey;
    int64_t row; // bytes of a row, without its filter
    uint8_t *rows;
    int64_t have; // bytes of rows that came out so far
    uint8_t palette[256][3];
    int colours;
    z_stream packed;
    bool unpacks, ended;
} Png;

static bool png_fail(Png *png, const char *what) {
    return error_fail(png->error, ERROR_FAILED, NAME ": is damaged: %s; save it again", png->name,
                      what);
}

static uint32_t big_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static bool read_header(Png *png, const uint8_t *data, uint32_t length, size_t file_size) {
    // By the type of colour: how many samples a pixel has, and which depths there are.
    static const struct {
        int samples, depths; // bit d: a depth of d
    } types[7] = {[0] = {1, 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16},
                  [2] = {3, 1 << 8 | 1 << 16},
                  [3] = {1, 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8},
                  [4] = {2, 1 << 8 | 1 << 16},
                  [6] = {4, 1 << 8 | 1 << 16}};
    if (length != 13)
        return png_fail(png, "its header has another length than 13");
    png->width = big_endian(data);
    png->height = big_endian(data + 4);
    png->depth = data[8];
    const int type = data[9];
    if (type > 6 || png->depth > 16 || !(types[type].depths >> png->depth & 1))
        return png_fail(png, "no PNG has such a depth and colour");
    if (data[10] != 0 || data[11] != 0)
        return png_fail(png, "its packing is unknown");
    if (data[12] != 0)
        return error_fail(png->error, ERROR_FAILED,
                          NAME ": is interlaced, which is not read; save it without", png->name);
    if (!sides_fit(png->height, png->width, png->name, png->error))
        return false;
    png->samples = types[type].samples;
    png->is_palette = type == 3;
    png->has_alpha = type >= 4;
    png->is_grey = type == 0 || type == 4;
    png->row = (png->width * png->samples * png->depth + 7) / 8;
    // zlib packs 1032 bytes into one at most.
    const int64_t all = png->height * (png->row + 1);
    if (all / 1032 > (int64_t)file_size)
        return png_fail(png, "so few bytes cannot hold so many pixels");
    return allocate(&png->rows, all, png->name, png->error);
}

static bool read_palette(Png *png, const uint8_t *data, uint32_t length) {
    if (length == 0 || length % 3 != 0 || length > sizeof png->palette)
        return png_fail(png, "its palette has no whole colours");
    memcpy(png->palette, data, length);
    png->colours = (int)(length / 3);
    return true;
}

static bool unpack(Png *png, const uint8_t *data, uint32_t length) {
    if (png->ended)
        return true; // what lies behind is nothing
    if (!png->unpacks && inflateInit(&png->packed) != Z_OK)
        return error_fail(png->error, ERROR_MEMORY, NAME ": no memory to unpack it", png->name);
    png->unpacks = true;
    const int64_t all = png->height * (png->row + 1);
    png->packed.next_in = (uint8_t *)(uintptr_t)data;
    png->packed.avail_in = length;
    int code = Z_OK;
    while (png->packed.avail_in > 0 && code == Z_OK) {
        uint8_t beyond;
        const int64_t left = all - png->have;
        const unsigned room = left > INT_MAX ? INT_MAX : (unsigned)left;
        png->packed.next_out = room ? png->rows + png->have : &beyond;
        png->packed.avail_out = room ? room : 1;
        code = inflate(&png->packed, Z_NO_FLUSH);
        if (!room && png->packed.avail_out == 0)
            return png_fail(png, "it has more rows than it says");
        png->have += room - (room ? png->packed.avail_out : 0);
    }
    png->ended = code == Z_STREAM_END;
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return png_fail(png, "what is packed cannot be unpacked");
    return true;
}

// Walks the chunks: each a length, four letters, the data, and a sum of both.
static bool read_chunks(Png *png, const uint8_t *bytes, size_t size) {
    size_t at = sizeof png_signature;
    for (bool first = true;; first = false) {
        if (size - at < 12)
            return png_fail(png, "it is cut before its end");
        const uint32_t length = big_endian(bytes + at);
        if (length > size - at - 12)
            return png_fail(png, "a part is longer than the file");
        const uint8_t *kind = bytes + at + 4, *data = kind + 4;
        if (crc32(0, kind, length + 4) != big_endian(data + length))
            return png_fail(png, "a part has another sum than it says");
        if ((memcmp(kind, "IHDR", 4) == 0) != first)
            return png_fail(png,
                            first ? "it does not begin with its header" : "it has two headers");
        if (memcmp(kind, "IEND", 4) == 0)
            return true;
        bool done = true;
        if (first)
            done = read_header(png, data, length, size);
        else if (memcmp(kind, "PLTE", 4) == 0)
            done = read_palette(png, data, length);
        else if (memcmp(kind, "IDAT", 4) == 0)
            done = unpack(png, data, length);
        else if (!(kind[0] & 0x20)) // a capital letter: it cannot be left out
            done = png_fail(png, "a part that is needed is unknown");
        if (!done)
            return false;
        at += 12 + (size_t)length;
    }
}

static uint8_t predicted(int left, int above, int corner) {
    const int estimate = left + above - corner;
    const int to_left = abs(estimate - left), to_above = abs(estimate - above);
    const int to_corner = abs(estimate - corner);
    return (uint8_t)(to_left <= to_above && to_left <= to_corner ? left
                     : to_above <= to_corner                     ? above
                                                                 : corner);
}

// Takes the filters off: each byte was written as its difference from neighbours.
static bool unfilter(Png *png) {
    const int64_t step = (png->samples * png->depth + 7) / 8;
    for (int64_t h = 0; h < png->height; h++) {
        uint8_t *row = png->rows + h * (png->row + 1), filter = *row++;
        const uint8_t *before = h > 0 ? row - png->row - 1 : NULL;
        if (filter > 4)
            return png_fail(png, "a row has an unknown filter");
        for (int64_t i = 0; i < png->row; i++) {
            const int left = i >= step ? row[i - step] : 0, above = before ? before[i] : 0;
            const int corner = before && i >= step ? before[i - step] : 0;
            const int guess[5] = {0, left, above, (left + above) / 2,
                                  predicted(left, above, corner)};
            row[i] = (uint8_t)(row[i] + guess[filter]);
        }
    }
    return true;
}

// Sample `i` of a row: of 16 bits the upper eight, of few bits as they are.
static int sample_of(const Png *png, const uint8_t *row, int64_t i) {
    if (png->depth >= 8)
        return row[i * (png->depth / 8)];
    const int64_t bit = i * png->depth;
    return row[bit / 8] >> (8 - png->depth - bit % 8) & ((1 << png->depth) - 1);
}

static bool give_pixels(Png *png, Image *image) {
    image->channels = png->is_grey ? 1 : 3;
    image->height = png->height;
    image->width = png->width;
    if (!allocate(&image->data, png->height * png->width * image->channels, png->name, png->error))
        return false;
    // Of fewer than eight bits all are spread over the range.
    const int scale = png->depth < 8 && !png->is_palette ? 255 / ((1 << png->depth) - 1) : 1;
    uint8_t *out = image->data;
    for (int64_t h = 0; h < png->height; h++) {
        const uint8_t *row = png->rows + h * (png->row + 1) + 1;
        for (int64_t w = 0; w < png->width; w++, out += image->channels) {
            const int first = sample_of(png, row, w * png->samples);
            if (png->is_palette && first >= png->colours)
                return png_fail(png, "a pixel's colour is not in its palette");
            if (png->is_palette)
                memcpy(out, png->palette[first], 3);
            else
                for (int c = 0; c < image->channels; c++)
                    out[c] = (uint8_t)(scale * sample_of(png, row, w * png->samples + c));
        }
    }
    return true;
}

static bool parse_png(const uint8_t *bytes, size_t size, const char *name, Image *image,
                      Error *error) {
    Png png = {.name = name, .error = error};
    bool done = read_chunks(&png, bytes, size);
    if (done && (!png.rows || png.have != png.height * (png.row + 1)))
        done = png_fail(&png, "rows are missing");
    done = done && unfilter(&png) && give_pixels(&png, image);
    if (png.unpacks)
        inflateEnd(&png.packed);
    free(png.rows);
    return done;
}

// ---- PNM ----------------------------------------------------------------------------------------

// The next number of a header: blanks and lines of comment before it are passed. -1: there is none.
static int64_t next_number(const uint8_t *bytes, size_t size, size_t *at) {
    while (*at < size &&
           (bytes[*at] == '#' || (bytes[*at] >= '\t' && bytes[*at] <= '\r') || bytes[*at] == ' ')) {
        if (bytes[*at] == '#')
            while (*at < size && bytes[*at] != '\n')
                ++*at;
        else
            ++*at;
    }
    int64_t number = -1;
    for (; *at < size && bytes[*at] >= '0' && bytes[*at] <= '9' && number < INT32_MAX; ++*at)
        number = (number < 0 ? 0 : number) * 10 + (bytes[*at] - '0');
    return number;
}

static bool parse_pnm(const uint8_t *bytes, size_t size, const char *name, Image *image,
                      Error *error) {
    size_t at = 2;
    const int64_t width = next_number(bytes, size, &at), height = next_number(bytes, size, &at);
    const int64_t most = next_number(bytes, size, &at);
    if (width < 0 || height < 0 || most < 1 || most > 65535 || at >= size)
        return error_fail(error, ERROR_FAILED,
                          NAME ": is damaged: its header wants a width, a height and a largest "
                               "value from 1 to 65535; save it again",
                          name);
    if (!sides_fit(height, width, name, error))
        return false;
    at++; // one blank, then the pixels
    const int64_t samples = height * width * (bytes[1] == '6' ? 3 : 1);
    const int wide = most > 255 ? 2 : 1;
    if (samples * wide > (int64_t)(size - at))
        return error_fail(error, ERROR_FAILED,
                          NAME ": has %zu bytes of pixels, %" PRId64
                               " are wanted: it is cut; copy it again",
                          name, size - at, samples * wide);
    if (!allocate(&image->data, samples, name, error))
        return false;
    *image = (Image){height, width, bytes[1] == '6' ? 3 : 1, image->data};
    for (int64_t i = 0; i < samples; i++) {
        const uint8_t *from = bytes + at + i * wide;
        int64_t value = wide == 2 ? (int64_t)from[0] << 8 | from[1] : from[0];
        value = value > most ? most : value;
        image->data[i] = (uint8_t)((value * 255 + most / 2) / most);
    }
    return true;
}

bool image_parse(const uint8_t *bytes, size_t size, const char *name, Image *image, Error *error) {
    *image = (Image){0};
    bool done;
    if (size >= sizeof png_signature && memcmp(bytes, png_signature, sizeof png_signature) == 0)
        done = parse_png(bytes, size, name, image, error);
    else if (size >= 3 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6'))
        done = parse_pnm(bytes, size, name, image, error);
    else
        done = error_fail(error, ERROR_FAILED,
                          NAME ": is no PNG, and no PNM of kind P5 or P6; convert it to one", name);
    if (!done)
        image_clear(image);
    return done;
}
