-- mp.optim: the optimizers of C, schedules, and averages of weights.
local core = require "mp.core"
local module = require "mp.module"
local strict = require "mp.strict"
local optim = core.optim

-- A schedule is a table that says how the rate moves with applied steps; the optimizer takes it as
-- {lr = .., schedule = ..}, an experiment as schedule = ...
local schedule = {}
local first_share = 1 / 3 -- of the rate, that a warm-up begins at: as PyTorch's LinearLR does

local function declare(name, takes, f)
    schedule[name] = strict.declare("mp.optim.schedule.", name, takes, f)
end

declare("linear_warmup", "{ warmup, total, start = 1/3 }", function(options)
    options = options or {}
    strict.check(options, "linear_warmup",
        { start = "number", warmup = "number", total = "number" })
    return { kind = "linear_warmup", start = options.start or first_share,
             warmup = options.warmup or 0, total = options.total or 0 }
end)

declare("cosine", "{ warmup, total, start, floor }", function(options)
    options = options or {}
    strict.check(options, "cosine",
        { start = "number", warmup = "number", total = "number", floor = "number" })
    return { kind = "cosine", start = options.start or first_share, warmup = options.warmup or 0,
             total = options.total or 0, floor = options.floor or 0 }
end)

declare("step", "{ every, factor = 0.1 }", function(options)
    options = options or {}
    strict.check(options, "step", { every = "number", factor = "number" })
    if not options.every then
        core.engine.fail("step.every: after how many steps the rate falls is needed, as in "
            .. "step { every = 1000 }")
    end
    return { kind = "step", every = options.every, factor = options.factor or 0.1 }
end)

-- What Apex calls them. Its Adam takes decay off the weights, as AdamW does, none unless it is asked.
optim.FusedSGD, optim.FusedLAMB = optim.SGD, optim.LAMB
optim.FusedAdam = strict.declare("mp.optim.", "FusedAdam", "params, options", function(params, options)
    if options ~= nil and type(options) ~= "table" then return optim.AdamW(params, options) end -- refuses it
    local own = { weight_decay = 0 }
    for name, value in next, options or {} do own[name] = value end
    return optim.AdamW(params, own)
end)

optim.schedule = strict.seal(schedule, "mp.optim.schedule")

-- A running average of a model's weights. `average:with(f)` calls f while the model holds it.
local average_of = optim.average
optim.average = nil

local Average = { __metatable = "mp.optim.average" }
Average.__index = Average

local function is_average(value) return getmetatable(value) == Average.__metatable end

optim.EMA = strict.declare("mp.optim.", "EMA", "model, decay", function(model, decay)
    if not module.is_module(model) then
        core.engine.fail(("EMA: model: a module expected, got %s"):format(strict.shown(model)))
    end
    return setmetatable({ inner = average_of(model:parameters(), decay) }, Average)
end)

Average.update = strict.declare("average:", "update", "[opt]", function(self, optimizer)
    self.inner:update(optimizer)
end, is_average)

Average.with = strict.declare("average:", "with", "f, ..", function(self, f, ...)
    self.inner:swap()
    local results = table.pack(pcall(f, ...))
    self.inner:swap()
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
end, is_average)

return optim
