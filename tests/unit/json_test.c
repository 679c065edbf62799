// What is written as JSON reads back as what it was.
#include "base/json.h"

#include <float.h>
#include <stdint.h>

#include "tests/test.h"

static char written[512];

// Writes one value by `write` and leaves its text in `written`.
#define WRITE(statement)                                         \
    do {                                                         \
        FILE *stream = fmemopen(written, sizeof written, "w");   \
        JsonWriter writer = {.stream = stream}, *json = &writer; \
        statement;                                               \
        fclose(stream);                                          \
    } while (0)

static void numbers_are_as_short_as_they_can_be(void) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.1, "0.1"},
                 {0.001, "0.001"},
                 {65536, "65536"},
                 {1e6, "1000000"},
                 {1e300, "1e+300"},
                 {-2.5, "-2.5"},
                 {0, "0"},
                 {5e-324, "5e-324"},
                 {1.0 / 3, "0.3333333333333333"},
                 {0x1p24, "16777216"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        WRITE(json_number(json, cases[i].value));
        CHECK_TEXT(written, cases[i].text);
    }
}

static void numbers_read_back_the_same(void) {
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double value;
        memcpy(&value, &state, sizeof value);
        if (!isfinite(value))
            continue;
        WRITE(json_number(json, value));
        double back = strtod(written, NULL);
        CHECK_MESSAGE(back == value, "%a was written as %s", value, written);
    }
    WRITE(json_number(json, DBL_MAX));
    CHECK(strtod(written, NULL) == DBL_MAX);
}

static void what_is_no_number_is_a_string(void) {
    WRITE(json_number(json, (double)NAN));
    CHECK_TEXT(written, "\"nan\"");
    WRITE(json_number(json, (double)INFINITY));
    CHECK_TEXT(written, "\"inf\"");
    WRITE(json_number(json, -(double)INFINITY));
    CHECK_TEXT(written, "\"-inf\"");
}

static void text_is_escaped(void) {
    WRITE(json_text(json, "a \"b\" \\ \n\t\x01\x1b[2J\x7f"));
    CHECK_TEXT(written, "\"a \\\"b\\\" \\\\ \\n\\t\\u0001\\u001b[2J\\u007f\"");
    WRITE(json_text(json, NULL));
    CHECK_TEXT(written, "null");
}

static void what_cannot_be_seen_is_escaped(void) {
    WRITE(json_text(json, "a\u00a0\xC2\x9B"
                          "31m\u202e\u200b\u2066\ufeff\xF3\xA0\x81\x81z"));
    CHECK_TEXT(written, "\"a\u00a0\\u009b31m\\u202e\\u200b\\u2066\\ufeff\\udb40\\udc41z\"");
}

static void text_is_utf8_whatever_came_in(void) {
    WRITE(json_text(json, "Größe €😀"));
    CHECK_TEXT(written, "\"Größe €😀\"");
    WRITE(json_text(json, "a\xff"
                          "b\xc3"));
    CHECK_TEXT(written, "\"a\xEF\xBF\xBD"
                        "b\xEF\xBF\xBD\"");
    WRITE(json_text(json, "\xed\xa0\x80")); // a surrogate
    CHECK_TEXT(written, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

static void write_nested(JsonWriter *json) {
    json_begin_object(json);
    json_key(json, "a");
    json_begin_array(json);
    json_integer(json, INT64_MIN);
    json_boolean(json, true);
    json_begin_object(json);
    json_end_object(json);
    json_null(json);
    json_end_array(json);
    json_key(json, "b");
    json_boolean(json, false);
    json_end_object(json);
}

static void commas_stand_between_values_only(void) {
    WRITE(write_nested(json));
    CHECK_TEXT(written, "{\"a\":[-9223372036854775808,true,{},null],\"b\":false}");
}

static void write_fields(JsonWriter *json) {
    json_begin_object(json);
    json_put_text(json, "text", NULL);
    json_put_integer(json, "integer", -1);
    json_put_boolean(json, "boolean", true);
    json_put_number(json, "number", (double)NAN);
    json_put_reading(json, "reading", (double)NAN);
    json_put_known(json, "known", (double)NAN, true);
    json_put_known(json, "unknown", 1, false);
    json_end_object(json);
}

static void what_is_unknown_is_null_and_not_nan(void) {
    WRITE(write_fields(json));
    CHECK_TEXT(written, "{\"text\":null,\"integer\":-1,\"boolean\":true,\"number\":\"nan\","
                        "\"reading\":null,\"known\":\"nan\",\"unknown\":null}");
}

int main(void) {
    RUN_TEST(numbers_are_as_short_as_they_can_be);
    RUN_TEST(numbers_read_back_the_same);
    RUN_TEST(what_is_no_number_is_a_string);
    RUN_TEST(text_is_escaped);
    RUN_TEST(what_cannot_be_seen_is_escaped);
    RUN_TEST(text_is_utf8_whatever_came_in);
    RUN_TEST(commas_stand_between_values_only);
    RUN_TEST(what_is_unknown_is_null_and_not_nan);
    return test_end();
}
