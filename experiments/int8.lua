-- int8: what eight bits cost a trained network, and what they save.
--
-- A small CNN is trained on Fashion-MNIST for a few seconds, in any format. Nothing trains in int8:
-- the trained network is then evaluated with its weights in whole numbers, -127 to 127 steps of a
-- scale a row, and what they multiply in steps that some batches of training data have shown.
--     mpbench run int8 -p fp32
--     mpbench eval @last -p fp32,bf16,int8
--     mpbench eval @last -p int8 --calibrate 1,largest
--     mpbench export @last --format safetensors -p int8 -o int8.safetensors
-- Takes about 4 s, and the evaluation as long. Needs Debian's dataset-fashion-mnist.
-- On the screen: training as any other, for int8 comes after it. In the table of the evaluation: the
-- change of accuracy, which is noise of a few samples in 10,000; the weights, a quarter of fp32's; the
-- time of one sample and of a batch.
-- Expect an accuracy of some 82 % (a guess is 10 %) in fp32, and the same within half a point in int8, in
-- a quarter of the memory. How much faster it is depends on the processor: with VNNI, four products of
-- int8 in the time of one of fp32, but the layers that are not products do not gain.
-- From: Krishnamoorthi, Quantizing Deep Convolutional Networks for Efficient Inference, 2018: scales a
-- channel for weights and a layer for activations, found after training, stay within 2 % of fp32.
local mp = require "mp"
local nn, F = mp.nn, mp.fn

return mp.experiment {
    name = "int8",
    about = "A small CNN to evaluate in int8: what eight bits cost and save",
    params = { lr = 2e-3, batch = 128, epochs = 1, width = 16, samples = 25600 },

    data = function(p)
        return {
            train = mp.data.fashion_mnist { split = "train", batch = p.batch, shuffle = true, limit = p.samples },
            test = mp.data.fashion_mnist { split = "test", batch = p.batch },
        }
    end,

    model = function(p)
        local w = p.width
        return nn.Sequential {
            nn.Conv2d(1, w, 3, { stride = 2, padding = 1, activation = "relu" }):named "conv1",
            nn.Conv2d(w, 2 * w, 3, { padding = 1, activation = "relu" }):named "conv2",
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
