#include "kernel/kernel.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/allocator.h"
#include "kernel/multi.h"

const OpInfo op_table[OP_COUNT] = {
#define OP(name, inputs, outputs, class, family, gradient, layout, text) \
    [OP_##name] = {#name, inputs, outputs, CLASS_##class, LAYOUT_##layout, text},
#include "kernel/ops.def"
};

static const Backend *backend_named(const char *name, size_t length) {
    for (const Backend *const *backend = backend_list; *backend; backend++)
        if (strlen((*backend)->name) == length && memcmp((*backend)->name, name, length) == 0)
            return *backend;
    return NULL;
}

static bool open_device(const Backend *backend, int index, int threads, Device **out,
                        Error *error) {
    Device *device = calloc(1, sizeof *device);
    if (!device)
        return error_fail(error, ERROR_MEMORY, "device %s: no memory", backend->name);
    device->backend = backend;
    device->largest = -1;
    if (index > 0)
        snprintf(device->label, sizeof device->label, "%s:%d", backend->name, index);
    else
        snprintf(device->label, sizeof device->label, "%s", backend->name);
    if (!backend->open(device, index, threads, error)) {
        free(device);
        return false;
    }
    device->allocator = allocator_new(device);
    if (!device->allocator) {
        device->backend->close(device); // a plugin has put its own in place
        free(device);
        return error_fail(error, ERROR_MEMORY, "device %s: no memory", backend->name);
    }
    *out = device;
    return true;
}

bool device_open(const char *name, int threads, Device **out, Error *error) {
    const char *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : strlen(name);
    int index = 0;
    if (colon) {
        char *end;
        long parsed = strtol(colon + 1, &end, 10);
        if (!isdigit((unsigned char)colon[1]) || *end || parsed > 255)
            return error_fail(error, ERROR_USAGE,
                              "device %s: a number from 0 to 255 follows the colon", name);
        index = (int)parsed;
    }
    const Backend *backend = backend_named(name, length);
    if (!backend)
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device %s: this build has no such device; `mpbench doctor` lists them",
                          name);
    return open_device(backend, index, threads, out, error);
}

bool device_open_best(int threads, Device **out, Error *passed, Error *error) {
    *passed = (Error){0};
    for (const Backend *const *backend = backend_list; *backend; backend++) {
        if (!(*backend)->preferred)
            continue;
        for (int index = 0, count = (*backend)->count(); index < count; index++) {
            Error why = {0};
            if (open_device(*backend, index, threads, out, &why))
                return true;
            if (passed->code == ERROR_NONE && why.code != ERROR_UNAVAILABLE)
                *passed = why;
        }
    }
    return open_device(backend_list[0], 0, threads, out, error);
}

bool device_prepare(const char *name) {
    bool found = false;
    for (const Backend *const *backend = backend_list; *backend; backend++) {
        bool named = !name || strncmp(name, (*backend)->name, strlen((*backend)->name)) == 0;
        if ((*backend)->prepare && named)
            (*backend)->prepare();
        if ((*backend)->preferred && named)
            found = (*backend)->count() > 0 || found;
    }
    return found;
}

void device_close(Device *device) {
    if (!device)
        return;
    assert(!device_is_idle(device));
    device_synchronize(device);
    allocator_free(device->allocator);
    device->backend->close(device);
    free(device);
}

void device_write(Device *device, void *target, const void *host, size_t bytes) {
    if (device->tap)
        device->tap->moved(device->tap, false);
    device->backend->write(device, target, host, bytes);
}

void device_read(Device *device, void *host, const void *source, size_t bytes) {
    if (device->tap)
        device->tap->moved(device->tap, true);
    device->waits++;
    device->backend->read(device, host, source, bytes);
    device_take_status(device);
}

void device_synchronize(Device *device) {
    device->waits++;
    device->backend->synchronize(device);
    device_take_status(device);
}

void device_take_status(Device *device) {
    DeviceStatus status;
    if (device->backend->take_status && device->backend->take_status(device, &status) &&
        device->status.check.fault == FAULT_NONE)
        device->status = status;
}

bool device_check(const Device *device, Error *error) {
    const DeviceStatus *status = &device->status;
    if (!device_works(device, error))
        return false;
    if (status->check.fault == FAULT_NONE)
        return true;
    if (device->explain)
        return device->explain(device->explain_context, status, error);
    return value_fail(&status->check, status->position, status->value, error);
}

void device_end_step(Device *device) {
    if (device->backend->end_step)
        device->backend->end_step(device);
    if (!device_is_idle(device))
        allocator_note_step(device->allocator);
}

void plan_drop(Device *device, PlanTable *table) {
    if (table->made)
        device->backend->multi->drop(device, table);
    *table = (PlanTable){.version = table->version};
}

// Whether an input that an output lies on is one that it may lie on. Memory that only overlaps does
// not come up: outputs are made anew, or are the input.
static bool shares_as_declared(const KernelCall *call) {
    for (int i = 0; i < call->output_count; i++)
        for (int k = 0; k < call->input_count; k++) {
            const View *output = &call->output[i], *input = &call->input[k];
            if (output->data != input->data || !input->data || view_count(output) == 0)
                continue;
            if (op_table[call->op].layout != LAYOUT_IN_PLACE || !view_is_dense(input) ||
                input->format != output->format || view_count(input) != view_count(output))
                return false;
        }
    return true;
}

bool device_run(Device *device, const KernelCall *call, Error *error) {
    assert(shares_as_declared(call));
    device->largest = -1;
    const Backend *backend = device->backend;
    Kernel kernel = backend->kernels[call->op];
    const OpAttr *attr = call->attr;
    if (kernel && attr->has_compute && !backend->supports(device, call->op, attr->compute))
        return error_fail(error, ERROR_USAGE,
                          "device %s does not multiply in %s: set the layer to fp32, or run on "
                          "--device ref",
                          backend->name, format_name(attr->compute));
    if (kernel && attr->sums != SUMS_FP32 && !backend->sums)
        return error_fail(error, ERROR_USAGE,
                          "device %s adds up in fp32 alone: leave sums= out of --recipe, or run on "
                          "--device cpu",
                          backend->name);
    if (kernel) {
        if (!kernel(device, call, error))
            return false;
        if (device->tap)
            device->tap->ran(device->tap, call);
        return true;
    }
    const char *why = backend->absences[call->op];
    return error_fail(error, ERROR_UNAVAILABLE, "%s: not on device %s: %s", op_table[call->op].name,
                      backend->name, why ? why : "absent");
}
