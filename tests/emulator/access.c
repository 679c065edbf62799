// Addresses that nobody may touch: what the processor reports of a kernel becomes its failure, and
// of the host a line on stderr before it dies. Under AddressSanitizer, which sees more, nothing.
#define _GNU_SOURCE // REG_RIP
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/emulator/block.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/sanitizer.h"

static void *touched;

// Where the thread of a kernel goes on that touched such an address: on its own stack, as if it had
// called.
static void land(void) {
    emulator_fail((EmulatorPlace){0}, EMULATOR_ILLEGAL_ADDRESS, "touches %p, %s", touched,
                  emulator_memory_is_device(touched) ? "where no block lives"
                                                     : "no memory of a card");
}

static void go_on_in_land(ucontext_t *context) {
#if defined(__x86_64__)
    greg_t *registers = context->uc_mcontext.gregs;
    registers[REG_RSP] =
        (registers[REG_RSP] & ~15) - 256 - 8; // past what leaf functions keep there
    registers[REG_RIP] = (greg_t)(uintptr_t)land;
#else
    context->uc_mcontext.sp = (context->uc_mcontext.sp & ~15ull) - 256;
    context->uc_mcontext.pc = (uintptr_t)land;
#endif
}

static void handle(int signal_number, siginfo_t *information, void *context) {
    touched = information->si_addr;
    if (emulator_thread) {
        go_on_in_land(context);
        return;
    }
    static const char text[] = "emulator: the host touches memory of the device\n";
    if (emulator_memory_is_device(touched) && write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(1);
    signal(signal_number, SIG_DFL); // it happens again, for good
}

void emulator_watch_addresses(void) {
    static bool watching;
    if (watching || EMULATOR_ASAN)
        return;
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    watching = sigaction(SIGSEGV, &action, NULL) == 0;
}
