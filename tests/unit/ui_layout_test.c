// Geometry of the screens, over all sizes.
#include "../test.h"
#include "ui/cells/layout.h"

static const int most_columns = 300, most_rows = 100;

static bool overlap(const Panel *a, const Panel *b) {
    return a->column < b->column + b->width && b->column < a->column + a->width &&
           a->row < b->row + b->height && b->row < a->row + a->height;
}

static void check_layout(const Layout *layout, ScreenId screen) {
    long cells = 0;
    for (int i = 0; i < layout->count; i++) {
        const Panel *a = &layout->panels[i];
        CHECK_MESSAGE(
            a->column >= 0 && a->row >= 1 && a->width >= 2 && a->height >= 2 &&
                a->column + a->width <= layout->columns && a->row + a->height <= layout->rows - 1,
            "screen %d at %d x %d: %s lies at %d, %d with %d x %d", screen, layout->columns,
            layout->rows, panel_name(a->id), a->column, a->row, a->width, a->height);
        for (int j = 0; j < i; j++)
            CHECK_MESSAGE(!overlap(a, &layout->panels[j]), "screen %d at %d x %d: %s on %s", screen,
                          layout->columns, layout->rows, panel_name(a->id),
                          panel_name(layout->panels[j].id));
        cells += (long)a->width * a->height;
    }
    CHECK_MESSAGE(cells == (long)layout->columns * (layout->rows - 2),
                  "screen %d at %d x %d: %ld cells are covered", screen, layout->columns,
                  layout->rows, cells);
}

static void panels_fill_every_size_without_overlap(void) {
    for (int screen = 0; screen < SCREENS; screen++)
        for (int columns = LAYOUT_LEAST_COLUMNS; columns <= most_columns; columns++)
            for (int rows = LAYOUT_LEAST_ROWS; rows <= most_rows; rows++) {
                Layout layout = layout_of((ScreenId)screen, columns, rows, PANEL_NONE);
                CHECK(!layout.too_small && layout.count > 0);
                check_layout(&layout, (ScreenId)screen);
            }
}

static void a_panel_can_be_maximised_at_every_size(void) {
    for (int id = PANEL_NONE + 1; id < PANELS; id++)
        for (int columns = LAYOUT_LEAST_COLUMNS; columns <= most_columns; columns += 7) {
            Layout layout = layout_of(SCREEN_LIVE, columns, 24, (PanelId)id);
            CHECK_INT(layout.count, 1);
            check_layout(&layout, SCREEN_LIVE);
        }
}

static void too_small_a_screen_says_so(void) {
    CHECK(layout_of(SCREEN_LIVE, LAYOUT_LEAST_COLUMNS - 1, 50, PANEL_NONE).too_small);
    CHECK(layout_of(SCREEN_HOME, 200, LAYOUT_LEAST_ROWS - 1, PANEL_LOSS).too_small);
    CHECK(layout_of(SCREEN_HOME, 1, 1, PANEL_NONE).too_small);
    CHECK(layout_of(SCREEN_HOME, 0, -3, PANEL_NONE).too_small);
}

static void what_matters_is_there_at_80_by_24(void) {
    static const struct {
        ScreenId screen;
        PanelId panel;
    } promised[] = {
        {SCREEN_HOME, PANEL_EXPERIMENTS}, {SCREEN_HOME, PANEL_LAUNCH},
        {SCREEN_HOME, PANEL_RUNS},        {SCREEN_LIVE, PANEL_LOSS},
        {SCREEN_LIVE, PANEL_SCALE},       {SCREEN_LIVE, PANEL_LAYERS},
        {SCREEN_LIVE, PANEL_HISTOGRAM},   {SCREEN_LIVE, PANEL_EVENTS},
        {SCREEN_COMPARE, PANEL_CURVES},   {SCREEN_COMPARE, PANEL_OUTCOMES},
        {SCREEN_FORMATS, PANEL_NUMBER},   {SCREEN_FORMATS, PANEL_RANGES},
        {SCREEN_SCAN, PANEL_DAMAGE},      {SCREEN_SCAN, PANEL_CELL},
        {SCREEN_SCAN, PANEL_VERDICT},
    };
    for (size_t i = 0; i < sizeof promised / sizeof *promised; i++) {
        Layout layout = layout_of(promised[i].screen, 80, 24, PANEL_NONE);
        CHECK_MESSAGE(layout_find(&layout, promised[i].panel), "%s is missing",
                      panel_name(promised[i].panel));
    }
}

static void tab_visits_every_panel_and_comes_back(void) {
    Layout layout = layout_of(SCREEN_LIVE, 120, 36, PANEL_NONE);
    PanelId first = layout.panels[0].id, at = first;
    for (int i = 0; i < layout.count; i++) {
        PanelId next = layout_next(&layout, at, 1);
        CHECK(next != at && layout_next(&layout, next, -1) == at);
        at = next;
    }
    CHECK_INT(at, first);
}

static void a_cell_belongs_to_the_panel_drawn_there(void) {
    Layout layout = layout_of(SCREEN_LIVE, 120, 36, PANEL_NONE);
    for (int i = 0; i < layout.count; i++) {
        const Panel *panel = &layout.panels[i];
        CHECK_INT(layout_at(&layout, panel->column, panel->row), panel->id);
        CHECK_INT(
            layout_at(&layout, panel->column + panel->width - 1, panel->row + panel->height - 1),
            panel->id);
    }
    CHECK_INT(layout_at(&layout, 0, 0), PANEL_NONE);
}

int main(void) {
    RUN_TEST(panels_fill_every_size_without_overlap);
    RUN_TEST(a_panel_can_be_maximised_at_every_size);
    RUN_TEST(too_small_a_screen_says_so);
    RUN_TEST(what_matters_is_there_at_80_by_24);
    RUN_TEST(tab_visits_every_panel_and_comes_back);
    RUN_TEST(a_cell_belongs_to_the_panel_drawn_there);
    return test_end();
}
