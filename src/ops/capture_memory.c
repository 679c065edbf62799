// What a watched step is told: in which memory it works, and that as one number.
#include <stdio.h>
#include <stdlib.h>

#include "base/mix.h"
#include "ops/capture_private.h"

// What is held between two steps lies beside what those need that are called: a limit on memory
// twice over. A step that works on more than this computes for so long that script and engine
// beside it are 2 % of it (docs/speed.md), which is all that could be gained.
#define MOST_BYTES ((size_t)4 << 20)

// ---- the step as one number, and its lists -----------------------------------------------------

void capture_note_why(Capture *capture, const char *why) {
    if (!capture->why[0])
        snprintf(capture->why, sizeof capture->why, "%s", why);
}

// Room for one more in a list; false: there is none, and the step is no more than watched.
bool capture_grow(Capture *capture, void **items, int count, int *room, size_t size) {
    if (count < *room)
        return true;
    int wanted = *room ? *room * 2 : 32;
    void *larger = realloc(*items, (size_t)wanted * size);
    if (!larger) {
        capture_note_why(capture, "there is no memory to keep it");
        return false;
    }
    *items = larger;
    *room = wanted;
    return true;
}

// ---- memory -------------------------------------------------------------------------------------

void capture_mix(Capture *capture, const void *data, size_t size) {
    capture->mixed = mix_bytes(capture->mixed, data, size);
}

static const CapturedMemory *memory_known(const Capture *capture, const MemoryPlace *place) {
    for (int i = capture->memory_count - 1; i >= 0; i--)
        if (capture->memory[i].memory == place->memory &&
            capture->memory[i].number == place->number)
            return &capture->memory[i];
    return NULL;
}

static bool may_be_read(const Capture *capture, const MemoryPlace *place) {
    const bool is_kept = place->purpose == MEMORY_WEIGHTS || place->purpose == MEMORY_MASTERS ||
                         place->purpose == MEMORY_OPTIMIZER;
    return is_kept || capture->given.is_state(capture->given.context, place->memory);
}

bool capture_is_state(const Capture *capture, const void *address) {
    MemoryPlace place;
    return allocator_locate(capture->engine->device->allocator, address, &place) &&
           may_be_read(capture, &place);
}

static const CapturedMemory *memory_of(Capture *capture, const MemoryPlace *place) {
    const CapturedMemory *known = memory_known(capture, place);
    if (known)
        return known;
    const bool is_outside = place->number <= capture->takings;
    if (is_outside && !may_be_read(capture, place)) {
        const bool is_gradient = place->purpose == MEMORY_GRADIENTS;
        capture_note_why(capture, is_gradient ? CAPTURE_ADDS
                                              : "it reads a tensor from outside: hand it to "
                                                "run:step behind the function");
        return NULL;
    }
    if (!GROW(capture, memory))
        return NULL;
    capture->memory[capture->memory_count] =
        (CapturedMemory){place->memory, place->number, is_outside, NULL};
    return &capture->memory[capture->memory_count++];
}

bool capture_made(const Capture *capture, const Tensor *tensor) {
    MemoryPlace place;
    return allocator_locate(capture->engine->device->allocator, tensor->storage->data, &place) &&
           place.number > capture->takings;
}

int capture_input_at(const Capture *capture, const void *address) {
    for (int i = 0; i < capture->input_count; i++) {
        const Storage *storage = capture->inputs[i].storage;
        if ((uintptr_t)address - (uintptr_t)storage->data < storage->bytes)
            return i;
    }
    return -1;
}

// Which input of the step, or which memory as it came up, an address lies in; and where.
void capture_note_address(Capture *capture, const void *address, int at, bool is_output) {
    MemoryPlace place;
    const int input = capture_input_at(capture, address);
    if (input >= 0) {
        const ptrdiff_t offset =
            (const char *)address - (const char *)capture->inputs[input].view.data;
        if (is_output)
            capture_note_why(capture, "it writes over a tensor that it was handed");
        else if (GROW(capture, uses))
            capture->uses[capture->uses_count++] =
                (InputUse){capture->calls_count, at, input, offset};
        capture_mix(capture, &input, sizeof input);
        capture_mix(capture, &offset, sizeof offset);
        return;
    }
    if (!allocator_locate(capture->engine->device->allocator, address, &place)) {
        capture_note_why(capture, "it reads memory that is not the device's");
        return;
    }
    const CapturedMemory *memory = memory_of(capture, &place);
    if (!memory)
        return;
    const uint64_t which =
        memory->is_outside ? memory->number : (uint64_t)(memory - capture->memory) + 1;
    const ptrdiff_t offset = (const char *)address - (const char *)memory->memory;
    capture_mix(capture, &memory->is_outside, sizeof memory->is_outside);
    capture_mix(capture, &which, sizeof which);
    capture_mix(capture, &offset, sizeof offset);
}

void capture_note_view(Capture *capture, const View *view, int at, bool is_output) {
    const size_t size = (size_t)view->ndim * sizeof *view->shape;
    capture_mix(capture, &view->format, sizeof view->format);
    capture_mix(capture, &view->ndim, sizeof view->ndim);
    capture_mix(capture, view->shape, size);
    capture_mix(capture, view->stride, size);
    if (view->data)
        capture_note_address(capture, view->data, at, is_output);
}

static bool comes_again(const Capture *capture, int i) {
    for (int k = i + 1; k < capture->memory_count; k++)
        if (capture->memory[k].memory == capture->memory[i].memory)
            return true;
    return false;
}

// Where it lies at the end is where the next step finds it: memory that somebody else has got since
// is not the step's any more, nor is what the step itself has let go of.
static bool is_there(const Capture *capture, size_t *bytes) {
    const Allocator *allocator = capture->engine->device->allocator;
    MemoryPlace place;
    for (int i = 0; i < capture->memory_count; i++) {
        const CapturedMemory *memory = &capture->memory[i];
        if (!memory->is_outside && comes_again(capture, i))
            continue;
        if (!allocator_locate(allocator, memory->memory, &place) ||
            ((place.in_use || memory->is_outside) && place.number != memory->number) ||
            (memory->is_outside && !place.in_use))
            return false;
        *bytes += memory->is_outside ? 0 : place.bytes;
    }
    return true;
}

bool capture_pin_memory(Capture *capture) {
    Allocator *allocator = capture->engine->device->allocator;
    size_t bytes = 0;
    if (!is_there(capture, &bytes))
        return false;
    if (bytes > MOST_BYTES) {
        capture->is_large = true;
        return false;
    }
    for (int i = 0; i < capture->memory_count; i++)
        if (!comes_again(capture, i))
            capture->memory[i].pin = allocator_pin(allocator, capture->memory[i].memory);
    return true;
}
