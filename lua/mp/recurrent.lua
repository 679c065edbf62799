-- Recurrent cells and layers: RNN, LSTM and GRU over [B,T,in].
--
-- The products of all inputs are taken at once, those of the state step by step. What an LSTM
-- remembers is kept in fp32 whatever format the products have.
local core = require "mp.core"
local fn = core.fn
local layer = require "mp.layer"
local module = require "mp.module"
local engine = core.engine

local recurrent = {}

-- ---- one step -------------------------------------------------------------------------------------

-- Of `count` gates beside each other: in twos or threes, whose gradients are joined in one go.
local function gates(x, count)
    if count < 4 then return x:chunk(count, 2) end
    local first, second = x:chunk(2, 2)
    local a, b = first:chunk(2, 2)
    return a, b, second:chunk(2, 2)
end

-- Each is given what the input and the state give, and the state; gives the state after.
local steps = {}

function steps.RNN(self, from_input, from_state)
    return self._nonlinearity(from_input + from_state)
end

function steps.LSTM(_, from_input, from_state, _, c)
    local i, f, g, o = gates(from_input + from_state, 4)
    c = fn.sigmoid(f) * c + fn.sigmoid(i) * fn.tanh(g)
    return (fn.sigmoid(o) * fn.tanh(c)):to(from_input:dtype()), c
end

function steps.GRU(_, from_input, from_state, h)
    local ri, zi, ni = gates(from_input, 3)
    local rh, zh, nh = gates(from_state, 3)
    local n = fn.tanh(ni + fn.sigmoid(ri + rh) * nh)
    return n + fn.sigmoid(zi + zh) * (h:to(n:dtype()) - n)
end

local gate_counts = { RNN = 1, LSTM = 4, GRU = 3 }

-- ---- cells ----------------------------------------------------------------------------------------

local function parameters(self, kind, inputs, hidden, bias)
    local rows, bound = gate_counts[kind] * hidden, 1 / math.sqrt(hidden)
    self.weight_ih = layer.uniform(bound, "weight_ih", rows, inputs)
    self.weight_hh = layer.uniform(bound, "weight_hh", rows, hidden)
    if bias ~= false then
        self.bias_ih = layer.uniform(bound, "bias_ih", rows)
        self.bias_hh = layer.uniform(bound, "bias_hh", rows)
    end
end

local function nonlinearity_of(title, options)
    local name = options.nonlinearity or "tanh"
    if name ~= "tanh" and name ~= "relu" then
        engine.fail(("%s: nonlinearity: tanh or relu expected, got %q"):format(title, name))
    end
    return fn[name]
end

local function from_state(self, h) return fn.linear(h, self.weight_hh, self.bias_hh) end
local function from_input(self, x) return fn.linear(x, self.weight_ih, self.bias_ih) end

local function check_state(title, name, state, shape)
    layer.tensor(title, name, state)
    if table.concat(state:shape(), ",") ~= table.concat(shape, ",") then
        engine.fail(("%s: %s has shape [%s], [%s] is wanted"):format(title, name,
            table.concat(state:shape(), ","), table.concat(shape, ",")))
    end
    return state
end

local function zeros(_, _, shape) return core.zeros(shape) end

local cells = {}
for kind, step in pairs(steps) do
    local title = kind .. "Cell"
    local own = kind == "RNN" and ", nonlinearity = \"tanh\"" or ""
    local class = module.declared_class(title, ("in, hidden [, { bias = true%s }]"):format(own))
    class._kind = "cell"
    class._takes_more = true
    local known = { bias = "boolean", nonlinearity = kind == "RNN" and "string" or nil }

    function class:init(inputs, hidden, options)
        layer.positive(title, "in", inputs)
        layer.positive(title, "hidden", hidden)
        options = layer.options_of(title, options, known)
        if kind == "RNN" then self._nonlinearity = nonlinearity_of(title, options) end
        self._inputs, self._hidden = inputs, hidden
        parameters(self, kind, inputs, hidden, options.bias)
    end

    -- x [B,in] and the state, zeros where there is none; LSTM has a second, c.
    function class:forward(x, h, c)
        local shape = layer.tensor(title, "x", x):shape()
        if #shape ~= 2 or shape[2] ~= self._inputs then
            engine.fail(("%s: input has shape [%s], [B,%d] is wanted"):format(title,
                table.concat(shape, ","), self._inputs))
        end
        local state = { shape[1], self._hidden }
        h = (h and check_state or zeros)(title, "h", h or state, h and state or state)
        if kind == "LSTM" then
            c = (c and check_state or zeros)(title, "c", c or state, state)
        end
        return step(self, from_input(self, x), from_state(self, h), h, c)
    end
    cells[kind], recurrent[title] = class, class
end

-- ---- sequences ------------------------------------------------------------------------------------

-- The steps of [B,T,n] as a list of [B,n], halved again and again: a gradient is joined from halves.
local function steps_of(x, list)
    local shape = x:shape()
    local length = shape[2]
    if length == 1 then
        list[#list + 1] = x:reshape(shape[1], shape[3])
    elseif length % 2 == 0 then
        for _, part in ipairs { x:chunk(2, 2) } do steps_of(part, list) end
    else
        steps_of(x:slice(2, 1, 1), list)
        steps_of(x:slice(2, 2, length), list)
    end
    return list
end

-- A list of [B,n] as [B,T,n], joined by sixteens so that nothing is copied often.
local function joined(list)
    local most, parts = 16, {}
    for i, h in ipairs(list) do
        local shape = h:shape()
        parts[i] = h:reshape(shape[1], 1, shape[2])
    end
    while #parts > 1 do
        local fewer = {}
        for first = 1, #parts, most do
            fewer[#fewer + 1] = fn.cat(table.move(parts, first, math.min(first + most - 1, #parts),
                1, {}), 2)
        end
        parts = fewer
    end
    return parts[1]
end

-- One layer in one direction: its outputs, and its last state.
local function walk(cell, step, x, backwards, h, c)
    local inputs, outputs = steps_of(from_input(cell, x), {}), {}
    local first, last, by = 1, #inputs, 1
    if backwards then first, last, by = last, first, -1 end
    for t = first, last, by do
        h, c = step(cell, inputs[t], from_state(cell, h), h, c)
        outputs[t] = h
    end
    return joined(outputs), h, c
end

local most_layers = 1024 -- more would take minutes to make, and never train

for kind, step in pairs(steps) do
    local own = kind == "RNN" and ", nonlinearity = \"tanh\"" or ""
    local class = module.declared_class(kind, ("in, hidden [, { num_layers = 1, bias = true, "
        .. "dropout = 0, bidirectional = false%s }]"):format(own))
    class._kind = kind:lower()
    class._takes_more = true
    local known = { num_layers = "number", bias = "boolean", dropout = "number",
        bidirectional = "boolean", nonlinearity = kind == "RNN" and "string" or nil }

    function class:init(inputs, hidden, options)
        layer.positive(kind, "in", inputs)
        layer.positive(kind, "hidden", hidden)
        options = layer.options_of(kind, options, known)
        self._count = layer.positive(kind, "num_layers", options.num_layers or 1)
        if self._count > most_layers then
            engine.fail(("%s: num_layers: at most %d, got %d"):format(kind, most_layers, self._count))
        end
        self._directions = options.bidirectional and 2 or 1
        self._inputs, self._hidden, self._dropout = inputs, hidden, options.dropout or 0
        if not (self._dropout >= 0 and self._dropout < 1) then
            engine.fail(("%s: dropout is %g: from 0 to below 1 is possible"):format(kind,
                self._dropout))
        end
        for i = 0, self._count - 1 do
            local width = i == 0 and inputs or hidden * self._directions
            for direction = 1, self._directions do
                self[("l%d%s"):format(i, direction == 2 and "_reverse" or "")] =
                    cells[kind](width, hidden, { bias = options.bias,
                        nonlinearity = options.nonlinearity })
            end
        end
    end

    -- One state of [layers * directions, B, hidden] for each of those that are handed in.
    local function begin(self, name, state, batch)
        local count = self._count * self._directions
        local list = {}
        if state then check_state(kind, name, state, { count, batch, self._hidden }) end
        for i = 1, count do
            list[i] = state and state[i] or core.zeros(batch, self._hidden)
        end
        return list
    end

    function class:forward(x, h, c)
        local shape = layer.tensor(kind, "x", x):shape()
        if #shape ~= 3 or shape[2] == 0 or shape[3] ~= self._inputs then
            engine.fail(("%s: input has shape [%s], [B,T,%d] is wanted"):format(kind,
                table.concat(shape, ","), self._inputs))
        end
        local hs = begin(self, "h", h, shape[1])
        local cs = kind == "LSTM" and begin(self, "c", c, shape[1]) or {}
        for i = 0, self._count - 1 do
            local sides = {}
            for direction = 1, self._directions do
                local at = i * self._directions + direction
                local cell = self[("l%d%s"):format(i, direction == 2 and "_reverse" or "")]
                local _ <close> = engine.enter(cell._layer, cell.training)
                sides[direction], hs[at], cs[at] = walk(cell, step, x, direction == 2, hs[at], cs[at])
            end
            x = #sides == 2 and fn.cat(sides, 3) or sides[1]
            if self._dropout > 0 and i < self._count - 1 then
                x = fn.dropout(x, self._dropout, self.training)
            end
        end
        return x, fn.stack(hs), kind == "LSTM" and fn.stack(cs) or nil
    end
    recurrent[kind] = class
end

return recurrent
