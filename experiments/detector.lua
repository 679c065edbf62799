-- detector: how many gradients of activations are too small for fp16, and what a loss scale saves.
--
-- A single-shot detector: convolutions over a picture of noise in which a few bars, crosses and boxes
-- lie; each place of an 8 × 8 grid says whether the middle of one is there, of which kind, and how
-- large it is. Nearly all places are empty, which is why gradients of detectors are small: the loss is
-- a mean over all of them, and most are soon told right.
-- Every few steps the gradients of all activations are counted as they arrive: of those that are not
-- 0, `vanish` is the share that fp16 would round to 0, `vanish_8` the share where the loss is
-- multiplied by 8 before, and so on for 2^7 and 2^16 (`vanish_128`, `vanish_65536`). In fp32 no format
-- has touched them by then. In fp16 what the run's own loss scale left at 0 is not counted: with
-- --loss-scale none that is all that vanishes. The results are means over the second half.
-- Takes about 6 s on two cores. On the screen: the series `vanish` and its scaled siblings as the
-- detector learns; the gradients of weights, whose exponents the layers panel draws, lie much higher.
-- Expect `right`, the share of objects whose place, kind and size (to half a place) are right, to come
-- to some 60 % (by chance under 1 %), and `vanish` to rise as the loss falls, to a quarter of all. A
-- scale of 8 takes back two fifths of that here, not nearly all as in the figure below; 2^16 takes back
-- nearly all, though of one seed in three it leaves 2.6 %.
-- From: Micikevicius et al., Mixed Precision Training, 2018 (figure 3: of the activation gradients of a
-- Multibox SSD 31 % became 0 in fp16, and a scale of 8 was enough to match fp32).
--     mpbench run detector -p fp32
--     mpbench run detector -p fp16
--     mpbench run detector -p fp32 --set size=128 --set width=64 --set steps=3000
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local STRIDE, KINDS, NOTHING = 8, 3, 0

local Detector = nn.class "Detector"
function Detector:init(width)
    self.stages, self.norms = {}, {}
    local channels = 1
    for i = 1, 3 do -- each halves the picture
        self.stages[i] = nn.Conv2d(channels, width * i, 3, { padding = 1, stride = 2 })
        self.norms[i] = nn.BatchNorm(width * i)
        channels = width * i
    end
    self.neck = nn.Conv2d(channels, channels, 3, { padding = 1, activation = "relu" })
    self.kinds = nn.Conv2d(channels, KINDS + 1, 1)
    self.sizes = nn.Conv2d(channels, 2, 1)
end

-- The logits of what lies at each place, and the sizes; `seen` gets every activation on the way.
function Detector:forward(x, seen)
    for i, stage in ipairs(self.stages) do
        x = F.relu(self.norms[i](stage(x)))
        seen(x)
    end
    x = self.neck(x)
    seen(x)
    return self.kinds(x), self.sizes(x)
end

-- A batch of pictures with what lies in them: kinds [n, g, g] and sizes [n, g, g, 2], in places.
local function draw(n, size, most)
    local grid = size // STRIDE
    local pictures, kinds, sizes = {}, {}, {}
    for i = 1, n do
        local picture, kind, extent = {}, {}, {}
        for y = 1, size do
            picture[y] = {}
            for x = 1, size do picture[y][x] = { 0.3 * (math.random() - 0.5) } end
        end
        for y = 1, grid do
            kind[y], extent[y] = {}, {}
            for x = 1, grid do kind[y][x], extent[y][x] = NOTHING, { 0, 0 } end
        end
        for _ = 1, math.random(1, most) do
            local what, half_w, half_h = math.random(KINDS), math.random(3, 9), math.random(3, 9)
            local cx, cy = math.random(half_w + 1, size - half_w), math.random(half_h + 1, size - half_h)
            for y = cy - half_h, cy + half_h do
                for x = cx - half_w, cx + half_w do
                    local on_edge = y == cy - half_h or y == cy + half_h or x == cx - half_w or x == cx + half_w
                    local on_cross = y == cy or x == cx
                    if what == 1 or what == 2 and on_edge or what == 3 and on_cross then picture[y][x][1] = 1 end
                end
            end
            local gx, gy = (cx - 1) // STRIDE + 1, (cy - 1) // STRIDE + 1
            kind[gy][gx], extent[gy][gx] = what, { half_w * 2 / STRIDE, half_h * 2 / STRIDE }
        end
        pictures[i], kinds[i], sizes[i] = picture, kind, extent
    end
    return mp.tensor(pictures), mp.tensor(kinds, "int32"), mp.tensor(sizes)
end

return mp.experiment {
    name = "detector",
    about = "How many gradients of activations are too small for fp16, in a detector",
    params = { lr = 6e-3, batch = 32, steps = 400, width = 16, size = 64, pictures = 1024, objects = 3 },

    run = function(run)
        local p = run.params
        local model = run:model(Detector(p.width))
        local opt = mp.optim.Adam(model:parameters(), {
            lr = p.lr, schedule = mp.optim.schedule.cosine { total = p.steps, warmup = math.min(20, p.steps // 4) },
        })
        local scaler = run:scaler()
        local pictures, kinds, sizes = draw(p.pictures, p.size, p.objects)
        local tests = { draw(128, p.size, p.objects) }

        local scales, every = { 1, 8, 128, 65536 }, 10
        local lost, count, scale = {}, 0, 1
        local sums, looks = { vanish = 0, vanish_8 = 0, vanish_65536 = 0 }, 0
        -- What of a gradient fp16 would round to 0. It comes with the run's own loss scale.
        local function look(g)
            local size = g:to("fp32"):abs() / scale
            local there = F.greater(size, 0):to "fp32"
            count = count + there:sum()
            for i, times in ipairs(scales) do
                lost[i] = (lost[i] or 0) + (there * F.less(size, 2 ^ -25 / times):to "fp32"):sum()
            end
        end
        local function nothing() end

        for step = 1, p.steps do
            local first = (step - 1) * p.batch % (p.pictures - p.batch + 1) + 1
            local last = first + p.batch - 1
            local x, kind = pictures:slice(1, first, last), kinds:slice(1, first, last)
            local size = sizes:slice(1, first, last)
            local is_looked_at = step % every == 0
            lost, count, scale = {}, 0, scaler:get()
            opt:zero_grad()
            local loss = mp.autocast(function()
                local logits, extent = model(x, is_looked_at and function(t) t:hook(look) end or nothing)
                local there = F.greater(kind, NOTHING):to("fp32"):reshape(-1, 1)
                local apart = F.huber(extent:reshape(-1, 2), size:reshape(-1, 2), 1, { reduction = "none" }) * there
                return F.cross_entropy(logits:reshape(-1, KINDS + 1), kind:reshape(-1)) + apart:mean()
            end)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            local values = { loss = loss }
            for i, times in ipairs(is_looked_at and scales or {}) do
                values[times == 1 and "vanish" or "vanish_" .. times] = lost[i] / count
            end
            run:log(values)
            if is_looked_at and step > p.steps / 2 then
                looks = looks + 1
                for name in pairs(sums) do
                    sums[name] = sums[name] + values[name]
                    run:result { [name] = sums[name] / looks }
                end
            end
        end

        model:eval()
        mp.no_grad(function()
            local logits, extent = mp.autocast(model, tests[1], nothing)
            local there = F.greater(tests[2], NOTHING):to("fp32"):reshape(-1)
            local kind_right = F.equal(F.argmax(logits:reshape(-1, KINDS + 1)), tests[2]:reshape(-1)):to "fp32"
            local far = (extent:to("fp32") - tests[3]):abs():reshape(-1, 2):max(2)
            local size_right = F.less(far, 0.5):to "fp32"
            run:result { right = (there * kind_right * size_right):sum() / there:sum() }
        end)
    end,
}
