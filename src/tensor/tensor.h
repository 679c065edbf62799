// tensor/tensor.h: what data is: a view, the memory below it, and who counts on it. No arithmetic.
//
// Tensors and storages are reference counted; tensor_new returns one reference, the caller's.
// Several tensors may lie on one storage (views). The fields under "grad" are kept for grad/, which
// fills and clears them; here they only ride along, and an origin that dies with its tensor is
// released through the function it carries. Everything happens on the thread that drives the
// device; the counters are not atomic.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kernel/allocator.h"
#include "kernel/kernel.h"

// What a tensor takes of the host beside its data, with its part of the allocator's records: an
// estimate, by which tensors without end meet a limit before the machine does.
enum { TENSOR_HOST_BYTES = 512 };

typedef struct Storage {
    int references;
    Device *device;
    void *data;
    size_t bytes;
    uint64_t written; // how often its contents were overwritten
    uint8_t marks;    // that the device had when they were
    uint32_t fault;   // where what is not finite in it came from: ops/lookout.h; 0: it is not known
} Storage;

typedef struct Tensor Tensor;
// What made a tensor, as far as tensor/ must know: the first member of grad/'s node.
typedef struct TensorOrigin TensorOrigin;
struct TensorOrigin {
    int references;
    void (*release)(TensorOrigin *origin); // called when the last reference goes
};

// What a tensor carries for a room above, released with it: precision/'s Parameter, grad/'s hooks.
typedef struct TensorCompanion TensorCompanion;
struct TensorCompanion {
    void (*release)(TensorCompanion *companion);
};

// A loss scale that a gradient carries is a number, as whoever scales gives it.
enum { GRAD_TRUE = 0 };        // none
#define GRAD_OF_ANY UINT64_MAX // put in place by hand: of the scale that it meets first

// What a leaf's gradient has beside `grad`: what carries another scale, until it can join it.
typedef struct GradPart GradPart;
struct GradPart {
    GradPart *next;
    Tensor *grad;
    uint64_t carries;
    bool is_rounded;
};

struct Tensor {
    int references;
    View view; // view.data points into the storage
    Storage *storage;
    uint64_t adopted; // see tensor_version
    bool is_number;   // a script's number, wide: a result has the format of what it meets
    // grad
    bool requires_grad;         // a leaf that asks for its gradient
    uint8_t output;             // which output of `origin` this is
    TensorOrigin *origin;       // NULL for leaves and constants
    Tensor *grad;               // accumulated gradient of a leaf
    uint64_t carries;           // the scale that it carries
    bool is_rounded;            // it was rounded to its layer's format already, in parts
    GradPart *apart;            // mostly NULL
    uint64_t arrivals;          // how often something was added to it
    uint64_t arrived;           // when its gradient began: the tape counts what comes to leaves
    int optimizers;             // how many train this leaf; optim/ counts them
    TensorCompanion *hooks;     // of a leaf: who looks at its gradients; mostly NULL
    TensorCompanion *parameter; // what a trained weight has beside its value; NULL for all else
};

// A dense tensor with undefined contents.
Tensor *tensor_new(Device *device, Format format, int ndim, const int64_t *shape,
                   MemoryPurpose purpose, Error *error) MUST_CHECK;
// Memory of the device for one structure; its contents are undefined.
Tensor *tensor_new_bytes(Device *device, size_t bytes, MemoryPurpose purpose,
                         Error *error) MUST_CHECK;
// A tensor on the storage of `base`, laid out as `view` (whose data lies within it). It has no
// gradient history: grad/ links views itself.
Tensor *tensor_view(Tensor *base, const View *view, Error *error) MUST_CHECK;
// From and to host memory of the same format, dense. tensor_read waits for the device and copes
// with any strides.
Tensor *tensor_from_host(Device *device, Format format, int ndim, const int64_t *shape,
                         const void *host, MemoryPurpose purpose, Error *error) MUST_CHECK;
bool tensor_read(const Tensor *tensor, void *host, Error *error) MUST_CHECK;
// The value of a tensor of one element, of any format; waits.
bool tensor_item(const Tensor *tensor, double *value, Error *error) MUST_CHECK;

// A dense copy in a format.
Tensor *tensor_copy_as(const Tensor *tensor, Format format, MemoryPurpose purpose,
                       Error *error) MUST_CHECK;
// Writes what `source` holds, in any format and layout, over a dense tensor of the same shape. No
// business of the tape's.
bool tensor_copy_into(Tensor *target, const Tensor *source, Error *error) MUST_CHECK;

// Drops all of a leaf's gradient.
void tensor_drop_grad(Tensor *tensor);

Tensor *tensor_hold(Tensor *tensor); // one more reference; NULL stays NULL
void tensor_release(Tensor *tensor); // one less; NULL is fine
// Makes `tensor` lie on the storage of `other` (same format and shape): how a buffer is replaced
// without its holders noticing. That memory is accounted from then on as the old was.
void tensor_adopt(Tensor *tensor, const Tensor *other);

static inline int64_t tensor_count(const Tensor *tensor) {
    return view_count(&tensor->view);
}
static inline Device *tensor_device(const Tensor *tensor) {
    return tensor->storage->device;
}
// Marks its contents, which came to be now.
static inline void tensor_mark(Tensor *tensor) {
    tensor->storage->marks |= tensor->storage->device->marks.written;
}
// The error of whoever would read what has no contents; always false.
bool tensor_refuse_unreadable(const Tensor *tensor, Error *error);
// Whether there is something to read: not where the marks of its memory say otherwise.
static inline bool tensor_check_readable(const Tensor *tensor, Error *refusal) {
    const Storage *storage = tensor->storage;
    return !(storage->marks & storage->device->marks.unreadable) ||
           tensor_refuse_unreadable(tensor, refusal);
}
// Grows whenever the contents change: so a graph knows that what it saved is what it was. Whoever
// writes into a tensor's memory by another way than those above says so.
static inline void tensor_written(Tensor *tensor) {
    tensor->storage->written++;
    tensor_mark(tensor);
}
static inline uint64_t tensor_version(const Tensor *tensor) {
    return tensor->adopted + tensor->storage->written;
}
// "[32, 128] fp32" into `text`, for messages.
void tensor_describe(const Tensor *tensor, char *text, size_t size);
// The same of a shape alone: "[32, 128]".
void shape_describe(const View *view, char *text, size_t size);
