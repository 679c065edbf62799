// Exponential moving averages of weights, kept in fp32 whatever the weights are in.
#include <stdlib.h>

#include "optim/optimizer_private.h"
#include "optim/state.h"

struct WeightAverage {
    Engine *engine;
    double decay;
    int count;
    Tensor **parameters, **averages;
    Tensor *
        *aside;    // the weights, while the averages are in their place; NULL entries: they are not
    PairPlan plan; // of each average and its parameter
    bool swapped;
};

static bool add_parameter(WeightAverage *average, Tensor *tensor, Error *error) {
    int i = average->count;
    if (!format_is_floating(tensor->view.format) || !view_is_dense(&tensor->view))
        return error_fail(error, ERROR_USAGE,
                          "EMA: parameter %d is %s: dense weights in a floating format wanted",
                          i + 1, format_name(tensor->view.format));
    average->averages[i] = tensor_copy_as(tensor, FORMAT_FP32, MEMORY_OPTIMIZER, error);
    if (!average->averages[i])
        return false;
    average->parameters[i] = tensor_hold(tensor);
    average->plan.items[i] = (ViewPair){average->averages[i]->view, tensor->view};
    plan_changed(&average->plan.table);
    average->plan.count++;
    average->count++;
    return true;
}

WeightAverage *weight_average_new(Engine *engine, Tensor *const *parameters, int count,
                                  double decay, Error *error) {
    if (!(decay >= 0 && decay < 1)) {
        error_fail(error, ERROR_USAGE, "EMA: decay is %g: a number from 0 to below 1 wanted",
                   decay);
        return NULL;
    }
    if (count <= 0) {
        error_fail(error, ERROR_USAGE,
                   "EMA: no parameters; pass a model that has some: a class's layers are what its "
                   "init puts into self");
        return NULL;
    }
    WeightAverage *average = calloc(1, sizeof *average);
    bool done = average != NULL;
    if (done) {
        size_t size = (size_t)count;
        average->engine = engine;
        average->decay = decay;
        average->parameters = calloc(size, sizeof(Tensor *));
        average->averages = calloc(size, sizeof(Tensor *));
        average->aside = calloc(size, sizeof(Tensor *));
        average->plan.items = calloc(size, sizeof(ViewPair));
        done = average->parameters && average->averages && average->aside && average->plan.items;
    }
    if (!done)
        error_fail(error, ERROR_MEMORY, "no memory for the average of %d parameters", count);
    for (int i = 0; done && i < count; i++)
        done = add_parameter(average, parameters[i], error);
    if (done)
        return average;
    weight_average_free(average);
    return NULL;
}

void weight_average_free(WeightAverage *average) {
    if (!average)
        return;
    for (int i = 0; i < average->count; i++) {
        tensor_release(average->parameters[i]);
        tensor_release(average->averages[i]);
        tensor_release(average->aside[i]);
    }
    free(average->parameters);
    free(average->averages);
    free(average->aside);
    plan_drop(average->engine->device, &average->plan.table);
    free(average->plan.items);
    free(average);
}

bool weight_average_update(WeightAverage *average, const StepFlags *flags, Error *error) {
    Device *device = average->engine->device;
    if (average->swapped)
        return error_fail(error, ERROR_USAGE,
                          "EMA: update while the averages are in the model; swap them back first");
    for (int i = 0; i < average->count; i++) {
        View *source = &average->plan.items[i].source;
        if (source->data != average->parameters[i]->view.data)
            plan_changed(&average->plan.table);
        source->data = average->parameters[i]->view.data;
    }
    ProfileStart began = profile_begin_work(average->engine);
    bool done =
        device->backend->multi->average(device, &average->plan, average->decay, flags, error);
    profile_end_work(average->engine, WORK_AVERAGE, began);
    return done;
}

// The averages stay as they are and the weights go aside, so that neither is rounded on the way.
bool weight_average_swap(WeightAverage *average, Error *error) {
    for (int i = 0; i < average->count && !average->swapped; i++) {
        Tensor *parameter = average->parameters[i];
        tensor_release(average->aside[i]); // of a swap that failed half-way
        average->aside[i] =
            tensor_copy_as(parameter, parameter->view.format, MEMORY_OPTIMIZER, error);
        if (!average->aside[i])
            return false;
    }
    for (int i = 0; i < average->count; i++) {
        Tensor *parameter = average->parameters[i];
        const Tensor *source = average->swapped ? average->aside[i] : average->averages[i];
        if (!parameter_write(parameter, source, error))
            return false;
    }
    average->swapped = !average->swapped;
    for (int i = 0; i < average->count && !average->swapped; i++) {
        tensor_release(average->aside[i]);
        average->aside[i] = NULL;
    }
    return true;
}

bool weight_average_at(const WeightAverage *average, int i, Tensor **parameter, Tensor **mean,
                       Tensor **aside) {
    if (i >= average->count)
        return false;
    *parameter = average->parameters[i];
    *mean = average->averages[i];
    *aside = average->aside[i];
    return true;
}
