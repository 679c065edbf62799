#include "cli/train/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitize.h"
#include "base/shortest.h"
#include "base/text_stream.h"
#include "cli/print/text.h"
#include "cli/print/wrap.h"
#include "run/twin.h"

#define CLEAR_LINE "\r\x1b[K"

static const double live_interval = 0.1, line_interval = 5;

// ---- output that nobody waits for ---------------------------------------------------------------

// The same terminal or pipe, opened once more: that it must not wait holds for this opening alone,
// not for the shell's. -1 where there is nothing to wait for, or it may not be opened.
static int open_without_waiting(void) {
    struct stat about;
    if (fstat(STDERR_FILENO, &about) != 0 || (!S_ISFIFO(about.st_mode) && !isatty(STDERR_FILENO)))
        return -1;
    return open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool progress_takes_output(void) {
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT);
}

// Writes what goes through now; returns how much. What cannot be written at all is gone.
static size_t write_some(const ProgressView *progress, const char *text, size_t length) {
    if (progress->out < 0) {
        fwrite(text, 1, length, stderr);
        fflush(stderr);
        return length;
    }
    ssize_t written = write(progress->out, text, length);
    if (written < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : length;
    return (size_t)written;
}

// The end of a line of which the beginning is out. True: nothing is left of it.
static bool write_rest(ProgressView *progress) {
    size_t written =
        progress->rest ? write_some(progress, progress->rest, progress->rest_length) : 0;
    progress->rest_length -= written;
    if (progress->rest_length > 0) {
        memmove(progress->rest, progress->rest + written, progress->rest_length);
        return false;
    }
    free(progress->rest);
    progress->rest = NULL;
    return true;
}

// All of the text, now or when it can be taken; false: none of it.
static bool write_now(ProgressView *progress, const char *text, size_t length) {
    if (!progress_takes_output() || !write_rest(progress))
        return false;
    size_t written = write_some(progress, text, length);
    if (written == length || written == 0)
        return written == length;
    progress->rest = malloc(length - written);
    if (progress->rest) {
        memcpy(progress->rest, text + written, length - written);
        progress->rest_length = length - written;
    }
    return true;
}

// Once there is room again, that there was none.
static bool tell_left_out(ProgressView *progress) {
    char text[96];
    if (progress->left_out == 0)
        return true;
    int length = snprintf(text, sizeof text, "%s%lld line%s left out: the output took no more\n",
                          progress->has_line ? CLEAR_LINE : "", progress->left_out,
                          progress->left_out == 1 ? "" : "s");
    if (!write_now(progress, text, (size_t)length))
        return false;
    progress->has_line = false;
    progress->left_out = 0;
    return true;
}

// Whole lines above the live one.
static void write_lines(ProgressView *progress, const char *text, size_t length) {
    char *lines = malloc(length + sizeof CLEAR_LINE);
    bool done = lines && tell_left_out(progress);
    if (done) {
        size_t clear = progress->has_line ? sizeof CLEAR_LINE - 1 : 0;
        memcpy(lines, CLEAR_LINE, clear);
        memcpy(lines + clear, text, length);
        done = write_now(progress, lines, clear + length);
    }
    if (done)
        progress->has_line = false;
    else
        progress->left_out++;
    free(lines);
}

void progress_begin(ProgressView *progress, ColorChoice color, bool quiet) {
    *progress = (ProgressView){.terminal = terminal_of(stderr, color), .quiet = quiet};
    const char *kind = getenv("TERM");
    if (!kind || strcmp(kind, "dumb") == 0) // cannot go back to the start of a line reliably
        progress->terminal.is_terminal = false;
    progress->out = open_without_waiting();
    progress->next_draw =
        clock_seconds() + (progress->terminal.is_terminal ? live_interval : line_interval);
}

void progress_end(ProgressView *progress) {
    (void)tell_left_out(progress);
    if (progress->has_line)
        (void)write_now(progress, CLEAR_LINE, sizeof CLEAR_LINE - 1);
    progress->has_line = false;
    free(progress->rest);
    progress->rest = NULL;
    if (progress->out >= 0)
        close(progress->out);
    progress->out = -1;
}

// ---- the line -----------------------------------------------------------------------------------

typedef struct Segment {
    int rank; // what gives way first when the terminal is narrow has the highest
    char text[80];
} Segment;

enum { MOST_SEGMENTS = 11 };

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

// How far the two are apart, and where that began.
static void add_twin(Line *line, const TwinReport *report) {
    enum { SIZE = sizeof line->segments[0].text };
    const ApartPlace *first = &report->first;
    char number[TEXT_SIZE];
    if (report->has_loss)
        snprintf(add_segment(line, 1), SIZE, "apart %s", text_number(number, report->loss_last, 2));
    if (first->cause != APART_NOT)
        snprintf(add_segment(line, 2), SIZE, "parted at step %s in %.30s",
                 text_count(number, first->step), first->layer[0] ? first->layer : "the loss");
}

static void compose(Line *line, const Run *run, double rate, bool live) {
    enum { SIZE = sizeof line->segments[0].text };
    char number[TEXT_SIZE], total[TEXT_SIZE];
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
    if (run_twin(run))
        add_twin(line, run_twin(run));
    if (rate > 0)
        snprintf(add_segment(line, 3), SIZE, rate < 100 ? "%.1f steps/s" : "%.0f steps/s", rate);
    if (run->scale_max != 1)
        snprintf(add_segment(line, 5), SIZE, "scale %s", shortest_of_float(run->scale_last).text);
    if (run->skipped > 0)
        snprintf(add_segment(line, 4), SIZE, "%s skipped", text_count(number, run->skipped));
    if (rate > 0 && run->total_steps > run->step)
        snprintf(add_segment(line, 2), SIZE, "%s left",
                 text_duration(number, (double)(run->total_steps - run->step) / rate));
}

static void compose_replay(Line *line, const Run *run, int64_t target) {
    char number[TEXT_SIZE];
    snprintf(add_segment(line, 0), sizeof line->segments[0].text, "replaying to step %s",
             text_count(number, target));
    snprintf(add_segment(line, 1), sizeof line->segments[0].text, "at step %s",
             text_count(number, run->step));
}

static void draw(ProgressView *progress, Line *line) {
    TextStream text;
    bool live = progress->terminal.is_terminal;
    if (!tell_left_out(progress))
        return;
    if (live) {
        int width = terminal_width(&progress->terminal);
        size_t room = width > 1 ? (size_t)width - 1 : 79;
        while (line->count > 1 && line_length(line) > room)
            drop_last_rank(line);
        if (line_length(line) > room)
            return;
    }
    if (!text_stream_open(&text))
        return; // a line less
    fputs(live ? "\r" : "", text.stream);
    for (int i = 0; i < line->count; i++) {
        fputs(i > 0 ? "  " : "", text.stream);
        cli_print_outside(text.stream, line->segments[i].text); // a series has the script's name
    }
    fputs(live ? "\x1b[K" : "\n", text.stream);
    if (!text_stream_close(&text))
        return;
    if (write_now(progress, text.text, text.size))
        progress->has_line = live;
    free(text.text);
}

// ---- told by the run ----------------------------------------------------------------------------

static bool is_due(ProgressView *progress) {
    double now = clock_seconds();
    if (now < progress->next_draw)
        return false;
    progress->next_draw = now + (progress->terminal.is_terminal ? live_interval : line_interval);
    return true;
}

static void on_step(void *context, const Run *run) {
    ProgressView *progress = context;
    if (!is_due(progress))
        return;
    Line line = {.count = 0};
    double late = recent_rate(&progress->recent, run->step, run_clock(run));
    compose(&line, run, late > 0 ? late : run_steps_per_second(run),
            progress->terminal.is_terminal);
    draw(progress, &line);
}

static void on_replay(void *context, const Run *run, int64_t target) {
    ProgressView *progress = context;
    if (!is_due(progress))
        return;
    Line line = {.count = 0};
    compose_replay(&line, run, target);
    draw(progress, &line);
}

void progress_tell(void *context, const char *what, int64_t done, int64_t of) {
    ProgressView *progress = context;
    if (progress->quiet || !is_due(progress))
        return;
    Line line = {.count = 0};
    enum { SIZE = sizeof line.segments[0].text };
    char number[TEXT_SIZE], total[TEXT_SIZE];
    snprintf(add_segment(&line, 0), SIZE, "%s", what);
    snprintf(add_segment(&line, 1), SIZE, of > 0 ? "batch %s/%s" : "batch %s",
             text_count(number, done), text_count(total, of));
    if (of > 0 && progress->terminal.is_terminal)
        write_bar(add_segment(&line, 2), fmin(1, (double)done / (double)of));
    draw(progress, &line);
}

void progress_print(void *context, const char *text, size_t length) {
    ProgressView *progress = context;
    size_t size = sanitize_text(NULL, 0, text, length) + 2;
    char *clean = malloc(size);
    if (!clean)
        return; // a line less
    size_t used = sanitize_text(clean, size, text, length);
    if (used == 0 || clean[used - 1] != '\n')
        clean[used++] = '\n';
    write_lines(progress, clean, used);
    free(clean);
}

static void on_event(void *context, const Run *run, const char *text) {
    (void)run;
    ProgressView *progress = context;
    TextStream line;
    if (!text_stream_open(&line))
        return; // the history has it
    const int width = progress->terminal.is_terminal ? terminal_width(&progress->terminal) : 0;
    fputs(terminal_style(&progress->terminal, STYLE_DIM), line.stream);
    wrap_print_outside(line.stream, text, width, 0, 0);
    fprintf(line.stream, "%s\n", terminal_style(&progress->terminal, STYLE_NONE));
    if (!text_stream_close(&line))
        return;
    write_lines(progress, line.text, line.size);
    free(line.text);
}

RunObserver progress_observer(ProgressView *progress) {
    if (progress->quiet)
        return (RunObserver){.context = NULL};
    return (RunObserver){
        .context = progress, .step = on_step, .event = on_event, .replay = on_replay};
}
