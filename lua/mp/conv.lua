-- Convolutions over one, two and three dimensions, and the same turned around.
--
-- The operations work on images, so that a line is an image of height 1, and a volume is one image a
-- depth of the output, whose channels are those of all depths that its window sees. Weights lie as
-- the operation wants them: [out, height, width, depth * in / groups], and turned around
-- [depth * in, height, width, out / groups], with the depth inside each group.
local core = require "mp.core"
local layer = require "mp.layer"
local module = require "mp.module"
local engine, fn = core.engine, core.fn

local layouts = { "[N,L,C]", "[N,H,W,C]", "[N,D,H,W,C]" }

-- ---- lines and volumes as images ------------------------------------------------------------------

local function shape_checked(self, x)
    local shape = x:shape()
    if #shape ~= self._dims + 2 then
        local path = self._path or ""
        engine.fail(("%s%s: input has shape [%s], %s is wanted"):format(
            path ~= "" and path .. ": " or "", self._class._name, table.concat(shape, ","),
            layouts[self._dims]))
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
local function windows(self, x, window, turned)
    local depth = x:shape()[2]
    local count = (depth - window.dilation * (window.kernel - 1) - 1) // window.stride + 1
    if count < 1 then
        engine.fail(("%s: a window over %d depths does not fit into %d"):format(self._class._name,
            window.dilation * (window.kernel - 1) + 1, depth))
    end
    local parts = {}
    for k = 1, window.kernel do
        local part = depths(x, 1 + (k - 1) * window.dilation, count, window.stride, self._groups)
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

-- ---- one forward a number of dimensions -----------------------------------------------------------

-- `operation` is conv2d or conv_transpose2d.
local function over_line(self, x, operation)
    local shape = shape_checked(self, x)
    local y = operation(x:reshape(shape[1], 1, shape[2], shape[3]), self.weight, self.bias,
        self._options)
    shape = y:shape()
    return y:reshape(shape[1], shape[3], shape[4])
end

local function over_image(self, x, operation)
    return operation(x, self.weight, self.bias, self._options)
end

local function over_volume(self, x, operation)
    local shape = shape_checked(self, x)
    local window = self._depth
    local images, count
    if operation == fn.conv2d then
        images, count = windows(self, pad_depth(x, window.padding, window.padding), window)
    else
        local around = window.dilation * (window.kernel - 1) - window.padding
        local spread = pad_depth(spread_depth(x, window.stride), around,
            around + window.output_padding)
        images, count = windows(self, spread,
            { kernel = window.kernel, dilation = window.dilation, stride = 1 }, true)
    end
    return from_images(operation(images, self.weight, self.bias, self._options), shape[1], count)
end

local forwards = { over_line, over_image, over_volume }

-- ---- the classes ----------------------------------------------------------------------------------

-- The last two of a list, which are an image's; a line has height 1.
local function of_image(list, missing)
    return { list[#list - 1] or missing, list[#list] }
end

local function make(dims, transposed)
    local name = ("%s%dd"):format(transposed and "ConvTranspose" or "Conv", dims)
    local class = module.declared_class(name, ("in, out, kernel [, { stride = 1, padding = 0, %s"
        .. "dilation = 1, groups = 1, bias = true%s }]"):format(
        transposed and "output_padding = 0, " or "", transposed and "" or ", activation"))
    class._kind = "conv"
    local known = { bias = "boolean", stride = "number table", padding = "number table",
        dilation = "number table", groups = "number" }
    known[transposed and "output_padding" or "activation"] =
        transposed and "number table" or "string"

    function class:init(inputs, outputs, kernel, options)
        layer.positive(name, "in", inputs)
        layer.positive(name, "out", outputs)
        options = layer.options_of(name, options, known)
        local function sizes(field, value, least, missing)
            return layer.sizes(name, field, value, dims, least, missing)
        end
        kernel = sizes("kernel", kernel, 1)
        local stride = sizes("stride", options.stride, 1, 1)
        local padding = sizes("padding", options.padding, 0, 0)
        local dilation = sizes("dilation", options.dilation, 1, 1)
        local extra = sizes("output_padding", options.output_padding, 0, 0)
        local groups = layer.positive(name, "groups", options.groups or 1)
        if inputs % groups ~= 0 or outputs % groups ~= 0 then
            engine.fail(("%s: %d groups do not divide %d inputs and %d outputs evenly"):format(name,
                groups, inputs, outputs))
        end
        local size, window = of_image(kernel, 1), dims == 3 and kernel[1] or 1
        local first, last = outputs, inputs // groups * window
        local seen = last * size[1] * size[2]
        if transposed then
            first, last = inputs * window, outputs // groups
            seen = last * size[1] * size[2] * window
        end
        local bound = 1 / math.sqrt(seen)
        self.weight = layer.uniform(bound, "weight", first, size[1], size[2], last)
        if options.bias ~= false then self.bias = layer.uniform(bound, "bias", outputs) end
        self._dims, self._groups = dims, groups
        self._options = { stride = of_image(stride, 1), padding = of_image(padding, 0),
            dilation = of_image(dilation, 1), groups = groups, activation = options.activation }
        if transposed then self._options.output_padding = of_image(extra, 0) end
        if dims == 3 then
            self._depth = { kernel = kernel[1], stride = stride[1], padding = padding[1],
                dilation = dilation[1], output_padding = extra[1] }
            if extra[1] > 0 and extra[1] >= stride[1] then
                engine.fail(("%s: output_padding depth is %d: from 0 to below the stride is possible")
                    :format(name, extra[1]))
            end
        end
    end

    local forward, operation = forwards[dims], transposed and fn.conv_transpose2d or fn.conv2d
    function class:forward(x) return forward(self, x, operation) end
    return class
end

local conv = {}
for dims = 1, 3 do
    for _, transposed in ipairs { false, true } do
        local class = make(dims, transposed)
        conv[class._name] = class
    end
end
return conv
