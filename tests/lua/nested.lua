-- Modules and parameters in tables below a module's fields, however deep.
local mp = require "mp"
local testing = require "testing"
local nn, test, equal = mp.nn, testing.test, testing.equal

local function names_of(net)
    local names = {}
    for name in net:named_parameters() do names[#names + 1] = name end
    return names
end

local Deep = nn.class "Deep"
function Deep:init()
    self.first = nn.Linear(2, 2, { bias = false })
    self.blocks = { { down = nn.Linear(2, 3, { bias = false }), side = { { nn.Dropout(0.5) } } },
        { down = nn.Linear(3, 2, { bias = false }) } }
    self.scales = { { nn.Parameter(mp.ones(2)), nn.Parameter(mp.ones(3)) } }
    self.seen = { means = { mp.zeros(2) } }
end
function Deep:forward(x)
    x = self.first(x) * self.scales[1][1]
    x = self.blocks[1].side[1][1](self.blocks[1].down(x) * self.scales[1][2])
    return self.blocks[2].down(x)
end

return mp.experiment { name = "nested", precision = "bf16", run = function(run)
    test("parameters_are_found_at_any_depth", function()
        local net = Deep()
        equal(names_of(net), { "scales.1.1", "scales.1.2", "first.weight", "blocks.1.down.weight",
            "blocks.2.down.weight" })
        equal(#net:parameters(), 5)
    end)

    test("what_is_found_is_trained_and_registered", function()
        local net = run:model(Deep(), "D")
        net:find "blocks.1.*":precision "fp32"
        local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })
        local before = {}
        for i, p in ipairs(net:parameters()) do before[i] = p:clone() end
        net:eval()
        net(mp.ones(1, 2)):sum():backward()
        opt:step()
        for i, p in ipairs(net:parameters()) do
            assert((p - before[i]):abs():sum():item() > 0, i)
        end
        local found = {}
        for _, layer in ipairs(mp.policy().layers) do found[layer.name] = layer.precision end
        equal(found["D.blocks.1.down"], "fp32")
        equal(found["D.blocks.2.down"], "auto")
    end)

    test("modes_reach_what_is_nested", function()
        local net = Deep():eval()
        local dropout = net.blocks[1].side[1][1]
        equal({ net.training, dropout.training }, { false, false })
        net:train()
        equal({ net.training, dropout.training }, { true, true })
    end)

    test("cycles_and_shared_tables_end", function()
        local Node = nn.class "Node"
        local a, b = Node(), Node()
        a.inner, b.inner = nn.Linear(1, 1), nn.Linear(1, 2)
        a.other, b.other = b, { { a } }
        local loop = {}
        loop.loop, loop.layer = loop, nn.Linear(2, 1)
        a.loop = loop
        a.again = loop
        a.cache = { [b] = true, [1.5] = "text", [true] = b }
        equal(#a:parameters(), 6)
        equal(names_of(a), { "other.inner.weight", "other.inner.bias", "inner.weight", "inner.bias",
            "loop.layer.weight", "loop.layer.bias" })
        a:eval()
        equal({ a.training, b.training, loop.layer.training }, { false, false, false })
        assert(#tostring(b) > 0)
        run:model(b, "B")
    end)

    test("a_field_that_is_set_anew_counts_once", function()
        local Node = nn.class "Node"
        local node = Node()
        for _ = 1, 3 do
            node.weight = nil
            node.weight = nn.Parameter(mp.ones(1))
        end
        equal(names_of(node), { "weight" })
    end)
end }
