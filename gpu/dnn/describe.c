// Descriptors: tensors, operations, and what of them the library refuses.
#include "gpu/dnn/describe.h"

#include <stdio.h>
#include <string.h>

enum {
    FIRST_INNER = 100
}; // numbers of tensors: DnnOperand below, what is between operations above

bool dnn_is_refused(const DnnDescription *description) {
    return description->why[0] != 0;
}

bool dnn_accepts(DnnDescription *description, cudnnStatus_t status, const char *what) {
    const DnnLibrary *library = description->library;
    char text[DNN_WHY_SIZE] = "";
    if (status == CUDNN_STATUS_SUCCESS || dnn_is_refused(description))
        return !dnn_is_refused(description);
    library->cudnnGetLastErrorString(text, sizeof text);
    snprintf(description->why, DNN_WHY_SIZE, "%s: %s: %.120s", what,
             library->cudnnGetErrorString(status), text);
    return false;
}

void dnn_description_clear(DnnDescription *description) {
    while (description->made_count > 0)
        description->library->cudnnBackendDestroyDescriptor(
            description->made[--description->made_count]);
    description->operation_count = 0;
}

DnnDescriptor dnn_make(DnnDescription *description, cudnnBackendDescriptorType_t type) {
    DnnDescriptor made = NULL;
    if (dnn_is_refused(description))
        return NULL;
    if (description->made_count == DNN_MOST_DESCRIPTORS) {
        snprintf(description->why, DNN_WHY_SIZE, "more than %d descriptors", DNN_MOST_DESCRIPTORS);
        return NULL;
    }
    if (!dnn_accepts(description, description->library->cudnnBackendCreateDescriptor(type, &made),
                     "a descriptor"))
        return NULL;
    return description->made[description->made_count++] = made;
}

void dnn_set(DnnDescription *description, DnnDescriptor descriptor,
             cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, int64_t count,
             const void *values) {
    char what[40];
    if (dnn_is_refused(description))
        return;
    snprintf(what, sizeof what, "attribute %d", (int)attribute);
    (void)dnn_accepts(
        description,
        description->library->cudnnBackendSetAttribute(descriptor, attribute, type, count, values),
        what);
}

void dnn_set_part(DnnDescription *description, DnnDescriptor descriptor,
                  cudnnBackendAttributeName_t attribute, DnnDescriptor part) {
    if (part)
        dnn_set(description, descriptor, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

DnnDescriptor dnn_finish(DnnDescription *description, DnnDescriptor descriptor, const char *what) {
    if (!dnn_is_refused(description))
        (void)dnn_accepts(description, description->library->cudnnBackendFinalize(descriptor),
                          what);
    return descriptor;
}

// ---- tensors ------------------------------------------------------------------------------------

// Of formats that train, and TF32: plans are made of no other.
cudnnDataType_t dnn_type(int64_t format) {
    static const cudnnDataType_t types[FORMAT_COUNT] = {
        [FORMAT_FP32] = CUDNN_DATA_FLOAT,
        [FORMAT_TF32] = CUDNN_DATA_FLOAT,
        [FORMAT_BF16] = CUDNN_DATA_BFLOAT16,
        [FORMAT_FP16] = CUDNN_DATA_HALF,
    };
    return types[format];
}

// The attribute is what sets a tensor apart from one in memory; 0: nothing does.
static DnnDescriptor tensor(DnnDescription *description, int64_t number, cudnnDataType_t type,
                            const DnnShape *shape, cudnnBackendAttributeName_t apart) {
    DnnDescriptor made = dnn_make(description, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    DNN_SET_INTEGERS(description, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, number);
    DNN_SET(description, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, cudnnDataType_t,
            type);
    dnn_set(description, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, DNN_DIMS,
            shape->size);
    dnn_set(description, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, DNN_DIMS,
            shape->stride);
    DNN_SET_INTEGERS(description, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, DNN_ALIGNMENT);
    if (apart)
        DNN_SET(description, made, apart, CUDNN_TYPE_BOOLEAN, bool, true);
    return dnn_finish(description, made, "a tensor");
}

DnnDescriptor dnn_operand(DnnDescription *description, DnnOperand operand, cudnnDataType_t type,
                          const DnnShape *shape) {
    description->operands |= 1u << operand;
    return tensor(description, operand, type, shape, (cudnnBackendAttributeName_t)0);
}

DnnDescriptor dnn_inner(DnnDescription *description, cudnnDataType_t type, const DnnShape *shape) {
    return tensor(description, FIRST_INNER + description->inner++, type, shape,
                  CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

DnnDescriptor dnn_number(DnnDescription *description, DnnOperand operand) {
    description->operands |= 1u << operand;
    return tensor(description, operand, CUDNN_DATA_FLOAT, &(DnnShape){{1, 1, 1, 1}, {1, 1, 1, 1}},
                  CUDNN_ATTR_TENSOR_IS_BY_VALUE);
}

// ---- operations ---------------------------------------------------------------------------------

void dnn_add_operation(DnnDescription *description, DnnDescriptor operation) {
    (void)dnn_finish(description, operation, "an operation");
    if (!dnn_is_refused(description))
        description->operation[description->operation_count++] = operation;
}

static DnnDescriptor pointwise_mode(DnnDescription *description, cudnnPointwiseMode_t mode,
                                    cudnnDataType_t computed_in) {
    DnnDescriptor made = dnn_make(description, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    DNN_SET(description, made, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
            cudnnPointwiseMode_t, mode);
    DNN_SET(description, made, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
            cudnnDataType_t, computed_in);
    return made;
}

static DnnDescriptor add_pointwise(DnnDescription *description, DnnDescriptor mode, DnnDescriptor x,
                                   DnnDescriptor b, DnnDescriptor keep, DnnDescriptor y) {
    DnnDescriptor made = dnn_make(description, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                 dnn_finish(description, mode, "a point-wise function"));
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, keep);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    dnn_add_operation(description, made);
    return y;
}

DnnDescriptor dnn_pointwise(DnnDescription *description, cudnnPointwiseMode_t mode, DnnDescriptor x,
                            DnnDescriptor b, DnnDescriptor y) {
    return add_pointwise(description, pointwise_mode(description, mode, CUDNN_DATA_FLOAT), x, b,
                         NULL, y);
}

DnnDescriptor dnn_index(DnnDescription *description, DnnDescriptor x, int64_t axis,
                        DnnDescriptor y) {
    DnnDescriptor mode = pointwise_mode(description, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32);
    DNN_SET_INTEGERS(description, mode, CUDNN_ATTR_POINTWISE_AXIS, axis);
    return add_pointwise(description, mode, x, NULL, NULL, y);
}

DnnDescriptor dnn_select(DnnDescription *description, DnnDescriptor x, DnnDescriptor other,
                         DnnDescriptor keep, DnnDescriptor y) {
    return add_pointwise(
        description, pointwise_mode(description, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT),
        x, other, keep, y);
}

DnnDescriptor dnn_reduce(DnnDescription *description, cudnnReduceTensorOp_t how, DnnDescriptor x,
                         DnnDescriptor y) {
    DnnDescriptor mode = dnn_make(description, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    DNN_SET(description, mode, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
            cudnnReduceTensorOp_t, how);
    DNN_SET(description, mode, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
            cudnnDataType_t, CUDNN_DATA_FLOAT);
    (void)dnn_finish(description, mode, "a reduction");
    DnnDescriptor made = dnn_make(description, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_REDUCTION_DESC, mode);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    dnn_add_operation(description, made);
    return y;
}

DnnDescriptor dnn_product(DnnDescription *description, DnnDescriptor a, DnnDescriptor b,
                          DnnDescriptor c) {
    DnnDescriptor mode = dnn_make(description, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    DNN_SET(description, mode, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, cudnnDataType_t,
            CUDNN_DATA_FLOAT);
    (void)dnn_finish(description, mode, "a product");
    DnnDescriptor made = dnn_make(description, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_MATMUL_DESC, mode);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    dnn_add_operation(description, made);
    return c;
}

DnnDescriptor dnn_reshape(DnnDescription *description, DnnDescriptor x, DnnDescriptor y) {
    DnnDescriptor made = dnn_make(description, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    dnn_set_part(description, made, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    dnn_add_operation(description, made);
    return y;
}
