// Pictures in files and in folders of them.
#include "data/folder.h"
#include "picture/png.h"

#include <sys/stat.h>

#include "tests/data_files.h"
#include "tests/picture_bytes.h"
#include "tests/unit/data_fixture.h"

static uint8_t file_bytes[1 << 16];

static Image parsed(size_t size) {
    Image image;
    CHECK_DONE(image_parse(file_bytes, size, "picture", &image, &error));
    return image;
}

#define CHECK_REFUSED_FOR(call, needle)                                                       \
    do {                                                                                      \
        error.text[0] = 0;                                                                    \
        CHECK(!(call));                                                                       \
        CHECK_MESSAGE(strstr(error.text, needle), "\"%s\" lacks \"%s\"", error.text, needle); \
    } while (0)

static void every_depth_and_colour_is_read(void) {
    static const uint8_t palette[] = {10, 20, 30, 40, 50, 60, 70, 80, 90};
    static const struct {
        PngShape shape;
        uint8_t rows[32];
        size_t size;
        int channels;
        uint8_t expected[16];
    } cases[] = {
        {{3, 2, 8, 0, NULL, 0}, {0, 1, 2, 3, 0, 4, 5, 6}, 8, 1, {1, 2, 3, 4, 5, 6}},
        {{2, 1, 8, 2, NULL, 0}, {0, 1, 2, 3, 4, 5, 6}, 7, 3, {1, 2, 3, 4, 5, 6}},
        {{2, 1, 16, 0, NULL, 0}, {0, 9, 255, 7, 0}, 5, 1, {9, 7}},
        {{9, 1, 1, 0, NULL, 0}, {0, 0xA5, 0x80}, 3, 1, {255, 0, 255, 0, 0, 255, 0, 255, 255}},
        {{3, 1, 2, 0, NULL, 0}, {0, 0x1B << 0}, 2, 1, {0, 85, 170}},
        {{3, 1, 4, 0, NULL, 0}, {0, 0x0F, 0x30}, 3, 1, {0, 255, 51}},
        {{3, 1, 2, 3, palette, 9}, {0, 0x18}, 2, 3, {10, 20, 30, 40, 50, 60, 70, 80, 90}},
        {{2, 1, 8, 4, NULL, 0}, {0, 1, 99, 2, 99}, 5, 1, {1, 2}},
        {{1, 1, 16, 6, NULL, 0}, {0, 1, 0, 2, 0, 3, 0, 9, 9}, 9, 3, {1, 2, 3}},
        // Filters: left, above, their mean, and the nearest of three.
        {{3, 1, 8, 0, NULL, 0}, {1, 5, 1, 1}, 4, 1, {5, 6, 7}},
        {{2, 2, 8, 0, NULL, 0}, {0, 9, 8, 2, 1, 255}, 6, 1, {9, 8, 10, 7}},
        {{2, 2, 8, 0, NULL, 0}, {0, 10, 20, 3, 1, 2}, 6, 1, {10, 20, 6, 15}},
        {{2, 2, 8, 0, NULL, 0}, {0, 10, 20, 4, 1, 2}, 6, 1, {10, 20, 11, 22}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 3; piece < 200; piece += 190) {
            size_t size =
                png_bytes(file_bytes, &cases[i].shape, cases[i].rows, cases[i].size, piece);
            Image image = parsed(size);
            CHECK_INT(image.width, cases[i].shape.width);
            CHECK_INT(image.height, cases[i].shape.height);
            CHECK_INT(image.channels, cases[i].channels);
            int64_t count = image.data ? image.width * image.height * image.channels : 0;
            for (int64_t k = 0; k < count; k++)
                CHECK_MESSAGE(image.data[k] == cases[i].expected[k],
                              "case %zu, byte %d: %d, expected %d", i, (int)k, image.data[k],
                              cases[i].expected[k]);
            image_clear(&image);
        }
}

static void grey_and_colours_become_each_other(void) {
    static const uint8_t rows[] = {0, 200, 100, 50};
    const PngShape shape = {1, 1, 8, 2, NULL, 0};
    Image image = parsed(png_bytes(file_bytes, &shape, rows, sizeof rows, 99));
    uint8_t grey, colours[3];
    image_convert(&image, 1, &grey);
    CHECK_INT(grey, 124); // .299 * 200 + .587 * 100 + .114 * 50 = 124.2
    image_clear(&image);
    image = (Image){1, 1, 1, &grey};
    image_convert(&image, 3, colours);
    CHECK(colours[0] == 124 && colours[1] == 124 && colours[2] == 124);
}

static void pnm_is_read(void) {
    Image image;
    const char grey[] = "P5 # comment\n 3\n#another 9 9\n1 255\n\x01\x02\xFF";
    CHECK_DONE(image_parse((const uint8_t *)grey, sizeof grey - 1, "grey", &image, &error));
    CHECK(image.width == 3 && image.height == 1 && image.channels == 1 && image.data[2] == 255);
    image_clear(&image);
    const char wide[] = "P6 1 1 1023\n\x03\xFF\x00\x00\x02\x00";
    CHECK_DONE(image_parse((const uint8_t *)wide, sizeof wide - 1, "wide", &image, &error));
    CHECK(image.channels == 3 && image.data[0] == 255 && image.data[1] == 0 &&
          image.data[2] == 128);
    image_clear(&image);
    const char cut[] = "P6 100 100 255\n123";
    CHECK_REFUSED_FOR(image_parse((const uint8_t *)cut, sizeof cut - 1, "cut", &image, &error),
                      "30000 are wanted");
    const char nothing[] = "P6 0 4 255\n123";
    CHECK_REFUSED_FOR(
        image_parse((const uint8_t *)nothing, sizeof nothing - 1, "n", &image, &error),
        "from 1 to");
}

static void what_is_damaged_is_refused(void) {
    static const uint8_t rows[] = {0, 1, 2, 3, 0, 4, 5, 6};
    const PngShape shape = {3, 2, 8, 0, NULL, 0};
    Image image;
    const size_t size = png_bytes(file_bytes, &shape, rows, sizeof rows, 99);
    for (size_t cut = 0; cut < size; cut++)
        CHECK(!image_parse(file_bytes, cut, "cut", &image, &error) && image.data == NULL);
    file_bytes[30] ^= 1;
    CHECK_REFUSED_FOR(image_parse(file_bytes, size, "sum", &image, &error), "another sum");
    const struct {
        PngShape shape;
        size_t rows;
        uint8_t filter;
        const char *why;
    } cases[] = {
        {{3, 2, 8, 0, NULL, 0}, 7, 0, "rows are missing"},
        {{3, 1, 8, 0, NULL, 0}, 8, 0, "more rows than it says"},
        {{60000, 60000, 8, 0, NULL, 0}, 8, 0, "so few bytes"},
        {{70000, 1, 8, 0, NULL, 0}, 8, 0, "from 1 to 65536"},
        {{3, 2, 3, 0, NULL, 0}, 8, 0, "no PNG has such a depth"},
        {{3, 2, 8, 0, NULL, 0}, 8, 9, "unknown filter"},
        {{3, 2, 8, 3, rows, 3}, 8, 0, "not in its palette"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t own[sizeof rows];
        memcpy(own, rows, sizeof rows);
        own[0] = cases[i].filter;
        size_t written = png_bytes(file_bytes, &cases[i].shape, own, cases[i].rows, 99);
        CHECK_REFUSED_FOR(image_parse(file_bytes, written, "picture", &image, &error),
                          cases[i].why);
    }
    CHECK_REFUSED_FOR(image_parse((const uint8_t *)"GIF89a", 6, "gif", &image, &error),
                      "is no PNG");
}

// ---- folders ------------------------------------------------------------------------------------

static void put(const char *name, uint32_t width, uint8_t type, uint8_t value) {
    uint8_t rows[64] = {0};
    memset(rows + 1, value, 3 * (size_t)width);
    const PngShape shape = {width, 1, 8, type, NULL, 0};
    size_t size = png_bytes(file_bytes, &shape, rows, 1 + (type == 2 ? 3 : 1) * (size_t)width, 99);
    write_file(name, file_bytes, size);
}

static void folders_are_classes_in_the_order_of_their_names(void) {
    mkdir(path_of("zebra"), 0700);
    mkdir(path_of("ant"), 0700);
    mkdir(path_of(".hidden"), 0700);
    put("zebra/b.PNG", 2, 0, 9);
    put("zebra/a.png", 2, 0, 7);
    put("ant/one.png", 2, 0, 5);
    write_file("ant/two.pgm", "P5 2 1 255\n\x04\x06", 13);
    write_file("ant/notes.txt", "no picture", 10);
    write_file("ant/.x.png", "none", 4);
    Dataset *dataset = dataset_from_folder(folder, 0, &error);
    CHECK_DONE(dataset != NULL);
    if (!dataset)
        return;
    CHECK_INT(dataset->count, 4);
    CHECK_INT(dataset->classes, 2);
    CHECK(strcmp(dataset->names[0], "ant") == 0 && strcmp(dataset->names[1], "zebra") == 0);
    CHECK(dataset->x.ndim == 3 && dataset->x.shape[0] == 1 && dataset->x.shape[1] == 2 &&
          dataset->x.shape[2] == 1);
    static const uint8_t first[] = {5, 4, 7, 9};
    static const int32_t classes[] = {0, 0, 1, 1};
    for (int i = 0; i < 4; i++) {
        CHECK_INT(((const uint8_t *)dataset->x.data)[2 * i], first[i]);
        CHECK_INT(((const int32_t *)dataset->y.data)[i], classes[i]);
    }
    dataset_release(dataset);
}

static void pictures_that_differ_are_named(void) {
    put("zebra/c.png", 3, 0, 9);
    CHECK_REFUSED_FOR(dataset_from_folder(folder, 0, &error), "scale all to one size");
    put("zebra/c.png", 2, 2, 9);
    CHECK_REFUSED_FOR(dataset_from_folder(folder, 0, &error), "set channels = 1 or 3");
    Dataset *dataset = dataset_from_folder(folder, 3, &error);
    CHECK_DONE(dataset != NULL && dataset->x.shape[2] == 3 && dataset->count == 5);
    dataset_release(dataset);
    mkdir(path_of("empty"), 0700);
    CHECK_REFUSED_FOR(dataset_from_folder(folder, 3, &error), "has no PNG, PPM or PGM file");
    CHECK_REFUSED_FOR(dataset_from_folder(path_of("empty"), 3, &error), "has 0 folders");
    CHECK_REFUSED_FOR(dataset_from_folder(path_of("nowhere"), 3, &error), "check the path");
}

// Written, read back, and in between as `file` would tell a PNG.
static void pictures_are_written_as_they_are_read(void) {
    static const float values[2][2][3] = {{{0, 0.5F, 1}, {-1, 2, 0.25F}}, {{NAN, 1, 0}, {1, 1, 1}}};
    static const uint8_t expected[2 * 7] = {0, 128, 255, 0, 0,   255, 0,
                                            0, 255, 64,  0, 255, 255, 255};
    const ImageGrid grid = {.count = 2, .height = 2, .width = 3, .channels = 1, .columns = 2};
    Image image, again;
    int64_t broken;
    CHECK_DONE(image_of_grid(&grid, &values[0][0][0], &image, &broken, &error));
    CHECK_INT(broken, 1);
    CHECK(image.width == 7 && image.height == 2 && image.channels == 1);
    CHECK(memcmp(image.data, expected, sizeof expected) == 0);
    CHECK_DONE(image_write(&image, path_of("grid.png"), &error));
    CHECK_DONE(image_read(path_of("grid.png"), &again, &error));
    CHECK(again.width == 7 && again.height == 2 && again.channels == 1);
    CHECK(again.data && memcmp(again.data, expected, sizeof expected) == 0);
    image_clear(&image);
    image_clear(&again);
    uint8_t colours[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    CHECK_DONE(image_write(&(Image){2, 2, 3, colours}, path_of("grid.png"), &error));
    CHECK_DONE(image_read(path_of("grid.png"), &again, &error));
    CHECK(again.channels == 3 && again.data && memcmp(again.data, colours, sizeof colours) == 0);
    image_clear(&again);
    CHECK_REFUSED_FOR(image_read(path_of("nowhere.png"), &again, &error), "nowhere.png");
    CHECK_REFUSED_FOR(image_read(path_of("empty"), &again, &error), "cannot be read as a picture");
}

int main(void) {
    folder_make();
    RUN_TEST(every_depth_and_colour_is_read);
    RUN_TEST(grey_and_colours_become_each_other);
    RUN_TEST(pnm_is_read);
    RUN_TEST(what_is_damaged_is_refused);
    RUN_TEST(folders_are_classes_in_the_order_of_their_names);
    RUN_TEST(pictures_that_differ_are_named);
    RUN_TEST(pictures_are_written_as_they_are_read);
    return test_end();
}
