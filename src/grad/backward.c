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

bool grad_add_in_place(Tensor *sum, const Tensor *part, Error *error) {
    OpAttr attr = {.out_format = sum->view.format, .has_out_format = true};
    KernelCall call;
    call.op = OP_add;
    call.layer = 0;
    call.input_count = 2;
    call.output_count = 1;
    call.attr = &attr;
    call.input[0] = call.output[0] = sum->view;
    call.input[1] = part->view;
    tensor_mark(sum);
    return device_run(tensor_device(sum), &call, error);
}

static bool is_ours_alone(const Tensor *tensor) {
    return tensor->references == 1 && tensor->storage->references == 1 &&
           view_is_dense(&tensor->view);
}

// *slot += gradient. Takes over the reference to `gradient`.
static bool accumulate(Tape *tape, Tensor **slot, Tensor *gradient, bool recorded, Error *error) {
    if (!*slot) {
        *slot = gradient;
        return true;
    }
    bool done;
    if (!recorded && is_ours_alone(*slot)) {
        done = grad_add_in_place(*slot, gradient, error);
    } else if (!recorded && is_ours_alone(gradient) &&
               gradient->view.format == (*slot)->view.format) {
        done = grad_add_in_place(gradient, *slot, error);
        Tensor *old = *slot;
        *slot = tensor_hold(gradient);
        tensor_release(old);
    } else {
        Tensor *sum = tape->hooks.add(tape->context, *slot, gradient, error);
        done = sum != NULL;
        if (done) {
            tensor_release(*slot);
            *slot = sum;
        }
    }
    tensor_release(gradient);
    return done;
}

// ---- leaves -------------------------------------------------------------------------------------

// Of a leaf: nobody else has what it is from now on.
static Tensor *made_ours(Tape *tape, Tensor *gradient, Error *error) {
    if (is_ours_alone(gradient))
        return gradient;
    Tensor *copy = tape->hooks.cast(tape->context, gradient, gradient->view.format, error);
    tensor_release(gradient);
    return copy;
}

// The first gradient of a walk: what is there already is put aside, and joined at the walk's end.
static bool leaf_reach(Tape *tape, Tensor *leaf, Error *error) {
    if (tape->walk.reached_count == tape->walk.reached_size) {
        int size = tape->walk.reached_size ? tape->walk.reached_size * 2 : 64;
        Reached *reached = realloc(tape->walk.reached, (size_t)size * sizeof *reached);
        if (!reached)
            return error_fail(error, ERROR_MEMORY, "no memory for the walk back");
        tape->walk.reached = reached;
        tape->walk.reached_size = size;
    }
    tape->walk.reached[tape->walk.reached_count++] = (Reached){tensor_hold(leaf), leaf->grad};
    leaf->grad = NULL;
    return true;
}

// The gradient of a leaf stays after the walk and is changed in place later (scaled back, added
// to), so that it may not share memory with anything.
static bool leaf_accumulate(Tape *tape, Tensor *leaf, Tensor *gradient, bool recorded,
                            Error *error) {
    if (leaf->arrived <= tape->walk.began && !leaf_reach(tape, leaf, error)) {
        tensor_release(gradient);
        return false;
    }
    if (!leaf->grad && !recorded && !(gradient = made_ours(tape, gradient, error)))
        return false;
    leaf->arrivals++;
    tape->arrivals++;
    if (leaf->arrived <= tape->walk.began)
        leaf->arrived = tape->arrivals;
    return accumulate(tape, &leaf->grad, gradient, recorded, error);
}

// Adds what this walk brought to what earlier ones did, where both carry one scale; else it stays
// apart. Takes over `before`.
static bool leaf_join(Tape *tape, Tensor *leaf, Tensor *before, bool recorded, Error *error) {
    Tensor *gradient = leaf->grad;
    leaf->grad = before;
    if (leaf->carries == GRAD_OF_ANY)
        leaf->carries = tape->walk.scale;
    if (leaf->carries == tape->walk.scale && recorded) // a graph of its own: nothing is rounded
        return accumulate(tape, &leaf->grad, gradient, recorded, error);
    Tensor **sum = &leaf->grad;
    bool *is_rounded = &leaf->is_rounded;
    GradPart *part = leaf->apart;
    while (leaf->carries != tape->walk.scale && part && part->carries != tape->walk.scale)
        part = part->next;
    if (leaf->carries != tape->walk.scale && !part) {
        part = malloc(sizeof *part);
        if (part)
            *part = (GradPart){.next = leaf->apart, .grad = gradient, .carries = tape->walk.scale};
        else
            tensor_release(gradient);
        leaf->apart = part ? part : leaf->apart;
        return part || error_fail(error, ERROR_MEMORY, "no memory for the walk back");
    }
    if (leaf->carries != tape->walk.scale) {
        sum = &part->grad;
        is_rounded = &part->is_rounded;
    }
    bool done = tape->hooks.gather(tape->context, leaf, sum, *is_rounded, gradient, error);
    *is_rounded = true;
    tensor_release(gradient);
    return done;
}

// Who looks at a leaf's gradients looks at what this walk brought, which lies apart meanwhile: a
// script may set the leaf's own.
static bool leaf_look(Tape *tape, Tensor *leaf, Tensor **gradient, bool recorded, Error *error) {
    GradHook **hooks = hooks_of_leaf(leaf);
    if (!hooks || !*gradient)
        return true;
    Tensor *brought = *gradient;
    *gradient = NULL;
    bool done = hooks_look(tape, hooks, 0, &brought, error);
    if (done && !recorded) // a script may have kept it
        done = (brought = made_ours(tape, brought, error)) != NULL;
    tensor_release(*gradient);
    *gradient = brought;
    return done;
}

// The walk is over. One that failed leaves what was there before it.
static bool leaves_settle(Tape *tape, bool done, bool recorded, Error *error) {
    for (int i = 0; done && i < tape->walk.reached_count; i++) {
        Tensor *leaf = tape->walk.reached[i].leaf;
        done = leaf_look(tape, leaf, &leaf->grad, recorded, error);
    }
    for (int i = 0; i < tape->walk.reached_count; i++) {
        Reached *reached = &tape->walk.reached[i];
        Tensor *leaf = reached->leaf;
        if (!done) {
            tensor_release(leaf->grad);
            leaf->grad = reached->before;
        } else if (reached->before) {
            done = leaf_join(tape, leaf, reached->before, recorded, error);
        } else {
            leaf->carries = tape->walk.scale;
            leaf->is_rounded = false;
        }
        tensor_release(leaf);
    }
    tape->walk.reached_count = 0;
    return done;
}

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
            return accumulate(tape, &options->results[wanted], gradient, recorded, error);
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
    if (!accumulate(tape, &node->arrived[edge->output], gradient, recorded, error))
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

static bool node_visit(Tape *tape, GradNode *node, const BackwardOptions *options, Error *error) {
    Tensor *input_grad[OP_MAX_INPUTS] = {0};
    bool done = false;
    tape->hooks.enter(tape->context, node->layer);
    for (int i = 0; node->hooks && i < node->output_count; i++)
        if (node->arrived[i] && !hooks_look(tape, &node->hooks, i, &node->arrived[i], error))
            goto cleanup;
    for (int i = 0; i < options->input_count; i++) {
        Tensor *input = options->inputs[i];
        if (input->origin == &node->origin && node->arrived[input->output]) {
            Tensor *gradient = tensor_hold(node->arrived[input->output]);
            if (!accumulate(tape, &options->results[i], gradient, options->create_graph, error))
                goto cleanup;
        }
    }
    if (node->spent) {
        error_fail(error, ERROR_USAGE,
                   "backward: this graph was walked before and its tensors are freed; run the "
                   "forward pass again, or ask to keep the graph");
        goto cleanup;
    }
    if (!saved_check(node, error) || !scale_check(tape, node, error))
        goto cleanup;
    done = options->create_graph
               ? rule_recorded(node, input_grad, error)
               : node->rule(tape->context, node, node->arrived, input_grad, error);
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
        error_fail(error, ERROR_USAGE,
                   "backward: a loss of one element wanted, this is %s; reduce it, or hand the "
                   "gradient to start with",
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
