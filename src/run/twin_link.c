// What two trainings in lock step share, a socket and counters, and how one waits for the other.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/twin_private.h"

// Pages that nobody writes cost nothing, so that there is room for large models beforehand.
static TwinShared *shared_new(void) {
    void *memory = mmap(NULL, sizeof(TwinShared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

TwinLink *twin_new(Error *error) {
    TwinLink *link = calloc(1, sizeof *link);
    if (link) {
        link->ends[0] = link->ends[1] = -1;
        link->told_loss = -1;
        link->shared = shared_new();
        link->known = calloc(TWIN_SLOTS, sizeof *link->known);
        link->layers = calloc(TWIN_LAYERS, sizeof *link->layers);
        link->sums = calloc((size_t)3 * TWIN_LAYERS, sizeof *link->sums);
    }
    if (!link || !link->shared || !link->known || !link->layers || !link->sums) {
        error_fail(error, ERROR_MEMORY, "--twin: no memory for what both share, %d MiB",
                   (int)(sizeof(TwinShared) >> 20));
    } else if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link->ends) != 0) {
        error_fail(error, ERROR_FAILED, "--twin: no socket between the two: %s%s",
                   error_cause(errno), error_remedy(errno));
    } else {
        return link;
    }
    twin_free(link);
    return NULL;
}

void twin_take_side(TwinLink *link, TwinSide side) {
    TwinSide other = side == TWIN_RUN ? TWIN_TWIN : TWIN_RUN;
    link->side = side;
    link->ends_open = true;
    close(link->ends[other]); // else its end would never be seen
    link->ends[other] = -1;
}

void twin_free(TwinLink *link) {
    if (!link)
        return;
    for (int i = 0; i < TWIN_SIDES; i++)
        if (link->ends[i] >= 0)
            close(link->ends[i]);
    if (link->shared)
        munmap(link->shared, sizeof *link->shared);
    twin_report_clear(&link->report);
    free(link->known);
    free(link->layers);
    free(link->sums);
    free(link);
}

// ---- the socket ---------------------------------------------------------------------------------

void twin_send(TwinLink *link, const TwinMessage *message) {
    // One that has left may wait for how this side ends; that it is no more, receiving tells.
    (void)send(link->ends[link->side], message, sizeof *message, MSG_NOSIGNAL);
}

// Whether there is something to take within a moment: the end of the other too.
static bool is_there(const TwinLink *link, int milliseconds) {
    struct pollfd end = {.fd = link->ends[link->side], .events = POLLIN};
    return poll(&end, 1, milliseconds) > 0;
}

// Without a word it is gone when its end is.
static bool take(TwinLink *link, TwinMessage *message) {
    ssize_t got = recv(link->ends[link->side], message, sizeof *message, 0);
    // One that left without reading all resets the connection: once, and its last word comes
    // behind.
    if (got < 0 && (errno == EINTR || errno == ECONNRESET))
        return false;
    if (got != sizeof *message) {
        link->is_gone = true;
        link->left =
            (TwinMessage){.word = TWIN_LEFT, .status = RUN_DEAD, .step = twin_reached(link)};
        return false;
    }
    if (message->word == TWIN_LEFT) {
        link->is_gone = true;
        link->left = *message;
    }
    return true;
}

// While it waits orders to pause are heeded, and a progress line says what it waits for.
static void pass_time(Run *run, bool is_long) {
    if (run_wants_attention(run))
        run_attend_within(run);
    if (!is_long || run->waits_for)
        return;
    run->waits_for = "its twin";
    if (run->observer.step && !run->is_silent)
        run->observer.step(run->observer.context, run);
    run->waits_for = NULL;
}

bool twin_receive(TwinLink *link, TwinMessage *message, double seconds) {
    enum { MOMENT = 100 }; // ms
    static const double grace = 1, a_while = 1;
    double began = clock_seconds(), until = began + seconds;
    bool is_stopping = false;
    while (!link->is_gone) {
        if (is_there(link, MOMENT)) {
            if (take(link, message))
                return true;
            continue;
        }
        double now = clock_seconds();
        if (!is_stopping && run_is_to_stop(link->run)) { // it may be on its way to the same end
            is_stopping = true;
            until = fmin(until, now + grace);
        }
        if (now >= until)
            return false;
        pass_time(link->run, now - began >= a_while);
    }
    return false;
}

// Any thread.
bool twin_is_left(TwinLink *link) {
    static const double seldom = 0.01; // seconds: it is asked at every step
    const double now = clock_seconds(), looked = atomic_load(&link->looked);
    if (link->side != TWIN_TWIN || (isfinite(looked) && now - looked < seldom))
        return false;
    struct pollfd end = {.fd = link->ends[TWIN_TWIN]};
    const bool is_left = isinf(looked) || (poll(&end, 1, 0) > 0 && (end.revents & POLLHUP));
    atomic_store(&link->looked, is_left ? (double)INFINITY : now);
    return is_left;
}

// ---- the counters -------------------------------------------------------------------------------

static TwinMark *own_mark(const TwinLink *link) {
    return &link->shared->marks[link->side];
}

static TwinMark *other_mark(const TwinLink *link) {
    return &link->shared->marks[link->side == TWIN_RUN ? TWIN_TWIN : TWIN_RUN];
}

int64_t twin_reached(const TwinLink *link) {
    return atomic_load(&other_mark(link)->reached);
}

bool twin_has_left(const TwinLink *link) {
    return atomic_load(&other_mark(link)->has_left);
}

void twin_leave(TwinLink *link) {
    atomic_store(&own_mark(link)->has_left, true);
}

// Who sleeps has said so before it looked the last time: it either saw what was reached, or is seen
// here.
static void wake(TwinLink *link) {
    const TwinMessage message = {.word = TWIN_WOKEN};
    if (atomic_exchange(&other_mark(link)->awaits, 0) > 0)
        twin_send(link, &message);
}

void twin_reach(TwinLink *link, int64_t step) {
    atomic_store(&own_mark(link)->reached, step);
    const int64_t awaited = atomic_load(&other_mark(link)->awaits);
    if (awaited > 0 && awaited <= step)
        wake(link);
}

bool twin_sleep(TwinLink *link, int64_t step, int64_t known, double seconds) {
    TwinMessage message;
    atomic_store(&own_mark(link)->awaits, step);
    wake(link); // else both could sleep
    const int64_t reached = twin_reached(link);
    const bool goes_on =
        reached >= step || reached > known || twin_receive(link, &message, seconds);
    atomic_store(&own_mark(link)->awaits, 0);
    return goes_on;
}
