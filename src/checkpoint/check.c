// Whether a checkpoint is one to resume from, and of this run: nothing is written before all of
// this has let it through.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint_private.h"
#include "checkpoint/weights.h"
#include "data/loader.h"

// ---- the file -----------------------------------------------------------------------------------

bool check_file_hash(SafeFile *file, const char *path, const char *hash, Error *error) {
    char found[HASH_HEX_SIZE];
    if (!hash)
        return true;
    if (!safe_hash(file, found, error))
        return false;
    return strcmp(found, hash) == 0 ||
           error_fail(error, ERROR_FAILED,
                      "%.250s: its checksum is not the one that it was written with: the file is "
                      "damaged; go on from an earlier checkpoint",
                      path);
}

// Counts that a run goes on from are those that a run can have.
static bool check_counts(const SafeHeader *header, const char *path, Error *error) {
    static const struct {
        const char *name;
        int64_t most;
    } counts[] = {{"step", (int64_t)1 << 53},    {"applied", (int64_t)1 << 53},
                  {"skipped", (int64_t)1 << 53}, {"samples", (int64_t)1 << 53},
                  {"epoch", (int64_t)1 << 53},   {"forked_at", (int64_t)1 << 53},
                  {"skips_in_a_row", INT32_MAX}, {"waypoint", INT32_MAX}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const char *text = safe_header_note(header, counts[i].name);
        char *end = NULL;
        int64_t count = text ? strtoll(text, &end, 10) : 0;
        if (text && (end == text || *end || count < 0 || count > counts[i].most))
            return error_fail(error, ERROR_FAILED, "%.250s: its %s, %.40s, is no count; " WAY_OUT,
                              path, counts[i].name, text);
    }
    return true;
}

bool check_contents(Checkpoint *checkpoint, const char *path, Error *error) {
    const SafeHeader *header = safe_header(checkpoint->file);
    static const char *const needed[] = {"step", "random", "lua_random", "seed"};
    const char *format = safe_header_note(header, "mpbench");
    if (!format)
        return error_fail(error, ERROR_FAILED,
                          "%.250s: weights, but no checkpoint of mpbench: nothing to resume; "
                          "`mpbench run EXPERIMENT --weights FILE` starts with them",
                          path);
    if (atoi(format) > CHECKPOINT_FORMAT)
        return error_fail(error, ERROR_FAILED,
                          "%.250s: written by a newer mpbench (format %.8s, this one knows %d)",
                          path, format, CHECKPOINT_FORMAT);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!safe_header_note(header, needed[i]))
            return error_fail(error, ERROR_FAILED, "%.250s: its %s state is missing; " WAY_OUT,
                              path, i == 0 ? "step" : "random");
    if (!check_counts(header, path, error))
        return false;
    const char *journal = safe_header_note(header, "journal");
    if (!safe_header_find(header, "journal") || !journal || strcmp(journal, "whole") != 0)
        return error_fail(error, ERROR_FAILED,
                          "%.250s: the script had read more than %d MiB of the device, and what it "
                          "read is not in the checkpoint; " WAY_OUT,
                          path, JOURNAL_LARGEST >> 20);
    checkpoint->step = strtoll(safe_header_note(header, "step"), NULL, 10);
    const char *at_end = safe_header_note(header, "at_end");
    checkpoint->at_end = at_end && at_end[0] == '1';
    return checkpoint->step > 0 ||
           error_fail(error, ERROR_FAILED, "%.250s: its step is not a positive number", path);
}

// ---- differences --------------------------------------------------------------------------------

typedef struct Differences {
    char text[ERROR_TEXT_SIZE / 2];
    size_t used;
    int count, told;
} Differences;

static void differ(Differences *differences, const char *kind, const char *name) {
    enum { TOLD = 4 };
    differences->count++;
    if (differences->told == TOLD)
        return;
    size_t left = sizeof differences->text - differences->used;
    int length = snprintf(differences->text + differences->used, left, "%s%s %.60s",
                          differences->told ? ", " : "", kind, name);
    if ((size_t)length >= left) {
        differences->text[differences->used] = 0;
        return;
    }
    differences->used += (size_t)length;
    differences->told++;
}

static void differ_in_shape(Differences *differences, const Piece *piece, const SafeEntry *entry) {
    char kind[256], here[80], there[80];
    View ours = {.ndim = piece->ndim}, theirs = {.ndim = entry->ndim};
    theirs.ndim = theirs.ndim < VIEW_MAX_DIMS ? theirs.ndim : VIEW_MAX_DIMS;
    memcpy(ours.shape, piece->shape, sizeof ours.shape);
    memcpy(theirs.shape, entry->shape, (size_t)theirs.ndim * sizeof(int64_t));
    shape_describe(&ours, here, sizeof here);
    shape_describe(&theirs, there, sizeof there);
    snprintf(kind, sizeof kind, "%s %s in the file and %s %s in the model:", there,
             safe_type_name(entry->type), here, safe_type_name(piece->type));
    differ(differences, kind, piece->name);
}

static bool refuse_differences(const Differences *differences, const char *settings, Error *error) {
    if (differences->count == 0)
        return true;
    if (settings)
        return error_fail(
            error, ERROR_USAGE,
            "%.100s: the checkpoint is of another model; what shapes the model cannot "
            "change in a fork, by an option or in the script: take it back, or begin anew with "
            "`mpbench run`; "
            "%d difference%s: %s%s",
            settings, differences->count, differences->count == 1 ? "" : "s", differences->text,
            differences->told < differences->count ? ", .." : "");
    return error_fail(error, ERROR_FAILED,
                      "the checkpoint is of another model, nothing was loaded: %d difference%s: "
                      "%s%s",
                      differences->count, differences->count == 1 ? "" : "s", differences->text,
                      differences->told < differences->count ? ", .." : "");
}

static bool has_piece(const PieceList *list, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->pieces[i].name, name) == 0)
            return true;
    return false;
}

static bool is_of_model(const char *name) {
    bool is_weight;
    return weights_model_name(name, &is_weight) != NULL;
}

bool check_model(const Checkpoint *checkpoint, const PieceList *list, const char *settings,
                 Error *error) {
    const SafeHeader *header = safe_header(checkpoint->file);
    Differences differences = {.count = 0};
    for (int i = 0; i < list->count; i++) {
        const Piece *piece = &list->pieces[i];
        const SafeEntry *entry = safe_header_find(header, piece->name);
        if (piece->role != PIECE_WEIGHT)
            continue;
        bool exact = checkpoint->exact;
        if (!entry)
            differ(&differences, "missing in the file:", piece->name);
        else if (!piece_fits(piece, entry) || (exact && entry->type != piece->type))
            differ_in_shape(&differences, piece, entry);
    }
    for (int i = 0; i < header->count; i++)
        if (is_of_model(header->entries[i].name) && !has_piece(list, header->entries[i].name))
            differ(&differences, "not in the model:", header->entries[i].name);
    return refuse_differences(&differences, settings, error);
}

bool check_state(const Checkpoint *checkpoint, const PieceList *list, Error *error) {
    for (int i = 0; i < list->count; i++) {
        const Piece *piece = &list->pieces[i];
        const SafeEntry *entry = safe_header_find(safe_header(checkpoint->file), piece->name);
        if (piece->role == PIECE_STATE && !(piece->is_optional && !entry) &&
            (!entry || !piece_fits(piece, entry)))
            return error_fail(
                error, ERROR_FAILED,
                "the checkpoint lacks %.80s%s: exact resuming is not possible; " WAY_OUT,
                piece->name, entry ? " in this shape" : "");
    }
    return true;
}

// ---- positions ----------------------------------------------------------------------------------

static bool changed(Error *error, const char *what) {
    return error_fail(error, ERROR_FAILED,
                      "resume: %s is elsewhere than when the checkpoint was taken: the script, its "
                      "data or its options have changed; put them back, or " WAY_OUT,
                      what);
}

bool check_positions(const Checkpoint *checkpoint, const CheckpointTraining *training,
                     Error *error) {
    char text[128], key[32];
    const Engine *engine = training->engine;
    const CheckpointExtra *extra = training->extra;
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, engine->seed, engine->random_position);
    if (strcmp(text, checkpoint_note(checkpoint, "random")) != 0)
        return changed(error, "the stream of random numbers");
    snprintf(text, sizeof text, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64,
             extra->lua_random[0], extra->lua_random[1], extra->lua_random[2],
             extra->lua_random[3]);
    if (strcmp(text, checkpoint_note(checkpoint, "lua_random")) != 0)
        return changed(error, "math.random");
    const MemberList *loaders = &training->inventory->lists[MEMBER_LOADER];
    for (int i = 0; i < loaders->count; i++) {
        snprintf(key, sizeof key, "loader%d", i);
        const char *saved = checkpoint_note(checkpoint, key);
        if (!loaders->members[i] || !saved)
            continue;
        LoaderState state = loader_state(loaders->members[i]);
        snprintf(text, sizeof text, "%" PRIu64 " %" PRId64, state.epoch, state.position);
        if (strcmp(text, saved) != 0)
            return changed(error, "a loader");
    }
    return true;
}

// ---- weights alone ------------------------------------------------------------------------------

const SafeEntry *check_entry_of(const SafeHeader *header, const NamedTensor *named,
                                const char *name) {
    const SafeEntry *entry = safe_header_find(header, name);
    return entry ? entry : safe_header_find(header, named->name);
}

// Elements of few bits with scales of their own, as an export has them for those who compute with
// them elsewhere. Without the scales they would be other weights.
static bool is_quantised(const SafeHeader *header, SafeType type) {
    if (!safe_header_note(header, "quantised"))
        return false;
    return type == SAFE_I8 || type == SAFE_U8 || type == SAFE_F8_E4M3 || type == SAFE_F8_E5M2;
}

bool check_weights(const SafeHeader *header, const Inventory *inventory, int first, Error *error) {
    Differences differences = {.count = 0};
    for (int i = first; i < inventory->named_count; i++) {
        const NamedTensor *named = &inventory->named[i];
        char *name = piece_name_of(named);
        if (!name)
            return error_fail(error, ERROR_MEMORY, "no memory to load weights");
        const SafeEntry *entry = check_entry_of(header, named, name);
        Piece piece = piece_of_tensor(name, PIECE_WEIGHT, named->tensor);
        if (entry && is_quantised(header, entry->type) && entry->type != piece.type) {
            free(name);
            return error_fail(error, ERROR_FAILED,
                              "%.100s is quantised in this file: weights in fp32 or 16 bits are "
                              "wanted, as `mpbench export RUN --format safetensors -p fp32` writes "
                              "them",
                              named->name);
        }
        if (!entry && !named->is_buffer)
            differ(&differences, "missing in the file:", named->name);
        else if (entry && !piece_fits(&piece, entry))
            differ_in_shape(&differences, &piece, entry);
        free(name);
    }
    return refuse_differences(&differences, NULL, error);
}
