-- Scalers and optimizers of one's own, on top of ours.
local mp = require "mp"
local testing = require "testing"
local nn, F = mp.nn, mp.fn
local test, equal, near, fails = testing.test, testing.equal, testing.near, testing.fails

local function weights(...) return nn.Parameter(mp.tensor { ... }) end

-- One step on a gradient of `slope` each, through a scaler.
local function step(scaler, optimizer, w, slope)
    optimizer:zero_grad()
    scaler:scale((w * slope):sum()):backward()
    scaler:step(optimizer)
    scaler:update()
end

-- Clips whatever it unscales, by itself.
local Clipping = mp.class("Clipping", mp.scaler)
function Clipping:init(rule, limit)
    Clipping.super.init(self, rule)
    self.limit, self.calls = limit, 0
end
function Clipping:unscale(optimizer)
    self.calls = self.calls + 1
    Clipping.super.unscale(self, optimizer)
    mp.optim.clip_norm(optimizer:parameters(), self.limit)
end

-- What the engine has no rule for: the sign of a running mean.
local Lion = mp.class("Lion", mp.optim.SGD)
function Lion:init(params, options)
    Lion.super.init(self, params, { lr = options.lr, weight_decay = options.weight_decay })
    self.near, self.far, self.means = options.near or 0.9, options.far or 0.99, {}
    for i, p in ipairs(self:parameters()) do self.means[i] = mp.zeros(p:shape()) end
end
function Lion:step()
    for i, p in ipairs(self:parameters()) do
        local g, mean = p:grad(), self.means[i]
        local toward = mean * self.near + g * (1 - self.near)
        self:change(mean, mean * self.far + g * (1 - self.far))
        p:grad(toward / (toward:abs() + 1e-30))
    end
    Lion.super.step(self)
end

return mp.experiment { name = "classes", run = function(run)
    test("a scaler that overrides unscale is asked to, once a step", function()
        local w = weights(0, 0)
        local optimizer = mp.optim.SGD({ w }, { lr = 1 })
        local scaler = Clipping(1024, 1)
        step(scaler, optimizer, w, 30)
        equal(scaler.calls, 1)
        near(w:table(), { -math.sqrt(0.5), -math.sqrt(0.5) }, 1e-6)
        equal(scaler:get(), 1024)
        equal(scaler:applied(optimizer), true)
        optimizer:zero_grad()
        scaler:scale(w:sum()):backward()
        scaler:unscale(optimizer) -- by hand: the step does not do it again
        scaler:step(optimizer)
        scaler:update()
        equal(scaler.calls, 2)
    end)

    test("a scaler that overrides update moves its scale itself", function()
        local Halving = mp.class("Halving", mp.scaler)
        function Halving:update()
            local stats = self:stats()
            Halving.super.update(self, stats.found_inf and stats.scale / 4 or stats.scale / 2)
        end
        local w = weights(1)
        local optimizer, scaler = mp.optim.SGD({ w }, { lr = 1 }), Halving { init = 64 }
        step(scaler, optimizer, w, 1)
        equal(scaler:get(), 32)
        equal(w:item(), 0)
        step(scaler, optimizer, w, math.huge)
        equal(scaler:get(), 8)
        equal(w:item(), 0)
    end)

    test("small gradients can be lifted before they are applied", function()
        local Lifting = mp.class("Lifting", mp.scaler)
        function Lifting:unscale(optimizer)
            Lifting.super.unscale(self, optimizer)
            for _, p in ipairs(optimizer:parameters()) do
                local g = p:grad()
                p:grad(F.where(F.less(g:abs(), 1e-3), F.where(F.less(g, 0), g * 0 - 1e-3, 1e-3), g))
            end
        end
        local w = weights(0, 0)
        local optimizer = mp.optim.SGD({ w }, { lr = 1 })
        local scaler = Lifting "none"
        optimizer:zero_grad()
        scaler:scale((w * mp.tensor { 1e-6, -0.5 }):sum()):backward()
        scaler:step(optimizer)
        scaler:update()
        near(w:table(), { -1e-3, 0.5 }, 1e-7)
    end)

    test("a class can stand on the run's own scaler", function()
        local scaler = Clipping(run:scaler(), 1)
        local w = weights(0)
        local optimizer = mp.optim.SGD({ w }, { lr = 1 })
        step(scaler, optimizer, w, 5)
        near(w:item(), -1, 1e-6)
    end)

    test("an optimizer of one's own steps by its own rule", function()
        local w = weights(1, 1)
        local optimizer = Lion({ w }, { lr = 0.1 })
        optimizer:zero_grad();
        (w * mp.tensor { 3, -0.01 }):sum():backward()
        optimizer:step()
        near(w:table(), { 0.9, 1.1 }, 1e-6)
        near(optimizer.means[1]:table(), { 0.03, -0.0001 }, 1e-6)
        equal(optimizer:steps(), 1)
        equal(optimizer:lr(), 0.1)
    end)

    test("it gets true gradients from any scaler, and skips whole", function()
        for _, scaler in ipairs { mp.scaler(256), Clipping(256, 100), mp.scaler "none" } do
            local w = weights(1, 1)
            local optimizer = Lion({ w }, { lr = 0.1 })
            step(scaler, optimizer, w, 2)
            near(w:table(), { 0.9, 0.9 }, 1e-6)
            near(optimizer.means[1]:table(), { 0.02, 0.02 }, 1e-6)
            step(scaler, optimizer, w, math.huge)
            equal(scaler:applied(optimizer), false)
            near(w:table(), { 0.9, 0.9 }, 1e-6)
            near(optimizer.means[1]:table(), { 0.02, 0.02 }, 1e-6) -- its state is put back
            equal(optimizer:steps(), 1)
            step(scaler, optimizer, w, -2)
            near(w:table(), { 1, 1 }, 1e-6)
        end
    end)

    test("a class can be made of a class", function()
        local Twice = mp.class("Twice", Lion)
        function Twice:step()
            for _, p in ipairs(self:parameters()) do p:grad(p:grad() * -1) end
            Twice.super.step(self)
        end
        local w = weights(1)
        local optimizer = Twice({ w }, { lr = 0.5 })
        step(mp.scaler(8), optimizer, w, 3)
        near(w:item(), 1.5, 1e-6)
    end)

    test("averages and models take them as they take ours", function()
        local net = nn.Linear(2, 1)
        local optimizer = Lion(net:parameters(), { lr = 0.1 })
        local average = mp.optim.EMA(net, 0.5)
        net(mp.ones(1, 2)):sum():backward()
        optimizer:step()
        average:update(optimizer)
        equal(#optimizer:groups(), 1)
        optimizer:zero_grad()
        equal(net.weight:grad(), nil)
    end)

    test("what is wrong with a class is told in a line", function()
        fails("class: base: mp.scaler, an optimizer of mp.optim or a class made of one expected", mp.class, "C",
            nn.Linear)
        fails("class: base", mp.class, "C", nil)
        fails("class: name: a text expected", mp.class, 3, mp.scaler)
        local Empty = mp.class("Empty", mp.optim.Adam)
        function Empty.init() end
        fails("Empty: nothing is inside yet: call Empty.super.init(self, ..) in init", Empty)
        fails("lr", mp.class("Plain", mp.optim.Adam), { weights(1) }, {})
        local Loud = mp.class("Loud", mp.optim.SGD)
        function Loud.step() error "too loud" end
        local w = weights(1)
        local optimizer, scaler = Loud({ w }, { lr = 1 }), mp.scaler(8)
        scaler:scale(w:sum()):backward()
        fails("too loud", function() scaler:step(optimizer) end)
        fails("change: state is [2] fp32, the value [3] fp32", function()
            optimizer:change(mp.zeros(2), mp.zeros(3))
        end)
    end)
end }
