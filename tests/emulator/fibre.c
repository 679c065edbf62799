#define _GNU_SOURCE // pthread_getattr_np, MAP_ANONYMOUS
#include "tests/emulator/fibre.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/emulator/races.h"
#include "tests/emulator/sanitizer.h"

// Sanitizers put much between the variables of a function.
enum { STACK = EMULATOR_ASAN || EMULATOR_RACES ? 256 << 10 : 64 << 10, GUARD = 4096 };

// Stores the registers that a call preserves below the stack pointer, and that pointer in *save;
// takes all of them from `registers`. It leaves by a jump: processors predict where a return goes
// from the calls they saw, and here would be wrong each time.
void emulator_swap_stacks(void **save, void *registers);

#if defined(__x86_64__)
enum { SAVED_WORDS = 8, ENTRY_WORD = 6 };
__asm__(".text\n"
        ".hidden emulator_swap_stacks\n"
        ".globl emulator_swap_stacks\n"
        ".type emulator_swap_stacks, @function\n"
        "emulator_swap_stacks:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    pop %rcx\n"
        "    jmp *%rcx\n"
        ".size emulator_swap_stacks, . - emulator_swap_stacks\n");
#elif defined(__aarch64__)
enum { SAVED_WORDS = 20, ENTRY_WORD = 11 }; // x30
__asm__(".text\n"
        ".hidden emulator_swap_stacks\n"
        ".globl emulator_swap_stacks\n"
        ".type emulator_swap_stacks, %function\n"
        "emulator_swap_stacks:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    br x30\n"
        ".size emulator_swap_stacks, . - emulator_swap_stacks\n");
#else
#error "the emulator switches stacks on x86-64 and aarch64 only"
#endif

#if EMULATOR_ASAN
#include <pthread.h>

// The stack of the thread that calls; asked once a thread, since the answer takes long.
static void bounds_of_host(const void **lowest, size_t *bytes) {
    static _Thread_local const void *known;
    static _Thread_local size_t known_bytes;
    if (!known) {
        pthread_attr_t attributes;
        void *address = NULL;
        if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
            pthread_attr_getstack(&attributes, &address, &known_bytes);
            pthread_attr_destroy(&attributes);
        }
        known = address;
    }
    *lowest = known;
    *bytes = known_bytes;
}

static void tell_start(Fibre *from, const Fibre *to) {
    const void *lowest = to->stack;
    size_t bytes = STACK;
    if (!lowest)
        bounds_of_host(&lowest, &bytes);
    __sanitizer_start_switch_fiber(&from->fake_stack, lowest, bytes);
}
static void tell_end(void *fake_stack) {
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
}
#else
static void tell_start(Fibre *from, const Fibre *to) {
    (void)from, (void)to;
}
static void tell_end(void *fake_stack) {
    (void)fake_stack;
}
#endif

// With a page below it that nobody may touch.
static char *new_stack(void) {
    char *memory = mmap(NULL, STACK + GUARD, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD, PROT_NONE) != 0) {
        perror("emulator: a stack for a thread of a block");
        abort();
    }
    return memory + GUARD;
}

void fibre_prepare(Fibre *fibre, unsigned number, void (*entry)(void)) {
    if (!fibre->stack)
        fibre->stack = new_stack();
    ASAN_UNPOISON_MEMORY_REGION(fibre->stack, STACK); // what an abandoned block left
    char *top = fibre->stack + STACK - 64 - number % 32 * 320;
    void **registers = (void **)(void *)top - SAVED_WORDS;
    memset(registers, 0, SAVED_WORDS * sizeof *registers);
    memcpy(&registers[ENTRY_WORD], &entry, sizeof entry);
    fibre->registers = registers;
    fibre->fake_stack = NULL;
}

void fibre_entered(void) {
    tell_end(NULL);
}

void fibre_switch(Fibre *from, Fibre *to) {
    if (from == to)
        return;
    tell_start(from, to);
    emulator_swap_stacks(&from->registers, to->registers);
    tell_end(from->fake_stack);
}
