#include "kernel/status.h"

#include "kernel/kernel.h"

ValueCheck value_check(const KernelCall *call, Fault fault, int64_t bound) {
    static const int64_t lowest[FAULT_COUNT] = {
#define FAULT(name, least, ...) [FAULT_##name] = least,
#include "kernel/faults.def"
    };
    ValueCheck check = {.fault = fault,
                        .op = (int)call->op,
                        .layer = call->layer,
                        .dim = fault == FAULT_ELEMENT ? call->attr->index.dim : 0,
                        .lowest = lowest[fault],
                        .bound = bound};
    return check;
}

bool value_fail(const ValueCheck *check, int64_t at, int64_t found, Error *error) {
    const long long value = found, position = at + 1, bound = check->bound, dim = check->dim;
    switch (check->fault) {
#define FAULT(name, lowest, text, ...) \
    case FAULT_##name:                 \
        return error_fail(error, ERROR_FAILED, text, __VA_ARGS__);
#include "kernel/faults.def"
    case FAULT_NONE:
    case FAULT_COUNT: break;
    }
    return error_fail(error, ERROR_FAILED, "a kernel says that something is wrong, but not what");
}
