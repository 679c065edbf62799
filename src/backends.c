// The devices of this build: the one place that knows them all. A new one is a line here.
#include "kernel/kernel.h"

extern const Backend cpu_backend, ref_backend, gpu_plugin;

const Backend *const backend_list[] = {&cpu_backend, &gpu_plugin, &ref_backend, NULL};
