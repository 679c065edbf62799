#include "kernel/report.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/allocator.h"

enum { NUMBER_BYTES = sizeof(double), ALIGNMENT = 64 };

typedef struct Piece {
    const void *source;
    size_t bytes, offset;      // in the place's memory
    char number[NUMBER_BYTES]; // of a short stretch of a device that is done at once
} Piece;

typedef struct Place {
    Piece *pieces;
    int count, room;
    char *memory; // of the host; NULL: none
    size_t bytes, size;
} Place;

struct Reports {
    Device *device;
    const ReportKernels *kernels; // NULL: the device is done when a call returns
    Place *places;
    int size;
    int first, under_way; // the oldest that was posted; how many were
    int begun;            // that is put together
};

Reports *reports_new(Device *device, Error *error) {
    Reports *reports = calloc(1, sizeof *reports);
    const ReportKernels *kernels = device->backend->report;
    int size = kernels ? kernels->late + 1 : 1;
    if (reports)
        reports->places = calloc((size_t)size, sizeof *reports->places);
    if (!reports || !reports->places) {
        free(reports);
        error_fail(error, ERROR_MEMORY, "no memory for the reports of a device");
        return NULL;
    }
    reports->device = device;
    reports->kernels = kernels;
    reports->size = size;
    return reports;
}

void reports_free(Reports *reports) {
    if (!reports)
        return;
    for (int place; (place = reports_take(reports, true)) >= 0;)
        reports_done(reports, place);
    for (int i = 0; i < reports->size; i++) {
        if (reports->places[i].memory)
            reports->kernels->memory_free(reports->device, reports->places[i].memory,
                                          reports->places[i].size);
        free(reports->places[i].pieces);
    }
    free(reports->places);
    free(reports);
}

int reports_places(const Reports *reports) {
    return reports->size;
}

int reports_under_way(const Reports *reports) {
    return reports->under_way;
}

int reports_begin(Reports *reports) {
    assert(reports->under_way < reports->size);
    reports->begun = (reports->first + reports->under_way) % reports->size;
    Place *place = &reports->places[reports->begun];
    place->count = 0;
    place->bytes = 0;
    return reports->begun;
}

static bool more_pieces(Place *place, Error *error) {
    int room = place->room ? 2 * place->room : 16;
    Piece *pieces = realloc(place->pieces, (size_t)room * sizeof *pieces);
    if (!pieces)
        return error_fail(error, ERROR_MEMORY, "no memory for the report of a step");
    place->pieces = pieces;
    place->room = room;
    return true;
}

bool reports_add(Reports *reports, const void *source, size_t bytes, int *piece, Error *error) {
    Place *place = &reports->places[reports->begun];
    if (place->count == place->room && !more_pieces(place, error))
        return false;
    *piece = place->count++;
    place->pieces[*piece] = (Piece){.source = source, .bytes = bytes, .offset = place->bytes};
    place->bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return true;
}

static bool is_under_way(const Reports *reports, int number) {
    return (number - reports->first + reports->size) % reports->size < reports->under_way;
}

static bool place_grow(const Reports *reports, Place *place, size_t size) {
    const ReportKernels *kernels = reports->kernels;
    if (place->memory)
        kernels->memory_free(reports->device, place->memory, place->size);
    place->memory = kernels->memory_new(reports->device, size);
    place->size = place->memory ? size : 0;
    allocator_note_asked(reports->device->allocator);
    return place->memory != NULL;
}

// Where one place is too small the others grow with it, so that no later report asks for more than
// this one: but for those under way, and where there is no memory, as long as it is not needed.
static bool places_grow(const Reports *reports, Error *error) {
    Place *begun = &reports->places[reports->begun];
    if (begun->bytes <= begun->size)
        return true;
    size_t size = 2 * begun->bytes;
    bool has_room = place_grow(reports, begun, size);
    for (int i = 0; has_room && i < reports->size; i++)
        if (!is_under_way(reports, i) && reports->places[i].size < size)
            (void)place_grow(reports, &reports->places[i], size);
    return has_room ||
           (device_works(reports->device, error) &&
            error_fail(error, ERROR_MEMORY, "no memory for the report of a step: %zu bytes", size));
}

bool reports_post(Reports *reports, Error *error) {
    Device *device = reports->device;
    const ReportKernels *kernels = reports->kernels;
    int number = reports->begun;
    Place *place = &reports->places[number];
    if (kernels && !places_grow(reports, error))
        return false;
    for (int i = 0; i < place->count; i++) {
        Piece *piece = &place->pieces[i];
        if (kernels)
            kernels->copy(device, place->memory + piece->offset, piece->source, piece->bytes);
        else if (piece->bytes <= NUMBER_BYTES)
            memcpy(piece->number, piece->source, piece->bytes);
    }
    if (kernels)
        kernels->mark(device, number);
    reports->under_way++;
    return true;
}

int reports_take(Reports *reports, bool drains) {
    const ReportKernels *kernels = reports->kernels;
    if (reports->under_way == 0)
        return -1;
    if (!kernels)
        return reports->first;
    if (drains)
        reports->device->waits++;
    bool waits = drains || reports->under_way == reports->size;
    return kernels->is_past(reports->device, reports->first, waits) ? reports->first : -1;
}

const void *reports_piece(const Reports *reports, int place, int piece) {
    const Place *taken = &reports->places[place];
    const Piece *wanted = &taken->pieces[piece];
    if (reports->kernels)
        return taken->memory + wanted->offset;
    return wanted->bytes <= NUMBER_BYTES ? wanted->number : wanted->source;
}

void reports_done(Reports *reports, int place) {
    assert(place == reports->first && reports->under_way > 0);
    reports->first = (place + 1) % reports->size;
    reports->under_way--;
}
