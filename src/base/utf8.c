#include "base/utf8.h"

#include <string.h>

size_t utf8_decode(const unsigned char *bytes, size_t left, uint32_t *point) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = bytes[0];
    if (first < 0x80) {
        *point = first;
        return 1;
    }
    size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || left < length)
        return 0;
    uint32_t value = first & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (bytes[i] & 0x3F);
    }
    if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        return 0;
    *point = value;
    return length;
}

void utf8_copy_part(char *out, size_t size, const char *text, size_t length) {
    if (length >= size) {
        length = size - 1;
        size_t back = 0; // bytes of a character that would be cut
        while (back < 4 && back < length && ((unsigned char)text[length - back] & 0xc0) == 0x80)
            back++;
        if (back < 4)
            length -= back;
    }
    memmove(out, text, length);
    out[length] = 0;
}

void utf8_copy(char *out, size_t size, const char *text) {
    utf8_copy_part(out, size, text, strlen(text));
}
