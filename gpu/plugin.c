// The door of the plugin: the one name that it shows.
#include "kernel/plugin.h"

#include "gpu/backend.h"

__attribute__((visibility("default"))) const Plugin *mpbench_plugin(void);

const Plugin *mpbench_plugin(void) {
    static Plugin plugin;
    plugin = (Plugin){plugin_stamp(), &gpu_backend};
    return &plugin;
}
