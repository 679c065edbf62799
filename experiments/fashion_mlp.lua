-- fashion_mlp: two hidden layers of 1024 on Fashion-MNIST.
--
-- Nearly all of its time goes into three matrix products, forward and back, so that it shows what a
-- format does to the speed of products alone. Takes about 10 s on two cores. Needs Debian's
-- dataset-fashion-mnist. On the screen: steps a second, and where their time goes (`P`).
-- Expect an accuracy of about 87 % (a guess is 10 %) in any format, in steps that are quicker where the
-- device multiplies the format itself; and no gain of memory: weights with their fp32 masters are most of it.
-- From: none, a minimal example; the data are of Xiao, Rasul and Vollgraf, Fashion-MNIST, 2017.
--     mpbench run fashion_mlp -p bf16
--     mpbench run fashion_mlp --layer 'fc2=fp32' --set width=512
local mp = require "mp"
local nn, F = mp.nn, mp.fn

return mp.experiment {
    name = "fashion-mlp",
    about = "784-1024-1024-10 on Fashion-MNIST: matrix products, and little else",
    params = { lr = 1e-3, batch = 256, epochs = 3, width = 1024 },

    data = function(p)
        return {
            train = mp.data.fashion_mnist { split = "train", batch = p.batch, shuffle = true },
            test = mp.data.fashion_mnist { split = "test", batch = p.batch },
        }
    end,

    model = function(p)
        return nn.Sequential {
            nn.Flatten(),
            nn.Linear(784, p.width, { activation = "relu" }):named "fc1",
            nn.Linear(p.width, p.width, { activation = "relu" }):named "fc2",
            nn.Linear(p.width, 10):named "head",
        }
    end,

    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    eval = function(model, b) return { accuracy = F.accuracy(model(b.x), b.y) } end,
    optim = function(params, p) return mp.optim.Adam(params, { lr = p.lr }) end,
}
