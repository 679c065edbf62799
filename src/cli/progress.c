#include "cli/progress.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitize.h"
#include "cli/text.h"

static const double live_interval = 0.1, line_interval = 5;

void progress_begin(ProgressView *progress, ColorChoice color, bool quiet) {
    *progress = (ProgressView){.terminal = terminal_of(stderr, color), .quiet = quiet};
    const char *kind = getenv("TERM");
    if (!kind || strcmp(kind, "dumb") == 0) // cannot go back to the start of a line reliably
        progress->terminal.is_terminal = false;
    progress->next_draw =
        clock_seconds() + (progress->terminal.is_terminal ? live_interval : line_interval);
}

static void clear_line(ProgressView *progress) {
    if (progress->has_line)
        fputs("\r\x1b[K", stderr);
    progress->has_line = false;
}

void progress_end(ProgressView *progress) {
    clear_line(progress);
    fflush(stderr);
}

// ---- the line -----------------------------------------------------------------------------------

typedef struct Segment {
    int rank; // what gives way first when the terminal is narrow has the highest
    char text[80];
} Segment;

enum { MOST_SEGMENTS = 9 };

typedef struct Line {
    Segment segments[MOST_SEGMENTS];
    int count;
} Line;

static char *add_segment(Line *line, int rank) {
    Segment *segment = &line->segments[line->count++];
    segment->rank = rank;
    segment->text[0] = 0;
    return segment->text;
}

static size_t line_length(const Line *line) {
    size_t length = 0;
    for (int i = 0; i < line->count; i++)
        length += strlen(line->segments[i].text) + (i > 0 ? 2 : 0);
    return length;
}

static void drop_last_rank(Line *line) {
    int last = 0;
    for (int i = 1; i < line->count; i++)
        if (line->segments[i].rank > line->segments[last].rank)
            last = i;
    line->count--;
    memmove(&line->segments[last], &line->segments[last + 1],
            (size_t)(line->count - last) * sizeof *line->segments);
}

static void write_bar(char *text, double share) {
    enum { CELLS = 16 };
    int full = (int)(share * CELLS);
    text[0] = '[';
    for (int i = 0; i < CELLS; i++)
        text[1 + i] = i < full ? '#' : '.';
    snprintf(text + 1 + CELLS, 16, "] %.0f %%", floor(100 * share));
}

static void compose(Line *line, const Run *run, bool live) {
    enum { SIZE = sizeof line->segments[0].text };
    char number[TEXT_SIZE], total[TEXT_SIZE];
    double rate = run_steps_per_second(run);
    const RunSeries *loss = run_series(run, "loss");
    if (!loss && run->series_count > 0)
        loss = &run->series[0];
    char *text = add_segment(line, 0);
    if (run->total_steps > 0)
        snprintf(text, SIZE, "step %s/%s", text_count(number, run->step),
                 text_count(total, run->total_steps));
    else
        snprintf(text, SIZE, "step %s", text_count(number, run->step));
    if (run->waits_for)
        snprintf(add_segment(line, 0), SIZE, "waits: %s", run->waits_for);
    if (run->epochs > 0)
        snprintf(add_segment(line, 6), SIZE, "epoch %lld/%lld", (long long)run->epoch,
                 (long long)run->epochs);
    if (run->total_steps > 0 && live)
        write_bar(add_segment(line, 7), fmin(1, (double)run->step / (double)run->total_steps));
    if (loss && loss->count > 0)
        snprintf(add_segment(line, 1), SIZE, "%.20s %s", loss->name,
                 text_number(number, loss->last, 4));
    if (rate > 0)
        snprintf(add_segment(line, 3), SIZE, rate < 100 ? "%.1f steps/s" : "%.0f steps/s", rate);
    if (run->scale_max != 1)
        snprintf(add_segment(line, 5), SIZE, "scale %g", run->scale_last);
    if (run->skipped > 0)
        snprintf(add_segment(line, 4), SIZE, "%s skipped", text_count(number, run->skipped));
    if (rate > 0 && run->total_steps > run->step)
        snprintf(add_segment(line, 2), SIZE, "%s left",
                 text_duration(number, (double)(run->total_steps - run->step) / rate));
}

// Whether a write would go through now: training waits for no terminal.
static bool takes_output(void) {
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT);
}

static void draw(ProgressView *progress, const Run *run) {
    if (!takes_output())
        return;
    bool live = progress->terminal.is_terminal;
    Line line = {.count = 0};
    compose(&line, run, live);
    if (live) {
        int width = terminal_width(&progress->terminal);
        size_t room = width > 1 ? (size_t)width - 1 : 79;
        while (line.count > 1 && line_length(&line) > room)
            drop_last_rank(&line);
        if (line_length(&line) > room)
            return;
        fputs("\r", stderr);
    }
    for (int i = 0; i < line.count; i++) {
        fputs(i > 0 ? "  " : "", stderr);
        cli_print_outside(stderr, line.segments[i].text); // a series has the script's name
    }
    fputs(live ? "\x1b[K" : "\n", stderr);
    fflush(stderr);
    progress->has_line = live;
}

// ---- told by the run ----------------------------------------------------------------------------

static void on_step(void *context, const Run *run) {
    ProgressView *progress = context;
    double now = clock_seconds();
    if (now < progress->next_draw)
        return;
    progress->next_draw = now + (progress->terminal.is_terminal ? live_interval : line_interval);
    draw(progress, run);
}

void progress_print(void *context, const char *text, size_t length) {
    ProgressView *progress = context;
    size_t size = sanitize_text(NULL, 0, text, length) + 1;
    char *clean = malloc(size);
    if (!clean)
        return; // a line less
    sanitize_text(clean, size, text, length);
    clear_line(progress);
    fputs(clean, stderr);
    if (size < 2 || clean[size - 2] != '\n')
        fputc('\n', stderr);
    fflush(stderr);
    free(clean);
}

static void on_event(void *context, const Run *run, const char *text) {
    (void)run;
    ProgressView *progress = context;
    clear_line(progress);
    fprintf(stderr, "%s", terminal_style(&progress->terminal, STYLE_DIM));
    cli_print_outside(stderr, text);
    fprintf(stderr, "%s\n", terminal_style(&progress->terminal, STYLE_NONE));
    fflush(stderr);
}

RunObserver progress_observer(ProgressView *progress) {
    if (progress->quiet)
        return (RunObserver){.context = NULL};
    return (RunObserver){.context = progress, .step = on_step, .event = on_event};
}
