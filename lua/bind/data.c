// What there is to read, each function of `mp.data` giving a loader over it (loader.h).
#include <string.h>

#include "checkpoint/replay.h"
#include "data/cifar.h"
#include "data/csv.h"
#include "data/fashion.h"
#include "data/folder.h"
#include "data/text.h"
#include "lua/bind/loader.h"

#define LOADER                                                                   \
    ", batch = 32, shuffle = false, drop_last = false, limit = 0, threads = 1, " \
    "transform, seed }"

// Whether the table asks for the training part.
static bool wants_training(lua_State *L, const char *function) {
    const char *split = bind_field_text(L, function, 1, "split");
    if (split && strcmp(split, "train") != 0 && strcmp(split, "test") != 0)
        bind_error(L, "%s: split: \"train\" or \"test\", not \"%s\"", function, split);
    return !split || strcmp(split, "train") == 0;
}

// Of labels; `missing` where the script does not say.
static int32_t class_count(lua_State *L, const char *function, int32_t missing) {
    int64_t count = bind_field_integer(L, function, 1, "classes", -1);
    bool is_given = bind_push_field(L, 1, "classes") != LUA_TNIL;
    lua_pop(L, 1);
    if (is_given && (count < 1 || count > INT32_MAX))
        bind_error(L, "%s: classes: from 1 to %d are possible, not %lld", function, INT32_MAX,
                   (long long)count);
    return is_given ? (int32_t)count : missing;
}

static int data_fashion_mnist(lua_State *L) {
    Error error = {0};
    bool training = wants_training(L, "fashion_mnist");
    LoaderHandle *handle = bind_push_loader(L, "fashion_mnist");
    return BIND_LOADER(L, "fashion_mnist", handle, dataset_from_fashion(training, &error), &error);
}

static int data_idx(lua_State *L) {
    Error error = {0};
    const char *images = bind_field_text(L, "idx", 1, "images");
    const char *labels = bind_field_text(L, "idx", 1, "labels");
    if (!images || !labels)
        return bind_error(L, "idx: images and labels: the paths of two IDX files are needed");
    images = bind_path(L, "idx", images);
    labels = bind_path(L, "idx", labels);
    int32_t classes = class_count(L, "idx", 0);
    LoaderHandle *handle = bind_push_loader(L, "idx");
    return BIND_LOADER(L, "idx", handle, dataset_from_idx(images, labels, classes, &error), &error);
}

// The folder that a data set lies in.
static const char *folder_of(lua_State *L, const char *function, const char *what) {
    const char *folder = bind_field_text(L, function, 1, "dir");
    if (!folder)
        bind_error(L, "%s: dir: the folder with %s is needed", function, what);
    return bind_path(L, function, folder);
}

static int data_cifar10(lua_State *L) {
    Error error = {0};
    const char *folder = folder_of(L, "cifar10", "the binary batches");
    bool training = wants_training(L, "cifar10");
    LoaderHandle *handle = bind_push_loader(L, "cifar10");
    return BIND_LOADER(L, "cifar10", handle, dataset_from_cifar(CIFAR_10, folder, training, &error),
                       &error);
}

static int data_cifar100(lua_State *L) {
    Error error = {0};
    const char *folder = folder_of(L, "cifar100", "train.bin and test.bin");
    bool training = wants_training(L, "cifar100");
    bool coarse = bind_field_boolean(L, "cifar100", 1, "coarse", false);
    LoaderHandle *handle = bind_push_loader(L, "cifar100");
    return BIND_LOADER(
        L, "cifar100", handle,
        dataset_from_cifar(coarse ? CIFAR_100_COARSE : CIFAR_100, folder, training, &error),
        &error);
}

static int data_folder(lua_State *L) {
    Error error = {0};
    const char *folder = folder_of(L, "folder", "a folder of pictures for each class");
    int64_t channels = bind_field_integer(L, "folder", 1, "channels", 0);
    if (channels != 0 && channels != 1 && channels != 3)
        return bind_error(L, "folder: channels: 1 or 3 expected, got %lld", (long long)channels);
    LoaderHandle *handle = bind_push_loader(L, "folder");
    return BIND_LOADER(L, "folder", handle, dataset_from_folder(folder, (int)channels, &error),
                       &error);
}

// classes = a list of names, a number, or a loader whose classes are taken. The table at index 1
// keeps what the options borrow; the list of names lies on the stack.
static void class_names(lua_State *L, CsvOptions *options) {
    int type = bind_push_field(L, 1, "classes");
    const LoaderHandle *other = luaL_testudata(L, -1, bind_loader_type);
    const Dataset *dataset = other && other->loader ? loader_dataset(other->loader) : NULL;
    if (dataset && dataset->classes > 0) {
        options->classes = (const char *const *)dataset->names;
        options->class_count = dataset->classes;
    } else if (type == LUA_TTABLE) {
        int list = lua_gettop(L);
        lua_Integer count = bind_list(L, "csv: classes", list);
        if (count < 1 || count > CSV_MOST_CLASSES)
            bind_error(L, "csv: classes: from 1 to %d are possible, not %lld", CSV_MOST_CLASSES,
                       (long long)count);
        const char **names = lua_newuserdatauv(L, (size_t)count * sizeof *names, 0);
        for (lua_Integer i = 1; i <= count; i++) {
            if (lua_rawgeti(L, list, i) != LUA_TSTRING)
                bind_error(L, "csv: classes: names expected, got %s", bind_what_is(L, -1));
            names[i - 1] = lua_tostring(L, -1);
            lua_pop(L, 1);
        }
        options->classes = names;
        options->class_count = (int32_t)count;
    } else if (lua_isinteger(L, -1)) {
        int64_t count = lua_tointeger(L, -1);
        if (count < 1 || count > CSV_MOST_CLASSES)
            bind_error(L, "csv: classes: from 1 to %d are possible, not %lld", CSV_MOST_CLASSES,
                       (long long)count);
        options->class_count = (int32_t)count;
    } else if (type != LUA_TNIL) {
        bind_error(L,
                   "csv: classes: a list of names, how many there are, or the loader that has "
                   "them expected, got %s",
                   bind_what_is(L, -1));
    }
}

// csv{path =, class = name or number, classes =, header =, separator =}
static int data_csv(lua_State *L) {
    Error error = {0};
    CsvOptions options = {.class_column = -1};
    const char *path = bind_field_text(L, "csv", 1, "path");
    if (!path)
        return bind_error(L, "csv: path: the file is needed");
    path = bind_path(L, "csv", path);
    int type = bind_push_field(L, 1, "class"); // it stays, and keeps its text
    if (type == LUA_TSTRING)
        options.class_name = lua_tostring(L, -1);
    else if (lua_isinteger(L, -1))
        options.class_column = lua_tointeger(L, -1);
    else if (type != LUA_TNIL)
        return bind_error(L, "csv: class: a column's name or number expected, got %s",
                          bind_what_is(L, -1));
    type = bind_push_field(L, 1, "header");
    if (type == LUA_TBOOLEAN)
        options.header = lua_toboolean(L, -1) ? CSV_HEADER_THERE : CSV_HEADER_NONE;
    else if (type != LUA_TNIL)
        return bind_error(L, "csv: header: true or false expected, got %s", bind_what_is(L, -1));
    const char *separator = bind_field_text(L, "csv", 1, "separator");
    if (separator && (strlen(separator) != 1 || strchr("\"\n\r.+-0123456789", separator[0])))
        return bind_error(L, "csv: separator: one character that no number has expected");
    options.separator = separator ? separator[0] : ',';
    class_names(L, &options);
    LoaderHandle *handle = bind_push_loader(L, "csv");
    return BIND_LOADER(L, "csv", handle, dataset_from_csv(path, &options, &error), &error);
}

// The larger or the smaller part of a text; path NULL: found by default.
static Dataset *text_part(const char *const *found, int paths, const char *path, int64_t context,
                          double share, bool training, Error *error) {
    Text *text = text_read(found, paths, error);
    if (!text)
        return NULL;
    int64_t count = text->count, cut = text_split(text, share);
    Dataset *dataset = dataset_from_text(text, training ? 0 : cut, training ? cut : count, context,
                                         path ? path : "the system's licence texts", error);
    text_release(text);
    return dataset;
}

// text{path =, context =, batch =, split =, share =}: without a path, the licence texts that every
// Debian system has.
static int data_text(lua_State *L) {
    Error error = {0};
    const char *path = bind_field_text(L, "text", 1, "path");
    int64_t context = bind_field_integer(L, "text", 1, "context", 64);
    double share = bind_field_number(L, "text", 1, "share", 0.1);
    bool training = wants_training(L, "text");
    if (!(share > 0 && share < 1))
        return bind_error(L,
                          "text: share: the part kept for the test is %g: between 0 and 1 is "
                          "possible",
                          share);
    if (path)
        path = bind_path(L, "text", path);
    int paths = 1;
    const char *const *found = path ? &path : text_default_paths(&paths);
    LoaderHandle *handle = bind_push_loader(L, "text");
    return BIND_LOADER(L, "text", handle,
                       text_part(found, paths, path, context, share, training, &error), &error);
}

// A tensor's elements in a userdata on top of the stack, described for the data room.
static DatasetTensor tensor_field(lua_State *L, const char *field) {
    Error error = {0};
    bind_push_field(L, 1, field);
    Tensor *tensor = bind_test_tensor(L, -1);
    if (!tensor)
        bind_error(L, "tensors: %s: a tensor expected, got %s", field, luaL_typename(L, -1));
    Format format = tensor->view.format;
    if (format != FORMAT_FP32 && format != FORMAT_INT32)
        bind_error(L, "tensors: %s: fp32 or int32 expected, got %s", field, format_name(format));
    size_t count = (size_t)tensor_count(tensor);
    size_t size = count * format_table[format].bytes;
    void *data = lua_newuserdatauv(L, size ? size : 1, 0);
    // What is read before the first step ends is there again when the script is replayed.
    bool late = device_is_late(session_of(L)->engine->device);
    if (!late || !bind_recall(L, JOURNAL_DATA, data, size)) {
        BIND_DONE(L, tensor_read(tensor, data, &error), &error);
        if (late)
            bind_remember(L, JOURNAL_DATA, data, size);
    }
    int64_t samples = tensor->view.ndim > 0 ? tensor->view.shape[0] : 1;
    if (format == FORMAT_FP32 && !bind_is_replaying(session_of(L)))
        run_check_data(session_of(L)->run, field, data, (int64_t)count, samples);
    return (DatasetTensor){format, tensor->view.ndim, tensor->view.shape, data};
}

static int data_tensors(lua_State *L) {
    Error error = {0};
    DatasetTensor x = tensor_field(L, "x"), y = {.data = NULL};
    bool has_target = bind_push_field(L, 1, "y") != LUA_TNIL;
    if (has_target)
        y = tensor_field(L, "y");
    int32_t classes = class_count(L, "tensors", 0);
    LoaderHandle *handle = bind_push_loader(L, "tensors");
    return BIND_LOADER(L, "tensors", handle,
                       dataset_from_tensors(&x, has_target ? &y : NULL, classes, &error), &error);
}

// synthetic{shape =, classes =, count =, first =, separation =}: clouds around one centre a class.
static int data_synthetic(lua_State *L) {
    Error error = {0};
    int64_t shape[VIEW_MAX_DIMS];
    bind_push_field(L, 1, "shape");
    if (!lua_istable(L, -1))
        return bind_error(L, "synthetic: shape: the sizes of one sample are needed, as in {128}");
    int ndim = bind_sizes(L, "synthetic", lua_gettop(L), shape);
    lua_pop(L, 1);
    int64_t first = bind_field_integer(L, "synthetic", 1, "first", 0);
    int64_t count = bind_field_integer(L, "synthetic", 1, "count", 1024);
    int32_t classes = class_count(L, "synthetic", 10);
    double separation = bind_field_number(L, "synthetic", 1, "separation", 1);
    LoaderHandle *handle = bind_push_loader(L, "synthetic");
    uint64_t seed = session_of(L)->run->options->seed;
    return BIND_LOADER(
        L, "synthetic", handle,
        dataset_synthetic(first, count, ndim, shape, classes, separation, seed, &error), &error);
}

static const BindFunction functions[] = {
    {"fashion_mnist", data_fashion_mnist, "{ split" LOADER},
    {"idx", data_idx, "{ images, labels [, classes]" LOADER},
    {"cifar10", data_cifar10, "{ dir, split" LOADER},
    {"cifar100", data_cifar100, "{ dir, split, coarse = false" LOADER},
    {"csv", data_csv, "{ path, class = -1, classes, header, separator = \",\"" LOADER},
    {"folder", data_folder, "{ dir [, channels]" LOADER},
    {"text", data_text, "{ path, context = 64, split, share = 0.1" LOADER},
    {"tensors", data_tensors, "{ x [, y, classes]" LOADER},
    {"synthetic", data_synthetic,
     "{ shape, classes = 10, count = 1024, first = 0, separation = 1" LOADER},
    {0}};

void bind_open_data(lua_State *L, Session *session) {
    bind_open_loader(L, session);
    lua_newtable(L);
    bind_functions(L, session, "mp.data.", functions);
    lua_setfield(L, -2, "data");
}
