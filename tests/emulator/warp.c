// What lanes of a warp do together. A lane that comes leaves pointers to its operands and waits;
// the last of the mask computes for all.
#include <string.h>

#include "tests/emulator/block.h"
#include "tests/emulator/races.h"

// Groups of lanes of one warp may meet apart from each other, up to so many at a time.
enum { MOST_GROUPS = 8 };

typedef struct Group {
    unsigned mask, arrived; // mask 0: nobody is here
    EmulatorMeeting what;
    EmulatorPlace place;
} Group;

static Group groups[MOST_WARPS][MOST_GROUPS];

// What __syncwarp orders by: of each warp every other meeting has another key.
static const char (*keys)[2];
static unsigned met[MOST_WARPS];

void emulator_warps_begin(unsigned threads, unsigned arena) {
    static const char all_keys[RACE_ARENAS][MOST_WARPS][2];
    keys = all_keys[arena];
    memset(groups, 0, (threads + WARP - 1) / WARP * sizeof groups[0]);
}

static Group *group_of(const BlockThread *self, EmulatorPlace place, EmulatorMeeting what,
                       unsigned mask) {
    Group *group = groups[self->seen.warp], *free_one = NULL;
    for (int i = 0; i < MOST_GROUPS; i++) {
        if (group[i].mask == mask) {
            if (group[i].what != what || group[i].place.line != place.line)
                emulator_fail(place, EMULATOR_WRONG_LAUNCH,
                              "lanes of one mask (%08x) meet here and at line %d", mask,
                              group[i].place.line);
            return &group[i];
        }
        if (!group[i].mask)
            free_one = &group[i];
    }
    if (!free_one)
        emulator_fail(place, EMULATOR_WRONG_LAUNCH, "too many groups of one warp meet at a time");
    *free_one = (Group){mask, 0, what, place};
    return free_one;
}

// ---- what is computed of all --------------------------------------------------------------------

static unsigned join(EmulatorMeeting what, unsigned lane, unsigned all, unsigned value) {
    switch (what) {
    case MEETING_BALLOT: return all | (unsigned)(value != 0) << lane;
    case MEETING_ADD: return all + value;
    case MEETING_MIN: return value < all ? value : all;
    case MEETING_MAX: return value > all ? value : all;
    case MEETING_AND: return all & value;
    case MEETING_OR: return all | value;
    case MEETING_XOR: return all ^ value;
    case MEETING_MIN_SIGNED: return (int)value < (int)all ? value : all;
    case MEETING_MAX_SIGNED: return (int)value > (int)all ? value : all;
    default: return all;
    }
}

// What the first value is joined with.
static unsigned start_of(EmulatorMeeting what) {
    switch (what) {
    case MEETING_MIN:
    case MEETING_AND: return ~0u;
    case MEETING_MIN_SIGNED: return 0x7FFFFFFF;
    case MEETING_MAX_SIGNED: return 0x80000000;
    default: return 0;
    }
}

static void reduce(EmulatorMeeting what, unsigned mask, BlockThread *warp) {
    unsigned all = start_of(what), value;
    for (unsigned lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1) {
            memcpy(&value, warp[lane].in, sizeof value);
            all = join(what, lane, all, value);
        }
    for (unsigned lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1)
            memcpy(warp[lane].out, &all, sizeof all);
}

// Beyond its part of the warp a lane gets what it gave, but by xor that of lanes before its part.
static unsigned source_of(EmulatorMeeting what, unsigned lane, int argument, unsigned width) {
    unsigned first = lane & ~(width - 1), end = first + width, from;
    switch (what) {
    case MEETING_SHUFFLE: return first + ((unsigned)argument & (width - 1));
    case MEETING_SHUFFLE_XOR: from = lane ^ (unsigned)argument; break;
    case MEETING_SHUFFLE_UP:
        from = lane - (unsigned)argument;
        return from - first < width ? from : lane;
    default: from = lane + (unsigned)argument; break;
    }
    return from < end ? from : lane;
}

// Not by a call, which ThreadSanitizer would take for an access of a thread's.
static void copy(void *to, const void *from, size_t bytes) {
    if (bytes == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, 8);
}

static void shuffle(EmulatorPlace place, EmulatorMeeting what, unsigned mask, BlockThread *warp,
                    size_t bytes, unsigned width) {
    unsigned char value[WARP][8];
    for (unsigned lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1)
            copy(value[lane], warp[lane].in, bytes);
    for (unsigned lane = 0; lane < WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        unsigned from = source_of(what, lane, warp[lane].argument, width);
        if (!(mask >> from & 1))
            emulator_fail(place, EMULATOR_WRONG_LAUNCH,
                          "lane %u reads lane %u, which is not in mask %08x", lane, from, mask);
        copy(warp[lane].out, value[from], bytes);
    }
}

// ---- the meeting --------------------------------------------------------------------------------

static void check_mask(EmulatorPlace place, const EmulatorThread *self, unsigned mask) {
    unsigned lanes = emulator_block.count - self->warp * WARP;
    if (lanes < WARP && mask >> lanes)
        emulator_fail(place, EMULATOR_WRONG_LAUNCH,
                      "mask %08x names lanes that the block does not have", mask);
    if (!(mask >> self->lane & 1))
        emulator_fail(place, EMULATOR_WRONG_LAUNCH, "lane %u is not in its own mask %08x",
                      self->lane, mask);
}

// Wakes the others of the mask, so that they go on in the order in which threads start.
static void wake_others(const BlockThread *self, BlockThread *warp, unsigned mask) {
    bool descending = emulator_block.order[0] < emulator_block.order[1];
    for (unsigned i = 0; i < WARP; i++) {
        unsigned lane = descending ? WARP - 1 - i : i;
        if (mask >> lane & 1 && &warp[lane] != self)
            emulator_wake(&warp[lane]);
    }
}

void emulator_meet(EmulatorPlace place, EmulatorMeeting what, unsigned mask, const void *in,
                   void *out, size_t bytes, int argument, int width) {
    BlockThread *self = running_thread(), *warp = self - self->seen.lane;
    check_mask(place, &self->seen, mask);
    Group *group = group_of(self, place, what, mask);
    self->in = in;
    self->out = out;
    self->argument = argument;
    self->place = place;
    self->state = IN_MEETING;
    group->arrived |= 1u << self->seen.lane;
    // Shuffles and votes order no memory.
    const char *key =
        what == MEETING_SYNC ? &keys[self->seen.warp][met[self->seen.warp] % 2] : NULL;
    if (key)
        races_release(key);
    if (group->arrived != mask) {
        emulator_wait(self);
        if (key)
            races_acquire(key);
        return;
    }
    if (what >= MEETING_MULTIPLY_BF16)
        emulator_tiles(what, warp);
    else if (what >= MEETING_BALLOT)
        reduce(what, mask, warp);
    else if (what != MEETING_SYNC)
        shuffle(place, what, mask, warp, bytes, (unsigned)width);
    group->mask = 0;
    self->state = RUNS;
    if (key) {
        met[self->seen.warp]++;
        races_acquire(key);
    }
    wake_others(self, warp, mask);
}
