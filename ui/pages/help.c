// The page of all keys, from the table of them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_stream.h"
#include "ui/screen.h"

static void describe_keys(const KeyBinding *binding, char *text, size_t size) {
    char first[16], second[16];
    key_describe(binding->first, first, sizeof first);
    key_describe(binding->second, second, sizeof second);
    snprintf(text, size, "%s%s%s", first, binding->second ? " " : "",
             binding->second ? second : "");
}

static void print_keys(FILE *out, const Ui *ui, const char *title, int on, bool common) {
    const Keymap *keymap = &ui->keymap;
    fprintf(out, "%s\n", title);
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++) {
        const KeyBinding *binding = &keymap->bindings[i];
        if (!(binding->where & on) || (binding->where == ON_ALL) != common)
            continue;
        char keys[40];
        describe_keys(binding, keys, sizeof keys);
        fprintf(out, "  %-17s  %s\n", keys, binding->text);
    }
}

void help_show(Ui *ui) {
    TextStream text;
    if (!text_stream_open(&text))
        return;
    FILE *out = text.stream;
    print_keys(out, ui, "Here", ui_screen(ui)->on, false);
    fputs("\n", out);
    print_keys(out, ui, "Everywhere", ON_ALL, true);
    fputs("\nColours: fp32 blue, bf16 green, fp16 orange, fp8 rose; red is what is wrong.\n"
          "A dash is a value that is not known. Runs go on when the screen is closed.\n",
          out);
    if (text_stream_close(&text))
        pager_show(ui, "keys", text.text);
}
