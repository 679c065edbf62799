// Which convolutions Winograd's way can compute.
#include "cpu/conv_winograd.h"

static const WinogradKernel kernels[] = {
    {.taps = 3,
     .stride = 1,
     .squares = CPU_WINOGRAD_2_OF_3,
     .has_weights = true,
     .packed_bytes = 19 << 18},
    {.taps = 4, .stride = 2, .squares = CPU_WINOGRAD_2_OF_2, .packed_bytes = 5 << 18},
};

const WinogradKernel *winograd_kernel_of(const ConvProblem *problem) {
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        bool is_like = true;
        for (int dim = 0; dim < 2; dim++)
            is_like = is_like && problem->kernel[dim] == kernels[i].taps &&
                      problem->stride[dim] == kernels[i].stride && problem->dilation[dim] == 1;
        if (is_like)
            return &kernels[i];
    }
    return NULL;
}

bool conv_winograd_can(const ConvProblem *problem, const ConvArrays *arrays) {
    enum { FEWEST = 2 * CPU_WINOGRAD_CHANNELS };
    const WinogradKernel *kernel = winograd_kernel_of(problem);
    bool can = kernel && problem->groups == 1 && problem->channels >= FEWEST &&
               problem->filters >= FEWEST && problem->channels % CPU_WINOGRAD_CHANNELS == 0 &&
               problem->filters % CPU_WINOGRAD_CHANNELS == 0 && problem->images > 0 &&
               (problem->activation == ACTIVATION_NONE || problem->activation == ACTIVATION_RELU) &&
               (problem->pass != CONV_BACKWARD_WEIGHT ||
                (kernel->has_weights && arrays->weight.format == FORMAT_FP32));
    for (int i = 0; i < 2; i++)
        can = can && problem->padding[i] < problem->kernel[i] && problem->size[i] > 0 &&
              problem->out_size[i] > 0;
    return can;
}

const CpuWinograd *winograd_transforms_of(const Device *device, const ConvProblem *problem,
                                          const ConvArrays *arrays) {
    const bool larger = problem->pass == CONV_BACKWARD_WEIGHT && winograd_takes_larger(arrays);
    return &cpu_simd(device)
                ->winograd[larger ? CPU_WINOGRAD_4_OF_3 : winograd_kernel_of(problem)->squares];
}
