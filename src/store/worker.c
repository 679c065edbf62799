// Who trains a run, and whether that process lives.
#include "store/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/commands.h"
#include "store/store_private.h"

enum { SILENT_MS = 5000 };

// Files of /proc come in one read; true when there was something.
static bool read_small(const char *path, char *text, size_t size, int *cause) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    *cause = file < 0 ? errno : 0;
    ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    if (file >= 0 && length < 0)
        *cause = errno;
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = 0;
    return length > 0;
}

// ---- moments ------------------------------------------------------------------------------------

// What a time namespace (of a container) adds to the time since boot: to the clock, and to the
// starts of processes as /proc tells them to who looks from inside. What is kept is without it, so
// that all processes of a boot mean the same. 0 where the kernel has no such namespaces.
static int64_t namespace_ms(void) {
    char text[256];
    int cause;
    long long seconds = 0, nanoseconds = 0;
    const char *line = read_small("/proc/self/timens_offsets", text, sizeof text, &cause)
                           ? strstr(text, "boottime")
                           : NULL;
    if (!line || sscanf(line, "boottime %lld %lld", &seconds, &nanoseconds) != 2)
        return 0;
    return (int64_t)seconds * 1000 + nanoseconds / 1000000;
}

int64_t worker_boot_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - namespace_ms();
}

static int64_t namespace_ticks(void) {
    return namespace_ms() * sysconf(_SC_CLK_TCK) / 1000;
}

// Field 22 of /proc/PID/stat, and the state, which is field 3. The name before them may hold
// blanks and parentheses; it ends with the last one.
static bool parse_stat(const char *text, char *state, int64_t *started) {
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ')
        return false;
    *state = at[2];
    at += 2;
    for (int field = 3; field < 22; field++) {
        at = strchr(at, ' ');
        if (!at)
            return false;
        at++;
    }
    char *end;
    *started = strtoll(at, &end, 10) - namespace_ticks();
    return end != at;
}

typedef enum Presence { PRESENT, GONE, HIDDEN } Presence;

// Whether the process `pid` that was started then is there. HIDDEN: it may not be seen.
static Presence find_process(int64_t pid, int64_t started) {
    if (pid <= 0 || pid > INT32_MAX)
        return GONE;
    char path[64], text[1024], state = 0;
    int cause = 0;
    int64_t moment = 0;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    if (!read_small(path, text, sizeof text, &cause)) {
        if (cause != ENOENT && cause != ESRCH)
            return HIDDEN;
        return kill((pid_t)pid, 0) != 0 && errno == ESRCH ? GONE : HIDDEN;
    }
    if (!parse_stat(text, &state, &moment))
        return HIDDEN;
    // What a namespace that is not set off by whole ticks tells may be a tick beside the truth; a
    // pid does not come round in two.
    bool is_the_one = moment >= started - 1 && moment <= started + 1;
    return is_the_one && state != 'Z' && state != 'X' ? PRESENT : GONE;
}

void worker_here(WorkerId *here) {
    int cause;
    *here = (WorkerId){0};
    if (read_small("/proc/sys/kernel/random/boot_id", here->boot, sizeof here->boot, &cause))
        here->boot[strcspn(here->boot, "\n")] = 0;
    if (gethostname(here->host, sizeof here->host - 1) != 0)
        here->host[0] = 0;
    struct stat space;
    if (stat("/proc/self/ns/pid", &space) == 0)
        here->pid_space = (int64_t)space.st_ino;
}

bool worker_identify(WorkerId *worker, Error *error) {
    worker_here(worker);
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_fail(error, ERROR_FAILED, "no random bytes: the system lacks getrandom");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(worker->token + 2 * i, 3, "%02x", bytes[i]);
    char text[1024], state;
    int cause = 0;
    worker->pid = getpid();
    if (!worker->boot[0] || !read_small("/proc/self/stat", text, sizeof text, &cause) ||
        !parse_stat(text, &state, &worker->started))
        return error_fail(error, ERROR_FAILED,
                          "/proc cannot be read, so that nobody could tell whether this run lives: "
                          "mount it, or train with --no-history");
    return true;
}

// ---- judging ------------------------------------------------------------------------------------

bool worker_row_get(Query *query, int column, WorkerRow *row) {
    *row = (WorkerRow){0};
    if (query_is_null(query, column))
        return false;
    query_text(query, column, row->id.token, sizeof row->id.token);
    query_text(query, column + 1, row->id.host, sizeof row->id.host);
    query_text(query, column + 2, row->id.boot, sizeof row->id.boot);
    row->id.pid_space = query_integer(query, column + 3);
    row->id.pid = query_integer(query, column + 4);
    row->id.started = query_integer(query, column + 5);
    row->beat_ms = query_integer(query, column + 6);
    row->beat_wall_ms = query_integer(query, column + 7);
    return true;
}

// The beat's distance from now, either way: a beat from the future tells as little as an old one.
static bool is_silent(int64_t now, int64_t beat) {
    uint64_t distance =
        now > beat ? (uint64_t)now - (uint64_t)beat : (uint64_t)beat - (uint64_t)now;
    return distance > SILENT_MS;
}

WorkerLife worker_judge(const WorkerRow *row, const WorkerId *here, pid_t *pid) {
    *pid = 0;
    bool same_host = strcmp(row->id.host, here->host) == 0;
    bool same_boot = here->boot[0] && strcmp(row->id.boot, here->boot) == 0;
    bool silent = same_boot ? is_silent(worker_boot_ms(), row->beat_ms)
                            : is_silent(store_wall_ms(), row->beat_wall_ms);
    if (!same_host) // nor is its clock ours, but where it is a container of this machine
        return silent ? WORKER_DEAD : WORKER_LIVE;
    if (!same_boot)
        return WORKER_DEAD;
    if (row->id.pid_space != here->pid_space) // a container: its pids are others'
        return silent ? WORKER_DEAD : WORKER_LIVE;
    switch (find_process(row->id.pid, row->id.started)) {
    case PRESENT: *pid = (pid_t)row->id.pid; return silent ? WORKER_STALE : WORKER_LIVE;
    case HIDDEN: return silent ? WORKER_DEAD : WORKER_LIVE;
    case GONE: break;
    }
    return WORKER_DEAD;
}

static bool read_row(Store *store, int64_t run, WorkerRow *row, bool *exists, Error *error) {
    Query query;
    *exists = false;
    if (!query_begin(&query, store, "SELECT " WORKER_COLUMNS " FROM workers w WHERE w.run = ?",
                     error))
        return false;
    query_put_integer(&query, run);
    while (query_next(&query))
        *exists = worker_row_get(&query, 0, row);
    return query_end(&query, "the worker of the run cannot be read", error);
}

bool store_worker_life(Store *store, int64_t run, WorkerLife *life, pid_t *pid, Error *error) {
    WorkerRow row;
    WorkerId here;
    bool exists;
    *life = WORKER_NONE;
    *pid = 0;
    if (!read_row(store, run, &row, &exists, error))
        return false;
    if (exists) {
        worker_here(&here);
        *life = worker_judge(&row, &here, pid);
    }
    return true;
}

static bool may_go_on(WorkerLife life) {
    return life == WORKER_LIVE || life == WORKER_STALE;
}

bool store_is_trained(Store *store, int64_t run, bool *is_trained, Error *error) {
    WorkerLife life;
    pid_t pid;
    *is_trained = true;
    if (!store_worker_life(store, run, &life, &pid, error))
        return false;
    *is_trained = may_go_on(life);
    return true;
}

bool store_refuse_living(Store *store, int64_t run, Error *error) {
    WorkerLife life;
    pid_t pid;
    char process[48] = "";
    if (!store_worker_life(store, run, &life, &pid, error))
        return false;
    if (!may_go_on(life))
        return true;
    if (pid > 0)
        snprintf(process, sizeof process, ", in process %ld", (long)pid);
    return error_fail(error, ERROR_TAKEN,
                      "run %" PRId64 " is in progress%s; `mpbench ctl %" PRId64 " stop` ends it",
                      run, process, run);
}

// ---- owning -------------------------------------------------------------------------------------

static bool check_owner(Store *store, int64_t run, const WorkerId *worker, bool *is_mine,
                        Error *error) {
    WorkerRow row;
    WorkerId here;
    bool exists;
    *is_mine = false;
    if (!read_row(store, run, &row, &exists, error))
        return false;
    if (!exists)
        return true;
    *is_mine = strcmp(row.id.token, worker->token) == 0;
    pid_t pid;
    worker_here(&here);
    if (*is_mine || worker_judge(&row, &here, &pid) == WORKER_DEAD)
        return true;
    return error_fail(error, ERROR_TAKEN,
                      "run %" PRId64 " is trained by process %" PRId64
                      " on %s: stop that one first",
                      run, row.id.pid, row.id.host);
}

static bool check_run(Store *store, int64_t run, Error *error) {
    Query query;
    bool exists = false;
    if (!query_begin(&query, store, "SELECT 1 FROM runs WHERE id = ?", error))
        return false;
    query_put_integer(&query, run);
    while (query_next(&query))
        exists = true;
    if (!query_end(&query, "the run cannot be read", error))
        return false;
    return exists || error_fail(error, ERROR_USAGE, "no run %" PRId64 " in %s: see mpbench ls", run,
                                store->path);
}

static bool write_owner(Store *store, int64_t run, const WorkerId *worker, Error *error) {
    Query query;
    if (!query_begin(
            &query, store,
            "INSERT OR REPLACE INTO workers (run, token, host, boot, pid_space, pid, started,"
            " beat_ms, beat_wall_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            error))
        return false;
    query_put_integer(&query, run);
    query_put_text(&query, worker->token);
    query_put_text(&query, worker->host);
    query_put_text(&query, worker->boot);
    query_put_integer(&query, worker->pid_space);
    query_put_integer(&query, worker->pid);
    query_put_integer(&query, worker->started);
    query_put_integer(&query, worker_boot_ms());
    query_put_integer(&query, store_wall_ms());
    query_next(&query);
    return query_end(&query, "the run cannot be taken", error);
}

bool store_own_run(Store *store, int64_t run, const WorkerId *worker, Error *error) {
    if (!store_begin(store, error))
        return false;
    bool is_mine = false;
    bool done = check_run(store, run, error) && check_owner(store, run, worker, &is_mine, error) &&
                write_owner(store, run, worker, error);
    // Orders that the last worker left: nobody knows whether they took effect, so none is repeated.
    if (done && !is_mine)
        done = store_refuse_commands(store, run, "the worker was gone before it answered", error);
    return store_end(store, done, error);
}

// One row with our token must be there for it.
static bool touch(Query *query, int64_t run, const char *what, Error *error) {
    query_next(query);
    int64_t changes = query_changes(query);
    if (!query_end(query, what, error))
        return false;
    return changes > 0 ||
           error_fail(error, ERROR_STOPPED,
                      "run %" PRId64 " is another worker's now, or was removed: this one stops",
                      run);
}

bool store_beat(Store *store, int64_t run, const WorkerId *worker, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "UPDATE workers SET beat_ms = ?, beat_wall_ms = ? WHERE run = ? AND token = ?",
                     error))
        return false;
    query_put_integer(&query, worker_boot_ms());
    query_put_integer(&query, store_wall_ms());
    query_put_integer(&query, run);
    query_put_text(&query, worker->token);
    return touch(&query, run, "the sign of life cannot be written", error);
}

bool store_release_run(Store *store, int64_t run, const WorkerId *worker, Error *error) {
    Query query;
    if (!query_begin(&query, store, "DELETE FROM workers WHERE run = ? AND token = ?", error))
        return false;
    query_put_integer(&query, run);
    query_put_text(&query, worker->token);
    return touch(&query, run, "the run cannot be given back", error);
}
