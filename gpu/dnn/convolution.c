// Graphs of convolutions: one operation, and behind the forward pass what is computed of each
// result before it is rounded.
#include "gpu/dnn/describe.h"
#include "kernel/attr.h"

// The names of one pass's attributes, in the order of its images, filters and results.
typedef struct Pass {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
} Pass;

#define ATTRIBUTE(names, name) CUDNN_ATTR_OPERATION_CONVOLUTION_##names##_##name
#define PASS(type, names, X, W, Y)                                                    \
    {                                                                                 \
        CUDNN_BACKEND_OPERATION_CONVOLUTION_##type##_DESCRIPTOR, ATTRIBUTE(names, X), \
            ATTRIBUTE(names, W), ATTRIBUTE(names, Y), ATTRIBUTE(names, CONV_DESC),    \
            ATTRIBUTE(names, ALPHA), ATTRIBUTE(names, BETA)                           \
    }

static const Pass passes[] = {
    [DNN_CONVOLUTION] = PASS(FORWARD, FORWARD, X, W, Y),
    [DNN_CONVOLUTION_INPUT] = PASS(BACKWARD_DATA, BWD_DATA, DX, W, DY),
    [DNN_CONVOLUTION_WEIGHT] = PASS(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
};

// Not the maximum with 0: gpu/relu.h.
static const cudnnPointwiseMode_t activations[ACTIVATION_COUNT] = {
    [ACTIVATION_TANH] = CUDNN_POINTWISE_TANH_FWD,
    [ACTIVATION_SIGMOID] = CUDNN_POINTWISE_SIGMOID_FWD,
};

// As images lie: of the library's N,C,H,W the channels are innermost.
static DnnShape image(int64_t count, int64_t channels, const int64_t size[2]) {
    int64_t row = channels * size[1];
    return (DnnShape){{count, channels, size[0], size[1]}, {row * size[0], 1, row, channels}};
}

static DnnDescriptor windows(DnnDescription *description, const DnnConvolution *convolution) {
    DnnDescriptor made = dnn_make(description, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    DNN_SET(description, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
            cudnnDataType_t, CUDNN_DATA_FLOAT);
    DNN_SET(description, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
            cudnnConvolutionMode_t, CUDNN_CROSS_CORRELATION);
    DNN_SET_INTEGERS(description, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    const struct {
        cudnnBackendAttributeName_t attribute;
        const int64_t *values;
    } given[] = {
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, convolution->padding},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, convolution->padding},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, convolution->dilation},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, convolution->stride},
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        dnn_set(description, made, given[i].attribute, CUDNN_TYPE_INT64, 2, given[i].values);
    return dnn_finish(description, made, "the windows");
}

// What is computed of each sum before it is rounded; the last of these operations makes `y`.
static void add_behind(DnnDescription *description, const DnnConvolution *convolution,
                       const DnnShape *shape, DnnDescriptor sums, DnnDescriptor y) {
    bool activated = convolution->activation != ACTIVATION_NONE;
    if (convolution->bias == DNN_NO_FORMAT && !activated) {
        (void)dnn_pointwise(description, CUDNN_POINTWISE_IDENTITY, sums, NULL, y);
        return;
    }
    if (convolution->bias != DNN_NO_FORMAT) {
        const DnnShape row = image(1, convolution->filters, (const int64_t[]){1, 1});
        DnnDescriptor bias = dnn_operand(description, DNN_BIAS, dnn_type(convolution->bias), &row);
        sums = dnn_pointwise(description, CUDNN_POINTWISE_ADD, sums, bias,
                             activated ? dnn_inner(description, CUDNN_DATA_FLOAT, shape) : y);
    }
    if (activated)
        (void)dnn_pointwise(description, activations[convolution->activation], sums, NULL, y);
}

// Engines that end in the convolution round to the format of its factors. Others there are for
// fewer shapes.
static bool ends_in_convolution(const DnnConvolution *convolution) {
    return convolution->bias == DNN_NO_FORMAT && convolution->activation == ACTIVATION_NONE &&
           dnn_type(convolution->result) == dnn_type(convolution->factors);
}

void dnn_describe_convolution(DnnDescription *description, const DnnGraph *graph) {
    static const DnnOperand operands[] = {DNN_X, DNN_W, DNN_Y};
    static const DnnOperand results[] = {[DNN_CONVOLUTION] = DNN_Y,
                                         [DNN_CONVOLUTION_INPUT] = DNN_X,
                                         [DNN_CONVOLUTION_WEIGHT] = DNN_W};
    const DnnConvolution *convolution = &graph->convolution;
    const Pass *pass = &passes[graph->kind];
    const cudnnBackendAttributeName_t names[] = {pass->x, pass->w, pass->y};
    const DnnShape shapes[] = {
        image(convolution->images, convolution->channels, convolution->input),
        image(convolution->filters, convolution->channels / convolution->groups,
              convolution->kernel),
        image(convolution->images, convolution->filters, convolution->output),
    };
    DnnDescriptor made = dnn_make(description, pass->type), result = NULL, sums = NULL;
    const DnnShape *result_shape = NULL;
    for (int i = 0; i < 3; i++) {
        bool is_result = operands[i] == results[graph->kind];
        int64_t format = is_result ? convolution->result : convolution->factors;
        DnnDescriptor tensor = dnn_operand(description, operands[i], dnn_type(format), &shapes[i]);
        if (is_result) {
            result_shape = &shapes[i];
            result = tensor;
            sums = ends_in_convolution(convolution)
                       ? tensor
                       : dnn_inner(description, CUDNN_DATA_FLOAT, &shapes[i]);
        }
        dnn_set_part(description, made, names[i], is_result ? sums : tensor);
    }
    dnn_set_part(description, made, pass->convolution, windows(description, convolution));
    DNN_SET(description, made, pass->alpha, CUDNN_TYPE_FLOAT, float, 1);
    DNN_SET(description, made, pass->beta, CUDNN_TYPE_FLOAT, float, 0);
    dnn_add_operation(description, made);
    if (sums != result)
        add_behind(description, convolution, result_shape, sums, result);
}
