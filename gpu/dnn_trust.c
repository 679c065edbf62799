#include "gpu/dnn_trust.h"

#include <assert.h>
#include <math.h>

#include "gpu/backend.h"
#include "gpu/gpu.h"
#include "gpu/proof.h"
#include "kernel/allocator.h"

enum { UNIT = 256 }; // bytes: arrays in one memory begin at multiples of it

static size_t bytes_of(const View *view) {
    size_t bytes = (size_t)view_count(view) * format_table[view->format].bytes;
    return view->data ? (bytes + UNIT - 1) / UNIT * UNIT : 0;
}

static size_t bytes_of_results(const KernelCall *call) {
    size_t bytes = 0;
    for (int i = 0; i < call->output_count; i++)
        bytes += bytes_of(&call->output[i]);
    return bytes;
}

// The call with its results elsewhere.
static KernelCall into(const KernelCall *call, char *memory) {
    KernelCall elsewhere = *call;
    for (int i = 0; i < call->output_count; memory += bytes_of(&call->output[i]), i++)
        elsewhere.output[i].data = call->output[i].data ? memory : NULL;
    return elsewhere;
}

// Computes the call by our own kernel into `memory`, behind the room for what is found. All results
// must be proven; what says least, or against them, is what they say together.
static Proof prove(Device *device, const DnnTrial *trial, const KernelCall *call, char *memory,
                   Error *error) {
    static_assert(sizeof(ProofDistance) <= UNIT, "what is found has its room");
    ProofKind kind =
        dnn_factors(&trial->plan->graph) == FORMAT_TF32 ? PROOF_OF_TF32 : PROOF_OF_GRAPH;
    const KernelCall own = into(call, memory + UNIT);
    if (!trial->own(device, &own, error))
        return PROOF_FAILED;
    Proof all = PROOF_GIVEN;
    for (int i = 0; i < call->output_count && all <= PROOF_OPEN; i++) {
        const View *result = &call->output[i];
        ProofArguments results = {.result = result->data,
                                  .expected = own.output[i].data,
                                  .format = result->format,
                                  .rows = 1,
                                  .columns = view_count(result),
                                  .distance = (ProofDistance *)memory};
        Proof one = result->data ? gpu_prove(device, kind, &results, error) : PROOF_GIVEN;
        all = one > all ? one : all;
    }
    return all;
}

// What is no number, far apart, so that sums of few terms see one alone; and in channels from the
// first to the last, so that every group of them has its own of each. Where pixels are too few for
// that, neighbours lie in different ones, and one of a group does not take the place of another
// before the group is full: then NaN, the last, is what is left.
static void plant(Device *device, const View *image, int64_t groups) {
    enum { KINDS = 3, LEAST = 3 }; // of each kind
    static const double values[KINDS] = {(double)INFINITY, -(double)INFINITY, (double)NAN};
    const int64_t channels = image->shape[3], pixels = view_count(image) / channels;
    const int64_t of_group = pixels < KINDS ? 1 : (LEAST + groups - 1) / groups;
    const int64_t count = KINDS * groups * of_group;
    const size_t bytes = format_table[image->format].bytes;
    for (int64_t i = 0; i < count; i++) {
        const int64_t pixel = pixels < count ? i % pixels : pixels * (2 * i + 1) / (2 * count);
        const int64_t at = pixel * channels + channels * i / count;
        const double value = values[i % KINDS];
        const uint32_t bits = format_encode(image->format, value, OVERFLOW_TO_SPECIAL);
        gpu_backend.write(device, (char *)image->data + (size_t)at * bytes, &bits, bytes);
    }
}

// The first operand is an image in every pass: the filters are left as they are, since what they
// meet in the padding is another matter.
static Proof prove_planted(Device *device, const DnnTrial *trial, char *memory, Error *error) {
    const size_t results = bytes_of_results(trial->call);
    KernelCall call = into(trial->call, memory + UNIT + results);
    View *image = &call.input[0];
    image->data = memory + UNIT + 2 * results;
    const KernelCall copy = {.op = OP_cast,
                             .input_count = 1,
                             .input = {trial->call->input[0]},
                             .output_count = 1,
                             .output = {*image}};
    Error refusal = {0};
    if (!gpu_cast(device, &copy, error))
        return PROOF_FAILED;
    plant(device, image, trial->plan->graph.convolution.groups);
    if (trial->again(device, &call, trial->told, &refusal))
        return prove(device, trial, &call, memory, error);
    gpu_backend.synchronize(device); // what was put by the engine is done
    if (refusal.code != ERROR_MEMORY)
        return PROOF_REFUTED;
    *error = refusal;
    return PROOF_FAILED;
}

// Asking for memory that is not there costs what the allocator keeps and the captured steps, and
// the call is computed twice: not at every step.
static DnnTrust not_tried(DnnPlan *plan) {
    enum { MOST_UNTRIED = 2 };
    if (++plan->untried == MOST_UNTRIED)
        dnn_refuse(plan, "there was no memory to hold its first result against our own kernel's");
    return DNN_NOT_TRIED;
}

DnnTrust dnn_try(Device *device, const DnnTrial *trial, Error *error) {
    const bool is_convolution = trial->plan->graph.kind < DNN_ATTENTION;
    size_t bytes = UNIT + bytes_of_results(trial->call);
    if (is_convolution)
        bytes += bytes_of_results(trial->call) + bytes_of(&trial->call->input[0]);
    Error failure = {0};
    char *memory = allocator_take(device->allocator, bytes, MEMORY_WORKSPACE, &failure);
    if (!memory)
        return not_tried(trial->plan);
    Proof proof = prove(device, trial, trial->call, memory, &failure);
    if (is_convolution && proof <= PROOF_OPEN) {
        Proof planted = prove_planted(device, trial, memory, &failure);
        proof = planted > PROOF_OPEN ? planted : proof;
    }
    allocator_give(device->allocator, memory);
    if (proof == PROOF_FAILED && failure.code == ERROR_MEMORY)
        return not_tried(trial->plan); // what the proof itself needed, which is free again now
    if (proof == PROOF_FAILED && error)
        *error = failure;
    if (proof >= PROOF_REFUTED)
        return proof == PROOF_REFUTED ? DNN_REFUTED : DNN_FAILED;
    trial->plan->open += proof == PROOF_OPEN;
    trial->plan->trusted = proof == PROOF_GIVEN || trial->plan->open == PROOF_MOST;
    return DNN_BELIEVED;
}
