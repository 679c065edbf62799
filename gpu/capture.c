#include "gpu/capture.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu/gpu.h"
#include "gpu/record.h"
#include "kernel/allocator.h"

enum {
    STEPS = 8,        // that are remembered: with and without a sample, whole batches and the last
    INBOX_UNIT = 256, // what is sent begins at multiples of it
    INBOX_LEAST = 1 << 16, // bytes
    INBOX_SHARE = 32       // of the card's memory an inbox takes one of so many parts at most
};

// A step that was made, and may come again.
typedef struct Step {
    GpuRecord record;  // empty: none
    CUgraphExec graph; // NULL: it came once only, or there is none to be had
    bool refused;
    bool lives;    // what the step under way was told to do so far is this one's too
    uint64_t last; // step in which it came
} Step;

struct GpuCapture {
    Step step[STEPS];
    GpuRecord record; // of the step under way: all that was put
    bool is_whole;    // and nothing else was
    bool holds;       // nothing was put yet
    size_t place;     // up to which calls are held back: those of the steps that live,
    const Step *held; // of which this is one
    size_t sent;      // bytes of the inbox that the step takes so far
    bool remarked[2]; // what is told once: done instead, not captured
    char *inbox;
    size_t inbox_bytes;
};

bool gpu_open_capture(Gpu *gpu, Error *error) {
    gpu->capture = calloc(1, sizeof *gpu->capture);
    return gpu->capture || error_fail(error, ERROR_MEMORY, "device gpu: no memory");
}

static void drop_graph(Gpu *gpu, Step *step) {
    if (step->graph)
        gpu->driver->cuGraphExecDestroy(step->graph);
    step->graph = NULL;
    step->lives = false;
}

void gpu_close_capture(Gpu *gpu) {
    GpuCapture *capture = gpu->capture;
    if (!capture)
        return;
    for (int i = 0; i < STEPS; i++) {
        drop_graph(gpu, &capture->step[i]);
        gpu_record_clear(&capture->step[i].record);
    }
    gpu_record_clear(&capture->record);
    if (capture->inbox)
        gpu->driver->cuMemFree(gpu_address(capture->inbox));
    free(capture);
    gpu->capture = NULL;
}

// ---- held back ----------------------------------------------------------------------------------

// Whether the call is held back: it is the next of a step of which there is a graph.
static bool hold(GpuCapture *capture, const GpuCall *call) {
    const Step *held = NULL;
    if (!capture->holds)
        return false;
    for (int i = 0; i < STEPS; i++) {
        Step *step = &capture->step[i];
        step->lives = step->lives && gpu_record_has(&step->record, capture->place, call);
        if (step->lives)
            held = step;
    }
    if (!held)
        return false;
    capture->held = held;
    capture->place = gpu_record_behind(capture->place, call);
    return true;
}

static void remark(Gpu *gpu, bool *remarked, const char *library, const char *what) {
    if (!*remarked)
        snprintf(gpu->device->remark, sizeof gpu->device->remark, "device %s: %s %s (%.200s)",
                 gpu->device->label, library, what, gpu->refusal.text);
    *remarked = true;
}

// A library was told to have done it, and refuses. What is put meanwhile is remembered nowhere.
static CUresult put_instead(Gpu *gpu, const GpuCall *call) {
    Error why = {0};
    gpu->capture->is_whole = false;
    remark(gpu, &gpu->capture->remarked[0], call->name,
           "refuses now what it did in the captured steps before: the card's own kernels do it");
    // Of what was held back, the rest reads memory that its owners have given back since.
    allocator_take_anew(gpu->device->allocator, true);
    bool done = call->instead.run(gpu->device, call->instead.told, &why);
    allocator_take_anew(gpu->device->allocator, false);
    if (!done && gpu->failure.code == ERROR_NONE)
        gpu->failure = why;
    return done ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

// What was held back, of which there is a copy where is_whole: else nobody may put anything of his.
static CUresult put_held(Gpu *gpu, const GpuRecord *held, size_t end, const char **failed) {
    GpuCapture *capture = gpu->capture;
    const bool is_copied = capture->is_whole;
    const GpuRecord *record = is_copied ? &capture->record : held;
    int covered = 0;
    GpuCall call;
    for (size_t place = 0; place < end && gpu_record_at(record, place, &call);
         place = gpu_record_behind(place, &call)) {
        if (covered > 0) {
            covered--;
            continue;
        }
        gpu->refusal = (Error){0};
        CUresult result = call.put(gpu, call.what);
        bool refused = result != CUDA_SUCCESS && gpu->refusal.code != ERROR_NONE;
        if (refused && is_copied && call.instead.run) {
            result = put_instead(gpu, &call);
            covered = call.instead.covers;
        }
        if (result != CUDA_SUCCESS) {
            *failed = call.name;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

// What was held back is put, and what comes is put at once.
static CUresult let_go(Gpu *gpu) {
    GpuCapture *capture = gpu->capture;
    if (!capture->holds)
        return CUDA_SUCCESS;
    capture->holds = false;
    if (capture->place == 0)
        return CUDA_SUCCESS;
    const GpuRecord *held = &capture->held->record;
    const char *failed = NULL;
    capture->is_whole = gpu_record_copy(&capture->record, held, capture->place);
    if (gpu->failure.code != ERROR_NONE)
        return CUDA_ERROR_UNKNOWN;
    CUresult result = put_held(gpu, held, capture->place, &failed);
    if (!gpu_check(gpu, result, failed, NULL))
        capture->is_whole = false;
    return result;
}

static CUresult let_go_before(Gpu *gpu, const GpuCall *call) {
    GpuCapture *capture = gpu->capture;
    CUresult result = let_go(gpu);
    capture->is_whole =
        result == CUDA_SUCCESS && capture->is_whole && gpu_record_add(&capture->record, call);
    return result;
}

CUresult gpu_put(Gpu *gpu, GpuPut put, const char *name, const void *what, size_t bytes) {
    return gpu_put_or(gpu, put, &(GpuInstead){0}, name, what, bytes);
}

CUresult gpu_put_or(Gpu *gpu, GpuPut put, const GpuInstead *instead, const char *name,
                    const void *what, size_t bytes) {
    const GpuCall call = {put, name, what, bytes, *instead};
    if (hold(gpu->capture, &call))
        return CUDA_SUCCESS;
    CUresult result = let_go_before(gpu, &call);
    if (result == CUDA_SUCCESS)
        result = put(gpu, what);
    gpu->capture->is_whole = gpu->capture->is_whole && result == CUDA_SUCCESS;
    return result;
}

void gpu_put_apart(Gpu *gpu) {
    GpuCapture *capture = gpu->capture;
    if (capture->holds ? capture->place == 0 : capture->record.used == 0)
        return;
    CUresult result = let_go(gpu); // a failure is kept
    (void)result;
    capture->is_whole = false;
}

// ---- sent by the host ---------------------------------------------------------------------------

typedef struct Sent {
    void *target;
    size_t from, bytes; // of the inbox
} Sent;

static CUresult bring_on(Gpu *gpu, const void *what) {
    const Sent *sent = what;
    return gpu->driver->cuMemcpyDtoDAsync(gpu_address(sent->target),
                                          gpu_address(gpu->capture->inbox + sent->from),
                                          sent->bytes, gpu->stream);
}

void *gpu_put_sent(Gpu *gpu, void *target, size_t bytes) {
    GpuCapture *capture = gpu->capture;
    const Sent sent = {target, capture->sent, bytes};
    const GpuCall call = {
        .put = bring_on, .name = "copying to the card", .what = &sent, .bytes = sizeof sent};
    capture->sent += (bytes + INBOX_UNIT - 1) / INBOX_UNIT * INBOX_UNIT;
    if (hold(capture, &call))
        return capture->inbox + sent.from;
    CUresult result = let_go_before(gpu, &call); // a failure is kept
    (void)result;
    return target;
}

// Graphs have the address of the inbox in them: those of a smaller one are given up. It is not the
// allocator's, from which steps take the same memory each time; that accounts for it.
static bool has_inbox(Gpu *gpu, size_t bytes) {
    GpuCapture *capture = gpu->capture;
    CUdeviceptr inbox = 0;
    if (bytes <= capture->inbox_bytes)
        return true;
    bytes = bytes > INBOX_LEAST ? bytes : INBOX_LEAST;
    if (bytes > gpu->device->memory / INBOX_SHARE ||
        gpu->driver->cuMemAlloc(&inbox, bytes) != CUDA_SUCCESS)
        return false;
    for (int i = 0; i < STEPS; i++)
        drop_graph(gpu, &capture->step[i]);
    gpu->device->waits += capture->inbox != NULL;
    bool freed = !capture->inbox ||
                 (gpu_check(gpu, gpu->driver->cuStreamSynchronize(gpu->stream), "waiting", NULL) &&
                  gpu_check(gpu, gpu->driver->cuMemFree(gpu_address(capture->inbox)),
                            "giving back memory", NULL));
    allocator_account_own(gpu->device->allocator, capture->inbox_bytes, bytes, MEMORY_WORKSPACE);
    capture->inbox = (char *)(uintptr_t)inbox;
    capture->inbox_bytes = bytes;
    return freed;
}

// As soon as it shows what a step sends, captured or not, since one that comes later is to ask for
// nothing. The first does not show it: to it belongs all that was sent before.
static void take_inbox(Gpu *gpu) {
    GpuCapture *capture = gpu->capture;
    if (!capture->inbox && gpu->device->steps > 1 && gpu->failure.code == ERROR_NONE)
        (void)has_inbox(gpu, capture->sent); // else graphs ask for it
}

// ---- graphs -------------------------------------------------------------------------------------

static CUresult put_all(Gpu *gpu, const GpuRecord *record, const char **failed) {
    GpuCall call;
    for (size_t place = 0; gpu_record_at(record, place, &call);
         place = gpu_record_behind(place, &call)) {
        CUresult result = call.put(gpu, call.what);
        if (result != CUDA_SUCCESS) {
            *failed = call.name;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

// What is remembered goes into the stream once more, which only takes note of it.
static CUgraphExec graph_of(Gpu *gpu, const GpuRecord *record) {
    const GpuDriver *driver = gpu->driver;
    CUgraph graph = NULL;
    CUgraphExec made = NULL;
    const char *failed;
    if (driver->cuStreamBeginCapture(gpu->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) !=
        CUDA_SUCCESS)
        return NULL;
    gpu->refusal = (Error){0};
    bool put = put_all(gpu, record, &failed) == CUDA_SUCCESS;
    if (!put && gpu->refusal.code != ERROR_NONE)
        remark(gpu, &gpu->capture->remarked[1], failed,
               "does not let itself be captured: such steps are launched call by call");
    bool captured = driver->cuStreamEndCapture(gpu->stream, &graph) == CUDA_SUCCESS && put;
    if (captured && driver->cuGraphInstantiate(&made, graph, 0) != CUDA_SUCCESS)
        made = NULL;
    if (graph)
        driver->cuGraphDestroy(graph);
    return made;
}

static bool launch(Gpu *gpu, Step *step) {
    if (gpu->failure.code == ERROR_NONE &&
        gpu->driver->cuGraphLaunch(step->graph, gpu->stream) == CUDA_SUCCESS)
        return true;
    drop_graph(gpu, step);
    step->refused = true;
    return false;
}

// ---- steps --------------------------------------------------------------------------------------

static Step *step_of(GpuCapture *capture, const GpuRecord *record) {
    for (int i = 0; i < STEPS; i++)
        if (gpu_record_is(&capture->step[i].record, record))
            return &capture->step[i];
    return NULL;
}

static Step *oldest(GpuCapture *capture) {
    Step *found = &capture->step[0];
    for (int i = 1; i < STEPS; i++)
        if (capture->step[i].last < found->last)
            found = &capture->step[i];
    return found;
}

// The step that ended, which was put call by call.
static void remember(Gpu *gpu) {
    GpuCapture *capture = gpu->capture;
    if (!capture->is_whole || capture->record.used == 0 || gpu->failure.code != ERROR_NONE)
        return;
    capture->record.inbox = capture->sent;
    Step *step = step_of(capture, &capture->record);
    if (!step) {
        step = oldest(capture);
        drop_graph(gpu, step);
        GpuRecord room = step->record;
        *step = (Step){.record = capture->record};
        capture->record = room;
    } else if (!step->graph && !step->refused) {
        step->graph = has_inbox(gpu, step->record.inbox) ? graph_of(gpu, &step->record) : NULL;
        step->refused = !step->graph;
    }
    step->last = gpu->device->steps;
}

static Step *held_whole(GpuCapture *capture) {
    for (int i = 0; capture->holds && capture->place > 0 && i < STEPS; i++)
        if (capture->step[i].lives && capture->step[i].record.used == capture->place)
            return &capture->step[i];
    return NULL;
}

static void begin(GpuCapture *capture) {
    capture->place = capture->sent = 0;
    capture->record.used = 0;
    capture->is_whole = capture->holds = true;
    for (int i = 0; i < STEPS; i++)
        capture->step[i].lives = capture->step[i].graph != NULL;
}

void gpu_end_step(Device *device) {
    Gpu *gpu = gpu_of(device);
    GpuCapture *capture = gpu->capture;
    gpu->value_calls = 0;
    device->steps++;
    if (device->no_capture)
        return;
    gpu_enter(gpu);
    Step *step = held_whole(capture);
    if (step && launch(gpu, step)) {
        step->last = device->steps;
        device->captured++;
    } else {
        CUresult result = let_go(gpu); // a failure is kept
        (void)result;
        take_inbox(gpu);
        remember(gpu);
    }
    begin(capture);
}

void gpu_forget_steps(Gpu *gpu) {
    GpuCapture *capture = gpu->capture;
    gpu_put_apart(gpu);
    for (int i = 0; i < STEPS; i++) {
        drop_graph(gpu, &capture->step[i]);
        capture->step[i].record.used = 0;
        capture->step[i].refused = false;
    }
}
