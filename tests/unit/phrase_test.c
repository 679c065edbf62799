// Sentences of parts: they never leave their room, and end with a whole character.
#include "base/phrase.h"

#include "tests/test.h"

static void parts_stand_behind_each_other(void) {
    char text[32] = "before";
    Phrase phrase = phrase_begin(text, sizeof text);
    CHECK_TEXT(text, "");
    phrase_add(&phrase, "%d of %d", 2, 3);
    phrase_add(&phrase, ", %s", "and on");
    CHECK_TEXT(text, "2 of 3, and on");
    CHECK(!phrase.is_cut);
}

static void what_does_not_fit_is_cut_once(void) {
    char text[8];
    Phrase phrase = phrase_begin(text, sizeof text);
    phrase_add(&phrase, "%.0f", 1e300);
    CHECK(phrase.is_cut);
    CHECK_INT(strlen(text), 7);
    phrase_add(&phrase, "more");
    CHECK_INT(phrase.used, 7);
    CHECK_INT(strlen(text), 7);
}

static void a_character_is_whole_or_not_there(void) {
    static const char *const want[] = {"", "", "", "€", "€", "€", "€€", "€€a", "€€ab"};
    for (size_t size = 1; size < 10; size++) {
        char text[10];
        Phrase phrase = phrase_begin(text, size);
        phrase_add(&phrase, "€€abc");
        CHECK_TEXT(text, want[size - 1]);
    }
}

static void words_are_what_a_shell_reads_them_as(void) {
    static const struct {
        const char *word, *want;
    } words[] = {{"fc1=bf16", "fc1=bf16"},       {"", "''"},
                 {"conv*=bf16", "'conv*=bf16'"}, {"a $(b)", "'a $(b)'"},
                 {"it's", "'it'\\''s'"},         {"'", "''\\'''"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char text[32];
        Phrase phrase = phrase_begin(text, sizeof text);
        phrase_add_word(&phrase, words[i].word);
        CHECK_TEXT(text, words[i].want);
    }
}

int main(void) {
    RUN_TEST(parts_stand_behind_each_other);
    RUN_TEST(what_does_not_fit_is_cut_once);
    RUN_TEST(a_character_is_whole_or_not_there);
    RUN_TEST(words_are_what_a_shell_reads_them_as);
    return test_end();
}
