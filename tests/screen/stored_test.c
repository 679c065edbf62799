// Every screen on the recorded history, at three sizes, as it was stored: in UTF-8 and ASCII, in
// 256 colours and none. tests/screen/expected/SCREEN-SIZE.txt holds four blocks: the text in both
// kinds of characters, and the inks in both depths (shown_inks); each of the four combinations is
// compared with two of them. UPDATE=1 writes the files anew: read the difference before you commit
// it.
#include "tests/screen/shown.h"
#include "tests/test.h"

enum { BLOCKS = 4, FILE_MOST = 1 << 20 };

static const char *const block_names[BLOCKS] = {"utf8", "ascii", "256 colours", "no colours"};

static const struct Size { int columns, rows; } sizes[] = {{80, 24}, {120, 36}, {200, 60}};

static const struct Stored { // keys, then what must be there before the screen is looked at
    const char *name, *keys, *mark;
    bool is_small; // at the smallest size only
} screens[] = {
    {"home", "1  ", "by age", false},
    {"launch", "1\t\t" KEY_RIGHT KEY_DOWN KEY_RIGHT, "loss scale", true},
    {"live", "", "fashion-cnn-8", false},
    {"live-back", "{{{" KEY_DOWN KEY_DOWN "x", "fashion-cnn-8", false},
    {"compare", "1  c", "accuracy", false},
    {"formats", "4", "flushed", false},
    {"help", "??", "Here", true},
    {"settings", "O", "smoothing", true},
};
enum { SIZES = sizeof sizes / sizeof *sizes, STORED = sizeof screens / sizeof *screens };

static const char *update;

static void expected_path(char *path, size_t size, const struct Stored *stored, struct Size at) {
    snprintf(path, size, "tests/screen/expected/%s-%dx%d.txt", stored->name, at.columns, at.rows);
}

// What a screen shows, in the two of the four blocks that this combination is for.
static bool show(const struct Stored *stored, struct Size at, bool ascii, bool mono,
                 char *blocks[BLOCKS]) {
    const char *environment[] = {
        "MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, "XDG_CONFIG_HOME=/nonexistent",
        ascii ? "LC_ALL=C" : "LC_ALL=C.UTF-8", mono ? "NO_COLOR=1" : "NO_COLOR", NULL};
    const char *arguments[] = {"--demo", NULL};
    Shown shown;
    shown_start(&shown, at.columns, at.rows, environment, arguments);
    bool done = shown_wait(&shown, "fashion-cnn", true, 20) >= 0;
    shown_type(&shown, stored->keys);
    done = done && shown_wait(&shown, stored->mark, true, 20) >= 0;
    shown_settle(&shown);
    CHECK_MESSAGE(done, "%s at %dx%d: \"%s\" did not appear", stored->name, at.columns, at.rows,
                  stored->mark);
    blocks[ascii] = strdup(shown_text(&shown));
    blocks[2 + mono] = strdup(shown_inks(&shown));
    shown_type(&shown, "\x1b\x1bq");
    shown_free(&shown);
    return done;
}

static void write_file(const char *path, char *const blocks[BLOCKS]) {
    FILE *file = fopen(path, "w");
    if (!file) {
        CHECK_MESSAGE(false, "%s cannot be written", path);
        return;
    }
    for (int i = 0; i < BLOCKS; i++)
        fprintf(file, "==== %s\n%s", block_names[i], blocks[i]);
    fclose(file);
}

static bool read_file(const char *path, char *blocks[BLOCKS]) {
    static char text[FILE_MOST];
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    for (int i = 0; i < BLOCKS; i++) {
        char head[32];
        snprintf(head, sizeof head, "==== %s\n", block_names[i]);
        char *start = strstr(text, head);
        char *end = start ? strstr(start + 1, "\n==== ") : NULL;
        if (!start)
            return false;
        start += strlen(head);
        blocks[i] = strndup(start, end ? (size_t)(end + 1 - start) : strlen(start));
    }
    return true;
}

static void compare(const char *path, const char *name, const char *actual, const char *expected) {
    for (int line = 1; *actual || *expected; line++) {
        int a = (int)strcspn(actual, "\n"), b = (int)strcspn(expected, "\n");
        if (a != b || memcmp(actual, expected, (size_t)a) != 0) {
            CHECK_MESSAGE(false,
                          "%s, %s, line %d: \"%.*s\" where \"%.*s\" was stored; if that is meant: "
                          "UPDATE=1 and read the difference",
                          path, name, line, a, actual, b, expected);
            return;
        }
        actual += a + (actual[a] == '\n');
        expected += b + (expected[b] == '\n');
    }
}

static void compare_stored(const struct Stored *stored, struct Size at) {
    char path[128], *blocks[BLOCKS] = {NULL}, *expected[BLOCKS] = {NULL}, *again[BLOCKS] = {NULL};
    expected_path(path, sizeof path, stored, at);
    if (!show(stored, at, false, false, blocks) || !show(stored, at, true, true, blocks))
        goto done;
    if (update)
        write_file(path, blocks);
    if (!read_file(path, expected)) {
        CHECK_MESSAGE(false, "%s is not there; UPDATE=1 makes it", path);
        goto done;
    }
    for (int i = 0; i < BLOCKS; i++)
        compare(path, block_names[i], blocks[i], expected[i]);
    // The other two combinations show the same text: colours do not touch it.
    if (at.columns == sizes[0].columns && show(stored, at, false, true, again) &&
        show(stored, at, true, false, again))
        for (int i = 0; i < 2; i++)
            compare(path, block_names[i], again[i], expected[i]);
done:
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
        free(expected[i]);
        free(again[i]);
    }
}

static void every_screen_is_as_it_was_stored(void) {
    const char *only = getenv("SCREEN"); // one of them, while it is worked on
    for (int i = 0; i < STORED; i++)
        for (int size = 0; size < SIZES; size++)
            if ((size == 0 || !screens[i].is_small) &&
                (!only || strcmp(only, screens[i].name) == 0))
                compare_stored(&screens[i], sizes[size]);
}

int main(void) {
    update = getenv("UPDATE");
    RUN_TEST(every_screen_is_as_it_was_stored);
    return test_end();
}
