// ui/cells/layout.h: where panels lie on a screen of a given size. Pure geometry: panels never
// overlap, lie within the screen, and those that a screen promises at 80 x 24 are there.
#pragma once

#include <stdbool.h>

enum { LAYOUT_LEAST_COLUMNS = 60, LAYOUT_LEAST_ROWS = 16, LAYOUT_MOST_PANELS = 8 };

typedef enum PanelId {
    PANEL_NONE,
    // home
    PANEL_EXPERIMENTS,
    PANEL_LAUNCH,
    PANEL_RUNS,
    PANEL_PREVIEW,
    // live
    PANEL_LOSS,
    PANEL_SCALE,
    PANEL_LAYERS,
    PANEL_HISTOGRAM,
    PANEL_HEAT,
    PANEL_EVENTS,
    PANEL_MACHINE,
    PANEL_MAP, // pages: on no plan, but maximised
    PANEL_WHAT_IF,
    PANEL_PROFILE,
    // compare
    PANEL_CURVES,
    PANEL_DIFFERENCES,
    PANEL_OUTCOMES,
    PANEL_MEMORY, // pages
    PANEL_OVERLAY,
    // format lab
    PANEL_NUMBER,
    PANEL_RANGES,
    PANEL_BLOCK, // a page
    // scan
    PANEL_DAMAGE,
    PANEL_CELL,
    PANEL_VERDICT,
    PANELS
} PanelId;

typedef enum ScreenId {
    SCREEN_HOME,
    SCREEN_LIVE,
    SCREEN_COMPARE,
    SCREEN_FORMATS,
    SCREEN_SCAN,
    SCREENS
} ScreenId;

typedef struct Panel {
    PanelId id;
    int column, row, width, height; // border included
} Panel;

typedef struct Layout {
    int columns, rows;
    bool too_small; // nothing fits: no panels
    Panel panels[LAYOUT_MOST_PANELS];
    int count; // in the order in which Tab goes through them
} Layout;

// The first row is the header's and the last the keys'; panels fill what is between them. With
// `maximised` that panel alone does, also one that the size has no room for.
Layout layout_of(ScreenId screen, int columns, int rows, PanelId maximised);

const Panel *layout_find(const Layout *layout, PanelId id); // NULL: not on this screen
// The panel below a cell, PANEL_NONE: none.
PanelId layout_at(const Layout *layout, int column, int row);
// The panel after (by 1) or before (by -1) this one.
PanelId layout_next(const Layout *layout, PanelId id, int by);
const char *panel_name(PanelId id);
