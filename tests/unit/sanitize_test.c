// Nothing that could steer a terminal passes; everything that can be read does.
#include "base/sanitize.h"
#include "base/utf8.h"
#include "tests/test.h"

static char line[256];

static const char *shown(const char *text) {
    sanitize_line(line, sizeof line, text, strlen(text));
    return line;
}

static void a_copy_is_cut_at_a_whole_character(void) {
    char text[8];
    utf8_copy(text, sizeof text, "short");
    CHECK_TEXT(text, "short");
    utf8_copy(text, sizeof text, "exactly");
    CHECK_TEXT(text, "exactly");
    utf8_copy(text, sizeof text, "five \xe7\xb2\xbe"); // one byte too long
    CHECK_TEXT(text, "five ");
    utf8_copy_part(text, sizeof text, "five \xe7\xb2\xbe", 4);
    CHECK_TEXT(text, "five");
}

static void plain_text_of_any_language_passes(void) {
    CHECK_TEXT(shown("fc2: 64 features, weight wants 128"), "fc2: 64 features, weight wants 128");
    CHECK_TEXT(shown("Größe 精度 точность ∇ 😀"), "Größe 精度 точность ∇ 😀");
    CHECK_TEXT(shown("back\\slash"), "back\\slash");
}

static void what_steers_a_terminal_becomes_visible(void) {
    CHECK_TEXT(shown("\x1b[2J\x1b]0;title\x07"), "\\x1b[2J\\x1b]0;title\\x07");
    CHECK_TEXT(shown("a\nb\tc\rd\x7f"), "a\\nb\\tc\\rd\\x7f");
    CHECK_TEXT(shown("\xc2\x9b"
                     "31m"),
               "\\u{9b}31m");
    CHECK_TEXT(shown("\xe2\x80\xae"
                     "abc"),
               "\\u{202e}abc");
    CHECK_TEXT(shown("a\xe2\x80\x8b"
                     "b\xef\xbb\xbf"),
               "a\\u{200b}b\\u{feff}");
    CHECK_TEXT(shown("\xe2\x81\xa6\xf3\xa0\x81\x81"), "\\u{2066}\\u{e0041}");
}

static void bytes_that_are_not_utf8_become_visible(void) {
    CHECK_TEXT(shown("\xff\xfe"), "\\xff\\xfe");
    CHECK_TEXT(shown("caf\xe9"), "caf\\xe9");
    CHECK_TEXT(shown("\xc0\xaf"), "\\xc0\\xaf");                   // overlong
    CHECK_TEXT(shown("\xed\xa0\x80"), "\\xed\\xa0\\x80");          // a surrogate
    CHECK_TEXT(shown("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80"); // beyond the last
    CHECK_TEXT(shown("\xe2\x80"), "\\xe2\\x80");                   // cut
    sanitize_line(line, sizeof line, "a\0b", 3);
    CHECK_TEXT(line, "a\\x00b");
}

static void text_keeps_its_lines_and_only_those(void) {
    sanitize_text(line, sizeof line, "a\n\tb\r\x1b", 6);
    CHECK_TEXT(line, "a\n\tb\\r\\x1b");
}

static void cutting_never_splits_a_character_or_an_escape(void) {
    const char *text = "a\x1b€b";
    char whole[64];
    size_t length = sanitize_line(whole, sizeof whole, text, strlen(text));
    CHECK_INT(length, strlen(whole));
    for (size_t size = 0; size <= length + 1; size++) {
        char *part = malloc(size + 1); // exact, so that a sanitizer sees a byte too many
        part[size] = 'Z';
        CHECK_INT(sanitize_line(part, size, text, strlen(text)), length);
        CHECK(part[size] == 'Z');
        if (size > 0) {
            size_t kept = strlen(part);
            CHECK(kept < size && strncmp(part, whole, kept) == 0);
            CHECK(kept == 0 || kept == 1 || kept == 5 || kept == 8 || kept == 9);
        }
        free(part);
    }
}

static void every_byte_sequence_is_safe_and_settles(void) {
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        char text[12], once[128], twice[256];
        for (size_t i = 0; i < sizeof text; i++) {
            seed = seed * 1103515245u + 12345u;
            text[i] = (char)(seed >> 16 | (i % 3 ? 0x80 : 0));
        }
        size_t length = sanitize_line(once, sizeof once, text, sizeof text);
        CHECK_INT(length, strlen(once));
        for (size_t i = 0; i < length; i++)
            CHECK((unsigned char)once[i] >= 0x20 && once[i] != 0x7f);
        sanitize_line(twice, sizeof twice, once, length);
        CHECK_TEXT(twice, once);
    }
}

int main(void) {
    RUN_TEST(a_copy_is_cut_at_a_whole_character);
    RUN_TEST(plain_text_of_any_language_passes);
    RUN_TEST(what_steers_a_terminal_becomes_visible);
    RUN_TEST(bytes_that_are_not_utf8_become_visible);
    RUN_TEST(text_keeps_its_lines_and_only_those);
    RUN_TEST(cutting_never_splits_a_character_or_an_escape);
    RUN_TEST(every_byte_sequence_is_safe_and_settles);
    return test_end();
}
