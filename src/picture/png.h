// picture/png.h: pictures in PNG and PNM files as bytes, a pixel behind the other: read, and PNG
// written.
//
// A header is believed only as far as the file can bear it out: memory is sized when width and
// height agree with the bytes there, or, of what is packed, could come out of them. PNG of every
// depth and colour is read, but interlaced; of 16 bits the upper eight count, a palette is looked
// up, and transparency is left out. PNM is read as P5 (grey) and P6 (colours). An Image is the
// caller's and is emptied by image_clear. Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct Image {
    int64_t height, width;
    int channels;  // 1 or 3
    uint8_t *data; // [height, width, channels]; from malloc
} Image;

extern const uint8_t png_signature[8]; // that every PNG begins with

enum { IMAGE_MOST_SIDE = 1 << 16 };

// By its first bytes, never by the name; `name` begins the errors.
bool image_parse(const uint8_t *bytes, size_t size, const char *name, Image *image,
                 Error *error) MUST_CHECK;
void image_clear(Image *image);

// The pixel in 1 or 3 channels, whatever the image has: grey is repeated, colours become their
// brightness (ITU-R 601), as elsewhere.
void image_convert(const Image *image, int channels, uint8_t *out);

// A regular file of at most 64 MiB.
bool image_read(const char *path, Image *image, Error *error) MUST_CHECK;
// As PNG of eight bits, whole or not at all, for its owner alone. `error` begins with the path.
bool image_write(const Image *image, const char *path, Error *error) MUST_CHECK;

// Pictures of one size side by side, from the left and the top, one pixel of black between them.
typedef struct ImageGrid {
    int64_t count, height, width; // of each picture
    int channels;                 // 1 or 3
    int64_t columns;              // 0: about as many as rows
} ImageGrid;

// From values between 0 and 1, [count, height, width, channels]; those beyond are taken for the
// nearest, and for 0 where they are not numbers, which *broken counts (infinite ones too).
bool image_of_grid(const ImageGrid *grid, const float *values, Image *image, int64_t *broken,
                   Error *error) MUST_CHECK;
