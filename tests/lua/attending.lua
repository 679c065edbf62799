-- Attention with masks and dropout, and recurrent layers.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, near, fails =
    mp.nn, mp.fn, testing.test, testing.equal, testing.near, testing.fails

return mp.experiment { name = "attending", run = function(run)
    local exact = run.device:find("ref", 1, true) ~= nil
    local function slopes(f, ...) testing.slopes(mp, exact, f, ...) end
    local function parts() return mp.randn(2, 5, 3, 4), mp.randn(2, 5, 3, 4), mp.randn(2, 5, 3, 4) end

    local function triangle(above, below)
        local rows = {}
        for i = 1, 5 do
            rows[i] = {}
            for j = 1, 5 do rows[i][j] = j <= i and below or above end
        end
        return rows
    end

    test("a_mask_that_says_causal_is_causal_attention", function()
        local q, k, v = parts()
        local wanted = F.attention(q, k, v, { causal = true }):table()
        near(F.attention(q, k, v, { mask = mp.tensor(triangle(0, 1), "uint8") }):table(), wanted, 1e-5)
        near(F.attention(q, k, v, { mask = mp.tensor(triangle(-math.huge, 0)) }):table(), wanted, 1e-5)
        near(F.attention(q, k, v, { mask = mp.ones(1):to "uint8", causal = true }):table(), wanted, 1e-5)
    end)

    -- In tf32 the largest numbers of fp32 are infinite.
    test("what_a_query_does_not_see_is_not_multiplied_however_large_it_is", function()
        local largest, times = 0x1.fffffep127, 5
        local function finite(of, from, to)
            for time = from, to do
                for _, x in ipairs(of:table()[1][time][1]) do
                    if x ~= x or math.abs(x) == math.huge then error(("%g at time %d"):format(x, time)) end
                end
            end
        end
        local function numbers(large, of) -- at one time the largest; 0: at none
            local rows = {}
            for time = 1, times do
                rows[time] = { {} }
                for i = 1, 4 do rows[time][1][i] = time == large and largest or math.sin(7 * time + i + of) end
            end
            return mp.tensor { rows }:requires_grad(true)
        end
        local function with(...)
            local of = {}
            for i = 1, 3 do of[i] = numbers((select(i, ...)), i) end
            local y = mp.autocast("tf32", F.attention, of[1], of[2], of[3], { causal = true })
            y:sum():backward()
            return y:detach(), of[1]:grad(), of[2]:grad(), of[3]:grad()
        end
        finite((with(0, 0, times)), 1, times - 1)
        local _, dq = with(0, times, 0)
        finite(dq, 1, times - 1)
        local _, _, dk = with(1, 0, 0)
        finite(dk, 2, times)
    end)

    test("attention_of_products_has_no_scales_and_no_whole_numbers_either", function()
        local made = { parts() }
        local function seen(precision, options)
            local q, k, v = made[1]:detach():requires_grad(true), made[2], made[3]
            mp.seed(7) -- of what is dropped
            local y = mp.autocast(precision, F.attention, q, k, v, options)
            y:to("fp32"):sum():backward()
            return { y:to("fp32"):table(), q:grad():table() }, y:dtype()
        end
        for _, low in ipairs { "mxfp4", "fp8", "nvfp4" } do
            local _, kept = seen(low) -- the operation's own
            for _, options in ipairs { { mask = mp.ones(1):to "uint8" }, { dropout = 0.5 } } do
                equal((seen(low, options)), (seen(kept, options)))
            end
        end
    end)

    test("a_mask_that_is_added_moves_the_shares", function()
        local q, k, v = parts()
        local none = F.attention(q, k, v, { mask = mp.zeros(2, 1, 1, 5) }):table()
        near(none, F.attention(q, k, v):table(), 1e-5)
        local one = F.attention(q, k, v, { mask = mp.tensor { 100, 0, 0, 0, 0 } })
        near(one:table(), v:slice(2, 1, 1):expand(2, 5, 3, 4):table(), 1e-5)
    end)

    test("a_query_that_sees_nothing_gives_zeros_and_no_gradient", function()
        for _, mask in ipairs { mp.tensor({ { 0 }, { 1 }, { 1 }, { 1 }, { 1 } }, "uint8"),
            mp.tensor { { -math.huge }, { 0 }, { 0 }, { 0 }, { 0 } } } do
            local q, k, v = parts()
            q:requires_grad(true)
            local y = F.attention(q, k, v, { mask = mask })
            equal(y[1][1]:table(), mp.zeros(3, 4):table())
            y:sum():backward()
            equal(q:grad()[2][1]:table(), mp.zeros(3, 4):table())
        end
    end)

    test("attention_with_a_mask_has_gradients", function()
        local mask = mp.tensor(triangle(0, 1), "uint8")
        slopes(function(q, k, v) return F.attention(q, k, v, { mask = mask }) end, parts())
        slopes(function(q, k, v, m) return F.attention(q, k, v, { mask = m }) end, mp.randn(1, 3, 2, 2),
            mp.randn(1, 4, 2, 2), mp.randn(1, 4, 2, 2), mp.randn(3, 4))
    end)

    test("attention_drops_shares_while_training_alone", function()
        local q, k = parts()
        local v = mp.ones(2, 5, 3, 4)
        local kept, total = 0, 0
        for _ = 1, 20 do
            local y = F.attention(q, k, v, { dropout = 0.5 })
            kept, total = kept + y:sum():item(), total + 120
        end
        near(kept / total, 1, 0.15)
        near(F.attention(q, k, v, { dropout = 0.5, training = false }):table(), v:table(), 1e-5)
        local layer = run:model(nn.Attention(8, 2, { dropout = 0.5 }))
        local x = mp.randn(1, 4, 8)
        layer:eval()
        equal(layer(x):table(), layer(x):table())
        near(layer(x, mp.ones(4, 4):to "uint8"):table(), layer(x):table(), 1e-5)
        layer:train()
        local a, b = layer(x):sum():item(), layer(x):sum():item()
        assert(a ~= b, "nothing was dropped")
    end)

    test("what_is_no_mask_is_named", function()
        local q, k, v = parts()
        fails("mask is int32", F.attention, q, k, v, { mask = mp.ones(5):to "int32" })
        fails("mask has shape [4], what can be repeated to [2,3,5,5]", F.attention, q, k, v,
            { mask = mp.ones(4) })
        fails("dropout is 1", nn.Attention, 8, 2, { dropout = 1 })
    end)

    -- The equations, by hand, for one step of one hidden unit.
    local function sigmoid(x) return 1 / (1 + math.exp(-x)) end

    test("cells_compute_what_is_written_of_them", function()
        local x, h, c = mp.tensor { { 0.5 } }, mp.tensor { { -0.25 } }, mp.tensor { { 0.75 } }
        local w, u, b, d = { 0.3, -0.2, 0.9, 0.4 }, { 0.1, 0.7, -0.5, 0.2 }, { 0.05, 0.1, 0, -0.1 },
            { 0.02, -0.3, 0.2, 0.1 }
        local function set(cell, count)
            local function column(list)
                local rows = {}
                for i = 1, count do rows[i] = { list[i] } end
                return mp.tensor(rows)
            end
            cell.weight_ih:copy(column(w))
            cell.weight_hh:copy(column(u))
            cell.bias_ih:copy(column(b):reshape(count))
            cell.bias_hh:copy(column(d):reshape(count))
            return cell
        end
        local function gate(i) return w[i] * 0.5 + b[i] + u[i] * -0.25 + d[i] end
        local function tanh(v) return 2 * sigmoid(2 * v) - 1 end
        near(set(nn.RNNCell(1, 1), 1)(x, h):item(), tanh(gate(1)), 1e-6)
        local after, kept = set(nn.LSTMCell(1, 1), 4)(x, h, c)
        local c1 = sigmoid(gate(2)) * 0.75 + sigmoid(gate(1)) * tanh(gate(3))
        near(kept:item(), c1, 1e-6)
        near(after:item(), sigmoid(gate(4)) * tanh(c1), 1e-6)
        local r, z = sigmoid(gate(1)), sigmoid(gate(2))
        local n = tanh(w[3] * 0.5 + b[3] + r * (u[3] * -0.25 + d[3]))
        near(set(nn.GRUCell(1, 1), 3)(x, h):item(), (1 - z) * n + z * -0.25, 1e-6)
    end)

    test("a_layer_goes_step_by_step_as_its_cell_does", function()
        for _, kind in ipairs { "RNN", "LSTM", "GRU" } do
            local layer = nn[kind](3, 4)
            local x = mp.randn(2, 7, 3)
            local y, h, c = layer(x)
            local state, memory
            for t = 1, 7 do
                state, memory = layer.l0(x:slice(2, t, t):reshape(2, 3), state, memory)
                near(y:slice(2, t, t):reshape(2, 4):table(), state:table(), 1e-5, kind)
            end
            near(h:reshape(2, 4):table(), state:table(), 1e-5, kind)
            equal(c ~= nil, kind == "LSTM")
        end
    end)

    test("layers_go_both_ways_and_take_a_state", function()
        local layer = run:model(nn.GRU(3, 4, { num_layers = 2, bidirectional = true }), "both")
        local x = mp.randn(2, 5, 3)
        local y, h = layer(x)
        equal(y:shape(), { 2, 5, 8 })
        equal(h:shape(), { 4, 2, 4 })
        near(h[4]:table(), y:slice(2, 1, 1):slice(3, 5, 8):reshape(2, 4):table(), 1e-6)
        near(layer(x, mp.zeros(4, 2, 4)):table(), y:table(), 1e-6)
        equal(layer:find("l1_reverse")[1].weight_ih:shape(), { 12, 8 })
        fails("GRU: h has shape [2,2,4], [4,2,4] is wanted", layer, x, mp.zeros(2, 2, 4))
        fails("GRU: input has shape [2,3], [B,T,3] is wanted", layer, mp.zeros(2, 3))
        fails("GRU: input has shape [2,3,4], [B,T,3] is wanted", layer, mp.zeros(2, 3, 4))
        fails("nonlinearity: tanh or relu expected", nn.RNN, 1, 1, { nonlinearity = "gelu" })
    end)

    test("recurrent_layers_have_gradients_through_time", function()
        for _, kind in ipairs { "RNN", "LSTM", "GRU" } do
            local layer = nn[kind](2, 3)
            slopes(function(x, w, u)
                layer.l0.weight_ih, layer.l0.weight_hh = w, u
                for _, name in ipairs { "bias_ih", "bias_hh" } do
                    layer.l0[name] = layer.l0[name]:detach():to(x:dtype())
                end
                local state = mp.zeros(2, 3):to(x:dtype())
                local memory = kind == "LSTM" and state or nil
                local y = layer(x, state:reshape(1, 2, 3), memory and memory:reshape(1, 2, 3))
                return y
            end, mp.randn(2, 4, 2), layer.l0.weight_ih, layer.l0.weight_hh)
        end
    end)
end }
