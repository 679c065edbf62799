// Keys, what they ask for, and what the user set.
#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/test.h"
#include "ui/keys/keys.h"
#include "ui/keys/settings.h"

static void no_key_means_two_things_on_a_screen(void) {
    Keymap keymap;
    keymap_init(&keymap);
    for (int screen = ON_HOME; screen <= ON_SCAN; screen <<= 1)
        for (int i = 1; i < REQUESTS; i++)
            for (int j = 1; j < i; j++) {
                const KeyBinding *a = &keymap.bindings[i], *b = &keymap.bindings[j];
                if (!(a->where & screen) || !(b->where & screen))
                    continue;
                CHECK_MESSAGE(a->first != b->first && a->first != b->second &&
                                  (!a->second || (a->second != b->first && a->second != b->second)),
                              "%s and %s share a key", a->name, b->name);
            }
}

static void every_request_is_found_by_its_key_and_explained(void) {
    Keymap keymap;
    keymap_init(&keymap);
    for (int i = 1; i < REQUESTS; i++) {
        const KeyBinding *binding = &keymap.bindings[i];
        for (int screen = ON_HOME; screen <= ON_SCAN; screen <<= 1)
            if (binding->where & screen)
                CHECK_INT(keymap_find(&keymap, binding->first, screen), i);
        CHECK_MESSAGE(strlen(binding->text) > 10, "%s has no text", binding->name);
    }
    CHECK_INT(keymap_find(&keymap, KEY_CODE_NONE, ON_ALL), REQUEST_NONE);
}

static void keys_are_written_and_read_back(void) {
    Keymap keymap;
    keymap_init(&keymap);
    for (int i = 1; i < REQUESTS; i++) {
        char text[16];
        int key = keymap.bindings[i].first;
        key_describe(key, text, sizeof text);
        CHECK_MESSAGE(key_parse(text) == key, "%s reads as %d", text, key_parse(text));
    }
    CHECK_INT(key_parse("nonsense"), KEY_CODE_NONE);
    CHECK_INT(key_parse(""), KEY_CODE_NONE);
    CHECK_INT(key_parse("ä"), 0xE4);
}

static char folder[TEST_FOLDER_SIZE];

static const char *empty_file(void) {
    static char path[TEST_FOLDER_SIZE + 10];
    snprintf(path, sizeof path, "%s/settings", folder);
    FILE *file = fopen(path, "w");
    CHECK(file && fclose(file) == 0);
    return path;
}

static void settings_come_back_from_their_file(void) {
    const char *path = empty_file();
    Settings settings, again;
    Keymap keymap, keys_again;
    Error error = {0};
    settings_init(&settings);
    keymap_init(&keymap);
    for (int i = 0; i < settings_count(); i++)
        settings_turn(&settings, i, 1);
    CHECK(keymap_set(&keymap, "scrub_back", ";"));
    CHECK_MESSAGE(settings_write(&settings, &keymap, path, &error), "%s", error.text);
    settings_init(&again);
    keymap_init(&keys_again);
    CHECK_MESSAGE(settings_read(&again, &keys_again, path, &error), "%s", error.text);
    for (int i = 0; i < settings_count(); i++) {
        char a[64], b[64];
        settings_describe(&settings, i, a, sizeof a);
        settings_describe(&again, i, b, sizeof b);
        CHECK_TEXT(b, a);
    }
    CHECK_INT(keymap_find(&keys_again, ';', ON_LIVE), REQUEST_SCRUB_BACK);
    unlink(path);
}

static void settings_are_written_through_a_link_and_never_over_what_is_read_only(void) {
    const char *path = empty_file();
    char link[TEST_FOLDER_SIZE + 16];
    struct stat status;
    snprintf(link, sizeof link, "%s.link", path);
    CHECK(symlink(path, link) == 0);
    Settings settings;
    Keymap keymap;
    Error error = {0};
    settings_init(&settings);
    keymap_init(&keymap);
    CHECK_MESSAGE(settings_write(&settings, &keymap, link, &error), "%s", error.text);
    CHECK(lstat(link, &status) == 0 && S_ISLNK(status.st_mode));
    CHECK(stat(path, &status) == 0 && status.st_size > 0);
    CHECK(chmod(path, 0400) == 0);
    CHECK(!settings_write(&settings, &keymap, link, &error)); // for root too
    CHECK_CONTAINS(error.text, "may not be written");
    unlink(link);
    unlink(path);
}

static void what_a_file_says_wrongly_is_named(void) {
    static const struct {
        const char *line, *part;
    } cases[] = {
        {"smothing = 0.5", "did you mean smoothing"},
        {"colors = \"pink\"", "auto true 256"},
        {"frames = 1000", "from 1 to 60"},
        {"frames", "name = value"},
        {"key.fly = \"x\"", "no such request"},
        {"smoothing = nan", "from 0 to"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = empty_file();
        FILE *file = fopen(path, "w");
        fprintf(file, "-- a comment\nmouse = true -- another\n%s\n", cases[i].line);
        fclose(file);
        Settings settings;
        Keymap keymap;
        Error error = {0};
        settings_init(&settings);
        keymap_init(&keymap);
        CHECK(!settings_read(&settings, &keymap, path, &error));
        CHECK_CONTAINS(error.text, cases[i].part);
        CHECK_CONTAINS(error.text, ":3: ");
        unlink(path);
    }
}

static bool read_text(const char *text, Keymap *keymap, Error *error) {
    const char *path = empty_file();
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    Settings settings;
    settings_init(&settings);
    keymap_init(keymap);
    const bool done = settings_read(&settings, keymap, path, error);
    unlink(path);
    return done;
}

static void a_key_is_given_to_one_request_of_a_screen(void) {
    Keymap keymap;
    Error error = {0};
    CHECK(!read_text("key.pause = \"q\"\n", &keymap, &error));
    CHECK_CONTAINS(error.text, "key.pause = \"q\": on the same screen quit has that key; choose");
    CHECK(!read_text("key.undo = \"k\"\n", &keymap, &error)); // a second key
    CHECK_CONTAINS(error.text, "up has that key");
    CHECK(read_text("key.block = \"d\"\n", &keymap, &error)); // others have it elsewhere
    CHECK_INT(keymap_find(&keymap, 'd', ON_FORMATS), REQUEST_BLOCK);
    CHECK(read_text("key.pause = \"u\"\nkey.undo = \"p\"\n", &keymap, &error)); // exchanged
    CHECK_INT(keymap_find(&keymap, 'u', ON_LIVE), REQUEST_PAUSE);
}

static void lines_are_as_long_as_they_are(void) {
    Keymap keymap;
    Error error = {0};
    char text[1200] = "-- ";
    for (int i = 0; i < 100; i++)
        strcat(text, "= a long ");
    strcat(text, "\nkey.pause = \";\"\n");
    CHECK_MESSAGE(read_text(text, &keymap, &error), "%s", error.text);
    CHECK_INT(keymap_find(&keymap, ';', ON_LIVE), REQUEST_PAUSE);
}

static void turning_comes_to_zero(void) {
    Settings settings;
    char text[64];
    const int at = settings_find("smoothing");
    settings_init(&settings);
    for (int i = 0; i < 6; i++)
        settings_turn(&settings, at, -1);
    settings_describe(&settings, at, text, sizeof text);
    CHECK_TEXT(text, "0");
    settings.smoothing = 0.99;
    settings_turn(&settings, at, -1);
    settings_describe(&settings, at, text, sizeof text);
    CHECK_TEXT(text, "0.9");
}

static void a_missing_file_leaves_what_is_usual(void) {
    Settings settings;
    Keymap keymap;
    Error error;
    settings_init(&settings);
    keymap_init(&keymap);
    CHECK(settings_read(&settings, &keymap, "/nonexistent/mpbench", &error));
    CHECK_INT(settings.frames, 20);
}

int main(void) {
    if (!test_folder_make(folder, sizeof folder))
        return 1;
    RUN_TEST(no_key_means_two_things_on_a_screen);
    RUN_TEST(every_request_is_found_by_its_key_and_explained);
    RUN_TEST(keys_are_written_and_read_back);
    RUN_TEST(settings_come_back_from_their_file);
    RUN_TEST(settings_are_written_through_a_link_and_never_over_what_is_read_only);
    RUN_TEST(what_a_file_says_wrongly_is_named);
    RUN_TEST(a_key_is_given_to_one_request_of_a_screen);
    RUN_TEST(lines_are_as_long_as_they_are);
    RUN_TEST(turning_comes_to_zero);
    RUN_TEST(a_missing_file_leaves_what_is_usual);
    test_folder_remove(folder);
    return test_end();
}
