-- mp.calling: calls functions of an experiment. Errors name their line by what is noted here, where one
-- ended in a call of ours, as in `return F.mse(..)`, and left no other trace (lua/vm.h).
local core = require "mp.core"
local now = core.engine.calling

local public = {}

local function over(...)
    now[1] = nil
    return ...
end

-- f(..), the function that the experiment has as `field`.
function public.call(field, f, ...)
    now[1], now[2] = f, field
    return over(f(...))
end

-- The same, inside autocast.
function public.autocast(field, f, ...)
    now[1], now[2] = f, field
    return over(core.autocast(f, ...))
end

return public
