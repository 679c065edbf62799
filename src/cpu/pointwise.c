// Point-wise kernels: everything that goes element by element, whatever the strides.
#include "cpu/cpu.h"
#include "cpu/kernels.h"
#include "cpu/pointwise_table.h"
#include "cpu/pointwise_whole.h"

typedef void (*Unary)(const float *x, float *y, int64_t count, float a, float b);
typedef void (*UnaryBackward)(const float *dy, const float *saved, float *dx, int64_t count,
                              float a, float b);
typedef void (*Binary)(const float *x, const float *y, float *out, int64_t count);

static Pointwise pointwise_of(const Device *device, const KernelCall *call) {
    Pointwise work = {.table = cpu_simd(device)->pointwise, .op = call->op};
    const View *output = &call->output[0];
    for (int i = 0; i < call->input_count && i < 3; i++)
        work.input[i] = operand_of(device, &call->input[i], output->ndim, output->shape);
    work.output = result_of(device, output);
    if (call->attr) {
        work.a = (float)call->attr->scalar.a;
        work.b = (float)call->attr->scalar.b;
    }
    return work;
}

static void run(const Device *device, const KernelCall *call, double cost, CpuTask task,
                Pointwise *work) {
    int64_t count = view_count(&call->output[0]);
    cpu_parallel(device, count, CPU_BLOCK, (double)count * cost, task, work);
}

// ---- one input ----------------------------------------------------------------------------------

static void unary_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Pointwise *work = context;
    Unary function = work->table->unary[work->op];
    PointwiseBuffer in, out;
    CPU_EACH_BLOCK(at, size, begin, end) {
        const float *x = operand_read(&work->input[0], at, size, in.value);
        function(x, result_begin(&work->output, at, out.value), size, work->a, work->b);
        result_end(&work->output, at, size, out.value);
    }
}

static void unary_backward_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Pointwise *work = context;
    UnaryBackward function = work->table->unary_backward[work->op];
    PointwiseBuffer first, second, out;
    CPU_EACH_BLOCK(at, size, begin, end) {
        const float *dy = operand_read(&work->input[0], at, size, first.value);
        const float *saved = operand_read(&work->input[1], at, size, second.value);
        function(dy, saved, result_begin(&work->output, at, out.value), size, work->a, work->b);
        result_end(&work->output, at, size, out.value);
    }
}

static bool run_unary(Device *device, const KernelCall *call, CpuTask task, Error *error) {
    Pointwise work = pointwise_of(device, call);
    if (pointwise_is_tabled(&work, view_count(&call->output[0])))
        return pointwise_by_table(device, call, &work, error);
    run(device, call, POINTWISE_FUNCTION, task, &work);
    return true;
}

#define UNARY(name, ...)                                            \
    KERNEL_SIGNATURE(cpu, name) {                                   \
        return run_unary(device, call, unary_task, error);          \
    }                                                               \
    KERNEL_SIGNATURE(cpu, name##_backward) {                        \
        return run_unary(device, call, unary_backward_task, error); \
    }

// ---- two and three inputs -----------------------------------------------------------------------

static void binary_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Pointwise *work = context;
    Binary function = work->table->binary[work->op];
    PointwiseBuffer left, right, out;
    CPU_EACH_BLOCK(at, size, begin, end) {
        const float *x = operand_read(&work->input[0], at, size, left.value);
        const float *y = operand_read(&work->input[1], at, size, right.value);
        function(x, y, result_begin(&work->output, at, out.value), size);
        result_end(&work->output, at, size, out.value);
    }
}

static void compare_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Pointwise *work = context;
    PointwiseBuffer left, right;
    CPU_EACH_BLOCK(at, size, begin, end) {
        const float *x = operand_read(&work->input[0], at, size, left.value);
        const float *y = operand_read(&work->input[1], at, size, right.value);
        work->table->compare[work->op](x, y, (uint8_t *)work->output.data + at, size);
    }
}

static void where_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Pointwise *work = context;
    PointwiseBuffer condition, left, right, out;
    CPU_EACH_BLOCK(at, size, begin, end) {
        const float *chosen = operand_read(&work->input[0], at, size, condition.value);
        const float *x = operand_read(&work->input[1], at, size, left.value);
        const float *y = operand_read(&work->input[2], at, size, right.value);
        work->table->select(chosen, x, y, result_begin(&work->output, at, out.value), size);
        result_end(&work->output, at, size, out.value);
    }
}

// `first`: the first of the two inputs that meet.
#define TWO(name, first, task, whole_task)                                                  \
    KERNEL_SIGNATURE(cpu, name) {                                                           \
        (void)error;                                                                        \
        Pointwise work = pointwise_of(device, call);                                        \
        run(device, call, CPU_STREAM, pointwise_is_whole(&work, first) ? whole_task : task, \
            &work);                                                                         \
        return true;                                                                        \
    }
#define BINARY(name, ...)  TWO(name, 0, binary_task, pointwise_whole_binary)
#define COMPARE(name, ...) TWO(name, 0, compare_task, pointwise_whole_compare)

TWO(where, 1, where_task, pointwise_whole_where)

// ---- another format, or dense -------------------------------------------------------------------

static void cast_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Pointwise *work = context;
    const Operand *input = &work->input[0];
    const Result *output = &work->output;
    if (input->format == output->format) { // no arithmetic: whole numbers keep all their digits
        operand_copy(input, begin, end - begin, output->data + begin * output->bytes);
        return;
    }
    PointwiseBuffer in;
    CPU_EACH_BLOCK(at, size, begin, end) {
        const float *x = operand_read(input, at, size, in.value);
        output->from_fp32(x, output->data + at * output->bytes, (size_t)size);
    }
}

KERNEL_SIGNATURE(cpu, cast) {
    (void)error;
    Pointwise work = pointwise_of(device, call);
    run(device, call, CPU_STREAM, cast_task, &work);
    return true;
}

bool cpu_cast_view(Device *device, const View *from, const View *to, Error *error) {
    KernelCall call = {
        .op = OP_cast, .input_count = 1, .output_count = 1, .input = {*from}, .output = {*to}};
    return cpu_cast(device, &call, error);
}

// ---- losses -------------------------------------------------------------------------------------

// A sum is taken over pieces of fixed size, so that it does not depend on the threads.
enum { LOSS_PIECE = 32 * CPU_BLOCK };

typedef struct Loss {
    Pointwise work;
    int64_t count;
    float factor;
    double *piece;
} Loss;

static void loss_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Loss *loss = context;
    const Pointwise *work = &loss->work;
    PointwiseBuffer left, right;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t first = piece * LOSS_PIECE, last = cpu_smaller(first + LOSS_PIECE, loss->count);
        double sum = 0;
        CPU_EACH_BLOCK(at, size, first, last) {
            const float *x = operand_read(&work->input[0], at, size, left.value);
            const float *t = operand_read(&work->input[1], at, size, right.value);
            sum += (double)work->table->loss[work->op](x, t, size);
        }
        loss->piece[piece] = sum;
    }
}

static bool loss_run(Device *device, const KernelCall *call, Error *error) {
    const View *x = &call->input[0];
    int64_t count = view_count(x), pieces = (count + LOSS_PIECE - 1) / LOSS_PIECE;
    Loss loss = {.work = {.table = cpu_simd(device)->pointwise, .op = call->op}, .count = count};
    loss.piece = device_workspace(device, (size_t)(pieces + 1) * sizeof(double), error);
    if (!loss.piece)
        return false;
    for (int i = 0; i < 2; i++)
        loss.work.input[i] = operand_of(device, &call->input[i], x->ndim, x->shape);
    cpu_parallel(device, pieces, 1, (double)count * POINTWISE_FUNCTION, loss_task, &loss);
    double sum = 0;
    for (int64_t i = 0; i < pieces; i++)
        sum += loss.piece[i];
    cpu_set_number(device, &call->output[0], (float)(sum / (double)count));
    return true;
}

static void loss_backward_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Loss *loss = context;
    const Pointwise *work = &loss->work;
    PointwiseBuffer left, right, out;
    CPU_EACH_BLOCK(at, size, begin, end) {
        const float *x = operand_read(&work->input[1], at, size, left.value);
        const float *t = operand_read(&work->input[2], at, size, right.value);
        work->table->loss_backward[work->op](x, t, result_begin(&work->output, at, out.value), size,
                                             loss->factor);
        result_end(&work->output, at, size, out.value);
    }
}

static bool loss_backward_run(Device *device, const KernelCall *call) {
    int64_t count = view_count(&call->output[0]);
    Loss loss = {.work = pointwise_of(device, call), .count = count};
    loss.factor = (float)((double)cpu_number(device, &call->input[0]) / (double)count);
    cpu_parallel(device, count, CPU_BLOCK, (double)count * POINTWISE_FUNCTION, loss_backward_task,
                 &loss);
    return true;
}

#define LOSS(name, ...)                         \
    KERNEL_SIGNATURE(cpu, name) {               \
        return loss_run(device, call, error);   \
    }                                           \
    KERNEL_SIGNATURE(cpu, name##_backward) {    \
        (void)error;                            \
        return loss_backward_run(device, call); \
    }

#include "kernel/pointwise.def"
