// Tables of numbers and classes as text.
#include "data/csv.h"

#include "tests/data_files.h"
#include "tests/unit/data_fixture.h"

static const CsvOptions usual = {.class_column = -1};

static Dataset *parsed(const char *text, const CsvOptions *options) {
    static char bytes[4096];
    strcpy(bytes, text);
    error.text[0] = 0;
    return csv_parse(bytes, strlen(text), "table", options, &error);
}

static void check_refused(const char *text, const CsvOptions *options, const char *needle) {
    Dataset *dataset = parsed(text, options);
    CHECK(dataset == NULL);
    CHECK_MESSAGE(strstr(error.text, needle), "\"%s\" lacks \"%s\"", error.text, needle);
    dataset_release(dataset);
}

static void check_table(const char *text, const CsvOptions *options, int count, int columns,
                        const float *x, const int32_t *y) {
    Dataset *dataset = parsed(text, options);
    CHECK_MESSAGE(dataset != NULL, "%s", error.text);
    if (!dataset)
        return;
    CHECK_INT(dataset->count, count);
    CHECK_INT(dataset->x.size, columns);
    for (int i = 0; i < count * columns; i++)
        CHECK(((const float *)dataset->x.data)[i] == x[i]);
    for (int i = 0; i < count; i++)
        CHECK_INT(((const int32_t *)dataset->y.data)[i], y[i]);
    dataset_release(dataset);
}

static void numbers_and_classes_are_read(void) {
    static const float x[] = {1, -2.5f, 1e3f, 4};
    static const int32_t y[] = {1, 0};
    check_table("1,-2.5,1\n1e3,4,0\n", &usual, 2, 2, x, y);
    check_table("a,b,kind\r\n1, -2.5 ,1\r\n\r\n1e3,4,0", &usual, 2, 2, x, y);
    check_table("\xEF\xBB\xBFkind,a,b\n1,1,-2.5\n0,1e3,4\n", &(CsvOptions){.class_name = "kind"}, 2,
                2, x, y);
    // A column's number as a text, where none has it as its name; the first line is none of names.
    check_table("1,1,-2.5\n0,1000,4\n", &(CsvOptions){.class_name = "-3"}, 2, 2, x, y);
    check_table("1;1;-2.5\n0;1000;4\n", &(CsvOptions){.separator = ';', .class_column = 1}, 2, 2, x,
                y);
    check_table("1\t-2.5\t1\n1e3\t4\t0\n", &(CsvOptions){.separator = '\t', .class_column = 3}, 2,
                2, x, y);
    check_table("\"1\",\"-2.5\",1\n1e3,4,\"0\"\n", &usual, 2, 2, x, y);
}

static void classes_with_names_are_numbered_in_their_order(void) {
    static const float x[] = {1, 2, 3};
    static const int32_t y[] = {1, 0, 1};
    check_table("1,rose\n2,\"an \"\"iris\"\", blue\"\n3,rose\n", &usual, 3, 1, x, y);
    Dataset *dataset = parsed("1,rose\n2,\"an \"\"iris\"\", blue\"\n3,rose\n", &usual);
    CHECK(dataset && dataset->classes == 2);
    if (dataset)
        CHECK(strcmp(dataset->names[0], "an \"iris\", blue") == 0 &&
              strcmp(dataset->names[1], "rose") == 0);
    dataset_release(dataset);
    dataset = parsed("1,0\n2,7\n", &usual);
    CHECK(dataset && dataset->classes == 8 && !dataset->names);
    dataset_release(dataset);
}

// Files that name the same classes number them alike, whichever of them each has.
static void classes_that_are_given_are_numbered_as_they_stand(void) {
    static const char *const names[] = {"red", "green", "blue"}, *const digits[] = {"2", "10"};
    static const float x[] = {1, 2, 3};
    static const int32_t y[] = {1, 0, 1}, numbers[] = {3, 0, 3};
    const CsvOptions given = {.class_column = -1, .classes = names, .class_count = 3};
    check_table("1,green\n2,red\n3,green\n", &given, 3, 1, x, y);
    Dataset *dataset = parsed("1,green\n", &given);
    CHECK(dataset && dataset->classes == 3 && strcmp(dataset->names[2], "blue") == 0);
    dataset_release(dataset);
    check_refused("a,kind\n1,red\n2,grey\n", &given,
                  "line 3, column 2 (kind): \"grey\" is none of the `classes`; correct it");
    check_table("1,10\n2,2\n3,10\n",
                &(CsvOptions){.class_column = -1, .classes = digits, .class_count = 2}, 3, 1, x, y);
    static const char *const twice[] = {"red", "red"};
    check_refused("1,red\n", &(CsvOptions){.class_column = -1, .classes = twice, .class_count = 2},
                  "\"red\" is there twice");

    const CsvOptions counted = {.class_column = -1, .class_count = 5};
    check_table("1,3\n2,0\n3,3\n", &counted, 3, 1, x, numbers);
    dataset = parsed("1,3\n", &counted);
    CHECK(dataset && dataset->classes == 5 && !dataset->names);
    dataset_release(dataset);
    check_refused("1,4\n2,5\n", &counted, "line 2, column 2: \"5\" is no whole number below");
    check_refused("1,4\n2,red\n", &counted, "\"red\" is no whole number below");
}

// One that strays among numbers would number all of them anew, in the order of their bytes.
static void numbers_and_names_are_not_mixed(void) {
    check_refused("1,10\n2,2\n\n3,nan\n4,11\n", &usual,
                  "line 4, column 2: \"nan\" is no whole number from 0 as other classes are");
    check_refused("1,10\n2,2\n3,2.5\n", &usual, "line 3, column 2: \"2.5\" is no whole");
    check_refused("1,red\n2,7\n3,blue\n", &usual,
                  "line 2, column 2: \"7\" is a number, and other classes are names");
}

static void what_is_wrong_is_named_by_line_and_column(void) {
    check_refused("a,b,kind\n1,2,0\n1,x2,0\n", &usual, "line 3, column 2 (b): \"x2\" is no number");
    check_refused("1,2,0\n\n1,,0\n", &usual, "line 3, column 2: \"\" is no number");
    check_refused("1,2,0\n1,0x2,0\n", &usual, "line 2, column 2: \"0x2\" is no number");
    check_refused("1,2,0\n1,inf,0\n", &usual, "line 2, column 2: \"inf\" is no finite number");
    check_refused("1,2,0\n1,1e40,0\n", &usual, "no finite number of fp32");
    check_refused("1,2,0\n1,2\n", &usual, "line 2: has 2 columns, those before have 3");
    check_refused("1,2,0\n1,2,\n", &usual, "line 2, column 3: \"\" is no class");
    check_refused("1\n2\n", &usual, "line 1: has one column");
    check_refused("1,\"2,0\n", &usual, "line 1: a quote is opened");
    check_refused("1,\"2\"x,0\n", &usual, "line 1: text behind a closing quote");
    check_refused("", &usual, "no line of numbers");
    check_refused("a,b,c\n", &usual, "no line of numbers");
    check_refused(
        "a,b\n1,0\n", &(CsvOptions){.class_name = "kind"},
        "no column named kind; its first line has a, b: name one of them, or give its number");
    check_refused(
        "width,height,kind\n1,0,0\n", &(CsvOptions){.class_name = "kin"},
        "no column named kin; did you mean kind? Its first line has width, height, kind:");
    check_refused("a1,a2,a3,a4,a5,a6,a7,a8,a9,a10\n1,0,0,0,0,0,0,0,0,0\n",
                  &(CsvOptions){.class_name = "species"}, "a7, a8 and 2 more: name one of them");
    check_refused("1,0\n", &(CsvOptions){.class_column = 3}, "class is column 3 of 2");
    check_refused("a,b\n1,0\n", &(CsvOptions){.class_column = -1, .header = CSV_HEADER_NONE},
                  "line 1, column 1: \"a\" is no number");
}

int main(void) {
    RUN_TEST(numbers_and_classes_are_read);
    RUN_TEST(classes_with_names_are_numbered_in_their_order);
    RUN_TEST(classes_that_are_given_are_numbered_as_they_stand);
    RUN_TEST(numbers_and_names_are_not_mixed);
    RUN_TEST(what_is_wrong_is_named_by_line_and_column);
    return test_end();
}
