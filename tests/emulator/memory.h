// tests/emulator/memory.h: the memory of the emulated cards, and pinned memory of the host.
//
// New memory is NaN in every format. Behind each block lies a red zone, which nobody may write; it
// is checked when a kernel that was given the block has run, when the block is freed, and now and
// then. Addresses are not used again as long as others are left: memory that was freed is NaN, and
// where it was large, closed. Called with the driver's lock held (calls.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct EmulatorMemory {
    unsigned char *at;
    size_t bytes;
    unsigned card;
    bool pinned;     // the host's
    unsigned number; // the how manieth that was asked for
} EmulatorMemory;

// NULL: there is not as much. Device memory lies at multiples of 256 bytes, pinned memory of pages.
void *emulator_memory_new(unsigned card, size_t bytes, bool pinned);
// What holds all of these bytes; NULL: nothing that lives.
const EmulatorMemory *emulator_memory_of(const void *at, size_t bytes);
// Of a block that emulator_memory_of gave.
void emulator_memory_free(const EmulatorMemory *memory);
// How many bytes a card has in use; and what all cards and the host have.
size_t emulator_memory_used(unsigned card);
void emulator_memory_count(uint64_t *blocks, uint64_t *bytes, uint64_t *pinned);
// How many blocks there ever were, pinned ones too.
uint64_t emulator_memory_taken(void);

// Whether an address is one of device memory, freed or not.
bool emulator_memory_is_device(const void *at);

// False: something wrote past the end of a block, and `why` says of which.
bool emulator_memory_check_one(const EmulatorMemory *memory, char *why, size_t why_size);
bool emulator_memory_check_all(char *why, size_t why_size);
// Of the blocks whose addresses are among these bytes, a kernel's arguments.
bool emulator_memory_check_named(const void *arguments, size_t bytes, char *why, size_t why_size);

// With the setting `protect` device memory is closed but between these two, which may nest.
void emulator_memory_open(void);
void emulator_memory_close(void);

// What new and freed memory consists of, NaN in every format; also pinned memory that waits for a
// copy.
enum { EMULATOR_POISON = 0xFF };
