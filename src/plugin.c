// The device "gpu": a plugin, loaded when somebody asks for the device, and never before.
//
// $MPBENCH_GPU names the file; else it lies beside the program, or where it was installed.
#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/plugin.h"

#ifndef MPBENCH_LIBDIR
#define MPBENCH_LIBDIR ""
#endif
#ifdef MPBENCH_HAS_NVCC
#define MISSING "its plugin is not here"
#else
#define MISSING "this build has none: there was no nvcc (Debian: nvidia-cuda-toolkit)"
#endif

enum { PATH_SIZE = 4096 };
static const char file_name[] = "mpbench-gpu.so";

// The folder that the program lies in; "" where the system does not tell.
static void find_program(char *folder, size_t size) {
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    folder[length > 0 ? length : 0] = 0;
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
}

// The first place that has the file; where none does, `error` names them.
static bool find_plugin(char *path, size_t size, Error *error) {
    const char *chosen = getenv("MPBENCH_GPU");
    if (chosen && *chosen) {
        snprintf(path, size, "%s", chosen);
        return access(path, R_OK) == 0 ||
               error_fail(
                   error, ERROR_UNAVAILABLE,
                   "device gpu: MPBENCH_GPU: %s: %s; name a plugin that make built, or unset "
                   "it",
                   path, error_cause(errno));
    }
    char program[PATH_SIZE - sizeof file_name];
    find_program(program, sizeof program);
    const char *const places[] = {program, MPBENCH_LIBDIR};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, size, "%s/%s", places[i], file_name);
        if (*places[i] && access(path, R_OK) == 0)
            return true;
    }
    return error_fail(error, ERROR_UNAVAILABLE,
                      "device gpu: " MISSING ": run make where nvcc is (docs/gpu.md), or use "
                      "--device cpu; no %s lies in %s%s%s",
                      file_name, program, *MPBENCH_LIBDIR ? " or " : "", MPBENCH_LIBDIR);
}

static bool load(const Backend **backend, Error *error) {
    char path[PATH_SIZE];
    if (!find_plugin(path, sizeof path, error))
        return false;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_fail(error, ERROR_UNAVAILABLE, "device gpu: %s", dlerror());
    void *found = dlsym(library, PLUGIN_ENTRY);
    PluginEntry entry;
    memcpy(&entry, &found, sizeof entry);
    const Plugin *plugin = found ? entry() : NULL;
    if (!plugin || plugin->stamp != plugin_stamp()) {
        dlclose(library);
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device gpu: %s is of another build of mpbench: run make again", path);
    }
    *backend = plugin->backend;
    return true;
}

static const Backend *loaded; // for the life of the program: its code may not go away

// From here on the device is the plugin's.
static bool open_plugin(Device *device, int index, int threads, Error *error) {
    if (!loaded && !load(&loaded, error))
        return false;
    device->backend = loaded;
    return loaded->open(device, index, threads, error);
}

static void prepare(void) {
    if ((loaded || load(&loaded, NULL)) && loaded->prepare)
        loaded->prepare();
}

static int count_devices(void) {
    return loaded || load(&loaded, NULL) ? loaded->count() : 0;
}

extern const Backend gpu_plugin;
const Backend gpu_plugin = {
    .name = "gpu",
    .preferred = true,
    .prepare = prepare,
    .count = count_devices,
    .open = open_plugin,
};
