// From a checkpoint back to a training that stands where it was taken.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint_private.h"
#include "checkpoint/replay.h"
#include "optim/state.h"

// ---- opening ------------------------------------------------------------------------------------

const char *checkpoint_note(const Checkpoint *checkpoint, const char *key) {
    return safe_header_note(safe_header(checkpoint->file), key);
}

int64_t checkpoint_note_count(const Checkpoint *checkpoint, const char *key) {
    const char *text = checkpoint_note(checkpoint, key);
    return text ? strtoll(text, NULL, 10) : 0;
}

int checkpoint_note_numbers(const char *note, double *numbers, int count) {
    int found = 0;
    while (note && *note && found < count) {
        char *end;
        numbers[found] = strtod(note, &end);
        if (end == note)
            break;
        found++;
        note = end;
    }
    return found;
}

const char *checkpoint_next_note(const Checkpoint *checkpoint, const char *prefix, int *at,
                                 const char **note) {
    const SafeHeader *header = safe_header(checkpoint->file);
    while (*at < header->note_count) {
        const SafeNote *next = &header->notes[(*at)++];
        if (strncmp(next->key, prefix, strlen(prefix)) == 0) {
            *note = next->value;
            return next->key + strlen(prefix);
        }
    }
    return NULL;
}

const RestoreOwn *checkpoint_own(const Checkpoint *checkpoint) {
    return &checkpoint->own;
}

int64_t checkpoint_step(const Checkpoint *checkpoint) {
    return checkpoint->step;
}

bool checkpoint_is_at_end(const Checkpoint *checkpoint) {
    return checkpoint->at_end;
}

bool checkpoint_leader_ends(const Checkpoint *checkpoint) {
    const char *boundary = checkpoint_note(checkpoint, "boundary");
    return !boundary || strcmp(boundary, "first") == 0;
}

int checkpoint_waypoint(const Checkpoint *checkpoint) {
    const char *waypoint = checkpoint_note(checkpoint, "waypoint");
    return waypoint && !checkpoint->seeks_place ? (int)strtol(waypoint, NULL, 10) : -1;
}

void checkpoint_forget_waypoint(Checkpoint *checkpoint) {
    checkpoint->seeks_place = true;
}

bool checkpoint_is_here(const Checkpoint *checkpoint, const CheckpointTraining *training) {
    Error ignored = {0};
    return check_positions(checkpoint, training, &ignored);
}

Checkpoint *checkpoint_open(const char *path, const char *hash, const RestoreOwn *own,
                            Error *error) {
    Checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint) {
        error_fail(error, ERROR_MEMORY, "no memory to open a checkpoint");
        return NULL;
    }
    checkpoint->exact = own == NULL;
    if (own)
        checkpoint->own = *own;
    checkpoint->file = safe_open(path, error);
    if (checkpoint->file && check_file_hash(checkpoint->file, path, hash, error) &&
        check_contents(checkpoint, path, error))
        return checkpoint;
    checkpoint_close(checkpoint);
    return NULL;
}

void checkpoint_close(Checkpoint *checkpoint) {
    if (!checkpoint)
        return;
    safe_close(checkpoint->file);
    free(checkpoint);
}

bool checkpoint_read_journal(Checkpoint *checkpoint, Journal *journal, Error *error) {
    const SafeEntry *entry = safe_header_find(safe_header(checkpoint->file), "journal");
    size_t size = (size_t)(entry->end - entry->begin);
    void *bytes = malloc(size ? size : 1);
    if (!bytes)
        return error_fail(error, ERROR_MEMORY, "resume: no memory for the journal");
    bool done = safe_read(checkpoint->file, entry, bytes, error) &&
                journal_set(journal, bytes, size, error);
    free(bytes);
    return done;
}

// ---- filling ------------------------------------------------------------------------------------

// Whether a fork's own options decide what this piece holds: a scale by another rule starts afresh,
// and rates are those of its own settings.
static bool is_overruled(const Checkpoint *checkpoint, const Inventory *inventory,
                         const Piece *piece) {
    const MemberList *scalers = &inventory->lists[MEMBER_SCALER];
    if (piece->is_setting && checkpoint->own.settings)
        return true;
    if (!checkpoint->own.scale)
        return false;
    for (int i = 0; i < scalers->count; i++) {
        char key[32], text[256];
        if (!scalers->members[i] || scalers->members[i] != piece->owner)
            continue;
        snprintf(key, sizeof key, "scaler%d.rule", i);
        const char *saved = checkpoint_note(checkpoint, key);
        checkpoint_rule_text(scaler_rule(piece->owner), text, sizeof text);
        return !saved || strcmp(saved, text) != 0;
    }
    return false;
}

// The rule of a scale, which an order may have changed.
static bool restore_rules(const Checkpoint *checkpoint, const Inventory *inventory, Error *error) {
    const MemberList *scalers = &inventory->lists[MEMBER_SCALER];
    for (int i = 0; i < scalers->count && !checkpoint->own.scale; i++) {
        char key[32], text[256];
        snprintf(key, sizeof key, "scaler%d.rule", i);
        const char *saved = checkpoint_note(checkpoint, key);
        ScaleRule rule;
        if (!scalers->members[i] || !saved)
            continue;
        checkpoint_rule_text(scaler_rule(scalers->members[i]), text, sizeof text);
        if (strcmp(saved, text) == 0)
            continue;
        double numbers[8];
        if (checkpoint_note_numbers(saved, numbers, 8) < 8 ||
            !(numbers[0] >= 0 && numbers[0] <= SCALE_GIVEN) || !(fabs(numbers[6]) <= 0x1p53) ||
            !(fabs(numbers[7]) <= 0x1p53))
            return error_fail(error, ERROR_FAILED, "the checkpoint's %s cannot be read; " WAY_OUT,
                              key);
        rule = (ScaleRule){.kind = (ScaleKind)numbers[0],
                           .init = numbers[1],
                           .growth = numbers[2],
                           .backoff = numbers[3],
                           .floor = numbers[4],
                           .ceiling = numbers[5],
                           .interval = (int64_t)numbers[6],
                           .hysteresis = (int64_t)numbers[7]};
        if (!scaler_set_rule(scalers->members[i], &rule, error))
            return false;
    }
    return true;
}

static bool fill(const Checkpoint *checkpoint, const PieceList *list, const Inventory *inventory,
                 Error *error) {
    for (int i = 0; i < list->count; i++) {
        const Piece *piece = &list->pieces[i];
        const SafeEntry *entry = safe_header_find(safe_header(checkpoint->file), piece->name);
        bool wanted = entry && piece_fits(piece, entry) &&
                      !(piece->storage && !(piece->storage->marks & MARK_HOLLOW)) &&
                      !is_overruled(checkpoint, inventory, piece);
        if (wanted && !piece_put(piece, checkpoint->file, entry, error))
            return false;
    }
    return true;
}

// The base rate, which an order may have changed from outside; a fork's --set is the fork's own.
static bool restore_rates(const Checkpoint *checkpoint, const Inventory *inventory, Error *error) {
    const MemberList *optimizers = &inventory->lists[MEMBER_OPTIMIZER];
    if (checkpoint->own.settings)
        return true;
    for (int i = 0; i < optimizers->count; i++) {
        char name[32];
        double numbers[OPTIMIZER_NUMBERS];
        snprintf(name, sizeof name, "optimizer%d/state", i);
        const SafeEntry *entry = safe_header_find(safe_header(checkpoint->file), name);
        if (!optimizers->members[i] || !entry)
            continue;
        if (!safe_read(checkpoint->file, entry, numbers, error) ||
            !optimizer_set_rate(optimizers->members[i], numbers[OPTIMIZER_NUMBERS - 1], error))
            return false;
    }
    return true;
}

// Layers as they were set while the run went on; those that a fork names itself stay its own, and
// all do where its precision is another.
static bool restore_layers(const Checkpoint *checkpoint, const Device *device, Policy *policy,
                           Error *error) {
    const RestoreOwn *forks = &checkpoint->own;
    if (forks->precision)
        return true;
    for (int i = 1; i < policy_layer_count(policy); i++) {
        char key[32];
        const PolicyLayer *layer = policy_layer(policy, i);
        snprintf(key, sizeof key, "layer%d", i);
        const char *saved = checkpoint_note(checkpoint, key);
        LayerPrecision own = LAYER_AUTO;
        if (forks->layers && forks->names_layer(forks->context, layer->name))
            continue;
        if (saved && !layer_precision_parse(saved, device, &own, error))
            return false;
        if (own != layer->own)
            policy_set_layer(policy, i, own);
    }
    return true;
}

// The recipe, which an order may have changed; a file of before it was kept says nothing of it.
static bool restore_recipe(const Checkpoint *checkpoint, Policy *policy, Error *error) {
    const char *saved = checkpoint_note(checkpoint, "recipe");
    Recipe recipe;
    if (checkpoint->own.recipe || !saved)
        return true;
    if (!recipe_parse(saved, &recipe, error))
        return error_prefix(error, "the checkpoint's recipe cannot be read; " WAY_OUT);
    policy_set_recipe(policy, &recipe);
    return true;
}

// Rows of scales that the file holds, so that room for them is no more than it has bytes; 1, which
// is no model's, where they are of another shape: it is refused with that of all others.
static int64_t rows_of_scales(const SafeEntry *scales, int64_t width) {
    const uint64_t bytes = scales->end - scales->begin;
    const uint64_t row = (uint64_t)width * sizeof(float);
    const bool are_rows = scales->type == SAFE_F32 && scales->ndim == 2 &&
                          scales->shape[1] == width && bytes >= row &&
                          (uint64_t)scales->shape[0] == bytes / row;
    return are_rows ? scales->shape[0] : 1;
}

// What is rounded by chance goes by the steps that ended, which a replay does not count. Layers may
// have been set to fp8 by orders, which it does not see, and the other way round: there is room for
// the scales of the file, and none is left over of the replay.
static bool ready_scales(const Checkpoint *checkpoint, Engine *engine, Error *error) {
    const char *ended = checkpoint_note(checkpoint, "chances");
    engine->ended = ended ? strtoull(ended, NULL, 10) : 0;
    engine->chances = 0;
    const SafeEntry *scales = safe_header_find(safe_header(checkpoint->file), "scales");
    if (scales)
        return delayed_make(engine, rows_of_scales(scales, delayed_width(engine)), error);
    delayed_clear(&engine->delayed);
    return true;
}

// ---- the whole ----------------------------------------------------------------------------------

bool checkpoint_restore(Checkpoint *checkpoint, const CheckpointTraining *training, Error *error) {
    PieceList list;
    const Inventory *inventory = training->inventory;
    if (!ready_scales(checkpoint, training->engine, error) ||
        !pieces_collect(&list, training->engine, inventory, false, error))
        return false;
    // At the end of a script nothing is trained any more, and what trained may be gone.
    bool done =
        check_model(checkpoint, &list, training->settings, error) &&
        (training->extra->at_end || check_state(checkpoint, &list, error)) &&
        check_positions(checkpoint, training, error) &&
        restore_rules(checkpoint, inventory, error) && fill(checkpoint, &list, inventory, error) &&
        restore_rates(checkpoint, inventory, error) &&
        restore_layers(checkpoint, training->engine->device, training->engine->policy, error) &&
        restore_recipe(checkpoint, training->engine->policy, error);
    pieces_clear(&list);
    return done;
}

// ---- weights alone ------------------------------------------------------------------------------

double checkpoint_scale_of_weights(const SafeFile *file) {
    const SafeHeader *header = safe_header(file);
    const char *scale = safe_header_note(header, "scale");
    return scale && safe_header_find(header, "scaler0/state") ? strtod(scale, NULL) : 0;
}

bool checkpoint_load_weights(SafeFile *file, Inventory *inventory, int first, Error *error) {
    const SafeHeader *header = safe_header(file);
    bool done = check_weights(header, inventory, first, error);
    for (int i = first; done && i < inventory->named_count; i++) {
        const NamedTensor *named = &inventory->named[i];
        char *name = piece_name_of(named);
        if (!name)
            return error_fail(error, ERROR_MEMORY, "no memory to load weights");
        const SafeEntry *entry = check_entry_of(header, named, name);
        Piece piece = piece_of_tensor(name, PIECE_WEIGHT, named->tensor);
        done = !entry || piece_put(&piece, file, entry, error);
        free(name);
    }
    return done;
}
