#include "tests/emulator/races.h"

#if EMULATOR_RACES
#include "tests/emulator/block.h"

// Of sanitizer/tsan_interface.h, which not every compiler brings along.
void *__tsan_create_fiber(unsigned flags);
void *__tsan_get_current_fiber(void);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *key);
void __tsan_release(void *key);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

enum { WITHOUT_ORDER = 1 }; // a switch alone orders nothing

static void *logical[RACE_SETS][MOST_THREADS], *host;

void races_begin(unsigned threads) {
    host = __tsan_get_current_fiber();
    for (int set = 0; set < RACE_SETS; set++)
        for (unsigned i = 0; i < threads; i++)
            if (!logical[set][i])
                logical[set][i] = __tsan_create_fiber(0);
}

void races_run_thread(unsigned set, unsigned thread) {
    __tsan_switch_to_fiber(logical[set][thread], WITHOUT_ORDER);
}
void races_run_host(void) {
    __tsan_switch_to_fiber(host, WITHOUT_ORDER);
}

void races_release(const void *key) {
    __tsan_release((void *)(uintptr_t)key);
}
void races_acquire(const void *key) {
    __tsan_acquire((void *)(uintptr_t)key);
}

void races_ignore(int ignore) {
    if (ignore)
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    else
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
}
#else
typedef int EmulatorNothing; // a file of C has something in it
#endif
