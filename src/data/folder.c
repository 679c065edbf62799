#include "data/folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "data/file.h"
#include "picture/png.h"

enum { PATH_SIZE = 4096, MOST_CLASSES = 65536 };

static const uint64_t max_file_bytes = (uint64_t)1 << 30;

// ---- names --------------------------------------------------------------------------------------

typedef struct Names {
    char **name;
    int64_t count, size;
} Names;

static void names_clear(Names *names) {
    for (int64_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    *names = (Names){0};
}

static bool names_add(Names *names, const char *name, Error *error) {
    if (names->count == names->size) {
        int64_t size = names->size ? 2 * names->size : 64;
        char **grown = realloc(names->name, (size_t)size * sizeof *grown);
        if (!grown)
            return error_fail(error, ERROR_MEMORY, "no memory for names of files");
        names->name = grown;
        names->size = size;
    }
    names->name[names->count] = strdup(name);
    if (!names->name[names->count])
        return error_fail(error, ERROR_MEMORY, "no memory for names of files");
    names->count++;
    return true;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool join(char path[PATH_SIZE], const char *folder, const char *name, Error *error) {
    int length = snprintf(path, PATH_SIZE, "%s/%s", folder, name);
    return (length >= 0 && length < PATH_SIZE) ||
           error_fail(error, ERROR_USAGE, FILE_PATH ": the path of %.60s in it is too long", folder,
                      name);
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_picture(const char *name) {
    static const char *const endings[] = {".png", ".ppm", ".pgm", ".pnm"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

// The folders in one, or the pictures, sorted.
static bool list(const char *folder, bool folders, Names *names, Error *error) {
    DIR *opened = opendir(folder);
    if (!opened)
        return error_fail(error, ERROR_FAILED,
                          FILE_PATH ": cannot open the folder: %s; check the path", folder,
                          error_cause(errno));
    bool done = true;
    for (const struct dirent *entry; done && (entry = readdir(opened));) {
        char path[PATH_SIZE];
        if (entry->d_name[0] == '.' || (!folders && !is_picture(entry->d_name)))
            continue;
        done = join(path, folder, entry->d_name, error);
        if (done && is_folder(path) == folders)
            done = names_add(names, entry->d_name, error);
    }
    closedir(opened);
    if (done && names->count > 1)
        qsort(names->name, (size_t)names->count, sizeof *names->name, by_bytes);
    return done;
}

// ---- pictures -----------------------------------------------------------------------------------

typedef struct Pictures {
    IdxArray images;
    int32_t *labels;
    int64_t count, room; // pictures; those that there is memory for
    char first[PATH_SIZE];
} Pictures;

static bool make_room(Pictures *all, Error *error) {
    if (all->count < all->room)
        return true;
    const int64_t *shape = all->images.shape, size = shape[1] * shape[2] * shape[3];
    int64_t room = all->room ? 2 * all->room : 64, bytes;
    if (__builtin_mul_overflow(room, size, &bytes))
        return error_fail(error, ERROR_MEMORY, "no memory for so many pictures");
    uint8_t *images = realloc(all->images.data, (size_t)bytes);
    if (images)
        all->images.data = images;
    int32_t *labels = realloc(all->labels, (size_t)room * sizeof *labels);
    if (labels)
        all->labels = labels;
    if (!images || !labels)
        return error_fail(error, ERROR_MEMORY, "no memory for %" PRId64 " bytes of pictures",
                          bytes);
    all->room = room;
    return true;
}

static bool add_picture(Pictures *all, const char *path, int channels, int32_t class,
                        Error *error) {
    uint8_t *bytes = NULL;
    size_t size = 0;
    Image image = {0};
    if (!file_read(path, max_file_bytes, &bytes, &size, error))
        return false;
    bool done = image_parse(bytes, size, path, &image, error);
    free(bytes);
    int64_t *shape = all->images.shape;
    if (done && all->count == 0) {
        shape[1] = image.height;
        shape[2] = image.width;
        shape[3] = channels ? channels : image.channels;
        snprintf(all->first, sizeof all->first, "%s", path);
    }
    if (done && (image.height != shape[1] || image.width != shape[2]))
        done = error_fail(error, ERROR_FAILED,
                          FILE_PATH ": is %" PRId64 " by %" PRId64 ", %.120s is %" PRId64
                                    " by %" PRId64 "; scale all to one size",
                          path, image.height, image.width, all->first, shape[1], shape[2]);
    if (done && !channels && image.channels != shape[3])
        done = error_fail(
            error, ERROR_FAILED,
            FILE_PATH ": has %d channel%s, %.120s has %" PRId64 "; set channels = 1 or 3 for all",
            path, image.channels, image.channels > 1 ? "s" : "", all->first, shape[3]);
    done = done && make_room(all, error);
    if (done) {
        const int64_t elements = shape[1] * shape[2] * shape[3];
        image_convert(&image, (int)shape[3], all->images.data + all->images.count);
        all->images.count += elements;
        all->labels[all->count++] = class;
    }
    image_clear(&image);
    return done;
}

static bool add_class(Pictures *all, const char *folder, int channels, int32_t class,
                      Error *error) {
    Names files = {0};
    bool done = list(folder, false, &files, error);
    for (int64_t i = 0; done && i < files.count; i++) {
        char path[PATH_SIZE];
        done = join(path, folder, files.name[i], error) &&
               add_picture(all, path, channels, class, error);
    }
    if (done && files.count == 0)
        done = error_fail(error, ERROR_FAILED,
                          FILE_PATH ": has no PNG, PPM or PGM file; each folder is a class, and "
                                    "wants pictures: add some, or take it away",
                          folder);
    names_clear(&files);
    return done;
}

Dataset *dataset_from_folder(const char *folder, int channels, Error *error) {
    Names classes = {0};
    Pictures all = {.images = {.ndim = 4}};
    bool done = list(folder, true, &classes, error);
    if (done && (classes.count == 0 || classes.count > MOST_CLASSES))
        done = error_fail(error, ERROR_FAILED,
                          FILE_PATH ": has %" PRId64 " folders in it; each is a class, and from 1 "
                                    "to %d are read",
                          folder, classes.count, MOST_CLASSES);
    for (int64_t i = 0; done && i < classes.count; i++) {
        char path[PATH_SIZE];
        done = join(path, folder, classes.name[i], error) &&
               add_class(&all, path, channels, (int32_t)i, error);
    }
    Dataset *dataset = NULL;
    if (done) {
        all.images.shape[0] = all.count;
        dataset = dataset_from_images(&all.images, all.labels, (int32_t)classes.count, error);
        if (dataset) { // labels and names are its own now
            all.labels = NULL;
            dataset_take_names(dataset, classes.name);
            classes = (Names){0};
        }
    }
    names_clear(&classes);
    idx_clear(&all.images);
    free(all.labels);
    return dataset;
}
