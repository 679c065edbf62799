// A run that is stopped and resumed, or forked with the same options, is bit for bit the run that
// was never stopped (fault 41): its losses, its weights, and all else that a last checkpoint holds.
//
// Scripts of every kind are stopped at random steps. MPBENCH_SOAK=1 tries more of them.
#include <sys/stat.h>

#include "tests/lua/trial.h"

static uint64_t dice = 20;

static int64_t random_to(int64_t most) {
    dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return 1 + (int64_t)((dice >> 33) % (uint64_t)most);
}

// ---- comparing ----------------------------------------------------------------------------------

static bool is_same_entry(SafeFile *a, const SafeEntry *x, SafeFile *b, const SafeEntry *y) {
    size_t size = (size_t)(x->end - x->begin);
    Error error;
    if (x->type != y->type || x->ndim != y->ndim || y->end - y->begin != size)
        return false;
    void *left = malloc(size + 1), *right = malloc(size + 1);
    bool same = safe_read(a, x, left, &error) && safe_read(b, y, right, &error) &&
                memcmp(left, right, size) == 0;
    free(left);
    free(right);
    return same;
}

static bool is_of_time(const char *key) {
    return strcmp(key, "seconds") == 0 || strcmp(key, "wall") == 0 || strcmp(key, "joules") == 0;
}

// All tensors and all notes but the time that it took.
static void check_same_files(const char *expected, const char *actual, const char *what) {
    Error error = {0};
    SafeFile *a = safe_open(expected, &error);
    CHECK_MESSAGE(a, "%s: %s", what, error.text);
    SafeFile *b = safe_open(actual, &error);
    CHECK_MESSAGE(b, "%s: %s", what, error.text);
    if (a && b) {
        const SafeHeader *x = safe_header(a), *y = safe_header(b);
        for (int i = 0; i < x->count; i++) {
            const SafeEntry *other = safe_header_find(y, x->entries[i].name);
            CHECK_MESSAGE(other, "%s: %s is missing", what, x->entries[i].name);
            if (other)
                CHECK_MESSAGE(is_same_entry(a, &x->entries[i], b, other), "%s: %s differs", what,
                              x->entries[i].name);
        }
        for (int i = 0; i < y->count; i++)
            CHECK_MESSAGE(safe_header_find(x, y->entries[i].name), "%s: %s is new", what,
                          y->entries[i].name);
        for (int i = 0; i < x->note_count; i++) {
            const char *other = safe_header_note(y, x->notes[i].key);
            if (!is_of_time(x->notes[i].key))
                CHECK_MESSAGE(other && strcmp(other, x->notes[i].value) == 0,
                              "%s: note %s: %s, not %s", what, x->notes[i].key, other ? other : "-",
                              x->notes[i].value);
        }
        CHECK_MESSAGE(x->count > 3, "%s: only %d tensors", what, x->count);
    }
    safe_close(a);
    safe_close(b);
}

// The run whole, then stopped after random steps and resumed, and forked.
static void check_script(const char *name, const char *script, const char *settings,
                         const char *precision, int64_t steps, int stops) {
    char what[64];
    Trial whole = {.script = script,
                   .settings = settings,
                   .precision = precision,
                   .folder = folder_of("whole"),
                   .steps = steps};
    train(&whole);
    CHECK_MESSAGE(whole.done, "%s: %s", name, whole.error.text);
    CHECK_MESSAGE(whole.kept == 1, "%s: %d checkpoints", name, whole.kept);
    if (!whole.done)
        return;
    if (test_soaks())
        stops = 20;
    for (int i = 0; i < stops; i++) {
        int64_t at = random_to(whole.step - 1);
        snprintf(what, sizeof what, "%s after step %lld", name, (long long)at);
        Trial first = whole, second = whole;
        first.folder = second.folder = folder_of("parts");
        first.stop_at = at;
        first.kept = second.kept = 0;
        first.printed[0] = second.printed[0] = 0;
        memset(first.losses, 0, sizeof first.losses);
        train(&first);
        CHECK_MESSAGE(first.done && first.step == at && first.kept == 1, "%s: stopped at %lld: %s",
                      what, (long long)first.step, first.error.text);
        second.resume =
            checkpoint_open(file_of("parts", at), NULL,
                            i % 2 ? &(RestoreOwn){false, false, false} : NULL, &second.error);
        CHECK_MESSAGE(second.resume, "%s: %s", what, second.error.text);
        if (!second.resume)
            return;
        memset(second.losses, 0, sizeof second.losses);
        train(&second);
        checkpoint_close(second.resume);
        CHECK_MESSAGE(second.done && second.step == whole.step, "%s: ended at %lld: %s", what,
                      (long long)second.step, second.error.text);
        for (int64_t k = at + 1; k <= whole.step && k < MOST_STEPS; k++)
            CHECK_MESSAGE(memcmp(&second.losses[k], &whole.losses[k], sizeof(double)) == 0,
                          "%s: the loss of step %lld is %.17g, not %.17g", what, (long long)k,
                          second.losses[k], whole.losses[k]);
        check_same_files(file_of("whole", whole.step), file_of("parts", whole.step), what);
    }
}

// ---- scripts ------------------------------------------------------------------------------------

static const char dropout_script[] =
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'dropout', params = { epochs = 3 },\n"
    "  data = function() local x = mp.randn(60, 8)\n"
    "    return { train = mp.data.tensors { x = x, y = mp.randint(3, 60), batch = 8, shuffle = "
    "true },\n"
    "             test = mp.data.tensors { x = x, y = mp.randint(3, 60), batch = 20 } } end,\n"
    "  model = function() return nn.Sequential { nn.Linear(8, 16), nn.BatchNorm(16), nn.ReLU(),\n"
    "    nn.Dropout(0.3), nn.Linear(16, 3) } end,\n"
    "  loss = function(m, b) return F.cross_entropy(m(b.x), b.y) end,\n"
    "  eval = function(m, b) return { accuracy = F.accuracy(m(b.x), b.y) } end,\n"
    "  schedule = function() return mp.optim.schedule.cosine { warmup = 3 } end,\n"
    "  optim = function(p) return mp.optim.Adam(p, { lr = 1e-2 }) end, accumulate = 2 }\n";

static const char gan_script[] =
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'gan', params = { steps = 24 }, run = function(run)\n"
    "  local G = run:model(nn.Sequential { nn.Linear(4, 16), nn.BatchNorm(16), nn.ReLU(), "
    "nn.Linear(16, 6) }, 'G')\n"
    "  local D = run:model(nn.Sequential { nn.Linear(6, 16), nn.BatchNorm(16), nn.LeakyReLU(0.2), "
    "nn.Linear(16, 1) }, 'D')\n"
    "  local oG = mp.optim.Adam(G:parameters(), { lr = 2e-3, betas = { 0.5, 0.99 } })\n"
    "  local oD = mp.optim.SGD(D:parameters(), { lr = 1e-2, momentum = 0.9 })\n"
    "  local sD, sG = run:scaler(), mp.scaler { init = 2^20, interval = 5 }\n"
    "  local average = mp.optim.EMA(G, 0.9)\n"
    "  local sum = mp.zeros(1)\n"
    "  for step = 1, run.params.steps do\n"
    "    local real = mp.randn(8, 6) + 1\n"
    "    local fake = mp.autocast(function() return G(mp.randn(8, 4)) end)\n"
    "    oD:zero_grad()\n"
    "    local dl = mp.autocast(function()\n"
    "      return F.bce_with_logits(D(real), mp.ones(8, 1)) + F.bce_with_logits(D(fake:detach()), "
    "mp.zeros(8, 1)) end)\n"
    "    sD:scale(dl):backward() sD:step(oD) sD:update()\n"
    "    run:log { loss = dl }\n"
    "    oG:zero_grad()\n"
    "    local gl = mp.autocast(function() return F.bce_with_logits(D(fake), mp.ones(8, 1)) end)\n"
    "    sG:scale(gl):backward() sG:step(oG) sG:update()\n"
    "    average:update(oG)\n"
    "    sum = sum + gl:detach()\n"
    "    run:log { g = gl }\n"
    "    if step % 7 == 0 then average:with(function() run:log { mean = G(mp.ones(2, 4)):sum() } "
    "end) end\n"
    "  end\n"
    "  run:result { sum = sum:sum() }\n"
    "end }\n";

static const char early_script[] =
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'early', params = { steps = 200 }, run = function(run)\n"
    "  local net = run:model(nn.Sequential { nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1) })\n"
    "  local opt = mp.optim.AdamW(net:parameters(), { lr = 3e-2 })\n"
    "  local scaler = mp.scaler(function(stats, state)\n"
    "    state.seen = (state.seen or 0) + 1\n"
    "    return stats.found_inf and stats.scale / 2 or state.seen % 6 == 0 and stats.scale * 2 or "
    "stats.scale end)\n"
    "  local w, best, bad, kept = mp.randn(4, 1), math.huge, 0, {}\n"
    "  local step = 0\n"
    "  while step < run.params.steps do\n"
    "    step = step + 1\n"
    "    local x = mp.randn(16, 4) * (1 + math.random())\n"
    "    local loss = F.mse(net(x), x:matmul(w))\n"
    "    opt:zero_grad()\n"
    "    scaler:scale(loss):backward() scaler:step(opt) scaler:update()\n"
    "    run:log { loss = loss, s = scaler:get() }\n"
    "    kept[#kept + 1] = loss:detach()\n"
    "    if step % 5 == 0 then\n"
    "      local mean = 0\n"
    "      for i = #kept - 4, #kept do mean = mean + kept[i]:item() end\n"
    "      print(step, tostring(kept[#kept]))\n"
    "      if mean < best then best, bad = mean, 0 else bad = bad + 1 opt:lr(opt:lr() * 0.5) end\n"
    "      if bad == 2 or opt:steps() ~= step then break end\n"
    "    end\n"
    "  end\n"
    "  run:result { best = best, steps = step }\n"
    "end }\n";

// Parameters that are not in every step, groups with rates of their own, a rate that is asked for.
static const char groups_script[] =
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'groups', run = function(run)\n"
    "  local net = run:model(nn.Linear(4, 4))\n"
    "  local spare = run:model(nn.Linear(4, 4), 'spare')\n"
    "  local opt = mp.optim.Adam({ { params = net:parameters() },\n"
    "    { params = spare:parameters(), lr = 3e-3 } }, { lr = 1e-2, max_grad_norm = 0.5,\n"
    "    schedule = mp.optim.schedule.cosine { warmup = 4, total = 24, floor = 1e-3 } })\n"
    "  local scaler = run:scaler()\n"
    "  for i = 1, 24 do\n"
    "    opt:zero_grad()\n"
    "    local loss = F.mse(net(mp.randn(3, 4)), mp.ones(3, 4))\n"
    "    if i % 3 == 0 then loss = loss + F.mse(spare(mp.randn(3, 4)), mp.ones(3, 4)) end\n"
    "    if i == 7 then opt:lr(5e-3, 2) end\n"
    "    if i == 11 then opt:lr(opt:lr() * 2) end\n"
    "    scaler:scale(loss * (i == 9 and math.huge or 1)):backward()\n"
    "    scaler:step(opt) scaler:update()\n"
    "    run:log { loss = loss, rate = opt:lr(), other = opt:groups()[2].lr }\n"
    "  end\n"
    "end }\n";

// Two losses, each with a scaler of its own, gathered over two batches; one overflows now and then.
static const char losses_script[] =
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'losses', run = function(run)\n"
    "  local net = run:model(nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2) })\n"
    "  local opt = mp.optim.Adam(net:parameters(), { lr = 1e-2, max_grad_norm = 1 })\n"
    "  local a, b = run:scaler(), mp.scaler { init = 2^18, interval = 4 }\n"
    "  for i = 1, 16 do\n"
    "    opt:zero_grad()\n"
    "    local la, lb\n"
    "    for k = 1, 2 do\n"
    "      local y = mp.autocast(net, mp.randn(3, 4))\n"
    "      la, lb = F.mse(y, mp.ones(3, 2)) / 2, y:square():mean() * (i == 9 and 1e30 or 0.1)\n"
    "      a:scale(la):backward(nil, { keep_graph = true }) b:scale(lb):backward()\n"
    "    end\n"
    "    a:unscale(opt) b:step(opt)\n"
    "    a:update() b:update()\n"
    "    run:log { loss = la, other = lb, sa = a:get(), sb = b:get() }\n"
    "  end\n"
    "end }\n";

static void several_losses_with_a_scaler_each_do(void) {
    check_script("losses", write_script("losses", losses_script), "", "fp16", 0, 5);
}

static void rates_of_groups_and_counts_of_parameters_do(void) {
    check_script("groups", write_script("groups", groups_script), "", "fp16", 0, 5);
}

static void the_introductory_loop_goes_on_bit_for_bit(void) {
    check_script("simple fp32", "experiments/simple.lua", "steps=40", "fp32", 0, 2);
    check_script("simple fp16", "experiments/simple.lua", "steps=40", "fp16", 0, 2);
    check_script("simple O3", "experiments/simple.lua", "steps=20", "O3", 0, 2);
}

static void a_convolutional_network_on_images_does(void) {
    check_script("fashion_cnn", "experiments/fashion_cnn.lua", "batch=8 epochs=1", "bf16", 6, 2);
}

static void a_transformer_with_shuffled_text_does(void) {
    check_script("gpt", "experiments/gpt.lua",
                 "steps=12 layers=1 width=16 heads=2 context=16 batch=4 write=5", "bf16", 0, 2);
}

static void dropout_shuffling_statistics_and_accumulation_do(void) {
    check_script("dropout", write_script("dropout", dropout_script), "", "fp16", 0, 3);
}

static void two_optimizers_two_scalers_and_an_average_do(void) {
    check_script("gan", write_script("gan", gan_script), "", "fp16", 0, 4);
}

static void a_script_that_decides_by_what_it_reads_does(void) {
    check_script("early", write_script("early", early_script), "", "fp32", 0, 4);
}

// Layers of one name, set to something, and names that differ only far behind.
static const char twins_script[] =
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'twins', params = { steps = 20 },\n"
    "  precision = { linear1 = 'fp32' }, run = function(run)\n"
    "  local long = ('x'):rep(250)\n"
    "  local first = run:model(nn.Sequential { nn.Linear(4, 4) })\n"
    "  local second = run:model(nn.Sequential { nn.Linear(4, 4),\n"
    "    nn.Linear(4, 4):named(long .. '1'), nn.Linear(4, 1):named(long .. '2') })\n"
    "  local all = first:parameters()\n"
    "  for _, p in ipairs(second:parameters()) do all[#all + 1] = p end\n"
    "  local opt, scaler = mp.optim.Adam(all, { lr = 1e-2 }), run:scaler()\n"
    "  for step = 1, run.params.steps do\n"
    "    opt:zero_grad()\n"
    "    local loss = mp.autocast(function()\n"
    "      return F.mse(second(first(mp.randn(8, 4))), mp.ones(8, 1)) end)\n"
    "    scaler:scale(loss):backward() scaler:step(opt) scaler:update()\n"
    "    run:log { loss = loss }\n"
    "  end\n"
    "end }\n";

static void layers_of_one_name_and_long_names_do(void) {
    check_script("twins", write_script("twins", twins_script), "", "bf16", 0, 2);
}

// ---- what cannot go on --------------------------------------------------------------------------

typedef struct Change { // of a checkpoint's copy: a tensor or note that is left out, or
    const char *name;
    const char *note; // what it says instead
    double number;    // or, where it is not 0, all that it holds
} Change;

static bool copy_entry(SafeFile *file, SafeWriter *writer, const SafeEntry *entry, double number,
                       Error *error) {
    size_t size = (size_t)(entry->end - entry->begin);
    void *memory = malloc(size + 1);
    bool done = safe_read(file, entry, memory, error);
    for (size_t i = 0; number != 0 && i < size / sizeof number; i++)
        memcpy((double *)memory + i, &number, sizeof number);
    done = done && safe_write(writer, memory, size, error);
    free(memory);
    return done;
}

static void copy_changed(const char *from, const char *to, Change change) {
    Error error = {0};
    char hex[HASH_HEX_SIZE];
    uint64_t bytes;
    SafeFile *file = safe_open(from, &error);
    SafeWriter *writer = safe_writer_new(to, &error);
    const SafeHeader *header = safe_header(file);
    bool done = true;
    for (int i = 0; done && i < header->note_count; i++)
        if (strcmp(header->notes[i].key, change.name) != 0)
            done = safe_note(writer, header->notes[i].key, header->notes[i].value, &error);
        else if (change.note)
            done = safe_note(writer, change.name, change.note, &error);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; done && i < header->count; i++) {
            const SafeEntry *entry = &header->entries[i];
            bool changes = strcmp(entry->name, change.name) == 0;
            if (changes && change.number == 0)
                continue;
            done = pass == 0 ? safe_declare(writer, entry->name, entry->type, entry->ndim,
                                            entry->shape, &error)
                             : copy_entry(file, writer, entry, changes ? change.number : 0, &error);
        }
    CHECK_MESSAGE(done && safe_finish(writer, hex, &bytes, &error), "%s", error.text);
    safe_writer_free(writer);
    safe_close(file);
}

static void check_refusal(const Trial *first, const char *left_out, const char *expected) {
    Trial second = *first;
    second.stop_at = 0;
    copy_changed(file_of("broken", 5), folder_of("broken/copy"), (Change){.name = left_out});
    second.resume = checkpoint_open(folder_of("broken/copy"), NULL, NULL, &second.error);
    if (second.resume) {
        train(&second);
        CHECK_MESSAGE(!second.done, "it went on without %s", left_out);
    }
    CHECK_CONTAINS(second.error.text, expected);
    checkpoint_close(second.resume);
}

static void a_checkpoint_that_lacks_state_is_refused_with_the_way_out(void) {
    Trial first = {.script = write_script("broken", gan_script),
                   .settings = "",
                   .precision = "fp16",
                   .folder = folder_of("broken"),
                   .stop_at = 5};
    train(&first);
    CHECK_MESSAGE(first.done && first.kept == 1, "%s", first.error.text);
    check_refusal(&first, "scaler0/state", "lacks scaler0/state");
    check_refusal(&first, "optimizer1/m/D.linear1.weight", "--weights-only");
    check_refusal(&first, "random", "random state is missing");
    check_refusal(&first, "journal", "--weights-only");
    check_refusal(&first, "weight/G.linear2.bias", "missing in the file: weight/G.linear2.bias");
    check_refusal(&first, "mpbench", "no checkpoint of mpbench");
    Trial other = first;
    other.stop_at = 0;
    other.resume = checkpoint_open(file_of("broken", 5), NULL, NULL, &other.error);
    other.script = write_script("other", early_script);
    train(&other);
    checkpoint_close(other.resume);
    CHECK(!other.done);
    CHECK_CONTAINS(other.error.text, "--weights-only");
}

// A file's checksum keeps such away; a copy has none.
static void counters_that_no_run_can_have_are_refused_or_count_nothing(void) {
    static const char *const notes[] = {"step",  "applied",   "skipped",       "samples",
                                        "epoch", "forked_at", "skips_in_a_row"};
    static const char *const wrong[] = {"9223372036854775807", "-1", "1e9", "", "nan"};
    static const char *const states[] = {"scaler0/state", "optimizer0/state", "optimizer0/steps",
                                         "optimizer0/factors"};
    static const double numbers[] = {1e300, -1e300, (double)NAN, (double)INFINITY, 9.3e18};
    Trial first = {.script = write_script("counted", gan_script),
                   .settings = "",
                   .precision = "fp16",
                   .folder = folder_of("counted"),
                   .stop_at = 5};
    train(&first);
    CHECK_MESSAGE(first.done && first.kept == 1, "%s", first.error.text);
    const char *copy = folder_of("counted/copy");
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            Error error = {0};
            copy_changed(file_of("counted", 5), copy, (Change){notes[i], wrong[k], 0});
            CHECK(!checkpoint_open(copy, NULL, NULL, &error));
            CHECK_CONTAINS(error.text, "is no count");
        }
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            Trial second = first;
            second.stop_at = 0;
            second.steps = 8;
            copy_changed(file_of("counted", 5), copy, (Change){states[i], NULL, numbers[k]});
            second.resume = checkpoint_open(copy, NULL, NULL, &second.error);
            CHECK_MESSAGE(second.resume, "%s", second.error.text);
            train(&second); // it may be refused, or skip; it ends, and in order
            checkpoint_close(second.resume);
        }
    copy_changed(file_of("counted", 5), copy,
                 (Change){"scaler0.rule", "7 1 2 0.5 1 1e30 1e300 -1e300", 0});
    Trial second = first;
    second.stop_at = 0;
    second.resume = checkpoint_open(copy, NULL, NULL, &second.error);
    train(&second);
    checkpoint_close(second.resume);
    CHECK_CONTAINS(second.error.text, "scaler0.rule cannot be read");
}

static void periodic_checkpoints_and_what_is_said_before_them_are_not_repeated(void) {
    Trial first = {.script = write_script("said", early_script),
                   .settings = "steps=20",
                   .precision = "fp32",
                   .folder = folder_of("said"),
                   .every = 6};
    train(&first);
    CHECK_MESSAGE(first.done, "%s", first.error.text);
    CHECK_INT(first.kept, 4); // 6, 12, 18 and the end
    Trial second = first;
    second.kept = 0;
    second.printed[0] = 0;
    second.resume = checkpoint_open(file_of("said", 12), NULL, NULL, &second.error);
    train(&second);
    checkpoint_close(second.resume);
    CHECK_MESSAGE(second.done, "%s", second.error.text);
    CHECK_INT(second.kept, 2);
    const char *rest = strstr(first.printed, "15\t");
    CHECK(rest != NULL);
    CHECK_TEXT(second.printed, rest ? rest : "");
}

static const char load_script[] =
    "local mp = require 'mp'\n"
    "return mp.experiment { name = 'load', params = { path = '' }, run = function(run)\n"
    "  local t = mp.load 'said/step-12.safetensors'\n"
    "  local w = t['weight/linear1.weight']\n"
    "  print(w:dtype(), #w, w:shape()[2], t['optimizer0/state']:table()[1])\n"
    "  print(#mp.load(run.params.path)['weight/linear2.bias'])\n"
    "  print(select(2, pcall(mp.load, '/etc/passwd')))\n"
    "  print(pcall(mp.load, 'said/../../step-12.safetensors'))\n"
    "  print(pcall(mp.load, 'load.lua'))\n"
    "end }\n";

static void scripts_load_weights_that_lie_beside_them_or_were_given(void) {
    char setting[256];
    snprintf(setting, sizeof setting, "path=%s", file_of("said", 18));
    Trial trial = {.script = write_script("load", load_script), .settings = setting};
    train(&trial);
    CHECK_MESSAGE(trial.done, "%s", trial.error.text);
    CHECK_CONTAINS(trial.printed, "fp32\t8\t4\t12.0;1;");
    CHECK_CONTAINS(trial.printed, "beside it, or whose path or folder was given");
    CHECK_CONTAINS(trial.printed, "false");
    CHECK(!strstr(trial.printed, "true"));
}

int main(void) {
    if (!trials_begin())
        return 1;
    RUN_TEST(the_introductory_loop_goes_on_bit_for_bit);
    RUN_TEST(several_losses_with_a_scaler_each_do);
    RUN_TEST(rates_of_groups_and_counts_of_parameters_do);
    RUN_TEST(a_convolutional_network_on_images_does);
    RUN_TEST(a_transformer_with_shuffled_text_does);
    RUN_TEST(dropout_shuffling_statistics_and_accumulation_do);
    RUN_TEST(two_optimizers_two_scalers_and_an_average_do);
    RUN_TEST(a_script_that_decides_by_what_it_reads_does);
    RUN_TEST(layers_of_one_name_and_long_names_do);
    RUN_TEST(a_checkpoint_that_lacks_state_is_refused_with_the_way_out);
    RUN_TEST(counters_that_no_run_can_have_are_refused_or_count_nothing);
    RUN_TEST(periodic_checkpoints_and_what_is_said_before_them_are_not_repeated);
    RUN_TEST(scripts_load_weights_that_lie_beside_them_or_were_given);
    return trials_end();
}
