// kernel/kernel.h: the contract that every backend fills.
//
// A backend is a const table: how to open a device, move bytes, and one kernel an operation of
// ops.def, beside the few functions that run over all tensors of a model at once (kernel/multi.h).
//
// Kernels are asynchronous: a call may return before its work is done, work of one device happens
// in the order of the calls, and only device_read and device_synchronize wait. Numbers that a step
// decides by (the loss scale, whether anything overflowed, the step count) stay in device memory.
// A kernel never allocates from the system: outputs are the caller's, scratch is the device's
// workspace. It reads inputs in any floating format (see ops.def), and it may assume shapes and
// formats that the shape rule has checked; values it must check itself (a class past the end) it
// reports as kernel/status.h says.
//
// One thread drives a device; kernels use the device's threads inside. A plugin may be written in
// another dialect: these headers and number/inline.h are C++ too (make lint compiles them so).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kernel/attr.h"
#include "kernel/status.h"
#include "kernel/view.h"

typedef enum OpId {
#define OP(name, ...) OP_##name,
#include "kernel/ops.def"
    OP_COUNT
} OpId;

enum { VARIADIC = -1, OP_MAX_INPUTS = 16, OP_MAX_OUTPUTS = 3 };

typedef enum PrecisionClass {
    CLASS_LOW,
    CLASS_FULL,
    CLASS_WIDEST,
    CLASS_KEEP,
    CLASS_BANNED,
    CLASS_INNER
} PrecisionClass;

typedef enum OpLayout {
    LAYOUT_STRIDED,
    LAYOUT_MATRIX,
    LAYOUT_ROWS,
    LAYOUT_DENSE,
    LAYOUT_IN_PLACE
} OpLayout;

typedef struct OpInfo {
    const char *name;
    int inputs, outputs; // inputs: VARIADIC for any number up to OP_MAX_INPUTS
    PrecisionClass precision;
    OpLayout layout;
    const char *text;
} OpInfo;

extern const OpInfo op_table[OP_COUNT];

// What memory is for; each device accounts for these apart.
typedef enum MemoryPurpose {
    MEMORY_WEIGHTS,
    MEMORY_MASTERS, // low copies of weights count as weights, the fp32 beside them as masters
    MEMORY_OPTIMIZER,
    MEMORY_ACTIVATIONS,
    MEMORY_GRADIENTS,
    MEMORY_WORKSPACE,
    MEMORY_DATA,
    MEMORY_PURPOSES
} MemoryPurpose;

typedef struct Backend Backend;
typedef struct Allocator Allocator;       // kernel/allocator.h
typedef struct MultiKernels MultiKernels; // kernel/multi.h
typedef struct DevicePart DevicePart;     // kernel/about.h
typedef struct DeviceReadings DeviceReadings;

// Marks of memory, which tensor/ puts on it and a room above gives a meaning (checkpoint/replay.h).
typedef struct DeviceMarks {
    uint8_t written;    // what is made or written over now bears these
    uint8_t unreadable; // what bears one of these has no contents: who would read it is refused,
    const char *why;    // by these words
} DeviceMarks;

typedef struct KernelCall KernelCall;

// Who is told of what a device is asked for, to ask for it again; the first member of its owner's.
typedef struct DeviceTap DeviceTap;
struct DeviceTap {
    void (*ran)(DeviceTap *tap, const KernelCall *call); // a kernel, well
    void (*moved)(DeviceTap *tap, bool reads);           // bytes, to the host or from there
};

typedef struct Device {
    const Backend *backend;
    void *state; // the backend's own
    Allocator *allocator;
    int threads;
    char label[32];      // what device_open opens it by: "gpu", "gpu:1"
    char name[96];       // of the hardware
    char about[96];      // what else there is to say of it; may be empty
    uint64_t memory;     // bytes of its own; 0: it works in the host's
    int multiprocessors; // of a card: a kernel that does not fill them leaves some idle; 0: no card
    DeviceMarks marks;   // kept for a room above
    DeviceStatus status; // the first that was taken; see device_check
    // Tells a status as whoever made the call would; NULL: without its place.
    bool (*explain)(void *context, const DeviceStatus *status, Error *error);
    void *explain_context;
    // How often the host waited: it read, synchronised, gave memory back to the system, or had sent
    // more than the device takes on.
    uint64_t waits;
    // What there is to say of how it works that is no failure; "" : nothing. Whoever tells it
    // empties it.
    char remark[ERROR_TEXT_SIZE];
    bool no_capture; // steps are not captured, on a device that would; set before the first ends
    uint64_t steps, captured; // of a device that would: how many ended, how many were captured
    DeviceTap *tap;           // NULL: nobody is told
    // The largest magnitude in the first output of the last kernel, or NaN, where that told it.
    // Negative: it did not, and MultiKernels.largest has to look.
    float largest;
} Device;

struct KernelCall {
    OpId op;
    int layer; // that it is made in, for messages; 0: none
    int input_count, output_count;
    View input[OP_MAX_INPUTS]; // data is NULL for an input that is absent
    View output[OP_MAX_OUTPUTS];
    const OpAttr *attr;
};

typedef bool (*Kernel)(Device *device, const KernelCall *call, Error *error);

// How a device that runs on its own tells the host of a step without being waited for
// (kernel/report.h has what is made of it). Marks are numbered from 0 to `late`.
typedef struct ReportKernels {
    int late; // so many reports may be on their way when a step ends
    // Memory of the host that the device copies into by itself.
    void *(*memory_new)(Device *device, size_t bytes);
    void (*memory_free)(Device *device, void *memory, size_t bytes);
    // Behind the work so far: `source` may be overwritten or given back at once, `host` is filled
    // when the next mark is past.
    void (*copy)(Device *device, void *host, const void *source, size_t bytes);
    void (*mark)(Device *device, int number);
    bool (*is_past)(Device *device, int number, bool waits);
} ReportKernels;

// The clock of a device that runs on its own: stamps lie behind the work so far, numbered by
// whoever puts them, the newer of a number in place of the older.
typedef struct ClockKernels {
    bool (*stamp)(Device *device, int number); // false: there is none
    // Seconds from one to the other, of which both are past; NaN where that is not known.
    double (*between)(Device *device, int from, int to);
} ClockKernels;

struct Backend {
    const char *name; // as --device names it
    bool preferred;   // where one of these can be opened, no other is taken unasked
    // How many there are, whether or not they can be opened; NULL: one.
    int (*count)(void);
    // Does what opening it needs rights for that the process then gives up; NULL: nothing.
    void (*prepare)(void);
    bool is_idle; // it accepts all work and does none (checkpoint/replay.h)
    // Fills a fresh device (allocator excepted); `index` counts devices of this kind.
    bool (*open)(Device *device, int index, int threads, Error *error);
    void (*close)(Device *device);
    // Memory from the system, 64-byte aligned; NULL when there is none. Called by the allocator.
    void *(*memory_new)(Device *device, size_t bytes);
    void (*memory_free)(Device *device, void *memory, size_t bytes);
    void (*write)(Device *device, void *target, const void *host,
                  size_t bytes); // host may be reused
    void (*read)(Device *device, void *host, const void *source, size_t bytes); // waits
    void (*synchronize)(Device *device);
    const ReportKernels *report; // NULL: reading is no waiting, calls have done their work
    const ClockKernels *clock;   // NULL: likewise, so the host's clock tells what a call takes
    // Gives what kernels that have ended found (kernel/status.h), once; waits for nothing. NULL:
    // the calls themselves say it.
    bool (*take_status)(Device *device, DeviceStatus *status);
    // A step of the run has ended: a device that captures steps begins the next here. What a step
    // asks for may be held back until it ends, or until somebody waits. NULL: it captures none.
    void (*end_step)(Device *device);
    // False, with why, once the device itself has failed: what it gave since is nothing. NULL: a
    // device that never fails.
    bool (*check)(const Device *device, Error *error);
    const Kernel *kernels;       // [OP_COUNT]; NULL: deliberately absent
    const char *const *absences; // [OP_COUNT]; why, where kernels[] is NULL
    // Whether this backend runs an operation on tensors in a format (a product in TF32: by its
    // attr->compute), and about how many times as fast as in fp32 large matrix products in it are
    // (what `auto` asks); 1: no faster.
    bool (*supports)(const Device *device, OpId op, Format format);
    bool sums;         // whether matrix products add up as number/sums.h says; else in fp32 alone
    bool parts_scales; // whether scale_factor leaves a scale apart and products multiply by it
    double (*gain)(const Device *device, Format format);
    // What it chose by measuring when it was opened, and its results depend on in their last bits,
    // in words of its own. By the second it goes on as another opening chose: false
    // where it cannot. NULL: nothing is chosen so.
    void (*ways)(const Device *device, char *text, size_t size);
    bool (*take_ways)(Device *device, const char *text);
    const MultiKernels *multi;
    // The name and version of the library it computes with; NULL function: none.
    void (*computes_with)(char *name, size_t name_size, char *version, size_t version_size);
    // What the device is made of and works with, and what is missing: writes DEVICE_MOST_PARTS at
    // most, returns how many. Asked for by people, and once a run: it may take its time. NULL:
    // nothing to tell.
    int (*parts)(const Device *device, DevicePart *parts);
    // How it fares now; waits for none of its work. NULL: nothing can be read.
    void (*readings)(Device *device, DeviceReadings *readings);
};

// A backend declares its kernels by expanding ops.def with KERNEL_SIGNATURE and lists them by
// expanding it again, so that a missing kernel is a link error:
//     #define OP(name, ...) KERNEL_SIGNATURE(cpu, name);
//     #define OP(name, ...) [OP_##name] = cpu_##name,
// What it leaves out on purpose it defines as NULL between the two, beside a row in `absences`.
#define KERNEL_SIGNATURE(prefix, name) \
    bool prefix##_##name(Device *device, const KernelCall *call, Error *error)

// ---- the list of devices ------------------------------------------------------------------------

extern const Backend *const backend_list[]; // ended by NULL; src/backends.c has it

// Opens "cpu", "ref", "gpu", "gpu:1". `threads` 0: as many as there are processors.
bool device_open(const char *name, int threads, Device **device, Error *error) MUST_CHECK;
// Opens the first that is preferred, or else the first of the list. *passed tells of one that is
// there and cannot be used; its code is ERROR_NONE where there is none.
bool device_open_best(int threads, Device **device, Error *passed, Error *error) MUST_CHECK;
// Does what the device named (NULL: any) needs of the system before it is opened: to be called
// before the process gives up rights. Whether one could be opened that works with cards.
bool device_prepare(const char *name);
void device_close(Device *device); // NULL is fine; every memory must have been given back

// Whether it accepts all work and does none: what was written cannot be read, and need not be done.
static inline bool device_is_idle(const Device *device) {
    return device->backend->is_idle;
}

void device_write(Device *device, void *target, const void *host, size_t bytes);
void device_read(Device *device, void *host, const void *source, size_t bytes);
void device_synchronize(Device *device);
void device_end_step(Device *device);
// Whether steps are captured that find what the one before found, down to the addresses.
static inline bool device_captures(const Device *device) {
    return device->backend->end_step && !device->no_capture;
}

// Takes the status of a device that runs on its own, as device_read and device_synchronize do when
// they have waited. Waits for nothing itself.
void device_take_status(Device *device);
// False, with why, once the device itself has failed; see Backend.check.
static inline bool device_works(const Device *device, Error *why) {
    return !device->backend->check || device->backend->check(device, why);
}

// False when a status was taken, or the device has failed: then nothing that the device has
// computed since may be believed, and the run ends by this error.
bool device_check(const Device *device, Error *error) MUST_CHECK;

// Scratch for one kernel call, 64-byte aligned, valid until the next call of device_workspace on
// this device. NULL when there is no memory (then `error` is filled).
void *device_workspace(Device *device, size_t bytes, Error *error);

// Runs one kernel: checks that the backend has it and multiplies as it is told, and nothing else.
// Where outputs may lie on inputs is the caller's promise, as ops.def has it.
bool device_run(Device *device, const KernelCall *call, Error *error) MUST_CHECK;
