// Words that panels of the live screen share.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sanitize.h"
#include "ui/live/live.h"

void live_clean(char *out, size_t size, const char *text) {
    sanitize_line(out, size, text, strlen(text));
}

const char *live_say_no_run(const Live *live) {
    return live->data.is_gone ? "this run was removed: choose another at home (1)"
                              : "no run is open: choose one at home (1)";
}

Ink live_ink(const char *precision) {
    Ink ink = theme_format_ink(precision);
    return ink == INK_TEXT ? INK_BRIGHT : ink;
}

const char *live_status(const RunRecord *record) {
    return record->stale ? "stale" : run_status_name(record->status);
}

void live_say_steps(char *out, size_t size, const LayerSample *sample) {
    out[0] = 0;
    if (sample->width > 1)
        snprintf(out, size, " among steps %s to %s", word_count(sample->step).text,
                 word_count(sample->step + sample->width - 1).text);
}

int live_layers_shown(const RunRecord *record) {
    return record->layer_count < LIVE_MOST_LAYERS ? record->layer_count : LIVE_MOST_LAYERS;
}

bool live_is_over(const RunRecord *record) {
    return !run_status_goes_on(record->status);
}

// Of "conv2.weight": the layer that holds it, where the run has one.
void live_culprit(const RunRecord *record, const Event *event, char *out, size_t size) {
    const char *name = event->layer;
    size_t length = strlen(name), longest = 0;
    for (int i = 0; i < record->layer_count; i++) {
        size_t own = strlen(record->layers[i].name);
        if (own > longest && own <= length && strncmp(record->layers[i].name, name, own) == 0 &&
            (name[own] == 0 || name[own] == '.'))
            longest = own;
    }
    char plain[EVENT_LAYER_SIZE];
    snprintf(plain, sizeof plain, "%.*s", (int)(longest > 0 ? longest : length), name);
    live_clean(out, size, plain);
}

bool live_overflowed_forward(const Event *skip) {
    return strstr(skip->text, "the loss is not finite either") != NULL;
}

// The step stands beside it already. Older runs counted the one that was skipped otherwise.
static const char *without_step(const Event *event) {
    static const char start[] = "step ", end[] = " skipped: ";
    if (event->kind != EVENT_SKIP || strncmp(event->text, start, sizeof start - 1) != 0)
        return event->text;
    const char *rest = event->text + sizeof start - 1;
    rest += strspn(rest, "0123456789");
    return strncmp(rest, end, sizeof end - 1) == 0 ? rest + sizeof end - 1 : event->text;
}

// Of a skip that has no room for its text: the scale before and after, and whose gradient it was.
static void say_brief(const Live *live, const Event *event, char *out, size_t size) {
    char layer[EVENT_LAYER_SIZE * 2];
    live_culprit(&live->data.record, event, layer, sizeof layer);
    const char *who = layer[0] ? layer : "a gradient";
    double before = live_skipped_at(event);
    if (before > 0 && event->value > 0 && before != event->value)
        snprintf(out, size, "%s → %s by %s", word_scale(before).text, word_scale(event->value).text,
                 who);
    else if (before > 0)
        snprintf(out, size, "at %s by %s", word_scale(before).text, who);
    else
        snprintf(out, size, "%s not finite", who);
}

void live_say_event(const Live *live, const Event *event, bool brief, char *out, size_t size) {
    char clean[2 * EVENT_TEXT_SIZE];
    if (brief && event->kind == EVENT_SKIP) {
        say_brief(live, event, out, size);
        return;
    }
    if (event->kind == EVENT_MESSAGE) { // the script's own words
        live_clean(out, size, event->text);
        return;
    }
    live_clean(clean, sizeof clean, without_step(event));
    word_rewrite(out, size, clean);
}
