#include "base/rune.h"

#include <string.h>

#include "base/utf8.h"

typedef struct Range {
    uint32_t first, last;
} Range;

// Combining marks, joiners and selectors; sorted.
static const Range without_width[] = {
    {0x0300, 0x036F},   {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x06D6, 0x06DC},   {0x0730, 0x074A}, {0x0900, 0x0902}, {0x093C, 0x093C}, {0x0941, 0x0948},
    {0x0E31, 0x0E31},   {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
    {0x200B, 0x200F},   {0x202A, 0x202E}, {0x2060, 0x2064}, {0x20D0, 0x20FF}, {0x302A, 0x302D},
    {0x3099, 0x309A},   {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0x1F3FB, 0x1F3FF},
    {0xE0100, 0xE01EF},
};

// East Asian wide and full-width characters, and pictures; sorted.
static const Range wide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x23F0, 0x23F0},
    {0x25FD, 0x25FE},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267F, 0x267F},
    {0x2693, 0x2693},   {0x26A1, 0x26A1},   {0x26AA, 0x26AB},   {0x26BD, 0x26BE},
    {0x26C4, 0x26C5},   {0x26CE, 0x26CE},   {0x26D4, 0x26D4},   {0x26EA, 0x26EA},
    {0x26F2, 0x26F3},   {0x26F5, 0x26F5},   {0x26FA, 0x26FA},   {0x26FD, 0x26FD},
    {0x2705, 0x2705},   {0x270A, 0x270B},   {0x2728, 0x2728},   {0x274C, 0x274C},
    {0x274E, 0x274E},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27B0, 0x27B0},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},
    {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0xA4CF},
    {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE10, 0xFE19},
    {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF},
    {0x1AFF0, 0x1B2FF}, {0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E},
    {0x1F191, 0x1F19A}, {0x1F200, 0x1F265}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF},
    {0x1F7E0, 0x1F7EB}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD},
};

static int is_in(const Range *ranges, size_t count, uint32_t rune) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rune < ranges[middle].first)
            high = middle;
        else if (rune > ranges[middle].last)
            low = middle + 1;
        else
            return 1;
    }
    return 0;
}

int rune_width(uint32_t rune) {
    if (rune < 0x20 || (rune >= 0x7F && rune < 0xA0))
        return 0;
    if (rune < 0x300)
        return 1;
    if (is_in(without_width, sizeof without_width / sizeof *without_width, rune))
        return 0;
    return is_in(wide, sizeof wide / sizeof *wide, rune) ? 2 : 1;
}

uint32_t rune_next(const char **text) {
    enum { REPLACEMENT = 0xFFFD };
    const unsigned char *bytes = (const unsigned char *)*text;
    if (!bytes[0])
        return 0;
    uint32_t rune;
    size_t length = utf8_decode(bytes, strlen(*text) < 4 ? strlen(*text) : 4, &rune);
    *text += length ? length : 1;
    return length ? rune : REPLACEMENT;
}

int text_width(const char *text) {
    int columns = 0;
    for (uint32_t rune; (rune = rune_next(&text)) != 0;)
        columns += rune_width(rune);
    return columns;
}

size_t text_fit(const char *text, int columns, int *used) {
    const char *at = text;
    int filled = 0;
    for (const char *next = text;; at = next) {
        uint32_t rune = rune_next(&next);
        if (!rune || filled + rune_width(rune) > columns)
            break;
        filled += rune_width(rune);
    }
    if (used)
        *used = filled;
    return (size_t)(at - text);
}

int rune_encode(uint32_t rune, char out[4]) {
    if (rune < 0x80) {
        out[0] = (char)rune;
        return 1;
    }
    int length = rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (rune & 0x3F));
        rune >>= 6;
    }
    out[0] = (char)(lead[length] | rune);
    return length;
}
