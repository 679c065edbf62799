// The walk back over what the tape recorded: nodes in falling order of their number, each when all
// its gradients are there.
#include <stdlib.h>
#include <string.h>

#include "grad/tape_private.h"

// ---- the heap of nodes to visit -----------------------------------------------------------------

static bool heap_push(Walk *walk, GradNode *node, Error *error) {
    if (walk->heap_count == walk->heap_size) {
        int size = walk->heap_size ? walk->heap_size * 2 : 64;
        GradNode **heap = realloc(walk->heap, (size_t)size * sizeof *heap);
        if (!heap)
            return error_fail(error, ERROR_MEMORY, "no memory for the walk back");
        walk->heap = heap;
        walk->heap_size = size;
    }
    node->walk = walk->depth;
    node->origin.references++; // the heap's own
    int i = walk->heap_count++;
    while (i > 0 && walk->heap[(i - 1) / 2]->number < node->number) {
        walk->heap[i] = walk->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    walk->heap[i] = node;
    return true;
}

static GradNode *heap_pop(Walk *walk) {
    GradNode *top = walk->heap[0], *last = walk->heap[--walk->heap_count];
    int i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= walk->heap_count)
            break;
        if (child + 1 < walk->heap_count &&
            walk->heap[child + 1]->number > walk->heap[child]->number)
            child++;
        if (walk->heap[child]->number <= last->number)
            break;
        walk->heap[i] = walk->heap[child];
        i = child;
    }
    walk->heap[i] = last;
    return top;
}

static void node_let_go(GradNode *node) {
    if (--node->origin.references == 0)
        node->origin.release(&node->origin);
}

// ---- the walk back ------------------------------------------------------------------------------

static int wanted_index(const BackwardOptions *options, const Tensor *leaf) {
    for (int i = 0; i < options->input_count; i++)
        if (options->inputs[i] == leaf)
            return i;
    return -1;
}

static bool deliver(Tape *tape, const GradEdge *edge, Tensor *gradient,
                    const BackwardOptions *options, Error *error) {
    bool recorded = options->create_graph;
    if (edge->leaf) {
        if (!options->inputs)
            return leaf_accumulate(tape, edge->leaf, gradient, recorded, error);
        int wanted = wanted_index(options, edge->leaf);
        if (wanted >= 0)
            return grad_accumulate(tape, &options->results[wanted], gradient, recorded, error);
        tensor_release(gradient);
        return true;
    }
    GradNode *node = edge->node;
    if (node->walk && node->walk != tape->walk.depth) {
        tensor_release(gradient);
        return error_fail(error, ERROR_USAGE,
                          "backward: this graph is being walked already; what a gradient of one's "
                          "own or a hook walks back is computed anew, from detached tensors");
    }
    Format format = node->output[edge->output].format;
    if (gradient->view.format != format) {
        Tensor *cast = tape->hooks.cast(tape->context, gradient, format, error);
        tensor_release(gradient);
        if (!cast)
            return false;
        gradient = cast;
    }
    if (!grad_accumulate(tape, &node->arrived[edge->output], gradient, recorded, error))
        return false;
    return node->walk || heap_push(&tape->walk, node, error);
}

// ---- the walk itself recorded -------------------------------------------------------------------

// Of a copy that was used in an input's place: what arrives for it is the input's.
static bool alias_back(void *context, const GradNode *node, Tensor *const *output_grad,
                       Tensor **input_grad, Error *error) {
    Format format = grad_leaf_wants_full(node, 0) ? FORMAT_FP32 : node->inputs[0].format;
    input_grad[0] = output_grad[0]->view.format == format
                        ? tensor_hold(output_grad[0])
                        : node->tape->hooks.cast(context, output_grad[0], format, error);
    return input_grad[0] != NULL;
}

static bool alias_link(Tensor *alias, const GradNode *node, int input, Error *error) {
    GradNode *link = grad_node_new(node->tape, node->device, 1, error);
    if (!link)
        return false;
    GradEdge edge = node->edges[input];
    if (edge.node)
        edge.node->origin.references++;
    tensor_hold(edge.leaf);
    link->rule = alias_back;
    link->op = OP_cast;
    link->layer = node->layer;
    link->output_count = 1;
    link->wants = 1;
    link->edges[0] = edge;
    link->inputs[0] = edge.leaf ? grad_shape_of(edge.leaf) : edge.node->output[edge.output];
    link->output[0] = grad_shape_of(alias);
    grad_output_link(alias, link, 0);
    return true;
}

// What stands for a saved tensor in a recorded rule: it must lead back to what the tensor is of,
// which it does not by itself where it is an output of the node or was used in an input's place.
static Tensor *saved_leading_back(GradNode *node, int i, Error *error) {
    Tensor *saved = node->saved[i];
    if (!saved || (node->saved_output[i] < 0 && node->saved_input[i] < 0))
        return tensor_hold(saved);
    Tensor *alias = tensor_view(saved, &saved->view, error);
    if (!alias)
        return NULL;
    if (node->saved_output[i] >= 0) {
        grad_output_link(alias, node, node->saved_output[i]);
        return alias;
    }
    if (alias_link(alias, node, node->saved_input[i], error))
        return alias;
    tensor_release(alias);
    return NULL;
}

static bool rule_recorded(GradNode *node, Tensor **input_grad, Error *error) {
    Tensor *own[GRAD_MAX_SAVED];
    memcpy(own, node->saved, sizeof own);
    bool done = true;
    int count = 0;
    for (; count < node->saved_count && done; count++) {
        node->saved[count] = saved_leading_back(node, count, error);
        done = node->saved[count] || !own[count];
    }
    if (done)
        done = node->rule(node->tape->context, node, node->arrived, input_grad, error);
    for (int i = 0; i < count; i++)
        tensor_release(node->saved[i]);
    memcpy(node->saved, own, sizeof own);
    return done;
}

static bool saved_check(const GradNode *node, Error *error) {
    for (int i = 0; i < node->saved_count; i++) {
        const Tensor *saved = node->saved[i];
        if (!saved || tensor_version(saved) == node->saved_version[i])
            continue;
        char text[96];
        tensor_describe(saved, text, sizeof text);
        return error_fail(error, ERROR_USAGE,
                          "backward: %s: a tensor that its derivative needs, %s, was overwritten "
                          "since, by a copy or a step; call backward before it, or run the "
                          "forward pass again",
                          node->op < OP_COUNT ? op_table[node->op].name : "custom", text);
    }
    return true;
}

static bool fail_spent(Error *error) {
    return error_fail(error, ERROR_USAGE,
                      "backward: this graph was walked before and its tensors are freed; run the "
                      "forward pass again, or keep it with t:backward(nil, { keep_graph = true })");
}

// Puts what was not kept in its place, for the rule.
static bool saved_make_again(GradNode *node, Error *error) {
    for (int i = 0; i < node->saved_count; i++) {
        if (node->saved_again[i] < 0)
            continue;
        const GradNode *maker = node->edges[node->saved_again[i]].node;
        if (maker->spent)
            return fail_spent(error);
        if (!saved_check(maker, error) ||
            !(node->saved[i] = node->tape->hooks.make_again(node->tape->context, maker, error)))
            return false;
    }
    return true;
}

static void saved_let_go(GradNode *node) {
    for (int i = 0; i < node->saved_count; i++) {
        if (node->saved_again[i] < 0)
            continue;
        tensor_release(node->saved[i]);
        node->saved[i] = NULL;
    }
}

// The scale that this node stands for is that of all gradients of the walk.
static bool scale_check(Tape *tape, const GradNode *node, Error *error) {
    if (node->scale && tape->walk.scale && node->scale != tape->walk.scale)
        return error_fail(
            error, ERROR_USAGE,
            "backward: losses that two scalers have scaled were added up, and nothing "
            "divides their gradients again; call backward on each");
    if (node->scale)
        tape->walk.scale = node->scale;
    return true;
}

void tape_drop_arrived(Tape *tape, int output) {
    GradNode *node = tape->walk.dropping;
    if (!node)
        return;
    tensor_release(node->arrived[output]);
    node->arrived[output] = NULL;
}

void tape_drop_saved(Tape *tape, int saved) {
    GradNode *node = tape->walk.dropping;
    if (!node)
        return;
    node->spent = true;
    tensor_release(node->saved[saved]);
    node->saved[saved] = NULL;
}

static bool node_visit(Tape *tape, GradNode *node, const BackwardOptions *options, Error *error) {
    Tensor *input_grad[OP_MAX_INPUTS] = {0};
    bool done = false;
    tape->hooks.enter(tape->context, node->layer, node->op);
    for (int i = 0; node->hooks && i < node->output_count; i++)
        if (node->arrived[i] && !hooks_look(tape, &node->hooks, i, &node->arrived[i], error))
            goto cleanup;
    for (int i = 0; i < options->input_count; i++) {
        Tensor *input = options->inputs[i];
        if (input->origin == &node->origin && node->arrived[input->output]) {
            Tensor *gradient = tensor_hold(node->arrived[input->output]);
            if (!grad_accumulate(tape, &options->results[i], gradient, options->create_graph,
                                 error))
                goto cleanup;
        }
    }
    if (node->spent) {
        fail_spent(error);
        goto cleanup;
    }
    if (!saved_check(node, error) || !scale_check(tape, node, error))
        goto cleanup;
    tape->walk.dropping = options->keep_graph || options->create_graph ? NULL : node;
    done =
        saved_make_again(node, error) &&
        (options->create_graph ? rule_recorded(node, input_grad, error)
                               : node->rule(tape->context, node, node->arrived, input_grad, error));
    tape->walk.dropping = NULL;
    saved_let_go(node);
    if (!done)
        goto cleanup;
    if (!options->keep_graph && !options->create_graph) {
        grad_node_drop_saved(node);
        hooks_release(node->hooks);
        node->hooks = NULL;
        node->spent = true;
    }
    for (int i = 0; i < node->input_count && done; i++) {
        Tensor *gradient = input_grad[i];
        input_grad[i] = NULL;
        if (gradient && (node->wants & (1u << i)))
            done = deliver(tape, &node->edges[i], gradient, options, error);
        else
            tensor_release(gradient);
    }
cleanup:
    for (int i = 0; i < node->input_count; i++)
        tensor_release(input_grad[i]);
    for (int i = 0; i < node->output_count; i++) {
        tensor_release(node->arrived[i]);
        node->arrived[i] = NULL;
    }
    return done;
}

static Tensor *seed_of_one(Tensor *root, Error *error) {
    if (tensor_count(root) != 1) {
        char text[96];
        tensor_describe(root, text, sizeof text);
        error_fail(
            error, ERROR_USAGE,
            "backward: a loss of one element wanted, this is %s: t:mean() makes one of it, and "
            "t:backward(gradient) starts with a gradient of your own",
            text);
        return NULL;
    }
    Device *device = tensor_device(root);
    Tensor *seed = tensor_new(device, root->view.format, root->view.ndim, root->view.shape,
                              MEMORY_GRADIENTS, error);
    if (!seed)
        return NULL;
    OpAttr attr = {.out_format = root->view.format, .has_out_format = true};
    attr.create.a = 1;
    KernelCall call;
    call.op = OP_fill;
    call.layer = 0;
    call.input_count = 0;
    call.output_count = 1;
    call.attr = &attr;
    call.output[0] = seed->view;
    if (!device_run(device, &call, error)) {
        tensor_release(seed);
        return NULL;
    }
    return seed;
}

// Gives the walk that this one is inside of.
static Walk walk_begin(Tape *tape) {
    const Walk outer = tape->walk;
    if (outer.depth > 0)
        tape->walk = (Walk){0};
    tape->walk.depth = outer.depth + 1;
    tape->walk.began = tape->arrivals;
    tape->walk.scale = GRAD_TRUE;
    return outer;
}

// The outermost keeps its memory for the next.
static void walk_end(Tape *tape, const Walk *outer) {
    if (outer->depth == 0) {
        tape->walk.depth = 0;
        return;
    }
    free(tape->walk.heap);
    free(tape->walk.reached);
    tape->walk = *outer;
}

bool tape_backward(Tape *tape, Tensor *root, Tensor *seed, const BackwardOptions *options,
                   Error *error) {
    const BackwardOptions defaults = {0};
    if (!options)
        options = &defaults;
    if (tape->walk.depth > 0 && !options->inputs)
        return error_fail(error, ERROR_USAGE,
                          "backward: called inside of another walk back; take mp.grad of what was "
                          "computed there, and return what it gives");
    if (!tensor_wants_grad(root))
        return error_fail(error, ERROR_USAGE,
                          "backward: nothing that led to this tensor asks for a gradient; was it "
                          "computed inside no_grad, or detached?");
    Tensor *gradient = seed ? tensor_hold(seed) : seed_of_one(root, error);
    if (!gradient)
        return false;
    if (view_count(&gradient->view) != view_count(&root->view)) {
        tensor_release(gradient);
        return error_fail(error, ERROR_USAGE,
                          "backward: the gradient to start with has %lld elements, the tensor %lld",
                          (long long)view_count(&gradient->view),
                          (long long)view_count(&root->view));
    }
    bool previous = tape_set_enabled(tape, options->create_graph);
    const Walk outer = walk_begin(tape);
    GradEdge edge = grad_edge_to(root);
    bool done = deliver(tape, &edge, gradient, options, error);
    if (edge.node)
        node_let_go(edge.node);
    tensor_release(edge.leaf);
    while (tape->walk.heap_count > 0) {
        GradNode *node = heap_pop(&tape->walk);
        if (done)
            done = node_visit(tape, node, options, error);
        for (int i = 0; i < node->output_count; i++) { // what a failed walk left behind
            tensor_release(node->arrived[i]);
            node->arrived[i] = NULL;
        }
        node->walk = 0;
        node_let_go(node);
    }
    for (int i = 0; done && i < options->input_count; i++)
        done = leaf_look(tape, options->inputs[i], &options->results[i], true, error);
    done = leaves_settle(tape, done, options->create_graph, error);
    walk_end(tape, &outer);
    tape_set_enabled(tape, previous);
    return done;
}
