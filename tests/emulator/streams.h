// tests/emulator/streams.h: what streams do, and when.
//
// An operation waits in its stream until something that the driver's documents promise makes it
// happen (the setting streams=lazy); or it happens at the call (eager); or sooner or later, streams
// overtaking each other wherever no event forbids it (shuffled). A program that waits for too
// little is wrong under one of them. Called with the driver's lock held (calls.h).
#pragma once

#include "tests/emulator/control.h"
#include "tests/emulator/device.h"

typedef enum OperationKind {
    OPERATION_LAUNCH,
    OPERATION_COPY_IN,  // from the host
    OPERATION_COPY_OUT, // to it
    OPERATION_COPY,     // within the device
    OPERATION_FILL,
    OPERATION_RECORD,
    OPERATION_WAIT,
    OPERATION_HOST // a function of a library's, which stands for kernels of its own
} OperationKind;

// False: the card breaks. It is given what was copied for it.
typedef bool (*HostWork)(const void *copy);

struct Operation {
    Operation *next;
    OperationKind kind;
    EmulatorLaunch launch;
    void *to;
    const void *from;
    size_t bytes;
    uint64_t checksum; // of pinned memory that is still to be read
    HostWork host;
    unsigned char value;
    Event *event;    // of a record
    Stream *awaited; // of a wait: the stream of the event, and the number of the record
    uint64_t number;
    size_t room;
    _Alignas(16) unsigned char copy[]; // what the call was given by value
};

Stream *emulator_stream_new(Card *card, bool blocking);

// A new operation, not yet in a stream, with room for a copy of so many bytes; NULL: no memory.
Operation *emulator_operation_new(OperationKind kind, size_t copy);
// Another like it. NULL: no memory.
Operation *emulator_operation_copy(const Operation *operation);
void emulator_operation_drop(Operation *operation);
// Puts it at the end of a stream of this card (NULL: the default one, which waits for the others),
// or of the graph that the stream captures.
CUresult emulator_stream_add(Card *card, Stream *stream, Operation *operation);
// Waits for all of a stream (NULL: the default one, and with it those that it waits for).
CUresult emulator_stream_wait(Card *card, Stream *stream);
// Whether a stream lives and is of this card.
bool emulator_stream_is_of(const Stream *stream, const Card *card);

// All streams one after the other, NULL before the first and after the last.
Stream *emulator_stream_next(const Stream *stream);

// Does all of a stream up to an operation, and what that waits for elsewhere.
void emulator_stream_run(Stream *stream, uint64_t number);
// Does all of every stream of a card.
void emulator_streams_finish(Card *card);
// Does one operation of a stream: time passes for who asks whether it is done.
void emulator_stream_advance(Stream *stream);
// After a call that waited: counts it, and looks what became of memory.
void emulator_streams_waited(Card *card);

// Whether operations that are not done yet name this memory of the host.
bool emulator_streams_name(const void *memory, size_t bytes);
uint64_t emulator_checksum(const void *memory, size_t bytes);

// Adds what it knows to a report.
void emulator_streams_count(EmulatorState *state);
