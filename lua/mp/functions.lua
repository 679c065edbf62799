-- mp.fn: the operations as functions. Those of ops.def come from C; these are made of them.
local core = require "mp.core"
local fn = core.fn

-- stack(list [, dim]): joins tensors of one shape along a new dimension.
function fn.stack(list, dim)
    dim = dim or 1
    local widened = {}
    for i, t in ipairs(list) do
        local shape = t:shape()
        if dim < 1 or dim > #shape + 1 then
            core.engine.fail(("stack: dimension %d: from 1 to %d is possible"):format(dim, #shape + 1))
        end
        table.insert(shape, dim, 1)
        widened[i] = t:reshape(shape)
    end
    return fn.cat(widened, dim)
end

-- flatten(x): everything but the first dimension in one.
function fn.flatten(x)
    return x:reshape(#x, -1)
end

return fn
