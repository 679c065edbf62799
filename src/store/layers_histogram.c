// Histograms as they are in the file; series_private.h says how.
#include <string.h>

#include "store/series_private.h"

enum { HISTOGRAM_COUNTS = 1, HISTOGRAM_SCALED = 2 };

size_t histogram_pack(const LayerSample *sample, unsigned char bytes[HISTOGRAM_MOST_BYTES]) {
    size_t size = 0;
    bytes[size++] = sample->bins_are_scaled ? HISTOGRAM_SCALED : HISTOGRAM_COUNTS;
    int first = 0, end = LAYER_BINS;
    while (first < LAYER_BINS && sample->bins[first] == 0)
        first++;
    if (first == LAYER_BINS)
        return size;
    while (sample->bins[end - 1] == 0)
        end--;
    bytes[size++] = (unsigned char)first;
    for (int i = first; i < end; i++) {
        uint32_t count = sample->bins[i];
        for (; count >= 0x80; count >>= 7)
            bytes[size++] = (unsigned char)(count | 0x80);
        bytes[size++] = (unsigned char)count;
    }
    return size;
}

const char *histogram_unpack(LayerSample *sample, const unsigned char *bytes, size_t size) {
    memset(sample->bins, 0, sizeof sample->bins);
    if (size == 0)
        return "it is empty";
    if (bytes[0] != HISTOGRAM_COUNTS && bytes[0] != HISTOGRAM_SCALED)
        return "its first byte is none that is known";
    sample->bins_are_scaled = bytes[0] == HISTOGRAM_SCALED;
    if (size == 1)
        return NULL;
    if (size == 2)
        return "it has no counts";
    size_t bin = bytes[1];
    uint32_t last = 0;
    for (size_t at = 2; at < size;) {
        if (bin >= LAYER_BINS)
            return "it has too many counts";
        uint64_t count = 0;
        int shift = 0;
        for (;; shift += 7) {
            if (at == size)
                return "its last count is cut off";
            unsigned char byte = bytes[at++];
            if (shift == 28 && byte > 0x0f)
                return "a count is too large";
            if (shift > 0 && byte == 0)
                return "a count is longer than needed";
            count |= (uint64_t)(byte & 0x7f) << shift;
            if (byte < 0x80)
                break;
        }
        last = (uint32_t)count;
        sample->bins[bin++] = last;
    }
    if (sample->bins[bytes[1]] == 0 || last == 0)
        return "it begins or ends with a count of 0";
    return NULL;
}
