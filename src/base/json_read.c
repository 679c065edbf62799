#include "base/json_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/rune.h"

enum { MOST_DEPTH = 32 };

typedef struct Reader {
    const char *begin, *at;
    char *out; // where the next text goes; as long as what is read, so that all fit
    JsonTree *tree;
    int depth;
    Error *error;
} Reader;

static int fail(Reader *reader, const char *wanted) {
    error_fail(reader->error, ERROR_FAILED, "JSON: %s is wanted at byte %td", wanted,
               reader->at - reader->begin);
    return -1;
}

static void skip_blank(Reader *reader) {
    reader->at += strspn(reader->at, " \t\r\n");
}

static bool skip(Reader *reader, char sign) {
    skip_blank(reader);
    const bool is_there = *reader->at == sign;
    reader->at += is_there;
    return is_there;
}

static int add_value(Reader *reader, JsonKind kind) {
    JsonTree *tree = reader->tree;
    if (tree->count == tree->room) {
        const int room = tree->room ? 2 * tree->room : 64;
        JsonValue *values = realloc(tree->values, (size_t)room * sizeof *values);
        if (!values) {
            error_fail(reader->error, ERROR_MEMORY, "no memory to read JSON");
            return -1;
        }
        tree->values = values;
        tree->room = room;
    }
    tree->values[tree->count] = (JsonValue){.kind = kind, .text = ""};
    return tree->count++;
}

// ---- texts --------------------------------------------------------------------------------------

static bool read_code(Reader *reader, uint32_t *code) {
    char digits[5] = "", *end;
    strncpy(digits, reader->at, 4);
    *code = (uint32_t)strtoul(digits, &end, 16);
    if (strlen(digits) != 4 || *end || digits[0] == '-' || digits[0] == '+')
        return false;
    reader->at += 4;
    return true;
}

// Behind "\u".
static bool read_rune(Reader *reader) {
    uint32_t code, low;
    if (!read_code(reader, &code))
        return false;
    if (code >= 0xD800 && code < 0xDC00) {
        if (strncmp(reader->at, "\\u", 2) != 0)
            return false;
        reader->at += 2;
        if (!read_code(reader, &low) || low < 0xDC00 || low > 0xDFFF)
            return false;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code == 0 || (code >= 0xD800 && code < 0xE000)) // ends a text here, or is half of a rune
        code = 0xFFFD;
    reader->out += rune_encode(code, reader->out);
    return true;
}

// NULL: it is none.
static const char *read_text(Reader *reader) {
    static const char signs[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *text = reader->out;
    if (!skip(reader, '"')) {
        fail(reader, "a text in quotes");
        return NULL;
    }
    while (*reader->at && *reader->at != '"') {
        if (*reader->at != '\\') {
            *reader->out++ = *reader->at++;
            continue;
        }
        reader->at++;
        const char *sign = *reader->at ? strchr(signs, *reader->at) : NULL;
        const bool is_rune = *reader->at == 'u';
        reader->at += *reader->at != 0;
        if (sign)
            *reader->out++ = meant[sign - signs];
        else if (!is_rune || !read_rune(reader)) {
            fail(reader, "an escape");
            return NULL;
        }
    }
    if (*reader->at != '"') {
        fail(reader, "the end of a text");
        return NULL;
    }
    reader->at++;
    *reader->out++ = 0;
    return text;
}

// ---- values -------------------------------------------------------------------------------------

static int read_value(Reader *reader);

static bool read_within(Reader *reader, int whole, bool is_object, char end) {
    int last = 0;
    if (++reader->depth > MOST_DEPTH)
        return fail(reader, "less depth") > 0;
    while (!skip(reader, end)) {
        if (last && !skip(reader, ','))
            return fail(reader, "a comma") > 0;
        const char *key = is_object ? read_text(reader) : NULL;
        if (is_object && (!key || (!skip(reader, ':') && fail(reader, ":") < 0)))
            return false;
        const int at = read_value(reader);
        if (at < 0)
            return false;
        JsonValue *values = reader->tree->values; // which may have moved
        values[at].key = key;
        *(last ? &values[last].next : &values[whole].first) = at;
        values[whole].count++;
        last = at;
    }
    reader->depth--;
    return true;
}

static int read_number(Reader *reader) {
    char *end;
    const double number = strtod(reader->at, &end);
    const bool is_number = *reader->at == '-' || (*reader->at >= '0' && *reader->at <= '9');
    if (!is_number || end == reader->at)
        return fail(reader, "a value");
    reader->at = end;
    const int at = add_value(reader, JSON_NUMBER);
    if (at >= 0)
        reader->tree->values[at].number = number;
    return at;
}

static int read_value(Reader *reader) {
    static const struct {
        const char *text;
        JsonKind kind;
        double number;
    } words[] = {{"true", JSON_BOOLEAN, 1}, {"false", JSON_BOOLEAN, 0}, {"null", JSON_NULL, 0}};
    skip_blank(reader);
    const bool is_object = *reader->at == '{';
    if (is_object || *reader->at == '[') {
        const int at = add_value(reader, is_object ? JSON_OBJECT : JSON_ARRAY);
        reader->at++;
        return at >= 0 && read_within(reader, at, is_object, is_object ? '}' : ']') ? at : -1;
    }
    if (*reader->at == '"') {
        const char *text = read_text(reader);
        const int at = text ? add_value(reader, JSON_TEXT) : -1;
        if (at >= 0)
            reader->tree->values[at].text = text;
        return at;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(reader->at, words[i].text, strlen(words[i].text)) == 0) {
            const int at = add_value(reader, words[i].kind);
            reader->at += strlen(words[i].text);
            if (at >= 0)
                reader->tree->values[at].number = words[i].number;
            return at;
        }
    return read_number(reader);
}

bool json_read(const char *text, JsonTree *tree, Error *error) {
    *tree = (JsonTree){.texts = malloc(strlen(text) + 1)};
    if (!tree->texts)
        return error_fail(error, ERROR_MEMORY, "no memory to read JSON");
    Reader reader = {.begin = text, .at = text, .out = tree->texts, .tree = tree, .error = error};
    bool done = read_value(&reader) == 0;
    skip_blank(&reader);
    if (done && *reader.at)
        done = fail(&reader, "the end") > 0;
    if (!done)
        json_tree_clear(tree);
    return done;
}

void json_tree_clear(JsonTree *tree) {
    free(tree->values);
    free(tree->texts);
    *tree = (JsonTree){0};
}

// ---- looked at ----------------------------------------------------------------------------------

const JsonValue *json_first(const JsonTree *tree, const JsonValue *value) {
    return value && value->first ? &tree->values[value->first] : NULL;
}

const JsonValue *json_next(const JsonTree *tree, const JsonValue *value) {
    return value->next ? &tree->values[value->next] : NULL;
}

const JsonValue *json_member(const JsonTree *tree, const JsonValue *value, const char *key) {
    if (!value || value->kind != JSON_OBJECT)
        return NULL;
    for (const JsonValue *at = json_first(tree, value); at; at = json_next(tree, at))
        if (strcmp(at->key, key) == 0)
            return at;
    return NULL;
}

const char *json_member_text(const JsonTree *tree, const JsonValue *value, const char *key) {
    const JsonValue *member = json_member(tree, value, key);
    return member ? member->text : "";
}

double json_member_number(const JsonTree *tree, const JsonValue *value, const char *key,
                          double otherwise) {
    const JsonValue *member = json_member(tree, value, key);
    return member && (member->kind == JSON_NUMBER || member->kind == JSON_BOOLEAN) ? member->number
                                                                                   : otherwise;
}
