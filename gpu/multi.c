// What runs over all tensors of a model at once, on a card.
#include "gpu/backend.h"

const MultiKernels gpu_multi = {0};
