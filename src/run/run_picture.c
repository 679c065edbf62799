// Pictures that a script shows: PNG files in the run's folder, beside its checkpoints, and a row of
// events for each.
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "number/convert.h"
#include "picture/png.h"
#include "run/run_checkpoint.h"
#include "run/run_private.h"

enum { NAME_MOST = 40 };

// It becomes a file's name.
static bool check_name(const char *name, Error *error) {
    bool is_fit = name[0] && strlen(name) <= NAME_MOST;
    for (const char *at = name; *at; at++)
        is_fit = is_fit && (isalnum((unsigned char)*at) || *at == '_' || *at == '-');
    return is_fit || error_fail(error, ERROR_FAILED,
                                "picture: %.60s: a name of up to %d letters, digits, _ and - is "
                                "wanted",
                                name, NAME_MOST);
}

static bool grid_of(const Tensor *tensor, int64_t columns, ImageGrid *grid, Error *error) {
    const View *view = &tensor->view;
    const int64_t *sizes = view->shape + (view->ndim == 4);
    if ((view->ndim != 3 && view->ndim != 4) || (sizes[2] != 1 && sizes[2] != 3) ||
        tensor_count(tensor) == 0) {
        char text[96];
        tensor_describe(tensor, text, sizeof text);
        return error_fail(error, ERROR_FAILED,
                          "picture: [height, width, channels] or [count, height, width, channels] "
                          "with 1 or 3 channels is wanted, the tensor is %s",
                          text);
    }
    *grid = (ImageGrid){view->ndim == 4 ? view->shape[0] : 1, sizes[0], sizes[1], (int)sizes[2],
                        columns};
    return true;
}

static bool draw(const Tensor *tensor, const ImageGrid *grid, Image *image, int64_t *broken,
                 Error *error) {
    const size_t count = (size_t)tensor_count(tensor);
    const Format format = tensor->view.format;
    void *host = malloc(count * format_table[format].bytes);
    float *values = malloc(count * sizeof *values);
    bool done = host && values ? tensor_read(tensor, host, error)
                               : error_fail(error, ERROR_MEMORY, "picture: no memory for it");
    if (done) {
        for (size_t i = 0; i < count; i++)
            values[i] = (float)format_load(format, (char *)host + i * format_table[format].bytes);
        done = image_of_grid(grid, values, image, broken, error);
    }
    free(host);
    free(values);
    return done;
}

// The run's folder, which a checkpoint may have made.
static bool make_folder(Run *run, char *folder, size_t size, Error *error) {
    if (!run_checkpoint_folder(run, folder, size, error))
        return false;
    char *slash = strrchr(folder, '/');
    *slash = 0;
    bool done = mkdir(folder, 0700) == 0 || errno == EEXIST;
    *slash = '/';
    return (done && (mkdir(folder, 0700) == 0 || errno == EEXIST)) ||
           error_fail(error, ERROR_FAILED, "picture: cannot make the folder %.300s: %s", folder,
                      error_cause(errno));
}

bool run_picture(Run *run, const char *name, const Tensor *tensor, int64_t columns, Error *error) {
    ImageGrid grid;
    Image image = {0};
    int64_t broken = 0;
    char folder[STORE_PATH_SIZE], path[STORE_PATH_SIZE + EVENT_TEXT_SIZE], text[EVENT_TEXT_SIZE];
    if (!check_name(name, error) || !grid_of(tensor, columns, &grid, error))
        return false;
    if (!run->recorder || run->id == 0 || run->is_silent)
        return true;
    bool done = draw(tensor, &grid, &image, &broken, error) &&
                make_folder(run, folder, sizeof folder, error);
    if (done) {
        snprintf(text, sizeof text, "%s-%" PRId64 ".png", name, run->step);
        snprintf(path, sizeof path, "%s/%s", folder, text);
        done = image_write(&image, path, error) || error_prefix(error, "picture");
    }
    image_clear(&image);
    if (!done)
        return false;
    if (broken > 0) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, " (%" PRId64 " values are not finite)", broken);
    }
    run_record_event(run, EVENT_PICTURE, name, (double)NAN, text);
    return true;
}
