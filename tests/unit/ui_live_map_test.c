// The map of layers over time: which share of its gradients each layer lost, step by step; how its
// rows fold, sort and are found; that it stays within every size.
#include "ui/live/blocks.h"
#include "ui_live_fixture.h"

// ---- blocks -------------------------------------------------------------------------------------

static const char *const tree[] = {"tokens",      "blocks.1.attn.qkv", "blocks.1.attn.out",
                                   "blocks.1.up", "blocks.2.attn.qkv", "blocks.2.attn.out",
                                   "blocks.2.up", "blocks.31.up",      "head"};
enum { TREE = sizeof tree / sizeof *tree };

static void make_tree(BlockLayer layers[TREE]) {
    for (int i = 0; i < TREE; i++)
        layers[i] = (BlockLayer){.name = tree[i], .is_there = true};
}

// "tokens blocks.1+3 .."
static const char *rows_as_text(const BlockLayer layers[TREE]) {
    static char text[512];
    BlockRow rows[TREE];
    int row_of[TREE], count = blocks_arrange(layers, TREE, rows, row_of);
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i ? " " : "",
                                 rows[i].length, layers[rows[i].layer].name);
        if (rows[i].count > 1)
            used += (size_t)snprintf(text + used, sizeof text - used, "+%d", rows[i].count);
    }
    for (int i = 0; i < TREE; i++)
        CHECK(layers[i].is_there ? row_of[i] >= 0 && row_of[i] < count : row_of[i] == -1);
    return text;
}

static void names_show_as_many_parts_as_are_asked_for(void) {
    BlockLayer layers[TREE];
    make_tree(layers);
    CHECK_INT(blocks_deepest(layers, TREE), 4);
    blocks_show(layers, TREE, 3);
    CHECK_TEXT(rows_as_text(layers), "tokens blocks.1.attn+2 blocks.1.up blocks.2.attn+2 "
                                     "blocks.2.up blocks.31.up head");
    blocks_show(layers, TREE, 2); // one that is alone keeps its name
    CHECK_TEXT(rows_as_text(layers), "tokens blocks.1+3 blocks.2+3 blocks.31.up head");
    blocks_show(layers, TREE, 1);
    CHECK_TEXT(rows_as_text(layers), "tokens blocks+7 head");
    layers[0].is_there = layers[8].is_there = false;
    CHECK_TEXT(rows_as_text(layers), "blocks+7");
}

static void a_row_folds_outwards_and_opens_inwards(void) {
    BlockLayer layers[TREE];
    make_tree(layers);
    CHECK(!blocks_fold(layers, TREE, 0)); // in no block
    CHECK(blocks_fold(layers, TREE, 2));
    CHECK_TEXT(rows_as_text(layers), "tokens blocks.1.attn+2 blocks.1.up blocks.2.attn.qkv "
                                     "blocks.2.attn.out blocks.2.up blocks.31.up head");
    CHECK(blocks_fold(layers, TREE, 2));
    CHECK_TEXT(rows_as_text(layers), "tokens blocks.1+3 blocks.2.attn.qkv blocks.2.attn.out "
                                     "blocks.2.up blocks.31.up head");
    CHECK(blocks_fold(layers, TREE, 1));
    CHECK_TEXT(rows_as_text(layers), "tokens blocks+7 head");
    CHECK(!blocks_fold(layers, TREE, 1));
    CHECK(blocks_open(layers, TREE, 1));
    CHECK_TEXT(rows_as_text(layers), "tokens blocks.1+3 blocks.2+3 blocks.31.up head");
    CHECK(blocks_open(layers, TREE, 4));
    CHECK_TEXT(rows_as_text(layers),
               "tokens blocks.1+3 blocks.2.attn+2 blocks.2.up blocks.31.up head");
    CHECK(blocks_open(layers, TREE, 5) && !blocks_open(layers, TREE, 5));
    CHECK(!blocks_open(layers, TREE, 7));
    CHECK(blocks_fold(layers, TREE, 7)); // past "blocks.31", where it is alone
    CHECK_TEXT(rows_as_text(layers), "tokens blocks+7 head");
}

// ---- a history ----------------------------------------------------------------------------------

enum { MAP_STEPS = 60, MAP_LAYERS = 6 };
static const char *const map_names[MAP_LAYERS] = {"embed",         "blocks.1.up", "blocks.1.down",
                                                  "blocks.2.flat", "blocks.2.up", "head"};

// Of 1000: what `blocks.1.down` loses grows by tens of steps from nothing to all.
static const int lost_of_ten[] = {0, 8, 40, 200, 800, 1000};

static LayerSample map_sample(int64_t step, int layer) {
    LayerSample sample = some_sample(step, -12, 0, layer == 0 ? "fp32" : "fp16");
    sample.count = layer == 3 ? 0 : 1000; // it has no weights
    sample.flushed = layer == 2 ? lost_of_ten[(step - 1) / 10] : 0;
    sample.overflowed = layer == 4 && step > 50 ? 30 : 0;
    sample.infs = layer == 5 && step == 21 ? 3 : 0;
    return sample;
}

static Store *make_map_history(RunStatus status) {
    Store *store = fresh_store("map.db");
    RunRecord record = some_run("blocks", "fp16");
    RecordLayer layers[MAP_LAYERS];
    for (int i = 0; i < MAP_LAYERS; i++) {
        layers[i] = (RecordLayer){.parent = -1, .set = "auto"};
        snprintf(layers[i].name, sizeof layers[i].name, "%s", map_names[i]);
        snprintf(layers[i].precision, sizeof layers[i].precision, i == 0 ? "fp32" : "fp16");
    }
    record.status = status;
    record.step = MAP_STEPS;
    CHECK_DONE(record_set_layers(&record, layers, MAP_LAYERS, &error));
    CHECK_DONE(store_add_run(store, &record, NULL, 0, &error));
    SeriesWriter *writer = series_writer_new(store, record.id, 0, "start", &error);
    for (int64_t step = 1; writer && step <= MAP_STEPS; step++) {
        CHECK_DONE(series_add(writer, "loss", step, 1, &error));
        for (int i = 0; i < MAP_LAYERS; i++) {
            LayerSample sample = map_sample(step, i);
            CHECK_DONE(layers_add(writer, i, &sample, &error));
        }
    }
    CHECK_DONE(store_begin(store, &error) && series_flush(writer, 0.1, &error) &&
               store_commit(store, &error));
    series_writer_free(writer);
    record_clear(&record);
    return store;
}

static Ui *open_map(Store *store, int columns, int rows) {
    Ui *ui = open_screen(store, 1);
    draw_screen(ui, columns, rows, false);
    CHECK(screen_live.request(ui, REQUEST_MAP));
    draw_screen(ui, columns, rows, false);
    return ui;
}

// The screen's row that begins with this name, above the words at its foot; -1: none.
static int row_named(const Ui *ui, const char *name) {
    enum { FOOT = 5 };
    for (int row = 0; row < ui->frame.rows - FOOT; row++) {
        size_t at = 0;
        while (name[at] && frame_cell(&ui->frame, 2 + (int)at, row)->rune == (uint32_t)name[at])
            at++;
        if (!name[at])
            return row;
    }
    return -1;
}

static uint32_t cell_at(const Ui *ui, const char *name, int64_t step) {
    const Panel *panel = layout_find(&ui->layout, PANEL_MAP);
    MapPlace place = live_map_place(ui->state[SCREEN_LIVE], panel->width, panel->height);
    const LiveMap *map = &((Live *)ui->state[SCREEN_LIVE])->map;
    PlotAxes axes = {.left = (double)map->left, .right = (double)map->right};
    int column = 1 + place.first + plot_column_of(&axes, place.columns, (double)step);
    int row = row_named(ui, name);
    return row < 0 ? 0 : frame_cell(&ui->frame, column, row)->rune;
}

// ---- what it shows ------------------------------------------------------------------------------

static void a_cell_is_as_dense_as_its_layer_lost(void) {
    static const uint32_t shades[] = {GLYPH_DOT,       GLYPH_SHADE,      GLYPH_SHADE + 1,
                                      GLYPH_SHADE + 2, GLYPH_BLOCK_FULL, '0'};
    Store *store = make_map_history(RUN_FINISHED);
    Ui *ui = open_map(store, 120, 36);
    for (int i = 0; i < 6; i++)
        for (int64_t step = 10 * i + 2; step <= 10 * i + 9; step++)
            CHECK_INT(cell_at(ui, "blocks.1.down", step), shades[i]);
    CHECK_INT(cell_at(ui, "blocks.2.up", 45), GLYPH_DOT);
    CHECK_INT(cell_at(ui, "blocks.2.up", 55), GLYPH_SHADE + 1); // 3 % overflowed
    CHECK_INT(cell_at(ui, "head", 21), GLYPH_CROSS);
    CHECK_INT(cell_at(ui, "head", 23), GLYPH_DOT);
    CHECK_INT(row_named(ui, "blocks.2.flat"), -1); // it has no gradients
    CHECK_INT(live_of(ui)->map.row_count, 5);
    const char *text = frame_text(&ui->frame);
    CHECK_CONTAINS(text, "░ to 1 %  ▒ to 5 %  ▓ to 25 %  █ more  0 all zero  × over");
    CHECK_CONTAINS(text, "all 0");
    CHECK_CONTAINS(text, "embed         fp32");
    close_screen(ui);
    store_close(store);
}

static void the_cursor_reads_the_step_it_is_on(void) {
    Store *store = make_map_history(RUN_FINISHED);
    Ui *ui = open_map(store, 120, 36);
    live_select_layer(ui, live_of(ui), 2);
    live_go_to_step(ui, live_of(ui), 35);
    const char *text = draw_screen(ui, 120, 36, false);
    CHECK_CONTAINS(text, "at step 35");
    CHECK_CONTAINS(text, "blocks.1.down: 20.0 % flushed, 0.0 % over, 0.0 % zero");
    screen_live.request(ui, REQUEST_LEFT);
    draw_screen(ui, 120, 36, false);
    CHECK_INT(live_of(ui)->view.cursor, 34);
    screen_live.request(ui, REQUEST_RIGHT);
    screen_live.request(ui, REQUEST_UP);
    CHECK_INT(live_of(ui)->view.layer, 1);
    screen_live.request(ui, REQUEST_ENTER); // there, on the other panels
    CHECK_INT(ui->maximised[SCREEN_LIVE], PANEL_NONE);
    CHECK_INT(ui->focus[SCREEN_LIVE], PANEL_LAYERS);
    draw_screen(ui, 120, 36, false);
    CHECK_INT(live_of(ui)->view.layer, 1);
    CHECK_INT(live_of(ui)->data.step, 35);
    close_screen(ui);
    store_close(store);
}

static void the_worst_come_first_where_that_is_asked_for(void) {
    Store *store = make_map_history(RUN_FINISHED);
    Ui *ui = open_map(store, 120, 36);
    CHECK(row_named(ui, "embed") < row_named(ui, "blocks.1.down"));
    screen_live.request(ui, REQUEST_MAP_SORT);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "worst first");
    int down = row_named(ui, "blocks.1.down"), up = row_named(ui, "blocks.2.up");
    int head = row_named(ui, "head"), embed = row_named(ui, "embed");
    CHECK(down < up && up < head && head < embed);
    CHECK_INT(cell_at(ui, "blocks.1.down", 45), GLYPH_BLOCK_FULL); // cells went along
    CHECK_INT(cell_at(ui, "head", 21), GLYPH_CROSS);
    screen_live.request(ui, REQUEST_MAP_SORT);
    draw_screen(ui, 120, 36, false);
    CHECK(row_named(ui, "embed") < row_named(ui, "blocks.1.down"));
    close_screen(ui);
    store_close(store);
}

static void a_block_hides_no_loss_of_its_layers(void) {
    Store *store = make_map_history(RUN_FINISHED);
    Ui *ui = open_map(store, 120, 36);
    live_select_layer(ui, live_of(ui), 1);
    screen_live.request(ui, REQUEST_FORMAT);
    draw_screen(ui, 120, 36, false);
    CHECK(row_named(ui, "blocks.1 +2") > 0 && row_named(ui, "blocks.1.down") < 0);
    CHECK_INT(cell_at(ui, "blocks.1 +2", 45), GLYPH_BLOCK_FULL);
    live_go_to_step(ui, live_of(ui), 35);
    CHECK_CONTAINS(draw_screen(ui, 120, 36, false), "blocks.1.down, worst of 2: 20.0 % flushed");
    screen_live.request(ui, REQUEST_ENTER);
    draw_screen(ui, 120, 36, false);
    CHECK(row_named(ui, "blocks.1.down") > 0 && live_page(ui) == PANEL_MAP);
    screen_live.request(ui, REQUEST_SERIES); // a part less of all names
    draw_screen(ui, 120, 36, false);
    CHECK(row_named(ui, "blocks.1 +2") > 0 && row_named(ui, "blocks.2.up") > 0);
    screen_live.request(ui, REQUEST_SERIES);
    draw_screen(ui, 120, 36, false);
    CHECK(row_named(ui, "blocks +3") > 0);
    CHECK_INT(ui->state[SCREEN_LIVE] ? live_of(ui)->order_count : 1, 0); // space ordered nothing
    close_screen(ui);
    store_close(store);
}

static void a_layer_is_found_by_a_part_of_its_name(void) {
    Store *store = make_map_history(RUN_FINISHED);
    Ui *ui = open_map(store, 120, 36);
    screen_live.request(ui, REQUEST_SERIES);
    screen_live.request(ui, REQUEST_FIND);
    for (const char *at = "UP"; *at; at++)
        prompt_key(ui, *at);
    CHECK_INT(live_of(ui)->view.layer, 1);
    prompt_key(ui, '\r');
    draw_screen(ui, 120, 36, false);
    CHECK(row_named(ui, "blocks.1.up") > 0); // out of its block
    screen_live.request(ui, REQUEST_FIND);
    prompt_key(ui, '\r'); // the next
    CHECK_INT(live_of(ui)->view.layer, 4);
    screen_live.request(ui, REQUEST_FIND);
    for (const char *at = "flat"; *at; at++)
        prompt_key(ui, *at);
    prompt_key(ui, '\r');
    CHECK(ui->prompt.open && strstr(ui->prompt.note, "no layer"));
    prompt_key(ui, KEY_CODE_ESCAPE);
    CHECK_INT(live_of(ui)->view.layer, 4);
    close_screen(ui);
    store_close(store);
}

static void it_opens_and_closes_and_comes_back_to_where_it_was(void) {
    static const Request ways[] = {REQUEST_MAP, REQUEST_BACK, REQUEST_MAXIMISE};
    Store *store = make_map_history(RUN_FINISHED);
    Ui *ui = open_screen(store, 1);
    draw_screen(ui, 120, 36, false);
    for (int i = 0; i < 3; i++) {
        ui->focus[SCREEN_LIVE] = PANEL_EVENTS;
        CHECK(screen_live.request(ui, REQUEST_MAP));
        CHECK_INT(ui->maximised[SCREEN_LIVE], PANEL_MAP);
        CHECK_CONTAINS(screen_live.explain(ui->focus[SCREEN_LIVE]), "layer");
        CHECK(screen_live.request(ui, ways[i]));
        CHECK_INT(ui->maximised[SCREEN_LIVE], PANEL_NONE);
        CHECK_INT(ui->focus[SCREEN_LIVE], PANEL_EVENTS);
    }
    close_screen(ui);
    store_close(store);
}

static void the_way_out_and_to_help_stay_in_sight(void) {
    static const Request stay[] = {REQUEST_HELP, REQUEST_QUIT, REQUEST_COMMAND};
    Store *store = make_map_history(RUN_RUNNING);
    Ui *ui = open_map(store, 120, 36);
    for (int i = 0; i < 3; i++)
        CHECK(screen_live.label(ui, stay[i], "so"));
    CHECK_TEXT(screen_live.label(ui, REQUEST_MAP, "map"), "close");
    CHECK_TEXT(screen_live.label(ui, REQUEST_FORMAT, "format"), "fold"); // and orders nothing
    CHECK(!screen_live.label(ui, REQUEST_STOP, "stop"));
    close_screen(ui);
    store_close(store);
}

static void it_fits_every_size_in_both_kinds_of_characters(void) {
    Store *store = make_map_history(RUN_RUNNING);
    Ui *ui = open_map(store, 80, 24);
    for (int columns = 60; columns <= 300; columns += 20)
        for (int rows = 16; rows <= 60; rows += 11) {
            const char *text = draw_screen(ui, columns, rows, true);
            CHECK_CONTAINS(text, "layers over time");
            CHECK_CONTAINS(text, "lost:");
            CHECK_CONTAINS(text, "blocks.");
            for (const char *at = text; *at; at++)
                CHECK((*at >= ' ' && *at <= '~' && *at != '?') || *at == '\n');
        }
    draw_screen(ui, 120, 36, true); // each shade is another character
    CHECK(cell_at(ui, "blocks.1.down", 5) == '-' && cell_at(ui, "blocks.1.down", 15) == '.' &&
          cell_at(ui, "blocks.1.down", 25) == ':' && cell_at(ui, "blocks.1.down", 35) == '%' &&
          cell_at(ui, "blocks.1.down", 45) == '#' && cell_at(ui, "blocks.1.down", 55) == '0');
    close_screen(ui);
    store_close(store);
}

static void a_run_that_goes_on_moves_it(void) {
    Store *store = make_map_history(RUN_RUNNING);
    Ui *ui = open_map(store, 120, 36);
    SeriesWriter *writer = series_writer_new(store, 1, MAP_STEPS, "resume", &error);
    CHECK_MESSAGE(writer, "%s", error.text);
    for (int64_t step = MAP_STEPS + 1; writer && step <= MAP_STEPS + 20; step++) {
        CHECK_DONE(series_add(writer, "loss", step, 1, &error));
        LayerSample sample = map_sample(1, 1);
        sample.step = step;
        sample.flushed = 500;
        CHECK_DONE(layers_add(writer, 1, &sample, &error));
    }
    CHECK_DONE(store_begin(store, &error) && series_flush(writer, 0.1, &error) &&
               store_commit(store, &error));
    series_writer_free(writer);
    live_of(ui)->moved = true;
    screen_live.refresh(ui, 0.1);
    CHECK_INT(live_of(ui)->map.right, MAP_STEPS); // not at every step
    live_of(ui)->moved = true;
    screen_live.refresh(ui, 30);
    draw_screen(ui, 120, 36, false);
    CHECK_INT(live_of(ui)->map.right, MAP_STEPS + 20);
    CHECK_INT(cell_at(ui, "blocks.1.up", MAP_STEPS + 10), GLYPH_BLOCK_FULL);
    close_screen(ui);
    store_close(store);
}

static void without_a_run_it_says_so(void) {
    Store *store = fresh_store("empty.db");
    Ui *ui = open_screen(store, 0);
    screen_live.request(ui, REQUEST_MAP);
    for (int i = 0; i < SIZES; i++)
        CHECK_CONTAINS(draw_screen(ui, terminal_sizes[i][0], terminal_sizes[i][1], false),
                       "no run is open");
    for (int i = REQUEST_NONE + 1; i < REQUESTS; i++) {
        ui->maximised[SCREEN_LIVE] = PANEL_MAP;
        screen_live.request(ui, (Request)i);
        ui->prompt.open = false;
    }
    close_screen(ui);
    store_close(store);
}

// As live_map_arrange leaves it where there was no memory.
static void without_memory_it_has_no_rows(void) {
    Store *store = make_map_history(RUN_FINISHED);
    Ui *ui = open_map(store, 120, 36);
    Live *live = ui->state[SCREEN_LIVE];
    CHECK(live_map_row(live) >= 0);
    free(live->map.row_of);
    live->map.row_of = NULL;
    live->map.row_count = 0;
    CHECK_INT(live_map_row(live), -1);
    close_screen(ui);
    store_close(store);
}

int main(void) {
    make_folder();
    atexit(remove_folder);
    RUN_TEST(names_show_as_many_parts_as_are_asked_for);
    RUN_TEST(a_row_folds_outwards_and_opens_inwards);
    RUN_TEST(a_cell_is_as_dense_as_its_layer_lost);
    RUN_TEST(the_cursor_reads_the_step_it_is_on);
    RUN_TEST(the_worst_come_first_where_that_is_asked_for);
    RUN_TEST(a_block_hides_no_loss_of_its_layers);
    RUN_TEST(a_layer_is_found_by_a_part_of_its_name);
    RUN_TEST(it_opens_and_closes_and_comes_back_to_where_it_was);
    RUN_TEST(the_way_out_and_to_help_stay_in_sight);
    RUN_TEST(it_fits_every_size_in_both_kinds_of_characters);
    RUN_TEST(a_run_that_goes_on_moves_it);
    RUN_TEST(without_a_run_it_says_so);
    RUN_TEST(without_memory_it_has_no_rows);
    return test_end();
}
