-- keras_cnn: the network of the Keras guide to mixed precision, under its own policy.
--
-- Keras writes mixed_float16 once, for the whole model, and gives the last layer dtype="float32":
--     keras.mixed_precision.set_global_policy("mixed_float16")
--     outputs = layers.Dense(10, dtype="float32")(x)
-- `precision` below says the same two things. Three convolutions, each pooled, then one mean over
-- all places and one linear layer. The policy keeps variables in fp32, computes everything else in
-- fp16 and scales losses from 2^15.
-- Takes about 15 s on two cores. On the screen: the layers are fp16, the head is fp32; set it to
-- fp16 with `space` while it trains, and compare.
-- Expect some 81 % (a guess is 10 %), the same in every format within what a seed does, as the guide
-- says of its model. Where the guide warns, of softmax in fp16, the head's format decides: that the
-- logits are fp32 costs nothing here, and it keeps the loss exact.
-- From: TensorFlow's guide "Mixed precision", and Micikevicius et al., Mixed Precision Training, 2018.
--     mpbench run keras_cnn
--     mpbench run keras_cnn -p mixed_bfloat16
--     mpbench run keras_cnn --layer 'head=fp16'
--     mpbench run keras_cnn --set width=64 --set limit=0 --set epochs=10
local mp = require "mp"
local nn, F = mp.nn, mp.fn

return mp.experiment {
    name = "keras-cnn",
    about = "Keras' mixed_float16: convolutions in fp16 under a head in fp32",
    params = { lr = 3e-3, batch = 64, epochs = 3, width = 16, limit = 30000 },
    precision = { default = "mixed_float16", head = "fp32" },

    data = function(p)
        return {
            train = mp.data.fashion_mnist {
                split = "train", batch = p.batch, shuffle = true, limit = p.limit,
                transform = { mean = 0.286, std = 0.353 },
            },
            test = mp.data.fashion_mnist {
                split = "test", batch = 200, limit = p.limit // 10, transform = { mean = 0.286, std = 0.353 },
            },
        }
    end,

    model = function(p)
        local w = p.width
        return nn.Sequential {
            nn.Conv2d(1, w, 3, { padding = 1, activation = "relu" }),
            nn.MaxPool2d(2),
            nn.Conv2d(w, 2 * w, 3, { padding = 1, activation = "relu" }),
            nn.MaxPool2d(2),
            nn.Conv2d(2 * w, 4 * w, 3, { padding = 1, activation = "relu" }),
            nn.GlobalAvgPool(),
            nn.Linear(4 * w, 10):named "head",
        }
    end,

    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    eval = function(model, b) return { accuracy = F.accuracy(model(b.x), b.y) } end,
    optim = function(params, p) return mp.optim.Adam(params, { lr = p.lr }) end,
    schedule = mp.optim.schedule.cosine {},
}
