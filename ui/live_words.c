// Words that panels of the live screen share.
#include <string.h>

#include "base/sanitize.h"
#include "ui/live.h"

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
