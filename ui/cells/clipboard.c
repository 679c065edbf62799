// The clipboard, by OSC 52: the terminal takes text in base 64.
#include <stdio.h>
#include <string.h>

#include "ui/cells/terminal.h"

void terminal_copy(const char *text) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    enum { MOST = 64 * 1024 };
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = strlen(text) < MOST ? strlen(text) : MOST;
    fputs("\x1b]52;c;", stdout);
    for (size_t i = 0; i < length; i += 3) {
        unsigned group = (unsigned)bytes[i] << 16;
        group |= i + 1 < length ? (unsigned)bytes[i + 1] << 8 : 0;
        group |= i + 2 < length ? bytes[i + 2] : 0;
        putchar(digits[group >> 18 & 63]);
        putchar(digits[group >> 12 & 63]);
        putchar(i + 1 < length ? digits[group >> 6 & 63] : '=');
        putchar(i + 2 < length ? digits[group & 63] : '=');
    }
    fputs("\x1b\\", stdout);
    fflush(stdout);
}
