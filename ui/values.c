#include "ui/values.h"

#include <math.h>
#include <stdio.h>

static const char dash[] = "–";

static const char *unknown(char *text) {
    snprintf(text, VALUE_SIZE, "%s", dash);
    return text;
}

const char *value_count(char *text, int64_t count) {
    char digits[VALUE_SIZE];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)count);
    if (count == INT64_MIN)
        return unknown(text);
    int used = 0;
    for (int i = 0; i < length; i++) {
        text[used++] = digits[i];
        if (digits[i] != '-' && i + 1 < length && (length - i - 1) % 3 == 0)
            text[used++] = ',';
    }
    text[used] = 0;
    return text;
}

const char *value_short(char *text, double count) {
    static const char units[] = " kMGT";
    if (!isfinite(count))
        return unknown(text);
    int unit = 0;
    while (fabs(count) >= 9999.5 && unit < 4) {
        count /= 1000;
        unit++;
    }
    if (unit == 0)
        snprintf(text, VALUE_SIZE, fabs(count) < 100 ? "%.1f" : "%.0f", count);
    else
        snprintf(text, VALUE_SIZE, fabs(count) < 100 ? "%.1f%c" : "%.0f%c", count, units[unit]);
    return text;
}

const char *value_number(char *text, double value) {
    if (!isfinite(value))
        snprintf(text, VALUE_SIZE, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    else if (value != 0 && (fabs(value) < 1e-3 || fabs(value) >= 1e5))
        snprintf(text, VALUE_SIZE, "%.2e", value);
    else
        snprintf(text, VALUE_SIZE, "%.4f", value);
    return text;
}

const char *value_bytes(char *text, int64_t bytes) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    double value = (double)bytes;
    int unit = 0;
    if (bytes == INT64_MIN)
        return unknown(text);
    while (value >= 1000 && unit < 4) {
        value /= 1000;
        unit++;
    }
    snprintf(text, VALUE_SIZE, value < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

const char *value_duration(char *text, double seconds) {
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e9)
        return unknown(text);
    long whole = lround(seconds);
    if (whole >= 3600)
        snprintf(text, VALUE_SIZE, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(text, VALUE_SIZE, "%ld:%02ld", whole / 60, whole % 60);
    return text;
}

const char *value_age(char *text, int64_t milliseconds) {
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    int64_t seconds = milliseconds > 0 ? milliseconds / 1000 : 0;
    for (int i = 0; i < 4; i++)
        if (seconds >= units[i].seconds || i == 3) {
            snprintf(text, VALUE_SIZE, "%lld %s", (long long)(seconds / units[i].seconds),
                     units[i].unit);
            break;
        }
    return text;
}

const char *value_share(char *text, double share) {
    if (isnan(share))
        return unknown(text);
    snprintf(text, VALUE_SIZE, "%.1f%%", 100 * share);
    return text;
}
