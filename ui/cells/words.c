#include "ui/cells/words.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rune.h"

static const Word dash = {"–"};

Word word_count(int64_t value) {
    Word word;
    if (value == INT64_MIN)
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

Word word_number(double value) {
    Word word;
    double magnitude = fabs(value);
    if (isnan(value))
        snprintf(word.text, sizeof word.text, "nan");
    else if (isinf(value))
        snprintf(word.text, sizeof word.text, value > 0 ? "inf" : "-inf");
    else if (value != 0 && (magnitude < 1e-3 || magnitude >= 1e7))
        snprintf(word.text, sizeof word.text, "%.2e", value);
    else if (magnitude >= 1000)
        return word_count((int64_t)llround(value));
    else
        snprintf(word.text, sizeof word.text,
                 magnitude < 10    ? "%.4f"
                 : magnitude < 100 ? "%.2f"
                                   : "%.1f",
                 value);
    return word;
}

Word word_power(double value, int decimals) {
    Word word;
    snprintf(word.text, sizeof word.text, "%.*e", decimals, value);
    char *power = strchr(word.text, 'e');
    if (power) {
        int exponent = (int)strtol(power + 1, NULL, 10);
        snprintf(power, sizeof word.text - (size_t)(power - word.text), "e%d", exponent);
    }
    return word;
}

Word word_reading(double value) {
    return isnan(value) ? dash : word_number(value);
}

Word word_rate(double a_second) {
    Word word;
    if (!(a_second > 0) || isinf(a_second))
        return dash;
    if (a_second >= 999.5)
        return word_count(llround(fmin(a_second, 1e15)));
    snprintf(word.text, sizeof word.text,
             a_second >= 100  ? "%.0f"
             : a_second >= 10 ? "%.1f"
                              : "%.2f",
             a_second);
    return word;
}

Word word_share(double share) {
    Word word;
    double percent = share * 100;
    if (isnan(share))
        return dash;
    if (percent > 0 && percent < 0.05)
        snprintf(word.text, sizeof word.text, "< 0.1 %%");
    else
        snprintf(word.text, sizeof word.text, percent < 99.95 ? "%.1f %%" : "%.0f %%", percent);
    return word;
}

Word word_bytes(int64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    enum { UNITS = sizeof units / sizeof *units };
    Word word;
    if (bytes == INT64_MIN || bytes < 0)
        return dash;
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1000 && unit < UNITS - 1) {
        value /= 1024;
        unit++;
    }
    snprintf(word.text, sizeof word.text, unit > 0 && value < 10 ? "%.1f %s" : "%.0f %s", value,
             units[unit]);
    return word;
}

Word word_scale(double scale) {
    Word word;
    int exponent;
    if (!(scale > 0) || isinf(scale))
        return dash;
    if (frexp(scale, &exponent) == 0.5)
        snprintf(word.text, sizeof word.text, "2^%d", exponent - 1);
    else
        snprintf(word.text, sizeof word.text, scale >= 1 ? "%.6g" : "%.3g", scale);
    return word;
}

Word word_rule(const char *rule) {
    Word word;
    char *end;
    double scale = strtod(rule, &end);
    if (end != rule && *end == 0 && scale > 0 && isfinite(scale))
        return word_scale(scale);
    snprintf(word.text, sizeof word.text, "%.31s", rule[0] ? rule : dash.text);
    return word;
}

Word word_time(double seconds) {
    Word word;
    const double day = 86400, most_days = 9999, hours_most = 100 * 3600.0;
    if (!(seconds >= 0))
        return dash;
    if (seconds >= most_days * day) {
        snprintf(word.text, sizeof word.text, "> %.0f d", most_days);
        return word;
    }
    int whole = (int)seconds;
    if (seconds >= hours_most)
        snprintf(word.text, sizeof word.text, "%d d %d h", whole / 86400, whole / 3600 % 24);
    else if (whole >= 3600)
        snprintf(word.text, sizeof word.text, "%d:%02d:%02d", whole / 3600, whole / 60 % 60,
                 whole % 60);
    else
        snprintf(word.text, sizeof word.text, "%d:%02d", whole / 60, whole % 60);
    return word;
}

Word word_short(double count) {
    static const char units[] = " kMGT";
    Word word;
    if (!isfinite(count))
        return dash;
    int unit = 0;
    while (fabs(count) >= 9999.5 && unit < 4) {
        count /= 1000;
        unit++;
    }
    if (unit == 0)
        snprintf(word.text, sizeof word.text, fabs(count) < 100 ? "%.1f" : "%.0f", count);
    else
        snprintf(word.text, sizeof word.text, fabs(count) < 100 ? "%.1f%c" : "%.0f%c", count,
                 units[unit]);
    return word;
}

Word word_age(int64_t milliseconds) {
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    enum { UNITS = sizeof units / sizeof *units };
    int64_t seconds = milliseconds > 0 ? milliseconds / 1000 : 0;
    int unit = 0;
    while (unit < UNITS - 1 && seconds < units[unit].seconds)
        unit++;
    Word word;
    snprintf(word.text, sizeof word.text, "%" PRId64 " %s", seconds / units[unit].seconds,
             units[unit].unit);
    return word;
}

void word_shorten(char *out, size_t size, const char *text, int width) {
    if (text_width(text) <= width || width < 1) {
        snprintf(out, size, "%s", width < 1 ? "" : text);
        return;
    }
    int right = width / 2, left = width - 1 - right;
    const char *end = text;
    while (text_width(end) > right)
        rune_next(&end);
    snprintf(out, size, "%.*s…%s", (int)text_fit(text, left, NULL), text, end);
}

static bool begins_number(const char *text, const char *at) {
    return *at >= '0' && *at <= '9' && (at == text || strchr(" =(", at[-1]));
}

static bool follows_step(const char *text, const char *at) {
    return (at - text >= 5 && strncmp(at - 5, "step ", 5) == 0) ||
           (at - text >= 6 && strncmp(at - 6, "steps ", 6) == 0);
}

static bool counts_something(const char *end) {
    return strncmp(end, " step", 5) == 0 || strncmp(end, " %", 2) == 0 ||
           strncmp(end, " of ", 4) == 0;
}

// "grayscale" speaks of none.
static bool names_scale(const char *part, const char *at) {
    static const char word[] = "scale";
    enum { LENGTH = sizeof word - 1 };
    for (const char *found = part; (found = strstr(found, word)) && found < at; found += LENGTH)
        if ((found == part || !isalnum((unsigned char)found[-1])) &&
            !isalnum((unsigned char)found[LENGTH]))
            return true;
    return false;
}

// The bytes of a name in quotes that begins here; 0: none does. The apostrophe of "run's" is none.
static size_t quoted_at(const char *text, const char *at) {
    bool begins = *at == '"' || (*at == '\'' && (at == text || strchr(" (", at[-1])));
    const char *end = begins ? strchr(at + 1, *at) : NULL;
    return end ? (size_t)(end + 1 - at) : 0;
}

// The scale that is written here, and the bytes it takes; 0: it is none. Numbers are scales where
// the word stands before them in the same part of the sentence.
static size_t scale_at(const char *text, const char *at, const char *part, Word *word) {
    char *end;
    if (!begins_number(text, at) || follows_step(text, at))
        return 0;
    double value = strtod(at, &end);
    int exponent;
    bool is_whole =
        *end == 0 || strchr(" ,;:)", *end) || (*end == '.' && (!end[1] || end[1] == ' '));
    if (!names_scale(part, at) || !is_whole || counts_something(end) || !isfinite(value) ||
        frexp((double)(float)value, &exponent) != 0.5) // as a float has it
        return 0;
    *word = word_scale((double)(float)value);
    return (size_t)(end - at);
}

void word_rewrite(char *out, size_t size, const char *text) {
    static const char arrow[] = "->";
    const char *at = text, *part = text;
    size_t used = 0;
    while (*at && used + 1 < size) {
        Word word;
        size_t taken = scale_at(text, at, part, &word), quoted = quoted_at(text, at);
        if (quoted > 0) { // is not ours to write another way
            used += (size_t)snprintf(out + used, size - used, "%.*s", (int)quoted, at);
            at += quoted;
        } else if (taken > 0) {
            used += (size_t)snprintf(out + used, size - used, "%s", word.text);
            at += taken;
        } else if (strncmp(at, arrow, 2) == 0) {
            used += (size_t)snprintf(out + used, size - used, "→");
            at += 2;
        } else {
            if (strchr(",;:", *at))
                part = at + 1;
            out[used++] = *at++;
        }
        used = used < size ? used : size - 1;
    }
    out[used] = 0;
}
