#include "ui/cells/input.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "ui/keys/keys.h"

// A byte of Escape is the key when nothing follows it for so long, and a bracket that comes soon
// after that key is held back a moment: it may go on with what the Escape began.
static const double escape_seconds = 0.1, late_seconds = 1;

enum { ESCAPE = 0x1B, BELL = 7 };

typedef enum Part { // of the bytes at the front
    PART_NONE,      // they are no such thing
    PART_OPEN,      // they may become one
    PART_BRIEF,     // the same, for a moment: alone they are keys
    PART_WHOLE,
} Part;

typedef struct Piece {
    Part part;
    size_t length; // of a whole one
    Input input;   // INPUT_NONE: it says nothing to anybody
} Piece;

void input_init(InputReader *reader) {
    static const struct InputSequence common[] = {
        {"\x1b[A", KEY_CODE_UP},         {"\x1b[B", KEY_CODE_DOWN},  {"\x1b[C", KEY_CODE_RIGHT},
        {"\x1b[D", KEY_CODE_LEFT},       {"\x1b[H", KEY_CODE_HOME},  {"\x1b[F", KEY_CODE_END},
        {"\x1b[1~", KEY_CODE_HOME},      {"\x1b[4~", KEY_CODE_END},  {"\x1b[3~", KEY_CODE_DELETE},
        {"\x1b[5~", KEY_CODE_PAGE_UP},   {"\x1bOA", KEY_CODE_UP},    {"\x1bOB", KEY_CODE_DOWN},
        {"\x1b[6~", KEY_CODE_PAGE_DOWN}, {"\x1bOC", KEY_CODE_RIGHT}, {"\x1bOD", KEY_CODE_LEFT},
        {"\x1b[Z", KEY_CODE_BACKTAB},    {"\x1bOM", KEY_CODE_ENTER},
    };
    *reader = (InputReader){.key_count = sizeof common / sizeof *common};
    memcpy(reader->keys, common, sizeof common);
}

void input_add_key(InputReader *reader, const char *sequence, int key) {
    size_t length = strlen(sequence);
    if (length < 2 || length >= INPUT_KEY_SIZE || sequence[0] != ESCAPE)
        return; // single bytes are themselves
    int at = 0;
    while (at < reader->key_count && strcmp(reader->keys[at].bytes, sequence) != 0)
        at++;
    if (at == INPUT_MOST_KEYS)
        return;
    reader->key_count += at == reader->key_count;
    memcpy(reader->keys[at].bytes, sequence, length + 1);
    reader->keys[at].key = key;
}

size_t input_room(const InputReader *reader) {
    return INPUT_BYTES - reader->used;
}

void input_feed(InputReader *reader, const void *bytes, size_t count, double now) {
    // Alt and a bracket, and then a key: nothing that a terminal sends stands still there so long.
    const unsigned char *next = bytes;
    bool is_bare = reader->used == 2 && reader->bytes[0] == ESCAPE && reader->bytes[1] == '[';
    if (is_bare && count == 1 && now - reader->came >= late_seconds && !isdigit(*next) &&
        *next != '<' && *next != '?')
        reader->used = 0;
    if (count > input_room(reader))
        count = input_room(reader);
    memcpy(reader->bytes + reader->used, bytes, count);
    reader->used += count;
    reader->came = now;
}

// ---- what a sequence is -------------------------------------------------------------------------

static Piece whole(size_t length, Input input) {
    return (Piece){PART_WHOLE, length, input};
}

static Input key_input(int key) {
    return (Input){.kind = INPUT_KEY, .key = key};
}

// Those of the table.
static Piece find_key(const InputReader *reader, const char *bytes, size_t count) {
    Piece piece = {.part = PART_NONE};
    for (int i = 0; i < reader->key_count; i++) {
        size_t length = strlen(reader->keys[i].bytes);
        if (count >= length && memcmp(bytes, reader->keys[i].bytes, length) == 0)
            return whole(length, key_input(reader->keys[i].key));
        if (count < length && memcmp(bytes, reader->keys[i].bytes, count) == 0)
            piece.part = PART_BRIEF;
    }
    return piece;
}

static Input mouse_input(int button, int column, int row) {
    enum { MODIFIERS = 4 | 8 | 16, WHEEL = 64 };
    Input input = {.kind = INPUT_MOUSE, .column = column - 1, .row = row - 1};
    switch (button & ~MODIFIERS) {
    case 0: input.action = MOUSE_PRESS; break;
    case WHEEL: input.action = MOUSE_WHEEL_UP; break;
    case WHEEL + 1: input.action = MOUSE_WHEEL_DOWN; break;
    default: input.kind = INPUT_NONE; // other buttons, and moves
    }
    return column > 0 && row > 0 ? input : (Input){.kind = INPUT_NONE};
}

// "<button;column;row" and M where it was pressed, m where it was let go.
static Piece read_report(const char *text, size_t count, size_t before) {
    enum { MOST_DIGITS = 5 };
    int numbers[3] = {0}, at = 0, digits = 0;
    for (size_t i = 1; i < count; i++) {
        bool is_end = at == 2 && digits > 0 && (text[i] == 'M' || text[i] == 'm');
        if (is_end)
            return whole(before + i + 1, text[i] == 'M'
                                             ? mouse_input(numbers[0], numbers[1], numbers[2])
                                             : (Input){.kind = INPUT_NONE});
        if (text[i] == ';' && at < 2 && digits > 0) {
            at++;
            digits = 0;
        } else if (isdigit((unsigned char)text[i]) && digits < MOST_DIGITS) {
            numbers[at] = 10 * numbers[at] + text[i] - '0';
            digits++;
        } else { // none of its kind: what it was made of is dropped, this byte is not
            return whole(before + i, (Input){.kind = INPUT_NONE});
        }
    }
    return (Piece){.part = PART_OPEN};
}

// As terminals wrote it before: M and three bytes, each 32 more than what it says.
static Piece read_old_report(const char *text, size_t count, size_t before) {
    enum { LENGTH = 4, OFFSET = 32 };
    if (count < LENGTH)
        return (Piece){.part = PART_OPEN};
    return whole(before + LENGTH,
                 mouse_input((unsigned char)text[1] - OFFSET, (unsigned char)text[2] - OFFSET,
                             (unsigned char)text[3] - OFFSET));
}

// What follows "Escape [": parameters, perhaps other signs, and a letter that ends it.
static Piece read_control(InputReader *reader, const char *text, size_t count, size_t before) {
    if (count == 0)
        return (Piece){.part = PART_OPEN};
    if (text[0] == '<')
        return read_report(text, count, before);
    if (text[0] == 'M')
        return read_old_report(text, count, before);
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool is_end = byte >= 0x40 && byte <= 0x7E;
        if (is_end && byte == 'c' && text[0] == '?') // what kind of terminal it is: asked last
            reader->is_asked = false;
        if (is_end || byte < 0x20 || byte > 0x7E)
            return whole(before + i + is_end, (Input){.kind = INPUT_NONE});
    }
    return (Piece){.part = PART_OPEN};
}

// "rgb:ffff/ffff/ffff", one to four digits a colour.
static bool parse_color(const char *text, uint32_t *rgb) {
    *rgb = 0;
    if (strncmp(text, "rgb:", 4) != 0)
        return false;
    text += 4;
    for (int i = 0; i < 3; i++) {
        char *end;
        unsigned long value = strtoul(text, &end, 16), most = 0;
        if (end == text || end > text + 4)
            return false;
        for (; text < end; text++)
            most = 16 * most + 15;
        *rgb = *rgb << 8 | (uint32_t)(value * 255 / most);
        text += i < 2 && *text == '/';
    }
    return *text == 0;
}

// What follows "Escape ]": the background's colour, ended by a bell or Escape backslash.
static Piece read_answer(InputReader *reader, const char *text, size_t count, size_t before) {
    static const char name[] = "11;";
    enum { NAME = sizeof name - 1, MOST = 32 };
    char color[MOST + 1];
    for (size_t i = 0; i < count; i++) {
        bool is_end = text[i] == BELL;
        if (i >= NAME && text[i] == ESCAPE && (i + 1 == count || text[i + 1] == '\\')) {
            if (i + 1 == count)
                return (Piece){.part = PART_OPEN};
            is_end = true;
        }
        if (i >= NAME && is_end) {
            memcpy(color, text + NAME, i - NAME);
            color[i - NAME] = 0;
            reader->has_background = parse_color(color, &reader->background);
            Input input = {.kind = reader->has_background ? INPUT_COLORS : INPUT_NONE};
            return whole(before + i + (text[i] == BELL ? 1 : 2), input);
        }
        bool fits =
            i < NAME ? text[i] == name[i]
                     : i < MOST && (isxdigit((unsigned char)text[i]) || strchr("rgba:/", text[i]));
        if (!fits || !text[i])
            return i < NAME ? (Piece){.part = PART_NONE}
                            : whole(before + i, (Input){.kind = INPUT_NONE});
    }
    return (Piece){.part = count > 0 ? PART_OPEN : PART_BRIEF};
}

// Of bytes that begin with Escape.
static Piece read_sequence(InputReader *reader, const char *bytes, size_t count) {
    Piece piece = find_key(reader, bytes, count);
    if (piece.part == PART_WHOLE || count == 1)
        return piece;
    if (bytes[1] == '[')
        return read_control(reader, bytes + 2, count - 2, 2);
    if (bytes[1] == ']' && reader->is_asked)
        return read_answer(reader, bytes + 2, count - 2, 2);
    return piece;
}

// ---- one after the other ------------------------------------------------------------------------

static void drop(InputReader *reader, size_t count) {
    reader->used -= count;
    memmove(reader->bytes, reader->bytes + count, reader->used);
}

static bool take_key(InputReader *reader, size_t length, int key, Input *input) {
    drop(reader, length);
    *input = key_input(key);
    return true;
}

// A character as the locale writes it; false: it is not whole, or there is none.
static bool take_character(InputReader *reader, double now, Input *input) {
    mbstate_t state = {0};
    wchar_t wide;
    size_t length = mbrtowc(&wide, (const char *)reader->bytes, reader->used, &state);
    if (length == (size_t)-2 && now - reader->came < escape_seconds)
        return false;
    if (length == (size_t)-1 || length == (size_t)-2 || length == 0) {
        drop(reader, 1); // no character, or a zero: no key
        return false;
    }
    int key = (int)wide;
    return take_key(reader, length, key == '\b' ? KEY_CODE_BACKSPACE : key, input);
}

// The Escape was told as a key already, and this goes on with what it began.
static bool goes_on(const InputReader *reader, double now) {
    bool begins = reader->bytes[0] == '[' || (reader->bytes[0] == ']' && reader->is_asked);
    return reader->escaped > 0 && begins &&
           (reader->is_continued || now - reader->escaped < late_seconds);
}

static Piece read_rest(InputReader *reader) {
    char bytes[INPUT_BYTES + 1] = {ESCAPE};
    memcpy(bytes + 1, reader->bytes, reader->used);
    Piece piece = read_sequence(reader, bytes, reader->used + 1);
    piece.length -= piece.part == PART_WHOLE;
    if (reader->used == 1)
        piece.part = PART_BRIEF; // a bracket is a key
    return piece;
}

static Piece read_front(InputReader *reader, bool is_rest) {
    return is_rest ? read_rest(reader)
                   : read_sequence(reader, (const char *)reader->bytes, reader->used);
}

// True: *input is what came; it may be INPUT_NONE.
static bool take_sequence(InputReader *reader, bool is_rest, double now, Input *input,
                          bool *waits) {
    Piece piece = read_front(reader, is_rest);
    bool is_late = now - reader->came >= escape_seconds;
    *waits = piece.part == PART_OPEN || (piece.part == PART_BRIEF && !is_late);
    if (piece.part == PART_WHOLE) {
        reader->escaped = 0;
        drop(reader, piece.length);
        *input = piece.input;
        return true;
    }
    if (*waits) {
        reader->is_continued = is_rest;
        return false;
    }
    if (is_rest) {
        reader->escaped = 0;
        return false; // a bracket, then
    }
    reader->escaped = reader->used == 1 ? now : 0;
    reader->is_continued = false;
    return take_key(reader, 1, KEY_CODE_ESCAPE, input);
}

bool input_next(InputReader *reader, double now, Input *input) {
    while (reader->used > 0) {
        bool is_rest = goes_on(reader, now), waits = false;
        if (is_rest || reader->bytes[0] == ESCAPE) {
            if (take_sequence(reader, is_rest, now, input, &waits)) {
                if (input->kind != INPUT_NONE)
                    return true;
                continue;
            }
            if (waits && reader->used < INPUT_BYTES)
                return false;
        }
        size_t before = reader->used;
        reader->escaped = 0;
        if (take_character(reader, now, input))
            return true;
        if (reader->used == before)
            return false;
    }
    return false;
}

double input_wait(const InputReader *reader, double now) {
    double left = reader->came + escape_seconds - now;
    return reader->used == 0 || left < 0 ? -1 : left;
}
