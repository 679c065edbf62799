#include "grad/tape.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "grad/tape_private.h"

Tape *tape_new(void *context, const TapeHooks *hooks) {
    Tape *tape = calloc(1, sizeof *tape);
    if (tape)
        *tape = (Tape){.context = context, .hooks = *hooks, .enabled = true};
    return tape;
}

void tape_free(Tape *tape) {
    if (!tape)
        return;
    free(tape->walk.heap);
    free(tape->walk.reached);
    free(tape);
}

bool tape_set_enabled(Tape *tape, bool enabled) {
    bool previous = tape->enabled;
    tape->enabled = enabled;
    return previous;
}

bool tape_is_enabled(const Tape *tape) {
    return tape->enabled;
}

// ---- a node's life ------------------------------------------------------------------------------

void grad_node_drop_saved(GradNode *node) {
    for (int i = 0; i < node->saved_count; i++) {
        Tensor *saved = node->saved[i];
        node->saved[i] = NULL;
        tensor_release(saved);
    }
    GradOwn *own = node->own;
    node->own = NULL;
    if (own)
        own->release(own);
}

// Releasing what a node holds may release further nodes, whose chain can be as long as a training
// step: they wait on a list of their own instead of on the call stack.
static void node_release(TensorOrigin *origin) {
    static _Thread_local GradNode *waiting;
    static _Thread_local bool draining;
    GradNode *dead = (GradNode *)origin;
    dead->next = waiting;
    waiting = dead;
    if (draining)
        return;
    draining = true;
    while (waiting) {
        GradNode *node = waiting;
        waiting = node->next;
        grad_node_drop_saved(node);
        hooks_release(node->hooks);
        for (int i = 0; i < node->output_count; i++)
            tensor_release(node->arrived[i]);
        for (int i = 0; i < node->input_count; i++) {
            GradEdge *edge = &node->edges[i];
            tensor_release(edge->leaf);
            if (edge->node && --edge->node->origin.references == 0)
                node_release(&edge->node->origin);
        }
        allocator_remove_host(node->device->allocator, node->bytes);
        free(node);
    }
    draining = false;
}

GradShape grad_shape_of(const Tensor *tensor) {
    GradShape shape = {.format = tensor->view.format, .ndim = tensor->view.ndim};
    memcpy(shape.shape, tensor->view.shape, sizeof shape.shape);
    return shape;
}

GradEdge grad_edge_to(Tensor *input) {
    GradEdge edge = {0};
    if (input->origin) {
        edge.node = (GradNode *)input->origin;
        edge.output = input->output;
        edge.node->origin.references++;
    } else {
        edge.leaf = tensor_hold(input);
    }
    return edge;
}

GradNode *grad_node_new(Tape *tape, Device *device, int input_count, Error *error) {
    size_t count = (size_t)input_count;
    size_t bytes = sizeof(GradNode) + count * (sizeof(GradEdge) + sizeof(GradShape));
    if (!allocator_add_host(device->allocator, bytes, error))
        return NULL;
    GradNode *node = malloc(bytes); // calloc would not ask the thread's own cache
    if (!node) {
        allocator_remove_host(device->allocator, bytes);
        error_fail(error, ERROR_MEMORY, "no memory for the tape");
        return NULL;
    }
    memset(node, 0, bytes);
    node->edges = (GradEdge *)(node + 1);
    node->inputs = (GradShape *)(node->edges + count);
    node->origin.release = node_release;
    node->tape = tape;
    node->device = device;
    node->bytes = bytes;
    node->number = tape->next_number++;
    node->input_count = input_count;
    return node;
}

void grad_output_link(Tensor *output, GradNode *node, int index) {
    output->origin = &node->origin;
    output->output = (uint8_t)index;
    node->origin.references++;
}

static int output_index(const TapeRecord *record, const Tensor *tensor) {
    for (int i = 0; i < record->output_count; i++)
        if (record->outputs[i] == tensor)
            return i;
    return -1;
}

static int input_index(const TapeRecord *record, const Tensor *tensor) {
    for (int i = 0; i < record->input_count; i++)
        if (record->inputs[i] == tensor)
            return i;
    return -1;
}

// The input that a saved tensor was used in place of (a low copy, one made dense), where gradients
// flow to that input and not to what was used.
static int replaced_input(const TapeRecord *record, const Tensor *saved, uint32_t wants) {
    for (int i = 0; i < record->input_count; i++)
        if (wants & (1u << i) && record->used[i] == saved && record->inputs[i] != saved)
            return i;
    return -1;
}

bool tape_record(Tape *tape, const TapeRecord *record, Error *error) {
    uint32_t wants = 0;
    if (tape->enabled && record->rule)
        for (int i = 0; i < record->input_count; i++)
            if (tensor_wants_grad(record->inputs[i]))
                wants |= 1u << i;
    if (!wants)
        return true;
    assert(record->saved_count <= GRAD_MAX_SAVED);
    GradNode *node =
        grad_node_new(tape, tensor_device(record->outputs[0]), record->input_count, error);
    if (!node)
        return false;
    node->rule = record->rule;
    node->op = record->op;
    if (record->attr)
        node->attr = *record->attr;
    node->layer = record->layer;
    node->output_count = record->output_count;
    node->saved_count = record->saved_count;
    node->wants = wants;
    for (int i = 0; i < record->input_count; i++) {
        if (record->used[i])
            node->inputs[i] = grad_shape_of(record->used[i]);
        if (wants & (1u << i))
            node->edges[i] = grad_edge_to(record->inputs[i]);
    }
    for (int i = 0; i < record->output_count; i++)
        node->output[i] = grad_shape_of(record->outputs[i]);
    for (int i = 0; i < record->saved_count; i++) {
        Tensor *saved = record->saved[i];
        // An output that its own node held would never be freed: the node keeps a second tensor
        // on the same memory.
        node->saved_output[i] = (int8_t)(saved ? output_index(record, saved) : -1);
        node->saved_input[i] = (int8_t)(saved ? replaced_input(record, saved, wants) : -1);
        node->saved_again[i] = (int8_t)(record->again & 1u << i ? input_index(record, saved) : -1);
        if (node->saved_again[i] >= 0)
            continue;
        if (node->saved_output[i] >= 0) {
            node->saved[i] = tensor_view(saved, &saved->view, error);
            if (!node->saved[i]) {
                node_release(&node->origin);
                return false;
            }
        } else {
            node->saved[i] = tensor_hold(saved);
        }
        if (saved)
            node->saved_version[i] = tensor_version(node->saved[i]);
    }
    for (int i = 0; i < record->output_count; i++) {
        Tensor *output = record->outputs[i];
        if (!format_is_floating(output->view.format))
            continue;
        grad_output_link(output, node, i);
    }
    node->own = record->own;
    if (node->origin.references == 0)
        node_release(&node->origin);
    return true;
}

void tape_mark_scale(Tensor *scaled, uint64_t scale) {
    if (scaled->origin)
        ((GradNode *)scaled->origin)->scale = scale;
}

// ---- gradients that are set ---------------------------------------------------------------------

static bool gradient_fits(const Tensor *leaf, const Tensor *gradient, Error *error) {
    char target[96], from[96];
    tensor_describe(leaf, target, sizeof target);
    tensor_describe(gradient, from, sizeof from);
    if (leaf->origin)
        return error_fail(error, ERROR_USAGE,
                          "grad: %s was computed from other tensors and keeps no gradient; set "
                          "that of a leaf",
                          target);
    if (!format_is_floating(gradient->view.format) || !format_is_floating(leaf->view.format))
        return error_fail(error, ERROR_USAGE,
                          "grad: %s cannot be a gradient of %s: both hold "
                          "numbers in a floating format",
                          from, target);
    bool same = leaf->view.ndim == gradient->view.ndim;
    for (int i = 0; same && i < leaf->view.ndim; i++)
        same = leaf->view.shape[i] == gradient->view.shape[i];
    if (!same)
        return error_fail(error, ERROR_USAGE,
                          "grad: %s cannot be the gradient of %s: the shapes differ", from, target);
    if (tensor_device(leaf) != tensor_device(gradient))
        return error_fail(error, ERROR_USAGE,
                          "grad: the gradient lies on device %s, the tensor on %s",
                          tensor_device(gradient)->name, tensor_device(leaf)->name);
    return tensor_check_readable(gradient, error);
}

bool tape_set_gradient(Tape *tape, Tensor *leaf, const Tensor *gradient, Error *error) {
    Tensor *copy = NULL; // what is set is scaled back and clipped in place
    if (gradient) {
        if (!gradient_fits(leaf, gradient, error))
            return false;
        copy = tensor_copy_as(gradient, gradient->view.format, MEMORY_GRADIENTS, error);
        if (!copy)
            return false;
        leaf->arrived = ++tape->arrivals;
    }
    uint64_t carries = leaf->grad ? leaf->carries : GRAD_OF_ANY;
    tensor_drop_grad(leaf);
    leaf->grad = copy;
    if (copy)
        leaf->carries = carries;
    return true;
}
