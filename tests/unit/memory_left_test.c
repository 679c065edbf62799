// What is left of the machine's memory: the least of what the system and all control groups above
// this process leave.
#include "base/memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/test.h"

static char root[TEST_FOLDER_SIZE];

// Writes a file below the root, and makes its folders.
static void plant(const char *name, const char *text) {
    char path[200];
    int length = snprintf(path, sizeof path, "%s%s", root, name);
    for (int i = 1; i < length; i++)
        if (path[i] == '/') {
            path[i] = 0;
            mkdir(path, 0700);
            path[i] = '/';
        }
    FILE *out = fopen(path, "w");
    CHECK(out && fputs(text, out) >= 0);
    if (out)
        fclose(out);
}

static void a_system_that_says_nothing_leaves_all(void) {
    CHECK(memory_left_below("/nowhere") == UINT64_MAX);
}

static void the_machine_leaves_memory_and_swap(void) {
    plant("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    3000 kB\nSwapFree:   1000 kB\n");
    CHECK(memory_left_below(root) == UINT64_C(4000) * 1024);
}

static void a_group_leaves_its_limit_and_what_files_give_back(void) {
    plant("/proc/self/cgroup", "1:cpu:/x\n0::/user.slice/job.scope\n");
    plant("/sys/fs/cgroup/user.slice/job.scope/memory.max", "1000000\n");
    plant("/sys/fs/cgroup/user.slice/job.scope/memory.current", "900000\n");
    plant("/sys/fs/cgroup/user.slice/job.scope/memory.stat", "anon 1\nfile 500000\nshmem 200000\n");
    CHECK(memory_left_below(root) == 400000); // what lies in shared memory stays
}

static void the_groups_above_hold_too(void) {
    plant("/sys/fs/cgroup/user.slice/memory.max", "100000\n");
    plant("/sys/fs/cgroup/user.slice/memory.current", "40000\n");
    CHECK(memory_left_below(root) == 60000);
    plant("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    plant("/sys/fs/cgroup/memory.max", "50000\n");
    plant("/sys/fs/cgroup/memory.current", "60000\n");
    CHECK(memory_left_below(root) == 0);
}

int main(void) {
    if (!test_folder_make(root, sizeof root))
        return 1;
    RUN_TEST(a_system_that_says_nothing_leaves_all);
    RUN_TEST(the_machine_leaves_memory_and_swap);
    RUN_TEST(a_group_leaves_its_limit_and_what_files_give_back);
    RUN_TEST(the_groups_above_hold_too);
    test_folder_remove(root);
    return test_end();
}
