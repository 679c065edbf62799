// A run that is stopped and resumed, or forked with the same options, is bit for bit the run that
// was never stopped (fault 41): its losses, its weights, and all else that a last checkpoint holds.
//
// Scripts of every kind are stopped at random steps. MPBENCH_SOAK=1 tries more of them.
#include <sys/stat.h>

#include "tests/lua/resume_scripts.h"
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

// "STEP KIND ...": those that samples find are found at the step of one, which comes by the clock.
static bool is_same_note(const char *key, const char *x, const char *y) {
    if (strcmp(x, y) == 0)
        return true;
    const char *of_x = strchr(x, ' '), *of_y = strchr(y, ' ');
    return strncmp(key, "diagnosis", strlen("diagnosis")) == 0 && of_x && of_y &&
           strncmp(of_x, " small_kernels", strlen(" small_kernels")) == 0 &&
           strcmp(of_x, of_y) == 0;
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
                CHECK_MESSAGE(other && is_same_note(x->notes[i].key, x->notes[i].value, other),
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
                   .is_recorded = true,
                   .steps = steps};
    train(&whole);
    CHECK_MESSAGE(whole.done, "%s: %s", name, whole.error.text);
    CHECK_MESSAGE(whole.kept == 1, "%s: %d checkpoints", name, whole.kept);
    if (!whole.done)
        return;
    CHECK_MESSAGE(whole.loss_count > 0, "%s: no loss is in its record", name);
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
        train(&first);
        CHECK_MESSAGE(first.done && first.step == at && first.kept == 1, "%s: stopped at %lld: %s",
                      what, (long long)first.step, first.error.text);
        second.resume =
            checkpoint_open(file_of("parts", at), NULL,
                            i % 2 ? &(RestoreOwn){.settings = false} : NULL, &second.error);
        CHECK_MESSAGE(second.resume, "%s: %s", what, second.error.text);
        if (!second.resume)
            return;
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

// Gradients of one's own that read the device, hooks that change what comes, a penalty on
// gradients, and a graph that is recorded in one step and walked in the next.
static const char own_script[] =
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'own', run = function(run)\n"
    "  local net = run:model(nn.Sequential { nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2) })\n"
    "  local opt = mp.optim.Adam(net:parameters(), { lr = 1e-2 })\n"
    "  local scaler, largest = run:scaler(), 0\n"
    "  local own = mp.custom { precision = 'fp32',\n"
    "    forward = function(ctx, x) local y = x:tanh() ctx:save(x, y) ctx.at = run.step return y "
    "end,\n"
    "    backward = function(ctx, dy)\n"
    "      local x, y = ctx:saved()\n"
    "      largest = math.max(largest, x:abs():max():item())\n"
    "      return dy * (1 - y:square()) * (1 + ctx.at % 2)\n"
    "    end }\n"
    "  net:parameters()[1]:hook(function(g) return g * (largest > 1 and 0.5 or 1) end)\n"
    "  local before\n"
    "  for i = 1, 12 do\n"
    "    opt:zero_grad()\n"
    "    local x = mp.randn(3, 4):requires_grad(true)\n"
    "    local y = mp.autocast(net, x)\n"
    "    local slope = mp.grad(y:sum(), { x }, true)[1]\n"
    "    local loss = own(y):square():mean() + slope:square():mean()\n"
    "    scaler:scale(loss):backward()\n"
    "    if before then before:backward() end\n"
    "    before = own(mp.randn(2):requires_grad(true) * 2):sum()\n"
    "    scaler:step(opt) scaler:update()\n"
    "    run:log { loss = loss, largest = largest }\n"
    "  end\n"
    "end }\n";

// A scaler and an optimizer of one's own in the standard loop, some of whose steps are skipped.
static const char classes_script[] =
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "local Clipping = mp.class('Clipping', mp.scaler)\n"
    "function Clipping:init() Clipping.super.init(self, { init = 2^16, interval = 2 }) end\n"
    "function Clipping:unscale(opt)\n"
    "  Clipping.super.unscale(self, opt)\n"
    "  mp.optim.clip_norm(opt:parameters(), 0.5)\n"
    "end\n"
    "local Signs = mp.class('Signs', mp.optim.SGD)\n"
    "function Signs:init(params, options)\n"
    "  Signs.super.init(self, params, options)\n"
    "  self.means = {}\n"
    "  for i, p in ipairs(self:parameters()) do self.means[i] = mp.zeros(p:shape()) end\n"
    "end\n"
    "function Signs:step()\n"
    "  for i, p in ipairs(self:parameters()) do\n"
    "    self:change(self.means[i], self.means[i] * 0.9 + p:grad() * 0.1)\n"
    "    p:grad(self.means[i] / (self.means[i]:abs() + 1e-6))\n"
    "  end\n"
    "  Signs.super.step(self)\n"
    "end\n"
    "return mp.experiment { name = 'classes', scaler = Clipping,\n"
    "  data = function() return { train = mp.data.synthetic { shape = { 6 }, count = 96, batch = 8 "
    "} } end,\n"
    "  model = function() return nn.Sequential { nn.SpectralNorm(nn.Linear(6, 16)), nn.ReLU(), "
    "nn.Linear(16, 10) } end,\n"
    "  loss = function(model, b) return F.cross_entropy(model(b.x), b.y, { label_smoothing = 0.1 "
    "}) "
    "end,\n"
    "  optim = function(params) return Signs(params, { lr = 1e-3 }) end }\n";

static void classes_of_ones_own_do(void) {
    check_script("classes", write_script("classes", classes_script), "", "fp16", 0, 5);
}

static void gradients_of_ones_own_and_hooks_do(void) {
    check_script("own", write_script("own", own_script), "", "fp16", 0, 5);
}

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
    check_script("images", write_script("images", images_script), "", "bf16", 0, 2);
    check_script("images fp16", write_script("images", images_script), "", "fp16", 0, 2);
    if (test_device_is_emulated() && !test_soaks())
        return; // too many images
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

// Samples that three threads change on their way, and layers with chance and state of their own.
static const char changed_script[] =
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "local Net = nn.class 'Net'\n"
    "function Net:init()\n"
    "  self.conv = nn.Conv2d(2, 4, 3, { padding = 1, padding_mode = 'circular' })\n"
    "  self.rows = nn.LSTM(16, 8, { num_layers = 2, dropout = 0.3 })\n"
    "  self.seen = nn.Attention(8, 2, { dropout = 0.2 })\n"
    "  self.slope, self.head = nn.PReLU(4), nn.Linear(8, 3)\n"
    "end\n"
    "function Net:forward(x)\n"
    "  local y = self.rows(self.slope(self.conv(x)):reshape(-1, 4, 16))\n"
    "  return self.head(self.seen(y):mean(2))\n"
    "end\n"
    "return mp.experiment { name = 'changed', params = { epochs = 3 },\n"
    "  data = function() return { train = mp.data.tensors { x = mp.randn(40, 4, 4, 2),\n"
    "    y = mp.randint(3, 40), batch = 8, shuffle = true, threads = 3,\n"
    "    transform = { crop = 1, flip = true, noise = 0.1, mean = 0.5 } } } end,\n"
    "  model = function() return Net() end,\n"
    "  loss = function(m, b) return F.cross_entropy(m(b.x), b.y) end,\n"
    "  optim = function(p) return mp.optim.Adam(p, { lr = 1e-2 }) end }\n";

static void samples_that_threads_change_do(void) {
    check_script("changed", write_script("changed", changed_script), "", "fp16", 0, 3);
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

// A checkpoint that is due within an evaluation: the loop over the data has come to its end by then
// and the average has moved.
static const char evaluated_script[] =
    "local mp = require 'mp' local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'evaluated', run = function(run)\n"
    "  local set = { x = mp.randn(24, 8), y = mp.randint(4, 24), batch = 8, shuffle = true }\n"
    "  local data, test = mp.data.tensors(set), mp.data.tensors(set)\n"
    "  local net = run:model(nn.Sequential { nn.Linear(8, 8), nn.Linear(8, 4) })\n"
    "  local opt, scaler = mp.optim.Adam(net:parameters(), { lr = 1e-2 }), run:scaler()\n"
    "  local average = mp.optim.EMA(net, 0.9)\n"
    "  for epoch = 1, 5 do\n"
    "    for b in data do\n"
    "      opt:zero_grad()\n"
    "      local loss = mp.autocast(function() return F.cross_entropy(net(b.x), b.y) end)\n"
    "      scaler:scale(loss):backward() scaler:step(opt) scaler:update()\n"
    "      run:log { loss = loss }\n"
    "    end\n"
    "    average:update()\n"
    "    for pass = 1, 2 do run:evaluate(function()\n"
    "      if epoch == 2 and pass == 1 or epoch == 4 and pass == 2 then run:checkpoint() end\n"
    "      for b in test do run:log { entropy = F.cross_entropy(net(b.x), b.y) } end\n"
    "    end) end\n"
    "    average:with(function() run:log { mean = net(mp.ones(1, 8)):sum() } end)\n"
    "    if epoch == 3 then run:checkpoint() end\n"
    "  end\n"
    "end }\n";

static void checkpoints_at_an_evaluation_do(void) {
    Trial first = {.script = write_script("evaluated", evaluated_script),
                   .precision = "fp32",
                   .folder = folder_of("evaluated"),
                   .is_recorded = true};
    train(&first);
    CHECK_MESSAGE(first.done, "%s", first.error.text);
    CHECK_INT(first.kept, 4); // 6, 9, 12 and the end
    for (int64_t at = 6; at <= 12; at += 3) {
        Trial second = first;
        second.folder = folder_of("parts");
        second.kept = 0;
        second.resume = checkpoint_open(file_of("evaluated", at), NULL, NULL, &second.error);
        train(&second);
        checkpoint_close(second.resume);
        CHECK_MESSAGE(second.done && second.step == 15, "from %d: %s", (int)at, second.error.text);
        for (int64_t k = at + 1; k <= 15; k++)
            CHECK_MESSAGE(second.losses[k] == first.losses[k], "from %d: the loss of step %d",
                          (int)at, (int)k);
        check_same_files(file_of("evaluated", 15), file_of("parts", 15), "evaluated");
    }
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
    RUN_TEST(gradients_of_ones_own_and_hooks_do);
    RUN_TEST(classes_of_ones_own_do);
    RUN_TEST(rates_of_groups_and_counts_of_parameters_do);
    RUN_TEST(a_convolutional_network_on_images_does);
    RUN_TEST(a_transformer_with_shuffled_text_does);
    RUN_TEST(dropout_shuffling_statistics_and_accumulation_do);
    RUN_TEST(two_optimizers_two_scalers_and_an_average_do);
    RUN_TEST(a_script_that_decides_by_what_it_reads_does);
    RUN_TEST(samples_that_threads_change_do);
    RUN_TEST(layers_of_one_name_and_long_names_do);
    RUN_TEST(periodic_checkpoints_and_what_is_said_before_them_are_not_repeated);
    RUN_TEST(checkpoints_at_an_evaluation_do);
    RUN_TEST(scripts_load_weights_that_lie_beside_them_or_were_given);
    return trials_end();
}
