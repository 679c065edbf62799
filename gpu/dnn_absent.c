// In place of gpu/dnn/*.c where cudnn.h is not installed: there is no cuDNN, and all runs on
// our own kernels.
#include <assert.h>

#include "gpu/dnn/plans.h"

static Dnn *absent(Error *error) {
    (void)error_fail(error, ERROR_UNAVAILABLE, "built without cuDNN");
    return NULL;
}

Dnn *dnn_open(void *stream, Error *error) {
    (void)stream;
    return absent(error);
}

Dnn *dnn_open_described(const char *properties, Error *error) {
    (void)properties;
    return absent(error);
}

// Of what was never opened there is nothing to be asked.
void dnn_close(Dnn *dnn) {
    assert(!dnn);
}

DnnPlan *dnn_plan(Dnn *dnn, const DnnGraph *graph, Error *error) {
    (void)dnn, (void)graph;
    absent(error);
    return NULL;
}

void dnn_refuse(DnnPlan *plan, const char *why) {
    (void)plan, (void)why;
}

void dnn_pass_over(Dnn *dnn, DnnPlan *plan, const char *why) {
    (void)dnn, (void)plan, (void)why;
}

bool dnn_run(Dnn *dnn, const DnnPlan *plan, void *const operand[DNN_OPERANDS], void *workspace,
             Error *error) {
    (void)dnn, (void)plan, (void)operand, (void)workspace;
    return error_fail(error, ERROR_UNAVAILABLE, "built without cuDNN");
}
