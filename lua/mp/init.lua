-- The module `mp`, as scripts get it: the C half (mp.core) with layers, optimizers and experiments
-- put on top. What only this half may call (core.engine) is left out.
local core = require "mp.core"

local mp = {}
for name, value in pairs(core) do
    if name ~= "engine" then mp[name] = value end
end
mp.nn = require "mp.nn"
mp.fn = require "mp.functions"
mp.optim = require "mp.optim"
mp.custom = require "mp.custom"
mp.gradcheck = require("mp.gradcheck").gradcheck
mp.memory = require("mp.measure").memory
mp.class = require("mp.class").class
mp.experiment = require("mp.experiment").experiment

local strict = require "mp.strict"
strict.seal(mp.nn, "mp.nn")
strict.seal(mp.fn, "mp.fn")
strict.seal(mp.optim, "mp.optim")
strict.seal(mp.data, "mp.data")
return strict.seal(mp, "mp", { func = "fn", functional = "fn", functions = "fn", F = "fn", layers = "nn",
    modules = "nn", optimizer = "optim", optimizers = "optim", dataset = "data", datasets = "data" })
