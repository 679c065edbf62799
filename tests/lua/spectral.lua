-- Spectral norm: a layer that stretches nothing by more than 1.
local mp = require "mp"
local testing = require "testing"
local nn, F = mp.nn, mp.fn
local test, equal, near, fails = testing.test, testing.equal, testing.near, testing.fails

return mp.experiment { name = "spectral", run = function()
    local function largest_stretch(matrix)
        local x = mp.randn(matrix:shape()[2], 1)
        for _ = 1, 60 do
            x = matrix:transpose():matmul(matrix:matmul(x))
            x = x / x:square():sum():sqrt()
        end
        return matrix:matmul(x):square():sum():sqrt():item()
    end

    test("spectral norm holds a layer's stretch at 1", function()
        local layer = nn.SpectralNorm(nn.Linear(6, 4, { bias = false }))
        local weight = layer.layer.weight
        for _ = 1, 30 do layer(mp.randn(2, 6)) end
        layer:eval()
        local made = layer(mp.tensor { { 1, 0, 0, 0, 0, 0 }, { 0, 1, 0, 0, 0, 0 }, { 0, 0, 1, 0, 0, 0 },
            { 0, 0, 0, 1, 0, 0 }, { 0, 0, 0, 0, 1, 0 }, { 0, 0, 0, 0, 0, 1 } })
        near(largest_stretch(made:transpose()), 1, 1e-3)
        near((made:transpose() * largest_stretch(weight)):table(), weight:table(), 1e-3)
        equal(#layer:parameters(), 1)
        assert(rawequal(layer.layer.weight, weight))
    end)

    test("its gradient knows that the norm hangs on the weight", function()
        local layer = nn.SpectralNorm(nn.Linear(3, 2, { bias = false }))
        for _ = 1, 30 do layer(mp.randn(2, 3)) end
        local weight = layer.layer.weight
        -- The weight times anything gives the same layer: the gradient is at right angles to it.
        layer(mp.randn(5, 3)):square():sum():backward()
        local along = (weight:grad() * weight):sum():item()
        near(along, 0, 1e-3)
        assert(weight:grad():abs():max():item() > 1e-3)
    end)

    test("it works on convolutions, twice before a walk, in every format", function()
        for _, format in ipairs { "fp32", "bf16", "fp16" } do
            local net = nn.Sequential {
                nn.SpectralNorm(nn.Conv2d(1, 4, 3, { padding = 1 })), nn.LeakyReLU(0.2),
                nn.SpectralNorm(nn.ConvTranspose2d(4, 2, 2, { stride = 2 })), nn.Flatten(),
                nn.SpectralNorm(nn.Linear(2 * 8 * 8, 1), { iterations = 2 }),
            }
            local optimizer = mp.optim.Adam(net:parameters(), { lr = 1e-3 })
            local real, fake = mp.randn(3, 4, 4, 1), mp.randn(3, 4, 4, 1)
            local loss = mp.autocast(format, function()
                return F.hinge(net(real), mp.ones(3, 1)) + F.hinge(net(fake), -mp.ones(3, 1))
            end)
            loss:backward()
            optimizer:step()
            assert(loss:item() == loss:item())
        end
        fails("SpectralNorm: ReLU has no weight", nn.SpectralNorm, nn.ReLU())
        fails("SpectralNorm: layer: a module expected", nn.SpectralNorm, 3)
    end)
end }
