// Cells, areas, characters: what is drawn, and that nothing leaves its area.
#include "../test.h"
#include "base/rune.h"
#include "ui/cells/frame.h"
#include "ui/cells/glyphs.h"

static Frame frame;

static Area fresh(int columns, int rows) {
    frame.ascii = false;
    if (!frame_init(&frame, columns, rows, NULL))
        abort();
    return frame_area(&frame);
}

// The runes of a row as UTF-8, right halves left out.
static const char *row_text(int row) {
    static char text[4 * FRAME_MOST + 1];
    size_t used = 0;
    for (int column = 0; column < frame.columns; column++) {
        uint32_t rune = frame_cell(&frame, column, row)->rune;
        if (rune)
            used += (size_t)rune_encode(rune, text + used);
    }
    text[used] = 0;
    return text;
}

static void characters_have_the_width_of_terminals(void) {
    CHECK_INT(rune_width('a'), 1);
    CHECK_INT(rune_width(0xE9), 1);
    CHECK_INT(rune_width(0x301), 0);   // a combining accent
    CHECK_INT(rune_width(0x200B), 0);  // no width by name
    CHECK_INT(rune_width(0x4E2D), 2);  // a Chinese character
    CHECK_INT(rune_width(0x1F600), 2); // a picture
    CHECK_INT(rune_width(GLYPH_BRAILLE), 1);
    CHECK_INT(rune_width(0x1B), 0);
    CHECK_INT(text_width("a中b"), 4);
    CHECK_INT(text_width("\xff"), 1);
    CHECK_INT(text_fit("a中b", 2, NULL), 1); // half a character does not fit
    CHECK_INT(text_fit("a中b", 3, NULL), 4);
}

static void every_code_point_encodes_and_decodes(void) {
    for (uint32_t rune = 1; rune < 0x110000; rune++) {
        if (rune >= 0xD800 && rune < 0xE000)
            continue;
        char text[5];
        text[rune_encode(rune, text)] = 0;
        const char *at = text;
        CHECK_INT(rune_next(&at), rune);
        CHECK(*at == 0);
    }
}

static void text_is_cut_at_the_edge_of_its_area(void) {
    Area all = fresh(10, 3);
    Area part = area_part(all, 2, 1, 4, 1);
    CHECK_INT(area_text(part, 0, 0, style_of(INK_TEXT), "abcdefgh"), 4);
    area_text(part, 0, 1, style_of(INK_TEXT), "below");
    area_text(part, -2, 0, style_of(INK_TEXT), "xyz");
    CHECK_TEXT(row_text(0), "          ");
    CHECK_TEXT(row_text(1), "  zbcd    ");
    CHECK_TEXT(row_text(2), "          ");
}

static void long_text_ends_in_an_ellipsis(void) {
    Area all = fresh(8, 1);
    area_text_cut(all, 0, 0, 5, style_of(INK_TEXT), "abcdefgh");
    CHECK_TEXT(row_text(0), "abcd…   ");
    fresh(8, 1);
    area_text_cut(all, 0, 0, 5, style_of(INK_TEXT), "abcde");
    CHECK_TEXT(row_text(0), "abcde   ");
    fresh(8, 1);
    area_text_right(all, 4, 0, style_of(INK_TEXT), "12345678");
    CHECK_TEXT(row_text(0), "123…    ");
}

static void a_wide_character_never_stays_in_half(void) {
    Area all = fresh(4, 1);
    area_text(all, 0, 0, style_of(INK_TEXT), "中中");
    area_put(all, 1, 0, style_of(INK_TEXT), 'x'); // on a right half
    CHECK_TEXT(row_text(0), " x中");
    area_put(all, 2, 0, style_of(INK_TEXT), 'y'); // on a left half
    CHECK_TEXT(row_text(0), " xy ");
    fresh(3, 1);
    area_text(frame_area(&frame), 0, 0, style_of(INK_TEXT), "中中"); // the second sticks out
    CHECK_TEXT(row_text(0), "中 ");
}

static void a_wide_character_over_two_others_leaves_no_halves(void) {
    Area all = fresh(6, 1);
    area_text(all, 0, 0, style_of(INK_TEXT), "中中中");
    area_put(all, 1, 0, style_of(INK_TEXT), 0x4E2D);
    CHECK_TEXT(row_text(0), " 中 中");
}

static void a_box_shows_title_and_word_where_they_fit(void) {
    Area all = fresh(24, 3);
    Area inside = area_box(all, "loss", "log", true);
    CHECK_TEXT(row_text(0), "╭─ loss ───────── log ─╮");
    CHECK_INT(inside.width, 22);
    CHECK_INT(inside.height, 1);
    CHECK_INT(frame_cell(&frame, 0, 0)->style.ink, INK_ACCENT);
    fresh(12, 3);
    area_box(frame_area(&frame), "gradient exponents", "true values", false);
    CHECK_TEXT(row_text(0), "╭─ gradi… ─╮");
    fresh(1, 1);
    CHECK(area_is_empty(area_box(frame_area(&frame), "x", NULL, false)));
}

static void words_are_wrapped_between_words(void) {
    Area all = fresh(10, 4);
    CHECK_INT(area_wrap(all, 0, style_of(INK_TEXT), "one two three four"), 2);
    CHECK_TEXT(row_text(0), "one two   ");
    CHECK_TEXT(row_text(1), "three four");
}

static void words_that_find_no_row_leave_an_ellipsis(void) {
    Area all = fresh(10, 2);
    area_wrap(all, 0, style_of(INK_TEXT), "one two three four");
    CHECK_TEXT(row_text(1), "three four");
    all = fresh(10, 2);
    area_wrap(all, 0, style_of(INK_TEXT), "one two three four five");
    CHECK_TEXT(row_text(1), "three fou…");
    all = fresh(10, 1);
    area_wrap(all, 0, style_of(INK_TEXT), "one two three");
    CHECK_TEXT(row_text(0), "one two…  ");
    all = fresh(10, 1);
    area_wrap(all, 0, style_of(INK_TEXT), "one\ntwo");
    CHECK_TEXT(row_text(0), "one…      ");
}

static void ascii_frames_hold_ascii_alone(void) {
    fresh(40, 6);
    frame.ascii = true;
    Area all = frame_area(&frame);
    area_box(all, "größe 中", "→ ±", true);
    area_text(all, 1, 1, style_of(INK_TEXT), "2^16 → 2^15 … ▁▂▃▄▅▆▇█ ⣿⠉⣀ 中");
    for (int row = 0; row < frame.rows; row++)
        for (int column = 0; column < frame.columns; column++) {
            uint32_t rune = frame_cell(&frame, column, row)->rune;
            CHECK_MESSAGE(rune >= ' ' && rune <= '~', "U+%04X at %d, %d", rune, column, row);
        }
}

static void sizes_beyond_reason_are_brought_into_it(void) {
    fresh(0, 0);
    CHECK(frame.columns == 1 && frame.rows == 1);
    fresh(100000, 2);
    CHECK_INT(frame.columns, FRAME_MOST);
}

int main(void) {
    RUN_TEST(characters_have_the_width_of_terminals);
    RUN_TEST(every_code_point_encodes_and_decodes);
    RUN_TEST(text_is_cut_at_the_edge_of_its_area);
    RUN_TEST(long_text_ends_in_an_ellipsis);
    RUN_TEST(a_wide_character_never_stays_in_half);
    RUN_TEST(a_wide_character_over_two_others_leaves_no_halves);
    RUN_TEST(a_box_shows_title_and_word_where_they_fit);
    RUN_TEST(words_are_wrapped_between_words);
    RUN_TEST(words_that_find_no_row_leave_an_ellipsis);
    RUN_TEST(ascii_frames_hold_ascii_alone);
    RUN_TEST(sizes_beyond_reason_are_brought_into_it);
    frame_clear(&frame);
    return test_end();
}
