-- Convolutions over one, two and three dimensions, and the same turned around.
--
-- The operations work on images, so that a line is an image of height 1, and a volume is one image a
-- depth of the output, whose channels are those of all depths that its window sees. Weights lie as
-- the operation wants them: [out, height, width, depth * in / groups], and turned around
-- [depth * in, height, width, out / groups], with the depth inside each group.
local core = require "mp.core"
local layer = require "mp.layer"
local module = require "mp.module"
local strict = require "mp.strict"
local engine, fn = core.engine, core.fn

local layouts = { "[N,L,C]", "[N,H,W,C]", "[N,D,H,W,C]" }

-- How one convolution goes, whether a layer's or a call's (`plan` below): dims, groups, what the
-- operation on images is told, what is done about the depth, and how to pad.

-- ---- lines and volumes as images ------------------------------------------------------------------

local function shape_checked(plan, x)
    local shape = x:shape()
    if #shape ~= plan.dims + 2 then
        engine.fail(("%s: input has shape [%s], %s is wanted"):format(plan.title(),
            table.concat(shape, ","), layouts[plan.dims]))
    end
    return shape
end

-- Numbers below 0 cut off.
local function pad_depth(x, before, after)
    local depth = x:shape()[2]
    if before < 0 or after < 0 then
        x = x:slice(2, 1 + math.max(-before, 0), depth - math.max(-after, 0))
    end
    if before <= 0 and after <= 0 then return x end
    return fn.pad(x, { { 0, 0 }, { math.max(before, 0), math.max(after, 0) } })
end

-- Every `stride`-th depth from `first` on, `count` of them, as images.
local function depths(x, first, count, stride, groups)
    local shape = x:shape()
    local n, height, width, channels = shape[1], shape[3], shape[4], shape[5]
    local taken = x:slice(2, first, first + (count - 1) * stride)
    if stride > 1 then
        taken = fn.pad(taken, { { 0, 0 }, { 0, stride - 1 } })
        taken = taken:reshape(n, count, stride, height, width, channels):slice(3, 1, 1)
    end
    return taken:reshape(n * count, height, width, groups, channels // groups)
end

-- Images of kernel * C channels, one a place of the window in the depth, and how many places there
-- are. `turned`: with the window's last depth first.
local function windows(plan, x, window, turned)
    local depth = x:shape()[2]
    local count = (depth - window.dilation * (window.kernel - 1) - 1) // window.stride + 1
    if count < 1 then
        engine.fail(("%s: a window over %d depths does not fit into %d"):format(plan.title(),
            window.dilation * (window.kernel - 1) + 1, depth))
    end
    local parts = {}
    for k = 1, window.kernel do
        local part = depths(x, 1 + (k - 1) * window.dilation, count, window.stride, plan.groups)
        parts[turned and window.kernel + 1 - k or k] = part
    end
    local images = window.kernel > 1 and fn.cat(parts, 5) or parts[1]
    local shape = images:shape()
    return images:reshape(shape[1], shape[2], shape[3], shape[4] * shape[5]), count
end

-- With stride - 1 empty depths behind each but the last.
local function spread_depth(x, stride)
    if stride == 1 then return x end
    local shape = x:shape()
    local n, depth, height, width, channels = table.unpack(shape)
    local spread = fn.pad(x:reshape(n, depth, 1, height, width, channels),
        { { 0, 0 }, { 0, 0 }, { 0, stride - 1 } })
    return spread:reshape(n, depth * stride, height, width, channels):slice(2, 1,
        (depth - 1) * stride + 1)
end

local function from_images(y, n, count)
    local shape = y:shape()
    return y:reshape(n, count, shape[2], shape[3], shape[4])
end

-- ---- one way a number of dimensions ---------------------------------------------------------------

-- Each is given a plan, the input, weight and bias.

local function over_line(plan, x, weight, bias)
    local shape = x:shape()
    local y = plan.operation(x:reshape(shape[1], 1, shape[2], shape[3]), weight, bias, plan.options)
    shape = y:shape()
    return y:reshape(shape[1], shape[3], shape[4])
end

local function over_image(plan, x, weight, bias)
    return plan.operation(x, weight, bias, plan.options)
end

local function over_volume(plan, x, weight, bias)
    local samples = x:shape()[1]
    local window = plan.depth
    local images, count
    if not plan.transposed then
        images, count = windows(plan, pad_depth(x, window.padding, window.padding), window)
    else
        local around = window.dilation * (window.kernel - 1) - window.padding
        local spread = pad_depth(spread_depth(x, window.stride), around,
            around + window.output_padding)
        images, count = windows(plan, spread,
            { kernel = window.kernel, dilation = window.dilation, stride = 1 }, true)
    end
    return from_images(plan.operation(images, weight, bias, plan.options), samples, count)
end

local ways = { over_line, over_image, over_volume }

local function convolve(plan, x, weight, bias)
    if plan.dims ~= 2 or plan.around then shape_checked(plan, x) end
    if plan.around then x = fn.pad(x, plan.around, plan.mode) end
    return ways[plan.dims](plan, x, weight, bias)
end

-- ---- plans ----------------------------------------------------------------------------------------

local known = { stride = "number table", padding = "number table", dilation = "number table",
    groups = "number" }

-- The last two of a list, which are an image's; a line has height 1.
local function of_image(list, missing)
    return { list[#list - 1] or missing, list[#list] }
end

local modes = { "zeros", "reflect", "replicate", "circular" }

-- What is added around before the convolution, where that is no zeros.
local function padding_around(title, padding, mode)
    if mode == nil or mode == "zeros" then return nil end
    for _, name in ipairs(modes) do
        if mode == name then
            local around = { { 0, 0 } }
            for i, size in ipairs(padding) do around[i + 1] = { size, size } end
            return around
        end
    end
    engine.fail(("%s: padding_mode: %s expected, got %s"):format(title,
        table.concat(modes, ", ", 1, 3) .. " or " .. modes[4], strict.shown(mode)))
end

-- `depth`: of the kernel, where there is one.
local function plan_of(title, dims, transposed, depth, options)
    local function sizes(field, least, missing)
        return layer.sizes(title, field, options[field], dims, least, missing)
    end
    local stride, padding, dilation = sizes("stride", 1, 1), sizes("padding", 0, 0),
        sizes("dilation", 1, 1)
    local extra = sizes("output_padding", 0, 0)
    local groups = layer.positive(title, "groups", options.groups or 1)
    local plan = { dims = dims, groups = groups, transposed = transposed,
        title = function() return title end,
        operation = transposed and fn.conv_transpose2d or fn.conv2d,
        around = padding_around(title, padding, options.padding_mode), mode = options.padding_mode }
    if plan.around then padding = layer.sizes(title, "padding", 0, dims, 0) end
    plan.options = { stride = of_image(stride, 1), padding = of_image(padding, 0),
        dilation = of_image(dilation, 1), groups = groups, activation = options.activation }
    if transposed then plan.options.output_padding = of_image(extra, 0) end
    if dims == 3 then
        plan.depth = { kernel = depth, stride = stride[1], padding = padding[1],
            dilation = dilation[1], output_padding = extra[1] }
        if extra[1] > 0 and extra[1] >= stride[1] then
            engine.fail(("%s: output_padding depth is %d: from 0 to below the stride is possible")
                :format(title, extra[1]))
        end
    end
    return plan
end

-- ---- as functions ---------------------------------------------------------------------------------

-- How deep a weight's windows are: what it has of depths and channels, of those of the input.
local function depth_of(title, x, weight, transposed, groups)
    local channels, shape = x:shape()[5], weight:shape()
    local own, each = shape[4], channels and channels // groups or 0
    if transposed then own, each = shape[1], channels end
    if #shape ~= 4 or each == 0 or own == 0 or own % each ~= 0 then
        engine.fail(("%s: weight has shape [%s], which is no multiple of the %d channels%s; docs: %s")
            :format(title, table.concat(shape, ","), channels or 0,
            groups > 1 and " of a group" or "",
            transposed and "[depth in, height, width, out / groups]"
            or "[out, height, width, depth in / groups]"))
    end
    return own // each
end

local function define(dims, transposed)
    local name = ("conv%s%dd"):format(transposed and "_transpose" or "", dims)
    local fields = { [transposed and "output_padding" or "activation"] =
        transposed and "number table" or "string" }
    for field, kind in pairs(known) do fields[field] = kind end
    fn[name] = strict.declare("F.", name, ("x, weight [, bias [, { stride, padding, dilation, "
        .. "groups, %s }]]"):format(transposed and "output_padding" or "activation"),
        function(x, weight, bias, options)
            layer.tensor(name, "x", x)
            layer.tensor(name, "weight", weight)
            options = layer.options_of(name, options, fields)
            local groups = layer.positive(name, "groups", options.groups or 1)
            local depth = dims == 3 and #x:shape() == 5
                and depth_of(name, x, weight, transposed, groups) or 1
            return convolve(plan_of(name, dims, transposed, depth, options), x, weight, bias)
        end)
    engine.add_method(name, fn[name])
end

-- ---- the classes ----------------------------------------------------------------------------------

local function make(dims, transposed)
    local name = ("%s%dd"):format(transposed and "ConvTranspose" or "Conv", dims)
    local class = module.declared_class(name, ("in, out, kernel [, { stride = 1, padding = 0, %s"
        .. "dilation = 1, groups = 1, bias = true%s }]"):format(
        transposed and "output_padding = 0, " or "",
        transposed and "" or ", activation, padding_mode = \"zeros\""))
    class._kind = "conv"
    local fields = { bias = "boolean" }
    for field, kind in pairs(known) do fields[field] = kind end
    if transposed then
        fields.output_padding = "number table"
    else
        fields.activation, fields.padding_mode = "string", "string"
    end

    function class:init(inputs, outputs, kernel, options)
        layer.positive(name, "in", inputs)
        layer.positive(name, "out", outputs)
        options = layer.options_of(name, options, fields)
        kernel = layer.sizes(name, "kernel", kernel, dims, 1)
        local depth = dims == 3 and kernel[1] or 1
        self._plan = plan_of(name, dims, transposed, depth, options)
        self._plan.title = function()
            local path = self._path or ""
            return path ~= "" and path .. ": " .. name or name
        end
        local groups = self._plan.groups
        if inputs % groups ~= 0 or outputs % groups ~= 0 then
            engine.fail(("%s: %d groups do not divide %d inputs and %d outputs evenly"):format(name,
                groups, inputs, outputs))
        end
        local size = of_image(kernel, 1)
        local first, last = outputs, inputs // groups * depth
        local seen = last * size[1] * size[2]
        if transposed then
            first, last = inputs * depth, outputs // groups
            seen = last * size[1] * size[2] * depth
        end
        local bound = 1 / math.sqrt(seen)
        self.weight = layer.uniform(bound, "weight", first, size[1], size[2], last)
        if options.bias ~= false then self.bias = layer.uniform(bound, "bias", outputs) end
    end

    function class:forward(x) return convolve(self._plan, x, self.weight, self.bias) end
    return class
end

local conv = {}
for dims = 1, 3 do
    for _, transposed in ipairs { false, true } do
        local class = make(dims, transposed)
        conv[class._name] = class
        if dims ~= 2 then define(dims, transposed) end
    end
end
return conv
