-- edge: a trained network on a device of a few MiB: what fits, and in which format.
--
-- A small CNN on Fashion-MNIST whose first layer keeps the whole picture, so that one sample's
-- activations weigh as much as many weights. It is trained without a cap; the evaluation then has so
-- many bytes for weights, activations and work space, finds the largest batch that fits, and goes
-- over the test data in such batches.
--     mpbench run edge -p fp32
--     mpbench eval @last -p fp32,bf16,int8 --memory 4MiB
--     mpbench eval @last -p fp32,bf16,int8 --memory 2MiB
--     mpbench eval @last -p fp32,bf16,int8 --memory 1MiB
-- Takes about 3 s, and each evaluation as long. Needs Debian's dataset-fashion-mnist.
-- On the screen: training as any other, for caps are of what comes after it. In the table of an
-- evaluation: `fits`, the largest batch, 0 where not one sample does; `one takes`, what a single sample
-- needs, most of which are weights.
-- Expect an accuracy of some 82 % (a guess is 10 %) under every cap. With 4 MiB all formats fit, with
-- 2 MiB fp32 does not, with 1 MiB int8 alone: weights are of half the size in 16 bits and of a quarter
-- in int8, which leaves room for larger batches, or for any at all. Activations between the layers are
-- in 16 bits with bf16, but in fp32 with int8: of large batches more fit in bf16.
-- From: Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
-- Inference, 2018 (weights in a quarter of the memory).
local mp = require "mp"
local nn, F = mp.nn, mp.fn

return mp.experiment {
    name = "edge",
    about = "A small CNN to evaluate under a cap of memory: what fits in which format",
    params = { lr = 2e-3, batch = 64, epochs = 1, width = 16, samples = 12800 },

    data = function(p)
        return {
            train = mp.data.fashion_mnist { split = "train", batch = p.batch, shuffle = true, limit = p.samples },
            test = mp.data.fashion_mnist { split = "test", batch = p.batch, limit = 5000 },
        }
    end,

    model = function(p)
        local w = p.width
        return nn.Sequential {
            nn.Conv2d(1, w, 3, { padding = 1, activation = "relu" }):named "conv1",
            nn.Conv2d(w, 2 * w, 3, { stride = 2, padding = 1, activation = "relu" }):named "conv2",
            nn.Conv2d(2 * w, 4 * w, 3, { stride = 2, padding = 1, activation = "relu" }):named "conv3",
            nn.Flatten(),
            nn.Linear(49 * 4 * w, 128, { activation = "relu" }):named "hidden",
            nn.Linear(128, 10):named "head",
        }
    end,

    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    eval = function(model, b) return { accuracy = F.accuracy(model(b.x), b.y) } end,
    optim = function(params, p) return mp.optim.Adam(params, { lr = p.lr }) end,
    schedule = mp.optim.schedule.cosine {},
}
