// Policy files: a format a layer, written by a scan or by hand.
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sanitize.h"
#include "cli/scan/scan.h"
#include "compare/scan.h"

// ---- writing ------------------------------------------------------------------------------------

static void put_quoted(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(out, "\\%03d", *text);
        else
            fputc(*text, out);
    fputc('"', out);
}

void policy_file_write(FILE *out, const ScanRecord *scan) {
    char verdict[SCAN_VERDICT_SIZE], clean[2 * SCAN_VERDICT_SIZE], keep[SCAN_KEEP_SIZE];
    scan_verdict(scan, verdict);
    scan_keep_fp32(scan, SCAN_BY_POLICY, keep);
    sanitize_line(clean, sizeof clean, verdict, strlen(verdict));
    fprintf(out, "-- Made by mpbench scan; for --layers FILE, or as `precision = require ..`.\n");
    if (clean[0])
        fprintf(out, "-- %s\n", clean);
    if (keep[0])
        fprintf(out, "-- With --keep-fp32 %s; norms and embeddings stay in fp32 without it.\n",
                keep);
    fputs("return {\n", out);
    for (int i = 0; i < scan->unit_count; i++) {
        if (strcmp(scan_format_of(scan, i), "auto") == 0)
            continue; // it is never set
        fputs("    [", out);
        put_quoted(out, scan->units[i]);
        fputs("] = ", out);
        put_quoted(out, scan_format_of(scan, i));
        fputs(",\n", out);
    }
    fputs("}\n", out);
}

// ---- reading ------------------------------------------------------------------------------------

enum { MOST_FILE = 1 << 18, NAME_SIZE = RECORD_NAME_SIZE };

typedef struct Reader {
    const char *path, *at;
    int line;
    Error *error;
} Reader;

static bool fail(const Reader *reader, const char *wanted) {
    char near[16];
    snprintf(near, sizeof near, "%.*s", (int)strcspn(reader->at, "\r\n"), reader->at);
    return error_fail(reader->error, ERROR_USAGE,
                      "%.200s:%d: %s is wanted, as in return { [\"conv*\"] = \"bf16\" }; here is "
                      "\"%s\"",
                      reader->path, reader->line, wanted, near);
}

static void skip_blank(Reader *reader) {
    for (;;) {
        if (strncmp(reader->at, "--", 2) == 0)
            reader->at += strcspn(reader->at, "\n");
        else if (*reader->at && isspace((unsigned char)*reader->at))
            reader->line += *reader->at++ == '\n';
        else
            return;
    }
}

static bool skip(Reader *reader, const char *sign) {
    skip_blank(reader);
    bool is_there = strncmp(reader->at, sign, strlen(sign)) == 0;
    reader->at += is_there ? strlen(sign) : 0;
    return is_there;
}

// What stands behind a backslash, of the signs that are written so and of quotes; a number of up to
// three digits is a byte. 0: something else.
static char read_escape(const char **at) {
    enum { DIGITS = 3 };
    int byte = 0, digits = 0;
    if (**at == '\\' || **at == '"' || **at == '\'')
        return *(*at)++;
    for (; digits < DIGITS && isdigit((unsigned char)**at); digits++)
        byte = 10 * byte + *(*at)++ - '0';
    return (char)(digits > 0 && byte <= UCHAR_MAX ? byte : 0);
}

// A text in quotes, into `text`.
static bool read_quoted(Reader *reader, char text[NAME_SIZE]) {
    skip_blank(reader);
    const char quote = *reader->at;
    if (quote != '"' && quote != '\'')
        return fail(reader, "a text in quotes");
    size_t used = 0;
    const char *at = reader->at + 1;
    while (*at && *at != quote && *at != '\n') {
        const char *begin = at;
        char sign = *at++;
        if (sign == '\\' && !(sign = read_escape(&at))) {
            reader->at = begin;
            return fail(reader, "\\\\, a quote or a byte as \\065 behind a backslash");
        }
        if (used + 1 == NAME_SIZE)
            return fail(reader, "a shorter text");
        text[used++] = sign;
    }
    text[used] = 0;
    if (*at != quote)
        return fail(reader, "a text that ends on its line");
    reader->at = at + 1;
    return true;
}

// ["conv1"] or conv1
static bool read_key(Reader *reader, char text[NAME_SIZE]) {
    if (skip(reader, "["))
        return read_quoted(reader, text) && (skip(reader, "]") || fail(reader, "]"));
    size_t used = 0;
    for (; *reader->at && (isalnum((unsigned char)*reader->at) || *reader->at == '_') &&
           used + 1 < NAME_SIZE;
         reader->at++)
        text[used++] = *reader->at;
    text[used] = 0;
    return used > 0 || fail(reader, "a layer's name");
}

static bool read_rows(Reader *reader,
                      bool (*take)(void *context, const char *pattern, const char *precision,
                                   Error *error),
                      void *context) {
    char pattern[NAME_SIZE], precision[NAME_SIZE];
    if (!skip(reader, "return") || !skip(reader, "{"))
        return fail(reader, "a table");
    while (!skip(reader, "}")) {
        const int line = reader->line;
        if (!read_key(reader, pattern) || !(skip(reader, "=") || fail(reader, "=")) ||
            !read_quoted(reader, precision))
            return false;
        if (!take(context, pattern, precision, reader->error))
            return error_prefix(reader->error, "%.200s:%d", reader->path, line);
        if (!skip(reader, ",") && !skip(reader, ";")) {
            skip_blank(reader);
            if (*reader->at != '}')
                return fail(reader, "a comma");
        }
    }
    skip_blank(reader);
    return !*reader->at || fail(reader, "the end of the file");
}

// A regular file: one that is none may have no end, or nobody who writes it.
static FILE *open_regular(const char *path, Error *error) {
    struct stat about;
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const bool is_open = file >= 0 && fstat(file, &about) == 0;
    const bool is_regular = is_open && S_ISREG(about.st_mode);
    FILE *stream = is_regular ? fdopen(file, "rb") : NULL;
    if (is_open && !is_regular)
        error_fail(error, ERROR_USAGE, "%.200s: is not a regular file; name one that has a policy",
                   path);
    else if (!stream)
        error_fail(error, ERROR_USAGE, "%.200s: %s; `mpbench scan -o FILE` writes one", path,
                   error_cause(errno));
    if (file >= 0 && !stream)
        close(file);
    return stream;
}

// All of it as a text, which has no zero bytes.
static bool read_text(const char *path, char *text, size_t size, Error *error) {
    FILE *file = open_regular(path, error);
    if (!file)
        return false;
    const size_t length = fread(text, 1, size - 1, file);
    const bool is_read = !ferror(file);
    fclose(file);
    text[length] = 0;
    if (!is_read)
        return error_fail(error, ERROR_USAGE, "%.200s: cannot be read", path);
    if (length == size - 1)
        return error_fail(error, ERROR_USAGE, "%.200s: longer than a policy file can be", path);
    return strlen(text) == length ||
           error_fail(
               error, ERROR_USAGE,
               "%.200s: has a zero byte after %zu others, which no text has: is it a policy?", path,
               strlen(text));
}

bool policy_file_read(const char *path,
                      bool (*take)(void *context, const char *pattern, const char *precision,
                                   Error *error),
                      void *context, Error *error) {
    static char text[MOST_FILE];
    return read_text(path, text, sizeof text, error) &&
           read_rows(&(Reader){.path = path, .at = text, .line = 1, .error = error}, take, context);
}
