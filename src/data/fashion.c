#include "data/fashion.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char default_folder[] = "/usr/share/datasets/fashion-mnist";

enum { PATH_SIZE = 4096, FASHION_CLASSES = 10 };

// The plain file's path, or the compressed one's. What is there but cannot be read is found too, so
// that the reader says why.
static bool find_file(const char *folder, const char *file, char path[PATH_SIZE], Error *error) {
    static const char *const endings[] = {"", ".gz"};
    for (int i = 0; i < 2; i++) {
        int length = snprintf(path, PATH_SIZE, "%s/%s%s", folder, file, endings[i]);
        if (length < 0 || length >= PATH_SIZE)
            return error_fail(error, ERROR_USAGE, "MPBENCH_FASHION_MNIST: the path is too long");
        if (access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
            return true;
    }
    return error_fail(error, ERROR_FAILED,
                      "%.250s: not found; install the package dataset-fashion-mnist (make deps) or "
                      "let MPBENCH_FASHION_MNIST name the folder that holds it",
                      path);
}

Dataset *dataset_from_fashion(bool train, Error *error) {
    const char *folder = getenv("MPBENCH_FASHION_MNIST");
    if (!folder || !folder[0])
        folder = default_folder;
    char images[PATH_SIZE], labels[PATH_SIZE];
    if (!find_file(folder, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte", images,
                   error) ||
        !find_file(folder, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte", labels,
                   error))
        return NULL;
    return dataset_from_idx(images, labels, FASHION_CLASSES, error);
}
