#include "ui/keys/settings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/nearest.h"
#include "base/out_file.h"

enum { MOST_CHOICES = 6, NAME_SIZE = 32, PATH_SIZE = 1024 };

typedef struct Setting {
    const char *name, *label, *about; // in the file; on the page
    size_t field;
    const char *choices[MOST_CHOICES]; // an int; none: a number
    const char *words[MOST_CHOICES];   // of the page; NULL: as they are
    bool is_whole;
    double least, most, step;
} Setting;

#define FIELD(member) offsetof(Settings, member)

static const Setting table[] = {
    {.name = "characters",
     .label = "characters",
     .about = "what panels are drawn with",
     .field = FIELD(characters),
     .choices = {"auto", "utf8", "ascii"},
     .words = {"as the terminal has", "UTF-8", "ASCII"}},
    {.name = "colors",
     .label = "colours",
     .about = "how many the screen uses",
     .field = FIELD(colors),
     .choices = {"auto", "true", "256", "16", "mono"},
     .words = {"as the terminal has", "16 million", "256", "16", "none"}},
    {.name = "theme",
     .label = "background",
     .about = "what colours are chosen for",
     .field = FIELD(theme),
     .choices = {"auto", "dark", "light"},
     .words = {"as the terminal has", "dark", "light"}},
    {.name = "mouse",
     .label = "mouse",
     .about = "clicks, wheel; off: to select text",
     .field = FIELD(mouse),
     .choices = {"false", "true"},
     .words = {"off", "on"}},
    {.name = "log_axis",
     .label = "axis of losses",
     .about = "logarithmic shows small losses, too",
     .field = FIELD(log_axis),
     .choices = {"false", "true"},
     .words = {"linear", "logarithmic"}},
    {.name = "frames",
     .label = "pictures",
     .about = "a second, at most",
     .field = FIELD(frames),
     .is_whole = true,
     .least = 1,
     .most = 60,
     .step = 1},
    {.name = "smoothing",
     .label = "smoothing",
     .about = "of curves, from 0 to 0.99",
     .field = FIELD(smoothing),
     .most = 0.99,
     .step = 0.1},
    {.name = "co2",
     .label = "CO2",
     .about = "grams a kWh where you are; 0: off",
     .field = FIELD(co2),
     .most = 2000,
     .step = 10},
};
enum { SETTINGS = sizeof table / sizeof *table };

static int *choice_of(const Settings *settings, const Setting *setting) {
    return (int *)((char *)(uintptr_t)settings + setting->field);
}

static double *number_of(const Settings *settings, const Setting *setting) {
    return (double *)((char *)(uintptr_t)settings + setting->field);
}

static double value_of(const Settings *settings, const Setting *setting) {
    return setting->is_whole ? *choice_of(settings, setting) : *number_of(settings, setting);
}

static void set_value(Settings *settings, const Setting *setting, double value) {
    value = fmin(fmax(value, setting->least), setting->most);
    if (setting->is_whole)
        *choice_of(settings, setting) = (int)lround(value);
    else
        *number_of(settings, setting) = value;
}

static int count_choices(const Setting *setting) {
    int count = 0;
    while (count < MOST_CHOICES && setting->choices[count])
        count++;
    return count;
}

void settings_init(Settings *settings) {
    *settings = (Settings){.mouse = 1, .log_axis = 1, .frames = 20, .smoothing = 0.6};
}

int settings_count(void) {
    return SETTINGS;
}

const char *settings_name(int i) {
    return table[i].name;
}

const char *settings_about(int i) {
    return table[i].about;
}

void settings_describe(const Settings *settings, int i, char *text, size_t size) {
    const Setting *setting = &table[i];
    if (setting->choices[0])
        snprintf(text, size, "%s", setting->choices[*choice_of(settings, setting)]);
    else
        snprintf(text, size, "%g", value_of(settings, setting));
}

const char *settings_label(int i) {
    return table[i].label;
}

void settings_word(const Settings *settings, int i, char *text, size_t size) {
    const Setting *setting = &table[i];
    if (setting->words[0])
        snprintf(text, size, "%s", setting->words[*choice_of(settings, setting)]);
    else
        settings_describe(settings, i, text, size);
}

void settings_turn(Settings *settings, int i, int by) {
    const Setting *setting = &table[i];
    int count = count_choices(setting);
    if (count > 0) {
        int *choice = choice_of(settings, setting);
        *choice = (*choice + by + count) % count;
    } else {
        // A sum of steps would miss 0 by the last bits.
        const double steps = round(value_of(settings, setting) / setting->step + by);
        set_value(settings, setting, steps * setting->step);
    }
}

// ---- by name ------------------------------------------------------------------------------------

int settings_find(const char *name) {
    for (int i = 0; i < SETTINGS; i++)
        if (strcmp(table[i].name, name) == 0)
            return i;
    return -1;
}

static bool unknown_name(const char *name, Error *error) {
    Nearest nearest;
    nearest_begin(&nearest, name);
    for (int i = 0; i < SETTINGS; i++)
        nearest_offer(&nearest, table[i].name);
    return error_fail(error, ERROR_USAGE, "%.40s: no such setting%s%s%s", name,
                      nearest.best ? " (did you mean " : "", nearest.best ? nearest.best : "",
                      nearest.best ? "?)" : "");
}

bool settings_set(Settings *settings, const char *name, const char *value, Error *error) {
    const int at = settings_find(name);
    if (at < 0)
        return unknown_name(name, error);
    const Setting *setting = &table[at];
    int count = count_choices(setting);
    char list[128] = "";
    for (int i = 0; i < count; i++) {
        if (strcmp(setting->choices[i], value) == 0) {
            *choice_of(settings, setting) = i;
            return true;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), " %s", setting->choices[i]);
    }
    if (count > 0)
        return error_fail(error, ERROR_USAGE, "%s: one of%s is wanted, not %.40s", name, list,
                          value);
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end || !(number >= setting->least && number <= setting->most))
        return error_fail(error, ERROR_USAGE, "%s: a number from %g to %g is wanted, not %.40s",
                          name, setting->least, setting->most, value);
    set_value(settings, setting, number);
    return true;
}

// ---- the file -----------------------------------------------------------------------------------

static char *trim(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    *end = 0;
    return text;
}

static void cut_comment(char *line) {
    bool quoted = false;
    for (char *at = line; *at; at++) {
        if (*at == '"')
            quoted = !quoted;
        if (!quoted && at[0] == '-' && at[1] == '-') {
            *at = 0;
            return;
        }
    }
}

static bool take_line(Settings *settings, Keymap *keymap, char *line, Error *error) {
    static const char key_prefix[] = "key.";
    cut_comment(line);
    line = trim(line);
    if (!*line)
        return true;
    char *equals = strchr(line, '=');
    if (!equals)
        return error_fail(error, ERROR_USAGE, "`name = value` is wanted, not %.40s", line);
    *equals = 0;
    char *name = trim(line), *value = trim(equals + 1);
    size_t length = strlen(value);
    if (length >= 2 && value[0] == '"' && value[length - 1] == '"') {
        value[length - 1] = 0;
        value++;
    }
    if (strncmp(name, key_prefix, sizeof key_prefix - 1) != 0)
        return settings_set(settings, name, value, error);
    if (!keymap_set(keymap, name + sizeof key_prefix - 1, value))
        return error_fail(error, ERROR_USAGE,
                          "%.40s = \"%.20s\": no such request or key; ? twice in the program lists "
                          "the keys",
                          name, value);
    return true;
}

// Of two requests with one key only the first in the table would be found by it.
static bool check_keys(const Keymap *keymap, Error *error) {
    Request given, other;
    char name[NAME_SIZE], key[16], other_name[NAME_SIZE];
    if (!keymap_clash(keymap, &given, &other))
        return true;
    keymap_name(keymap, given, name, sizeof name);
    keymap_name(keymap, other, other_name, sizeof other_name);
    key_describe(keymap->bindings[given].first, key, sizeof key);
    return error_fail(error, ERROR_USAGE,
                      "key.%s = \"%s\": on the same screen %s has that key; choose another", name,
                      key, other_name);
}

bool settings_read(Settings *settings, Keymap *keymap, const char *path, Error *error) {
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT ||
               error_fail(error, ERROR_FAILED, "%s: %s", path, error_cause(errno));
    char *line = NULL;
    size_t room = 0;
    int number = 0;
    bool done = true;
    while (done && getline(&line, &room, file) >= 0) {
        number++;
        done =
            take_line(settings, keymap, line, error) || error_prefix(error, "%s:%d", path, number);
    }
    free(line);
    fclose(file);
    return done && (check_keys(keymap, error) || error_prefix(error, "%s", path));
}

static bool make_folder(const char *path) {
    char folder[PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return true;
}

static void write_keys(FILE *file, const Keymap *keymap) {
    Keymap usual;
    keymap_init(&usual);
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++) {
        if (keymap->bindings[i].first == usual.bindings[i].first)
            continue;
        char name[NAME_SIZE], key[16];
        keymap_name(keymap, (Request)i, name, sizeof name);
        key_describe(keymap->bindings[i].first, key, sizeof key);
        fprintf(file, "key.%s = \"%s\"\n", name, key);
    }
}

bool settings_write(const Settings *settings, const Keymap *keymap, const char *path,
                    Error *error) {
    char value[64];
    OutFile out;
    if (!make_folder(path))
        return error_fail(error, ERROR_FAILED, "%s: %s", path, error_cause(errno));
    if (!out_file_open(&out, path, false, error))
        return false;
    FILE *file = out.stream;
    fputs("-- What the screen of mpbench was set to (O in the program).\n", file);
    for (int i = 0; i < SETTINGS; i++) {
        settings_describe(settings, i, value, sizeof value);
        bool is_bare = !table[i].choices[0] || strcmp(table[i].choices[0], "false") == 0;
        fprintf(file, is_bare ? "%s = %s -- %s\n" : "%s = \"%s\" -- %s\n", table[i].name, value,
                table[i].about);
    }
    write_keys(file, keymap);
    return out_file_close(&out, true, error);
}
