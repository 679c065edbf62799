-- fashion_cnn: a small convolutional network on Fashion-MNIST: the first thing to compare in fp32
-- and mixed precision.
--
-- Two convolutions, one pooling, two linear layers. The rate falls to nothing over the run: at a constant
-- one the accuracy of neighbouring steps differs by up to two points, more than what formats do to it.
-- Takes a minute to a minute and a half on two cores, half of that in bf16 where the processor has
-- instructions for it. Needs Debian's dataset-fashion-mnist.
-- On the screen: two runs beside each other, whose losses lie on one another while their speeds and
-- memory differ. Expect an accuracy of about 89.6 % (a guess is 10 %) in any format.
-- From: none, a minimal example; the data are of Xiao, Rasul and Vollgraf, Fashion-MNIST, 2017.
--     mpbench run fashion_cnn -p fp32
--     mpbench run fashion_cnn -p bf16
--     mpbench run fashion_cnn -p fp16 --layer 'head=fp32'
local mp = require "mp"
local nn, F = mp.nn, mp.fn

return mp.experiment {
    name = "fashion-cnn",
    about = "A small CNN on Fashion-MNIST: the first thing to compare in fp32 and fp16",
    params = { lr = 1e-3, batch = 128, epochs = 2, width = 32 },

    data = function(p)
        return {
            train = mp.data.fashion_mnist { split = "train", batch = p.batch, shuffle = true },
            test = mp.data.fashion_mnist { split = "test", batch = p.batch },
        }
    end,

    model = function(p)
        local w = p.width
        return nn.Sequential {
            nn.Conv2d(1, w, 3, { activation = "relu" }),
            nn.Conv2d(w, 2 * w, 3, { activation = "relu" }),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(144 * 2 * w, 128, { activation = "relu" }):named "hidden",
            nn.Linear(128, 10):named "head",
        }
    end,

    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    eval = function(model, b) return { accuracy = F.accuracy(model(b.x), b.y) } end,
    optim = function(params, p) return mp.optim.Adam(params, { lr = p.lr }) end,
    schedule = mp.optim.schedule.cosine {},
}
