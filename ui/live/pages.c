// Panels that have the screen of a run for themselves: which keys open them, and what keys do
// there.
#include "ui/live/live.h"

typedef struct Page {
    PanelId panel;
    Request key;        // opens and closes it
    bool offers_orders; // about the layer that is selected
    bool (*request)(Ui *ui, Live *live, Request request);
    bool (*label)(const Live *live, Request request, const char **label); // false: it has none
} Page;

static const Page pages[] = {
    {PANEL_MAP, REQUEST_MAP, false, live_map_request, live_map_label},
    {PANEL_WHAT_IF, REQUEST_WHAT_IF, true, live_what_if_request, live_what_if_label},
    {PANEL_PROFILE, REQUEST_PROFILE, false, live_profile_request, live_profile_label},
};
enum { PAGES = sizeof pages / sizeof *pages };

static const Page *page_open(const Ui *ui) {
    for (int i = 0; i < PAGES; i++)
        if (ui->maximised[SCREEN_LIVE] == pages[i].panel)
            return &pages[i];
    return NULL;
}

PanelId live_page(const Ui *ui) {
    const Page *page = page_open(ui);
    return page ? page->panel : PANEL_NONE;
}

static void show(Ui *ui, Live *live, PanelId panel, PanelId focus) {
    ui->maximised[SCREEN_LIVE] = panel;
    ui->focus[SCREEN_LIVE] = focus;
    ui_lay_out(ui);
    live->moved = ui->look_now = true;
}

void live_page_close(Ui *ui, Live *live) {
    show(ui, live, PANEL_NONE, live->focus_before);
}

// Tab goes from page to page.
static const Page *page_beside(const Page *page, int by) {
    return &pages[((page - pages) + by + PAGES) % PAGES];
}

bool live_page_request(Ui *ui, Live *live, Request request) {
    const Page *page = page_open(ui), *next = NULL;
    for (int i = 0; i < PAGES; i++)
        if (request == pages[i].key)
            next = &pages[i];
    if (!page && next)
        live->focus_before = ui->focus[SCREEN_LIVE];
    if (page && (request == REQUEST_NEXT_PANEL || request == REQUEST_PREVIOUS_PANEL))
        next = page_beside(page, request == REQUEST_NEXT_PANEL ? 1 : -1);
    bool closes =
        page && (request == page->key || request == REQUEST_BACK || request == REQUEST_MAXIMISE);
    if (closes)
        live_page_close(ui, live);
    else if (next)
        show(ui, live, next->panel, next->panel);
    else
        return page && page->request(ui, live, request);
    return true;
}

// What does the same on a page as beside it.
static const Request as_ever[] = {REQUEST_COMMAND,    REQUEST_HELP,       REQUEST_QUIT,
                                  REQUEST_NEXT_PANEL, REQUEST_SCRUB_BACK, REQUEST_SCRUB_FORWARD};
static const Request orders[] = {REQUEST_FORMAT, REQUEST_AUTO, REQUEST_UNDO, REQUEST_SCALE};

static bool is_among(Request request, const Request *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (request == list[i])
            return true;
    return false;
}

static bool is_of_pages(Request request) {
    for (int i = 0; i < PAGES; i++)
        if (request == pages[i].key)
            return true;
    return false;
}

bool live_page_label(const Ui *ui, const Live *live, Request request, const char **label) {
    const Page *page = page_open(ui);
    bool has_layers = live->data.record.layer_count > 0;
    if (!page && is_of_pages(request))
        *label = has_layers ? *label : NULL;
    else if (!page)
        *label = request == REQUEST_FIND || request == REQUEST_MAP_SORT ? NULL : *label;
    if (!page)
        return is_of_pages(request) || !*label;
    if (is_among(request, as_ever, sizeof as_ever / sizeof *as_ever) ||
        (page->offers_orders && is_among(request, orders, sizeof orders / sizeof *orders)))
        return false;
    if (!page->label(live, request, label))
        *label = request == page->key ? "close" : is_of_pages(request) ? *label : NULL;
    return true;
}
