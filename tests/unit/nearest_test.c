// Mistyped names find the one that was meant, and other words find nothing.
#include "base/nearest.h"
#include "tests/test.h"

static const char *const names[] = {"relu", "gelu",  "cross_entropy", "conv2d", "conv3d", "Linear",
                                    "lr",   "batch", "string",        "print",  "optim"};

static const char *find(const char *wanted) {
    const char *found = nearest_name(wanted, names, sizeof names / sizeof names[0]);
    return found ? found : "(none)";
}

static void mistypes_find_the_name_that_was_meant(void) {
    CHECK_TEXT(find("rellu"), "relu");
    CHECK_TEXT(find("geul"), "gelu");
    CHECK_TEXT(find("crossentropy"), "cross_entropy");
    CHECK_TEXT(find("CrossEntropy"), "cross_entropy");
    CHECK_TEXT(find("conv2D"), "conv2d");
    CHECK_TEXT(find("linear"), "Linear");
    CHECK_TEXT(find("stirng"), "string");
    CHECK_TEXT(find("LR"), "lr");
    CHECK_TEXT(find("prnt"), "print");
}

static void long_forms_find_the_short_one(void) {
    CHECK_TEXT(find("optimizer"), "optim");
    CHECK_TEXT(find("learning_rate"), "lr");
    CHECK_TEXT(find("batch_size"), "batch");
}

static void an_ending_with_a_number_finds_the_whole_name(void) {
    static const char *const formats[] = {"fp32", "fp8", "mxfp8", "mxfp4", "nvfp4", "net.fc1"};
    CHECK_TEXT(nearest_name("fp4", formats, 6), "mxfp4");
    CHECK_TEXT(nearest_name("fc1", formats, 6), "net.fc1");
    CHECK_TEXT(find("cat"), "(none)");
    CHECK_TEXT(find("entropy"), "cross_entropy"); // a word of it
    CHECK_TEXT(find("near"), "Linear");           // two letters and a case
}

static void other_words_find_nothing(void) {
    CHECK_TEXT(find("optic_fibre"), "(none)");
    CHECK_TEXT(find("learning"), "(none)");
    CHECK_TEXT(find("learning_rate_now"), "(none)");
    CHECK_TEXT(find("x"), "(none)");
    CHECK_TEXT(find("ab"), "(none)");
    CHECK_TEXT(find(""), "(none)");
}

static void names_of_any_length_are_safe(void) {
    char longest[5000];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    CHECK_TEXT(find(longest), "(none)");
    longest[64] = 0;
    const char *same = longest;
    CHECK(nearest_name(longest, &same, 1) == same);
    CHECK(nearest_name("x", NULL, 0) == NULL);
}

int main(void) {
    RUN_TEST(mistypes_find_the_name_that_was_meant);
    RUN_TEST(long_forms_find_the_short_one);
    RUN_TEST(an_ending_with_a_number_finds_the_whole_name);
    RUN_TEST(other_words_find_nothing);
    RUN_TEST(names_of_any_length_are_safe);
    return test_end();
}
