#include "tests/emulator/threads.h"

#include <fenv.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/block.h"
#include "tests/emulator/races.h"
#include "tests/emulator/settings.h"

EmulatorThread *emulator_thread;
EmulatorSize emulator_block_index, emulator_block_size, emulator_grid_size;
Block emulator_block;

// Of the block: how many threads began, ended and stand at the barrier, and who could go on.
static unsigned started, ended, waiting, predicates;
static unsigned barrier_result, barriers;
static BlockThread *ready[MOST_THREADS];
static unsigned ready_count;

// Fibres stay from block to block: between threads each is in the list of idle ones. In search of
// races every thread has one of its own, since whoever shared a stack would seem to race for it.
static Fibre host, fibres[MOST_THREADS], *idle[MOST_THREADS], *entering;
static Fibre own_fibres[RACE_SETS][EMULATOR_RACES ? MOST_THREADS : 1];
static unsigned fibre_count, idle_count, set;

// What orders threads: the begin and the end of the launch, and in a block of an arena its
// barriers, every other by another key, since some threads leave one later than others come to the
// next.
static unsigned arena;
static char begin_key, end_key, barrier_keys[RACE_ARENAS][2];

static struct {
    EmulatorFailure what;
    char *why;
    size_t why_size;
} failure;

// ---- who runs -----------------------------------------------------------------------------------

static bool shuffled(void) {
    return emulator_settings.order == ORDER_SHUFFLED;
}

static void run_threads(void);

static Fibre *enter(Fibre *fibre, unsigned number) {
    fibre_prepare(fibre, number, run_threads);
    return entering = fibre;
}

// That starts the next thread as soon as it runs.
static Fibre *fibre_for_new_threads(void) {
    if (EMULATOR_RACES) {
        unsigned number = emulator_block.order[started];
        Fibre *own = &own_fibres[set][number];
        return own->registers ? own : enter(own, number);
    }
    if (idle_count)
        return idle[--idle_count];
    Fibre *fibre = enter(&fibres[fibre_count], fibre_count);
    fibre_count++;
    return fibre;
}

// Whether the next to run is one that was woken, and not one that never ran.
static bool prefers_ready(void) {
    return ready_count && (started == emulator_block.count || !shuffled() || emulator_random(2));
}

static Fibre *ready_fibre(void) {
    unsigned which = shuffled() ? emulator_random(ready_count) : ready_count - 1;
    BlockThread *thread = ready[which];
    ready[which] = ready[--ready_count];
    thread->state = RUNS;
    emulator_thread = &thread->seen;
    races_run_thread(set, thread->seen.number);
    return thread->fibre;
}

static Fibre *host_fibre(void) { // all have ended, or nobody can go on
    races_run_host();
    return &host;
}

// For who keeps its own fibre.
static Fibre *next_fibre(void) {
    if (prefers_ready())
        return ready_fibre();
    return started < emulator_block.count ? fibre_for_new_threads() : host_fibre();
}

static void start_thread(Fibre *fibre) {
    const EmulatorLaunch *launch = emulator_block.launch;
    BlockThread *thread = &emulator_block.thread[emulator_block.order[started++]];
    thread->state = RUNS;
    thread->fibre = fibre;
    emulator_thread = &thread->seen;
    races_run_thread(set, thread->seen.number);
    races_acquire(&begin_key);
    launch->kernel->call(launch->arguments);
    races_release(&end_key);
    thread->state = ENDED;
    ended++;
}

// What every fibre does, for ever: threads that have not begun, one after another.
static void run_threads(void) {
    fibre_entered();
    Fibre *self = entering;
    for (;;) {
        do
            start_thread(self);
        while (!EMULATOR_RACES && started < emulator_block.count && !prefers_ready());
        if (EMULATOR_RACES) {
            fibre_switch(self, next_fibre());
        } else { // somebody is ready, or all have begun: none that begins takes another fibre
            Fibre *next = ready_count ? ready_fibre() : host_fibre();
            idle[idle_count++] = self;
            fibre_switch(self, next);
        }
    }
}

void emulator_wait(BlockThread *thread) {
    fibre_switch(thread->fibre, next_fibre());
}

void emulator_wake(BlockThread *thread) {
    thread->state = READY;
    ready[ready_count++] = thread;
}

// ---- barriers -----------------------------------------------------------------------------------

unsigned emulator_barrier(EmulatorPlace place, bool predicate) {
    BlockThread *self = running_thread();
    self->place = place;
    self->state = AT_BARRIER;
    predicates += predicate;
    const char *key = &barrier_keys[arena][barriers % 2];
    races_release(key);
    if (++waiting < emulator_block.count) {
        emulator_wait(self);
        races_acquire(key);
        return barrier_result;
    }
    for (unsigned i = emulator_block.count; i--;) {
        BlockThread *other = &emulator_block.thread[emulator_block.order[i]];
        if (other->place.line != place.line)
            emulator_fail(place, EMULATOR_WRONG_LAUNCH,
                          "threads of a block are at different barriers: thread %u is at line %d",
                          other->seen.number, other->place.line);
        if (other != self)
            emulator_wake(other);
    }
    self->state = RUNS;
    barrier_result = predicates;
    waiting = predicates = 0;
    barriers++;
    races_acquire(key);
    return barrier_result;
}

// ---- failures -----------------------------------------------------------------------------------

static const char *name_of_file(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

__attribute__((format(printf, 2, 3))) static void explain(EmulatorFailure what, const char *format,
                                                          ...) {
    int used = snprintf(failure.why, failure.why_size, "%s, block (%u,%u,%u), ",
                        emulator_block.launch->kernel->name, emulator_block_index.x,
                        emulator_block_index.y, emulator_block_index.z);
    if (used > 0 && (size_t)used < failure.why_size) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(failure.why + used, failure.why_size - (size_t)used, format, arguments);
        va_end(arguments);
    }
    failure.what = what;
}

void emulator_fail(EmulatorPlace place, EmulatorFailure what, const char *format, ...) {
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    EmulatorThread *thread = emulator_thread;
    char where[120] = "";
    if (place.file)
        snprintf(where, sizeof where, "%s:%d: ", name_of_file(place.file), place.line);
    explain(what, "thread (%u,%u,%u), %s%s", thread->index.x, thread->index.y, thread->index.z,
            where, text);
    races_run_host();
    fibre_switch(((BlockThread *)thread)->fibre, &host);
    abort(); // the block is abandoned: nobody comes back
}

// Not all threads ended, and none can go on.
static void explain_deadlock(void) {
    unsigned first = 0;
    const BlockThread *thread = emulator_block.thread;
    while (thread[first].state != AT_BARRIER && thread[first].state != IN_MEETING)
        first++;
    bool barrier = thread[first].state == AT_BARRIER;
    explain(barrier ? EMULATOR_WRONG_LAUNCH : EMULATOR_NEVER_ENDS,
            "thread (%u,%u,%u), %s:%d: waits for ever %s: %u of %u threads have ended",
            thread[first].seen.index.x, thread[first].seen.index.y, thread[first].seen.index.z,
            name_of_file(thread[first].place.file), thread[first].place.line,
            barrier ? "at a barrier that not all threads reach" : "for lanes of its mask", ended,
            emulator_block.count);
}

// ---- launches -----------------------------------------------------------------------------------

static void begin_block(void) {
    started = ended = waiting = predicates = barriers = ready_count = 0;
    for (unsigned i = 0; i < emulator_block.count; i++)
        emulator_block.thread[i].state = NOT_STARTED;
    for (unsigned i = emulator_block.count; shuffled() && i > 1; i--) {
        unsigned *order = emulator_block.order, other = emulator_random(i), last = order[i - 1];
        order[i - 1] = order[other];
        order[other] = last;
    }
    emulator_warps_begin(emulator_block.count, arena);
    emulator_shared_begin(emulator_block.launch->dynamic_shared, arena);
}

static void begin_launch(const EmulatorLaunch *launch) {
    EmulatorSize size = launch->block;
    emulator_block.launch = launch;
    emulator_block.count = size.x * size.y * size.z;
    emulator_block_size = size;
    emulator_grid_size = launch->grid;
    for (unsigned i = 0; i < emulator_block.count; i++) {
        emulator_block.thread[i].seen = (EmulatorThread){
            {i % size.x, i / size.x % size.y, i / size.x / size.y}, i, i % WARP, i / WARP};
        emulator_block.order[i] =
            emulator_settings.order == ORDER_REVERSE ? emulator_block.count - 1 - i : i;
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    return b ? common_divisor(b, a % b) : a;
}

// Blocks go round the grid by a stride that meets each once.
static uint64_t stride_of_blocks(uint64_t blocks, uint64_t *first) {
    *first = 0;
    if (emulator_settings.order == ORDER_FORWARD || blocks < 2)
        return 1;
    *first = blocks - 1;
    if (emulator_settings.order == ORDER_REVERSE)
        return blocks - 1;
    uint64_t stride = 1 + emulator_random((unsigned)(blocks < 1u << 20 ? blocks : 1u << 20));
    while (common_divisor(stride, blocks) != 1)
        stride++;
    return stride;
}

static void run_blocks(const EmulatorLaunch *launch) {
    EmulatorSize grid = launch->grid;
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z, at,
             stride = stride_of_blocks(blocks, &at);
    for (uint64_t i = 0; i < blocks && !failure.what; i++) {
        emulator_block_index =
            (EmulatorSize){(unsigned)(at % grid.x), (unsigned)(at / grid.x % grid.y),
                           (unsigned)(at / grid.x / grid.y)};
        at = (at + stride) % blocks;
        set = (unsigned)(i % RACE_SETS);
        arena = (unsigned)(i % RACE_ARENAS);
        if (arena == 0) {
            races_acquire(&end_key);
            races_release(&begin_key);
        }
        begin_block();
        fibre_switch(&host, fibre_for_new_threads());
        if (!failure.what && ended != emulator_block.count)
            explain_deadlock();
    }
    races_acquire(&end_key);
}

EmulatorFailure emulator_run(const EmulatorLaunch *launch, char *why, size_t why_size) {
    failure.what = EMULATOR_FINE;
    failure.why = why;
    failure.why_size = why_size;
    fenv_t environment; // a card flushes no subnormals, whatever the thread that called does
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    emulator_watch_addresses();
    begin_launch(launch);
    races_begin(emulator_block.count);
    run_blocks(launch);
    emulator_shared_end();
    emulator_thread = NULL;
    if (failure.what) { // whoever waits will never be woken
        fibre_count = idle_count = 0;
        for (unsigned i = 0; EMULATOR_RACES && i < RACE_SETS * MOST_THREADS; i++)
            own_fibres[i / MOST_THREADS][i % MOST_THREADS].registers = NULL;
    }
    fesetenv(&environment);
    return failure.what;
}
