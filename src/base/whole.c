#include "base/whole.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool whole_parse(const char *text, int64_t least, int64_t most, int64_t *number, Error *error) {
    char *end;
    double parsed = strtod(text, &end);
    bool is_plain = text[0] && strspn(text, "0123456789+-.eE") == strlen(text);
    if (!is_plain || *end || parsed != trunc(parsed))
        return error_fail(error, ERROR_USAGE, "a whole number is wanted");
    if (!(parsed >= (double)least && parsed <= (double)most))
        return error_fail(error, ERROR_USAGE, "from %" PRId64 " to %" PRId64 " is possible", least,
                          most);
    *number = (int64_t)parsed;
    return true;
}
