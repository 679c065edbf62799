// What lua/mp/scan.lua asks of a scan (run/scan.h) and tells of it.
#include <math.h>
#include <string.h>

#include "kernel/allocator.h"
#include "lua/bind/bind.h"
#include "ops/factors.h"
#include "run/scan.h"

enum { SCAN_MOST_METRICS = 64 }; // values that an experiment's `eval` gives

static Scan *scan_of(lua_State *L) {
    return session_of(L)->scan;
}

// scan(): what is asked; nil where the script is to train
static int scan_asked(lua_State *L) {
    if (!scan_of(L))
        return 0;
    const ScanRecord *scan = scan_of(L)->record;
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"batches", (double)scan->batches}, {"warm_up", (double)scan->warm_up},
                   {"steps", (double)scan->steps},     {"seeds", (double)scan->seeds},
                   {"within", scan->within},           {"tolerance", scan->tolerance},
                   {"most_units", SCAN_MOST_UNITS}};
    lua_createtable(L, 0, 9);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lua_pushnumber(L, numbers[i].value);
        lua_setfield(L, -2, numbers[i].name);
    }
    const char *scale = scan_option(scan, "loss-scale");
    lua_pushstring(L, scale ? scale : "dynamic");
    lua_setfield(L, -2, "scale");
    lua_pushboolean(L, scan->by_block);
    lua_setfield(L, -2, "by_block");
    lua_createtable(L, scan->format_count, 0);
    for (int i = 0; i < scan->format_count; i++) {
        lua_pushstring(L, scan->formats[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "formats");
    return 1;
}

static const char keep_option[] = "keep-fp32";

// Of a norm or an embedding its kind. NULL: it is something else, or was asked to stay in fp32.
static const char *kept_kind(const ScanRecord *scan, const PolicyLayer *layer) {
    const char *text = scan_option(scan, keep_option);
    Keep asked;
    Error error;
    if (!layer->name[0] || layer->has_products || !layer->knows_op)
        return NULL;
    const KeepKind kind = keep_kind(layer->op);
    return keep_is_layer(kind) && keep_parse(text, &asked, &error) && !asked.kept[kind]
               ? keep_kind_name(kind)
               : NULL;
}

// scan_release({ kind, .. }): norms and embeddings of these kinds compute in their layers' formats,
// all else as is usual; where --keep-fp32 was given, as that has it. Layers are set after it.
static int scan_release(lua_State *L) {
    Keep keep = {.is_given = false};
    luaL_checktype(L, 1, LUA_TTABLE);
    const int count = (int)luaL_len(L, 1);
    if (scan_option(scan_of(L)->record, keep_option))
        return 0;
    for (int kind = 0; kind < KEEP_KINDS; kind++) {
        keep.kept[kind] = true;
        for (int i = 1; i <= count; i++) {
            lua_rawgeti(L, 1, i);
            if (strcmp(luaL_checkstring(L, -1), keep_kind_name((KeepKind)kind)) == 0)
                keep.kept[kind] = false;
            lua_pop(L, 1);
        }
        keep.is_given = keep.is_given || !keep.kept[kind];
    }
    policy_set_keep(session_of(L)->engine->policy, &keep);
    return 0;
}

// scan_layers(): { { name =, parent =, products =, kept = }, .. } of the model that the run knows;
// products: it has been seen to multiply; kept: the kind of a norm or an embedding
static int scan_layers(lua_State *L) {
    const Policy *policy = session_of(L)->engine->policy;
    int count = policy_layer_count(policy);
    lua_createtable(L, count - 1, 0);
    for (int i = 1; i < count; i++) {
        const PolicyLayer *layer = policy_layer(policy, i);
        lua_createtable(L, 0, 4);
        lua_pushstring(L, kept_kind(scan_of(L)->record, layer)); // nil where there is none
        lua_setfield(L, -2, "kept");
        lua_pushstring(L, layer->name);
        lua_setfield(L, -2, "name");
        lua_pushinteger(L, layer->parent);
        lua_setfield(L, -2, "parent");
        lua_pushboolean(L, layer->has_products);
        lua_setfield(L, -2, "products");
        lua_rawseti(L, -2, i);
    }
    return 1;
}

// scan_set(layer, precision): this layer alone, from the next call on
static int scan_set(lua_State *L) {
    Error error = {0};
    const Session *session = session_of(L);
    LayerPrecision precision;
    if (!layer_precision_parse(luaL_checkstring(L, 2), session->engine->device, &precision, &error))
        return bind_raise(L, &error);
    policy_set_layer(session->engine->policy, (int)luaL_checkinteger(L, 1), precision);
    return 0;
}

// scan_activations(f): bytes, the most at once while f goes on, beside what lay there before. What
// garbage lies there is f's own, so that the same f always takes the same.
static int scan_activations(lua_State *L) {
    Session *session = session_of(L);
    Allocator *allocator = session->engine->device->allocator;
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    bind_collect_all(L, session);
    allocator_forget_peaks(allocator);
    const size_t before = allocator_use(allocator).now[MEMORY_ACTIVATIONS];
    lua_call(L, 0, 0);
    const size_t most = allocator_use(allocator).peak[MEMORY_ACTIVATIONS];
    lua_pushinteger(L, (lua_Integer)(most - before));
    return 1;
}

static const char counted_name[] = "scan.factors"; // in the registry

// scan_count(): what becomes of the numbers of factors in scaled formats is counted from here on
static int scan_count(lua_State *L) {
    Engine *engine = session_of(L)->engine;
    const int layers = policy_layer_count(engine->policy);
    const size_t bytes = (size_t)layers * sizeof *engine->factors->counts;
    FactorTable *table = lua_newuserdatauv(L, sizeof *table + bytes, 0);
    lua_setfield(L, LUA_REGISTRYINDEX, counted_name); // as long as an engine may look at it
    memset(table, 0, sizeof *table + bytes);
    *table = (FactorTable){.layers = layers, .counts = (void *)(table + 1)};
    engine->factors = table;
    return 0;
}

static void set_share(lua_State *L, const char *name, int64_t part, int64_t of) {
    lua_pushnumber(L, (double)part / (double)of);
    lua_setfield(L, -2, name);
}

static void set_exponent(lua_State *L, const char *name, int exponent) {
    lua_pushinteger(L, exponent);
    lua_setfield(L, -2, name);
}

// scan_counted(): { flushed =, .. } of all since scan_count, which ends; nil: there were none
static int scan_counted(lua_State *L) {
    Engine *engine = session_of(L)->engine;
    const FactorTable *table = engine->factors;
    FactorCounts all = {.count = 0};
    int least, middle, most;
    for (int i = 0; table && i < table->layers; i++)
        for (int role = 0; role < FACTOR_ROLES; role++)
            factors_merge(&all, &table->counts[i][role]);
    engine->factors = NULL;
    if (all.count == 0)
        return 0;
    lua_createtable(L, 0, 6);
    set_share(L, "flushed", all.flushed, all.count);
    set_share(L, "overflowed", all.saturated, all.count);
    set_share(L, "subnormal", all.subnormal, all.count);
    if (factors_scales(&all, &least, &middle, &most)) {
        set_exponent(L, "least_scale", least);
        set_exponent(L, "middle_scale", middle);
        set_exponent(L, "most_scale", most);
    }
    return 1;
}

// scan_goes_on(what, done, of): tells of it, and ends where the end was asked for
static int scan_goes_on(lua_State *L) {
    Session *session = session_of(L);
    const Scan *scan = session->scan;
    if (scan->progress)
        scan->progress(scan->context, luaL_checkstring(L, 1), luaL_checkinteger(L, 2),
                       luaL_optinteger(L, 3, 0));
    if (run_is_to_stop(session->run))
        lua_vm_interrupt(session->vm, "the run was asked to stop");
    lua_vm_check(L);
    return 0;
}

// scan_forget(): delayed scales, which follow from the steps before: what begins now owes nothing
// to what came before it
static int scan_forget(lua_State *L) {
    delayed_clear(&session_of(L)->engine->delayed);
    return 0;
}

// ---- what was found -----------------------------------------------------------------------------

static double field(lua_State *L, int table, const char *name) {
    lua_getfield(L, table, name);
    double value = lua_isnumber(L, -1) ? lua_tonumber(L, -1) : (double)NAN;
    lua_pop(L, 1);
    return value;
}

static bool flag(lua_State *L, int table, const char *name) {
    lua_getfield(L, table, name);
    bool value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

// A number from 1 to `count`, as the index that it is in C.
static int check_index(lua_State *L, int argument, int count, const char *what) {
    lua_Integer index = luaL_checkinteger(L, argument);
    luaL_argcheck(L, index >= 1 && index <= count, argument, what);
    return (int)index - 1;
}

// scan_unit(name, parameters [, kept, rests]): the next one; false where there is no room for it
static int scan_unit(lua_State *L) {
    Error error = {0};
    bool has_room;
    if (!scan_take_layer(scan_of(L), luaL_checkstring(L, 1), luaL_checkinteger(L, 2),
                         luaL_optstring(L, 3, ""), luaL_optstring(L, 4, ""), &has_room, &error))
        return bind_raise(L, &error);
    lua_pushboolean(L, has_room);
    return 1;
}

// scan_loss(loss): of the batches in fp32; all units are known
static int scan_loss(lua_State *L) {
    Error error = {0};
    return scan_take_loss(scan_of(L), luaL_checknumber(L, 1), &error) ? 0 : bind_raise(L, &error);
}

// scan_known(unit, format): { damage = } of a cell that was measured before; nil: it was not
static int scan_known(lua_State *L) {
    const ScanRecord *scan = scan_of(L)->record;
    const int unit = check_index(L, 1, scan->unit_count, "no such unit");
    const int format = check_index(L, 2, scan->format_count, "no such format");
    const ScanCell *cell = &scan->cells[unit][format];
    if (!cell->is_known)
        return 0;
    lua_createtable(L, 0, 1);
    lua_pushnumber(L, cell->damage);
    lua_setfield(L, -2, "damage");
    return 1;
}

// scan_cell(unit, format, { .. })
static int scan_cell(lua_State *L) {
    Error error = {0};
    Scan *scan = scan_of(L);
    const int unit = check_index(L, 1, scan->record->unit_count, "no such unit");
    const int format = check_index(L, 2, scan->record->format_count, "no such format");
    ScanCell cell = {.is_known = true, .is_broken = flag(L, 3, "broken")};
    for (const ScanReading *reading = scan_readings; reading->name; reading++)
        *scan_reading(&cell, reading) = field(L, 3, reading->name);
    return scan_take_cell(scan, unit, format, &cell, &error) ? 0 : bind_raise(L, &error);
}

// The times of rounds at that argument; how many there are.
static int check_rounds(lua_State *L, int argument, double rounds[ROUNDS_MOST]) {
    luaL_checktype(L, argument, LUA_TTABLE);
    const lua_Integer count = luaL_len(L, argument);
    luaL_argcheck(L, count <= ROUNDS_MOST, argument, "too many rounds");
    for (int i = 0; i < (int)count; i++) {
        lua_rawgeti(L, argument, i + 1);
        rounds[i] = luaL_checknumber(L, -1);
        lua_pop(L, 1);
    }
    return (int)count;
}

// scan_cost(format, { seconds, .. }, activations): of all units in it, a time a round; the format
// behind the last is fp32, with which all are known
static int scan_cost(lua_State *L) {
    Error error = {0};
    double rounds[ROUNDS_MOST];
    Scan *scan = scan_of(L);
    const int format = check_index(L, 1, scan->record->format_count + 1, "no such format");
    const int count = check_rounds(L, 2, rounds);
    return scan_take_cost(scan, format, rounds, count, luaL_checkinteger(L, 3), &error)
               ? 0
               : bind_raise(L, &error);
}

// scan_lowered(format, { seconds, .. }, activations): of all units in it, norms and embeddings too
static int scan_lowered(lua_State *L) {
    double rounds[ROUNDS_MOST];
    Scan *scan = scan_of(L);
    const int format = check_index(L, 1, scan->record->format_count, "no such format");
    const int count = check_rounds(L, 2, rounds);
    scan_take_lowered(scan, format, rounds, count, luaL_checkinteger(L, 3));
    return 0;
}

// scan_has_costs(): whether they were measured before
static int scan_costs_known(lua_State *L) {
    lua_pushboolean(L, scan_has_costs(scan_of(L)));
    return 1;
}

// scan_proposed(): { format, .. }, which serves each unit best by itself
static int scan_proposed(lua_State *L) {
    const ScanRecord *scan = scan_of(L)->record;
    lua_createtable(L, scan->unit_count, 0);
    for (int i = 0; i < scan->unit_count; i++) {
        lua_pushinteger(L, scan_choose_format(scan, i) + 1);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

// The list of formats, one a unit, at that argument.
static void check_formats(lua_State *L, int argument, short formats[SCAN_MOST_UNITS]) {
    const ScanRecord *scan = scan_of(L)->record;
    luaL_checktype(L, argument, LUA_TTABLE);
    for (int i = 0; i < scan->unit_count; i++) {
        lua_rawgeti(L, argument, i + 1);
        lua_Integer format = luaL_checkinteger(L, -1);
        luaL_argcheck(L, format >= 1 && format <= scan->format_count + 1, argument,
                      "no such format");
        formats[i] = (short)(format - 1);
        lua_pop(L, 1);
    }
}

// scan_policy({ format, .. }, rounds, final)
static int scan_policy(lua_State *L) {
    Error error = {0};
    short formats[SCAN_MOST_UNITS];
    check_formats(L, 1, formats);
    return scan_take_policy(scan_of(L), formats, (int)luaL_checkinteger(L, 2), lua_toboolean(L, 3),
                            &error)
               ? 0
               : bind_raise(L, &error);
}

static int64_t check_seed(lua_State *L, int argument) {
    return check_index(L, argument, SCAN_MOST_SEEDS, "no such seed") + 1;
}

// scan_metric([{ name, .. }]): the result that trainings are held against: of these names, else as
// it is known; nil: none
static int scan_metric(lua_State *L) {
    Scan *scan = scan_of(L);
    const char *names[SCAN_MOST_METRICS];
    const int count = lua_istable(L, 1) ? (int)luaL_len(L, 1) : 0;
    luaL_argcheck(L, count <= SCAN_MOST_METRICS, 1, "eval gives more values than a scan looks at");
    for (int i = 0; i < count; i++) {
        lua_rawgeti(L, 1, i + 1);
        names[i] = luaL_checkstring(L, -1); // the table holds it
        lua_pop(L, 1);
    }
    if (count > 0)
        scan_take_metric(scan, names, count);
    if (!scan->record->metric[0])
        return 0;
    lua_pushstring(L, scan->record->metric);
    return 1;
}

// scan_trained({ format, .. }, seed): loss, seconds, result and skipped steps of a training that
// was done before, by whatever label; nil: it was not
static int scan_was_trained(lua_State *L) {
    short formats[SCAN_MOST_UNITS];
    check_formats(L, 1, formats);
    const int64_t seed = check_seed(L, 2);
    const ScanTraining *training = scan_trained(scan_of(L), formats, seed);
    if (!training)
        return 0;
    const ScanSeed *found = &training->seeds[seed - 1];
    lua_pushnumber(L, found->loss);
    lua_pushnumber(L, found->seconds);
    if (found->has_result)
        lua_pushnumber(L, found->result);
    else
        lua_pushnil(L);
    if (found->has_skipped)
        lua_pushinteger(L, found->skipped);
    else
        lua_pushnil(L);
    return 4;
}

// scan_seed(label, { format, .. }, seed, loss, seconds [, result [, skipped]])
static int scan_seed(lua_State *L) {
    Error error = {0};
    short formats[SCAN_MOST_UNITS];
    check_formats(L, 2, formats);
    const ScanSeed found = {.loss = luaL_checknumber(L, 4),
                            .seconds = luaL_checknumber(L, 5),
                            .has_result = !lua_isnoneornil(L, 6),
                            .result = luaL_optnumber(L, 6, 0),
                            .has_skipped = !lua_isnoneornil(L, 7),
                            .skipped = luaL_optinteger(L, 7, 0)};
    return scan_take_seed(scan_of(L), luaL_checkstring(L, 1), formats, check_seed(L, 3), &found,
                          &error)
               ? 0
               : bind_raise(L, &error);
}

// scan_training(label, { format, .. }, { .. }): over its seeds
static int scan_training(lua_State *L) {
    Error error = {0};
    short formats[SCAN_MOST_UNITS];
    check_formats(L, 2, formats);
    const ScanTraining over = {.loss = field(L, 3, "loss"),
                               .above = field(L, 3, "above"),
                               .interval = field(L, 3, "interval"),
                               .seconds = field(L, 3, "seconds"),
                               .broken = (int)field(L, 3, "broken"),
                               .result = field(L, 3, "result"),
                               .worse = field(L, 3, "worse"),
                               .worse_interval = field(L, 3, "worse_interval"),
                               .is_within = flag(L, 3, "within")};
    return scan_take_training(scan_of(L), luaL_checkstring(L, 1), formats, &over, &error)
               ? 0
               : bind_raise(L, &error);
}

// scan_rounds({ format, .. }, { seconds, .. }): of a step with these formats, a time a round
static int scan_rounds(lua_State *L) {
    Error error = {0};
    short formats[SCAN_MOST_UNITS];
    double rounds[ROUNDS_MOST];
    check_formats(L, 1, formats);
    const int count = check_rounds(L, 2, rounds);
    return scan_take_rounds(scan_of(L), formats, rounds, count, &error) ? 0 : bind_raise(L, &error);
}

// scan_timed({ format, .. }): whether a step with these formats was timed in rounds before
static int scan_timed(lua_State *L) {
    short formats[SCAN_MOST_UNITS];
    check_formats(L, 1, formats);
    const ScanTraining *training = scan_trained(scan_of(L), formats, 1);
    lua_pushboolean(L, training && training->round_count > 0);
    return 1;
}

// scan_chosen(): { format, .. } of the training that is to be the policy, and whether it holds;
// nil: there is none
static int scan_chosen(lua_State *L) {
    const ScanRecord *scan = scan_of(L)->record;
    const int at = scan_choose_training(scan);
    if (at < 0)
        return 0;
    lua_createtable(L, scan->unit_count, 0);
    for (int i = 0; i < scan->unit_count; i++) {
        lua_pushinteger(L, scan->trainings[at].format[i] + 1);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushboolean(L, scan->trainings[at].is_within);
    return 2;
}

const BindFunction bind_scan_functions[] = {
    {"scan", scan_asked, NULL},
    {"scan_layers", scan_layers, NULL},
    {"scan_release", scan_release, NULL},
    {"scan_set", scan_set, NULL},
    {"scan_activations", scan_activations, NULL},
    {"scan_count", scan_count, NULL},
    {"scan_counted", scan_counted, NULL},
    {"scan_goes_on", scan_goes_on, NULL},
    {"scan_forget", scan_forget, NULL},
    {"scan_unit", scan_unit, NULL},
    {"scan_loss", scan_loss, NULL},
    {"scan_known", scan_known, NULL},
    {"scan_cell", scan_cell, NULL},
    {"scan_has_costs", scan_costs_known, NULL},
    {"scan_cost", scan_cost, NULL},
    {"scan_lowered", scan_lowered, NULL},
    {"scan_proposed", scan_proposed, NULL},
    {"scan_policy", scan_policy, NULL},
    {"scan_metric", scan_metric, NULL},
    {"scan_trained", scan_was_trained, NULL},
    {"scan_seed", scan_seed, NULL},
    {"scan_training", scan_training, NULL},
    {"scan_timed", scan_timed, NULL},
    {"scan_rounds", scan_rounds, NULL},
    {"scan_chosen", scan_chosen, NULL},
    {0},
};
