// The header of a safetensors file: JSON of one fixed shape. Nothing nests deeper than the format
// says, so that nothing here recurses.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/file.h"
#include "data/safetensors.h"
#include "data/safetensors_text.h"

static const struct {
    const char *name;
    size_t bytes;
    Format format;
} type_table[SAFE_TYPES] = {
    [SAFE_F64] = {"F64", 8, FORMAT_FP64},         [SAFE_F32] = {"F32", 4, FORMAT_FP32},
    [SAFE_F16] = {"F16", 2, FORMAT_FP16},         [SAFE_BF16] = {"BF16", 2, FORMAT_BF16},
    [SAFE_I64] = {"I64", 8, FORMAT_COUNT},        [SAFE_I32] = {"I32", 4, FORMAT_INT32},
    [SAFE_I16] = {"I16", 2, FORMAT_COUNT},        [SAFE_I8] = {"I8", 1, FORMAT_INT8},
    [SAFE_U8] = {"U8", 1, FORMAT_UINT8},          [SAFE_BOOL] = {"BOOL", 1, FORMAT_COUNT},
    [SAFE_F8_E4M3] = {"F8_E4M3", 1, FORMAT_E4M3}, [SAFE_F8_E5M2] = {"F8_E5M2", 1, FORMAT_E5M2},
};

const char *safe_type_name(SafeType type) {
    return type_table[type].name;
}

size_t safe_type_bytes(SafeType type) {
    return type_table[type].bytes;
}

Format safe_type_format(SafeType type) {
    return type_table[type].format;
}

SafeType safe_type_of(Format format) {
    for (int i = 0; i < SAFE_TYPES; i++)
        if (type_table[i].format == format)
            return (SafeType)i;
    return SAFE_TYPES;
}

typedef struct Parser {
    SafeText text;
    SafeHeader *header;
    int entry_room, note_room;
} Parser;

// How a name from the file is printed in a message.
#define NAME "%.80s"

static bool fail_entry(const Parser *parser, const SafeEntry *entry, const char *what) {
    return error_fail(parser->text.error, ERROR_FAILED, FILE_PATH ": tensor " NAME ": %s",
                      parser->text.shown, entry->name, what);
}

// ---- what the format says -----------------------------------------------------------------------

static bool parse_type(Parser *parser, SafeEntry *entry) {
    const char *name;
    if (!safe_text_string(&parser->text, &name))
        return false;
    for (int i = 0; i < SAFE_TYPES; i++)
        if (strcmp(name, type_table[i].name) == 0) {
            entry->type = (SafeType)i;
            return true;
        }
    return error_fail(parser->text.error, ERROR_FAILED,
                      FILE_PATH ": tensor " NAME ": dtype %.20s is not known", parser->text.shown,
                      entry->name, name);
}

static bool parse_offsets(Parser *parser, SafeEntry *entry) {
    int64_t offsets[2];
    int count;
    if (!safe_text_numbers(&parser->text, offsets, 2, &count))
        return false;
    if (count != 2)
        return safe_text_fail(&parser->text, "data_offsets: a begin and an end expected");
    entry->begin = (uint64_t)offsets[0];
    entry->end = (uint64_t)offsets[1];
    return true;
}

// The size that shape and dtype say must be that of the offsets.
static bool check_size(const Parser *parser, const SafeEntry *entry) {
    uint64_t bytes = type_table[entry->type].bytes;
    for (int i = 0; i < entry->ndim; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)entry->shape[i], &bytes))
            return fail_entry(parser, entry, "its shape is larger than any file");
    if (entry->begin > entry->end)
        return fail_entry(parser, entry, "its data ends before it begins");
    if (bytes != entry->end - entry->begin)
        return error_fail(parser->text.error, ERROR_FAILED,
                          FILE_PATH ": tensor " NAME ": shape and dtype make %" PRIu64
                                    " bytes, data_offsets %" PRIu64,
                          parser->text.shown, entry->name, bytes, entry->end - entry->begin);
    return true;
}

static bool parse_entry(Parser *parser, SafeEntry *entry) {
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    bool seen[3] = {false};
    if (!safe_text_expect(&parser->text, '{'))
        return false;
    do {
        const char *key;
        int which = 0;
        if (!safe_text_string(&parser->text, &key))
            return false;
        while (which < 3 && strcmp(key, keys[which]) != 0)
            which++;
        if (which == 3)
            return fail_entry(parser, entry, "a field beside dtype, shape and data_offsets");
        if (seen[which])
            return fail_entry(parser, entry, "a field that comes twice");
        seen[which] = true;
        if (!safe_text_expect(&parser->text, ':'))
            return false;
        bool done = which == 0   ? parse_type(parser, entry)
                    : which == 1 ? safe_text_numbers(&parser->text, entry->shape, SAFE_MAX_DIMS,
                                                     &entry->ndim)
                                 : parse_offsets(parser, entry);
        if (!done)
            return false;
    } while (safe_text_accept(&parser->text, ','));
    if (!safe_text_expect(&parser->text, '}'))
        return false;
    if (!seen[0] || !seen[1] || !seen[2])
        return fail_entry(parser, entry, "dtype, shape or data_offsets is missing");
    return check_size(parser, entry);
}

// Makes room for one more element of a list; NULL where there is no memory.
static void *grow(void *list, int count, int *room, size_t size) {
    if (count < *room)
        return list;
    int next = *room ? *room * 2 : 64;
    void *moved = realloc(list, (size_t)next * size);
    if (moved)
        *room = next;
    return moved;
}

static bool no_memory(const Parser *parser) {
    return error_fail(parser->text.error, ERROR_MEMORY, FILE_PATH ": no memory for its header",
                      parser->text.shown);
}

static bool parse_notes(Parser *parser) {
    SafeHeader *header = parser->header;
    if (!safe_text_expect(&parser->text, '{'))
        return false;
    if (safe_text_accept(&parser->text, '}'))
        return true;
    do {
        SafeNote note;
        if (header->note_count == SAFE_MAX_ENTRIES)
            return safe_text_fail(&parser->text, "more than 100000 entries of __metadata__");
        if (!safe_text_string(&parser->text, &note.key) || !safe_text_expect(&parser->text, ':') ||
            !safe_text_string(&parser->text, &note.value))
            return false;
        SafeNote *notes = grow(header->notes, header->note_count, &parser->note_room, sizeof note);
        if (!notes)
            return no_memory(parser);
        header->notes = notes;
        notes[header->note_count++] = note;
    } while (safe_text_accept(&parser->text, ','));
    return safe_text_expect(&parser->text, '}');
}

static bool parse_members(Parser *parser) {
    SafeHeader *header = parser->header;
    bool has_notes = false;
    if (!safe_text_expect(&parser->text, '{'))
        return false;
    if (safe_text_accept(&parser->text, '}'))
        return true;
    do {
        SafeEntry entry = {.ndim = 0};
        if (!safe_text_string(&parser->text, &entry.name) || !safe_text_expect(&parser->text, ':'))
            return false;
        if (strcmp(entry.name, "__metadata__") == 0) {
            if (has_notes)
                return safe_text_fail(&parser->text, "__metadata__ comes twice");
            has_notes = true;
            if (!parse_notes(parser))
                return false;
            continue;
        }
        if (header->count == SAFE_MAX_ENTRIES)
            return safe_text_fail(&parser->text, "more than 100000 tensors");
        if (!parse_entry(parser, &entry))
            return false;
        SafeEntry *entries =
            grow(header->entries, header->count, &parser->entry_room, sizeof entry);
        if (!entries)
            return no_memory(parser);
        header->entries = entries;
        entries[header->count++] = entry;
    } while (safe_text_accept(&parser->text, ','));
    return safe_text_expect(&parser->text, '}');
}

// ---- the whole ----------------------------------------------------------------------------------

static int by_offset(const void *a, const void *b) {
    const SafeEntry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const SafeEntry *const *)a)->name, (*(const SafeEntry *const *)b)->name);
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const SafeNote *)a)->key, ((const SafeNote *)b)->key);
}

// Every byte of the data belongs to one tensor.
static bool check_coverage(const Parser *parser, uint64_t data_bytes) {
    const SafeHeader *header = parser->header;
    uint64_t covered = 0;
    for (int i = 0; i < header->count; i++) {
        const SafeEntry *entry = &header->entries[i];
        if (entry->begin > covered)
            return fail_entry(parser, entry, "a hole before its data");
        if (entry->begin < covered)
            return fail_entry(parser, entry, "its data overlaps that of another");
        if (entry->end > data_bytes)
            return fail_entry(parser, entry, "its data ends past the end of the file");
        covered = entry->end;
    }
    if (covered != data_bytes)
        return error_fail(parser->text.error, ERROR_FAILED,
                          FILE_PATH ": %" PRIu64 " bytes trail behind the last tensor",
                          parser->text.shown, data_bytes - covered);
    return true;
}

static bool check_names(const Parser *parser) {
    SafeHeader *header = parser->header;
    header->by_name = calloc((size_t)header->count + 1, sizeof(SafeEntry *));
    if (!header->by_name)
        return no_memory(parser);
    for (int i = 0; i < header->count; i++)
        header->by_name[i] = &header->entries[i];
    if (header->count > 0)
        qsort(header->by_name, (size_t)header->count, sizeof *header->by_name, by_name);
    for (int i = 1; i < header->count; i++)
        if (strcmp(header->by_name[i - 1]->name, header->by_name[i]->name) == 0)
            return fail_entry(parser, header->by_name[i], "the name comes twice");
    if (header->note_count > 0)
        qsort(header->notes, (size_t)header->note_count, sizeof *header->notes, by_key);
    for (int i = 1; i < header->note_count; i++)
        if (strcmp(header->notes[i - 1].key, header->notes[i].key) == 0)
            return error_fail(parser->text.error, ERROR_FAILED,
                              FILE_PATH ": __metadata__: " NAME " comes twice", parser->text.shown,
                              header->notes[i].key);
    return true;
}

bool safe_header_parse(SafeHeader *header, char *text, size_t size, uint64_t data_bytes,
                       const char *shown, Error *error) {
    *header = (SafeHeader){.count = 0};
    Parser parser = {.text = {.bytes = text, .size = size, .shown = shown, .error = error},
                     .header = header};
    bool done = size > 0 && text[0] == '{' ? parse_members(&parser)
                                           : safe_text_fail(&parser.text, "'{' expected");
    if (done) {
        done = safe_text_is_over(&parser.text) ||
               safe_text_fail(&parser.text, "something follows the header's object");
    }
    if (done && header->count > 0)
        qsort(header->entries, (size_t)header->count, sizeof *header->entries, by_offset);
    done = done && check_names(&parser) && check_coverage(&parser, data_bytes);
    if (!done)
        safe_header_clear(header);
    return done;
}

void safe_header_clear(SafeHeader *header) {
    free(header->entries);
    free(header->notes);
    free(header->by_name);
    *header = (SafeHeader){.count = 0};
}

const SafeEntry *safe_header_find(const SafeHeader *header, const char *name) {
    int low = 0, high = header->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp(name, header->by_name[middle]->name);
        if (order == 0)
            return header->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *safe_header_note(const SafeHeader *header, const char *key) {
    for (int i = 0; i < header->note_count; i++)
        if (strcmp(header->notes[i].key, key) == 0)
            return header->notes[i].value;
    return NULL;
}
