-- quantum: a circuit of a few qubits learns which side of a circle a point lies on; all 2^n amplitudes
-- are there, in the format of the run, and the tape differentiates through them.
--
-- Two turns of each qubit by angles that depend on the point and on weights, then controlled signs between
-- neighbours, several layers of that; the first qubit's mean is the answer. At the end `accuracy` is that
-- of new points, `chance` is what always giving the commoner answer would have. The gradient of the angles
-- is then found in three ways: by the tape, by the parameter shift (two circuits an angle, half a turn
-- apart: exact, and all that a real machine could do), both with the run's amplitudes, and by the shift in
-- fp32, from which `tape_error` and `shift_error` are counted, as shares of its length. `norm_error` is
-- how far probabilities are from adding up to 1, at the worst of 1,000 points.
-- Takes about 2 s on two cores. On the screen: the loss falls to about 0.2, and its curves in fp32, fp16 and
-- bf16 lie on one another, while among the layers no gradient is flushed: it is not range that amplitudes
-- lack but digits, and that shows in the results alone.
-- Expect an `accuracy` of about 0.96 in every format (0.51 by chance); a `norm_error` of 1e-6 in fp32, 8e-3
-- in fp16 and 7e-2 in bf16, whose 8 bits every gate rounds to; a `tape_error` of some 3e-7, 2e-3 and 1e-2.
-- fp8 and what is smaller round factors of products alone, and are as bf16 here: amplitudes are what gates
-- turn, not what layers multiply.
-- From: Perez-Salinas et al., Data Re-uploading for a Universal Quantum Classifier, 2020 (arXiv:1907.02085;
-- the data in every layer); Schuld et al., Evaluating Analytic Gradients on Quantum Hardware, 2019
-- (arXiv:1811.11184; the shift). What formats do to it is of no publication.
--     mpbench run quantum -p fp16
--     mpbench run quantum -p fp32 --set qubits=10 --set layers=8 --set steps=1000
local mp = require "mp"
local nn, F = mp.nn, mp.fn

-- tf32 and formats of 8 bits and less are for factors of products, which gates here are not: amplitudes
-- are in what such a precision computes all else in, fp32 or bf16.
local formats = { fp32 = "fp32", tf32 = "fp32", fp16 = "fp16" }

-- Amplitudes are two tensors, real and imaginary part, [batch, 2^qubits].
local Circuit = nn.class "Circuit"
function Circuit:init(p)
    self._qubits, self._layers = p.qubits, p.layers
    self.turn, self.phase = {}, {}
    for layer = 1, p.layers do
        self.turn[layer], self.phase[layer] = nn.Linear(2, p.qubits), nn.Linear(2, p.qubits)
    end
    local signs, first = {}, {}
    for state = 0, 2 ^ p.qubits - 1 do
        local index, sign = math.tointeger(state), 1
        for q = 0, p.qubits - 1 do
            local next = (q + 1) % p.qubits
            if p.qubits > 1 and index >> q & 1 == 1 and index >> next & 1 == 1 then sign = -sign end
        end
        signs[#signs + 1], first[#first + 1] = sign, index & 1 == 0 and 1 or -1
    end
    self.signs, self.first = mp.tensor { signs }, mp.tensor { first } -- named: a captured step may read them
end

-- What a gate does to the two halves of a state in which qubit q is 0 and 1.
local function halves(x, q)
    local s = x:shape()
    x = x:reshape(s[1], s[2] >> q, 2, 1 << (q - 1))
    return x:slice(3, 1, 1), x:slice(3, 2, 2)
end

local function joined(zero, one, like) return F.cat({ zero, one }, 3):reshape(like:shape()) end

-- A turn by `angle`, and a phase between the halves; angles are found in fp32, and so are their sines.
local function turn(re, im, q, angle, phase, format)
    local function column(t) return t:reshape(-1, 1, 1, 1):to(format) end
    local c, s = column((angle / 2):cos()), column((angle / 2):sin())
    local pc, ps = column((phase / 2):cos()), column((phase / 2):sin())
    local re0, re1 = halves(re, q)
    local im0, im1 = halves(im, q)
    re0, re1, im0, im1 = re0 * c - re1 * s, re0 * s + re1 * c, im0 * c - im1 * s, im0 * s + im1 * c
    return joined(re0 * pc + im0 * ps, re1 * pc - im1 * ps, re), joined(im0 * pc - re0 * ps, im1 * pc + re1 * ps, re)
end

-- The mean of the first qubit at each point, [batch], and the sum of all probabilities. `shift` is added to
-- one angle: { layer, qubit, by }.
function Circuit:forward(x, format, shift)
    local n = #x
    local re = F.pad(mp.ones(n, 1), { { 0, 0 }, { 0, (1 << self._qubits) - 1 } }):to(format)
    local im, signs = mp.zeros(re:shape()):to(format), self.signs:to(format)
    for layer = 1, self._layers do
        local angles = mp.autocast(false, self.turn[layer], x)
        local phases = mp.autocast(false, self.phase[layer], x)
        for q = 1, self._qubits do
            local angle = angles:slice(2, q, q)
            if shift and shift[1] == layer and shift[2] == q then angle = angle + shift[3] end
            re, im = turn(re, im, q, angle, phases:slice(2, q, q), format)
        end
        re, im = re * signs, im * signs
    end
    local odds = re:to "fp32":square() + im:to "fp32":square()
    return (odds * self.first):sum(2), odds:sum(2)
end

-- Points in a square, and 1 for those within a circle that has half of it.
local function points(n)
    local x = mp.rand(n, 2) * 2 - 1
    return x * 2, F.less(x:square():sum(2), 2 / math.pi):to "fp32"
end

return mp.experiment {
    name = "quantum",
    about = "A variational circuit on its state vector: amplitudes in each format, two kinds of gradient",
    params = { steps = 300, batch = 64, qubits = 4, layers = 4, lr = 5e-2 },

    run = function(run)
        local p = run.params
        local format = formats[mp.policy().low] or "bf16"
        local circuit = run:model(Circuit(p), "circuit")
        local opt = mp.optim.Adam(circuit:parameters(), { lr = p.lr })
        local scaler = run:scaler()
        local function step(x, inside)
            opt:zero_grad()
            local loss = mp.autocast(function()
                return F.bce_with_logits(circuit(x, format) * 4, inside)
            end)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss }
        end
        -- Gates are many and small: from the third step on they are computed without the script.
        for _ = 1, p.steps do run:step(step, points(p.batch)) end

        local x = points(p.batch)
        local biases = {}
        for layer = 1, p.layers do biases[layer] = circuit.turn[layer].bias end
        local slopes = mp.autocast(function() return mp.grad(circuit(x, format):mean(), biases) end)
        run:evaluate(function()
            local function by_shift(layer, q, of)
                local function mean(by) return mp.autocast(circuit, x, of, { layer, q, by }):mean():item() end
                return (mean(math.pi / 2) - mean(-math.pi / 2)) / 2
            end
            local length, tape_gap, shift_gap = 0, 0, 0
            for layer = 1, p.layers do
                local slope = slopes[layer]:table()
                for q = 1, p.qubits do
                    local true_slope = by_shift(layer, q, "fp32")
                    length = length + true_slope ^ 2
                    tape_gap = tape_gap + (slope[q] - true_slope) ^ 2
                    shift_gap = shift_gap + (by_shift(layer, q, format) - true_slope) ^ 2
                end
            end
            local seen, truth = points(1000)
            local mean, total = mp.autocast(circuit, seen, format)
            local share = truth:mean():item()
            run:result {
                accuracy = F.equal(F.greater(mean, 0):to "fp32", truth):to "fp32":mean():item(),
                chance = math.max(share, 1 - share), norm_error = (total - 1):abs():max():item(),
                tape_error = math.sqrt(tape_gap / length), shift_error = math.sqrt(shift_gap / length),
            }
        end)
    end,
}
