-- Pooling over lines and volumes, to sizes asked for, and growing: made of pooling over images and
-- of dimensions that are drawn anew.
local core = require "mp.core"
local layer = require "mp.layer"
local strict = require "mp.strict"
local fn, engine = core.fn, core.engine

local layouts = { "[N,L,C]", "[N,H,W,C]", "[N,D,H,W,C]" }

local function define(name, takes, f)
    fn[name] = strict.declare("F.", name, takes, f)
    engine.add_method(name, fn[name])
end

local function shape_of(title, x, dims)
    local shape = layer.tensor(title, "x", x):shape()
    if #shape ~= dims + 2 then
        engine.fail(("%s: input has shape [%s], %s is wanted"):format(title,
            table.concat(shape, ","), layouts[dims]))
    end
    return shape
end

-- ---- windows --------------------------------------------------------------------------------------

for _, kind in ipairs { "max", "avg" } do
    local over_images = fn[kind .. "_pool2d"]
    local takes = "x, size [, stride [, padding]]"

    -- Along dimension 2 of [N,n,..]: what lies behind it is one row.
    local function along_second(x, size, stride, padding)
        local shape = x:shape()
        local n, length = shape[1], shape[2]
        local y = over_images(x:reshape(n, length, 1, -1), { size, 1 }, { stride, 1 }, { padding, 0 })
        shape[2] = y:shape()[2]
        return y:reshape(shape)
    end

    local function sizes(name, dims, size, stride, padding)
        return layer.sizes(name, "size", size, dims, 1),
            layer.sizes(name, "stride", stride, dims, 1, size),
            layer.sizes(name, "padding", padding, dims, 0, 0)
    end

    define(kind .. "_pool1d", takes, function(x, size, stride, padding)
        local name = kind .. "_pool1d"
        shape_of(name, x, 1)
        size, stride, padding = sizes(name, 1, size, stride, padding)
        return along_second(x, size[1], stride[1], padding[1])
    end)

    -- First each depth's image, then over the depths: the first of equals is the same.
    define(kind .. "_pool3d", takes, function(x, size, stride, padding)
        local name = kind .. "_pool3d"
        local shape = shape_of(name, x, 3)
        size, stride, padding = sizes(name, 3, size, stride, padding)
        local n, depth = shape[1], shape[2]
        local images = over_images(x:reshape(n * depth, shape[3], shape[4], shape[5]),
            { size[2], size[3] }, { stride[2], stride[3] }, { padding[2], padding[3] })
        shape = images:shape()
        return along_second(images:reshape(n, depth, shape[2], shape[3], shape[4]), size[1],
            stride[1], padding[1])
    end)
end

-- ---- to sizes asked for ---------------------------------------------------------------------------

-- Of [outer,n,1,inner] the largest over n. The operation keeps places in a byte, so that of a long
-- line the largest of each piece comes first.
local function largest_of_all(rows)
    local most, length = 256, rows:shape()[2]
    if length <= most then return fn.max_pool2d(rows, { length, 1 }) end
    local pieces = {}
    for first = 1, length, most do
        pieces[#pieces + 1] = largest_of_all(rows:slice(2, first, math.min(first + most - 1, length)))
    end
    return largest_of_all(fn.cat(pieces, 2))
end

-- The largest of `count` parts of dimension `dim`, which overlap where they do not divide it.
local function largest_of_parts(x, dim, count)
    local shape = x:shape()
    local size, outer = shape[dim], 1
    for i = 1, dim - 1 do outer = outer * shape[i] end
    local rows = x:reshape(outer, size, 1, -1)
    local y
    if size % count == 0 and size // count <= 256 then
        y = fn.max_pool2d(rows, { size // count, 1 })
    else
        local parts = {}
        for i = 1, count do
            local first, last = (i - 1) * size // count, (i * size + count - 1) // count
            parts[i] = largest_of_all(rows:slice(2, first + 1, last))
        end
        y = fn.cat(parts, 2)
    end
    shape[dim] = count
    return y:reshape(shape)
end

for dims = 1, 3 do
    local average, largest = ("adaptive_avg_pool%dd"):format(dims), ("adaptive_max_pool%dd"):format(dims)

    define(average, "x, size", function(x, size)
        shape_of(average, x, dims)
        size = layer.sizes(average, "size", size, dims, 1)
        local format = x:dtype()
        local wide = format == "fp64" and format or "fp32"
        for i = 1, dims do -- means of means are not rounded on the way
            x = engine.resample(average, x, i + 1, "mean", size[i], 0, i < dims and wide or format)
        end
        return x
    end)

    define(largest, "x, size", function(x, size)
        local shape = shape_of(largest, x, dims)
        size = layer.sizes(largest, "size", size, dims, 1)
        for i = dims, 1, -1 do -- the last dimension first: of equals the first in memory is taken
            if shape[i + 1] == 0 then
                engine.fail(("%s: input has shape [%s]: nothing has no largest"):format(largest,
                    table.concat(shape, ",")))
            end
            if size[i] > shape[i + 1] then -- a part is a computation of its own
                engine.fail(("%s: size: %d, at most %d is wanted, what there is to part"):format(largest,
                    size[i], shape[i + 1]))
            end
            x = largest_of_parts(x, i + 1, size[i])
        end
        return x
    end)
end

-- ---- growing --------------------------------------------------------------------------------------

local of_linear = { "linear", "bilinear", "trilinear" }

-- Every element repeated.
local function repeated(x, dims, factor)
    local shape = x:shape()
    if dims == 3 then
        local n, depth, height, width, channels = table.unpack(shape)
        local images = repeated(x:reshape(n * depth, height, width, channels), 2,
            { factor[2], factor[3] })
        return images:reshape(n * depth, 1, -1):expand(n * depth, factor[1], images:shape()[2]
            * images:shape()[3] * channels):reshape(n, depth * factor[1], height * factor[2],
            width * factor[3], channels)
    end
    local n, height, width, channels = shape[1], shape[2], shape[3], shape[4]
    local down, right = factor[1], factor[2]
    if dims == 1 then n, height, width, channels, down, right = n, 1, height, width, 1, factor[1] end
    local y = x:reshape(n, height, 1, width, 1, channels)
        :expand(n, height, down, width, right, channels)
    if dims == 1 then return y:reshape(n, width * right, channels) end
    return y:reshape(n, height * down, width * right, channels)
end

local function on_lines(title, x, dims, size, align_corners)
    for i = 1, dims do
        x = engine.resample(title, x, i + 1, align_corners and "corners" or "linear", size[i], 0)
    end
    return x
end

local function dims_of(title, x)
    local shape = layer.tensor(title, "x", x):shape()
    if #shape < 3 or #shape > 5 then
        engine.fail(("%s: input has shape [%s], %s is wanted"):format(title,
            table.concat(shape, ","), layouts[1] .. ", " .. layouts[2] .. " or " .. layouts[3]))
    end
    return #shape - 2, shape
end

define("upsample", "x, factor [, { mode = \"nearest\", align_corners = false }]",
    function(x, factor, options)
        options = layer.options_of("upsample", options,
            { mode = "string", align_corners = "boolean" })
        local dims, shape = dims_of("upsample", x)
        local mode = options.mode or "nearest"
        factor = layer.sizes("upsample", "factor", factor, dims, 1)
        if mode == "nearest" then
            if options.align_corners then
                engine.fail("upsample: align_corners goes with mode = \"linear\" alone")
            end
            return repeated(x, dims, factor)
        end
        if mode ~= "linear" and mode ~= of_linear[dims] then
            engine.fail(("upsample: mode: nearest, linear or, of this input, %s expected, got %q")
                :format(of_linear[dims], mode))
        end
        local size = {}
        for i = 1, dims do size[i] = shape[i + 1] * factor[i] end
        return on_lines("upsample", x, dims, size, options.align_corners)
    end)

-- To any size, on lines between neighbours.
define("interpolate", "x, size [, { align_corners = false }]", function(x, size, options)
    options = layer.options_of("interpolate", options, { align_corners = "boolean" })
    local dims = dims_of("interpolate", x)
    return on_lines("interpolate", x, dims, layer.sizes("interpolate", "size", size, dims, 1),
        options.align_corners)
end)

return fn
