// In place of gpu/dnn: a library that the setting `dnn` describes. It takes all that it is asked
// for, computes it in double on the host when its turn in the stream comes, and so shows whether
// what it is told is true.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/dnn/plans.h"
#include "tests/emulator/calls.h"
#include "tests/emulator/dnn_compute.h"
#include "tests/emulator/driver.h"
#include "tests/emulator/graphs.h"
#include "tests/emulator/settings.h"
#include "tests/emulator/streams.h"

enum { MOST_PLANS = 4096, WORKSPACE = 1000 };

struct Dnn {
    CUstream stream;
    int count;
    uint64_t runs;
    DnnPlan plans[MOST_PLANS];
    int engine[MOST_PLANS]; // which one runs it
};

enum { ENGINES = 2 };

Dnn *dnn_open(void *stream, Error *error) {
    if (emulator_settings.dnn == DNN_ABSENT) {
        (void)error_fail(error, ERROR_UNAVAILABLE, "the emulated card has no cuDNN");
        return NULL;
    }
    Dnn *dnn = calloc(1, sizeof *dnn);
    if (dnn)
        dnn->stream = stream;
    else
        (void)error_fail(error, ERROR_MEMORY, "no memory for the emulated cuDNN");
    return dnn;
}

// Says how often it was used, so that a test sees that it was.
void dnn_close(Dnn *dnn) {
    if (dnn && emulator_settings.report)
        fprintf(stderr, "emulator: cuDNN ran %llu times, by %d plans\n",
                (unsigned long long)dnn->runs, dnn->count);
    free(dnn);
}

DnnPlan *dnn_plan(Dnn *dnn, const DnnGraph *graph, Error *error) {
    for (int i = 0; i < dnn->count; i++)
        if (dnn_is_same(&dnn->plans[i].graph, graph))
            return &dnn->plans[i];
    if (dnn->count == MOST_PLANS) {
        (void)error_fail(error, ERROR_MEMORY, "no memory for another plan");
        return NULL;
    }
    DnnPlan *plan = &dnn->plans[dnn->count++];
    plan->graph = *graph;
    plan->available = true;
    plan->workspace = WORKSPACE;
    return plan;
}

void dnn_refuse(DnnPlan *plan, const char *why) {
    if (emulator_settings.report)
        fprintf(stderr, "emulator: cuDNN is refused: %s\n", why);
    plan->available = false;
    snprintf(plan->why, sizeof plan->why, "%s", why);
}

void dnn_pass_over(Dnn *dnn, DnnPlan *plan, const char *why) {
    int *engine = &dnn->engine[plan - dnn->plans];
    dnn_refuse(plan, why);
    if (*engine + 1 == ENGINES)
        return;
    ++*engine;
    *plan = (DnnPlan){.graph = plan->graph, .available = true, .workspace = WORKSPACE};
}

// What waits in the stream. The scale is taken at the call.
typedef struct Turn {
    DnnGraph graph;
    int engine;
    void *operand[DNN_OPERANDS];
    void *workspace;
    size_t bytes;
    float scale;
} Turn;

static bool take_turn(const void *copy) {
    static bool (*const compute[DNN_KINDS])(const DnnGraph *, void *const *) = {
        [DNN_CONVOLUTION] = emulated_dnn_convolve,
        [DNN_CONVOLUTION_INPUT] = emulated_dnn_convolve,
        [DNN_CONVOLUTION_WEIGHT] = emulated_dnn_convolve,
        [DNN_ATTENTION] = emulated_dnn_attend,
        [DNN_ATTENTION_BACKWARD] = emulated_dnn_attend_backward,
    };
    Turn turn;
    memcpy(&turn, copy, sizeof turn);
    if (turn.operand[DNN_SCALE])
        turn.operand[DNN_SCALE] = &turn.scale;
    memset(turn.workspace, 0xFF, turn.bytes); // as the library may
    emulated_dnn_hides = emulator_settings.dnn == DNN_HIDING && turn.engine == 0;
    return compute[turn.graph.kind](&turn.graph, turn.operand);
}

bool dnn_run(Dnn *dnn, const DnnPlan *plan, void *const operand[DNN_OPERANDS], void *workspace,
             Error *error) {
    EmulatorCall call __attribute__((cleanup(emulator_call_end))) =
        emulator_call_begin("cudnnBackendExecute", NEEDS_CARD);
    EmulatorState state = {0};
    emulator_graphs_count(&state);
    dnn->runs++;
    if (emulator_settings.dnn == DNN_UNLUCKY ||
        (emulator_settings.dnn == DNN_FICKLE && state.graphs > 0))
        return error_fail(error, ERROR_FAILED, "the emulated cuDNN fails, as it was told to");
    Turn turn = {.graph = plan->graph,
                 .engine = dnn->engine[plan - dnn->plans],
                 .workspace = workspace,
                 .bytes = plan->workspace};
    memcpy(turn.operand, operand, sizeof turn.operand);
    if (operand[DNN_SCALE])
        memcpy(&turn.scale, operand[DNN_SCALE], sizeof turn.scale);
    Operation *operation = emulator_operation_new(OPERATION_HOST, sizeof turn);
    if (call.result != CUDA_SUCCESS || !operation)
        return error_fail(error, ERROR_FAILED, "the emulated cuDNN does not run");
    operation->host = take_turn;
    memcpy(operation->copy, &turn, sizeof turn);
    return emulator_stream_add(emulator_current_card(), dnn->stream, operation) == CUDA_SUCCESS ||
           error_fail(error, ERROR_FAILED, "the card has failed");
}
