// The pictures that a script kept, over the screen: two pixels a cell where the terminal has the
// colours, else a character for how bright they are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitize.h"
#include "ui/cells/glyphs.h"
#include "ui/cells/words.h"
#include "ui/screen.h"

// ---- what is there ------------------------------------------------------------------------------

static void load(Ui *ui) {
    PicturesPage *page = &ui->pictures;
    char path[STORE_PATH_SIZE + EVENT_TEXT_SIZE];
    Error error = {0};
    image_clear(&page->image);
    free(page->trouble);
    page->trouble = NULL;
    if (!store_picture_path(ui->store, page->run, &page->events[page->at], path))
        page->trouble = strdup("its file lies nowhere");
    else if (!image_read(path, &page->image, &error))
        page->trouble = strdup(error.text);
}

void pictures_close(Ui *ui) {
    PicturesPage *page = &ui->pictures;
    image_clear(&page->image);
    free(page->events);
    free(page->trouble);
    *page = (PicturesPage){0};
    ui->dirty = true;
}

static bool is_same_name(const PicturesPage *page, int at) {
    return strcmp(page->events[at].layer, page->events[page->at].layer) == 0;
}

// The next one of the name in a direction; where there is none, the one that is shown.
static int next_of_name(const PicturesPage *page, int by) {
    for (int at = page->at + by; at >= 0 && at < page->count; at += by)
        if (is_same_name(page, at))
            return at;
    return page->at;
}

static int last_of_name(const PicturesPage *page) {
    int at = page->count - 1;
    while (!is_same_name(page, at))
        at--;
    return at;
}

static int first_of_name(const PicturesPage *page) {
    int at = 0;
    while (!is_same_name(page, at))
        at++;
    return at;
}

// The newest of another name, those in turn that lie nearest before it, else the newest of all.
static int other_name(const PicturesPage *page) {
    for (int at = page->at - 1; at >= 0; at--)
        if (!is_same_name(page, at) && page->events[at].step == page->events[page->at].step)
            return at;
    for (int at = page->count - 1; at >= 0; at--)
        if (!is_same_name(page, at) && page->events[at].step <= page->events[page->at].step)
            return at;
    return page->at;
}

static bool read_events(Ui *ui, int64_t run, Event **events, int *count) {
    Error error = {0};
    if (store_read_events(ui->store, run, 0, 1U << EVENT_PICTURE, 0, events, count, &error))
        return true;
    ui_fail(ui, &error);
    return false;
}

void pictures_show(Ui *ui, int64_t run, int64_t step) {
    PicturesPage *page = &ui->pictures;
    Event *events = NULL;
    int count = 0;
    if (!read_events(ui, run, &events, &count))
        return;
    if (count == 0) {
        free(events);
        ui_say(ui, INK_TEXT, "this run has no pictures; its script keeps them with run:picture");
        return;
    }
    pictures_close(ui);
    *page = (PicturesPage){.open = true, .run = run, .events = events, .count = count};
    page->at = count - 1;
    while (page->at > 0 && events[page->at].step > step)
        page->at--;
    load(ui);
}

// Events are asked for behind the last one alone: nothing new costs a look at an index.
bool pictures_look(Ui *ui) {
    PicturesPage *page = &ui->pictures;
    Event *events = NULL;
    int count = 0;
    Error error = {0};
    if (!page->open ||
        !store_read_events(ui->store, page->run, page->events[page->count - 1].id,
                           1U << EVENT_PICTURE, 0, &events, &count, &error) ||
        count == 0) {
        free(events);
        return false;
    }
    bool follows = page->at == last_of_name(page);
    Event *all = realloc(page->events, (size_t)(page->count + count) * sizeof *all);
    if (all) {
        memcpy(all + page->count, events, (size_t)count * sizeof *all);
        page->events = all;
        page->count += count;
    }
    free(events);
    int newest = last_of_name(page);
    if (!follows || newest == page->at)
        return false;
    page->at = newest;
    load(ui);
    return true;
}

bool pictures_request(Ui *ui, Request request) {
    static const char explanation[] =
        "What the script kept with run:picture, at the step in the title: values of 0 are black, "
        "of "
        "1 white. [ and ] go to earlier and later ones, and with the last one the page follows the "
        "run. The files are PNG: `mpbench show` says where they lie, `mpbench export --format png` "
        "copies the newest.";
    PicturesPage *page = &ui->pictures;
    int before = page->at;
    switch (request) {
    case REQUEST_SCRUB_BACK:
    case REQUEST_LEFT:
    case REQUEST_UP: page->at = next_of_name(page, -1); break;
    case REQUEST_SCRUB_FORWARD:
    case REQUEST_RIGHT:
    case REQUEST_DOWN: page->at = next_of_name(page, 1); break;
    case REQUEST_FIRST: page->at = first_of_name(page); break;
    case REQUEST_LAST: page->at = last_of_name(page); break;
    case REQUEST_SERIES: page->at = other_name(page); break;
    case REQUEST_HELP: pager_show(ui, "pictures", strdup(explanation)); return true;
    case REQUEST_PICTURES:
    case REQUEST_QUIT:
    case REQUEST_BACK:
    case REQUEST_ENTER: pictures_close(ui); return true;
    default: return request != REQUEST_REDRAW;
    }
    if (page->at != before)
        load(ui);
    return true;
}

// ---- drawing ------------------------------------------------------------------------------------

typedef struct Canvas { // the picture in so many pixels
    const Image *image;
    int64_t width, height;
} Canvas;

// The mean of the part of the picture that falls upon a pixel.
static uint32_t pixel(const Canvas *canvas, int64_t x, int64_t y) {
    const Image *image = canvas->image;
    if (x >= canvas->width || y >= canvas->height)
        return 0;
    const int64_t left = x * image->width / canvas->width, top = y * image->height / canvas->height;
    int64_t right = (x + 1) * image->width / canvas->width;
    int64_t bottom = (y + 1) * image->height / canvas->height;
    right = right > left ? right : left + 1;
    bottom = bottom > top ? bottom : top + 1;
    int64_t sums[3] = {0}, count = (right - left) * (bottom - top);
    for (int64_t row = top; row < bottom; row++)
        for (int64_t column = left; column < right; column++)
            for (int c = 0; c < 3; c++)
                sums[c] += image->data[(row * image->width + column) * image->channels +
                                       (image->channels == 3 ? c : 0)];
    return (uint32_t)(sums[0] / count) << 16 | (uint32_t)(sums[1] / count) << 8 |
           (uint32_t)(sums[2] / count);
}

// 0 to 255 (ITU-R 601).
static uint32_t brightness(uint32_t rgb) {
    return ((rgb >> 16 & 0xFF) * 299 + (rgb >> 8 & 0xFF) * 587 + (rgb & 0xFF) * 114) / 1000;
}

static uint32_t shade_of(bool ascii, uint32_t bright) {
    static const char letters[] = " .:-=+*#%@";
    static const uint32_t shades[] = {' ', GLYPH_SHADE, GLYPH_SHADE + 1, GLYPH_SHADE + 2,
                                      GLYPH_BLOCK_FULL};
    return ascii ? (uint32_t)letters[bright * 10 / 256] : shades[bright * 5 / 256];
}

// As large as fits, whole times as large where it is enlarged.
static Canvas canvas_for(const Image *image, int64_t columns, int64_t rows) {
    int64_t width = columns, height = 2 * rows;
    if (width * image->height > height * image->width)
        width = height * image->width / image->height;
    if (width >= image->width)
        width = width / image->width * image->width;
    width = width > 0 ? width : 1;
    height = width * image->height / image->width;
    return (Canvas){image, width, height > 0 ? height : 1};
}

static void draw_image(const Image *image, Area area) {
    if (image->width <= 0 || image->height <= 0) // an empty one
        return;
    const Canvas canvas = canvas_for(image, area.width, area.height);
    const bool ascii = area.frame->ascii, painted = !ascii && terminal_depth() >= DEPTH_256;
    const int left = (area.width - (int)canvas.width) / 2;
    for (int row = 0; 2 * row < (int)canvas.height; row++)
        for (int column = 0; column < (int)canvas.width; column++) {
            const uint32_t above = pixel(&canvas, column, 2 * row);
            const uint32_t below = pixel(&canvas, column, 2 * row + 1);
            if (painted)
                area_paint(area, left + column, row, above, below);
            else
                area_put(area, left + column, row, style_of(INK_TEXT),
                         shade_of(ascii, (brightness(above) + brightness(below)) / 2));
        }
}

void pictures_draw(const Ui *ui, Area area) {
    const PicturesPage *page = &ui->pictures;
    const Event *event = &page->events[page->at];
    char name[EVENT_LAYER_SIZE * 2], title[EVENT_LAYER_SIZE * 2 + 64], right[64];
    int count = 0, place = 0;
    for (int i = 0; i < page->count; i++)
        if (is_same_name(page, i)) {
            count++;
            place = i == page->at ? count : place;
        }
    sanitize_line(name, sizeof name, event->layer, strlen(event->layer));
    snprintf(title, sizeof title, "%s at step %s", name, word_count(event->step).text);
    snprintf(right, sizeof right, "%d of %d", place, count);
    area_fill(area, style_of(INK_TEXT));
    Area inside = area_box(area, title, right, true);
    if (page->trouble)
        area_wrap(inside, 1, style_of(INK_BAD), page->trouble);
    else
        draw_image(&page->image, inside);
}
