// The pieces of a checkpoint: the one list that saving writes and restoring fills, so that the two
// cannot come to differ.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint_private.h"
#include "checkpoint/replay.h"
#include "grad/saved.h"
#include "number/inline.h"
#include "optim/state.h"

// ---- the list -----------------------------------------------------------------------------------

static bool add(PieceList *list, Piece piece) {
    Piece *pieces = list->pieces;
    if (piece.name && list->count == list->room) {
        int room = list->room ? list->room * 2 : 64;
        pieces = realloc(list->pieces, (size_t)room * sizeof *pieces);
        if (pieces) {
            list->pieces = pieces;
            list->room = room;
        }
    }
    if (!piece.name || !pieces) {
        free(piece.name);
        free(piece.numbers);
        return error_fail(list->error, ERROR_MEMORY, "no memory to put a checkpoint together");
    }
    pieces[list->count++] = piece;
    Storage *storage = piece.tensor ? piece.tensor->storage : piece.storage;
    if (storage)
        storage->marks |= MARK_LISTED;
    return true;
}

void pieces_clear(PieceList *list) {
    for (int i = 0; i < list->count; i++) {
        Piece *piece = &list->pieces[i];
        Storage *storage = piece->tensor ? piece->tensor->storage : piece->storage;
        if (storage)
            storage->marks &= (uint8_t)~MARK_LISTED;
        free(piece->name);
        free(piece->numbers);
    }
    free(list->pieces);
    *list = (PieceList){.count = 0};
}

static __attribute__((format(printf, 1, 2))) char *name_of(const char *format, ...) {
    char text[512], *copy;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < (int)sizeof text)
        return strdup(text);
    copy = malloc((size_t)length + 1);
    va_start(arguments, format);
    if (copy)
        vsnprintf(copy, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return copy;
}

Piece piece_of_tensor(char *name, PieceRole role, Tensor *tensor) {
    Piece piece = {.name = name,
                   .role = role,
                   .type = safe_type_of(tensor->view.format),
                   .ndim = tensor->view.ndim,
                   .tensor = tensor};
    memcpy(piece.shape, tensor->view.shape, sizeof piece.shape);
    return piece;
}

static Piece piece_of_storage(char *name, Storage *storage) {
    return (Piece){.name = name,
                   .role = PIECE_MEMORY,
                   .type = SAFE_U8,
                   .ndim = 1,
                   .shape = {(int64_t)storage->bytes},
                   .storage = storage};
}

static bool add_tensor(PieceList *list, PieceRole role, Tensor *tensor, char *name) {
    return !tensor ? (free(name), true) : add(list, piece_of_tensor(name, role, tensor));
}

static bool add_memory(PieceList *list, const Tensor *tensor, char *name) {
    Storage *storage = tensor ? tensor->storage : NULL;
    uint8_t marks = storage ? storage->marks : 0;
    if (list->saves ? (marks & (MARK_LATE | MARK_LISTED)) == MARK_LATE : marks & MARK_HOLLOW)
        return add(list, piece_of_storage(name, storage));
    free(name);
    return true;
}

static double *add_numbers(PieceList *list, char *name, int count, void *owner,
                           void (*put)(void *owner, const double *numbers)) {
    double *numbers = calloc((size_t)count, sizeof *numbers);
    Piece piece = {.name = name,
                   .role = PIECE_STATE,
                   .type = SAFE_F64,
                   .ndim = 1,
                   .shape = {count},
                   .numbers = numbers,
                   .owner = owner,
                   .put = put};
    if (!numbers) {
        free(name);
        error_fail(list->error, ERROR_MEMORY, "no memory to put a checkpoint together");
        return NULL;
    }
    return add(list, piece) ? numbers : NULL;
}

// ---- what there is ------------------------------------------------------------------------------

char *piece_name_of(const NamedTensor *named) {
    return name_of("%s/%s", named->is_buffer ? "buffer" : "weight", named->name);
}

static bool add_named(PieceList *list, const Inventory *inventory) {
    for (int i = 0; i < inventory->named_count; i++) {
        const NamedTensor *named = &inventory->named[i];
        char *name = piece_name_of(named);
        bool dense = view_is_dense(&named->tensor->view);
        if (!(dense ? add_tensor(list, PIECE_WEIGHT, named->tensor, name)
                    : add_memory(list, named->tensor, name)))
            return false;
    }
    return true;
}

enum { NUMBER_SIZE = 16 };

// What a tensor of an optimizer or an average is called below it: its name, however long, or its
// number.
static const char *part_name(const Inventory *inventory, const Tensor *tensor, int i,
                             char number[NUMBER_SIZE]) {
    const NamedTensor *named = inventory_find(inventory, tensor);
    snprintf(number, NUMBER_SIZE, "%d", i);
    return named ? named->name : number;
}

static void put_optimizer(void *owner, const double *numbers) {
    optimizer_set_numbers(owner, numbers);
}

static void put_steps(void *owner, const double *numbers) {
    optimizer_set_steps(owner, numbers);
}

static void put_factors(void *owner, const double *numbers) {
    optimizer_set_factors(owner, numbers);
}

// What older checkpoints lack; it comes after the optimizer's state, which sets what they had.
static bool add_younger(PieceList *list, int n, Optimizer *optimizer) {
    double *steps = add_numbers(list, name_of("optimizer%d/steps", n),
                                optimizer_parameter_count(optimizer), optimizer, put_steps);
    if (!steps)
        return false;
    list->pieces[list->count - 1].is_optional = true;
    double *factors = add_numbers(list, name_of("optimizer%d/factors", n),
                                  optimizer_group_count(optimizer), optimizer, put_factors);
    if (!factors)
        return false;
    list->pieces[list->count - 1].is_optional = true;
    list->pieces[list->count - 1].is_setting = true;
    if (list->saves) {
        optimizer_get_steps(optimizer, steps);
        optimizer_get_factors(optimizer, factors);
    }
    return true;
}

static bool add_optimizer(PieceList *list, const Inventory *inventory, int n,
                          Optimizer *optimizer) {
    static const char *const moments[2] = {"m", "v"};
    double *numbers = add_numbers(list, name_of("optimizer%d/state", n), OPTIMIZER_NUMBERS,
                                  optimizer, put_optimizer);
    if (!numbers)
        return false;
    if (list->saves)
        optimizer_get_numbers(optimizer, numbers);
    if (!add_younger(list, n, optimizer))
        return false;
    for (int i = 0; i < optimizer_parameter_count(optimizer); i++) {
        Tensor *parameter = optimizer_parameter(optimizer, i);
        char number[NUMBER_SIZE];
        const char *part = part_name(inventory, parameter, i, number);
        if (!inventory_find(inventory, parameter) &&
            !add_tensor(list, PIECE_STATE, parameter, name_of("optimizer%d/weight/%s", n, part)))
            return false;
        for (int m = 0; m < 2; m++)
            if (!add_tensor(list, PIECE_STATE, optimizer_moment(optimizer, i, m),
                            name_of("optimizer%d/%s/%s", n, moments[m], part)))
                return false;
    }
    return true;
}

static void put_scaler(void *owner, const double *numbers) {
    scaler_set_numbers(owner, numbers);
}

static bool add_scaler(PieceList *list, int n, Scaler *scaler) {
    double *numbers =
        add_numbers(list, name_of("scaler%d/state", n), SCALER_NUMBERS, scaler, put_scaler);
    if (!numbers)
        return false;
    if (list->saves)
        scaler_get_numbers(scaler, numbers);
    Tensor *kept;
    for (int i = 0; scaler_kept_scale(scaler, i, &kept); i++)
        if (!add_tensor(list, PIECE_STATE, kept, name_of("scaler%d/kept/%d", n, i)))
            return false;
    return true;
}

static bool add_average(PieceList *list, const Inventory *inventory, int n,
                        const WeightAverage *average) {
    Tensor *parameter, *mean, *aside;
    for (int i = 0; weight_average_at(average, i, &parameter, &mean, &aside); i++) {
        char number[NUMBER_SIZE];
        const char *part = part_name(inventory, parameter, i, number);
        if (!add_tensor(list, PIECE_STATE, mean, name_of("average%d/%s", n, part)) ||
            !add_tensor(list, PIECE_STATE, aside, name_of("average%d/aside/%s", n, part)))
            return false;
    }
    return true;
}

static bool add_members(PieceList *list, const Inventory *inventory) {
    for (int kind = 0; kind < MEMBER_KINDS; kind++) {
        const MemberList *members = &inventory->lists[kind];
        for (int n = 0; n < members->count; n++) {
            void *member = members->members[n];
            bool done = !member || kind == MEMBER_LOADER ? true
                        : kind == MEMBER_OPTIMIZER       ? add_optimizer(list, inventory, n, member)
                        : kind == MEMBER_SCALER          ? add_scaler(list, n, member)
                                                         : add_average(list, inventory, n, member);
            if (!done)
                return false;
        }
    }
    return true;
}

// Running statistics that may still have to be taken back.
static bool add_changes(PieceList *list, const Engine *engine) {
    for (int i = 0; i < engine->change_count; i++) {
        const BufferChange *change = &engine->changes[i];
        if (!add_memory(list, change->before_own, name_of("before/%d/own", i)) ||
            !add_memory(list, change->before_any, name_of("before/%d/any", i)))
            return false;
    }
    return true;
}

static bool add_live(PieceList *list, const Inventory *inventory) {
    for (int i = 0; i < inventory->live_count; i++) {
        const LiveTensor *live = &inventory->live[i];
        if (!add_memory(list, live->tensor, name_of("live/%" PRIu64, live->number)) ||
            !add_memory(list, live->tensor->grad, name_of("live/%" PRIu64 "/grad", live->number)))
            return false;
        int n = 0;
        for (const GradPart *part = live->tensor->apart; part; part = part->next)
            if (!add_memory(list, part->grad,
                            name_of("live/%" PRIu64 "/apart/%d", live->number, n++)))
                return false;
    }
    return true;
}

// What graphs hold that the script may still walk back.
static bool add_graphs(PieceList *list, const Inventory *inventory) {
    int root_count = inventory->live_count, count;
    Tensor **roots = malloc(((size_t)root_count + 1) * sizeof *roots);
    if (!roots)
        return error_fail(list->error, ERROR_MEMORY, "no memory to put a checkpoint together");
    for (int i = 0; i < root_count; i++)
        roots[i] = inventory->live[i].tensor;
    SavedTensor *saved;
    bool done = graph_list_saved(roots, root_count, &saved, &count, list->error);
    free(roots);
    if (!done)
        return false;
    for (int i = 0; done && i < count; i++)
        done = add_memory(list, saved[i].tensor,
                          name_of("graph/%" PRIu64 "/%d", saved[i].node, saved[i].index));
    free(saved);
    return done;
}

// Of layers in fp8, from the steps before; a file of a run that had none yet lacks them.
static bool add_scales(PieceList *list, const Engine *engine) {
    if (!engine->delayed.state)
        return true;
    Piece piece = piece_of_tensor(name_of("scales"), PIECE_STATE, engine->delayed.state);
    piece.is_optional = true;
    return add(list, piece);
}

bool pieces_collect(PieceList *list, const Engine *engine, const Inventory *inventory, bool saves,
                    Error *error) {
    *list = (PieceList){.saves = saves, .error = error};
    if (add_named(list, inventory) && add_members(list, inventory) && add_changes(list, engine) &&
        add_scales(list, engine) && add_live(list, inventory) && add_graphs(list, inventory))
        return true;
    pieces_clear(list);
    return false;
}

// ---- contents -----------------------------------------------------------------------------------

size_t piece_bytes(const Piece *piece) {
    size_t bytes = safe_type_bytes(piece->type);
    for (int i = 0; i < piece->ndim; i++)
        bytes *= (size_t)piece->shape[i];
    return bytes;
}

bool piece_get(const Piece *piece, void *out, Error *error) {
    if (piece->numbers) {
        memcpy(out, piece->numbers, piece_bytes(piece));
        return true;
    }
    if (!piece->storage)
        return tensor_read(piece->tensor, out, error);
    device_read(piece->storage->device, out, piece->storage->data, piece->storage->bytes);
    return device_check(piece->storage->device, error);
}

// The format of a floating type; FORMAT_COUNT for the others.
static Format floating_format(SafeType type) {
    Format format = safe_type_format(type);
    return format != FORMAT_COUNT && format_is_floating(format) ? format : FORMAT_COUNT;
}

bool piece_fits(const Piece *piece, const SafeEntry *entry) {
    bool same = entry->ndim == piece->ndim;
    for (int i = 0; same && i < piece->ndim; i++)
        same = entry->shape[i] == piece->shape[i];
    return same && (entry->type == piece->type ||
                    (piece->tensor && floating_format(entry->type) != FORMAT_COUNT &&
                     floating_format(piece->type) != FORMAT_COUNT));
}

// Widens `count` numbers of a floating type to fp32.
static void widen(SafeType type, const void *bytes, float *out, int64_t count) {
    Format format = floating_format(type);
    size_t size = safe_type_bytes(type);
    for (int64_t i = 0; i < count; i++) // a subnormal too, which this thread would flush
        out[i] = number_fp64_to_fp32(format_load(format, (const char *)bytes + (size_t)i * size));
}

static bool put_converted(const Piece *piece, SafeType type, const void *bytes, Error *error) {
    Tensor *target = piece->tensor;
    int64_t count = tensor_count(target);
    float *wide = malloc((size_t)(count ? count : 1) * sizeof *wide);
    if (!wide)
        return error_fail(error, ERROR_MEMORY, "%.80s: no memory to convert it", piece->name);
    widen(type, bytes, wide, count);
    Tensor *source = tensor_from_host(tensor_device(target), FORMAT_FP32, piece->ndim, piece->shape,
                                      wide, MEMORY_WORKSPACE, error);
    free(wide);
    bool done = source && tensor_copy_into(target, source, error);
    tensor_release(source);
    return done;
}

static bool put_bytes(const Piece *piece, SafeType type, const void *bytes, Error *error) {
    Storage *storage = piece->tensor ? piece->tensor->storage : piece->storage;
    if (piece->numbers) {
        piece->put(piece->owner, bytes);
        return true;
    }
    if (piece->storage)
        device_write(storage->device, storage->data, bytes, storage->bytes);
    else if (type != piece->type && !put_converted(piece, type, bytes, error))
        return false;
    else if (type == piece->type)
        device_write(storage->device, piece->tensor->view.data, bytes, piece_bytes(piece));
    storage->marks &= (uint8_t)~MARK_HOLLOW;
    if (piece->tensor) {
        tensor_mark(piece->tensor); // not tensor_written: graphs that saved it saved this
        parameter_touch(piece->tensor);
    }
    return true;
}

bool piece_put(const Piece *piece, SafeFile *file, const SafeEntry *entry, Error *error) {
    size_t bytes = (size_t)(entry->end - entry->begin);
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        return error_fail(error, ERROR_MEMORY, "%.80s: no memory to load its %zu bytes",
                          piece->name, bytes);
    bool done =
        safe_read(file, entry, memory, error) && put_bytes(piece, entry->type, memory, error);
    free(memory);
    return done;
}
