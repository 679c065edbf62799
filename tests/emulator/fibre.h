// tests/emulator/fibre.h: stacks that take turns on one thread of the host.
//
// A switch saves the registers that a call preserves and changes the stack: no system call, a few
// nanoseconds. Signal masks, the rounding mode and errno are not switched. Fibres are static and
// zeroed before their first use; a stack once made is kept. AddressSanitizer is told of switches.
#pragma once

typedef struct Fibre {
    void *registers;  // on its stack, while another runs
    void *fake_stack; // AddressSanitizer's
    char *stack;      // its lowest byte, NULL in the fibre of the host itself
} Fibre;

// Makes the next switch to `fibre` a call of `entry`, on an empty stack; `entry` never returns.
// `number` tells fibres apart, so that their frames do not all fall on the same lines of the cache.
void fibre_prepare(Fibre *fibre, unsigned number, void (*entry)(void));

// The first thing that `entry` does.
void fibre_entered(void);

// Goes on in `to`, until somebody switches back to `from`, which is the one that runs.
void fibre_switch(Fibre *from, Fibre *to);
