// Loaded into the program before its libraries (LD_PRELOAD). The file named by $CLOCK_SHIFT holds
// seconds that the wall clock is off by, from when it is there; $THREADS_LEFT and $FORKS_LEFT are
// how many threads there can be at once, and how many processes can be begun.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern int __libc_fork(void);

static long shift(void) {
    const char *path = getenv("CLOCK_SHIFT");
    char text[32] = "";
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    if (read(file, text, sizeof text - 1) < 0)
        text[0] = 0;
    close(file);
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long code = syscall(SYS_clock_gettime, clock, now);
    if (code == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += shift();
    return (int)code;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    *now = (struct timeval){exact.tv_sec, exact.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *seconds) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (seconds)
        *seconds = exact.tv_sec;
    return exact.tv_sec;
}

extern void *dlsym(void *library, const char *name);
static void *const next_library = (void *)-1L; // RTLD_NEXT
static atomic_long threads, forks;

// False, with nothing counted, once there are as many as the variable says.
static int is_left(const char *variable, atomic_long *count) {
    const char *most = getenv(variable);
    if (atomic_fetch_add(count, 1) < (most ? atol(most) : 1000000))
        return 1;
    atomic_fetch_sub(count, 1);
    return 0;
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*begin)(void *), void *restrict context) {
    typedef int Create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    Create *create = (Create *)dlsym(next_library, "pthread_create");
    return is_left("THREADS_LEFT", &threads) ? create(thread, attributes, begin, context) : EAGAIN;
}

int pthread_join(pthread_t thread, void **result) {
    typedef int Join(pthread_t, void **);
    Join *join = (Join *)dlsym(next_library, "pthread_join");
    atomic_fetch_sub(&threads, 1);
    return join(thread, result);
}

pid_t fork(void) {
    if (is_left("FORKS_LEFT", &forks))
        return __libc_fork();
    errno = EAGAIN;
    return -1;
}
