#include "ui/cells/describe.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <curses.h>
#include <term.h>

// ---- what the environment says ------------------------------------------------------------------

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

bool describe_has_true_color(void) {
    const char *claim = environment("COLORTERM");
    bool is_old = strncmp(environment("TERM"), "screen", 6) == 0 && !environment("TMUX")[0];
    return tigetflag("RGB") > 0 ||
           (!is_old && (strcmp(claim, "truecolor") == 0 || strcmp(claim, "24bit") == 0));
}

Theme describe_theme(Theme otherwise) {
    enum { DARK_GREY = 8, LIGHT_GREY = 7, COLORS_NAMED = 16 };
    const char *last = strrchr(environment("COLORFGBG"), ';'); // "15;0", "12;default;0"
    char *end = NULL;
    long color = last ? strtol(last + 1, &end, 10) : 0;
    if (!last || end == last + 1 || *end || color < 0 || color >= COLORS_NAMED)
        return otherwise;
    return color < LIGHT_GREY || color == DARK_GREY ? THEME_DARK : THEME_LIGHT;
}

// ---- a compiled description, as term(5) has it --------------------------------------------------

#define COLOR_OF(what) /* below 256 of the palette, else 0xRRGGBB */                       \
    "\x1b[" what "8;%?%p1%{256}%<%t5;%p1%d%e2;%p1%{65536}%/%d;%p1%{256}%/%{255}%&%d;%p1%{" \
    "255}%&%d%;m"

enum { MAGIC = 01036, PALETTE = 256, COLOR_COUNT = 0x1000000, PAIR_COUNT = 0x10000, MOST = 32768 };
enum { AT_COLORS = 13, AT_PAIRS = 14, AT_FOREGROUND = 359, AT_BACKGROUND = 360 };

typedef struct Bytes {
    unsigned char *list;
    size_t used;
} Bytes;

static void put(Bytes *bytes, uint32_t value, int size) {
    for (int i = 0; i < size && bytes->used < MOST; i++)
        bytes->list[bytes->used++] = (unsigned char)(value >> 8 * i);
}

static void put_text(Bytes *bytes, const char *text) {
    do
        put(bytes, (unsigned char)*text, 1);
    while (*text++);
}

static bool is_there(const char *string) {
    return string && string != (char *)-1;
}

static const char *string_at(const TERMTYPE *type, int i) {
    return i == AT_FOREGROUND   ? COLOR_OF("3")
           : i == AT_BACKGROUND ? COLOR_OF("4")
                                : type->Strings[i];
}

static uint32_t number_at(const TERMTYPE *type, int i) {
    return i == AT_COLORS  ? COLOR_COUNT
           : i == AT_PAIRS ? PAIR_COUNT
                           : (uint32_t)(int32_t)type->Numbers[i];
}

static void put_booleans(Bytes *bytes, const TERMTYPE *type, int from, int to) {
    for (int i = from; i < to; i++)
        put(bytes, type->Booleans[i] > 0, 1);
}

static void put_numbers(Bytes *bytes, const TERMTYPE *type, int from, int to) {
    for (int i = from; i < to; i++)
        put(bytes, number_at(type, i), 4);
}

// The places of strings from..to-1 in a table; returns its size.
static size_t put_offsets(Bytes *bytes, const TERMTYPE *type, int from, int to) {
    size_t size = 0;
    for (int i = from; i < to; i++) {
        const char *string = string_at(type, i);
        put(bytes, is_there(string) ? (uint32_t)size : UINT32_MAX, 2);
        size += is_there(string) ? strlen(string) + 1 : 0;
    }
    return size;
}

static void put_strings(Bytes *bytes, const TERMTYPE *type, int from, int to) {
    for (int i = from; i < to; i++)
        if (is_there(string_at(type, i)))
            put_text(bytes, string_at(type, i));
}

static void align(Bytes *bytes) {
    if (bytes->used % 2)
        put(bytes, 0, 1);
}

static void patch(Bytes *bytes, size_t at, size_t value) {
    bytes->list[at] = (unsigned char)value;
    bytes->list[at + 1] = (unsigned char)(value >> 8);
}

static void put_usual(Bytes *bytes, const TERMTYPE *type) {
    int booleans = type->num_Booleans - type->ext_Booleans;
    int numbers = type->num_Numbers - type->ext_Numbers;
    int strings = type->num_Strings - type->ext_Strings;
    put(bytes, MAGIC, 2);
    put(bytes, (uint32_t)strlen(type->term_names) + 1, 2);
    put(bytes, (uint32_t)booleans, 2);
    put(bytes, (uint32_t)numbers, 2);
    put(bytes, (uint32_t)strings, 2);
    size_t at = bytes->used;
    put(bytes, 0, 2);
    put_text(bytes, type->term_names);
    put_booleans(bytes, type, 0, booleans);
    align(bytes);
    put_numbers(bytes, type, 0, numbers);
    patch(bytes, at, put_offsets(bytes, type, 0, strings));
    put_strings(bytes, type, 0, strings);
    align(bytes);
}

// Those that are in no standard, by name; RGB is ours.
static void put_extended(Bytes *bytes, const TERMTYPE *type) {
    int booleans = type->ext_Booleans, numbers = type->ext_Numbers, strings = type->ext_Strings;
    int names = booleans + numbers + strings;
    put(bytes, (uint32_t)booleans + 1, 2);
    put(bytes, (uint32_t)numbers, 2);
    put(bytes, (uint32_t)strings, 2);
    put(bytes, (uint32_t)(strings + names + 1), 2);
    size_t at = bytes->used, size = 0;
    put(bytes, 0, 2);
    put(bytes, 1, 1);
    put_booleans(bytes, type, type->num_Booleans - booleans, type->num_Booleans);
    align(bytes);
    put_numbers(bytes, type, type->num_Numbers - numbers, type->num_Numbers);
    size_t table = put_offsets(bytes, type, type->num_Strings - strings, type->num_Strings);
    put(bytes, 0, 2); // of the name RGB
    size = strlen("RGB") + 1;
    for (int i = 0; i < names; i++) {
        put(bytes, (uint32_t)size, 2);
        size += strlen(type->ext_Names[i]) + 1;
    }
    patch(bytes, at, table + size);
    put_strings(bytes, type, type->num_Strings - strings, type->num_Strings);
    put_text(bytes, "RGB");
    for (int i = 0; i < names; i++)
        put_text(bytes, type->ext_Names[i]);
}

static char *in_base_16(const Bytes *bytes) {
    static const char digits[] = "0123456789ABCDEF", prefix[] = "hex:";
    char *text = malloc(sizeof prefix + 2 * bytes->used), *at = text;
    if (!text)
        return NULL;
    memcpy(text, prefix, sizeof prefix);
    at += sizeof prefix - 1;
    for (size_t i = 0; i < bytes->used; i++) {
        *at++ = digits[bytes->list[i] >> 4];
        *at++ = digits[bytes->list[i] & 15];
    }
    *at = 0;
    return text;
}

char *describe_with_colors(void) {
    const TERMTYPE *type = (const TERMTYPE *)cur_term;
    bool is_whole = type->num_Numbers - type->ext_Numbers > AT_PAIRS &&
                    type->num_Strings - type->ext_Strings > AT_BACKGROUND;
    if (!is_whole || (tigetnum("colors") < PALETTE && !describe_has_true_color()))
        return NULL;
    Bytes bytes = {.list = malloc(MOST)};
    if (bytes.list) {
        put_usual(&bytes, type);
        put_extended(&bytes, type);
    }
    char *text = bytes.list && bytes.used < MOST ? in_base_16(&bytes) : NULL;
    free(bytes.list);
    return text;
}
