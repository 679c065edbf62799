#include "tests/emulator/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/emulator/calls.h"
#include "tests/emulator/graphs.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/sanitizer.h"
#include "tests/emulator/settings.h"

// Operations with copies of up to so many bytes are kept for the next.
enum { USUAL_COPY = 1024 };

static Stream *streams; // all that ever were
static Operation *spare;
static uint64_t launches, kernels, waits, launches_unchecked;

Stream *emulator_stream_new(Card *card, bool blocking) {
    Stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    *stream = (Stream){.card = card, .alive = true, .blocking = blocking, .next = streams};
    stream->end = &stream->first;
    return streams = stream;
}

Operation *emulator_operation_new(OperationKind kind, size_t copy) {
    Operation *operation = spare;
    size_t room = copy > USUAL_COPY ? copy : USUAL_COPY;
    if (operation && room == USUAL_COPY)
        spare = operation->next;
    else
        operation = malloc(sizeof *operation + room);
    if (!operation)
        return NULL;
    *operation = (Operation){.kind = kind, .room = room};
    return operation;
}

Operation *emulator_operation_copy(const Operation *operation) {
    Operation *copy = emulator_operation_new(operation->kind, operation->room);
    if (!copy)
        return NULL;
    size_t room = copy->room;
    *copy = *operation;
    copy->room = room;
    copy->next = NULL;
    memcpy(copy->copy, operation->copy, operation->room);
    if (operation->launch.arguments == operation->copy)
        copy->launch.arguments = copy->copy;
    if (operation->from == operation->copy)
        copy->from = copy->copy;
    return copy;
}

void emulator_operation_drop(Operation *operation) {
    if (operation->room > USUAL_COPY) {
        free(operation);
    } else {
        operation->next = spare;
        spare = operation;
    }
}

uint64_t emulator_checksum(const void *memory, size_t bytes) {
    uint64_t sum = bytes, word;
    const unsigned char *at = memory;
    for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
        memcpy(&word, at, sizeof word);
        sum = (sum ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        sum ^= sum >> 29;
    }
    for (; bytes; bytes--)
        sum = (sum ^ *at++) * UINT64_C(0x9E3779B97F4A7C15);
    return sum;
}

// ---- doing it -----------------------------------------------------------------------------------

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void do_launch(Card *card, Operation *operation) {
    const EmulatorLaunch *launch = &operation->launch;
    char why[400];
    kernels++;
    const EmulatorFault *crash = &emulator_settings.crash;
    if (crash->when && crash->when == kernels) {
        emulator_break_card(card, (CUresult)crash->code, "%s: dies as MPBENCH_EMULATOR wants it",
                            launch->kernel->name);
        return;
    }
    EmulatorFailure failure = emulator_run(launch, why, sizeof why);
    if (failure != EMULATOR_FINE) {
        emulator_break_card(card, (CUresult)failure, "%s", why);
        return;
    }
    if (!emulator_memory_check_named(launch->arguments, launch->kernel->bytes, why, sizeof why))
        emulator_break_card(card, CUDA_ERROR_ILLEGAL_ADDRESS, "%s: %s", launch->kernel->name, why);
    launches_unchecked++;
    if (launches_unchecked == emulator_settings.check) {
        if (!emulator_memory_check_all(why, sizeof why))
            emulator_break_card(card, CUDA_ERROR_ILLEGAL_ADDRESS,
                                "one of the last %llu kernels, up to %s: %s",
                                (unsigned long long)launches_unchecked, launch->kernel->name, why);
        launches_unchecked = 0;
    }
}

static void do_copy_in(Card *card, Operation *operation) {
    if (operation->from != operation->copy &&
        emulator_checksum(operation->from, operation->bytes) != operation->checksum)
        emulator_break_card(card, CUDA_ERROR_LAUNCH_FAILED,
                            "pinned memory was changed while a copy from it was under way");
    memcpy(operation->to, operation->from, operation->bytes);
}

static void do_copy_out(Card *card, Operation *operation) {
    (void)card;
    memcpy(operation->to, operation->from, operation->bytes);
}

static void do_copy(Card *card, Operation *operation) {
    (void)card;
    memmove(operation->to, operation->from, operation->bytes);
}

static void do_fill(Card *card, Operation *operation) {
    (void)card;
    memset(operation->to, operation->value, operation->bytes);
}

static void do_record(Card *card, Operation *operation) {
    (void)card;
    operation->event->time = milliseconds();
}

static void do_wait(Card *card, Operation *operation) {
    (void)card;
    emulator_stream_run(operation->awaited, operation->number);
}

static void do_host(Card *card, Operation *operation) {
    if (!operation->host(operation->copy))
        emulator_break_card(card, CUDA_ERROR_UNKNOWN, "a library has no memory");
}

static void (*const doers[])(Card *card, Operation *operation) = {
    [OPERATION_LAUNCH] = do_launch,     [OPERATION_COPY_IN] = do_copy_in,
    [OPERATION_COPY_OUT] = do_copy_out, [OPERATION_COPY] = do_copy,
    [OPERATION_FILL] = do_fill,         [OPERATION_RECORD] = do_record,
    [OPERATION_WAIT] = do_wait,         [OPERATION_HOST] = do_host,
};

// The first operation of a stream. On a card that failed nothing happens any more.
static void do_first(Stream *stream) {
    Operation *operation = stream->first;
    stream->busy = true;
    if (stream->card->failure == CUDA_SUCCESS) {
        emulator_memory_open();
        doers[operation->kind](stream->card, operation);
        emulator_memory_close();
    }
    stream->busy = false;
    stream->first = operation->next;
    if (!stream->first)
        stream->end = &stream->first;
    stream->done++;
    emulator_operation_drop(operation);
}

void emulator_stream_advance(Stream *stream) {
    if (stream->first)
        do_first(stream);
}

// ---- when ---------------------------------------------------------------------------------------

// Some streams may run ahead.
static void run_by_chance(void) {
    for (Stream *stream = streams; stream; stream = stream->next)
        while (stream->first && !stream->busy && emulator_random(3) == 0)
            do_first(stream);
}

void emulator_stream_run(Stream *stream, uint64_t number) {
    while (stream->done < number) {
        if (emulator_settings.streams == STREAMS_SHUFFLED && emulator_random(4) == 0)
            run_by_chance();
        else
            do_first(stream);
    }
}

Stream *emulator_stream_next(const Stream *stream) {
    return stream ? stream->next : streams;
}

void emulator_streams_finish(Card *card) {
    for (Stream *stream = streams; stream; stream = stream->next)
        if (stream->card == card)
            emulator_stream_run(stream, stream->added);
}

static void finish_blocking(Card *card) {
    for (Stream *stream = streams; stream; stream = stream->next)
        if (stream->card == card && stream->blocking)
            emulator_stream_run(stream, stream->added);
}

// The default stream: after all that blocking streams have before it, and they after it. That it
// does its work at once keeps both.
static Stream *default_stream(Card *card) {
    static Stream *of[MOST_CARDS];
    if (!of[card->index])
        of[card->index] = emulator_stream_new(card, true);
    return of[card->index];
}

bool emulator_stream_is_of(const Stream *stream, const Card *card) {
    return stream->alive && stream->card == card;
}

CUresult emulator_stream_add(Card *card, Stream *stream, Operation *operation) {
    bool at_once = !stream || emulator_settings.streams == STREAMS_EAGER;
    if (stream && !emulator_stream_is_of(stream, card)) {
        emulator_operation_drop(operation);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream && stream->captures)
        return emulator_graph_add(stream->captures, operation);
    if (!stream) {
        CUresult forbidden = emulator_graphs_forbid_default_stream(card);
        if (forbidden != CUDA_SUCCESS) {
            emulator_operation_drop(operation);
            return forbidden;
        }
        finish_blocking(card);
        stream = default_stream(card);
    }
    *stream->end = operation;
    stream->end = &operation->next;
    stream->added++;
    launches += operation->kind == OPERATION_LAUNCH;
    if (operation->kind == OPERATION_RECORD) {
        operation->event->captured = NULL;
        operation->event->stream = stream;
        operation->event->number = stream->added;
    }
    if (at_once)
        emulator_stream_run(stream, stream->added);
    else if (emulator_settings.streams == STREAMS_SHUFFLED)
        run_by_chance();
    return card->failure;
}

CUresult emulator_stream_wait(Card *card, Stream *stream) {
    if (!stream)
        finish_blocking(card);
    else if (!emulator_stream_is_of(stream, card))
        return CUDA_ERROR_INVALID_HANDLE;
    else
        emulator_stream_run(stream, stream->added);
    emulator_streams_waited(card);
    return card->failure;
}

void emulator_streams_waited(Card *card) {
    char why[200];
    waits++;
    if (!emulator_memory_check_all(why, sizeof why))
        emulator_break_card(card, CUDA_ERROR_ILLEGAL_ADDRESS, "one of the last %llu kernels: %s",
                            (unsigned long long)launches_unchecked, why);
    launches_unchecked = 0;
}

// ---- what is known of them ----------------------------------------------------------------------

bool emulator_streams_name(const void *memory, size_t bytes) {
    const unsigned char *first = memory, *end = first + bytes;
    for (const Stream *stream = streams; stream; stream = stream->next)
        for (const Operation *each = stream->first; each; each = each->next) {
            const unsigned char *from = each->from, *to = each->to;
            if ((each->kind == OPERATION_COPY_IN && from >= first && from < end) ||
                (each->kind == OPERATION_COPY_OUT && to >= first && to < end))
                return true;
        }
    return false;
}

void emulator_streams_count(EmulatorState *state) {
    state->launches = launches;
    state->kernels = kernels;
    state->waits = waits;
}
