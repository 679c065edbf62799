// The layers that a skipped step's event lists read as they were written, whatever they are called.
#include "store/skips.h"

#include <stdio.h>
#include <string.h>

#include "tests/test.h"

static Event event_of(const SkippedLayer *layers, int count, int more) {
    Event event = {.kind = EVENT_SKIP};
    char list[SKIP_LAYERS_TEXT_SIZE];
    skip_layers_write(layers, count, more, list);
    snprintf(event.text, sizeof event.text,
             "step 7 skipped: gradient of head.weight not finite, scale 65536 -> 32768; the loss "
             "is finite: the scale was too large%s",
             list);
    return event;
}

static void layers_read_as_they_were_written(void) {
    const SkippedLayer layers[] = {{"head", 158, 1290}, {"a 1 of 2, b", 11, 160}, {"", 3, 4}};
    SkippedLayers read;
    Event event = event_of(layers, 3, 2);
    CHECK(strstr(event.text, "; not finite: head 158 of 1290, a 1 of 2, b 11 of 160,") != NULL);
    CHECK(skip_layers_read(&event, &read));
    CHECK_INT(read.layers[0].broken, 158);
    CHECK_INT(read.layers[0].count, 1290);
    CHECK_TEXT(read.layers[0].name, "head");
    const SkippedLayer plain[] = {{"head", 158, 1290}, {"conv1", 11, 160}};
    event = event_of(plain, 2, 0);
    CHECK(skip_layers_read(&event, &read));
    CHECK_INT(read.count, 2);
    CHECK_INT(read.more, 0);
    CHECK_TEXT(read.layers[1].name, "conv1");
    CHECK_INT(read.layers[1].broken, 11);
}

static void what_there_is_no_room_for_is_counted(void) {
    SkippedLayer layers[SKIP_MOST_LAYERS];
    SkippedLayers read;
    for (int i = 0; i < SKIP_MOST_LAYERS; i++) {
        layers[i] = (SkippedLayer){.broken = 1, .count = 2};
        memset(layers[i].name, 'a' + i, sizeof layers[i].name - 1);
    }
    Event event = event_of(layers, SKIP_MOST_LAYERS, 5);
    CHECK(skip_layers_read(&event, &read));
    CHECK(read.count > 0 && read.count < SKIP_MOST_LAYERS);
    CHECK_INT(read.count + read.more, SKIP_MOST_LAYERS + 5);
    CHECK_TEXT(read.layers[0].name, layers[0].name);
}

static void other_events_list_none(void) {
    SkippedLayers read;
    Event event = event_of(NULL, 0, 0);
    CHECK(!skip_layers_read(&event, &read));
    event = event_of(&(SkippedLayer){"head", 1, 2}, 1, 0);
    event.kind = EVENT_MESSAGE;
    CHECK(!skip_layers_read(&event, &read));
    static const char *const hostile[] = {"; not finite: ", "; not finite: x", "; not finite: x 1",
                                          "; not finite:  99999999999999999999 of 1 and 7 lay"};
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        event = (Event){.kind = EVENT_SKIP};
        snprintf(event.text, sizeof event.text, "%s", hostile[i]);
        CHECK(!skip_layers_read(&event, &read) || read.count == 1);
    }
}

int main(void) {
    RUN_TEST(layers_read_as_they_were_written);
    RUN_TEST(what_there_is_no_room_for_is_counted);
    RUN_TEST(other_events_list_none);
    return test_end();
}
