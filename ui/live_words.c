// Readings in words, as all panels of the live screen say them.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sanitize.h"
#include "ui/live.h"

static const LiveWord dash = {"–"};

LiveWord live_count(int64_t value) {
    LiveWord word;
    if (value == RECORD_UNKNOWN)
        return dash;
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, value);
    int at = 0;
    for (int i = 0; i < length; i++) {
        word.text[at++] = digits[i];
        int left = length - 1 - i;
        if (left > 0 && left % 3 == 0 && digits[i] != '-')
            word.text[at++] = ',';
    }
    word.text[at] = 0;
    return word;
}

LiveWord live_number(double value) {
    LiveWord word;
    double magnitude = fabs(value);
    if (isnan(value))
        snprintf(word.text, sizeof word.text, "nan");
    else if (isinf(value))
        snprintf(word.text, sizeof word.text, value > 0 ? "inf" : "-inf");
    else if (value != 0 && (magnitude < 1e-3 || magnitude >= 1e7))
        snprintf(word.text, sizeof word.text, "%.2e", value);
    else if (magnitude >= 1000)
        return live_count((int64_t)llround(value));
    else
        snprintf(word.text, sizeof word.text,
                 magnitude < 10    ? "%.4f"
                 : magnitude < 100 ? "%.2f"
                                   : "%.1f",
                 value);
    return word;
}

LiveWord live_reading(double value) {
    return isnan(value) ? dash : live_number(value);
}

LiveWord live_rate(double a_second) {
    LiveWord word;
    if (!(a_second > 0) || isinf(a_second))
        return dash;
    if (a_second >= 999.5)
        return live_count(llround(fmin(a_second, 1e15)));
    snprintf(word.text, sizeof word.text,
             a_second >= 100  ? "%.0f"
             : a_second >= 10 ? "%.1f"
                              : "%.2f",
             a_second);
    return word;
}

LiveWord live_share(double share) {
    LiveWord word;
    double percent = share * 100;
    if (isnan(share))
        return dash;
    if (percent > 0 && percent < 0.05)
        snprintf(word.text, sizeof word.text, percent < 0.001 ? "< 0.001 %%" : "%.2g %%", percent);
    else
        snprintf(word.text, sizeof word.text, percent < 99.95 ? "%.1f %%" : "%.0f %%", percent);
    return word;
}

LiveWord live_bytes(int64_t bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    enum { UNITS = sizeof units / sizeof *units };
    LiveWord word;
    if (bytes == RECORD_UNKNOWN || bytes < 0)
        return dash;
    double value = (double)bytes;
    int unit = 0;
    while (value >= 999.5 && unit < UNITS - 1) {
        value /= 1000;
        unit++;
    }
    snprintf(word.text, sizeof word.text, unit > 0 && value < 10 ? "%.1f %s" : "%.0f %s", value,
             units[unit]);
    return word;
}

LiveWord live_scale(double scale) {
    LiveWord word;
    int exponent;
    if (!(scale > 0) || isinf(scale))
        return dash;
    if (frexp(scale, &exponent) == 0.5)
        snprintf(word.text, sizeof word.text, "2^%d", exponent - 1);
    else
        snprintf(word.text, sizeof word.text, "%.6g", scale);
    return word;
}

LiveWord live_span_of_time(double seconds) {
    LiveWord word;
    const double most = 99 * 3600.0;
    if (!(seconds >= 0))
        return dash;
    int whole = (int)fmin(seconds, most);
    if (whole >= 3600)
        snprintf(word.text, sizeof word.text, "%d:%02d:%02d", whole / 3600, whole / 60 % 60,
                 whole % 60);
    else
        snprintf(word.text, sizeof word.text, "%d:%02d", whole / 60, whole % 60);
    return word;
}

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

bool live_is_over(const RunRecord *record) {
    return record->status != RUN_RUNNING && record->status != RUN_PAUSED;
}
