#include "ui/cells/layout.h"

#include <stddef.h>

// A screen is rows of panels. A row has a share of the height and a least height; a panel a share
// of the width. Rows are left out from the last one up while the least heights do not fit.
enum { MOST_ROWS = 4, MOST_IN_ROW = 3 };

typedef struct Row {
    int share, least;
    struct {
        PanelId id;
        int share;
    } panels[MOST_IN_ROW];
} Row;

typedef struct Plan {
    int least_columns, least_rows; // of the terminal; the first plan that fits is taken
    Row rows[MOST_ROWS];
} Plan;

enum { MOST_PLANS = 4 };

static const Plan plans[SCREENS][MOST_PLANS] = {
    [SCREEN_HOME] =
        {
            {100,
             28,
             {{6, 12, {{PANEL_EXPERIMENTS, 5}, {PANEL_RUNS, 7}}},
              {5, 10, {{PANEL_LAUNCH, 5}, {PANEL_PREVIEW, 7}}}}},
            {0,
             0,
             {{1, 7, {{PANEL_RUNS, 1}}}, {1, 7, {{PANEL_EXPERIMENTS, 1}, {PANEL_LAUNCH, 1}}}}},
        },
    [SCREEN_LIVE] =
        {
            {170,
             40,
             {{4, 10, {{PANEL_LOSS, 5}, {PANEL_SCALE, 4}}},
              {5, 12, {{PANEL_LAYERS, 6}, {PANEL_HISTOGRAM, 4}, {PANEL_HEAT, 4}}},
              {3, 8, {{PANEL_EVENTS, 5}, {PANEL_MACHINE, 4}}}}},
            {110,
             30,
             {{4, 8, {{PANEL_LOSS, 6}, {PANEL_SCALE, 6}}},
              {5, 10, {{PANEL_LAYERS, 74}, {PANEL_HISTOGRAM, 46}}},
              {3, 8, {{PANEL_EVENTS, 74}, {PANEL_MACHINE, 46}}}}},
            {0,
             0,
             {{4, 6, {{PANEL_LOSS, 1}, {PANEL_SCALE, 1}}},
              {4, 6, {{PANEL_LAYERS, 1}}},
              {4, 6, {{PANEL_EVENTS, 1}, {PANEL_HISTOGRAM, 1}}}}},
        },
    [SCREEN_COMPARE] =
        {
            {100,
             24,
             {{5, 9, {{PANEL_CURVES, 1}}}, {5, 9, {{PANEL_OUTCOMES, 7}, {PANEL_DIFFERENCES, 5}}}}},
            {0, 0, {{4, 6, {{PANEL_CURVES, 1}}}, {5, 8, {{PANEL_OUTCOMES, 1}}}}},
        },
    [SCREEN_FORMATS] =
        {
            {0, 30, {{1, 16, {{PANEL_NUMBER, 1}}}, {9, 12, {{PANEL_RANGES, 1}}}}},
            {0, 0, {{9, 9, {{PANEL_NUMBER, 1}}}, {1, 5, {{PANEL_RANGES, 1}}}}},
        },
    [SCREEN_SCAN] =
        {
            {0, 0, {{6, 7, {{PANEL_DAMAGE, 1}}}, {3, 7, {{PANEL_CELL, 1}, {PANEL_VERDICT, 1}}}}},
        },
};

static const Plan *plan_of(ScreenId screen, int columns, int rows) {
    const Plan *plan = plans[screen];
    while (columns < plan->least_columns || rows < plan->least_rows)
        plan++;
    return plan;
}

// How many rows of the plan fit, and the sum of their shares.
static int rows_that_fit(const Plan *plan, int height, int *shares) {
    int count = 0, least = 0;
    *shares = 0;
    while (count < MOST_ROWS && plan->rows[count].share > 0 &&
           (count == 0 || least + plan->rows[count].least <= height)) {
        least += plan->rows[count].least;
        *shares += plan->rows[count].share;
        count++;
    }
    return count;
}

static void add_row(Layout *layout, const Row *row, int top, int height) {
    int shares = 0, taken = 0;
    for (int i = 0; i < MOST_IN_ROW; i++)
        shares += row->panels[i].share;
    for (int i = 0; i < MOST_IN_ROW && row->panels[i].share > 0; i++) {
        int left = layout->columns * taken / shares;
        taken += row->panels[i].share;
        layout->panels[layout->count++] = (Panel){.id = row->panels[i].id,
                                                  .column = left,
                                                  .row = top,
                                                  .width = layout->columns * taken / shares - left,
                                                  .height = height};
    }
}

Layout layout_of(ScreenId screen, int columns, int rows, PanelId maximised) {
    enum { HEADER = 1, KEYS = 1 };
    Layout layout = {.columns = columns, .rows = rows};
    layout.too_small = columns < LAYOUT_LEAST_COLUMNS || rows < LAYOUT_LEAST_ROWS;
    if (layout.too_small)
        return layout;
    int height = rows - HEADER - KEYS, shares;
    if (maximised != PANEL_NONE) {
        layout.panels[layout.count++] = (Panel){maximised, 0, HEADER, columns, height};
        return layout;
    }
    const Plan *plan = plan_of(screen, columns, rows);
    int count = rows_that_fit(plan, height, &shares), spare = height, top = HEADER;
    for (int i = 0; i < count; i++)
        spare -= plan->rows[i].least;
    for (int i = 0, given = 0, share = 0; i < count; i++) {
        share += plan->rows[i].share;
        int more = spare > 0 ? spare * share / shares - given : spare;
        given += more;
        add_row(&layout, &plan->rows[i], top, plan->rows[i].least + more);
        top += plan->rows[i].least + more;
    }
    return layout;
}

const Panel *layout_find(const Layout *layout, PanelId id) {
    for (int i = 0; i < layout->count; i++)
        if (layout->panels[i].id == id)
            return &layout->panels[i];
    return NULL;
}

PanelId layout_at(const Layout *layout, int column, int row) {
    for (int i = 0; i < layout->count; i++) {
        const Panel *panel = &layout->panels[i];
        if (column >= panel->column && column < panel->column + panel->width && row >= panel->row &&
            row < panel->row + panel->height)
            return panel->id;
    }
    return PANEL_NONE;
}

PanelId layout_next(const Layout *layout, PanelId id, int by) {
    if (layout->count == 0)
        return PANEL_NONE;
    int at = 0;
    for (int i = 0; i < layout->count; i++)
        if (layout->panels[i].id == id)
            at = i;
    return layout->panels[(at + by + layout->count) % layout->count].id;
}

const char *panel_name(PanelId id) {
    static const char *const names[PANELS] = {
        [PANEL_NONE] = "",
        [PANEL_EXPERIMENTS] = "experiments",
        [PANEL_LAUNCH] = "launch",
        [PANEL_RUNS] = "runs",
        [PANEL_PREVIEW] = "preview",
        [PANEL_LOSS] = "loss",
        [PANEL_SCALE] = "loss scale",
        [PANEL_LAYERS] = "layers",
        [PANEL_HISTOGRAM] = "gradient exponents",
        [PANEL_HEAT] = "exponents over time",
        [PANEL_EVENTS] = "events",
        [PANEL_MACHINE] = "machine",
        [PANEL_MAP] = "layers over time",
        [PANEL_WHAT_IF] = "every format",
        [PANEL_PROFILE] = "profile",
        [PANEL_CURVES] = "curves",
        [PANEL_DIFFERENCES] = "what differs",
        [PANEL_OUTCOMES] = "outcomes",
        [PANEL_MEMORY] = "memory by purpose",
        [PANEL_OVERLAY] = "gradient exponents of two runs",
        [PANEL_NUMBER] = "number",
        [PANEL_RANGES] = "ranges",
        [PANEL_BLOCK] = "numbers that share scales",
        [PANEL_DAMAGE] = "layers by formats",
        [PANEL_CELL] = "this layer in this format",
        [PANEL_VERDICT] = "verdict",
    };
    return names[id];
}
