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

enum { PATH_SIZE = 4096 };
static const char file_name[] = "mpbench-gpu.so";

// The first place that has the file. `named` says that the environment chose it.
static bool find_plugin(char *path, size_t size, bool *named) {
    const char *chosen = getenv("MPBENCH_GPU");
    *named = chosen && *chosen;
    if (*named) {
        snprintf(path, size, "%s", chosen);
        return access(path, R_OK) == 0;
    }
    char program[PATH_SIZE];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    char *slash = length > 0 ? (program[length] = 0, strrchr(program, '/')) : NULL;
    if (slash) {
        snprintf(path, size, "%.*s/%s", (int)(slash - program), program, file_name);
        if (access(path, R_OK) == 0)
            return true;
    }
    snprintf(path, size, "%s/%s", MPBENCH_LIBDIR, file_name);
    return *MPBENCH_LIBDIR && access(path, R_OK) == 0;
}

static bool load(const Backend **backend, Error *error) {
    char path[PATH_SIZE];
    bool named;
    if (!find_plugin(path, sizeof path, &named)) {
        if (named)
            return error_fail(error, ERROR_UNAVAILABLE, "device gpu: MPBENCH_GPU: %s: %s", path,
                              error_cause(errno));
        return error_fail(error, ERROR_UNAVAILABLE,
                          "device gpu: this build has none: install nvcc (Debian's "
                          "nvidia-cuda-toolkit, or NVIDIA's own) and run make again, or use "
                          "--device cpu");
    }
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

static int count_devices(void) {
    return loaded || load(&loaded, NULL) ? loaded->count() : 0;
}

extern const Backend gpu_plugin;
const Backend gpu_plugin = {
    .name = "gpu", .preferred = true, .count = count_devices, .open = open_plugin};
