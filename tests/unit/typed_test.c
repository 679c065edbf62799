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
        bool done = parameter_parse(&parameter, cases[i].text, &error);
        CHECK_MESSAGE(done, "%s", error.text);
        double value =
            parameter.kind == RECORD_NUMBER ? parameter.number : (double)parameter.integer;
        CHECK_MESSAGE(value == cases[i].value, "%s=%s is %g", parameter.name, cases[i].text, value);
    }
    RecordParameter text = kind;
    CHECK(parameter_parse(&text, "9..8", &error));
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
        {&batch, "1.5", "a whole number expected"},
        {&batch, "1e30", "a whole number expected"},
        {&batch, "32x", "a whole number expected"},
        {&deep, "yes", "true or false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RecordParameter parameter = *cases[i].usual;
        CHECK_REFUSED(parameter_parse(&parameter, cases[i].text, &error), ERROR_USAGE,
                      cases[i].part);
        CHECK(memcmp(&parameter, cases[i].usual, sizeof parameter) == 0);
    }
}

static void whole_numbers_are_read_within_their_limits(void) {
    int64_t number = 0;
    CHECK_DONE(whole_parse("6e4", 0, 100000, &number, &error));
    CHECK_INT(number, 60000);
    CHECK_REFUSED(whole_parse("-1", 0, 10, &number, &error), ERROR_USAGE, "from 0 to 10");
    CHECK_REFUSED(whole_parse("1e3x", 0, 10, &number, &error), ERROR_USAGE, "a whole number");
    CHECK_REFUSED(whole_parse("0.5", 0, 10, &number, &error), ERROR_USAGE, "a whole number");
    CHECK_REFUSED(whole_parse("", 0, 10, &number, &error), ERROR_USAGE, "a whole number");
    CHECK_REFUSED(whole_parse("nan", 0, 10, &number, &error), ERROR_USAGE, "a whole number");
    CHECK_INT(number, 60000);
}

int main(void) {
    RUN_TEST(parameters_are_taken_as_they_are_meant);
    RUN_TEST(parameters_that_would_train_nothing_are_refused);
    RUN_TEST(whole_numbers_are_read_within_their_limits);
    return test_end();
}
