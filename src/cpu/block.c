// Reading and writing by blocks, and sharing work out among threads: see cpu/cpu.h.
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/denormal.h"

// What a fork and join costs several times over.
static const double worth_a_fork = 20e3;

int cpu_workers(const Device *device, double nanoseconds) {
    // One or all: a team that changes its size loses its threads.
    return nanoseconds > worth_a_fork ? device->threads : 1;
}

void cpu_parallel(const Device *device, int64_t count, int64_t unit, double nanoseconds,
                  CpuTask task, void *context) {
    int workers = cpu_workers(device, nanoseconds);
    if (workers <= 1) {
        task(context, 0, count, 0);
        return;
    }
    int64_t units = (count + unit - 1) / unit;
#pragma omp parallel for num_threads(workers) schedule(static, 1)
    for (int thread = 0; thread < workers; thread++) {
        denormal_flush();
        int64_t begin = units * thread / workers * unit;
        int64_t end = cpu_smaller(count, units * (thread + 1) / workers * unit);
        if (begin < end)
            task(context, begin, end, thread);
    }
}

Operand operand_of(const Device *device, const View *view, int ndim, const int64_t *shape) {
    Operand operand = {
        .data = view->data,
        .format = view->format,
        .bytes = (int64_t)format_table[view->format].bytes,
        .to_fp32 = cpu_simd(device)->convert->to_fp32[view->format],
    };
    int missing = ndim - view->ndim, used = 0;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] == 1)
            continue;
        int own = i - missing;
        int64_t stride = own < 0 || view->shape[own] == 1 ? 0 : view->stride[own];
        if (used > 0 && operand.stride[used - 1] == stride * shape[i]) {
            operand.shape[used - 1] *= shape[i];
            operand.stride[used - 1] = stride;
        } else {
            operand.shape[used] = shape[i];
            operand.stride[used] = stride;
            used++;
        }
    }
    if (used == 0) {
        operand.shape[0] = 1;
        operand.stride[0] = 1;
        used = 1;
    }
    operand.ndim = used;
    operand.dense = used == 1 && operand.stride[0] == 1;
    return operand;
}

// A run of elements `stride` apart, of which `element` bytes each are moved as one number.
#define COPY_RUN(type)                                         \
    do {                                                       \
        const type *from = (const type *)(const void *)source; \
        type *to = (type *)(void *)target;                     \
        if (stride == 0) {                                     \
            type value = from[0];                              \
            for (int64_t i = 0; i < count; i++)                \
                to[i] = value;                                 \
        } else {                                               \
            for (int64_t i = 0; i < count; i++)                \
                to[i] = from[i * stride];                      \
        }                                                      \
    } while (0)

static void copy_run(const char *source, int64_t stride, int64_t bytes, int64_t count,
                     char *target) {
    if (stride == 1)
        memcpy(target, source, (size_t)(count * bytes));
    else if (bytes == 4)
        COPY_RUN(uint32_t);
    else if (bytes == 2)
        COPY_RUN(uint16_t);
    else if (bytes == 1)
        COPY_RUN(uint8_t);
    else
        COPY_RUN(uint64_t);
}

void operand_copy(const Operand *operand, int64_t start, int64_t count, void *out) {
    if (count == 0)
        return; // an empty dimension has no first element
    char *target = out;
    int last = operand->ndim - 1;
    int64_t index[VIEW_MAX_DIMS], rest = start, offset = 0;
    for (int i = last; i >= 0; i--) {
        index[i] = rest % operand->shape[i];
        rest /= operand->shape[i];
        offset += index[i] * operand->stride[i];
    }
    for (;;) {
        int64_t run = cpu_smaller(operand->shape[last] - index[last], count);
        copy_run(operand->data + offset * operand->bytes, operand->stride[last], operand->bytes,
                 run, target);
        target += run * operand->bytes;
        count -= run;
        if (count == 0)
            return;
        offset -= index[last] * operand->stride[last];
        index[last] = 0;
        for (int i = last - 1; i >= 0; i--) {
            offset += operand->stride[i];
            if (++index[i] < operand->shape[i])
                break;
            offset -= operand->shape[i] * operand->stride[i];
            index[i] = 0;
        }
    }
}

const float *operand_read(const Operand *operand, int64_t start, int64_t count, float *buffer) {
    const char *source = operand->data + start * operand->bytes;
    if (operand->format == FORMAT_FP32) {
        if (operand->dense)
            return (const float *)(const void *)source;
        operand_copy(operand, start, count, buffer);
    } else if (operand->dense) {
        operand->to_fp32(source, buffer, (size_t)count);
    } else {
        _Alignas(64) char raw[CPU_BLOCK * 8];
        operand_copy(operand, start, count, raw);
        operand->to_fp32(raw, buffer, (size_t)count);
    }
    return buffer;
}

Result result_of(const Device *device, const View *view) {
    return (Result){
        .data = view->data,
        .format = view->format,
        .bytes = (int64_t)format_table[view->format].bytes,
        .from_fp32 = cpu_simd(device)->convert->from_fp32[view->format][OVERFLOW_SATURATES],
    };
}

float cpu_number(const Device *device, const View *view) {
    float value;
    cpu_load(device, view->format, view->data, &value, 1);
    return value;
}

void cpu_set_number(const Device *device, const View *view, float value) {
    cpu_store(device, view->format, &value, view->data, 1);
}
