// Looking at this machine for `mpbench doctor`.
#include "cli/machine/findings.h"

#include <unistd.h>

#include "base/memory.h"
#include "base/sandbox.h"
#include "cli/history/history.h"
#include "cli/train/confine.h"
#include "data/fashion.h"
#include "data/text.h"
#include "lua/experiment.h"
#include "precision/policy.h"

static void add_library(Findings *findings, const char *name, const char *version) {
    FoundLibrary *found = &findings->libraries[findings->library_count++];
    snprintf(found->name, sizeof found->name, "%s", name);
    snprintf(found->version, sizeof found->version, "%s", version);
}

static void find_libraries(Findings *findings) {
    char name[sizeof(FoundLibrary){0}.name], version[sizeof name];
    for (int i = 0; i < findings->device_count; i++) {
        const Device *device = findings->devices[i].device;
        if (!device || !device->backend->computes_with)
            continue;
        device->backend->computes_with(name, sizeof name, version, sizeof version);
        add_library(findings, name, version);
    }
    add_library(findings, "Lua", lua_library());
    add_library(findings, "SQLite", store_library());
}

// Of a kind that there is none of, the first is opened all the same: that tells why.
static void find_devices(Findings *findings, const Backend *backend) {
    int found_count = backend->count ? backend->count() : 1;
    const int count = found_count > 0 ? found_count : 1;
    for (int i = 0; i < count && findings->device_count < MOST_DEVICES; i++) {
        FoundDevice *found = &findings->devices[findings->device_count++];
        found->is_preferred = backend->preferred;
        if (count > 1)
            snprintf(found->name, sizeof found->name, "%s:%d", backend->name, i);
        else
            snprintf(found->name, sizeof found->name, "%s", backend->name);
        if (!device_open(found->name, 0, &found->device, &found->error))
            found->device = NULL;
        else if (found->device->backend->parts)
            found->part_count = found->device->backend->parts(found->device, found->parts);
    }
}

const Device *findings_best_device(const Findings *findings) {
    for (int i = 0; i < findings->device_count; i++)
        if (findings->devices[i].is_preferred && findings->devices[i].device)
            return findings->devices[i].device;
    return findings->devices[0].device;
}

void findings_look(Findings *findings) {
    findings->sandbox = confine_try(); // while there are no other threads
    for (int i = 0; backend_list[i]; i++)
        find_devices(findings, backend_list[i]);
    find_libraries(findings);
    Dataset *fashion = dataset_from_fashion(false, &findings->fashion_error);
    findings->has_fashion = fashion != NULL;
    dataset_release(fashion);
    const char *const *paths = text_default_paths(&findings->text_expected);
    for (int i = 0; i < findings->text_expected; i++)
        findings->text_files += access(paths[i], R_OK) == 0;
    findings->memory = (double)memory_of_machine();
}

void findings_look_at_history(Findings *findings, const Cli *cli, bool whole) {
    Error *error = &findings->history_error;
    Store *store = NULL;
    RunRecord *runs = NULL;
    bool done =
        store_path(cli->database, findings->history, error) &&
        history_open_to_read(cli, STORE_READ, &store, error) &&
        (!store || (store_list_runs(store, &(RunFilter){0}, &runs, &findings->runs, error) &&
                    (!whole || store_check(store, error))));
    findings->has_history = done && store;
    findings->is_checked = findings->has_history && whole;
    store_free_runs(runs, findings->runs);
    store_close(store);
}

bool findings_trains(const Device *device, Format format) {
    return precision_trains_on(device, format) && findings_runs(device, OP_matmul, format);
}

bool findings_gains(const Device *device, Format format) {
    return findings_trains(device, format) && device->backend->gain(device, format) > 1;
}

bool operation_is_shown(OpId op) {
    return op_table[op].precision != CLASS_INNER;
}

bool findings_runs(const Device *device, OpId op, Format format) {
    const Backend *backend = device->backend;
    return backend->kernels[op] && backend->supports(device, op, format);
}

void findings_clear(Findings *findings) {
    for (int i = 0; i < findings->device_count; i++)
        device_close(findings->devices[i].device);
}
