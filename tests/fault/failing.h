// tests/fault/failing.h: calls that fail when they are told to: writes and fsyncs of SQLite, its
// allocations, and all of the program's own.
//
// A sweep sets `fault` before each round, so that call N fails, N = 1, 2, ..., until a round meets
// it no more. Threads may share a fault; one that has spared itself meets none.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

typedef enum FailingKind {
    FAILING_NONE,
    FAILING_DISK,
    FAILING_FULL,
    FAILING_MEMORY,
    FAILING_FILE,
    FAILING_KILL
} FailingKind;

static struct {
    _Atomic(FailingKind) kind;
    atomic_long left;     // calls that still pass
    bool lasts;           // all later calls fail too
    atomic_bool happened; // it has been met
} fault;
static _Thread_local bool is_spared;
static atomic_bool are_others_spared; // than the program's first thread
static _Thread_local bool is_first;
static _Thread_local bool is_begun; // what a sanitizer allocates to start a thread does not fail

// What an allocation passes through may run before a sanitizer is ready for it.
#define UNWATCHED __attribute__((no_sanitize("address"), no_sanitize("undefined")))

static UNWATCHED bool fails_now(FailingKind kind) {
    if (fault.kind != kind || is_spared || !is_begun || (are_others_spared && !is_first))
        return false;
    long left = --fault.left;
    bool now = left == 0 || (left < 0 && fault.lasts);
    if (now)
        fault.happened = true;
    return now;
}

static inline void fail_call(FailingKind kind, long number, bool lasts) {
    fault.kind = FAILING_NONE;
    fault.left = number;
    fault.lasts = lasts;
    fault.happened = false;
    fault.kind = kind;
}

// The file system under SQLite: the default one, with calls that fail in between.
static int (*true_write)(sqlite3_file *, const void *, int, sqlite3_int64);
static int (*true_truncate)(sqlite3_file *, sqlite3_int64);
static int (*true_sync)(sqlite3_file *, int);
static const sqlite3_io_methods *true_methods;
static sqlite3_io_methods methods;
static sqlite3_vfs vfs, *true_vfs;

static void die_now(void) {
    if (fails_now(FAILING_KILL))
        raise(SIGKILL);
}

static int faulty_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at) {
    die_now();
    if (fails_now(FAILING_DISK))
        return SQLITE_IOERR_WRITE;
    if (fails_now(FAILING_FULL))
        return SQLITE_FULL;
    return true_write(file, bytes, size, at);
}

static int faulty_truncate(sqlite3_file *file, sqlite3_int64 size) {
    die_now();
    return fails_now(FAILING_DISK) ? SQLITE_IOERR_TRUNCATE : true_truncate(file, size);
}

static int faulty_sync(sqlite3_file *file, int flags) {
    die_now();
    return fails_now(FAILING_DISK) ? SQLITE_IOERR_FSYNC : true_sync(file, flags);
}

static int faulty_open(sqlite3_vfs *self, sqlite3_filename name, sqlite3_file *file, int flags,
                       int *out) {
    (void)self;
    int code = true_vfs->xOpen(true_vfs, name, file, flags, out);
    if (code == SQLITE_OK && file->pMethods) {
        if (!true_methods) { // all files of this file system have the same ones
            true_methods = file->pMethods;
            methods = *true_methods;
            true_write = methods.xWrite, methods.xWrite = faulty_write;
            true_truncate = methods.xTruncate, methods.xTruncate = faulty_truncate;
            true_sync = methods.xSync, methods.xSync = faulty_sync;
        }
        if (file->pMethods == true_methods)
            file->pMethods = &methods;
    }
    return code;
}

static sqlite3_mem_methods true_memory;

static void *faulty_malloc(int size) {
    return fails_now(FAILING_MEMORY) ? NULL : true_memory.xMalloc(size);
}

static void *faulty_realloc(void *old, int size) {
    return fails_now(FAILING_MEMORY) ? NULL : true_memory.xRealloc(old, size);
}

static inline void install_faults(void) {
    is_begun = is_first = true;
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &true_memory);
    sqlite3_mem_methods memory = true_memory;
    memory.xMalloc = faulty_malloc;
    memory.xRealloc = faulty_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
    true_vfs = sqlite3_vfs_find(NULL);
    vfs = *true_vfs;
    vfs.zName = "faulty";
    vfs.pNext = NULL;
    vfs.xOpen = faulty_open;
    sqlite3_vfs_register(&vfs, 0);
}

// Our own allocations; a sanitizer's take the place of the library's.
#if defined(__SANITIZE_ADDRESS__)
#define TRUE_CALL(name) __interceptor_##name
#else
#define TRUE_CALL(name) __libc_##name
#endif

extern void *TRUE_CALL(malloc)(size_t size);
extern void *TRUE_CALL(calloc)(size_t count, size_t size);
extern void *TRUE_CALL(realloc)(void *old, size_t size);

static UNWATCHED bool refuse(void) {
    if (!fails_now(FAILING_MEMORY))
        return false;
    errno = ENOMEM;
    return true;
}

UNWATCHED void *malloc(size_t size) {
    return refuse() ? NULL : TRUE_CALL(malloc)(size);
}

UNWATCHED void *calloc(size_t count, size_t size) {
    return refuse() ? NULL : TRUE_CALL(calloc)(count, size);
}

UNWATCHED void *realloc(void *old, size_t size) {
    return refuse() ? NULL : TRUE_CALL(realloc)(old, size);
}

// ---- threads ------------------------------------------------------------------------------------

typedef struct ThreadStart {
    void *(*begin)(void *);
    void *context;
} ThreadStart;

static void *begin_thread(void *context) {
    ThreadStart start = *(ThreadStart *)context;
    free(context);
    is_begun = true;
    return start.begin(start.context);
}

// In place of the library's, which it calls.
int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*begin)(void *), void *restrict context) {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    ThreadStart *start = malloc(sizeof *start);
    if (!start)
        return EAGAIN;
    *start = (ThreadStart){begin, context};
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    int code = create(thread, attributes, begin_thread, start);
    if (code != 0)
        free(start);
    return code;
}
