-- sums: what a product of 8-bit numbers loses where its sum keeps few bits.
--
-- Tensor cores of Hopper add the products of fp8 factors with about 14 bits: what is smaller than
-- 2^-13 of the largest in hand is cut off. The longer the sum, the more is lost, and always towards
-- zero. `--recipe sums=..` computes products so on any device: fast14 as that hardware, split as
-- DeepSeek mended it (chunks of 128 terms, added up in fp32), fp16 with every term rounded.
-- Each step takes products of a depth from 64 to 4,096, of numbers that e4m3 has, and holds
-- them against exact sums: `error` for numbers of one sign, whose sums grow with every term,
-- `error_random` for numbers of either, which cancel. Both are root mean squares, as a share.
-- `error_largest` is the worst of as many sums of normal numbers as `pairs` matrices of `rows` have, as a
-- share of what such sums are like (their root mean square): beside its own size one that cancels may err
-- by any share. All are means of `repeats` draws.
-- Nothing is trained. Takes one to three seconds. On the screen: the three series over `depth`.
-- Expect of fast14 6 % at depth 4,096 for one sign, where all that is cut off adds up, and 0.2 % at
-- random, where it cancels. The largest of 4,096 sums (pairs=4) is some 1 %, of 16,384 (pairs=16) 1.3 %,
-- and more of more. Of split 0.1 %, 0.02 % and 0.06 %, of fp32 nothing.
-- From: DeepSeek-AI, DeepSeek-V3 Technical Report, 2024 (3.3.2 and 3.5.2): of two random matrices the
-- largest relative error is nearly 2 % at depth 4,096; of which numbers, and relative to what, it leaves open.
--     mpbench run sums -p fp32 --recipe sums=fast14
--     mpbench run sums -p fp32 --recipe sums=split
--     mpbench run sums -p fp32 --recipe sums=fp16 --set depth=512
local mp = require "mp"
local F = mp.fn

-- The error of a product against the sum of its terms, one by one, as a share of what such sums are like:
-- its root mean square, and the largest.
local function errors_of(rows, depth, draw)
    local x, w = draw(rows, depth), draw(rows, depth)
    local exact = (x:reshape(rows, 1, depth) * w:reshape(1, rows, depth)):sum(-1)
    local squares = ((F.linear(x, w) - exact):square() / exact:square():mean())
    return squares:mean():sqrt():item(), squares:max():sqrt():item()
end

return mp.experiment {
    name = "sums",
    about = "What products of 8-bit numbers lose where sums keep few bits",
    params = { depth = 4096, rows = 32, repeats = 2, pairs = 4 },

    run = function(run)
        local p = run.params
        -- Any of the numbers of e4m3 from 2^-6 to 2, which has four bits of each: it is the sums that err.
        local numbers = {}
        for exponent = -6, 0 do
            for eighth = 0, 7 do numbers[#numbers + 1] = { (1 + eighth / 8) * 2 ^ exponent } end
        end
        local grid = mp.tensor(numbers)
        local function positive(...) return F.embedding(mp.randint(#grid, ...), grid):reshape(...) end
        local function either(...) return positive(...) * (mp.randint(2, ...) * 2 - 1) end
        -- As a scale a tensor brings them into e4m3, rounded to its four bits (what is large takes the rest along).
        local function normal(...)
            local x = mp.randn(...) * 64
            local large = x * (2 ^ 20 + 1)
            return (large - (large - x)):clamp(-448, 448)
        end
        local step = run:model(mp.nn.Linear(1, 1)) -- a step of the run needs something that trains
        local opt = mp.optim.SGD(step:parameters(), { lr = 1e-3 })
        local depth, last = 64, nil
        while depth <= p.depth do
            last = { error = 0, error_random = 0, error_largest = 0 }
            for _ = 1, p.repeats do
                last.error = last.error + errors_of(p.rows, depth, positive) / p.repeats
                last.error_random = last.error_random + errors_of(p.rows, depth, either) / p.repeats
                local most = 0
                for _ = 1, p.pairs do
                    local _, largest = errors_of(p.rows, depth, normal)
                    most = math.max(most, largest)
                end
                last.error_largest = last.error_largest + most / p.repeats
            end
            opt:zero_grad()
            mp.autocast(step, mp.ones(1, 1)):sum():backward()
            opt:step()
            run:log {
                depth = depth, error = last.error, error_random = last.error_random, error_largest = last.error_largest,
            }
            depth = depth * 2
        end
        run:result(last)
    end,
}
