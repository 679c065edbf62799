-- Pooling over lines, images and volumes, as layers and to sizes asked for, against what the elements
-- give by hand.
local mp = require "mp"
local testing = require "testing"
local F, nn, test, equal, near, fails = mp.fn, mp.nn, testing.test, testing.equal, testing.near, testing.fails

local function flat(t) return t:reshape(-1):table() end

local function of(values, ...) return mp.tensor(values):reshape(...) end

-- What arrives at each element, where `slopes` arrive at those of f(x).
local function gradient(f, x, slopes)
    x = x:detach():requires_grad(true)
    local y = f(x)
    return flat(mp.grad((y:reshape(-1) * mp.tensor(slopes)):sum(), { x })[1])
end

return mp.experiment { name = "pooling", run = function()
    test("windows over a line take the largest and the mean", function()
        local x = of({ 1, 5, 2, 4, 6, 3 }, 1, 6, 1)
        equal(flat(nn.MaxPool1d(2)(x)), { 5, 4, 6 })
        equal(flat(nn.MaxPool1d(3, 2, 1)(x)), { 5, 5, 6 })
        equal(nn.MaxPool1d(3, 2, 1)(x):shape(), { 1, 3, 1 })
        equal(flat(nn.AvgPool1d(2)(x)), { 3, 3, 4.5 })
        equal(flat(nn.AvgPool1d(2, 1)(x)), { 3, 3.5, 3, 5, 4.5 })
        -- As over an image that is one wide, padding too.
        near(flat(nn.AvgPool1d(3, 2, 1)(x)),
            flat(F.avg_pool2d(x:reshape(1, 6, 1, 1), { 3, 1 }, { 2, 1 }, { 1, 0 })), 1e-6)
    end)

    test("windows over a line leave channels and samples apart", function()
        local x = of({ 1, 8, 2, 7, 3, 6, 4, 5 }, 1, 4, 2)
        equal(flat(nn.MaxPool1d(2)(x)), { 2, 8, 4, 6 })
        equal(flat(nn.AvgPool1d(2)(x)), { 1.5, 7.5, 3.5, 5.5 })
        equal(flat(nn.MaxPool1d(2)(x:reshape(2, 4, 1))), { 8, 7, 6, 5 })
    end)

    test("windows over a volume take the largest and the mean", function()
        local x = mp.arange(16):to "fp32":reshape(1, 2, 2, 4, 1)
        equal(flat(nn.AvgPool3d(2)(x)), { 6.5, 8.5 })
        equal(nn.AvgPool3d(2)(x):shape(), { 1, 1, 1, 2, 1 })
        equal(flat(nn.MaxPool3d(2)(x)), { 13, 15 })
        equal(flat(nn.AvgPool3d({ 2, 1, 4 })(x)), { 5.5, 9.5 })
        equal(gradient(nn.AvgPool3d({ 2, 2, 4 }), x, { 16 }), flat(mp.ones(16)))
        local arrived = gradient(nn.MaxPool3d(2), x, { 2, 3 })
        for i = 1, 16 do equal(arrived[i], i == 14 and 2 or i == 16 and 3 or 0, "element " .. i) end
    end)

    test("parts of a line to a size overlap where they do not divide it", function()
        local x = of({ 1, 2, 3, 4, 5 }, 1, 5, 1)
        near(flat(nn.AdaptiveAvgPool1d(2)(x)), { 2, 4 }, 1e-6)
        equal(flat(nn.AdaptiveMaxPool1d(2)(x)), { 3, 5 })
        near(flat(nn.AdaptiveAvgPool1d(1)(x)), { 3 }, 1e-6)
        equal(flat(nn.AdaptiveMaxPool1d(5)(x)), { 1, 2, 3, 4, 5 })
        near(gradient(nn.AdaptiveAvgPool1d(2), x, { 3, 30 }), { 1, 1, 11, 10, 10 }, 1e-5)
        equal(gradient(nn.AdaptiveMaxPool1d(2), x, { 3, 30 }), { 0, 0, 3, 0, 30 })
        fails("at most 5 is wanted", nn.AdaptiveMaxPool1d(6), x)
    end)

    test("parts of an image to a size overlap where they do not divide it", function()
        local x = mp.arange(9):to "fp32":reshape(1, 3, 3, 1)
        near(flat(nn.AdaptiveAvgPool2d(2)(x)), { 2, 3, 5, 6 }, 1e-6)
        near(flat(nn.AdaptiveAvgPool2d({ 1, 3 })(x)), { 3, 4, 5 }, 1e-6)
        near(flat(nn.AdaptiveAvgPool2d(1)(x)), { x:mean():item() }, 1e-6)
        near(gradient(nn.AdaptiveAvgPool2d({ 1, 3 }), x, { 3, 6, 9 }), { 1, 2, 3, 1, 2, 3, 1, 2, 3 }, 1e-5)
    end)

    test("parts of a volume to a size overlap where they do not divide it", function()
        local x = mp.arange(12):to "fp32":reshape(1, 3, 2, 2, 1)
        near(flat(F.adaptive_avg_pool3d(x, { 2, 1, 1 })), { 3.5, 7.5 }, 1e-6)
        equal(F.adaptive_avg_pool3d(x, { 2, 1, 1 }):shape(), { 1, 2, 1, 1, 1 })
        equal(flat(F.adaptive_max_pool3d(x, { 2, 1, 1 })), { 7, 11 })
        equal(flat(F.adaptive_max_pool3d(x, { 1, 1, 2 })), { 10, 11 })
        equal(flat(nn.AdaptiveMaxPool3d({ 2, 1, 1 })(x)), { 7, 11 })
        near(flat(nn.AdaptiveAvgPool3d({ 2, 1, 1 })(x)), { 3.5, 7.5 }, 1e-6)
        near(gradient(function(v) return F.adaptive_avg_pool3d(v, { 2, 1, 1 }) end, x, { 8, 16 }),
            { 1, 1, 1, 1, 3, 3, 3, 3, 2, 2, 2, 2 }, 1e-5)
        local arrived = gradient(function(v) return F.adaptive_max_pool3d(v, 1) end, x, { 7 })
        for i = 1, 12 do equal(arrived[i], i == 12 and 7 or 0, "element " .. i) end
    end)
end }
