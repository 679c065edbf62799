// No text from outside reaches the terminal as it is: names, notes, errors, paths and scripts that
// hold escapes, on every screen and in every form.
#include <sys/stat.h>

#include "tests/screen/history.h"
#include "tests/screen/place.h"

enum { SCREENS = 2 };

static const int sizes[SCREENS][2] = {{80, 24}, {160, 50}};
static Shown screens[SCREENS];

// Through all that shows such text, and what must be there then: a walk that went astray would
// prove nothing. A word is a key with a name, or what is typed.
static const struct {
    const char *words, *mark;
} walks[] = {
    {"? ? esc e esc space down space t esc n esc d n / evil esc Y", "enter trains"},
    {"c ? esc x b b tab z z tab z z Y", "outcomes"},
    {"1 enter ? esc v v v x left x tab z z tab z down z tab z z tab z z tab z z tab z z",
     "true values"},
    {"space s p S n e esc [ [ { Y : set space layer. tab tab esc : open space evil enter",
     "true values"},
    {"O esc 1 esc tab down down e esc enter", "enter trains"},
};

static const struct {
    const char *name, *keys;
} named_keys[] = {{"esc", "\x1b"}, {"space", " "},     {"tab", "\t"},
                  {"enter", "\r"}, {"down", KEY_DOWN}, {"left", KEY_LEFT}};

static const char *keys_of(const char *word) {
    for (size_t i = 0; i < sizeof named_keys / sizeof *named_keys; i++)
        if (strcmp(word, named_keys[i].name) == 0)
            return named_keys[i].keys;
    return word;
}

static void make_hostile_place(void) {
    Error error;
    const char *evil = path_of("evil\x1b[5mfolder");
    mkdir(evil, 0700);
    CHECK_MESSAGE(history_make_hostile(history_path, &error), "%s", error.text);
    char script[600];
    snprintf(script, sizeof script, "%s/evil\x1b[5mname.lua", evil);
    write_text(script, "return mp.experiment{name='evil\\27[5m', about='evil\\27]0;T\\7about',"
                       " params={['evil\\27[5m']='evil\\27[6n'}, train=function() end}\n");
    snprintf(script, sizeof script, "%s/evil\x1b]0;T\x07.lua", evil);
    write_text(script, "error('evil\\27[5m\x1b[6n')\n");
}

// From a copy of the program that is gone then: what the keys start ends at once.
static void open_all(void) {
    static const char *const nothing[] = {NULL};
    char folders[600], config[600], program[128], command[600];
    const char *real = getenv("MPBENCH");
    snprintf(folders, sizeof folders, "MPBENCH_EXPERIMENTS=%s", path_of("evil\x1b[5mfolder"));
    snprintf(config, sizeof config, "XDG_CONFIG_HOME=%s", path_of("evil\x1b[5mfolder"));
    const char *environment[] = {"MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, folders, config, database,
                                 NULL};
    snprintf(program, sizeof program, "%s/mpbench", folder);
    snprintf(command, sizeof command, "cp '%s' '%s'", real, program);
    CHECK(system(command) == 0);
    setenv("MPBENCH", program, 1);
    for (int i = 0; i < SCREENS; i++) {
        shown_start(&screens[i], sizes[i][0], sizes[i][1], environment, nothing);
        CHECK_MESSAGE(shown_wait(&screens[i], "evil", true, 20) >= 0, "%s",
                      shown_text(&screens[i]));
    }
    unlink(program);
    setenv("MPBENCH", real, 1);
}

static bool contains(const Shown *screen, const char *attack) {
    size_t length = strlen(attack);
    for (size_t i = 0; i + length <= screen->raw_size; i++)
        if (memcmp(screen->raw + i, attack, length) == 0)
            return true;
    return false;
}

static void check(const Shown *screen) {
    CHECK_MESSAGE(!screen->ended, "it ended: %x\n%s", (unsigned)screen->status, shown_text(screen));
    for (int i = 0; history_attacks[i]; i++)
        CHECK_MESSAGE(!contains(screen, history_attacks[i]), "attack %d got through", i);
    CHECK(screen->raw_size < SHOWN_RAW_SIZE); // all of it was looked at
}

// How many of the screens show an escape as text.
static int take_walk(const char *words, const char *mark) {
    Shown *const list[SCREENS] = {&screens[0], &screens[1]};
    char copy[256];
    int told = 0;
    snprintf(copy, sizeof copy, "%s", words);
    for (const char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        for (int i = 0; i < SCREENS; i++)
            shown_type(list[i], keys_of(word));
        shown_settle_all(list, SCREENS, 0.05); // more keys too soon would belong to an escape
    }
    for (int i = 0; i < SCREENS; i++) {
        CHECK_MESSAGE(strstr(shown_text(list[i]), mark), "\"%s\" is not there after \"%s\":\n%s",
                      mark, words, shown_text(list[i]));
        told += strstr(shown_text(list[i]), "evil\\x1b") != NULL;
    }
    return told;
}

static void no_text_from_outside_reaches_the_terminal(void) {
    int told = 0, count = sizeof walks / sizeof *walks;
    make_hostile_place();
    open_all();
    for (int i = 0; i < count; i++)
        told += take_walk(walks[i].words, walks[i].mark);
    CHECK_INT(told, SCREENS * count);
    for (int i = 0; i < SCREENS; i++) {
        check(&screens[i]);
        shown_free(&screens[i]);
    }
}

int main(void) {
    if (!make_place())
        return 1;
    RUN_TEST(no_text_from_outside_reaches_the_terminal);
    return end_tests();
}
