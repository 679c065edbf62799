// What optimizers are made from: the table of their options, schedules, groups of parameters.
#include <math.h>
#include <string.h>

#include "lua/bind/bind.h"

// What lua/mp/optim.lua makes of a schedule, at `at`. One without a kind would be constant unasked.
Schedule bind_schedule(lua_State *L, const char *function, int at, double rate) {
    static const char *const fields[] = {"kind",  "start", "warmup", "total",
                                         "floor", "every", "factor", NULL};
    Error error = {0};
    Schedule schedule = {.kind = SCHEDULE_CONSTANT, .rate = rate};
    if (!lua_istable(L, at))
        bind_error(L,
                   "%s: schedule: a table expected, got %s; mp.optim.schedule.cosine and others "
                   "make one",
                   function, luaL_typename(L, at));
    bind_known_fields(L, "schedule", at, fields);
    const char *kind = bind_field_text(L, function, at, "kind");
    if (!kind)
        bind_error(L, "%s: schedule.kind is missing; mp.optim.schedule.cosine and others set it",
                   function);
    BIND_DONE(L, schedule_kind_parse(kind, &schedule.kind, &error), &error);
    schedule.start = bind_field_number(L, function, at, "start", 0);
    schedule.warmup = bind_field_number(L, function, at, "warmup", 0);
    schedule.total = bind_field_number(L, function, at, "total", 0);
    schedule.floor = bind_field_number(L, function, at, "floor", 0);
    schedule.every = bind_field_number(L, function, at, "every", 1);
    schedule.factor = bind_field_number(L, function, at, "factor", 1);
    return schedule;
}

// ---- options ------------------------------------------------------------------------------------

// Reads the value on top of the stack.
typedef void OptionReader(lua_State *L, const char *name, const char *field,
                          OptimizerOptions *options);

static double number_on_top(lua_State *L, const char *name, const char *field) {
    int is_number;
    double value = lua_tonumberx(L, -1, &is_number);
    if (!is_number)
        bind_error(L, "%s: %s: a number expected, got %s", name, field, bind_what_is(L, -1));
    return value;
}

static bool boolean_on_top(lua_State *L, const char *name, const char *field) {
    if (!lua_isboolean(L, -1))
        bind_error(L, "%s: %s: true or false expected, got %s", name, field, bind_what_is(L, -1));
    return lua_toboolean(L, -1);
}

#define READS_NUMBER(member)                                                     \
    static void read_##member(lua_State *L, const char *name, const char *field, \
                              OptimizerOptions *options) {                       \
        options->member = number_on_top(L, name, field);                         \
    }
#define READS_BOOLEAN(member)                                                    \
    static void read_##member(lua_State *L, const char *name, const char *field, \
                              OptimizerOptions *options) {                       \
        options->member = boolean_on_top(L, name, field);                        \
    }
READS_NUMBER(weight_decay)
READS_NUMBER(momentum)
READS_NUMBER(epsilon)
READS_NUMBER(max_grad_norm)
READS_BOOLEAN(nesterov)
READS_BOOLEAN(bias_correction)
READS_BOOLEAN(stochastic)

static void read_lr(lua_State *L, const char *name, const char *field, OptimizerOptions *options) {
    options->schedule.rate = number_on_top(L, name, field);
}

static void read_schedule(lua_State *L, const char *name, const char *field,
                          OptimizerOptions *options) {
    (void)field;
    options->schedule = bind_schedule(L, name, lua_gettop(L), options->schedule.rate);
}

static void read_betas(lua_State *L, const char *name, const char *field,
                       OptimizerOptions *options) {
    double *const betas[2] = {&options->beta1, &options->beta2};
    bool are_two = lua_istable(L, -1) && bind_list(L, name, -1) == 2;
    for (int i = 0; are_two && i < 2; i++) {
        int is_number;
        lua_rawgeti(L, -1, i + 1);
        *betas[i] = lua_tonumberx(L, -1, &is_number);
        lua_pop(L, 1);
        are_two = is_number;
    }
    if (!are_two)
        bind_error(L, "%s: %s: two numbers expected, as in {0.9, 0.999}", name, field);
}

static void read_grads(lua_State *L, const char *name, const char *field,
                       OptimizerOptions *options) {
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    if (strcmp(text, "fp32") != 0 && strcmp(text, "layer") != 0)
        bind_error(L, "%s: %s: \"layer\" (rounded to the layer's format) or \"fp32\" expected",
                   name, field);
    options->full_gradients = strcmp(text, "fp32") == 0;
}

enum {
    SGD = 1 << OPTIMIZER_SGD,
    MOMENTS = 1 << OPTIMIZER_ADAM | 1 << OPTIMIZER_ADAMW | 1 << OPTIMIZER_LAMB,
    ALL = SGD | MOMENTS
};

// All there are, and which optimizers have them; the rate before its schedule.
static const struct Option {
    const char *name;
    unsigned kinds;
    OptionReader *read;
} option_table[] = {
    {"lr", ALL, read_lr},
    {"schedule", ALL, read_schedule},
    {"momentum", SGD, read_momentum},
    {"nesterov", SGD, read_nesterov},
    {"betas", MOMENTS, read_betas},
    {"eps", MOMENTS, read_epsilon},
    {"bias_correction", MOMENTS, read_bias_correction},
    {"weight_decay", ALL, read_weight_decay},
    {"max_grad_norm", ALL, read_max_grad_norm},
    {"grads", ALL, read_grads},
    {"stochastic", ALL, read_stochastic},
};
enum { OPTIONS = sizeof option_table / sizeof *option_table };

// An option of another optimizer is told to be that.
static void check_names(lua_State *L, const char *name, OptimizerKind kind) {
    const char *known[OPTIONS + 1] = {NULL};
    int count = 0;
    for (int i = 0; i < OPTIONS; i++) {
        const struct Option *option = &option_table[i];
        if (option->kinds >> kind & 1) {
            known[count++] = option->name;
            continue;
        }
        lua_pushstring(L, option->name);
        if (lua_istable(L, 2) && lua_rawget(L, 2) != LUA_TNIL)
            bind_error(L, "%s: no option %s, which is one of %s", name, option->name,
                       option->kinds == SGD ? "SGD" : "Adam, AdamW and LAMB");
        lua_settop(L, 2);
    }
    bind_known_fields(L, name, 2, known);
}

// Options in their place are taken for a list of nothing: that is told before what they lack.
static void check_parameters(lua_State *L, const char *name) {
    static const char expected[] = "a list of tensors or of groups";
    if (!lua_istable(L, 1))
        bind_argument_error(L, name, 1, "parameters", expected);
    const char *class = lua_vm_class_of(L, 1);
    if (class[0])
        bind_error(
            L,
            "%s: argument 1 (parameters): %s expected, got the module %s: pass its :parameters()",
            name, expected, class);
    lua_pushnil(L);
    if (lua_rawlen(L, 1) == 0 && lua_next(L, 1) != 0)
        bind_error(L,
                   "%s: argument 1 (parameters): %s expected, as in %s(model:parameters(), {..}); "
                   "got a table with [%.60s]",
                   name, expected, name, luaL_tolstring(L, -2, NULL));
    lua_settop(L, 2);
}

void bind_optimizer_options(lua_State *L, OptimizerOptions *options) {
    const char *name = optimizer_kind_name(options->kind);
    check_parameters(L, name);
    check_names(L, name, options->kind);
    bool has_rate = false;
    for (int i = 0; lua_istable(L, 2) && i < OPTIONS; i++) {
        lua_pushstring(L, option_table[i].name);
        if (lua_rawget(L, 2) != LUA_TNIL) {
            option_table[i].read(L, name, option_table[i].name, options);
            has_rate = has_rate || option_table[i].read == read_lr;
        }
        lua_settop(L, 2);
    }
    if (!has_rate)
        bind_error(L, "%s: lr: a learning rate is needed, as in {lr = 1e-3}", name);
}

// ---- groups -------------------------------------------------------------------------------------

// A group's rate is kept as a multiple of the base rate, which a schedule moves. Where that is 0
// the largest of the groups' own takes its place.
static void settle_rates(OptimizerOptions *options, OptimizerGroup *groups, const double *rates,
                         int count) {
    double *base = &options->schedule.rate;
    for (int i = 0, own = *base == 0; own && i < count; i++)
        *base = fabs(rates[i]) > fabs(*base) ? rates[i] : *base;
    for (int i = 0; i < count; i++)
        groups[i].lr_factor = *base != 0 ? rates[i] / *base : 1;
}

// Groups come as {params = list, lr =, weight_decay =}; a plain list of tensors is one group. What
// the groups point to stays on the stack.
int bind_optimizer_groups(lua_State *L, OptimizerOptions *options, OptimizerGroup *groups) {
    const char *name = optimizer_kind_name(options->kind);
    static const char *const known[] = {"params", "lr", "weight_decay", NULL};
    double rates[BIND_MOST_GROUPS];
    lua_rawgeti(L, 1, 1);
    bool grouped = lua_istable(L, -1);
    lua_pop(L, 1);
    if (!grouped) {
        groups[0].parameters = bind_push_tensor_list(L, name, 1, &groups[0].count);
        groups[0].lr_factor = 1;
        groups[0].weight_decay = options->weight_decay;
        return 1;
    }
    lua_Integer count = bind_list(L, name, 1);
    if (count > BIND_MOST_GROUPS)
        bind_error(L, "%s: %lld groups: at most %d are possible", name, (long long)count,
                   BIND_MOST_GROUPS);
    luaL_checkstack(L, (int)count * 3 + 8, name);
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, 1, i + 1);
        int group = lua_gettop(L);
        bind_known_fields(L, name, group, known);
        rates[i] = bind_field_number(L, name, group, "lr", options->schedule.rate);
        groups[i].weight_decay =
            bind_field_number(L, name, group, "weight_decay", options->weight_decay);
        bind_push_field(L, group, "params");
        groups[i].parameters = bind_push_tensor_list(L, name, -1, &groups[i].count);
    }
    settle_rates(options, groups, rates, (int)count);
    return (int)count;
}
