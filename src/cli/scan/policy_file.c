// Policy files: a format a layer, written by a scan or by hand.
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/out_file.h"
#include "base/sanitize.h"
#include "cli/scan/scan.h"

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

bool policy_file_write(const char *path, const ScanPage *page, Error *error) {
    OutFile out;
    if (!out_file_open(&out, path, false, error))
        return error_prefix(error, "--output");
    char verdict[512], clean[1024];
    scan_verdict(page, verdict, sizeof verdict);
    sanitize_line(clean, sizeof clean, verdict, strlen(verdict));
    fprintf(out.stream,
            "-- Made by mpbench scan; for --layers FILE, or as `precision = require ..`.\n");
    if (clean[0])
        fprintf(out.stream, "-- %s\n", clean);
    fputs("return {\n", out.stream);
    for (int i = 0; i < page->scan->unit_count; i++) {
        fputs("    [", out.stream);
        put_quoted(out.stream, page->scan->units[i]);
        fputs("] = ", out.stream);
        put_quoted(out.stream, scan_format_of(page->scan, i));
        fputs(",\n", out.stream);
    }
    fputs("}\n", out.stream);
    return out_file_close(&out, true, error) || error_prefix(error, "--output");
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

// A text in quotes, into `text`.
static bool read_quoted(Reader *reader, char text[NAME_SIZE]) {
    skip_blank(reader);
    const char quote = *reader->at;
    if (quote != '"' && quote != '\'')
        return fail(reader, "a text in quotes");
    size_t used = 0;
    const char *at = reader->at + 1;
    for (; *at && *at != quote && *at != '\n'; at++) {
        at += *at == '\\' && (at[1] == '\\' || at[1] == quote);
        if (used + 1 == NAME_SIZE)
            return fail(reader, "a shorter text");
        text[used++] = *at;
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

bool policy_file_read(const char *path,
                      bool (*take)(void *context, const char *pattern, const char *precision,
                                   Error *error),
                      void *context, Error *error) {
    static char text[MOST_FILE];
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    bool is_read = file && !ferror(file);
    if (!is_read)
        error_fail(error, ERROR_USAGE, "%.200s: %s", path, error_cause(errno));
    else if (length == sizeof text - 1)
        error_fail(error, ERROR_USAGE, "%.200s: longer than a policy file can be", path);
    if (file)
        fclose(file);
    if (!is_read || length == sizeof text - 1)
        return false;
    text[length] = 0;
    return read_rows(&(Reader){.path = path, .at = text, .line = 1, .error = error}, take, context);
}
