// What of a Lua text is code.
#include "base/lua_code.h"
#include "tests/test.h"

static void comments_and_blanks_are_one_space(void) {
    static const struct {
        const char *text, *code;
    } rows[] = {
        {"", ""},
        {"-- all of it", ""},
        {"-- first\n\n\tlocal x = 1 -- why\n\n  return x\n", "local x = 1 return x"},
        {"a--[[ long\n-- ]]b", "a b"},
        {"a --[==[ ]] ]=] ]==] b", "a b"},
        {"a --[= short\nb", "a b"},
        {"-- a line may end so\rx = 1 -- or so\r\ny", "x = 1 y"},
        {"a --[[ never ended", "a"},
        {"x = '-- no  comment'", "x = '-- no  comment'"},
        {"x = \"it\\\"s -- \\\\\" -- one", "x = \"it\\\"s -- \\\\\""},
        {"x = [[\n-- text\n\n]] -- one", "x = [[\n-- text\n\n]]"},
        {"x = [=[ ]] --[[ ]=] .. y", "x = [=[ ]] --[[ ]=] .. y"},
        {"t[ [[x  y]] ] = t[u[1]] -- [[", "t[ [[x  y]] ] = t[u[1]]"},
        {"x = 5 - -3", "x = 5 - -3"},
        {"x = 'never ended  \\", "x = 'never ended  \\"},
        {"x = [==[ never  ]=] ended", "x = [==[ never  ]=] ended"},
        {"x = 1 -", "x = 1 -"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char code[64], again[64];
        const size_t length = strlen(rows[i].text);
        size_t used = lua_code(rows[i].text, length, code);
        CHECK(used <= length);
        code[used] = 0;
        CHECK_TEXT(code, rows[i].code);
        CHECK_INT((int)lua_code(code, used, again), (int)used); // of code nothing is left out
    }
}

static void texts_that_differ_in_words_alone_have_one_hash(void) {
    static const char plain[] = "local x = 1\nreturn x",
                      told[] = "-- One.\nlocal x = 1\n\nreturn x\n";
    static const char other[] = "local x = 2\nreturn x", zero[] = "x\0-- y";
    char hex[4][HASH_HEX_SIZE];
    CHECK(lua_code_hash(plain, strlen(plain), hex[0]));
    CHECK(lua_code_hash(told, strlen(told), hex[1]));
    CHECK(lua_code_hash(other, strlen(other), hex[2]));
    CHECK(lua_code_hash(zero, sizeof zero - 1, hex[3]));
    CHECK_TEXT(hex[0], hex[1]);
    CHECK(strcmp(hex[0], hex[2]) != 0);
    char expected[HASH_HEX_SIZE];
    sha256_hex(expected, "x\0", 2); // a zero is no blank
    CHECK_TEXT(hex[3], expected);
}

// By a name that stands there alone; what is in texts and comments, or has the word as a field's,
// is none.
static void what_a_text_requires_is_found(void) {
    static const struct {
        const char *text, *names;
    } rows[] = {
        {"local mp = require \"mp\" local a = require('parts.a')", "mp parts.a "},
        {"require--[[ x ]]( [[ b ]] )", " b  "},
        {"return require [[c]].x .. require \"d\"", "c d "},
        {"-- require 'no'\nlocal s = \"require 'no'\" my_require 'no' require2 'no'", ""},
        {"loader.require 'no' loader:require 'no' require(name) require 'yes'", "yes "},
        {"require 'never ended", ""},
        {"require", ""},
        {"require '' require 'a\\'b' require \"e\"", "e "},
        {"f{require'g',require\"h\"}", "g h "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char found[512] = "", name[LUA_REQUIRED_SIZE];
        for (size_t at = 0; lua_code_required(rows[i].text, strlen(rows[i].text), &at, name);)
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s ", name);
        CHECK_TEXT(found, rows[i].names);
    }
}

int main(void) {
    RUN_TEST(comments_and_blanks_are_one_space);
    RUN_TEST(texts_that_differ_in_words_alone_have_one_hash);
    RUN_TEST(what_a_text_requires_is_found);
    return test_end();
}
