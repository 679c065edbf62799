// math.random, by xoshiro256** (Blackman and Vigna): small, good, and the same on every machine.
#include <lauxlib.h>
#include <string.h>

#include "lua/vm_private.h"

// SplitMix64: spreads a seed over the state, so that near seeds give unlike sequences.
static uint64_t spread(uint64_t *seed) {
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void fill(LuaVm *vm, uint64_t seed) {
    for (int i = 0; i < 4; i++)
        vm->random[i] = spread(&seed);
}

void lua_vm_seed(LuaVm *vm, uint64_t seed) {
    vm->seed = seed;
    fill(vm, seed);
}

void lua_vm_random_state(const LuaVm *vm, uint64_t state[4]) {
    memcpy(state, vm->random, sizeof vm->random);
}

void lua_vm_set_random_state(LuaVm *vm, const uint64_t state[4]) {
    memcpy(vm->random, state, sizeof vm->random);
}

static uint64_t rotate(uint64_t x, int n) {
    return x << n | x >> (64 - n);
}

static uint64_t next(uint64_t s[4]) {
    uint64_t result = rotate(s[1] * 5, 7) * 9, shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

// Every number from 0 to last is as likely: those that the mask lets through beyond it are redrawn.
static uint64_t up_to(uint64_t s[4], uint64_t last) {
    uint64_t mask = last, drawn;
    for (int shift = 1; shift < 64; shift *= 2)
        mask |= mask >> shift;
    do
        drawn = next(s) & mask;
    while (drawn > last);
    return drawn;
}

// random() in [0,1), random(0) any integer, random(n) in [1,n], random(m, n) in [m,n].
static int draw(lua_State *L) {
    uint64_t *s = lua_vm_of(L)->random;
    int count = lua_gettop(L);
    if (count == 0) {
        lua_pushnumber(L, (lua_Number)(next(s) >> 11) * 0x1p-53);
        return 1;
    }
    if (count > 2)
        return luaL_error(L, "math.random takes none, one or two numbers, not %d", count);
    lua_Integer first = count == 1 ? 1 : luaL_checkinteger(L, 1);
    lua_Integer last = luaL_checkinteger(L, count);
    if (count == 1 && last == 0) {
        lua_pushinteger(L, (lua_Integer)next(s));
        return 1;
    }
    luaL_argcheck(L, first <= last, count, "interval is empty");
    lua_pushinteger(L, (lua_Integer)((uint64_t)first + up_to(s, (uint64_t)last - (uint64_t)first)));
    return 1;
}

// randomseed(a [, b]) starts another sequence; without a number the run's own starts again, as
// nothing in a run comes from the clock. Returns the two numbers, as Lua does.
static int seed_again(lua_State *L) {
    LuaVm *vm = lua_vm_of(L);
    uint64_t a = vm->seed, b = 0;
    if (!lua_isnone(L, 1)) {
        lua_Number number = luaL_checknumber(L, 1);
        int whole;
        a = (uint64_t)lua_tointegerx(L, 1, &whole);
        if (!whole)
            memcpy(&a, &number, sizeof a);
        b = (uint64_t)luaL_optinteger(L, 2, 0);
    }
    fill(vm, b ? a ^ spread(&b) : a);
    lua_pushinteger(L, (lua_Integer)a);
    lua_pushinteger(L, (lua_Integer)b);
    return 2;
}

void vm_random_open(lua_State *L) {
    lua_pushcfunction(L, draw);
    lua_setfield(L, -2, "random");
    lua_pushcfunction(L, seed_again);
    lua_setfield(L, -2, "randomseed");
}
