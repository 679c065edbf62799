// Point-wise operations on a card: what gpu/kernels/pointwise.cu is told.
#include "gpu/backend.h"
#include "gpu/launch.h"
#include "gpu/operands.h"
#include "gpu/relu.h"

enum { EACH = 8 }; // elements of a thread

static bool run(Device *device, GpuKernel kernel, const KernelCall *call, ScalarAttr constants,
                Error *error) {
    PointwiseArguments arguments = {0};
    gpu_operands(call->input, call->input_count, &call->output[0], arguments.input,
                 &arguments.output, &arguments.extent);
    arguments.wide = gpu_goes_wide(&arguments.output);
    for (int i = 0; i < call->input_count; i++)
        arguments.wide = arguments.wide && gpu_goes_wide(&arguments.input[i]);
    arguments.a = (float)constants.a;
    arguments.b = (float)constants.b;
    return gpu_launch(device, kernel, gpu_grid(kernel, arguments.extent.count, EACH), &arguments,
                      error);
}

static ScalarAttr constants_of(const KernelCall *call) {
    return call->attr ? call->attr->scalar : (ScalarAttr){0};
}

// Of two numbers and a result that all are whole, fp32 has not all digits.
static bool is_whole(const View *x, const View *y, const View *result) {
    return !format_is_floating(x->format) && !format_is_floating(y->format) &&
           !format_is_floating(result->format);
}

#define POINTWISE(name)                                                         \
    KERNEL_SIGNATURE(gpu, name) {                                               \
        return run(device, GPU_KERNEL_##name, call, constants_of(call), error); \
    }
// The last two of its inputs are the numbers.
#define POINTWISE_OF_ANY(name, first)                                                          \
    KERNEL_SIGNATURE(gpu, name) {                                                              \
        bool whole = is_whole(&call->input[first], &call->input[first + 1], &call->output[0]); \
        return run(device, whole ? GPU_KERNEL_whole_##name : GPU_KERNEL_##name, call,          \
                   constants_of(call), error);                                                 \
    }
#define UNARY(name, ...)   POINTWISE(name) POINTWISE(name##_backward)
#define BINARY(name, ...)  POINTWISE_OF_ANY(name, 0)
#define COMPARE(name, ...) POINTWISE_OF_ANY(name, 0)
#define LOSS(name, ...)                                                       \
    KERNEL_SIGNATURE(gpu, name##_backward) {                                  \
        const ScalarAttr count = {.a = (double)view_count(&call->output[0])}; \
        return run(device, GPU_KERNEL_##name##_backward, call, count, error); \
    }
#include "kernel/pointwise.def"
POINTWISE_OF_ANY(where, 1)

bool gpu_relu_in_place(Device *device, const View *sums, Error *error) {
    const KernelCall call = {
        .op = OP_relu, .input_count = 1, .input = {*sums}, .output_count = 1, .output = {*sums}};
    return gpu_relu(device, &call, error);
}
