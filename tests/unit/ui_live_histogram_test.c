// The histogram of the live screen: the shares that it tells, at the scale and at a supposed one,
// and how it shows them.
#include "ui_live_fixture.h"

// ---- numbers ------------------------------------------------------------------------------------

// 600 elements at 2^-30, 300 at 2^-40, 100 zeros.
static LayerSample by_hand(void) {
    LayerSample sample = {.width = 1, .count = 1000, .zeros = 100, .largest = 0x1.8p-30};
    sample.bins[-30 - LAYER_LOWEST_EXPONENT] = 600;
    sample.bins[-40 - LAYER_LOWEST_EXPONENT] = 300;
    return sample;
}

static void shares_at_a_scale_are_those_computed_by_hand(void) {
    LayerSample sample = by_hand();
    static const struct {
        Format format;
        double scale, flushed, subnormal;
    } cases[] = {
        // fp16 keeps 2^-25 and more, and is normal from 2^-14 on.
        {FORMAT_FP16, 1, 0.9, 0},       // 2^-30, 2^-40: both vanish
        {FORMAT_FP16, 0x1p5, 0.3, 0.6}, // 2^-25: just kept; 2^-35 vanishes
        {FORMAT_FP16, 0x1p4, 0.9, 0},   // 2^-26 is a bin too low
        {FORMAT_FP16, 0x1p15, 0, 0.9},  // 2^-15 and 2^-25: both subnormal
        {FORMAT_FP16, 0x1p16, 0, 0.3},  // 2^-14 is normal
        {FORMAT_FP16, 0x1p26, 0, 0},    // both normal
        {FORMAT_BF16, 1, 0, 0},         // as fp32 has it
        {FORMAT_FP32, 1, 0, 0},          {FORMAT_E5M2, 0x1p13, 0.3, 0.6}, // keeps 2^-17 and more
        {FORMAT_E4M3, 0x1p20, 0.3, 0.6}, // keeps 2^-10 and more: 2^-10 and 2^-20
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        WhatIfShares shares = what_if_shares(&sample, cases[i].format, cases[i].scale);
        CHECK(shares.is_known);
        CHECK_NEAR(shares.flushed, cases[i].flushed, 1e-12);
        CHECK_NEAR(shares.subnormal, cases[i].subnormal, 1e-12);
        CHECK_NEAR(shares.broken, 0, 0);
    }
}

static void what_overflows_is_told_by_the_largest(void) {
    LayerSample sample = by_hand();
    // 1.5 x 2^-30 x 2^45 = 49152 is finite in fp16; x 2^46 is not, and neither is all of its bin.
    CHECK(what_if_fits(&sample, FORMAT_FP16, 0x1p45));
    CHECK(!what_if_fits(&sample, FORMAT_FP16, 0x1p46));
    CHECK_NEAR(what_if_shares(&sample, FORMAT_FP16, 0x1p45).broken, 0, 0);
    CHECK_NEAR(what_if_shares(&sample, FORMAT_FP16, 0x1p46).broken, 0.6, 1e-12);
    double kept, normal, over;
    what_if_limits(FORMAT_FP16, &kept, &normal, &over);
    CHECK_NEAR(kept, 0x1p-25, 0);
    CHECK_NEAR(normal, 0x1p-14, 0);
    CHECK_NEAR(over, 65520, 0);
    what_if_limits(FORMAT_E4M3, &kept, &normal, &over);
    CHECK_NEAR(over, 464, 0);
    what_if_limits(FORMAT_TF32, &kept, &normal, &over);
    CHECK_NEAR(kept, 0x1p-126, 0); // it has no subnormals
}

static void shares_follow_scaled_counts_and_say_when_nothing_is_known(void) {
    LayerSample sample = by_hand();
    for (int i = 0; i < LAYER_BINS; i++)
        sample.bins[i] /= 100; // as a history keeps counts that would not fit
    sample.bins_are_scaled = true;
    CHECK_NEAR(what_if_shares(&sample, FORMAT_FP16, 0x1p5).flushed, 0.3, 1e-12);
    CHECK(!what_if_shares(&sample, FORMAT_COUNT, 1).is_known);
    CHECK(!what_if_shares(&sample, FORMAT_FP16, NAN).is_known);
    CHECK(!what_if_shares(&sample, FORMAT_FP16, 0).is_known);
    LayerSample none = {0}, zeros = {.width = 1, .count = 5, .zeros = 5};
    CHECK(!what_if_shares(&none, FORMAT_FP16, 1).is_known);
    CHECK_NEAR(what_if_shares(&zeros, FORMAT_FP16, 1).flushed, 0, 0);
}

static void scales_that_suit_lose_next_to_nothing_and_fit(void) {
    LayerSample sample = by_hand();
    WhatIfScales scales = what_if_scales(&sample, FORMAT_FP16);
    CHECK(scales.is_known);
    CHECK_INT(scales.least, 15); // 2^-40 comes to 2^-25, which is just kept
    CHECK_INT(scales.most, 45);
    CHECK(what_if_shares(&sample, FORMAT_FP16, 0x1p15).flushed <= what_if_bearable);
    CHECK(what_if_shares(&sample, FORMAT_FP16, 0x1p14).flushed > what_if_bearable);
    sample.largest = 0x1p10; // fits up to 2^5
    scales = what_if_scales(&sample, FORMAT_FP16);
    CHECK(scales.least > scales.most);
    CHECK_INT(scales.most, 5);
    sample.bins[-40 - LAYER_LOWEST_EXPONENT] = 3; // few enough to lose
    CHECK_INT(what_if_scales(&sample, FORMAT_FP16).least, 5);
    LayerSample none = {0}, zeros = {.width = 1, .count = 5, .zeros = 5};
    CHECK(!what_if_scales(&none, FORMAT_FP16).is_known &&
          !what_if_scales(&zeros, FORMAT_FP16).is_known);
    CHECK(!what_if_scales(&sample, FORMAT_COUNT).is_known);
}

// ---- what is shown ------------------------------------------------------------------------------

static void the_histogram_says_what_another_scale_would_do(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    for (int i = 0; i < 3; i++)
        screen_live.request(ui, REQUEST_DOWN);
    // 107 of 1,107 lie at 2^-44: they vanish at 2^16 and are subnormal from 2^19 on.
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "hidden · exponents");
    for (int i = 0; i < 3; i++)
        screen_live.request(ui, REQUEST_HYPOTHESIS_UP);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "‹ at 2^19 › fits, 0.0 % flushed");
    CHECK_CONTAINS(frame_text(&ui->frame), "2^19 to 2^29 suit; <");
    CHECK_CONTAINS(draw_screen(ui, 160, 36, false),
                   "‹ at 2^19 › fits, 0.0 % flushed, 9.7 % subnormal");
    CHECK_CONTAINS(draw_screen(ui, 80, 24, false), "‹ at 2^19 › fits · 2^19 to 2^29 suit");
    for (int i = 0; i < 4; i++)
        screen_live.request(ui, REQUEST_HYPOTHESIS_DOWN);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "‹ at 2^15 › loses 9.7 %");
    CHECK_CONTAINS(draw_screen(ui, 80, 24, false),
                   "‹ at 2^15 › loses 9.7 % · 2^19–2^29"); // always in sight
    for (int i = 0; i < 60; i++)
        screen_live.request(ui, REQUEST_HYPOTHESIS_UP);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "overflow");
    ui->focus[SCREEN_LIVE] = PANEL_HISTOGRAM;
    screen_live.request(ui, REQUEST_SERIES);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "hidden · over time");
    close_screen(ui);
    store_close(store);
}

// The powers of two below the histogram; good until the next call.
static const char *axis_shown(Ui *ui) {
    static char text[512];
    draw_screen(ui, 120, 36, false);
    const Panel *panel = layout_find(&ui->layout, PANEL_HISTOGRAM);
    int row = panel->row + panel->height - 4;
    size_t used = 0;
    for (int column = 1; column < panel->width - 1; column++)
        used += (size_t)rune_encode(frame_cell(&ui->frame, panel->column + column, row)->rune,
                                    text + used);
    text[used] = 0;
    return text;
}

static void the_axis_of_the_histogram_holds_still(void) {
    Store *store = make_history(RUN_RUNNING);
    Ui *ui = open_screen(store, 2);
    char usual[512], wide[512];
    snprintf(usual, sizeof usual, "%s", axis_shown(ui));
    CHECK_CONTAINS(usual, "2^-");
    uint32_t *bins = live_of(ui)->data.layers[0].bins;
    bins[12 - LAYER_LOWEST_EXPONENT] = 1;
    snprintf(wide, sizeof wide, "%s", axis_shown(ui));
    CHECK(strcmp(usual, wide) != 0); // at once
    bins[12 - LAYER_LOWEST_EXPONENT] = 0;
    CHECK_TEXT(axis_shown(ui), wide);
    screen_live.refresh(ui, 4);
    CHECK_TEXT(axis_shown(ui), wide);
    for (int i = 0; i < 4; i++)
        screen_live.refresh(ui, 4);
    CHECK_TEXT(axis_shown(ui), usual); // it was too wide for a good while
    bins = live_of(ui)->data.layers[0].bins;
    bins[12 - LAYER_LOWEST_EXPONENT] = 1;
    axis_shown(ui);
    screen_live.key(ui, '{'); // by hand: as that moment wants it
    CHECK_TEXT(axis_shown(ui), usual);
    close_screen(ui);
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(shares_at_a_scale_are_those_computed_by_hand);
    RUN_TEST(what_overflows_is_told_by_the_largest);
    RUN_TEST(shares_follow_scaled_counts_and_say_when_nothing_is_known);
    RUN_TEST(scales_that_suit_lose_next_to_nothing_and_fit);
    RUN_TEST(the_histogram_says_what_another_scale_would_do);
    RUN_TEST(the_axis_of_the_histogram_holds_still);
    return test_end();
}
