// Words that panels of the live screen share.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sanitize.h"
#include "ui/live/live.h"

void live_clean(char *out, size_t size, const char *text) {
    sanitize_line(out, size, text, strlen(text));
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

bool live_is_over(const RunRecord *record) {
    return !run_status_goes_on(record->status);
}

double live_fact(const RunRecord *record, const char *name) {
    double value;
    for (int i = 0; i < record->fact_count; i++)
        if (strcmp(record->facts[i].name, name) == 0)
            return sscanf(record->facts[i].value, "%lf", &value) == 1 ? value : NAN;
    return NAN;
}
