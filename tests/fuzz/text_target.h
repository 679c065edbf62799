// tests/fuzz/text_target.h: what the fuzz programs promise about the reader of texts.
//
// The reader of texts keeps its promises for any input: what it accepts comes back from its ids
// unchanged but for line ends and the mark at the start, what it refuses has a message.
#pragma once

#include "data/text.h"
#include "tests/fuzz/driver.h"

static size_t fuzz_text_seed(int index, uint8_t *out) {
    static const char *const texts[] = {
        "To be, or not to be: that is the question.\r\nWhether 'tis nobler\n",
        "\xEF\xBB\xBFna\xC3\xAFve \xE2\x82\xAC 3.50\r\n\xF0\x9F\x98\x80 \xED\x9F\xBF\xEE\x80\x80",
        "a", "\r\r\n\n\r", "\xF4\x8F\xBF\xBF\xC2\x80\xE0\xA0\x80\xF0\x90\x80\x80"};
    if (index >= (int)(sizeof texts / sizeof texts[0]))
        return 0;
    size_t size = strlen(texts[index]);
    memcpy(out, texts[index], size);
    return size;
}

// What should come back.
static size_t expected_text(const uint8_t *bytes, size_t size, char *out) {
    size_t length = 0;
    for (size_t i = size >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; i < size; i++)
        if (!(bytes[i] == '\r' && i + 1 < size && bytes[i + 1] == '\n'))
            out[length++] = (char)bytes[i];
    return length;
}

static int fuzz_text_one(const uint8_t *bytes, size_t size) {
    static char back[FUZZ_MAX_SIZE + 1], expected[FUZZ_MAX_SIZE + 1];
    static int32_t ids[FUZZ_MAX_SIZE], again[FUZZ_MAX_SIZE];
    if (size > FUZZ_MAX_SIZE)
        return 0;
    Error error = {0};
    TextPart part = {"input", bytes, size};
    Text *text = text_parse(&part, 1, &error);
    if (!text)
        return error.code == ERROR_NONE || error.text[0] == 0;
    int broken = text->count < 1 || text->vocabulary < 1 || text->count > (int64_t)size;
    for (int32_t i = 1; i < text->vocabulary; i++)
        broken |= text->points[i - 1] >= text->points[i];
    for (int64_t i = 0; i < text->count; i++) {
        ids[i] = text->ids[i];
        broken |= ids[i] >= text->vocabulary;
    }
    size_t length = text_decode(text, ids, text->count, back, sizeof back);
    size_t wanted = expected_text(bytes, size, expected);
    broken |= length != wanted || memcmp(back, expected, wanted) != 0;
    int64_t count = 0;
    broken |= !text_encode(text, back, length, again, &count, &error) || count != text->count ||
              memcmp(ids, again, (size_t)count * sizeof *ids) != 0;
    text_release(text);
    return broken;
}
