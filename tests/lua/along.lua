-- Along dimensions: statistics, running sums and products, padding by what there is, growing,
-- pooling to sizes asked for.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, near, fails =
    mp.nn, mp.fn, testing.test, testing.equal, testing.near, testing.fails

return mp.experiment { name = "along", run = function(run)
    local exact = run.device:find("ref", 1, true) ~= nil
    local function slopes(f, ...) testing.slopes(mp, exact, f, ...) end

    test("statistics_are_of_the_sample_unless_told", function()
        local x = mp.tensor { { 1, 2, 3, 6 }, { 5, 5, 5, 5 } }
        near(x:var(2):table(), { 14 / 3, 0 }, 1e-6)
        near(x:var(2, { correction = 0 }):table(), { 3.5, 0 }, 1e-6)
        near(x:std(-1, { keep = true }):table(), { { math.sqrt(14 / 3) }, { 0 } }, 1e-6)
        near(x:var():item(), 22 / 7, 1e-6)
        near((x + 1e4):var(2):table(), { 14 / 3, 0 }, 1e-6) -- far from 0
        equal(x:to "bf16":var(2):dtype(), "fp32")
        assert(mp.tensor { 3 }:var():item() ~= mp.tensor { 3 }:var():item())
        fails("var: dimension 3: the tensor has 2", F.var, x, 3)
        fails("std: input has shape [0]: nothing has no spread", F.std, mp.zeros(0))
        slopes(function(t) return t:var(2) end, mp.randn(3, 5))
        slopes(function(t) return t:std({ 1, 3 }) end, mp.randn(2, 3, 4))
    end)

    test("cosine_similarity_is_of_the_last_dimension_and_safe_at_0", function()
        local x, y = mp.tensor { { 3, 4 }, { 0, 0 } }, mp.tensor { { 4, 3 }, { 1, 2 } }
        near(F.cosine_similarity(x, y):table(), { 24 / 25, 0 }, 1e-6)
        near(F.cosine_similarity(x, y, 1):table(), { 12 / (3 * math.sqrt(17)), 12 / (4 * math.sqrt(13)) },
            1e-6)
        slopes(F.cosine_similarity, mp.randn(4, 5), mp.randn(4, 5))
    end)

    test("prelu_has_a_slope_below_zero_and_trains_it", function()
        local x = mp.tensor { { -2, 3 }, { 0, -1 } }
        local weight = mp.tensor { 0.5, 0.25 }:requires_grad(true)
        equal(F.prelu(x, weight):table(), { { -1, 3 }, { 0, -0.25 } })
        F.prelu(x:requires_grad(true), weight):sum():backward()
        equal(weight:grad():table(), { -2, -1 })
        equal(x:grad():table(), { { 0.5, 1 }, { 0.5, 0.25 } })
        equal(nn.PReLU(2)(mp.tensor { -4, -8 }):table(), { -1, -2 })
        equal(F.prelu(x:detach():to "bf16", weight):dtype(), "bf16")
        fails("prelu: weight has shape [3]: one number is wanted, or one for each of the 2", F.prelu,
            x, mp.zeros(3))
        local far = mp.tensor { math.huge, -math.huge }:requires_grad(true)
        equal(F.prelu(far, weight):table(), { math.huge, -math.huge })
    end)

    test("sines_are_right_however_large_the_angle", function()
        near(mp.tensor { 0, 1, -1, 1e10 }:sin():table(), { 0, 0.841471, -0.841471, -0.48750602 }, 1e-6)
        near(mp.tensor { 0, 1, -1, 1e10 }:cos():table(), { 1, 0.540302, 0.540302, 0.87311936 }, 1e-6)
        slopes(F.sin, mp.randn(7))
        slopes(F.cos, mp.randn(7))
    end)

    test("running_sums_and_products", function()
        local x = mp.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
        equal(x:cumsum(1):table(), { { 1, 2, 3 }, { 5, 7, 9 } })
        equal(x:cumsum(-1):table(), { { 1, 3, 6 }, { 4, 9, 15 } })
        equal(x:prod():item(), 720)
        equal(x:prod(1):table(), { 4, 10, 18 })
        equal(x:prod(2, true):table(), { { 6 }, { 120 } })
        equal(x:prod(nil, true):shape(), { 1, 1 })
        local zeros = mp.tensor { { 2, 0, 3 }, { 0, 0, 5 } }:requires_grad(true)
        zeros:prod(2):sum():backward()
        equal(zeros:grad():table(), { { 0, 6, 0 }, { 0, 0, 0 } })
        slopes(function(t) return t:cumsum(2) end, mp.randn(3, 4, 2))
        slopes(function(t) return t:prod(1) end, mp.randn(3, 4))
        fails("cumsum: dimension 3", F.cumsum, x, 3)
    end)

    test("scatter_add_adds_up_what_one_index_names_often", function()
        local x, source = mp.tensor { 10, 20, 30 }, mp.tensor { 1, 2, 4 }
        local index = mp.tensor({ 2, 0, 2 }, "int32")
        equal(x:scatter_add(1, index, source):table(), { 12, 20, 35 })
        slopes(function(a, b) return a:scatter_add(1, index, b) end, mp.randn(3), mp.randn(3))
        fails("scatter_add: index has shape [2,2]", F.scatter_add, mp.zeros(3, 3), 2,
            mp.zeros(2, 2):to "int32", mp.zeros(2, 2))
        fails("scatter_add: index is fp32", F.scatter_add, x, 1, mp.zeros(3), source)
        testing.fails_at_once(run, "index 7 at position 1", function()
            return F.scatter_add(x, 1, mp.tensor({ 7, 0, 0 }, "int32"), source):item()
        end)
    end)

    test("padding_by_what_there_is", function()
        local x = mp.tensor { 1, 2, 3 }
        equal(F.pad(x, { { 2, 1 } }, "reflect"):table(), { 3, 2, 1, 2, 3, 2 })
        equal(F.pad(x, { { 2, 1 } }, "replicate"):table(), { 1, 1, 1, 2, 3, 3 })
        equal(F.pad(x, { { 2, 1 } }, "circular"):table(), { 2, 3, 1, 2, 3, 1 })
        equal(F.pad(x, { { 1, 0 } }, 7):table(), { 7, 1, 2, 3 })
        equal(F.pad(x:reshape(1, 3), { { 0, 1 }, { 1, 0 } }, "replicate"):table(),
            { { 1, 1, 2, 3 }, { 1, 1, 2, 3 } })
        for _, mode in ipairs { "reflect", "replicate", "circular" } do
            slopes(function(t) return F.pad(t, { { 0, 0 }, { 2, 1 }, { 1, 2 } }, mode) end,
                mp.randn(2, 4, 3))
        end
        fails("pad: x is int32", F.pad, x:to "int32", { { 1, 0 } }, "reflect")
        fails("at most 2 can be taken", F.pad, x, { { 3, 0 } }, "reflect")
        fails("pad: 9 and 0 around the 3 elements of dimension 1", F.pad, x, { { 9, 0 } }, "circular")
        fails("pad: dimension 1 is empty", F.pad, mp.zeros(0, 2), { { 1, 0 } }, "replicate")
        fails("pad: -1 and 0 elements around dimension 1", F.pad, x, { { -1, 0 } }, "reflect")
        fails("pad: argument 3 (value): a number or a mode expected, got table", F.pad, x, { { 1, 0 } }, {})
        fails("adaptive_avg_pool2d: dimension 2 is empty", F.adaptive_avg_pool2d, mp.zeros(1, 0, 4, 2), 2)
        fails("reflect, replicate or circular expected", F.pad, x, { { 1, 0 } }, "mirror")
    end)

    test("growing_by_repeating_and_on_lines", function()
        local line = mp.tensor { 0, 4 }:reshape(1, 2, 1)
        equal(F.upsample(line, 2):reshape(4):table(), { 0, 0, 4, 4 })
        equal(F.upsample(line, 2, { mode = "linear" }):reshape(4):table(), { 0, 1, 3, 4 })
        local corners = F.upsample(line, 2, { mode = "linear", align_corners = true })
        near(corners:reshape(4):table(), { 0, 4 / 3, 8 / 3, 4 }, 1e-6)
        local image = mp.arange(4):to "fp32":reshape(1, 2, 2, 1)
        equal(F.interpolate(image, { 3, 1 }):reshape(3):table(), { 0.5, 1.5, 2.5 })
        local volume = mp.arange(8):to "fp32":reshape(1, 2, 2, 2, 1)
        local grown = nn.Upsample({ 2, 1, 3 })(volume)
        equal(grown:shape(), { 1, 4, 2, 6, 1 })
        equal(grown:slice(2, 2, 2):reshape(12):table(), { 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3 })
        equal(F.upsample(volume, 2, { mode = "trilinear" }):shape(), { 1, 4, 4, 4, 1 })
        slopes(function(t) return F.upsample(t, 2, { mode = "bilinear" }) end, mp.randn(2, 3, 2, 2))
        slopes(function(t) return F.upsample(t, { 2, 1, 2 }) end, mp.randn(1, 2, 3, 2, 2))
        fails("mode: nearest, linear or, of this input, bilinear expected", F.upsample, image, 2,
            { mode = "trilinear" })
        fails("[N,L,C], [N,H,W,C] or [N,D,H,W,C]", F.upsample, mp.zeros(3), 2)
    end)

    test("pooling_over_lines_and_volumes", function()
        local line = mp.tensor { 3, 1, 2, 5, 4 }:reshape(1, 5, 1)
        equal(F.max_pool1d(line, 2):reshape(2):table(), { 3, 5 })
        equal(F.avg_pool1d(line, 3, 1, 1):shape(), { 1, 5, 1 })
        local x = mp.randn(2, 4, 4, 6, 3)
        local pooled, plain = nn.MaxPool3d(2)(x):table(), x:table()
        local most = -math.huge
        for d = 3, 4 do for h = 1, 2 do for w = 5, 6 do
            most = math.max(most, plain[2][d][h][w][3])
        end end end
        equal(pooled[2][2][1][3][3], most)
        near(F.avg_pool3d(x, { 4, 4, 6 }):reshape(2, 3):table(), x:mean({ 2, 3, 4 }):table(), 1e-6)
        slopes(function(t) return F.avg_pool3d(t, 3, 2, 1) end, mp.randn(1, 4, 3, 3, 2))
        if exact then slopes(function(t) return F.max_pool3d(t, 2) end, mp.randn(1, 4, 4, 2, 2)) end
        fails("max_pool3d: input has shape [5], [N,D,H,W,C] is wanted", F.max_pool3d, mp.zeros(5), 2)
        -- Of equals the first in memory has the gradient.
        local ones = mp.ones(1, 2, 2, 2, 1):requires_grad(true)
        F.max_pool3d(ones, 2):sum():backward()
        equal(ones:grad():reshape(8):table(), { 1, 0, 0, 0, 0, 0, 0, 0 })
        local twos = mp.tensor { 0, 1, 1, 0 }:reshape(1, 2, 2, 1):requires_grad(true)
        F.adaptive_max_pool2d(twos, 1):sum():backward()
        equal(twos:grad():reshape(4):table(), { 0, 1, 0, 0 })
    end)

    test("pooling_to_sizes_asked_for", function()
        local line = mp.tensor { 1, 2, 3, 4, 5, 6, 7 }:reshape(1, 7, 1)
        near(F.adaptive_avg_pool1d(line, 3):reshape(3):table(), { 2, 4, 6 }, 1e-6)
        equal(F.adaptive_max_pool1d(line, 3):reshape(3):table(), { 3, 5, 7 })
        local long = mp.randn(1, 2, 1001, 2) -- more than one window takes
        equal(F.adaptive_max_pool2d(long, 1):reshape(2):table(), long:max({ 1, 2, 3 }):table())
        local image = mp.randn(2, 6, 4, 3)
        near(F.adaptive_avg_pool2d(image, { 3, 2 }):table(), F.avg_pool2d(image, 2):table(), 1e-6)
        equal(nn.AdaptiveMaxPool2d { 3, 2 }(image):table(), F.max_pool2d(image, 2):table())
        equal(nn.AdaptiveAvgPool3d(1)(mp.randn(2, 3, 4, 5, 6)):shape(), { 2, 1, 1, 1, 6 })
        equal(F.adaptive_avg_pool2d(image:to "bf16", 5):dtype(), "bf16")
        slopes(function(t) return F.adaptive_avg_pool2d(t, { 3, 2 }) end, mp.randn(1, 5, 3, 2))
        if exact then
            slopes(function(t) return F.adaptive_max_pool2d(t, { 3, 2 }) end, mp.randn(1, 5, 3, 2))
        end
        fails("a whole number of at least 1 expected", F.adaptive_avg_pool2d, image, 0)
        fails("at most 6 is wanted", F.adaptive_max_pool1d, mp.randn(2, 6, 4), 1 << 40)
    end)

    test("convolutions_as_functions_and_padded_by_what_there_is", function()
        local line, volume = nn.Conv1d(4, 6, 3, { padding = 1, groups = 2 }), nn.Conv3d(2, 3, { 2, 1, 3 })
        local x, y = mp.randn(2, 5, 4), mp.randn(1, 3, 2, 4, 2)
        equal(F.conv1d(x, line.weight, line.bias, { padding = 1, groups = 2 }):table(), line(x):table())
        equal(F.conv3d(y, volume.weight, volume.bias):table(), volume(y):table())
        local back = nn.ConvTranspose3d(2, 3, 2, { stride = 2 })
        equal(F.conv_transpose3d(y, back.weight, back.bias, { stride = 2 }):table(), back(y):table())
        for _, mode in ipairs { "reflect", "replicate", "circular" } do
            local padded = nn.Conv2d(3, 2, 3, { padding = { 1, 2 }, padding_mode = mode })
            local image = mp.randn(1, 4, 5, 3)
            local around = F.pad(image, { { 0, 0 }, { 1, 1 }, { 2, 2 } }, mode)
            equal(padded(image):table(), F.conv2d(around, padded.weight, padded.bias):table(), mode)
        end
        slopes(F.conv1d, mp.randn(1, 5, 2), mp.randn(3, 1, 2, 2), mp.randn(3))
        fails("padding_mode: zeros, reflect, replicate or circular expected", nn.Conv2d, 1, 1, 3,
            { padding_mode = "mirror" })
        fails("conv3d: weight has shape [3,2,1,3]", F.conv3d, y, mp.zeros(3, 2, 1, 3))
        fails("conv3d: weight has shape [3,2,1,0]", F.conv3d, y, mp.zeros(3, 2, 1, 0))
    end)
end }
