// Bytes of a terminal, cut anywhere, with any pause: keys, clicks and answers.
#include <locale.h>
#include <stdlib.h>

#include "../test.h"
#include "ui/cells/input.h"
#include "ui/keys/keys.h"

enum { MOST = 64 };

static InputReader reader;
static Input got[MOST];
static int got_count;
static double now;

static void begin(void) {
    input_init(&reader);
    got_count = 0;
    now = 100;
}

static void take(void) {
    Input input;
    while (got_count < MOST && input_next(&reader, now, &input))
        got[got_count++] = input;
}

static void feed(const char *bytes, size_t count) {
    input_feed(&reader, bytes, count, now);
    take();
}

// As the loop of the screen: in steps of a frame.
static void pass(double seconds) {
    for (double end = now + seconds; now < end;) {
        now += 0.05;
        take();
    }
}

static int keys(void) {
    int count = 0;
    for (int i = 0; i < got_count; i++)
        count += got[i].kind == INPUT_KEY;
    return count;
}

static void check_keys(const int *expected, int count) {
    CHECK_INT(keys(), count);
    for (int i = 0, at = 0; i < got_count && at < count; i++)
        if (got[i].kind == INPUT_KEY)
            CHECK_INT(got[i].key, expected[at++]);
}

static const double pauses[] = {0, 0.01, 0.06, 0.3, 0.9, 5};
enum { PAUSES = sizeof pauses / sizeof *pauses };

// ---- reports of the mouse -----------------------------------------------------------------------

static const char press[] = "\x1b[<0;12;7M", release[] = "\x1b[<0;12;7m", wheel[] = "\x1b[<65;3;4M";

// After a cut behind the Escape and a pause the Escape was told, which alone is a key; nothing else
// may be one. A pause longer than a second there is somebody's, who pressed Escape.
static void a_report_cut_anywhere_is_never_keys(void) {
    static const char *const reports[] = {press, release, wheel, "\x1b[<35;1;1M", "\x1b[M !!"};
    for (size_t r = 0; r < sizeof reports / sizeof *reports; r++)
        for (size_t cut = 1; cut < strlen(reports[r]); cut++)
            for (int p = 0; p < PAUSES; p++) {
                if (cut == 1 && pauses[p] > 1)
                    continue;
                begin();
                feed(reports[r], cut);
                pass(pauses[p]);
                feed(reports[r] + cut, strlen(reports[r]) - cut);
                pass(2);
                int most = cut == 1 && pauses[p] >= 0.1 ? 1 : 0;
                CHECK_MESSAGE(keys() <= most && (keys() == 0 || got[0].key == KEY_CODE_ESCAPE),
                              "%s cut at %zu for %g s is %d keys, the first %d", reports[r] + 1,
                              cut, pauses[p], keys(), got[0].key);
            }
}

static void a_report_cut_into_bytes_is_a_click(void) {
    begin();
    for (size_t i = 0; i < sizeof press - 1; i++) {
        feed(press + i, 1);
        pass(0.02);
    }
    CHECK_INT(got_count, 1);
    CHECK(got[0].kind == INPUT_MOUSE && got[0].action == MOUSE_PRESS);
    CHECK_INT(got[0].column, 11);
    CHECK_INT(got[0].row, 6);
}

static void keys_around_a_report_are_keys(void) {
    begin();
    feed("a\x1b[<0;1;1Mb\x1b[<64;1;1Mc", 22);
    pass(1);
    check_keys((int[]){'a', 'b', 'c'}, 3);
    CHECK_INT(got_count, 5);
}

static void a_report_that_breaks_off_loses_no_key_behind_it(void) {
    begin();
    feed("\x1b[<0;1", 6);
    feed("x", 1);
    feed("\x1b[<0;1;1", 8);
    feed("\x1b[A", 3);
    pass(1);
    check_keys((int[]){'x', KEY_CODE_UP}, 2);
}

static void buttons_that_are_none_of_ours_do_nothing(void) {
    static const char *const reports[] = {"\x1b[<1;5;5M",  "\x1b[<2;5;5M", "\x1b[<32;5;5M",
                                          "\x1b[<66;5;5M", "\x1b[<0;0;5M", "\x1b[<0;99999;99999m"};
    begin();
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        feed(reports[i], strlen(reports[i]));
    CHECK_INT(got_count, 0);
}

// ---- keys ---------------------------------------------------------------------------------------

static void escape_alone_is_a_key_soon(void) {
    begin();
    feed("\x1b", 1);
    CHECK_INT(keys(), 0);
    double wait = input_wait(&reader, now);
    CHECK(wait > 0 && wait <= 0.1);
    pass(0.15);
    check_keys((int[]){KEY_CODE_ESCAPE}, 1);
    CHECK(input_wait(&reader, now) < 0);
}

static void what_follows_an_escape_is_a_key(void) {
    begin();
    feed("\x1b\x1bq\x1bx", 5);
    pass(1);
    check_keys((int[]){KEY_CODE_ESCAPE, KEY_CODE_ESCAPE, 'q', KEY_CODE_ESCAPE, 'x'}, 5);
    begin(); // a bracket, too, which is held back a moment
    feed("\x1b", 1);
    pass(0.5);
    feed("[", 1);
    pass(0.5);
    feed("[", 1);
    feed("]", 1);
    pass(0.5);
    check_keys((int[]){KEY_CODE_ESCAPE, '[', '[', ']'}, 4);
}

static void alt_and_a_bracket_eats_no_later_key(void) {
    begin();
    feed("\x1b[", 2);
    pass(2);
    feed("q", 1);
    pass(1);
    check_keys((int[]){'q'}, 1);
}

static void keys_cut_anywhere_are_keys(void) {
    static const struct {
        const char *bytes;
        int key;
    } cases[] = {
        {"\x1b[A", KEY_CODE_UP},      {"\x1bOB", KEY_CODE_DOWN},   {"\x1b[5~", KEY_CODE_PAGE_UP},
        {"\x1b[Z", KEY_CODE_BACKTAB}, {"\xc3\xa9", 0xE9},          {"\x1bOP", KEY_CODE_F1},
        {"\b", KEY_CODE_BACKSPACE},   {"\x7f", KEY_CODE_BACKSPACE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t cut = 0; cut < strlen(cases[i].bytes); cut++) {
            begin();
            input_add_key(&reader, "\x1bOP", KEY_CODE_F1);
            feed(cases[i].bytes, cut);
            pass(0.05);
            feed(cases[i].bytes + cut, strlen(cases[i].bytes) - cut);
            pass(1);
            check_keys(&cases[i].key, 1);
        }
}

static void keys_with_shift_and_control_are_not_their_letters(void) {
    begin();
    feed("\x1b[1;5A\x1b[15;2~\x1b[?1;2c\x1b[I", 23);
    pass(1);
    CHECK_INT(got_count, 0);
}

// ---- answers ------------------------------------------------------------------------------------

static const char white[] = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\", kind[] = "\x1b[?62;22c";

static void an_answer_is_taken_whenever_it_comes(void) {
    for (size_t cut = 1; cut < sizeof white - 1; cut++)
        for (int p = 0; p < PAUSES; p++) {
            if (cut <= 2 && pauses[p] >= 0.1)
                continue; // told by the report's test: these are somebody's keys
            begin();
            reader.is_asked = true;
            feed("a", 1);
            feed(white, cut);
            pass(pauses[p]);
            feed(white + cut, sizeof white - 1 - cut);
            feed(kind, sizeof kind - 1);
            feed("b", 1);
            pass(1);
            check_keys((int[]){'a', 'b'}, 2);
            CHECK(reader.has_background && !reader.is_asked);
            CHECK_INT(reader.background, 0xFFFFFF);
        }
}

static void answers_are_read_as_terminals_write_them(void) {
    static const struct {
        const char *bytes;
        bool is_known;
        uint32_t rgb;
    } cases[] = {{"\x1b]11;rgb:12/15/1c\x07", true, 0x12151C},
                 {"\x1b]11;rgb:f/f/0\x1b\\", true, 0xFFFF00},
                 {"\x1b]11;rgb:1234/5678/9abc\x07", true, 0x12569A},
                 {"\x1b]11;rgb:\x07", false, 0},
                 {"\x1b]11;rgb:ffffff/0/0\x07", false, 0},
                 {"\x1b]11;rgb:f/f\x07", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        reader.is_asked = true;
        feed(cases[i].bytes, strlen(cases[i].bytes));
        feed("k", 1);
        pass(1);
        check_keys((int[]){'k'}, 1);
        CHECK_MESSAGE(reader.has_background == cases[i].is_known, "case %zu", i);
        if (cases[i].is_known)
            CHECK_INT(reader.background, cases[i].rgb);
    }
}

static void what_nobody_asked_for_is_keys(void) {
    begin();
    feed("\x1b]1", 3);
    pass(1);
    check_keys((int[]){KEY_CODE_ESCAPE, ']', '1'}, 3);
    begin(); // or is no answer
    reader.is_asked = true;
    feed("\x1b]q", 3);
    pass(1);
    check_keys((int[]){KEY_CODE_ESCAPE, ']', 'q'}, 3);
}

// ---- at random ----------------------------------------------------------------------------------

// Clicks and letters, in pieces of any size: every letter comes through, and none that is no key.
static void keys_and_clicks_come_through_whole(void) {
    srand(7);
    for (int round = 0; round < 2000; round++) {
        char bytes[256];
        int expected[MOST], letters = 0, clicks = 0, used = 0;
        begin();
        reader.is_asked = true;
        for (int i = 0; i < 12; i++) {
            int what = rand() % 4;
            if (what == 0) {
                bytes[used++] = (char)(expected[letters] = 'a' + rand() % 26);
                letters++;
            } else {
                used += snprintf(bytes + used, sizeof bytes - (size_t)used, "%s",
                                 what == 1   ? press
                                 : what == 2 ? release
                                             : white);
                clicks += what == 1;
            }
        }
        for (int at = 0; at < used;) {
            int piece = 1 + rand() % 9;
            piece = piece < used - at ? piece : used - at;
            feed(bytes + at, (size_t)piece);
            at += piece;
            pass(rand() % 3 ? 0 : 0.05);
        }
        pass(1);
        check_keys(expected, letters);
        int found = 0;
        for (int i = 0; i < got_count; i++)
            found += got[i].kind == INPUT_MOUSE;
        CHECK_INT(found, clicks);
    }
}

static void any_bytes_end_and_leave_room(void) {
    srand(11);
    begin();
    reader.is_asked = true;
    for (int i = 0; i < 200000; i++) {
        static const char likely[] = "\x1b[]<;:0123456789Mmrgb/c\x07\\A";
        char byte = rand() % 3 ? likely[(size_t)rand() % (sizeof likely - 1)] : (char)rand();
        got_count = 0;
        feed(&byte, 1);
        if (rand() % 8 == 0)
            pass(0.2);
        CHECK(input_room(&reader) > 0);
    }
}

int main(void) {
    setlocale(LC_CTYPE, "C.UTF-8");
    RUN_TEST(a_report_cut_anywhere_is_never_keys);
    RUN_TEST(a_report_cut_into_bytes_is_a_click);
    RUN_TEST(keys_around_a_report_are_keys);
    RUN_TEST(a_report_that_breaks_off_loses_no_key_behind_it);
    RUN_TEST(buttons_that_are_none_of_ours_do_nothing);
    RUN_TEST(escape_alone_is_a_key_soon);
    RUN_TEST(what_follows_an_escape_is_a_key);
    RUN_TEST(alt_and_a_bracket_eats_no_later_key);
    RUN_TEST(keys_cut_anywhere_are_keys);
    RUN_TEST(keys_with_shift_and_control_are_not_their_letters);
    RUN_TEST(an_answer_is_taken_whenever_it_comes);
    RUN_TEST(answers_are_read_as_terminals_write_them);
    RUN_TEST(what_nobody_asked_for_is_keys);
    RUN_TEST(keys_and_clicks_come_through_whole);
    RUN_TEST(any_bytes_end_and_leave_room);
    return test_end();
}
