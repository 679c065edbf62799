-- intervene: a run that breaks in a block-scaled format, and forks that mend it.
--
-- A student of residual blocks, x + W2 gelu(W1 norm(x)), learns what a fixed teacher without norms
-- makes of random numbers. Weights, activations and gradients are rounded in blocks of 32 with
-- scales by the standard's rule, and so are the weights of its layer norms. After half of the steps
-- and more the loss jumps from 0.03 to tens or hundreds and comes back to 0.8 at best; in bf16 it does
-- not. At which step depends on the last bits of sums, and so on the processor: on one without AVX-512
-- five seeds of five left between steps 1798 and 2401.
-- Its input is what such a student gives back before it has learnt anything: a loss of 1.1.
-- Takes 10 to 25 s a run on two cores:
--     mpbench run intervene -p bf16 --name plain
--     mpbench run intervene -p mxfp4 --recipe norms=scaled,scales=floor --name broken
-- On the screen: the loss, and among the events the step at which it left and the layer in which that
-- began. Fork before it, at the step that the run's note names, with one change (there: `:fork STEP
-- recipe.norms=own`), or pause the run with p and :set recipe.norms=own while it trains.
-- Expect 0.02 to 0.03 in the end from bf16 and from forks that avert it, 0.1 and more from the others:
--     mpbench fork broken --at STEP --recipe norms=own           averts it
--     mpbench fork broken --at STEP --layer '*norm=bf16'         the same change, by layers
--     mpbench fork broken --at STEP --recipe scales=up           does not, nor do activations=bf16
--                                                                and backward=bf16 (nothing is
--                                                                rounded on the way back) alone
--     mpbench fork broken --at STEP --set lr=0.009               averts it, and so does -p bf16
--     mpbench compare broken plain @last
-- README has the walk with what it prints, and all changes over three seeds.
--
-- From: Su et al., Characterization and Mitigation of Training Instabilities in Microscaling Formats,
-- 2025 (arXiv 2506.20752), at width 512, batch 2,048 and a rate of 6e-4 in MXFP8, where a run leaves
-- after some 5,000 steps. That size was never run here: by its first steps it would take two processors
-- three to six hours, and all that is said above is of the small one:
--     mpbench run intervene --set size=paper --set lr=6e-4 --set warmup=1 -p mxfp8 --recipe norms=scaled,scales=floor
-- As in the paper, what high precision bears breaks at the small size; norms' weights alone do it
-- (--layer '*up=bf16' --layer '*down=bf16'); to leave norms alone averts it, and so do high
-- precision, and activations in bf16 that leave norms alone (recipe activations=bf16,norms=own: in
-- the program published with it norms compute in bf16, and what they give is rounded in blocks).
-- Otherwise than in it: width and batches are 64, of 3,000 steps, with noise of 5e-3 for 1e-3; the
-- rate is 30 times as high and warmed up, so that it happens within a minute, and not far below what
-- bf16 bears (which leaves, too, after some 4,000 steps and more, and at a rate of 2e-2 within 3,000
-- in one seed of five); it takes mxfp4; and activations in bf16, a way back without rounding, or
-- larger scales, avert nothing by themselves: weights of norms go down to 0.1 here, and it is how
-- coarsely they are rounded that counts. In the paper they keep close below 1, where the rule clamps
-- whole blocks to 0.875. In MXFP8 a run of this size says that of itself, too:
--     mpbench run intervene -p mxfp8 --recipe norms=scaled,scales=floor --set lr=2e-3
-- But its loss stays that of bf16 within 2 %, and in 20,000 steps at rates of 6e-3 and 1e-2 neither of two
-- seeds left before bf16 did.
--
-- A medium size, width 128 and batches of 256 with the paper's noise and its MXFP8, without a warm-up and
-- at a rate of 8e-3, shows the opposite in five to seven minutes: a run that breaks, but not for its format,
-- though it says from its first steps on that norms' weights saturate.
--     mpbench run intervene --set size=medium --set lr=8e-3 --set warmup=1 -p mxfp8 --recipe norms=scaled,scales=floor
-- Three seeds left at steps 6966, 8059 and 11935, and in bf16 at 8870, 9028 and 10104. Whoever ends bf16 at
-- step 8000 sees it stay. Nor do forks agree, from 100 steps before the first two left and for 1,100 or
-- more: with norms=own or scales=up one of the two stayed, with backward=bf16 the other, with
-- activations=bf16, half the rate or -p bf16 both. Batches of 2,048 of this width, at a rate of 4e-3, did not leave in
-- 6,000 steps (one seed; processor as above).
local mp = require "mp"
local nn, F = mp.nn, mp.fn

-- What a parameter of 0 stands for.
local sizes = {
    small = { width = 64, batch = 64, steps = 3000, noise = 5e-3 },
    medium = { width = 128, batch = 256, steps = 12000, noise = 1e-3 },
    paper = { width = 512, batch = 2048, steps = 9000, noise = 1e-3 },
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

return mp.experiment {
    name = "intervene",
    about = "A run that breaks in a block-scaled format, and forks that mend it",
    params = {
        size = { "small", "medium", "paper" }, width = 0, depth = 4, batch = 0, steps = 0, noise = 0.0, lr = 1.8e-2,
        warmup = 200, keep = 250,
    },

    run = function(run)
        local p = run.params
        local size = sizes[p.size]
        local function settled(name) return p[name] > 0 and p[name] or size[name] end
        local width, batch, noise = settled "width", settled "batch", settled "noise"

        local teacher, blocks = make_teacher(width, p.depth), {}
        for i = 1, p.depth do blocks[i] = Block(width):named("block" .. i) end
        local student = run:model(nn.Sequential(blocks))
        local opt = mp.optim.Adam(student:parameters(), {
            lr = p.lr,
            schedule = mp.optim.schedule.linear_warmup { warmup = p.warmup, total = 1e9 },
        })
        local scaler = run:scaler()
        run:plan(settled "steps")
        for step = 1, settled "steps" do
            local x = mp.randn(batch, width)
            local y = mp.no_grad(teacher, x) + mp.randn(batch, width) * noise
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
