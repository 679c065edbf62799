// Taking a checkpoint: notes, then the pieces, one after another.

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/checkpoint_private.h"
#include "checkpoint/weights.h"
#include "data/loader.h"
#include "precision/parameter.h"

enum { NAME_SIZE = 1100 };

static bool fail_with(const char *folder, int code, Error *error) {
    return error_fail(error, code == ENOSPC ? ERROR_FULL : ERROR_FAILED,
                      "checkpoint: cannot make the folder %.250s: %s", folder, error_cause(code));
}

// That a folder is there lies in the folder above it.
static bool sync_above(char *folder, Error *error) {
    char *slash = strrchr(folder, '/');
    const char *above = slash == folder ? "/" : slash ? folder : ".";
    if (slash && slash != folder)
        *slash = 0;
    int opened = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (slash)
        *slash = '/';
    bool done = opened >= 0 && fsync(opened) == 0;
    int code = errno;
    if (opened >= 0)
        close(opened);
    return done || fail_with(folder, code, error);
}

// Private to the user.
static bool make_folder(char *folder, Error *error) {
    if (mkdir(folder, 0700) == 0)
        return sync_above(folder, error);
    return errno == EEXIST || fail_with(folder, errno, error);
}

bool checkpoint_path(const char *folder, int64_t step, bool is_final, char *path, size_t size,
                     Error *error) {
    char part[1024];
    int length = snprintf(part, sizeof part, "%s", folder);
    if (length <= 0 || length >= (int)sizeof part - 64)
        return error_fail(error, ERROR_FAILED, "checkpoint: the path of its folder is too long");
    // The folder and what lies above it.
    for (int i = 1; i <= length; i++) {
        if (part[i] != '/' && part[i] != 0)
            continue;
        char kept = part[i];
        part[i] = 0;
        if (!make_folder(part, error))
            return false;
        part[i] = kept;
    }
    snprintf(path, size, "%s/step-%" PRId64 "%s.safetensors", folder, step, is_final ? "-end" : "");
    return true;
}

// ---- notes --------------------------------------------------------------------------------------

struct CheckpointNotes {
    SafeWriter *writer;
    Error *error;
    bool done; // so far
};

void checkpoint_put_note(CheckpointNotes *notes, const char *key, const char *format, ...) {
    char value[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    notes->done = notes->done && safe_note(notes->writer, key, value, notes->error);
}

static void note_identity(CheckpointNotes *notes, const CheckpointTraining *training) {
    const Engine *engine = training->engine;
    const CheckpointExtra *extra = training->extra;
    const Journal *journal = &training->inventory->journal;
    checkpoint_put_note(notes, "mpbench", "%d", CHECKPOINT_FORMAT);
    checkpoint_put_note(notes, "format", "pt"); // what readers of weights expect
    checkpoint_put_note(notes, "step", "%" PRId64, training->step);
    checkpoint_put_note(notes, "at_end", "%d", extra->at_end);
    checkpoint_put_note(notes, "boundary", "%s", extra->leader_ends ? "first" : "last");
    checkpoint_put_note(notes, "waypoint", "%d", extra->waypoint);
    checkpoint_put_note(notes, "script", "%s", extra->script_hash);
    checkpoint_put_note(notes, "device", "%s", engine->device->backend->name);
    checkpoint_put_note(notes, "threads", "%d", engine->device->threads);
    checkpoint_put_note(notes, "journal", "%s", journal->is_given_up ? "given up" : "whole");
    checkpoint_put_note(notes, "random", "%" PRIu64 " %" PRIu64, engine->seed,
                        engine->random_position);
    checkpoint_put_note(notes, "chances", "%" PRIu64, engine->ended);
    checkpoint_put_note(notes, "lua_random", "%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64,
                        extra->lua_random[0], extra->lua_random[1], extra->lua_random[2],
                        extra->lua_random[3]);
}

void checkpoint_rule_text(const ScaleRule *rule, char *text, size_t size) {
    snprintf(text, size, "%d %a %a %a %a %a %" PRId64 " %" PRId64, (int)rule->kind, rule->init,
             rule->growth, rule->backoff, rule->floor, rule->ceiling, rule->interval,
             rule->hysteresis);
}

static void note_members(CheckpointNotes *notes, const CheckpointTraining *training) {
    char key[32], text[256];
    const Inventory *inventory = training->inventory;
    const MemberList *scalers = &inventory->lists[MEMBER_SCALER];
    const MemberList *loaders = &inventory->lists[MEMBER_LOADER];
    for (int i = 0; i < scalers->count; i++) {
        if (!scalers->members[i])
            continue;
        snprintf(key, sizeof key, "scaler%d.rule", i);
        checkpoint_rule_text(scaler_rule(scalers->members[i]), text, sizeof text);
        checkpoint_put_note(notes, key, "%s", text);
    }
    for (int i = 0; i < loaders->count; i++) {
        if (!loaders->members[i])
            continue;
        LoaderState state = loader_state(loaders->members[i]);
        snprintf(key, sizeof key, "loader%d", i);
        checkpoint_put_note(notes, key, "%" PRIu64 " %" PRId64, state.epoch, state.position);
    }
    const Policy *policy = training->engine->policy;
    char recipe[RECIPE_TEXT_SIZE];
    recipe_text(policy_recipe(policy), recipe);
    checkpoint_put_note(notes, "recipe", "%s", recipe);
    for (int i = 1; i < policy_layer_count(policy); i++) {
        const PolicyLayer *layer = policy_layer(policy, i);
        snprintf(key, sizeof key, "layer%d", i); // names may be alike
        if (layer->own != LAYER_AUTO)
            checkpoint_put_note(notes, key, "%s", layer_precision_name(layer->own));
    }
}

// What takes the weights that no product does: who writes weights in few bits leaves those alone.
static void note_takers(CheckpointNotes *notes, const CheckpointTraining *training) {
    const Inventory *inventory = training->inventory;
    bool is_known = false;
    for (int i = 0; i < inventory->named_count; i++) {
        char key[NAME_SIZE];
        const NamedTensor *named = &inventory->named[i];
        const Parameter *parameter = parameter_of(named->tensor);
        const bool is_taken = parameter && parameter->taker != OP_COUNT;
        is_known = is_known || is_taken;
        if (!is_taken || parameter->is_factor || named->is_buffer || named->tensor->view.ndim < 2)
            continue;
        const int length = snprintf(key, sizeof key, WEIGHTS_NOTE_TAKER "%s", named->name);
        if (length < (int)sizeof key) // one of a longer name is not exported
            checkpoint_put_note(notes, key, "%s", op_table[parameter->taker].name);
    }
    if (is_known)
        checkpoint_put_note(notes, WEIGHTS_NOTE_TAKERS, "noted");
}

// ---- the file -----------------------------------------------------------------------------------

static bool declare(SafeWriter *writer, const PieceList *list, const Journal *journal,
                    Error *error) {
    const int64_t length[1] = {(int64_t)journal->size};
    for (int i = 0; i < list->count; i++) {
        const Piece *piece = &list->pieces[i];
        if (!safe_declare(writer, piece->name, piece->type, piece->ndim, piece->shape, error))
            return false;
    }
    return safe_declare(writer, "journal", SAFE_U8, 1, length, error);
}

static bool write_pieces(SafeWriter *writer, const PieceList *list, const Journal *journal,
                         Error *error) {
    size_t largest = 1;
    for (int i = 0; i < list->count; i++) {
        size_t bytes = piece_bytes(&list->pieces[i]);
        largest = bytes > largest ? bytes : largest;
    }
    void *memory = malloc(largest);
    if (!memory)
        return error_fail(error, ERROR_MEMORY, "checkpoint: no memory for a tensor of %zu bytes",
                          largest);
    bool done = true;
    for (int i = 0; done && i < list->count; i++)
        done = piece_get(&list->pieces[i], memory, error) &&
               safe_write(writer, memory, piece_bytes(&list->pieces[i]), error);
    free(memory);
    return done && safe_write(writer, journal->bytes, journal->size, error);
}

bool checkpoint_save(const CheckpointTraining *training, const char *path, CheckpointFile *file,
                     Error *error) {
    PieceList list;
    bool done = false;
    const Journal *journal = &training->inventory->journal;
    if (!pieces_collect(&list, training->engine, training->inventory, true, error))
        return false;
    CheckpointNotes notes = {.writer = safe_writer_new(path, error), .error = error, .done = true};
    if (!notes.writer)
        goto done;
    note_identity(&notes, training);
    training->note(training->context, &notes);
    note_members(&notes, training);
    note_takers(&notes, training);
    done = notes.done && declare(notes.writer, &list, journal, error) &&
           write_pieces(notes.writer, &list, journal, error) &&
           safe_finish(notes.writer, file->hash, &file->bytes, error);
    file->step = training->step;
    snprintf(file->path, sizeof file->path, "%s", path);
done:
    safe_writer_free(notes.writer);
    pieces_clear(&list);
    return done || error_prefix(error, "checkpoint");
}

// ---- comparing ----------------------------------------------------------------------------------

static bool is_exported(const Piece *piece) {
    return piece->role == PIECE_WEIGHT || strncmp(piece->name, "average", 7) == 0;
}

static bool piece_differs(const Piece *piece, SafeFile *file, bool *differs, Error *error) {
    const SafeEntry *entry = safe_header_find(safe_header(file), piece->name);
    size_t bytes = piece_bytes(piece);
    if (!entry || (size_t)(entry->end - entry->begin) != bytes) {
        *differs = true;
        return true;
    }
    char *now = malloc(2 * bytes + 1);
    bool done = now ? piece_get(piece, now, error) && safe_read(file, entry, now + bytes, error)
                    : error_fail(error, ERROR_MEMORY, "no memory to compare a checkpoint");
    *differs = done && memcmp(now, now + bytes, bytes) != 0;
    free(now);
    return done;
}

bool checkpoint_differs(const CheckpointTraining *training, const char *path, bool *differs,
                        Error *error) {
    PieceList list;
    *differs = false;
    SafeFile *file = safe_open(path, error);
    if (!file)
        return false;
    bool is_collected = pieces_collect(&list, training->engine, training->inventory, true, error);
    bool done = is_collected;
    for (int i = 0; done && !*differs && i < list.count; i++)
        done =
            !is_exported(&list.pieces[i]) || piece_differs(&list.pieces[i], file, differs, error);
    if (is_collected)
        pieces_clear(&list);
    safe_close(file);
    return done;
}
