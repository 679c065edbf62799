-- nn.SpectralNorm: a layer whose weight is divided by its largest singular value, so that it stretches
-- nothing by more than 1. The value is found by power iteration, a little further with every step of
-- training, from a vector that stays with the model.
local core = require "mp.core"
local layer = require "mp.layer"
local module = require "mp.module"
local engine = core.engine

local SpectralNorm = module.declared_class("SpectralNorm", "layer [, { iterations = 1, eps = 1e-12 }]")
SpectralNorm._kind = "spectral_norm"
rawset(SpectralNorm, "_holds_others", true)
rawset(SpectralNorm, "_takes_more", true)

local first_iterations = 15 -- before training begins

-- The weight as a matrix, a row for each output.
local function matrix_of(self, weight)
    if self._turned then weight = weight:transpose(1, -1) end
    return weight:reshape(weight:shape()[1], -1)
end

local function unit(x, eps) return x / (x:square():sum():sqrt() + eps) end

-- One more iteration from `u`: the next one, and the vector on the other side; both are constants.
local function iterate(self, matrix, u, count)
    local v
    for _ = 1, count do
        v = unit(matrix:transpose():matmul(u), self._eps)
        u = unit(matrix:matmul(v), self._eps)
    end
    return u, v
end

function SpectralNorm:init(inside, options)
    if not module.is_module(inside) then
        engine.fail(("SpectralNorm: layer: a module expected, got %s"):format(type(inside)))
    end
    local weight = rawget(inside, "weight")
    if weight == nil or #weight:shape() < 2 then
        engine.fail(("SpectralNorm: %s has no weight of two dimensions or more to divide"):format(inside._class._name))
    end
    options = layer.options_of("SpectralNorm", options, { iterations = "number", eps = "number" })
    self._iterations = layer.positive("SpectralNorm", "iterations", options.iterations or 1)
    self._eps = layer.number("SpectralNorm", "eps", options.eps, 1e-12)
    self._turned = inside._class._name:find "^ConvTranspose" ~= nil -- weight [in, .., out]
    self.layer = inside
    core.no_grad(function()
        local matrix = matrix_of(self, weight:detach())
        local u = unit(core.randn(matrix:shape()[1], 1), self._eps)
        self.u = iterate(self, matrix, u, first_iterations):clone()
    end)
end

-- The weight over its largest singular value, which depends on the weight as well.
local function divided(self, weight)
    local u, v
    core.no_grad(function()
        local matrix = matrix_of(self, weight:detach())
        local next_u
        next_u, v = iterate(self, matrix, self.u, self.training and self._iterations or 1)
        u = self.training and next_u or self.u:clone()
        if self.training then self.u:copy(next_u) end
    end)
    return weight / matrix_of(self, weight):matmul(v):mul(u):sum()
end

function SpectralNorm:forward(...)
    local inside = self.layer
    local weight = inside.weight
    rawset(inside, "weight", core.autocast(false, divided, self, weight))
    local results = table.pack(pcall(inside, ...))
    rawset(inside, "weight", weight)
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
end

return { SpectralNorm = SpectralNorm }
