// Panels that have the screen for themselves: which keys open them, and what keys do there.
#include "ui/compare/compare.h"

typedef struct Page {
    PanelId panel;
    Request key; // opens and closes it
    void (*draw)(CompareView *view, Area area, bool focused);
    bool (*request)(CompareView *view, Request request);
    const char *(*label)(const CompareView *view, Request request); // NULL: it has none
} Page;

static const Page pages[] = {
    {PANEL_OVERLAY, REQUEST_OVERLAY, compare_draw_overlay, compare_overlay_request,
     compare_overlay_label},
    {PANEL_MEMORY, REQUEST_MEMORY, compare_draw_memory, compare_memory_request, NULL},
};
enum { PAGES = sizeof pages / sizeof *pages };

static const Page *page_of(PanelId panel) {
    for (int i = 0; i < PAGES; i++)
        if (pages[i].panel == panel)
            return &pages[i];
    return NULL;
}

bool compare_draw_page(CompareView *view, PanelId panel, Area area, bool focused) {
    const Page *page = page_of(panel);
    if (page)
        page->draw(view, area, focused);
    return page != NULL;
}

static void show(Ui *ui, CompareView *view, PanelId panel, PanelId focus) {
    compare_overlay_renew(view, panel == PANEL_OVERLAY);
    ui->maximised[SCREEN_COMPARE] = panel;
    ui->focus[SCREEN_COMPARE] = focus;
    ui_lay_out(ui);
}

bool compare_page_request(Ui *ui, CompareView *view, Request request) {
    const Page *page = page_of(ui->maximised[SCREEN_COMPARE]), *next = NULL;
    for (int i = 0; i < PAGES; i++)
        if (request == pages[i].key)
            next = &pages[i];
    bool closes =
        page && (request == page->key || request == REQUEST_BACK || request == REQUEST_MAXIMISE);
    if (page && request == REQUEST_NEXT_PANEL)
        next = &pages[(page - pages + 1) % PAGES];
    else if (page && request == REQUEST_PREVIOUS_PANEL)
        next = &pages[(page - pages + PAGES - 1) % PAGES];
    if (!page && next)
        view->focus_before = ui->focus[SCREEN_COMPARE];
    if (closes)
        show(ui, view, PANEL_NONE, view->focus_before);
    else if (next)
        show(ui, view, next->panel, next->panel);
    else if (!page || !page->request(view, request))
        return false;
    ui->look_now = true; // what a page shows may have to be read
    return true;
}

// What does the same on a page as beside it.
static const Request as_ever[] = {REQUEST_COMMAND, REQUEST_HELP, REQUEST_QUIT, REQUEST_NEXT_PANEL};

bool compare_page_label(const Ui *ui, const CompareView *view, Request request,
                        const char **label) {
    const Page *page = page_of(ui->maximised[SCREEN_COMPARE]);
    if (!page)
        return false;
    for (size_t i = 0; i < sizeof as_ever / sizeof *as_ever; i++)
        if (request == as_ever[i])
            return false;
    bool opens = false;
    for (int i = 0; i < PAGES; i++)
        opens |= request == pages[i].key;
    const char *own = page->label ? page->label(view, request) : NULL;
    *label = request == page->key ? "close" : own ? own : opens ? *label : NULL;
    return true;
}
