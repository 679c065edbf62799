// What is said of two trainings in lock step: places as text and back, and the sentences.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare/twin_words.h"
#include "store/events.h"
#include "tests/test.h"

static const ApartPlace places[] = {
    {.cause = APART_BEYOND,
     .kind = APART_GRADIENTS,
     .distance = 0.5,
     .within = 0.25,
     .layer = "fc1"},
    {.cause = APART_BEYOND, .kind = APART_WEIGHTS, .distance = 1e-7, .layer = "a parted: b"},
    {.cause = APART_BEYOND, .distance = 0.125},
    {.cause = APART_INFINITE, .kind = APART_ACTIVATIONS, .is_twin = true, .layer = "block.1"},
    {.cause = APART_INFINITE, .kind = APART_GRADIENTS, .layer = " not finite in the twin alone"},
    {.cause = APART_INFINITE, .kind = APART_GRADIENTS, .layer = "fc1", .is_alone = true},
    {.cause = APART_INFINITE, .is_twin = true, .is_alone = true},
    {.cause = APART_SKIPPED, .layer = "conv1"},
    {.cause = APART_SKIPPED, .is_twin = true},
};

static void a_place_is_read_back_of_its_text(void) {
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const ApartPlace *place = &places[i];
        ApartPlace read;
        char text[EVENT_TEXT_SIZE];
        twin_place_text(place, text, sizeof text);
        CHECK_MESSAGE(twin_place_read(text, &read), "%s", text);
        CHECK_INT(read.cause, place->cause);
        CHECK_TEXT(read.layer, place->layer);
        CHECK_INT(read.is_twin, place->is_twin);
        CHECK_INT(read.is_alone, place->is_alone);
        if (place->layer[0])
            CHECK_INT(read.kind, place->kind);
        if (place->cause == APART_BEYOND)
            CHECK(read.distance == place->distance && read.within == place->within);
    }
}

static void what_is_no_place_is_refused(void) {
    static const char *const texts[] = {"",
                                        "parted",
                                        " parted: 1 apart, rounding explains 2",
                                        "gradients",
                                        "gradients of",
                                        "nonsense of fc1 parted: 1 apart, rounding explains 2",
                                        "this run alone",
                                        "the twin",
                                        " not finite in the twin alone"};
    ApartPlace read;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK(!twin_place_read(texts[i], &read));
}

static TwinReport report(void) {
    return (TwinReport){
        .precision = "fp32", .steps = 20, .has_loss = true, .loss_last = 1e-4, .loss_most = 3e-4};
}

static void the_sentence_is_true_of_every_pair(void) {
    char text[TWIN_WORDS_SIZE];
    TwinReport healthy = report(), grown = report(), same = report(), parted = report(),
               skipped = report(), broken = report(), none = {.precision = "fp32"};
    twin_words(&healthy, "fp16", text);
    CHECK_TEXT(text, "In 20 steps no layer is farther apart than rounding explains. The losses end "
                     "0.01 % apart.");
    healthy.most = places[0]; // far apart, and yet explained: by how much has to be said
    healthy.most.distance = 0.125;
    twin_words(&healthy, "fp16", text);
    CHECK_TEXT(text, "In 20 steps no layer is farther apart than rounding explains: at most the "
                     "gradients of fc1, 0.12 apart, where it explains 0.25. The losses end 0.01 % "
                     "apart.");
    grown.loss_last = 0.2;
    twin_words(&grown, "fp16", text);
    CHECK_TEXT(text, "In 20 steps no layer is farther apart than rounding explains. Small "
                     "differences have grown with the training: the losses end 20 % apart.");
    same.alike = 20;
    same.loss_last = same.loss_most = 0;
    twin_words(&same, "fp32", text);
    CHECK_TEXT(text, "In all 20 steps both are the same, to the last bit.");
    same.loss_most = 1e-9; // what was sampled was alike, and the loss was not
    twin_words(&same, "fp32", text);
    CHECK(!strstr(text, "last bit"));
    parted.first = places[0];
    parted.first.step = 3;
    twin_words(&parted, "fp16", text);
    CHECK_TEXT(text, "They part at step 3, in the gradients of fc1: 0.5 apart, where rounding "
                     "explains 0.25. The losses end 0.01 % apart.");
    skipped.first = (ApartPlace){.cause = APART_SKIPPED, .step = 1, .layer = "conv1"};
    twin_words(&skipped, "fp16", text);
    CHECK_TEXT(text,
               "At step 1 fp16 skipped the update that fp32 made: its gradients of conv1 were "
               "not finite. From there on it is behind. The losses end 0.01 % apart.");
    broken.first = (ApartPlace){
        .cause = APART_INFINITE, .step = 7, .is_twin = true, .is_alone = true, .layer = "a"};
    broken.loss_last = (double)INFINITY;
    twin_words(&broken, "fp32", text); // of one precision they are told apart by what they are
    CHECK_TEXT(text, "At step 7 the activations of a cease to be finite in its twin alone. At the "
                     "end the loss of one is finite, and that of the other is not.");
    broken.first.is_alone = false; // of samples, whose rest nobody saw
    broken.loss_last = (double)NAN;
    twin_words(&broken, "bf16", text);
    CHECK_TEXT(text,
               "At step 7 sampled activations of a cease to be finite in fp32 that are finite "
               "in bf16. At the end neither loss is finite.");
    twin_words(&none, "fp16", text);
    CHECK_TEXT(text, "Nothing was held against anything.");
}

int main(void) {
    RUN_TEST(a_place_is_read_back_of_its_text);
    RUN_TEST(what_is_no_place_is_refused);
    RUN_TEST(the_sentence_is_true_of_every_pair);
    return test_end();
}
