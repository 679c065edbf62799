// planted KERNEL...   runs planted kernels in search of races: ThreadSanitizer says what it finds
// on stderr, and its exit status is 66 then. tests/emulator/races_test.sh is the test.
#include "tests/emulator/fixture.h"

enum { MOST = 4 * THREADS * 16 };

static bool run(const char *kernel) {
    float *x = card_floats(MOST), *y = card_floats(MOST);
    PlantedArguments arguments = {.x = x, .y = y, .count = COUNT, .value = 1};
    bool right =
        driver->cuMemsetD8Async(address_of(x), 0, MOST * sizeof *x, NULL) == CUDA_SUCCESS &&
        driver->cuMemsetD8Async(address_of(y), 0, MOST * sizeof *y, NULL) == CUDA_SUCCESS;
    for (int again = 0; again < 2 && right; again++)
        right = launch_as(kernel, 3, 64, 64 * sizeof(float), NULL, arguments) == CUDA_SUCCESS;
    card_free(x);
    card_free(y);
    return right && driver->cuStreamSynchronize(NULL) == CUDA_SUCCESS;
}

int main(int argc, char **argv) {
    if (!start_card())
        return 1;
    for (int i = 1; i < argc; i++)
        if (!run(argv[i])) {
            fprintf(stderr, "planted: %s does not run\n", argv[i]);
            return 1;
        }
    return 0;
}
