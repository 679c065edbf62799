// tests/emulator/calls.h: what every function of the emulated driver begins with.
//
// The driver has one lock. Each call is counted, may be made to fail (the setting `fail`), and
// fails where its card did before.
#pragma once

#include "tests/emulator/device.h"

typedef struct EmulatorCall {
    CUresult result; // CUDA_SUCCESS: go on
} EmulatorCall;

typedef enum EmulatorNeeds { NEEDS_NOTHING, NEEDS_START, NEEDS_CARD } EmulatorNeeds;

EmulatorCall emulator_call_begin(const char *function, EmulatorNeeds needs);
void emulator_call_end(EmulatorCall *call);

// The first line of a function: of the table, and of this thread's current card or not.
#define EMULATED_CALL(function, needs)                               \
    __attribute__((cleanup(emulator_call_end))) EmulatorCall call_ = \
        emulator_call_begin(#function, needs);                       \
    if (call_.result != CUDA_SUCCESS)                                \
    return call_.result

void emulator_started(void); // cuInit went well
// Of the thread that calls; NULL: none.
Card *emulator_current_card(void);
void emulator_set_current_card(Card *card);

// A mistake of the program's that a card might not notice, or a kernel that fails: said once on
// stderr, and from now on the card fails each call with `result`.
__attribute__((format(printf, 3, 4))) void emulator_break_card(Card *card, CUresult result,
                                                               const char *format, ...);

// An argument that the program must not give: said on stderr, and returned.
__attribute__((format(printf, 2, 3))) CUresult emulator_refuse(CUresult result, const char *format,
                                                               ...);
