#include "base/phrase.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

Phrase phrase_begin(char *text, size_t size) {
    assert(text && size > 0);
    text[0] = 0;
    return (Phrase){.text = text, .size = size};
}

// Takes away the bytes of a character that was cut, if one was.
static size_t whole_length(const char *text, size_t length) {
    size_t begin = length;
    uint32_t point;
    while (begin > 0 && length - begin < 4)
        if (((unsigned char)text[--begin] & 0xC0) != 0x80)
            return utf8_decode((const unsigned char *)text + begin, length - begin, &point) > 0
                       ? length
                       : begin;
    return length;
}

void phrase_add(Phrase *phrase, const char *format, ...) {
    const size_t room = phrase->size - phrase->used;
    if (phrase->is_cut)
        return;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(phrase->text + phrase->used, room, format, arguments);
    va_end(arguments);
    phrase->is_cut = length < 0 || (size_t)length >= room;
    phrase->used = phrase->is_cut
                       ? length < 0 ? phrase->used : whole_length(phrase->text, phrase->size - 1)
                       : phrase->used + (size_t)length;
    phrase->text[phrase->used] = 0;
}

void phrase_add_joint(Phrase *phrase, int index, int count, const char *last) {
    if (index > 0)
        phrase_add(phrase, "%s", index == count - 1 ? last : ", ");
}

void phrase_add_word(Phrase *phrase, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=.,/:@^%";
    if (word[0] && !word[strspn(word, plain)]) {
        phrase_add(phrase, "%s", word);
        return;
    }
    phrase_add(phrase, "'");
    for (const char *next = word; *next;) {
        const size_t length = strcspn(next, "'");
        phrase_add(phrase, "%.*s%s", (int)length, next, next[length] ? "'\\''" : "");
        next += length + (next[length] != 0);
    }
    phrase_add(phrase, "'");
}
