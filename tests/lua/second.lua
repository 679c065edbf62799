-- Second derivatives as scripts use them: penalties on gradients, in every format.
local mp = require "mp"
local testing = require "testing"
local nn, F = mp.nn, mp.fn
local test, equal, near = testing.test, testing.equal, testing.near

-- A critic of images in which as much as possible takes part.
local function critic()
    local Critic = nn.class "Critic"
    function Critic:init()
        self.first = nn.Conv2d(1, 4, 3, { padding = 1 })
        self.down = nn.Conv2d(4, 8, 3, { stride = 2, padding = 1, activation = "tanh" })
        self.norm = nn.LayerNorm(8)
        self.attention = nn.Attention(8, 2)
        self.head = nn.Linear(8, 1)
    end
    function Critic:forward(x)
        local y = F.leaky_relu(self.first(x), 0.2)
        y = F.avg_pool2d(self.down(F.silu(y)), 2)
        y = self.norm(y):reshape(#x, -1, 8)
        return self.head(F.gelu(y + self.attention(y)):mean(2))
    end
    return Critic()
end

local function generator()
    return nn.Sequential { nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid() }
end

local function images(n) return mp.randn(n, 8, 8, 1) end

-- A few steps of `loss`, which must fall, under autocast in a format, with a scaler of its own.
local function trains(format, model, options, loss)
    local optimizer = mp.optim.Adam(model:parameters(), { lr = options.lr })
    local scaler = mp.scaler(format == "fp16" and 1024 or "none")
    local first, last
    for step = 1, options.steps do
        optimizer:zero_grad()
        local value = mp.autocast(format, loss)
        scaler:scale(value):backward()
        scaler:step(optimizer)
        scaler:update()
        last = value:item()
        if step == 1 then first = last end
        if last ~= last then error(("step %d: the loss is nan"):format(step)) end
    end
    if last >= first then error(("the loss went from %g to %g"):format(first, last)) end
end

-- The mean of (|gradient| - 1)^2 of what `score` says at x.
local function penalty_at(score, x)
    x = x:detach():requires_grad(true)
    local gradient = mp.grad(score(x):sum(), { x }, true)[1]
    local norm = (gradient:square():sum({ 2, 3, 4 }) + 1e-12):sqrt()
    return (norm - 1):square():mean()
end

return mp.experiment { name = "second", run = function()
    for _, format in ipairs { "fp32", "bf16", "fp16" } do
        test("WGAN-GP trains a critic in " .. format, function()
            local D = critic()
            local real, fake = images(6), images(6) * 0.3
            trains(format, D, { lr = 3e-3, steps = 6 }, function()
                local share = mp.rand(6, 1, 1, 1)
                local between = real * share + fake * (1 - share)
                return D(fake):mean() - D(real):mean() + 10 * penalty_at(D, between)
            end)
        end)

        test("R1 trains a discriminator in " .. format, function()
            local D = critic()
            local real, fake = images(6), images(6) * 0.3
            trains(format, D, { lr = 3e-3, steps = 6 }, function()
                local x = real:detach():requires_grad(true)
                local score = D(x)
                local gradient = mp.grad(score:sum(), { x }, true)[1]
                local penalty = gradient:square():sum({ 2, 3, 4 }):mean()
                return F.softplus(-score):mean() + F.softplus(D(fake)):mean() + 5 * penalty
            end)
        end)

        test("path lengths regularise a generator in " .. format, function()
            local G = generator()
            local z, noise = mp.randn(8, 4), mp.randn(8, 64) / 8
            trains(format, G, { lr = 1e-2, steps = 8 }, function()
                local latent = z:detach():requires_grad(true)
                local made = G(latent)
                local gradient = mp.grad((made * noise):sum(), { latent }, true)[1]
                local lengths = (gradient:square():sum(2) + 1e-12):sqrt()
                return (lengths - 0.5):square():mean()
            end)
        end)
    end

    test("a recorded walk gives the gradients of a plain one", function()
        local D = critic()
        local x = images(3):requires_grad(true)
        local parameters = D:parameters()
        parameters[#parameters + 1] = x
        local plain = mp.grad(D(x):sum(), parameters)
        local recorded = mp.grad(D(x):sum(), parameters, true)
        for i = 1, #parameters do
            near(recorded[i]:reshape(-1):table(), plain[i]:reshape(-1):table(), 2e-5, "gradient " .. i)
        end
    end)

    test("third derivatives follow", function()
        local x = mp.tensor { 0.3, -0.7 }:requires_grad(true)
        local y = F.tanh(x)
        for _ = 1, 3 do y = mp.grad(y:sum(), { x }, true)[1] end
        local wanted = {}
        for i, v in ipairs { 0.3, -0.7 } do
            local t = (math.exp(2 * v) - 1) / (math.exp(2 * v) + 1)
            wanted[i] = -2 * (1 - t * t) * (1 - 3 * t * t)
        end
        near(y:table(), wanted, 1e-5)
    end)

    test("penalties reach the weights of every layer", function()
        local D = critic()
        local penalty = penalty_at(D, images(4))
        penalty:backward()
        for name, parameter in D:named_parameters() do
            local gradient = parameter:grad()
            -- What is only added has no part in a slope.
            if not gradient then equal(name:find("bias", 1, true) ~= nil, true, name) end
        end
    end)
end }
