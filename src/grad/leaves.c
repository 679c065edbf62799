// Where gradients end up: sums of those that arrive in one place, and what leaves keep of a walk.
#include <stdlib.h>

#include "grad/tape_private.h"

static bool is_ours_alone(const Tensor *tensor) {
    return tensor->references == 1 && tensor->storage->references == 1 &&
           view_is_dense(&tensor->view);
}

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

bool grad_accumulate(Tape *tape, Tensor **slot, Tensor *gradient, bool recorded, Error *error) {
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
bool leaf_accumulate(Tape *tape, Tensor *leaf, Tensor *gradient, bool recorded, Error *error) {
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
    return grad_accumulate(tape, &leaf->grad, gradient, recorded, error);
}

// Adds what this walk brought to what earlier ones did, where both carry one scale; else it stays
// apart. Takes over `before`.
static bool leaf_join(Tape *tape, Tensor *leaf, Tensor *before, bool recorded, Error *error) {
    Tensor *gradient = leaf->grad;
    leaf->grad = before;
    if (leaf->carries == GRAD_OF_ANY)
        leaf->carries = tape->walk.scale;
    if (leaf->carries == tape->walk.scale && recorded) // a graph of its own: nothing is rounded
        return grad_accumulate(tape, &leaf->grad, gradient, recorded, error);
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

// What this walk brought lies apart meanwhile: a script may set the leaf's own.
bool leaf_look(Tape *tape, Tensor *leaf, Tensor **gradient, bool recorded, Error *error) {
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

bool leaves_settle(Tape *tape, bool done, bool recorded, Error *error) {
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
        if (done && tape->hooks.settled)
            tape->hooks.settled(tape->context, leaf, !reached->before);
        tensor_release(leaf);
    }
    tape->walk.reached_count = 0;
    return done;
}

// ---- walks that are gone again ------------------------------------------------------------------

TapeCounts tape_counts(const Tape *tape) {
    return (TapeCounts){tape->next_number, tape->arrivals};
}

void tape_bring(Tape *tape, Tensor *leaf, Tensor *gradient, uint64_t order, uint64_t scale) {
    leaf->grad = tensor_hold(gradient);
    leaf->carries = scale;
    leaf->is_rounded = false;
    leaf->arrivals++;
    leaf->arrived = tape->arrivals + order;
}

void tape_pass(Tape *tape, TapeCounts more) {
    tape->next_number += more.nodes;
    tape->arrivals += more.arrivals;
}

void tape_share_origin(Tensor *copy, const Tensor *of) {
    if (of->origin)
        grad_output_link(copy, (GradNode *)of->origin, of->output);
}
