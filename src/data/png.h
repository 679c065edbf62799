// data/png.h: pictures in PNG and PNM files as bytes, a pixel behind the other.
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

enum { IMAGE_MOST_SIDE = 1 << 16 };

// By its first bytes, never by the name; `name` begins the errors.
bool image_parse(const uint8_t *bytes, size_t size, const char *name, Image *image,
                 Error *error) MUST_CHECK;
void image_clear(Image *image);

// The pixel in 1 or 3 channels, whatever the image has: grey is repeated, colours become their
// brightness (ITU-R 601), as elsewhere.
void image_convert(const Image *image, int channels, uint8_t *out);
