-- F.attention with a mask or with dropout: made of products and a softmax, which keep all scores.
-- Without them it is the operation, which keeps none. Neither those products nor the operation have scales.
local core = require "mp.core"
local layer = require "mp.layer"
local strict = require "mp.strict"
local fn, engine = core.fn, core.engine

local whole = fn.attention
local takes = "q, k, v [, { causal, scale, mask, dropout, training }]"
local known = { causal = "boolean", scale = "number", mask = "userdata", dropout = "number",
    training = "boolean" }

-- As uint8, 1 where a query may see a key: what the mask leaves, and causal attention.
local function allowed_by(mask, causal, queries, keys)
    local allowed
    if mask then allowed = mask:dtype() == "uint8" and mask or fn.greater(mask, -math.huge) end
    if not causal then return allowed end
    local rows, columns = core.arange(queries):reshape(queries, 1), core.arange(keys)
    local before = fn.less(columns, rows + 1)
    return allowed and allowed * before or before
end

local function check_mask(mask, shape, keys)
    if not mask then return end
    layer.tensor("attention", "mask", mask)
    local format, own = mask:dtype(), mask:shape()
    if format == "int32" then
        engine.fail("attention: mask is int32: uint8 (1 where a key is seen) or numbers to add, in a "
            .. "floating format, expected")
    end
    local wanted = { shape[1], shape[3], shape[2], keys }
    for i = 0, #own - 1 do
        local size = own[#own - i]
        if #own > 4 or (size ~= 1 and size ~= wanted[4 - i]) then
            engine.fail(("attention: mask has shape [%s], what can be repeated to [%s] is wanted: "
                .. "batch, heads, queries, keys"):format(table.concat(own, ","),
                table.concat(wanted, ",")))
        end
    end
end

-- A row that sees no key gives zeros, and gradients of 0.
local function made_of_parts(q, k, v, options)
    local shape, keys = q:shape(), k:shape()[2]
    check_mask(options.mask, shape, keys)
    local scale = options.scale or 1 / math.sqrt(shape[4])
    local scores = fn.matmul(q:permute(1, 3, 2, 4) * scale, k:permute(1, 3, 4, 2))
    if scores:dtype() ~= "fp64" then scores = scores:to "fp32" end
    local mask = options.mask
    local allowed = allowed_by(mask, options.causal, shape[2], keys)
    -- In what the scores are in, whatever the precision makes of the rest, as one kernel has it.
    local shares = core.autocast(false, function()
        if mask and mask:dtype() ~= "uint8" then scores = scores + mask end
        if allowed then scores = fn.where(allowed, scores, -1e30) end
        local all = fn.softmax(scores)
        return allowed and fn.where(allowed, all, 0) or all
    end)
    if options.dropout then shares = fn.dropout(shares, options.dropout, options.training) end
    return fn.matmul(shares:to(v:dtype()), v:permute(1, 3, 2, 4)):permute(1, 3, 2, 4)
end

fn.attention = strict.declare("F.", "attention", takes, function(q, k, v, options)
    if options == nil or (options.mask == nil and (options.dropout or 0) == 0) then
        return whole(q, k, v, options and { causal = options.causal, scale = options.scale })
    end
    strict.check(options, "attention", known)
    for name, x in pairs { q = q, k = k, v = v } do
        if #layer.tensor("attention", name, x):shape() ~= 4 then
            engine.fail(("attention: %s has shape [%s], [batch,time,heads,depth] is wanted"):format(
                name, table.concat(x:shape(), ",")))
        end
    end
    return engine.unscaled(made_of_parts, q, k, v, options)
end)
engine.add_method("attention", fn.attention)

return fn.attention
