// The colours of commands, which write on a background that they do not know.
#include "../test.h"
#include "cli/print/terminal.h"
#include "contrast.h"

static void colours_of_formats_are_read_on_black_and_on_white(void) {
    Terminal terminal = {.stream = stdout, .has_color = true};
    int found = 0, index;
    for (int format = 0; format < FORMAT_COUNT; format++) {
        const char *escape = terminal_format_color(&terminal, (Format)format);
        if (sscanf(escape, "\x1b[38;5;%dm", &index) != 1)
            continue;
        double on_black = contrast(rgb_of_index(index), 0);
        double on_white = contrast(rgb_of_index(index), 0xFFFFFF);
        CHECK_MESSAGE(fmin(on_black, on_white) >= 4.2, "%s: %.2f on black, %.2f on white",
                      format_name((Format)format), on_black, on_white);
        found++;
    }
    CHECK(found >= 3);
}

static void formats_that_train_have_colours_of_their_own(void) {
    Terminal terminal = {.stream = stdout, .has_color = true}, plain = {.stream = stdout};
    Format formats[FORMAT_COUNT];
    int count = format_pick(formats, format_trains);
    for (int i = 0; i < count; i++) {
        CHECK_TEXT(terminal_format_color(&plain, formats[i]), "");
        for (int j = 0; j < i; j++)
            CHECK(strcmp(terminal_format_color(&terminal, formats[i]),
                         terminal_format_color(&terminal, formats[j])) != 0);
    }
}

int main(void) {
    RUN_TEST(colours_of_formats_are_read_on_black_and_on_white);
    RUN_TEST(formats_that_train_have_colours_of_their_own);
    return test_end();
}
