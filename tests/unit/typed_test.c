// What people type: whole numbers, and the parameters of experiments (--set, the launch form).
#include "base/whole.h"
#include "store/parameter.h"
#include "tests/unit/store_fixture.h"

static const RecordParameter lr = {"lr", RECORD_NUMBER, 1e-3, 0, ""};
static const RecordParameter decay = {"decay", RECORD_NUMBER, 0, 0, ""};
static const RecordParameter clip = {"clip", RECORD_NUMBER, INFINITY, 0, ""};
static const RecordParameter batch = {"batch", RECORD_INTEGER, 0, 32, ""};
static const RecordParameter warmup = {"warmup", RECORD_INTEGER, 0, 100, ""};
static const RecordParameter seed = {"from", RECORD_INTEGER, 0, -1, ""};
static const RecordParameter deep = {"deep", RECORD_BOOLEAN, 0, 1, ""};
static const RecordParameter kind = {"kind", RECORD_TEXT, 0, 0, "plain"};

static void parameters_are_taken_as_they_are_meant(void) {
    static const struct {
        const RecordParameter *usual;
        const char *text;
        double value;
    } cases[] = {
        {&lr, "3e-4", 3e-4},
        {&lr, "0", 0},
        {&decay, "-1", -1},
        {&clip, "inf", INFINITY},
        {&lr, "1e-300", 1e-300},
        {&batch, "64", 64},
        {&warmup, "0", 0},
        {&batch, "1e3", 1000},
        {&seed, "0", 0},
        {&seed, "-5", -5},
        {&deep, "false", 0},
        {&deep, "1", 1},
        {&batch, "9007199254740993", 9007199254740993.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RecordParameter parameter = *cases[i].usual;
        bool done = parameter_parse(&parameter, "", cases[i].text, &error);
        CHECK_MESSAGE(done, "%s", error.text);
        double value =
            parameter.kind == RECORD_NUMBER ? parameter.number : (double)parameter.integer;
        CHECK_MESSAGE(value == cases[i].value, "%s=%s is %g", parameter.name, cases[i].text, value);
    }
    RecordParameter text = kind;
    CHECK(parameter_parse(&text, "", "9..8", &error));
    CHECK_TEXT(text.text, "9..8");
}

static void parameters_that_would_train_nothing_are_refused(void) {
    static const struct {
        const RecordParameter *usual;
        const char *text, *part;
    } cases[] = {
        {&lr, "9999...1e-9999", "a number expected"},
        {&lr, "1e-9999", "too small, it would be 0"},
        {&lr, "1e9999", "a finite number"},
        {&lr, "inf", "a finite number"},
        {&lr, "nan", "a number expected"},
        {&lr, "", "a number expected"},
        {&lr, "-1e-3", "from 0 up"},
        {&clip, "nan", "a number expected"},
        {&batch, "0", "batch=0: a whole number above 0"},
        {&batch, "-5", "from 0 up"},
        {&batch, "1.5", "a whole number is wanted"},
        {&warmup, "0.5",
         "is wanted, as its default is; with 100.0 for a default in the script any"},
        {&warmup, "x.5", "warmup=x.5: a whole number is wanted"},
        {&batch, "32x", "a whole number is wanted"},
        {&batch, "0x10", "a whole number is wanted"},
        {&batch, " 8", "a whole number is wanted"},
        {&batch, "inf", "a whole number is wanted"},
        {&batch, "1e30", "batch=1e30: too large: up to 9223372036854775807 is possible"},
        {&batch, "99999999999999999999", "too large: up to 9223372036854775807 is possible"},
        {&deep, "yes", "true or false"},
        {&deep, "true,no", "true or false"},
        {&deep, "true,false", "one value expected; several are a matrix's: `mpbench matrix`"},
        {&lr, "1e-3,1e-2",
         "with a point before decimals; several are a matrix's: `mpbench matrix`"},
        {&lr, "0,5,", "a number expected"},
        {&batch, "8,16", "one value expected; several are a matrix's: `mpbench matrix`"},
        {&batch, "8,0", "a whole number is wanted"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RecordParameter parameter = *cases[i].usual;
        CHECK_REFUSED(parameter_parse(&parameter, "", cases[i].text, &error), ERROR_USAGE,
                      cases[i].part);
        CHECK(memcmp(&parameter, cases[i].usual, sizeof parameter) == 0);
    }
}

static void a_text_that_is_no_choice_is_refused(void) {
    static const char choices[] = "plain small-1 x/y";
    static const char *const taken[] = {"plain", "small-1", "x/y"};
    static const char *const refused[] = {"", "pla", "plainer", "small", "plain small-1", " ", "y"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        RecordParameter parameter = kind;
        CHECK(parameter_parse(&parameter, choices, taken[i], &error));
        CHECK_TEXT(parameter.text, taken[i]);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        RecordParameter parameter = kind;
        CHECK_REFUSED(parameter_parse(&parameter, choices, refused[i], &error), ERROR_USAGE,
                      ": plain, small-1 or x/y expected");
        CHECK(memcmp(&parameter, &kind, sizeof parameter) == 0);
    }
    RecordParameter parameter = kind;
    CHECK_REFUSED(parameter_parse(&parameter, choices, "x/y,plain", &error), ERROR_USAGE,
                  "several are a matrix's");
    CHECK(parameter_parse(&parameter, "", "x/y,plain", &error)); // a text may be anything
    CHECK_TEXT(parameter.text, "x/y,plain");
}

static void choices_are_turned_through_and_listed(void) {
    static const char choices[] = "plain small-1 x/y";
    static const struct {
        const char *text;
        int by;
        const char *turned;
    } cases[] = {{"plain", 1, "small-1"}, {"x/y", 1, "plain"},  {"plain", -1, "x/y"},
                 {"x/y", -1, "small-1"},  {"none", 1, "plain"}, {"", -1, "plain"}};
    char text[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parameter_turn(choices, cases[i].text, cases[i].by, text, sizeof text);
        CHECK_TEXT(text, cases[i].turned);
    }
    parameter_list_choices(choices, text, sizeof text);
    CHECK_TEXT(text, "plain, small-1 or x/y");
    parameter_list_choices("on off", text, sizeof text);
    CHECK_TEXT(text, "on or off");
    parameter_list_choices("", text, sizeof text);
    CHECK_TEXT(text, "");
}

// To the digit, as far as an int64_t goes: nothing passes through a double.
static void whole_numbers_are_read_as_they_are_typed(void) {
    static const struct {
        const char *text;
        int64_t number;
    } cases[] = {
        {"0", 0},
        {"-0", 0},
        {"+7", 7},
        {"007", 7},
        {"6e4", 60000},
        {"1.5E+3", 1500},
        {"2.50e1", 25},
        {"5.", 5},
        {"120e-1", 12},
        {"0e99999999999999999999", 0},
        {"000e-7", 0},
        {"9007199254740993", 9007199254740993},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"9.223372036854775807e18", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t number = -1;
        bool done = whole_parse(cases[i].text, INT64_MIN, INT64_MAX, &number, &error);
        CHECK_MESSAGE(done, "%s: %s", cases[i].text, error.text);
        CHECK_MESSAGE(number == cases[i].number, "%s is %lld", cases[i].text, (long long)number);
    }
}

static void what_is_no_whole_number_is_refused(void) {
    static const char *const texts[] = {"",
                                        "nan",
                                        "inf",
                                        "1e3x",
                                        "0.5",
                                        "0x10",
                                        " 1",
                                        "1 ",
                                        "-",
                                        ".",
                                        "e5",
                                        "1e",
                                        "1e+",
                                        "1e 5",
                                        "--1",
                                        "1.2.",
                                        "1,000",
                                        "1e-400",
                                        "5e-1",
                                        "1e1.0",
                                        "9007199254740993.5",
                                        "0.99999999999999999999"};
    int64_t number = 60000;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK_REFUSED(whole_parse(texts[i], INT64_MIN, INT64_MAX, &number, &error), ERROR_USAGE,
                      "a whole number is wanted");
    CHECK_INT(number, 60000);
}

static void limits_of_whole_numbers_are_named(void) {
    int64_t number = 60000;
    CHECK_REFUSED(whole_parse("-1", 0, 10, &number, &error), ERROR_USAGE, "from 0 to 10");
    CHECK_REFUSED(whole_parse("11", 0, 10, &number, &error), ERROR_USAGE,
                  "too large: up to 10 is possible");
    static const char *const large[] = {"9223372036854775808", "18446744073709551617",
                                        "99999999999999999999", "1e400"};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        CHECK_REFUSED(whole_parse(large[i], 1, INT64_MAX, &number, &error), ERROR_USAGE,
                      "too large: up to 9223372036854775807");
    CHECK_REFUSED(whole_parse("-9223372036854775809", INT64_MIN, 10, &number, &error), ERROR_USAGE,
                  "from -9223372036854775808 to 10");
    CHECK_INT(number, 60000);
}

int main(void) {
    RUN_TEST(parameters_are_taken_as_they_are_meant);
    RUN_TEST(parameters_that_would_train_nothing_are_refused);
    RUN_TEST(a_text_that_is_no_choice_is_refused);
    RUN_TEST(choices_are_turned_through_and_listed);
    RUN_TEST(whole_numbers_are_read_as_they_are_typed);
    RUN_TEST(what_is_no_whole_number_is_refused);
    RUN_TEST(limits_of_whole_numbers_are_named);
    return test_end();
}
