-- mp.memory: what the device's memory holds, and what a piece of work takes at most.
local core = require "mp.core"
local strict = require "mp.strict"
local engine = core.engine

-- The peaks of the run itself go on over a measurement, whether the work ends or fails.
local memory = strict.declare("mp.", "memory", "[f, ..]", function(f, ...)
    if f == nil then return engine.memory_now() end
    local mark = engine.memory_begin()
    local results = table.pack(pcall(f, ...))
    local most = engine.memory_end(mark)
    if not results[1] then error(results[2], 0) end
    return most, table.unpack(results, 2, results.n)
end)

return { memory = memory }
