#include "run/plan.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "kernel/allocator.h"

void plan_clear(Plan *plan) {
    for (int i = 0; i < plan->layer_count; i++)
        free(plan->layers[i].formats);
    free(plan->layers);
    free(plan->presets);
    *plan = (Plan){0};
}

// ---- layers -------------------------------------------------------------------------------------

static bool list_presets(const Run *run, Plan *plan, Error *error) {
    int most = 0;
    while (preset_table[most].name)
        most++;
    plan->presets = calloc((size_t)most, sizeof *plan->presets);
    if (!plan->presets)
        return error_fail(error, ERROR_MEMORY, "no memory for the plan of a run");
    for (int i = 0; i < most; i++)
        if (precision_trains_on(run->device, preset_table[i].low))
            plan->presets[plan->preset_count++].name = preset_table[i].name;
    return true;
}

// As the device has it: of formats that it only multiplies in it is another one than the table's.
static bool preset_of(const Run *run, const char *name, Preset *preset, Error *error) {
    char why[1];
    return preset_resolve(name, run->device, preset, why, 0, error);
}

static bool list_layers(const Run *run, Plan *plan, Error *error) {
    const Policy *policy = run->engine->policy;
    const int count = policy_layer_count(policy) - 1; // 0 is none
    plan->layers = calloc((size_t)count + 1, sizeof *plan->layers);
    if (!plan->layers)
        return error_fail(error, ERROR_MEMORY, "no memory for the plan of a run");
    for (; plan->layer_count < count; plan->layer_count++) {
        const int number = plan->layer_count + 1;
        const PolicyLayer *noted = policy_layer(policy, number);
        PlanLayer *layer = &plan->layers[plan->layer_count];
        *layer = (PlanLayer){.parent = noted->parent - 1,
                             .has_products = noted->has_products,
                             .own = noted->own,
                             .computed = policy_foresee(policy, policy_preset(policy), number)};
        utf8_copy(layer->name, sizeof layer->name, noted->name);
        layer->formats = calloc((size_t)plan->preset_count + 1, sizeof *layer->formats);
        if (!layer->formats)
            return error_fail(error, ERROR_MEMORY, "no memory for the plan of a run");
        for (int k = 0; k < plan->preset_count; k++) {
            Preset preset;
            if (!preset_of(run, plan->presets[k].name, &preset, error))
                return false;
            layer->formats[k] = policy_foresee(policy, &preset, number);
        }
    }
    return true;
}

// ---- memory -------------------------------------------------------------------------------------

static int64_t bytes_of(const Tensor *tensor, Format format) {
    return (int64_t)allocator_rounded((size_t)tensor_count(tensor) * format_table[format].bytes);
}

// What is kept in what, of a parameter: as it is, and as it would be.
typedef struct Kept {
    Format value;
    Format copy; // FORMAT_COUNT: none
} Kept;

static Kept kept_now(const Tensor *tensor) {
    const Parameter *parameter = parameter_of(tensor);
    const bool has_copy = parameter && parameter->low;
    return (Kept){tensor->view.format, has_copy ? parameter->low->view.format : FORMAT_COUNT};
}

// Of scaled factors no copy is kept: they are rounded from the value in every product.
static Kept kept_under(const Policy *policy, const Preset *preset, const Tensor *tensor) {
    const Parameter *parameter = parameter_of(tensor);
    OpFormats formats;
    if (!parameter)
        return kept_now(tensor);
    const Format value = parameter->asked_in == FORMAT_COUNT
                             ? tensor->view.format
                             : preset_storage(preset, parameter->asked_in);
    Kept kept = {value, FORMAT_COUNT};
    if (parameter->taker != OP_COUNT &&
        policy_decide_under(policy, preset, parameter->taken_in, parameter->taken_region,
                            parameter->taker, value, &formats) &&
        formats.cast_inputs && formats.inputs != value && !format_is_scaled(formats.compute))
        kept.copy = formats.inputs;
    return kept;
}

// Adds a parameter, or takes it away.
static void add_parameter(PlanMemory *memory, const Tensor *tensor, Kept kept, int moments,
                          int sign) {
    const bool is_master =
        kept.copy != FORMAT_COUNT && format_table[kept.copy].bytes < format_table[kept.value].bytes;
    *(is_master ? &memory->masters : &memory->weights) += sign * bytes_of(tensor, kept.value);
    if (kept.copy != FORMAT_COUNT)
        *(is_master ? &memory->weights : &memory->masters) += sign * bytes_of(tensor, kept.copy);
    memory->optimizer += sign * moments * bytes_of(tensor, kept.value);
}

typedef void (*TakeParameter)(void *context, const Tensor *tensor, int moments);

// Those that are trained, each once an optimizer.
static void each_parameter(const Run *run, TakeParameter take, void *context) {
    for (int o = 0; o < run->optimizer_count; o++)
        for (int i = 0; i < optimizer_parameter_count(run->optimizers[o]); i++) {
            int moments = 0;
            for (int which = 0; which < 2; which++)
                moments += optimizer_moment(run->optimizers[o], i, which) != NULL;
            take(context, optimizer_parameter(run->optimizers[o], i), moments);
        }
}

typedef struct Adding {
    const Run *run;
    Plan *plan;
    const Preset *preset; // NULL: as it is now
    PlanMemory *memory;
    int sign;
} Adding;

static void add_to_memory(void *context, const Tensor *tensor, int moments) {
    const Adding *adding = context;
    const Kept kept = adding->preset
                          ? kept_under(adding->run->engine->policy, adding->preset, tensor)
                          : kept_now(tensor);
    add_parameter(adding->memory, tensor, kept, moments, adding->sign);
    if (adding->sign > 0)
        adding->memory->gradients += bytes_of(tensor, FORMAT_FP32);
}

static void count_numbers(void *context, const Tensor *tensor, int moments) {
    Plan *plan = context;
    const Parameter *parameter = parameter_of(tensor);
    const int layer = parameter ? parameter->layer - 1 : -1;
    (void)moments;
    plan->parameters += tensor_count(tensor);
    if (layer >= 0 && layer < plan->layer_count)
        plan->layers[layer].parameters += tensor_count(tensor);
}

// Scales that follow from the steps before, where a layer would multiply by such.
static bool delays(const Run *run, const Preset *preset) {
    const Policy *policy = run->engine->policy;
    for (int i = 1; i < policy_layer_count(policy); i++)
        if (policy_layer(policy, i)->has_products &&
            recipe_delays(policy_recipe(policy), policy_foresee(policy, preset, i)))
            return true;
    return false;
}

// What lies there, less what it is of the trained parameters, and what that would be instead.
static void add_up(const Run *run, const Preset *preset, PlanMemory *memory) {
    const MemoryUse use = allocator_use(run->device->allocator);
    *memory = (PlanMemory){.weights = (int64_t)use.now[MEMORY_WEIGHTS],
                           .masters = (int64_t)use.now[MEMORY_MASTERS],
                           .optimizer = (int64_t)use.now[MEMORY_OPTIMIZER]};
    each_parameter(run, add_to_memory, &(Adding){.run = run, .memory = memory, .sign = -1});
    each_parameter(run, add_to_memory,
                   &(Adding){.run = run, .preset = preset, .memory = memory, .sign = 1});
    const int64_t scales = (int64_t)allocator_rounded(delayed_bytes(run->engine));
    if (run->engine->delayed.state)
        memory->optimizer -= scales;
    if (delays(run, preset))
        memory->optimizer += scales;
}

static bool add_presets(const Run *run, Plan *plan, Error *error) {
    for (int k = 0; k < plan->preset_count; k++) {
        Preset preset;
        if (!preset_of(run, plan->presets[k].name, &preset, error))
            return false;
        add_up(run, &preset, &plan->presets[k].memory);
    }
    return true;
}

bool plan_read(const Run *run, Plan *plan, Error *error) {
    *plan = (Plan){0};
    if (!list_presets(run, plan, error) || !list_layers(run, plan, error) ||
        !add_presets(run, plan, error)) {
        plan_clear(plan);
        return false;
    }
    each_parameter(run, count_numbers, plan);
    add_up(run, policy_preset(run->engine->policy), &plan->memory);
    plan->measured = run_memory(run);
    return true;
}
