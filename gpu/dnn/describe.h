// gpu/dnn/describe.h: a graph in the words of cuDNN's backend interface.
//
// Operations are described in the order that they happen in; each function takes the tensors that
// an operation reads and gives the one that it makes. After the first refusal nothing more is asked
// of the library, and the words for it stand in `why`. All descriptors live as long as the list
// that they were made in, since a plan refers to them.
#pragma once

#include "gpu/dnn/library.h"
#include "gpu/dnn/plans.h"
#include "number/format.h"

typedef cudnnBackendDescriptor_t DnnDescriptor;

enum { DNN_MOST_DESCRIPTORS = 320, DNN_MOST_OPERATIONS = 32, DNN_DIMS = 4 };

typedef struct DnnDescription {
    const DnnLibrary *library;
    DnnDescriptor made[DNN_MOST_DESCRIPTORS];
    int made_count;
    DnnDescriptor operation[DNN_MOST_OPERATIONS];
    int operation_count;
    int64_t inner;     // how many tensors are never in memory
    unsigned operands; // bit i: DnnOperand i is read or written
    char *why;         // DNN_WHY_SIZE bytes; "" while nothing was refused
} DnnDescription;

// Sizes and strides of a tensor in cuDNN's order of dimensions, whatever its order in memory.
typedef struct DnnShape {
    int64_t size[DNN_DIMS], stride[DNN_DIMS];
} DnnShape;

void dnn_description_clear(DnnDescription *description);
bool dnn_is_refused(const DnnDescription *description);

// False, with what was refused, where `status` says so.
bool dnn_accepts(DnnDescription *description, cudnnStatus_t status, const char *what);

DnnDescriptor dnn_make(DnnDescription *description, cudnnBackendDescriptorType_t type);
void dnn_set(DnnDescription *description, DnnDescriptor descriptor,
             cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, int64_t count,
             const void *values);
// What a descriptor is made of; NULL: nothing.
void dnn_set_part(DnnDescription *description, DnnDescriptor descriptor,
                  cudnnBackendAttributeName_t attribute, DnnDescriptor part);
DnnDescriptor dnn_finish(DnnDescription *description, DnnDescriptor descriptor, const char *what);

#define DNN_SET_INTEGERS(description, descriptor, attribute, ...)          \
    dnn_set(description, descriptor, attribute, CUDNN_TYPE_INT64,          \
            (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
            (const int64_t[]){__VA_ARGS__})
#define DNN_SET(description, descriptor, attribute, type, C, value) \
    dnn_set(description, descriptor, attribute, type, 1, &(const C){value})

// ---- tensors ------------------------------------------------------------------------------------

cudnnDataType_t dnn_type(int64_t format);
DnnDescriptor dnn_operand(DnnDescription *description, DnnOperand operand, cudnnDataType_t type,
                          const DnnShape *shape);
// Between two operations.
DnnDescriptor dnn_inner(DnnDescription *description, cudnnDataType_t type, const DnnShape *shape);
// A float that is given with each run.
DnnDescriptor dnn_number(DnnDescription *description, DnnOperand operand);

// ---- operations ---------------------------------------------------------------------------------

// An operation that is described whole, next in order.
void dnn_add_operation(DnnDescription *description, DnnDescriptor operation);

DnnDescriptor dnn_pointwise(DnnDescription *description, cudnnPointwiseMode_t mode, DnnDescriptor x,
                            DnnDescriptor b, DnnDescriptor y);
DnnDescriptor dnn_index(DnnDescription *description, DnnDescriptor x, int64_t axis,
                        DnnDescriptor y);
// x where `keep` is true, `other` elsewhere.
DnnDescriptor dnn_select(DnnDescription *description, DnnDescriptor x, DnnDescriptor other,
                         DnnDescriptor keep, DnnDescriptor y);
DnnDescriptor dnn_reduce(DnnDescription *description, cudnnReduceTensorOp_t how, DnnDescriptor x,
                         DnnDescriptor y);
DnnDescriptor dnn_product(DnnDescription *description, DnnDescriptor a, DnnDescriptor b,
                          DnnDescriptor c);
DnnDescriptor dnn_reshape(DnnDescription *description, DnnDescriptor x, DnnDescriptor y);

// ---- graphs -------------------------------------------------------------------------------------

void dnn_describe_convolution(DnnDescription *description, const DnnGraph *graph);
void dnn_describe_attention(DnnDescription *description, const DnnGraph *graph);
void dnn_describe_attention_backward(DnnDescription *description, const DnnGraph *graph);
