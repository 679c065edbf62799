// The folder of a checkpoint: private, and on the disk before what lies in it.
#include "checkpoint/checkpoint.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/test.h"

enum { MOST = 32 };
static ino_t synced[MOST]; // in order
static int synced_count;

// In place of the C library's.
int fsync(int file) {
    struct stat about;
    if (fstat(file, &about) == 0 && synced_count < MOST)
        synced[synced_count++] = about.st_ino;
    return 0;
}

static char root[TEST_FOLDER_SIZE];

static ino_t inode_of(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 ? about.st_ino : 0;
}

static void new_folders_are_kept_by_those_above_them(void) {
    char folder[128], path[256], above[128];
    Error error = {0};
    snprintf(folder, sizeof folder, "%s/a/b", root);
    CHECK_MESSAGE(checkpoint_path(folder, 7, false, path, sizeof path, &error), "%s", error.text);
    CHECK_CONTAINS(path, "/a/b/step-7.safetensors");
    snprintf(above, sizeof above, "%s/a", root);
    CHECK_INT(synced_count, 2);
    CHECK(synced[0] == inode_of(root) && synced[1] == inode_of(above));
    struct stat about;
    CHECK(stat(folder, &about) == 0 && (about.st_mode & 0777) == 0700);
    CHECK(checkpoint_path(folder, 8, false, path, sizeof path, &error));
    CHECK_INT(synced_count, 2); // nothing was made
    CHECK(chdir(root) == 0 && checkpoint_path("c", 1, false, path, sizeof path, &error));
    CHECK(synced_count == 3 && synced[2] == inode_of(root));
    CHECK_TEXT(path, "c/step-1.safetensors");
}

static void a_folder_that_cannot_be_made_is_named(void) {
    char path[256];
    Error error = {0};
    CHECK(!checkpoint_path("/proc/none/of/these", 1, false, path, sizeof path, &error));
    CHECK_CONTAINS(error.text, "/proc/none");
}

int main(void) {
    if (!test_folder_make(root, sizeof root))
        return 1;
    RUN_TEST(new_folders_are_kept_by_those_above_them);
    RUN_TEST(a_folder_that_cannot_be_made_is_named);
    test_folder_remove(root);
    return test_end();
}
