-- Workload d of the speed tests: ResNet-18 as it is built for images of 32x32, batch 64, SGD.
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local steps = require "steps"

local Block = nn.class "Block"
function Block:init(channels, filters, stride)
    local function conv(of, kernel, step)
        return nn.Conv2d(of, filters, kernel, { stride = step, padding = kernel // 2, bias = false })
    end
    self.conv1, self.norm1 = conv(channels, 3, stride), nn.BatchNorm(filters)
    self.conv2, self.norm2 = conv(filters, 3, 1), nn.BatchNorm(filters)
    if stride ~= 1 or channels ~= filters then
        self.short, self.norm3 = conv(channels, 1, stride), nn.BatchNorm(filters)
    end
end

function Block:forward(x)
    local y = F.relu(self.norm1(self.conv1(x)))
    y = self.norm2(self.conv2(y))
    return F.relu(y + (self.short and self.norm3(self.short(x)) or x))
end

return mp.experiment {
    name = "bench-d",
    about = "speed: ResNet-18 for 32x32, batch 64, SGD with momentum",
    params = { steps = 10, batch = 64 },

    run = function(run)
        local batch = run.params.batch
        local x, y = mp.randn(batch, 32, 32, 3), mp.randint(10, batch)
        local layers = { nn.Conv2d(3, 64, 3, { padding = 1, bias = false }), nn.BatchNorm(64), nn.ReLU() }
        local channels = 64
        for stage, filters in ipairs { 64, 128, 256, 512 } do
            layers[#layers + 1] = Block(channels, filters, stage == 1 and 1 or 2)
            layers[#layers + 1] = Block(filters, filters, 1)
            channels = filters
        end
        layers[#layers + 1] = nn.GlobalAvgPool()
        layers[#layers + 1] = nn.Linear(512, 10)
        local model = run:model(nn.Sequential(layers))
        steps(run, model, mp.optim.SGD(model:parameters(), { lr = 0.01, momentum = 0.9 }), x, y)
    end,
}
