// Pooling over images [N,H,W,C]: rows of pixels are shared out among the threads.
#include "cpu/cpu.h"
#include "cpu/kernels.h"

typedef struct Pool {
    const View *in, *out;
    void (*function)(const CpuPoolRow *row);
    CpuPoolRow row;        // what is the same for all
    const View *where;     // backward
    const View *out_where; // forward
    char *scratch; // of each worker: numbers of a pixel, and a row of `where` that nobody wants
    size_t per_worker, where_at;
} Pool;

static void pool_task(void *context, int64_t begin, int64_t end, int thread) {
    const Pool *pool = context;
    char *own = pool->scratch + pool->per_worker * (size_t)thread;
    int64_t rows = pool->out->shape[1], line = pool->out->shape[2] * pool->out->shape[3];
    int64_t sample = view_count(pool->in) / pool->in->shape[0];
    for (int64_t i = begin; i < end; i++) {
        CpuPoolRow row = pool->row;
        row.row = i % rows;
        row.image = cpu_at(pool->in, i / rows * sample);
        row.out = cpu_at_mutable(pool->out, i * line);
        row.scratch = (float *)(void *)own;
        if (pool->where)
            row.where = cpu_at(pool->where, i / rows * sample);
        row.out_where = pool->out_where ? cpu_at_mutable(pool->out_where, i * line)
                                        : (uint8_t *)own + pool->where_at;
        pool->function(&row);
    }
}

// Input and output have one format.
static void pool_run(Device *device, const KernelCall *call, const View *in, const View *out,
                     void (*function)(const CpuPoolRow *), bool backward, Pool *pool) {
    const View *image = backward ? out : in, *pooled = backward ? in : out;
    pool->in = in;
    pool->out = out;
    pool->function = function;
    pool->row = (CpuPoolRow){.format = out->format,
                             .height = image->shape[1],
                             .width = image->shape[2],
                             .out_height = pooled->shape[1],
                             .out_width = pooled->shape[2],
                             .channels = out->shape[3],
                             .pool = &call->attr->pool};
    int64_t window = call->attr->pool.kernel[0] * call->attr->pool.kernel[1];
    double cost = (double)view_count(pooled) * (double)(window + 2) * CPU_STREAM * 0.5;
    cpu_parallel(device, out->shape[0] * out->shape[1], 1, cost, pool_task, pool);
}

static bool pool_kernel(Device *device, const KernelCall *call,
                        void (*function)(const CpuPoolRow *), bool backward, Error *error) {
    const View *in = &call->input[0], *out = &call->output[0];
    if (view_count(out) == 0 || view_count(in) == 0)
        return true;
    Pool pool = {.where_at = cpu_line((size_t)out->shape[3] * sizeof(float))};
    if (call->op == OP_max_pool2d_backward)
        pool.where = &call->input[1];
    if (call->op == OP_max_pool2d && call->output[1].data)
        pool.out_where = &call->output[1];
    pool.per_worker = pool.where_at + cpu_line((size_t)(out->shape[2] * out->shape[3]));
    size_t workers = pool.per_worker * (size_t)device->threads;
    // Two formats are rare, since both follow the layer's: then all goes through fp32.
    bool mixed = in->format != out->format;
    size_t in_bytes = cpu_line((size_t)view_count(in) * sizeof(float));
    size_t out_bytes = cpu_line((size_t)view_count(out) * sizeof(float));
    pool.scratch = device_workspace(device, workers + (mixed ? in_bytes + out_bytes : 0), error);
    if (!pool.scratch)
        return false;
    if (!mixed) {
        pool_run(device, call, in, out, function, backward, &pool);
        return true;
    }
    View wide_in = view_dense(pool.scratch + workers, FORMAT_FP32, in->ndim, in->shape);
    View wide_out =
        view_dense(pool.scratch + workers + in_bytes, FORMAT_FP32, out->ndim, out->shape);
    if (!cpu_cast_view(device, in, &wide_in, error))
        return false;
    pool_run(device, call, &wide_in, &wide_out, function, backward, &pool);
    return cpu_cast_view(device, &wide_out, out, error);
}

KERNEL_SIGNATURE(cpu, max_pool2d) {
    return pool_kernel(device, call, cpu_simd(device)->pool->max, false, error);
}
KERNEL_SIGNATURE(cpu, max_pool2d_backward) {
    return pool_kernel(device, call, cpu_simd(device)->pool->backward, true, error);
}
KERNEL_SIGNATURE(cpu, avg_pool2d) {
    return pool_kernel(device, call, cpu_simd(device)->pool->average, false, error);
}
KERNEL_SIGNATURE(cpu, avg_pool2d_backward) {
    return pool_kernel(device, call, cpu_simd(device)->pool->backward, true, error);
}
