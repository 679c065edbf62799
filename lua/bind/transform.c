// The options of a loader that say how samples are changed on their way into a batch.
#include "lua/bind/transform.h"

#include "lua/bind/bind.h"

// A number, or one a channel, of field `name` of the table at `index`; how many, 0 where there is
// none.
static int read_channels(lua_State *L, const char *function, int index, const char *name,
                         float *values) {
    int count = 0;
    int type = bind_push_field(L, index, name);
    if (type == LUA_TNUMBER) {
        values[count++] = (float)lua_tonumber(L, -1);
    } else if (type == LUA_TTABLE) {
        lua_Integer length = bind_list(L, function, lua_gettop(L));
        if (length < 1 || length > TRANSFORM_CHANNELS)
            bind_error(L, "%s: transform: %s: from 1 to %d channels are possible, not %lld",
                       function, name, TRANSFORM_CHANNELS, (long long)length);
        for (lua_Integer i = 1; i <= length; i++) {
            lua_rawgeti(L, -1, i);
            if (lua_type(L, -1) != LUA_TNUMBER)
                bind_error(L, "%s: transform: %s[%lld]: a number expected, got %s", function, name,
                           (long long)i, bind_what_is(L, -1));
            values[count++] = (float)lua_tonumber(L, -1);
            lua_pop(L, 1);
        }
    } else if (type != LUA_TNIL) {
        bind_error(L, "%s: transform: %s: a number or a list of them expected, got %s", function,
                   name, bind_what_is(L, -1));
    }
    lua_pop(L, 1);
    return count;
}

// mean and std together: of one that is missing, what changes nothing.
static void read_means(lua_State *L, const char *function, int index, Transform *transform) {
    int means = read_channels(L, function, index, "mean", transform->mean);
    int deviations = read_channels(L, function, index, "std", transform->deviation);
    transform->has_mean = means > 0 || deviations > 0;
    transform->channels = means > deviations ? means : deviations;
    if (means > 1 && deviations > 1 && means != deviations)
        bind_error(L, "%s: transform: mean has %d channels and std %d", function, means,
                   deviations);
    for (int i = means; i < transform->channels; i++)
        transform->mean[i] = means ? transform->mean[0] : 0;
    for (int i = deviations; i < transform->channels; i++)
        transform->deviation[i] = deviations ? transform->deviation[0] : 1;
}

// flip: true is half of all.
static double read_flip(lua_State *L, const char *function, int index) {
    double flip = 0;
    int type = bind_push_field(L, index, "flip");
    if (type == LUA_TBOOLEAN)
        flip = lua_toboolean(L, -1) ? 0.5 : 0;
    else if (type == LUA_TNUMBER)
        flip = lua_tonumber(L, -1);
    else if (type != LUA_TNIL)
        bind_error(L, "%s: transform: flip: true or a probability expected, got %s", function,
                   bind_what_is(L, -1));
    lua_pop(L, 1);
    return flip;
}

Transform bind_transform(lua_State *L, const char *function, int index) {
    static const char *const known[] = {"flip", "crop", "noise", "mean", "std", NULL};
    Transform transform = {0};
    int type = bind_push_field(L, index, "transform");
    if (type == LUA_TTABLE) {
        int table = lua_gettop(L);
        bind_known_fields(L, function, table, known);
        transform.flip = read_flip(L, function, table);
        transform.crop = bind_field_integer(L, function, table, "crop", 0);
        transform.noise = bind_field_number(L, function, table, "noise", 0);
        read_means(L, function, table, &transform);
    } else if (type != LUA_TNIL) {
        bind_error(L, "%s: transform: a table expected, as in { flip = true, crop = 4 }; got %s",
                   function, bind_what_is(L, -1));
    }
    lua_pop(L, 1);
    return transform;
}
