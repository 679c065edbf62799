-- intervene: a run that breaks in a block-scaled format, and forks that mend it.
--
-- A student of residual blocks, x + W2 gelu(W1 norm(x)), learns what a fixed teacher without norms
-- makes of random numbers. Weights, activations and gradients are rounded in blocks of 32 with
-- scales by the standard's rule, and so are the weights of its layer norms. After half of the steps
-- or so the loss jumps from 0.003 to 10 and more and comes back to 0.06 at best; in bf16 it does not.
-- At which step depends on the last bits of sums, and so on the processor: on one without AVX-512
-- five seeds of five left between steps 1991 and 3054, on one with AMX two of three, at 2340 and 3335 (the third
-- not within 4,000).
-- Its input is what such a student gives back before it has learnt anything: a loss of 1.1.
-- Takes 10 to 15 s a run on two cores:
--     mpbench run intervene -p bf16 --name plain
--     mpbench run intervene -p mxfp4 --recipe norms=scaled,scales=floor --name broken
-- On the screen: the loss, and among the events the step at which it left and the layer in which that
-- began. Fork before it, at the step that the run's note names, with one change (there: `:fork STEP
-- recipe.norms=own`), or pause the run with p and :set recipe.norms=own while it trains.
-- Expect 0.002 to 0.008 in the end from bf16 and from forks that avert it, 0.01 and more from the others:
--     mpbench fork broken --at STEP --recipe norms=own           averts it
--     mpbench fork broken --at STEP --layer '*norm=bf16'         the same change, by layers
--     mpbench fork broken --at STEP --set lr=0.006               averts it, and so does -p bf16
--     mpbench fork broken --at STEP --set beta2=0.95             averts it: Adam forgets squares sooner
--     mpbench fork broken --at STEP --recipe activations=bf16    delays it, where it does not avert it
--     mpbench fork broken --at STEP --recipe backward=bf16       (nothing is rounded on the way back)
--                                                                delays it at times
--     mpbench fork broken --at STEP --recipe scales=up           does not
--     mpbench compare broken plain @last
-- README has the walk with what it prints, and all changes over three seeds.
--
-- From: Su et al., Characterization and Mitigation of Training Instabilities in Microscaling Formats,
-- 2025 (arXiv 2506.20752), at width 512, batch 2,048 and a rate of 6e-4 in MXFP8, where a run leaves
-- after some 5,000 steps.
--     mpbench run intervene --set size=paper -p mxfp8 --recipe norms=scaled,scales=floor --name large
-- takes two processors 75 minutes to three hours; in mxfp6_e2m3 an hour where they have VNNI. One seed was
-- trained so on a Zen 4: it left at step 9425, from a loss of 0.0026 up to 9. So did the same seed in bf16
-- (-p bf16 --steps 12000), at step 11353, from 0.0022 up to 102; one in mxfp6_e2m3 had not after 9,000 steps.
-- On a Xeon with AMX the first left at step 9231, up to 28; with beta2=0.95 from the start it had not by 11500.
-- Forks of the first at step 9300: -p bf16 stayed to step 12000, a way back without rounding (recipe
-- backward=bf16) to 10900, recipe norms=own to 10500 and half the rate to 9900, where they ended; larger scales
-- (scales=up) left at 9431 and activations in bf16 at 9401, which avert it in the paper: there norms compute in
-- bf16 then, here their weights stay rounded. As the run in bf16 left by itself, that those that stayed avert it
-- is not shown: it may come later (the paper's have 9,000 steps).
-- All else that is said here is of the small size. There, as in the paper, what high precision bears breaks; that
-- norms' weights are rounded is what decides, and they alone do it, later (--layer '*up=bf16' --layer
-- '*down=bf16'); rounded activations add to it; to leave norms alone, high precision, a lower rate, and
-- activations in bf16 that leave norms alone (recipe activations=bf16,norms=own: in the program published with
-- the paper norms compute in bf16, and what they give is rounded in blocks) avert it.
-- Otherwise than in it: width and batches are 64 and the rate is 20 times as high, so that it happens within
-- seconds; inputs vary in their mean and length as those of width 512 do (else the loss ends at 0.02 for
-- these alone, and little is left for formats to do); it takes mxfp4; and a way back without rounding, or
-- larger scales, avert nothing by themselves: weights of norms go down to 0.1 here, and it is how coarsely
-- they are rounded that counts. In the paper they keep close below 1, where the rule clamps whole blocks to
-- 0.875. In MXFP8 none of three seeds left here in 4,000 steps; in 7,000 the third did, at 5973, and it did so
-- in bf16, at 6560, and in fp32, at 6837. In formats with three bits and more behind the point it is the rate
-- that breaks such a run: with lr=0.016 three seeds left at steps 3062 to 6033 in MXFP8, 2405 to 5132 in bf16.
-- Nor is it that biases of norms get no gradient in the program published with the paper: where they are left
-- as they begin, three seeds of three stayed for 7,000 steps in MXFP8, and three in bf16. Nor that its teacher is
-- rounded as its student is: with mp.autocast around the teacher below three seeds left in MXFP8 at steps 5967
-- to 6597, and two of them in bf16, at 5988 and 6966.
-- In MXFP6 (two bits behind the point: -p mxfp6 --recipe norms=scaled,scales=floor --steps 7000) five seeds of
-- five left, at steps 4882 to 6611, and in bf16 at 6597 to 8914 (this paragraph and the next: on the processor
-- with AMX). Forked 300 steps before and trained on for 2,000, all five stayed with half the rate, with
-- beta2=0.95, and with activations in bf16 and norms' own; four with norms' own alone; three with activations
-- alone; three in bf16, which leaves by itself, so that no more than a delay is shown. A way back without
-- rounding kept one and delayed four, by 55 to 1,339 steps; larger scales kept one, and the others left 2 steps
-- sooner to 1,355 later.
-- As much as the format it is how long Adam remembers squares of gradients that decides: with beta2=0.95 from the
-- start three seeds of three stayed for 14,000 steps in MXFP4 (at two to three times the loss), in MXFP6 and in
-- bf16, and of the medium size for 12,000 in MXFP8 and in bf16. With 0.99 three of three stayed for 14,000 in
-- MXFP6 and MXFP4, but left in bf16, at steps 2188 to 3252.
--
-- A medium size, width 128 and batches of 256 with inputs as they come and the paper's MXFP8, at a rate of
-- 8e-3, shows the same in five to seven minutes: a run that breaks, but not for its format, though it says
-- from its first steps on that norms' weights saturate.
--     mpbench run intervene --set size=medium -p mxfp8 --recipe norms=scaled,scales=floor
-- Three seeds left at steps 6966, 8059 and 11935, and in bf16 at 8870, 9028 and 10104. Whoever ends bf16 at
-- step 8000 sees it stay. Nor do forks agree, from 100 steps before the first two left and for 1,100 or
-- more: with norms=own or scales=up one of the two stayed, with backward=bf16 the other, with
-- activations=bf16, half the rate or -p bf16 both. Batches of 2,048 of this width, at a rate of 4e-3, did not leave in
-- 6,000 steps (one seed; processor as above).
local mp = require "mp"
local nn, F = mp.nn, mp.fn

-- What a parameter of 0 stands for. Inputs vary in their mean and length as those of `like` numbers do.
local sizes = {
    small = { width = 64, batch = 64, steps = 4000, lr = 1.2e-2, like = 512 },
    medium = { width = 128, batch = 256, steps = 12000, lr = 8e-3, like = 128 },
    paper = { width = 512, batch = 2048, steps = 10000, lr = 6e-4, like = 512 }, -- the paper's have 9,000
}

local Block = nn.class "Block"
function Block:init(width)
    self.norm = nn.LayerNorm(width)
    self.up, self.down = nn.Linear(width, 4 * width, { bias = false }), nn.Linear(4 * width, width)
end

function Block:forward(x) return x + self.down(F.gelu(self.up(self.norm(x)))) end

local function make_teacher(width, depth)
    local layers = {}
    for i = 1, 2 * depth do layers[i] = (mp.rand(width, width) * 2 - 1) * (1 / math.sqrt(width)) end
    return function(x)
        for i = 1, #layers, 2 do x = F.gelu(x:matmul(layers[i])):matmul(layers[i + 1]) end
        return x
    end
end

-- A student with norms cannot know the mean and the length of an input, which vary the less the wider it is.
-- What stays of the loss by that, 0.02 at a width of 64, would hide what formats do.
local function inputs(batch, width, like)
    local x = mp.randn(batch, width)
    if like == width then return x end
    x = x - x:mean(2, true)
    x = x * (x:square():mean(2, true) + 1e-12):rsqrt()
    return x * (mp.randn(batch, 1) * (1 / math.sqrt(2 * like)) + 1) + mp.randn(batch, 1) * (1 / math.sqrt(like))
end

return mp.experiment {
    name = "intervene",
    about = "A run that breaks in a block-scaled format, and forks that mend it",
    params = {
        size = { "small", "medium", "paper" }, width = 0, like = 0, depth = 4, batch = 0, steps = 0, lr = 0.0,
        noise = 1e-3, beta2 = 0.999, warmup = 1, keep = 250,
    },

    run = function(run)
        local p = run.params
        local size = sizes[p.size]
        local function settled(name) return p[name] > 0 and p[name] or size[name] end
        local width, like, batch = settled "width", settled "like", settled "batch"

        local teacher, blocks = make_teacher(width, p.depth), {}
        for i = 1, p.depth do blocks[i] = Block(width):named("block" .. i) end
        local student = run:model(nn.Sequential(blocks))
        local opt = mp.optim.Adam(student:parameters(), {
            lr = settled "lr",
            betas = { 0.9, p.beta2 },
            schedule = mp.optim.schedule.linear_warmup { warmup = p.warmup, total = 1e9 },
        })
        local scaler = run:scaler()
        run:plan(settled "steps")
        for step = 1, settled "steps" do
            local x = inputs(batch, width, like)
            local y = mp.no_grad(teacher, x) + mp.randn(batch, width) * p.noise
            opt:zero_grad()
            local loss = mp.autocast(function() return F.mse(student(x), y) end)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss }
            if step % p.keep == 0 then run:checkpoint() end -- stays, so that forks begin there at once
        end
    end,
}
