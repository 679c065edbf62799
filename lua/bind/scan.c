// What lua/mp/scan.lua asks of a scan (run/scan.h) and tells of it.
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "kernel/allocator.h"
#include "lua/bind/bind.h"
#include "ops/factors.h"
#include "run/scan.h"

static Scan *scan_of(lua_State *L) {
    return session_of(L)->scan;
}

// scan(): what is asked; nil where the script is to train
static int scan_asked(lua_State *L) {
    const Scan *scan = scan_of(L);
    if (!scan)
        return 0;
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"batches", (double)scan->batches}, {"warm_up", (double)scan->warm_up},
                   {"steps", (double)scan->steps},     {"seeds", (double)scan->seeds},
                   {"within", scan->within},           {"tolerance", scan->tolerance}};
    lua_createtable(L, 0, 8);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lua_pushnumber(L, numbers[i].value);
        lua_setfield(L, -2, numbers[i].name);
    }
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

// scan_layers(): { { name =, parent =, products = }, .. } of the model that the run knows;
// products: it has been seen to multiply
static int scan_layers(lua_State *L) {
    const Policy *policy = session_of(L)->engine->policy;
    int count = policy_layer_count(policy);
    lua_createtable(L, count - 1, 0);
    for (int i = 1; i < count; i++) {
        const PolicyLayer *layer = policy_layer(policy, i);
        lua_createtable(L, 0, 3);
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

// scan_activations(): bytes, the most at once since the last call
static int scan_activations(lua_State *L) {
    Allocator *allocator = session_of(L)->engine->device->allocator;
    lua_pushinteger(L, (lua_Integer)allocator_use(allocator).peak[MEMORY_ACTIVATIONS]);
    allocator_forget_peaks(allocator);
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
    *table = (FactorTable){layers, (void *)(table + 1)};
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

// scan_unit(name, parameters): the next one; false where there is no room for it
static int scan_unit(lua_State *L) {
    Scan *scan = scan_of(L);
    bool has_room = scan->unit_count < SCAN_MOST_UNITS;
    if (has_room) {
        utf8_copy(scan->units[scan->unit_count], sizeof *scan->units, luaL_checkstring(L, 1));
        scan->parameters[scan->unit_count++] = luaL_checkinteger(L, 2);
    } else {
        scan->left_out++;
    }
    lua_pushboolean(L, has_room);
    return 1;
}

// scan_cell(unit, format, { .. })
static int scan_cell(lua_State *L) {
    Scan *scan = scan_of(L);
    lua_Integer unit = luaL_checkinteger(L, 1), format = luaL_checkinteger(L, 2);
    luaL_argcheck(L, unit >= 1 && unit <= scan->unit_count, 1, "no such unit");
    luaL_argcheck(L, format >= 1 && format <= scan->format_count, 2, "no such format");
    scan->cells[unit - 1][format - 1] = (ScanCell){
        .is_known = true,
        .is_broken = flag(L, 3, "broken"),
        .own_error = field(L, 3, "own_error"),
        .own_noise = field(L, 3, "own_noise"),
        .own_degrees = field(L, 3, "own_degrees"),
        .all_error = field(L, 3, "all_error"),
        .all_noise = field(L, 3, "all_noise"),
        .all_degrees = field(L, 3, "all_degrees"),
        .loss_change = field(L, 3, "loss_change"),
        .flushed = field(L, 3, "flushed"),
        .overflowed = field(L, 3, "overflowed"),
        .subnormal = field(L, 3, "subnormal"),
        .least_scale = field(L, 3, "least_scale"),
        .middle_scale = field(L, 3, "middle_scale"),
        .most_scale = field(L, 3, "most_scale"),
        .scale = field(L, 3, "scale"),
        .damage = field(L, 3, "damage"),
    };
    return 0;
}

// scan_cost(format, seconds, activations): of all units in it; the one behind the last is fp32
static int scan_cost(lua_State *L) {
    Scan *scan = scan_of(L);
    lua_Integer format = luaL_checkinteger(L, 1);
    luaL_argcheck(L, format >= 1 && format <= scan->format_count + 1, 1, "no such format");
    scan->seconds[format - 1] = luaL_checknumber(L, 2);
    scan->activations[format - 1] = luaL_checkinteger(L, 3);
    return 0;
}

// scan_policy({ format, .. }, rounds, final): a format a unit
static int scan_policy(lua_State *L) {
    Scan *scan = scan_of(L);
    for (int i = 0; i < scan->unit_count; i++) {
        lua_rawgeti(L, 1, i + 1);
        scan->policy[i] = (int)luaL_checkinteger(L, -1) - 1;
        lua_pop(L, 1);
    }
    scan->rounds = (int)luaL_checkinteger(L, 2);
    scan->is_final = lua_toboolean(L, 3);
    return 0;
}

// scan_training(label, { .. }): takes the place of an earlier one of this label
static int scan_training(lua_State *L) {
    Scan *scan = scan_of(L);
    const char *label = luaL_checkstring(L, 1);
    int at = 0;
    while (at < scan->training_count && strcmp(scan->trainings[at].label, label) != 0)
        at++;
    if (at == SCAN_MOST_TRAININGS)
        return 0;
    scan->training_count += at == scan->training_count;
    ScanTraining *training = &scan->trainings[at];
    *training = (ScanTraining){.loss = field(L, 2, "loss"),
                               .above = field(L, 2, "above"),
                               .interval = field(L, 2, "interval"),
                               .seconds = field(L, 2, "seconds"),
                               .broken = (int)field(L, 2, "broken"),
                               .is_within = flag(L, 2, "within")};
    utf8_copy(training->label, sizeof training->label, label);
    return 0;
}

const BindFunction bind_scan_functions[] = {
    {"scan", scan_asked, NULL},
    {"scan_layers", scan_layers, NULL},
    {"scan_set", scan_set, NULL},
    {"scan_activations", scan_activations, NULL},
    {"scan_count", scan_count, NULL},
    {"scan_counted", scan_counted, NULL},
    {"scan_goes_on", scan_goes_on, NULL},
    {"scan_unit", scan_unit, NULL},
    {"scan_cell", scan_cell, NULL},
    {"scan_cost", scan_cost, NULL},
    {"scan_policy", scan_policy, NULL},
    {"scan_training", scan_training, NULL},
    {0},
};
