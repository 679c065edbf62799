// Files of safetensors: opening, reading, and writing without ever leaving half of one.
#include "data/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text_stream.h"
#include "data/file.h"

static bool fail_with(const char *path, const char *action, int code, Error *error) {
    bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
    return error_fail(error, full ? ERROR_FULL : ERROR_FAILED, FILE_PATH ": cannot %s: %s%s", path,
                      action, error_cause(code), full ? "; make room, or keep it elsewhere" : "");
}

// ---- reading ------------------------------------------------------------------------------------

struct SafeFile {
    int descriptor;
    char *path, *text;
    uint64_t size, data_at;
    SafeHeader header;
};

static bool read_at(const SafeFile *file, uint64_t at, void *out, uint64_t size, Error *error) {
    const uint64_t most = (uint64_t)1 << 30;
    for (uint64_t have = 0; have < size;) {
        uint64_t part = size - have < most ? size - have : most;
        ssize_t got = pread(file->descriptor, (char *)out + have, (size_t)part, (off_t)(at + have));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_with(file->path, "read", errno, error);
        if (got == 0)
            return error_fail(error, ERROR_FAILED,
                              FILE_PATH ": ends at byte %" PRIu64 " of %" PRIu64
                                        ": it was cut while being read",
                              file->path, at + have, file->size);
        have += (uint64_t)got;
    }
    return true;
}

static bool read_header(SafeFile *file, Error *error) {
    uint8_t bytes[8];
    if (file->size < sizeof bytes)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": has %" PRIu64
                                    " bytes; a safetensors file has at least 8; it is cut, or "
                                    "something else",
                          file->path, file->size);
    if (!read_at(file, 0, bytes, sizeof bytes, error))
        return false;
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    if (length > SAFE_MAX_HEADER)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": says that its header has %" PRIu64
                                    " bytes; at most %d are read: no safetensors, or damaged",
                          file->path, length, SAFE_MAX_HEADER);
    if (length > file->size - sizeof bytes)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": says that its header has %" PRIu64
                                    " bytes, and only %" PRIu64 " follow: the file is cut",
                          file->path, length, file->size - sizeof bytes);
    file->data_at = sizeof bytes + length;
    file->text = malloc((size_t)length + 1);
    if (!file->text)
        return error_fail(error, ERROR_MEMORY, FILE_PATH ": no memory for its header", file->path);
    return read_at(file, sizeof bytes, file->text, length, error) &&
           safe_header_parse(&file->header, file->text, (size_t)length, file->size - file->data_at,
                             file->path, error);
}

SafeFile *safe_open(const char *path, Error *error) {
    SafeFile *file = calloc(1, sizeof *file);
    char *copy = strdup(path);
    if (!file || !copy) {
        free(file);
        free(copy);
        error_fail(error, ERROR_MEMORY, FILE_PATH ": no memory to open it", path);
        return NULL;
    }
    file->descriptor = -1;
    file->path = copy;
    if (file_open(path, &file->descriptor, &file->size, error) && read_header(file, error))
        return file;
    safe_close(file);
    return NULL;
}

void safe_close(SafeFile *file) {
    if (!file)
        return;
    if (file->descriptor >= 0)
        close(file->descriptor);
    safe_header_clear(&file->header);
    free(file->text);
    free(file->path);
    free(file);
}

const SafeHeader *safe_header(const SafeFile *file) {
    return &file->header;
}

bool safe_read(SafeFile *file, const SafeEntry *entry, void *out, Error *error) {
    return read_at(file, file->data_at + entry->begin, out, entry->end - entry->begin, error);
}

bool safe_hash(SafeFile *file, char hex[HASH_HEX_SIZE], Error *error) {
    enum { PART = 1 << 20 };
    uint8_t *part = malloc(PART), digest[HASH_BYTES];
    if (!part)
        return error_fail(error, ERROR_MEMORY, FILE_PATH ": no memory to read it", file->path);
    Sha256 hash;
    sha256_init(&hash);
    bool done = true;
    for (uint64_t at = 0; done && at < file->size;) {
        size_t size = file->size - at < PART ? (size_t)(file->size - at) : PART;
        done = read_at(file, at, part, size, error);
        if (done)
            sha256_add(&hash, part, size);
        at += size;
    }
    sha256_end(&hash, digest);
    sha256_format(hex, digest);
    free(part);
    return done;
}

// ---- writing ------------------------------------------------------------------------------------

typedef struct Declared {
    char *name;
    SafeType type;
    int ndim;
    int64_t shape[SAFE_MAX_DIMS];
    uint64_t begin, end;
} Declared;

struct SafeWriter {
    char *path, *part; // where it will lie, and where it is written
    int descriptor;    // -1: not made yet
    FILE *stream;      // borrowed, in place of a file; or NULL
    bool has_begun;
    Declared *entries;
    int count, room;
    char **notes; // key, value, key, value, ..
    int note_count, note_room;
    uint64_t data_bytes, written; // of tensors: declared, and come so far
    uint64_t header_bytes;
    Sha256 hash;
};

static bool no_room(const SafeWriter *writer, Error *error) {
    return error_fail(error, ERROR_MEMORY, FILE_PATH ": no memory to write it", writer->path);
}

SafeWriter *safe_writer_new(const char *path, Error *error) {
    static const char suffix[] = ".tmp";
    SafeWriter *writer = calloc(1, sizeof *writer);
    if (writer) {
        writer->descriptor = -1;
        writer->path = strdup(path);
        writer->part = malloc(strlen(path) + sizeof suffix);
        if (writer->part) {
            strcpy(writer->part, path);
            strcat(writer->part, suffix);
        }
    }
    if (writer && writer->path && writer->part)
        return writer;
    safe_writer_free(writer);
    error_fail(error, ERROR_MEMORY, FILE_PATH ": no memory to write it", path);
    return NULL;
}

SafeWriter *safe_writer_to(FILE *stream, const char *shown, Error *error) {
    SafeWriter *writer = safe_writer_new(shown, error);
    if (writer)
        writer->stream = stream;
    return writer;
}

void safe_writer_free(SafeWriter *writer) {
    if (!writer)
        return;
    if (writer->descriptor >= 0) {
        close(writer->descriptor);
        unlink(writer->part);
    }
    for (int i = 0; i < writer->count; i++)
        free(writer->entries[i].name);
    for (int i = 0; i < 2 * writer->note_count; i++)
        free(writer->notes[i]);
    free(writer->entries);
    free(writer->notes);
    free(writer->path);
    free(writer->part);
    free(writer);
}

bool safe_declare(SafeWriter *writer, const char *name, SafeType type, int ndim,
                  const int64_t *shape, Error *error) {
    if (writer->count == writer->room) {
        int room = writer->room ? writer->room * 2 : 64;
        Declared *entries = realloc(writer->entries, (size_t)room * sizeof *entries);
        if (!entries)
            return no_room(writer, error);
        writer->entries = entries;
        writer->room = room;
    }
    if (writer->count == SAFE_MAX_ENTRIES)
        return error_fail(error, ERROR_FAILED, FILE_PATH ": more than %d tensors", writer->path,
                          SAFE_MAX_ENTRIES);
    Declared entry = {.type = type, .ndim = ndim, .begin = writer->data_bytes};
    uint64_t bytes = safe_type_bytes(type);
    for (int i = 0; i < ndim; i++) {
        entry.shape[i] = shape[i];
        bytes *= (uint64_t)shape[i];
    }
    entry.name = strdup(name);
    if (!entry.name)
        return no_room(writer, error);
    entry.end = writer->data_bytes += bytes;
    writer->entries[writer->count++] = entry;
    return true;
}

bool safe_note(SafeWriter *writer, const char *key, const char *value, Error *error) {
    if (writer->note_count == writer->note_room) {
        int room = writer->note_room ? writer->note_room * 2 : 16;
        char **notes = realloc(writer->notes, (size_t)room * 2 * sizeof *notes);
        if (!notes)
            return no_room(writer, error);
        writer->notes = notes;
        writer->note_room = room;
    }
    char *kept_key = strdup(key), *kept_value = strdup(value);
    if (!kept_key || !kept_value) {
        free(kept_key);
        free(kept_value);
        return no_room(writer, error);
    }
    writer->notes[2 * writer->note_count] = kept_key;
    writer->notes[2 * writer->note_count++ + 1] = kept_value;
    return true;
}

static bool write_out(SafeWriter *writer, const void *bytes, size_t size, Error *error) {
    const size_t most = (size_t)64 << 20;
    sha256_add(&writer->hash, bytes, size);
    if (writer->stream)
        return fwrite(bytes, 1, size, writer->stream) == size ||
               fail_with(writer->path, "write", errno, error);
    for (size_t done = 0; done < size;) {
        size_t part = size - done < most ? size - done : most;
        ssize_t written = write(writer->descriptor, (const char *)bytes + done, part);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return fail_with(writer->part, "write", errno, error);
        done += (size_t)written;
    }
    return true;
}

static int compare_texts(const void *a, const void *b) {
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

// No text may come twice: no reader would take the file.
static bool check_unique(const SafeWriter *writer, const char **texts, int count, const char *what,
                         Error *error) {
    qsort(texts, (size_t)count, sizeof *texts, compare_texts);
    for (int i = 1; i < count; i++)
        if (strcmp(texts[i - 1], texts[i]) == 0)
            return error_fail(error, ERROR_FAILED, FILE_PATH ": two %s are called \"%.200s\"",
                              writer->path, what, texts[i]);
    return true;
}

static bool check_names(const SafeWriter *writer, Error *error) {
    int most = writer->count > writer->note_count ? writer->count : writer->note_count;
    const char **texts = malloc(((size_t)most + 1) * sizeof *texts);
    if (!texts)
        return no_room(writer, error);
    for (int i = 0; i < writer->note_count; i++)
        texts[i] = writer->notes[2 * i];
    bool done = check_unique(writer, texts, writer->note_count, "notes", error);
    for (int i = 0; i < writer->count; i++)
        texts[i] = writer->entries[i].name;
    texts[writer->count] = "__metadata__"; // is taken
    done = done && check_unique(writer, texts, writer->count + 1, "tensors", error);
    free(texts);
    return done;
}

static void write_members(const SafeWriter *writer, FILE *stream) {
    JsonWriter json = {.stream = stream};
    json_begin_object(&json);
    if (writer->note_count > 0) {
        json_key(&json, "__metadata__");
        json_begin_object(&json);
        for (int i = 0; i < writer->note_count; i++) {
            json_key(&json, writer->notes[2 * i]);
            json_text(&json, writer->notes[2 * i + 1]);
        }
        json_end_object(&json);
    }
    for (int i = 0; i < writer->count; i++) {
        const Declared *entry = &writer->entries[i];
        json_key(&json, entry->name);
        json_begin_object(&json);
        json_key(&json, "dtype");
        json_text(&json, safe_type_name(entry->type));
        json_key(&json, "shape");
        json_begin_array(&json);
        for (int k = 0; k < entry->ndim; k++)
            json_integer(&json, entry->shape[k]);
        json_end_array(&json);
        json_key(&json, "data_offsets");
        json_begin_array(&json);
        json_integer(&json, (int64_t)entry->begin);
        json_integer(&json, (int64_t)entry->end);
        json_end_array(&json);
        json_end_object(&json);
    }
    json_end_object(&json);
}

// The length and the object, filled up with spaces so that the data begins at a multiple of 8.
static bool write_header(SafeWriter *writer, Error *error) {
    TextStream members;
    if (!text_stream_open(&members))
        return no_room(writer, error);
    write_members(writer, members.stream);
    if (!text_stream_close(&members))
        return no_room(writer, error);
    size_t filled = members.size + (8 - members.size % 8) % 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)filled >> 8 * i);
    writer->header_bytes = sizeof length + filled;
    bool done =
        filled <= SAFE_MAX_HEADER ||
        error_fail(error, ERROR_FAILED, FILE_PATH ": its header would have %zu bytes: at most %d",
                   writer->path, filled, SAFE_MAX_HEADER);
    done = done && write_out(writer, length, sizeof length, error) &&
           write_out(writer, members.text, members.size, error) &&
           write_out(writer, "        ", filled - members.size, error);
    free(members.text);
    return done;
}

static bool begin_file(SafeWriter *writer, Error *error) {
    if (writer->has_begun)
        return true;
    if (!check_names(writer, error))
        return false;
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    if (!writer->stream)
        writer->descriptor = open(writer->part, flags, 0600);
    if (!writer->stream && writer->descriptor < 0)
        return fail_with(writer->part, "create", errno, error);
    writer->has_begun = true;
    sha256_init(&writer->hash);
    return write_header(writer, error);
}

bool safe_write(SafeWriter *writer, const void *bytes, size_t size, Error *error) {
    if (!begin_file(writer, error))
        return false;
    writer->written += size;
    return size == 0 || write_out(writer, bytes, size, error);
}

static bool sync_folder(const char *path, Error *error) {
    char *copy = strdup(path);
    if (!copy)
        return error_fail(error, ERROR_MEMORY, FILE_PATH ": no memory to write it", path);
    int folder = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    if (folder < 0)
        return fail_with(path, "open the folder of", errno, error);
    bool done = fsync(folder) == 0 || fail_with(path, "synchronise the folder of", errno, error);
    close(folder);
    return done;
}

static bool put_in_place(SafeWriter *writer, Error *error) {
    if (fsync(writer->descriptor) != 0)
        return fail_with(writer->part, "synchronise", errno, error);
    int closed = close(writer->descriptor);
    writer->descriptor = -1;
    if (closed != 0 || rename(writer->part, writer->path) != 0) {
        int code = errno;
        unlink(writer->part);
        return fail_with(writer->path, "put in place", code, error);
    }
    return true;
}

bool safe_finish(SafeWriter *writer, char hex[HASH_HEX_SIZE], uint64_t *bytes, Error *error) {
    if (!begin_file(writer, error))
        return false;
    if (writer->written != writer->data_bytes)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": %" PRIu64 " bytes came of the %" PRIu64 " declared",
                          writer->path, writer->written, writer->data_bytes);
    if (!writer->stream && !put_in_place(writer, error))
        return false;
    uint8_t digest[HASH_BYTES];
    sha256_end(&writer->hash, digest);
    sha256_format(hex, digest);
    *bytes = writer->header_bytes + writer->data_bytes;
    return writer->stream || sync_folder(writer->path, error);
}
