#include "gpu/record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Calls begin at multiples of the unit. No step has more than the most: who never ends one is not
// to fill the host's memory.
enum { UNIT = 16, FIRST_ROOM = 1 << 14, MOST_BYTES = 16 << 20 };

// What lies before the bytes of a call, behind which lie those that it is done by instead.
typedef struct Head {
    GpuPut put;
    const char *name;
    size_t bytes;
    GpuInstead instead;
    size_t unused; // so that it is a multiple of the unit
} Head;

static_assert(sizeof(Head) % UNIT == 0, "what a call is told lies at multiples of the unit");

static size_t rounded(size_t bytes) {
    return (bytes + UNIT - 1) / UNIT * UNIT;
}

void gpu_record_clear(GpuRecord *record) {
    free(record->bytes);
    *record = (GpuRecord){0};
}

static bool make_room(GpuRecord *record, size_t bytes) {
    size_t room = record->room ? record->room : FIRST_ROOM;
    if (bytes <= record->room)
        return true;
    if (bytes > MOST_BYTES)
        return false;
    while (room < bytes)
        room *= 2;
    char *larger = realloc(record->bytes, room);
    if (!larger)
        return false;
    record->bytes = larger;
    record->room = room;
    return true;
}

size_t gpu_record_behind(size_t place, const GpuCall *call) {
    return place + sizeof(Head) + rounded(call->bytes) + rounded(call->instead.bytes);
}

bool gpu_record_add(GpuRecord *record, const GpuCall *call) {
    size_t end = gpu_record_behind(record->used, call);
    if (!make_room(record, end))
        return false;
    const Head head = {call->put, call->name, call->bytes, call->instead, 0};
    char *at = record->bytes + record->used, *told = at + sizeof head + rounded(call->bytes);
    memset(at, 0, end - record->used);
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, call->what, call->bytes);
    if (call->instead.bytes)
        memcpy(told, call->instead.told, call->instead.bytes);
    record->used = end;
    return true;
}

bool gpu_record_copy(GpuRecord *record, const GpuRecord *from, size_t bytes) {
    if (!make_room(record, bytes))
        return false;
    if (bytes)
        memcpy(record->bytes, from->bytes, bytes);
    record->used = bytes;
    return true;
}

bool gpu_record_at(const GpuRecord *record, size_t place, GpuCall *call) {
    Head head;
    if (place >= record->used)
        return false;
    memcpy(&head, record->bytes + place, sizeof head);
    const char *what = record->bytes + place + sizeof head;
    *call = (GpuCall){head.put, head.name, what, head.bytes, head.instead};
    call->instead.told = what + rounded(head.bytes);
    return true;
}

bool gpu_record_has(const GpuRecord *record, size_t place, const GpuCall *call) {
    GpuCall there;
    return gpu_record_at(record, place, &there) && there.put == call->put &&
           there.bytes == call->bytes && there.instead.bytes == call->instead.bytes &&
           memcmp(there.what, call->what, call->bytes) == 0;
}

bool gpu_record_is(const GpuRecord *record, const GpuRecord *other) {
    GpuCall call;
    size_t place = 0;
    if (record->used != other->used)
        return false;
    for (; gpu_record_at(record, place, &call); place = gpu_record_behind(place, &call))
        if (!gpu_record_has(other, place, &call))
            return false;
    return true;
}
