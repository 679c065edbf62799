// The folders that a fork works in: gc may take one away at any moment until it is locked. Here
// mkdir and flock are ours, and gc comes just behind the first and just before the second.
#define _GNU_SOURCE // RTLD_NEXT
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/history/checkpoint_files.h"
#include "tests/folder.h"
#include "tests/test.h"

static char root[TEST_FOLDER_SIZE], made[STORE_PATH_SIZE + 16];
static int taken_when_made, taken_when_locked; // how often gc comes then

int mkdir(const char *path, mode_t mode) {
    int status = mkdirat(AT_FDCWD, path, mode);
    if (status == 0 && strcmp(path, root) != 0) {
        snprintf(made, sizeof made, "%s", path);
        if (taken_when_made > 0 && taken_when_made--)
            rmdir(path);
    }
    return status;
}

int flock(int file, int operation) {
    int (*lock)(int, int);
    *(void **)&lock = dlsym(RTLD_NEXT, "flock");
    if (taken_when_locked > 0 && taken_when_locked--)
        rmdir(made);
    return lock(file, operation);
}

static void check_made(void) {
    Error error;
    ScratchFolder folder;
    bool done = scratch_folder_make(&folder, root, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    if (!done)
        return;
    CHECK(strcmp(folder.path, made) == 0);
    CHECK_INT(access(folder.path, W_OK), 0);
    CHECK_INT(taken_when_made + taken_when_locked, 0);
    scratch_folder_remove(&folder);
    CHECK_INT(rmdir(root), 0); // nothing is left
}

static void a_folder_that_gc_takes_before_it_is_opened_is_made_again(void) {
    taken_when_made = 2;
    check_made();
}

static void a_folder_that_gc_takes_before_it_is_locked_is_made_again(void) {
    taken_when_made = 0;
    taken_when_locked = 2;
    check_made();
}

static void a_folder_that_cannot_be_made_is_an_error(void) {
    Error error;
    ScratchFolder folder;
    char nowhere[80];
    snprintf(nowhere, sizeof nowhere, "%s/no/folder", root);
    CHECK(!scratch_folder_make(&folder, nowhere, &error));
    CHECK_CONTAINS(error.text, "No such file");
}

int main(void) {
    if (!test_folder_make(root, sizeof root) || rmdir(root) != 0)
        return 1;
    RUN_TEST(a_folder_that_gc_takes_before_it_is_opened_is_made_again);
    RUN_TEST(a_folder_that_gc_takes_before_it_is_locked_is_made_again);
    RUN_TEST(a_folder_that_cannot_be_made_is_an_error);
    return test_end();
}
