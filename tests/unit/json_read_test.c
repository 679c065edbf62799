// JSON is read as it was written, and what is none is refused.
#include "base/json_read.h"

#include "base/json.h"
#include "tests/test.h"

static void what_was_written_reads_back(void) {
    char text[512];
    FILE *stream = fmemopen(text, sizeof text, "w");
    JsonWriter writer = {.stream = stream};
    json_begin_object(&writer);
    json_put_text(&writer, "name", "a \"b\" \\ \n\t ä € 😀 \x1b");
    json_put_number(&writer, "number", -1.5e-7);
    json_put_boolean(&writer, "yes", true);
    json_put_null(&writer, "nothing");
    json_key(&writer, "list");
    json_begin_array(&writer);
    json_integer(&writer, 1);
    json_begin_array(&writer);
    json_end_array(&writer);
    json_text(&writer, "three");
    json_end_array(&writer);
    json_end_object(&writer);
    fputc(0, stream);
    fclose(stream);
    Error error = {0};
    JsonTree tree;
    CHECK_MESSAGE(json_read(text, &tree, &error), "%s", error.text);
    const JsonValue *root = tree.values;
    CHECK_INT(root->count, 5);
    CHECK_TEXT(json_member_text(&tree, root, "name"), "a \"b\" \\ \n\t ä € 😀 \x1b");
    CHECK(json_member_number(&tree, root, "number", 0) == -1.5e-7);
    CHECK(json_member_number(&tree, root, "yes", 0) == 1);
    CHECK(json_member_number(&tree, root, "nothing", 7) == 7);
    CHECK(json_member_number(&tree, root, "absent", 7) == 7);
    const JsonValue *list = json_member(&tree, root, "list");
    CHECK(list && list->count == 3);
    const JsonValue *first = json_first(&tree, list), *second = json_next(&tree, first);
    CHECK(first->number == 1 && second->kind == JSON_ARRAY && !json_first(&tree, second));
    CHECK_TEXT(json_next(&tree, second)->text, "three");
    CHECK(json_next(&tree, json_next(&tree, second)) == NULL);
    json_tree_clear(&tree);
}

static void what_is_none_is_refused(void) {
    static const char *const wrong[] = {"",      "{",    "[1,",          "[1 2]",   "{\"a\" 1}",
                                        "{a:1}", "\"a",  "\"\\u12\"",    "\"\\x\"", "nul",
                                        "1 2",   "[1]]", "\"\\ud800x\"", "+1",      "{\"a\":}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        JsonTree tree;
        Error error = {0};
        CHECK_MESSAGE(!json_read(wrong[i], &tree, &error), "%s", wrong[i]);
        CHECK_CONTAINS(error.text, "is wanted at byte");
        CHECK(tree.count == 0 && !tree.values);
    }
}

static void depth_has_an_end(void) {
    char text[4001];
    JsonTree tree;
    Error error;
    memset(text, '[', sizeof text - 1);
    text[sizeof text - 1] = 0;
    CHECK(!json_read(text, &tree, &error));
}

int main(void) {
    RUN_TEST(what_was_written_reads_back);
    RUN_TEST(what_is_none_is_refused);
    RUN_TEST(depth_has_an_end);
    return test_end();
}
