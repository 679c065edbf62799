// Who looks at gradients on their way.
#include <stdlib.h>
#include <string.h>

#include "grad/tape_private.h"

typedef struct LeafHooks {
    TensorCompanion companion;
    GradHook *first;
} LeafHooks;

void hooks_release(GradHook *hooks) {
    while (hooks) {
        GradHook *next = hooks->next;
        hooks->release(hooks);
        hooks = next;
    }
}

static void leaf_hooks_release(TensorCompanion *companion) {
    hooks_release(((LeafHooks *)companion)->first);
    free(companion);
}

GradHook **hooks_of_leaf(Tensor *leaf) {
    return leaf->hooks ? &((LeafHooks *)leaf->hooks)->first : NULL;
}

static void hooks_prune(GradHook **at) {
    while (*at) {
        GradHook *hook = *at;
        if (!hook->is_gone) {
            at = &hook->next;
            continue;
        }
        *at = hook->next;
        hook->release(hook);
    }
}

static GradHook **hooks_made(Tensor *tensor, Error *error) {
    if (tensor->origin)
        return &((GradNode *)tensor->origin)->hooks;
    if (!tensor->hooks) {
        LeafHooks *hooks = calloc(1, sizeof *hooks);
        if (!hooks) {
            error_fail(error, ERROR_MEMORY, "no memory for a hook");
            return NULL;
        }
        hooks->companion.release = leaf_hooks_release;
        tensor->hooks = &hooks->companion;
    }
    return hooks_of_leaf(tensor);
}

bool tape_add_hook(Tensor *tensor, GradHook *hook, Error *error) {
    GradHook **hooks = NULL;
    if (tensor_wants_grad(tensor))
        hooks = hooks_made(tensor, error);
    else
        error_fail(error, ERROR_USAGE,
                   "hook: no gradient comes to this tensor: nothing that led to it asks for one; "
                   "call :requires_grad(true) before what follows is computed from it");
    if (!hooks) {
        hook->release(hook);
        return false;
    }
    hook->next = NULL;
    hook->output = tensor->output;
    while (*hooks)
        hooks = &(*hooks)->next;
    *hooks = hook;
    return true;
}

static bool same_shape(const Tensor *x, const Tensor *y) {
    return x->view.ndim == y->view.ndim &&
           memcmp(x->view.shape, y->view.shape, (size_t)x->view.ndim * sizeof *x->view.shape) == 0;
}

// Takes over both; gives the replacement in the format of what it replaces, NULL on failure.
static Tensor *replaced(Tape *tape, Tensor *gradient, Tensor *by, Error *error) {
    Format format = gradient->view.format;
    Tensor *result = NULL;
    if (!same_shape(gradient, by) || !format_is_floating(by->view.format)) {
        char came[96], wanted[96];
        tensor_describe(by, came, sizeof came);
        tensor_describe(gradient, wanted, sizeof wanted);
        error_fail(
            error, ERROR_USAGE,
            "hook: it returned %s for a gradient of %s: return one of that shape, or nothing "
            "to leave it",
            came, wanted);
    } else {
        result = by->view.format == format ? tensor_hold(by)
                                           : tape->hooks.cast(tape->context, by, format, error);
    }
    tensor_release(by);
    tensor_release(gradient);
    return result;
}

bool hooks_look(Tape *tape, GradHook **hooks, int output, Tensor **gradient, Error *error) {
    for (GradHook *hook = *hooks; hook; hook = hook->next) {
        if (hook->output != output || hook->is_gone)
            continue;
        Tensor *seen = tensor_hold(*gradient);
        if (!hook->look(hook, &seen, error)) {
            tensor_release(seen);
            return false;
        }
        if (seen == *gradient) {
            tensor_release(seen);
            continue;
        }
        *gradient = replaced(tape, *gradient, seen, error);
        if (!*gradient)
            return false;
    }
    if (tape->walk.depth == 1) // else one of them may be what walks
        hooks_prune(hooks);
    return true;
}
