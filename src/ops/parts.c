#include "ops/parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { EACH = PROFILE_WAYS * PROFILE_WORKS };

bool parts_make_room(ProfileParts *parts, int layers) {
    const size_t each = EACH;
    if (layers <= parts->layers)
        return true;
    ProfilePart *room = realloc(parts->each, (size_t)layers * each * sizeof *room);
    if (!room)
        return false;
    parts->each = room;
    int *touched = realloc(parts->touched, (size_t)layers * each * sizeof *touched);
    if (!touched)
        return false;
    parts->touched = touched;
    memset(room + (size_t)parts->layers * each, 0,
           (size_t)(layers - parts->layers) * each * sizeof *room);
    parts->layers = layers;
    return true;
}

void parts_clear(ProfileParts *parts) {
    free(parts->each);
    free(parts->touched);
    *parts = (ProfileParts){.layers = 0};
}

ProfilePart *parts_touch(ProfileParts *parts, int layer, ProfileWay way, int work) {
    int index = (layer * PROFILE_WAYS + (int)way) * PROFILE_WORKS + work;
    ProfilePart *part = &parts->each[index];
    if (part->calls++ == 0)
        parts->touched[parts->touched_count++] = index;
    return part;
}

ProfilePlace parts_place(int index) {
    return (ProfilePlace){.layer = index / EACH,
                          .work = index % PROFILE_WORKS,
                          .way = (ProfileWay)(index / PROFILE_WORKS % PROFILE_WAYS)};
}

void parts_forget(ProfileParts *step) {
    for (int i = 0; i < step->touched_count; i++)
        step->each[step->touched[i]] = (ProfilePart){.calls = 0};
    step->touched_count = 0;
}

void parts_add(ProfileParts *sum, ProfileParts *step) {
    for (int i = 0; i < step->touched_count; i++) {
        const ProfilePart *part = &step->each[step->touched[i]];
        ProfilePlace place = parts_place(step->touched[i]);
        ProfilePart *into = parts_touch(sum, place.layer, place.way, place.work);
        const ProfilePart before = *into;
        *into = *part;
        into->calls += before.calls - 1; // the touch
        into->seconds += before.seconds;
        into->multiplications += before.multiplications;
        into->bytes += before.bytes;
        if (before.columns > 0 && (into->columns == 0 || before.columns < into->columns))
            into->columns = before.columns; // 0: no product of it was counted
    }
    parts_forget(step);
}

const char *parts_work_name(int work) {
    static const char *const names[] = {[WORK_COPY - OP_COUNT] = "copy",
                                        [WORK_BATCH - OP_COUNT] = "next batch",
                                        [WORK_SCAN - OP_COUNT] = "scan of gradients",
                                        [WORK_CLIP - OP_COUNT] = "clipping",
                                        [WORK_UPDATE - OP_COUNT] = "update of weights",
                                        [WORK_AVERAGE - OP_COUNT] = "average of weights"};
    static_assert(sizeof names / sizeof *names == PROFILE_WORKS - OP_COUNT, "each has a name");
    return work < (int)OP_COUNT ? op_table[work].name : names[work - (int)OP_COUNT];
}
