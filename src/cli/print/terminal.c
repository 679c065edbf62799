#include "cli/print/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

Terminal terminal_of(FILE *stream, ColorChoice choice) {
    Terminal terminal = {.stream = stream, .is_terminal = isatty(fileno(stream)) == 1};
    const char *refused = getenv("NO_COLOR"), *kind = getenv("TERM");
    bool is_wanted = terminal.is_terminal && !(refused && refused[0]) && kind && kind[0] &&
                     strcmp(kind, "dumb") != 0;
    terminal.has_color = choice == COLOR_ALWAYS || (choice == COLOR_AUTO && is_wanted);
    return terminal;
}

int terminal_width(const Terminal *terminal) {
    struct winsize size;
    if (!terminal->is_terminal || ioctl(fileno(terminal->stream), TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

const char *terminal_style(const Terminal *terminal, Style style) {
    static const char *const escapes[STYLE_COUNT] = {
        [STYLE_NONE] = "\x1b[0m",
        [STYLE_STRONG] = "\x1b[1m",
        [STYLE_DIM] = "\x1b[2m",
        [STYLE_BAD] = "\x1b[31m",
    };
    return terminal->has_color ? escapes[style] : "";
}

const char *terminal_format_color(const Terminal *terminal, Format format) {
    // Blue, green, orange, rose: told apart by the colour-blind too. Neither light nor dark: a
    // command does not ask what background it writes on.
    static const char *const escapes[FORMAT_COUNT] = {
        [FORMAT_FP32] = "\x1b[38;5;63m",  [FORMAT_BF16] = "\x1b[38;5;29m",
        [FORMAT_FP16] = "\x1b[38;5;130m", [FORMAT_E4M3] = "\x1b[38;5;162m",
        [FORMAT_E5M2] = "\x1b[38;5;162m", [FORMAT_E3M2] = "\x1b[38;5;162m",
        [FORMAT_E2M3] = "\x1b[38;5;162m", [FORMAT_E2M1] = "\x1b[38;5;162m",
#define FORMAT(...)
#define TRAINED(...)
#define UNTRAINED(...)
#define SCALED(id, ...) [FORMAT_##id] = "\x1b[38;5;162m",
#include "number/formats.def"
    };
    return terminal->has_color && escapes[format] ? escapes[format] : "";
}
