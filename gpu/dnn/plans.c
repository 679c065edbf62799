// Plans: which of cuDNN's engines runs a graph.
//
// The library ranks its engines for a card, and the first that may be used is taken. It is not
// timed against the others: a choice by the clock would differ from run to run, and its bits with
// it.
#include "gpu/dnn/plans.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/dnn/describe.h"

enum {
    OLDEST = 90800, // the first that takes a card's properties in place of a handle
    MOST_CANDIDATES = 32,
    MOST_PASSED = 8, // engines of one plan, before it is refused
    MOST_FAILED = 2  // of a ranking: a kernel that does not compile takes half a second to say so
};

typedef struct Held {
    DnnPlan plan; // first: who is given it gives it back
    DnnDescription description;
    DnnDescriptor execution;
    size_t mode;           // whose ranking it is of,
    int looked_at, passed; // in which so many were looked at; and engines passed over in all
} Held;

struct Dnn {
    const DnnLibrary *library;
    cudnnHandle_t handle; // NULL: there is no card
    DnnDescription card;
    DnnDescriptor properties;
    char why[DNN_WHY_SIZE];
    Held **held;
    int count, room;
};

// ---- opening and closing ------------------------------------------------------------------------

static Dnn *opened(Error *error) {
    const DnnLibrary *library = dnn_library(error);
    if (!library)
        return NULL;
    if (library->cudnnGetVersion() < OLDEST) {
        (void)error_fail(error, ERROR_UNAVAILABLE,
                         "cuDNN %zu is installed: install 9.8 or a newer 9",
                         library->cudnnGetVersion());
        return NULL;
    }
    Dnn *dnn = calloc(1, sizeof *dnn);
    if (!dnn) {
        (void)error_fail(error, ERROR_MEMORY, "cuDNN: no memory");
        return NULL;
    }
    dnn->library = library;
    dnn->card = (DnnDescription){.library = library, .why = dnn->why};
    dnn->properties = dnn_make(&dnn->card, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    return dnn;
}

static Dnn *finished(Dnn *dnn, Error *error) {
    (void)dnn_finish(&dnn->card, dnn->properties, "the properties of the card");
    if (!dnn_is_refused(&dnn->card))
        return dnn;
    (void)error_fail(error, ERROR_FAILED, "cuDNN does not serve the card: %s", dnn->why);
    dnn_close(dnn);
    return NULL;
}

Dnn *dnn_open(void *stream, Error *error) {
    Dnn *dnn = opened(error);
    if (!dnn)
        return NULL;
    if (dnn_accepts(&dnn->card, dnn->library->cudnnCreate(&dnn->handle), "starting"))
        (void)dnn_accepts(&dnn->card, dnn->library->cudnnSetStream(dnn->handle, stream),
                          "taking the stream");
    DNN_SET(&dnn->card, dnn->properties, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE,
            cudnnHandle_t, dnn->handle);
    return finished(dnn, error);
}

Dnn *dnn_open_described(const char *properties, Error *error) {
    Dnn *dnn = opened(error);
    if (!dnn)
        return NULL;
    dnn_set(&dnn->card, dnn->properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
            (int64_t)strlen(properties), properties);
    return finished(dnn, error);
}

void dnn_close(Dnn *dnn) {
    if (!dnn)
        return;
    for (int i = 0; i < dnn->count; i++) {
        dnn_description_clear(&dnn->held[i]->description);
        free(dnn->held[i]);
    }
    dnn_description_clear(&dnn->card);
    if (dnn->handle)
        dnn->library->cudnnDestroy(dnn->handle);
    free(dnn->held);
    free(dnn);
}

// ---- choosing an engine -------------------------------------------------------------------------

// What the library says of an engine's numbers that ours do not have. Tensor cores multiply fp32 in
// TF32, which must be asked for; factors of fewer bits they multiply exactly.
static bool note_is_refused(cudnnBackendNumericalNote_t note, bool multiplies_fp32) {
    switch (note) {
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
    case CUDNN_NUMERICAL_NOTE_FFT:
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return true;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE: return multiplies_fp32;
    default: return false;
    }
}

// How many of a list were read: the library tells how many there are.
static int64_t read_of(int64_t there, int64_t room) {
    return there < room ? there : room;
}

// Whether an engine's numbers are as ours.
static bool computes_as_we_do(Held *held, DnnDescriptor candidate) {
    DnnDescription *description = &held->description;
    const DnnLibrary *library = description->library;
    DnnDescriptor engine = dnn_make(description, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    if (!engine ||
        library->cudnnBackendGetAttribute(candidate, CUDNN_ATTR_ENGINECFG_ENGINE,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                          &engine) != CUDNN_STATUS_SUCCESS ||
        library->cudnnBackendGetAttribute(
            engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
            CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes) != CUDNN_STATUS_SUCCESS)
        return false;
    for (int64_t i = 0; i < read_of(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT); i++)
        if (note_is_refused(notes[i], dnn_factors(&held->plan.graph) == FORMAT_FP32))
            return false;
    return true;
}

// How many candidates there were, and what became of them.
typedef struct Search {
    int found, otherwise, failed, large, uncompiled;
    char last[DNN_WHY_SIZE]; // why the last of those that failed did
} Search;

// What was refused concerns one way alone: others may do.
static void forgive(DnnDescription *description, Search *search) {
    memcpy(search->last, description->why, sizeof search->last);
    description->why[0] = 0;
}

// Whether an engine compiles its kernel when it is asked for a plan.
static bool compiles(const Held *held, DnnDescriptor candidate) {
    const DnnLibrary *library = held->description.library;
    DnnDescriptor engine = NULL;
    cudnnBackendBehaviorNote_t notes[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    int64_t count = 0;
    bool told = library->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) ==
                    CUDNN_STATUS_SUCCESS &&
                library->cudnnBackendGetAttribute(candidate, CUDNN_ATTR_ENGINECFG_ENGINE,
                                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                                  &engine) == CUDNN_STATUS_SUCCESS &&
                library->cudnnBackendGetAttribute(
                    engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                    CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &count, notes) == CUDNN_STATUS_SUCCESS;
    bool found = false;
    for (int64_t i = 0; told && i < read_of(count, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT); i++)
        found = found || notes[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    if (engine)
        library->cudnnBackendDestroyDescriptor(engine);
    return found;
}

static bool finalise(const Dnn *dnn, Held *held, DnnDescriptor candidate, Search *search) {
    DnnDescription *description = &held->description;
    const DnnLibrary *library = description->library;
    int64_t bytes = 0, count = 0;
    DnnDescriptor made = dnn_make(description, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    dnn_set_part(description, made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, candidate);
    dnn_set_part(description, made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, dnn->properties);
    (void)dnn_finish(description, made, "a plan");
    if (dnn_is_refused(description)) {
        forgive(description, search);
        search->failed++;
        search->uncompiled += compiles(held, candidate);
        return false;
    }
    if (library->cudnnBackendGetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                          CUDNN_TYPE_INT64, 1, &count,
                                          &bytes) != CUDNN_STATUS_SUCCESS ||
        bytes > DNN_MOST_WORKSPACE) {
        search->large++;
        return false;
    }
    held->plan.workspace = (size_t)bytes;
    held->execution = made;
    return true;
}

static bool choose(const Dnn *dnn, Held *held, DnnDescriptor graph, cudnnBackendHeurMode_t mode,
                   Search *search) {
    DnnDescription *description = &held->description;
    DnnDescriptor candidates[MOST_CANDIDATES],
        ranking = dnn_make(description, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t count = 0;
    dnn_set_part(description, ranking, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    DNN_SET(description, ranking, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
            cudnnBackendHeurMode_t, mode);
    dnn_set_part(description, ranking, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, dnn->properties);
    (void)dnn_finish(description, ranking, "a ranking of engines");
    for (int i = 0; i < MOST_CANDIDATES; i++)
        candidates[i] = dnn_make(description, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (dnn_is_refused(description) ||
        !dnn_accepts(description,
                     description->library->cudnnBackendGetAttribute(
                         ranking, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                         MOST_CANDIDATES, &count, candidates),
                     "the ranked engines"))
        return false;
    count = read_of(count, MOST_CANDIDATES);
    for (int64_t i = 0; i < count && !dnn_is_refused(description); i++) {
        search->found++;
        if (i < held->looked_at)
            continue;
        held->looked_at = (int)i + 1;
        if (!computes_as_we_do(held, candidates[i]))
            search->otherwise++;
        else if (finalise(dnn, held, candidates[i], search))
            return true;
        else if (search->uncompiled >= MOST_FAILED)
            return false;
    }
    return false;
}

static void plan(const Dnn *dnn, Held *held) {
    static void (*const describe[DNN_KINDS])(DnnDescription *, const DnnGraph *) = {
        [DNN_CONVOLUTION] = dnn_describe_convolution,
        [DNN_CONVOLUTION_INPUT] = dnn_describe_convolution,
        [DNN_CONVOLUTION_WEIGHT] = dnn_describe_convolution,
        [DNN_ATTENTION] = dnn_describe_attention,
        [DNN_ATTENTION_BACKWARD] = dnn_describe_attention_backward,
    };
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    DnnDescription *description = &held->description;
    Search search = {0};
    describe[held->plan.graph.kind](description, &held->plan.graph);
    DnnDescriptor graph = dnn_make(description, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    dnn_set(description, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            description->operation_count, description->operation);
    (void)dnn_finish(description, graph, "the graph");
    if (dnn_is_refused(description)) {
        dnn_description_clear(description);
        return;
    }
    for (; held->mode < sizeof modes / sizeof *modes; held->mode++, held->looked_at = 0) {
        search.uncompiled = 0; // of another ranking
        held->plan.available = choose(dnn, held, graph, modes[held->mode], &search);
        if (dnn_is_refused(description))
            forgive(description, &search);
        if (held->plan.available)
            break;
    }
    if (held->plan.available)
        return;
    snprintf(held->plan.why, DNN_WHY_SIZE,
             "of %d engines %d compute otherwise, %d want more than %d MiB, %d refuse; %.140s",
             search.found, search.otherwise, search.large, DNN_MOST_WORKSPACE >> 20, search.failed,
             search.last[0] ? search.last : "none refused by words");
    dnn_description_clear(description);
}

// ---- plans --------------------------------------------------------------------------------------

static Held *find(const Dnn *dnn, const DnnGraph *graph) {
    for (int i = 0; i < dnn->count; i++)
        if (dnn_is_same(&dnn->held[i]->plan.graph, graph))
            return dnn->held[i];
    return NULL;
}

static Held *add(Dnn *dnn, const DnnGraph *graph) {
    if (dnn->count == dnn->room) {
        int room = dnn->room ? 2 * dnn->room : 16;
        Held **larger = realloc(dnn->held, (size_t)room * sizeof *larger);
        if (!larger)
            return NULL;
        dnn->held = larger;
        dnn->room = room;
    }
    Held *held = calloc(1, sizeof *held);
    if (!held)
        return NULL;
    held->plan.graph = *graph;
    held->description = (DnnDescription){.library = dnn->library, .why = held->plan.why};
    return dnn->held[dnn->count++] = held;
}

DnnPlan *dnn_plan(Dnn *dnn, const DnnGraph *graph, Error *error) {
    Held *held = find(dnn, graph);
    if (held)
        return &held->plan;
    held = add(dnn, graph);
    if (!held) {
        (void)error_fail(error, ERROR_MEMORY, "cuDNN: no memory for a plan");
        return NULL;
    }
    plan(dnn, held);
    return &held->plan;
}

void dnn_refuse(DnnPlan *plan, const char *why) {
    plan->available = false;
    snprintf(plan->why, DNN_WHY_SIZE, "%s", why);
}

void dnn_pass_over(Dnn *dnn, DnnPlan *of, const char *why) {
    Held *held = (Held *)of;
    dnn_description_clear(&held->description);
    held->description = (DnnDescription){.library = dnn->library, .why = of->why};
    *of = (DnnPlan){.graph = of->graph};
    if (held->passed++ < MOST_PASSED)
        plan(dnn, held);
    if (!of->available)
        dnn_refuse(of, why);
}

bool dnn_run(Dnn *dnn, const DnnPlan *plan, void *const operand[DNN_OPERANDS], void *workspace,
             Error *error) {
    const Held *held = (const Held *)plan;
    float unseen = -FLT_MAX, one = 1;
    char why[DNN_WHY_SIZE] = "";
    DnnDescription pack = {.library = dnn->library, .why = why};
    int64_t numbers[DNN_OPERANDS], count = 0;
    void *addresses[DNN_OPERANDS];
    for (int i = 0; i < DNN_OPERANDS; i++) {
        if (!(held->description.operands & 1u << i))
            continue;
        numbers[count] = i;
        addresses[count++] = i == DNN_UNSEEN ? &unseen : i == DNN_ONE ? &one : operand[i];
    }
    DnnDescriptor made = dnn_make(&pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    dnn_set(&pack, made, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, numbers);
    dnn_set(&pack, made, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
            addresses);
    dnn_set(&pack, made, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    (void)dnn_finish(&pack, made, "the addresses");
    bool ran =
        !dnn_is_refused(&pack) &&
        dnn_accepts(&pack, dnn->library->cudnnBackendExecute(dnn->handle, held->execution, made),
                    "running a plan");
    dnn_description_clear(&pack);
    return ran || error_fail(error, ERROR_FAILED, "device gpu: cuDNN: %s", why);
}
