#define _GNU_SOURCE // syscall, O_PATH
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

// The leak checker of a sanitized program traces it from a process of its own.
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

// ---- files: Landlock ----------------------------------------------------------------------------

// The kernel's interface as of its version 6: older headers lack parts of it.
enum {
    NR_CREATE_RULESET = 444,
    NR_ADD_RULE,
    NR_RESTRICT_SELF,
    CREATE_RULESET_VERSION = 1,
    RULE_PATH_BENEATH = 1,
};

#define EXECUTE     (UINT64_C(1) << 0)
#define WRITE_FILE  (UINT64_C(1) << 1)
#define READ_FILE   (UINT64_C(1) << 2)
#define READ_DIR    (UINT64_C(1) << 3)
#define REMOVE_DIR  (UINT64_C(1) << 4)
#define REMOVE_FILE (UINT64_C(1) << 5)
#define MAKE_DIR    (UINT64_C(1) << 7)
#define MAKE_REG    (UINT64_C(1) << 8)
#define REFER       (UINT64_C(1) << 13) // from version 2 on
#define TRUNCATE    (UINT64_C(1) << 14) // 3
#define ALL_FIRST   (REFER - 1)

#define ALL_OF_NETWORK UINT64_C(3) // 4: to bind, to connect
#define ALL_OF_SCOPES  UINT64_C(3) // 6: abstract sockets, signals

#define READING (READ_FILE | READ_DIR)
#define WRITING \
    (READING | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER | TRUNCATE)
#define OF_FILES (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE)

typedef struct Ruleset {
    uint64_t files, network, scopes; // older kernels know a part, and want zeros behind it
} Ruleset;

typedef struct __attribute__((packed)) PathRule {
    uint64_t allowed;
    int32_t parent;
} PathRule;

// What any program reads of a system: libraries, locales, time zones, itself, the machine.
static const char *const system_paths[] = {"/usr",
                                           "/lib",
                                           "/lib64",
                                           "/etc/ld.so.cache",
                                           "/etc/localtime",
                                           "/etc/timezone",
                                           "/etc/locale.alias",
                                           "/etc/OpenCL",
                                           "/proc",
                                           "/sys",
                                           "/dev/urandom",
                                           "/dev/random",
                                           "/dev/zero"};

static void allow(int ruleset, uint64_t handled, const char *path, uint64_t access) {
    int parent = open(path, O_PATH | O_CLOEXEC);
    struct stat about;
    if (parent < 0)
        return;
    if (fstat(parent, &about) == 0) {
        if (!S_ISDIR(about.st_mode))
            access &= OF_FILES;
        PathRule rule = {access & handled, parent};
        (void)syscall(NR_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0); // else it stays shut
    }
    close(parent);
}

// The program's own folder, and what is installed beside it.
static void allow_program(int ruleset, uint64_t handled) {
    char program[4096], path[4096 + 32];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return;
    program[length] = 0;
    const char *folder = dirname(program);
    allow(ruleset, handled, folder, READING);
    static const char *const beside[] = {"../share/mpbench", "../lib"};
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, beside[i]);
        allow(ruleset, handled, path, READING);
    }
}

static bool shut_files(const SandboxPath *paths, int count) {
    long version = syscall(NR_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
    if (version < 1)
        return false;
    uint64_t handled = ALL_FIRST | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0);
    const Ruleset rules = {handled, version >= 4 ? ALL_OF_NETWORK : 0,
                           version >= 6 ? ALL_OF_SCOPES : 0};
    int ruleset = (int)syscall(NR_CREATE_RULESET, &rules, sizeof rules, 0);
    if (ruleset < 0)
        return false;
    for (size_t i = 0; i < sizeof system_paths / sizeof *system_paths; i++)
        allow(ruleset, handled, system_paths[i], READING);
    allow(ruleset, handled, "/dev/null", READING | WRITE_FILE);
    allow(ruleset, handled, "/proc/self/fd/2", WRITE_FILE); // which is opened once more
    allow_program(ruleset, handled);
    for (int i = 0; i < count; i++)
        allow(ruleset, handled, paths[i].path[0] ? paths[i].path : ".",
              paths[i].is_written ? WRITING : READING);
    bool done = syscall(NR_RESTRICT_SELF, ruleset, 0) == 0;
    close(ruleset);
    return done;
}

// ---- calls: seccomp -----------------------------------------------------------------------------

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#else
#define MACHINE AUDIT_ARCH_AARCH64
#endif

// Programs, processes of others, connections, ways around the files, and the system itself. Those
// that change who may use a file are here since Landlock leaves them alone.
static const int refused_calls[] = {
    SYS_execve,
    SYS_execveat,
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_setpriority,
    SYS_sched_setscheduler,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SYS_utimensat,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    SYS_unshare,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_syslog,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_personality,
#if defined(__x86_64__)
    SYS_fork,
    SYS_vfork,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
#endif
    424, // pidfd_send_signal
    425, // io_uring_setup
    428, // open_tree
    429, // move_mount
    430, // fsopen
    434, // pidfd_open
    438, // pidfd_getfd
    440, // process_madvise
    442, // mount_setattr
    452, // fchmodat2
};

enum {
    NR_CLONE3 = 435,
    FOREIGN_CALLS = 0x40000000, // from here on, of another binary interface
    THREAD_FLAG = 0x10000,      // CLONE_THREAD
    TYPE_IN_TERMINAL = 0x5412,  // TIOCSTI
    PASTE_IN_TERMINAL = 0x541C, // TIOCLINUX
    MOST_INSTRUCTIONS = 256,
};

typedef struct Filter {
    struct sock_filter code[MOST_INSTRUCTIONS];
    unsigned short count;
} Filter;

static void add(Filter *filter, uint16_t code, uint32_t value, uint8_t yes, uint8_t no) {
    filter->code[filter->count++] = (struct sock_filter){code, yes, no, value};
}

static void load(Filter *filter, size_t offset) {
    add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(Filter *filter, uint32_t what) {
    add(filter, BPF_RET | BPF_K, what, 0, 0);
}

static size_t low_half(int argument) { // both machines are little-endian
    return offsetof(struct seccomp_data, args) + (size_t)argument * sizeof(uint64_t);
}

// The filter knows the call's number here: whatever is left at the end is allowed.
static void judge(Filter *filter) {
    const uint32_t refuse = SECCOMP_RET_ERRNO | EPERM;
    for (size_t i = 0; i < sizeof refused_calls / sizeof *refused_calls; i++) {
        add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refused_calls[i], 0, 1);
        answer(filter, refuse);
    }
    if (!IS_SANITIZED) {
        add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1);
        answer(filter, refuse);
        add(filter, BPF_JMP | BPF_JEQ | BPF_K, NR_CLONE3, 0, 1); // its flags cannot be seen
        answer(filter, SECCOMP_RET_ERRNO | ENOSYS);              // clone is tried instead
        add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
        load(filter, low_half(0));
        add(filter, BPF_JMP | BPF_JSET | BPF_K, THREAD_FLAG, 0, 1);
        answer(filter, SECCOMP_RET_ALLOW);
        answer(filter, refuse);
    }
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 5);
    load(filter, low_half(1));
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, TYPE_IN_TERMINAL, 1, 0);
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, PASTE_IN_TERMINAL, 0, 1);
    answer(filter, refuse);
    answer(filter, SECCOMP_RET_ALLOW);
    // Signals reach this process alone; 0 asks whether one is there.
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 0, 4);
    load(filter, low_half(1));
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
    answer(filter, SECCOMP_RET_ALLOW);
    add(filter, BPF_JMP | BPF_JA, 1, 0, 0);
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4);
    load(filter, low_half(0));
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 0, 1);
    answer(filter, SECCOMP_RET_ALLOW);
    answer(filter, refuse);
    answer(filter, SECCOMP_RET_ALLOW);
}

static bool shut_calls(void) {
    Filter filter = {.count = 0};
    const uint32_t refuse = SECCOMP_RET_ERRNO | EPERM;
    load(&filter, offsetof(struct seccomp_data, arch));
    add(&filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)MACHINE, 1, 0);
    answer(&filter, refuse);
    load(&filter, offsetof(struct seccomp_data, nr));
    add(&filter, BPF_JMP | BPF_JGE | BPF_K, FOREIGN_CALLS, 0, 1);
    answer(&filter, refuse);
    judge(&filter);
    const struct sock_fprog program = {filter.count, filter.code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

// ---- both ---------------------------------------------------------------------------------------

int sandbox_enter(const SandboxPath *paths, int count) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return 0;
    int parts = shut_files(paths, count) ? SANDBOX_FILES : 0;
    return parts | (shut_calls() ? SANDBOX_CALLS : 0);
}

#else

int sandbox_enter(const SandboxPath *paths, int count) {
    (void)paths, (void)count;
    return 0;
}

#endif
