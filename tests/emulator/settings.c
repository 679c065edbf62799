#include "tests/emulator/settings.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

EmulatorSettings emulator_settings;
static uint64_t random_state;

typedef bool (*Reader)(const char *text, const char *names, void *value);

static bool read_choice(const char *text, const char *names, void *value) {
    size_t length = strlen(text);
    for (unsigned choice = 0; names; choice++) {
        if (strncmp(names, text, length) == 0 && (names[length] == ' ' || !names[length])) {
            memcpy(value, &choice, sizeof choice);
            return length > 0;
        }
        names = strchr(names, ' ');
        names += names != NULL;
    }
    return false;
}

static bool read_number(const char *text, const char *names, void *value) {
    (void)names;
    static const char units[] = "KMG";
    char *end;
    uint64_t number = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        number <<= 10 * (unit - units + 1);
        end++;
    }
    memcpy(value, &number, sizeof number);
    return end != text && !*end;
}

static bool read_fault(const char *text, const char *names, void *value) {
    (void)names;
    EmulatorFault fault = {0};
    const char *slash = strchr(text, '/');
    if (slash) {
        if ((size_t)(slash - text) >= sizeof fault.function)
            return false;
        memcpy(fault.function, text, (size_t)(slash - text));
        text = slash + 1;
    }
    char rest;
    unsigned long long when;
    if (sscanf(text, "%llu:%d%c", &when, &fault.code, &rest) != 2)
        return false;
    fault.when = when;
    memcpy(value, &fault, sizeof fault);
    return true;
}

static const struct {
    const char *name, *names;
    Reader read;
    void *value;
} table[] = {
#define EMULATOR_CHOICE(name, Type, first, names, text) \
    {#name, names, read_choice, &emulator_settings.name},
#define EMULATOR_NUMBER(name, default_, text) {#name, NULL, read_number, &emulator_settings.name},
#define EMULATOR_FAULT(name, text)            {#name, NULL, read_fault, &emulator_settings.name},
#include "tests/emulator/settings.def"
};

static void complain(const char *setting) {
    fprintf(stderr, "MPBENCH_EMULATOR: \"%s\" is none of:\n", setting);
#define EMULATOR_CHOICE(name, Type, first, names, text) \
    fprintf(stderr, "  %s=%s  %s\n", #name, names, text);
#define EMULATOR_NUMBER(name, default_, text) fprintf(stderr, "  %s=NUMBER  %s\n", #name, text);
#define EMULATOR_FAULT(name, text)            fprintf(stderr, "  %s=WHEN:CODE  %s\n", #name, text);
#include "tests/emulator/settings.def"
    abort();
}

static void read_setting(const char *text, size_t length) {
    char setting[120];
    snprintf(setting, sizeof setting, "%.*s", (int)length, text);
    const char *equals = strchr(setting, '=');
    for (size_t i = 0; equals && i < sizeof table / sizeof *table; i++)
        if (strlen(table[i].name) == (size_t)(equals - setting) &&
            strncmp(table[i].name, setting, (size_t)(equals - setting)) == 0 &&
            table[i].read(equals + 1, table[i].names, table[i].value))
            return;
    complain(setting);
}

void emulator_settings_read(const char *text) {
    emulator_settings = (EmulatorSettings){
#define EMULATOR_CHOICE(name, Type, first, names, text) .name = first,
#define EMULATOR_NUMBER(name, default_, text)           .name = default_,
#define EMULATOR_FAULT(name, text)
#include "tests/emulator/settings.def"
    };
    while (text && *text) {
        size_t length = strcspn(text, ",");
        if (length)
            read_setting(text, length);
        text += length + (text[length] == ',');
    }
    random_state = emulator_settings.seed;
}

unsigned emulator_random(unsigned limit) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((random_state >> 32) * limit >> 32);
}
