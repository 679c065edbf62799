// Readings in words: alike on all screens, and a dash for what is unknown.
#include "store/record.h"
#include "tests/test.h"
#include "ui/cells/words.h"

static void readings_are_words_and_unknown_ones_a_dash(void) {
    CHECK_TEXT(word_count(1240).text, "1,240");
    CHECK_TEXT(word_count(-1234567).text, "-1,234,567");
    CHECK_TEXT(word_count(RECORD_UNKNOWN).text, "–");
    CHECK_TEXT(word_bytes(64000000).text, "61 MiB");
    CHECK_TEXT(word_bytes(9860000).text, "9.4 MiB");
    CHECK_TEXT(word_bytes(RECORD_UNKNOWN).text, "–");
    CHECK_TEXT(word_scale(32768).text, "2^15");
    CHECK_TEXT(word_scale(1126.4).text, "1126.4");
    CHECK_TEXT(word_scale(NAN).text, "–");
    CHECK_TEXT(word_rule("32768").text, "2^15");
    CHECK_TEXT(word_rule("dynamic").text, "dynamic");
    CHECK_TEXT(word_rule("").text, "–");
    CHECK_TEXT(word_share(0.041).text, "4.1 %");
    CHECK_TEXT(word_share(NAN).text, "–");
    CHECK_TEXT(word_number(NAN).text, "nan");
    CHECK_TEXT(word_reading(NAN).text, "–");
    CHECK_TEXT(word_time(3).text, "0:03");
    CHECK_TEXT(word_time(3723).text, "1:02:03");
    CHECK_TEXT(word_time(359999).text, "99:59:59");
    CHECK_TEXT(word_time(1600 * 3600.0).text, "66 d 16 h");
    CHECK_TEXT(word_time(1e12).text, "> 9999 d");
    CHECK_TEXT(word_time(INFINITY).text, "> 9999 d");
    CHECK_TEXT(word_time(NAN).text, "–");
}

static void check_rewritten(const char *text, const char *expected) {
    char out[256];
    word_rewrite(out, sizeof out, text);
    CHECK_TEXT(out, expected);
}

static void scales_are_written_one_way(void) {
    check_rewritten("gradient of a.b not finite, scale 131072 -> 65536; the loss is finite",
                    "gradient of a.b not finite, scale 2^17 → 2^16; the loss is finite");
    check_rewritten("the loss scale went from 1.0995116e+12 to 0.5",
                    "the loss scale went from 2^40 to 2^-1");
    check_rewritten("skipped with the loss scale at 1, from where", // as panels have it
                    "skipped with the loss scale at 2^0, from where");
    check_rewritten("the scale fell at step 1024, 16 steps",
                    "the scale fell at step 1024, 16 steps");
    check_rewritten("scale 1000 -> 500 by 64 of 1290", "scale 1000 → 500 by 64 of 1290");
    check_rewritten("epoch 4 of 8: 128 files", "epoch 4 of 8: 128 files");
    check_rewritten("the loss scale grows again after 1 step without overflow",
                    "the loss scale grows again after 1 step without overflow");
    check_rewritten("the loss scale has stood at 0.5 for 32 steps",
                    "the loss scale has stood at 2^-1 for 32 steps");
    check_rewritten("became zero in fp16 at scale 1 (64 % in fc1.weight)",
                    "became zero in fp16 at scale 2^0 (64 % in fc1.weight)");
    check_rewritten("grayscale images in batches of 64 and 16 workers",
                    "grayscale images in batches of 64 and 16 workers");
    check_rewritten("scales of 64 images", "scales of 64 images");
    check_rewritten("the run's scale at 64 in \"scale 4\" and 'scale 8'",
                    "the run's scale at 2^6 in \"scale 4\" and 'scale 8'");
    char small[8];
    word_rewrite(small, sizeof small, "a -> scale 65536");
    CHECK(strlen(small) < sizeof small);
}

static void long_names_lose_their_middle(void) {
    char out[64];
    word_shorten(out, sizeof out, "blocks.1.attention.qkv", 11);
    CHECK_TEXT(out, "block…n.qkv");
    word_shorten(out, sizeof out, "blocks", 6);
    CHECK_TEXT(out, "blocks");
    word_shorten(out, sizeof out, "日本語日本語", 7);
    CHECK_TEXT(out, "日…語"); // a wide character is whole or not there
    word_shorten(out, sizeof out, "blocks", 1);
    CHECK_TEXT(out, "…");
    word_shorten(out, sizeof out, "blocks", 0);
    CHECK_TEXT(out, "");
}

int main(void) {
    RUN_TEST(readings_are_words_and_unknown_ones_a_dash);
    RUN_TEST(scales_are_written_one_way);
    RUN_TEST(long_names_lose_their_middle);
    return test_end();
}
