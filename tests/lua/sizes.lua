-- Sizes and numbers that nothing can have are errors, whatever they are handed to.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, fails = mp.nn, mp.fn, testing.test, testing.equal, testing.fails

local most = math.maxinteger

return mp.experiment { name = "sizes", precision = "fp32", run = function()
    local x, image = mp.ones(2, 3), mp.ones(1, 2, 2, 1)

    test("a_count_that_does_not_fit_is_refused", function()
        fails("expand: more elements are wanted than can be counted", function()
            return mp.ones(1):expand(7, 0x6DB6DB6DB6DB6DB7):sum()
        end)
        fails("expand: more elements", x.expand, x, 1 << 62, 2, 3)
        fails("larger than any memory", mp.randn, most)
        fails("larger than any memory", mp.rand, 1 << 32, 1 << 32)
        fails("too large for any memory", mp.zeros, most)
        fails("too large for any memory", mp.full, 1, { 1 << 31, 1 << 31, 2 })
        fails("reshape: [2, 3] has 6 elements, [4611686018427387904, 4] wants another number", x.reshape, x,
            1 << 62, 4)
        fails("from 0 to 2147483647", mp.arange, most)
        fails("from 1 to 2147483647", mp.randint, most, 2)
    end)

    test("an_empty_dimension_hides_no_count", function()
        fails("too large for any memory", mp.zeros, 0, 1 << 40, 1 << 40)
        fails("wants another number", function() return mp.ones(2, 0):reshape(0, 1 << 40, 1 << 40) end)
        fails("more elements", function() return mp.ones(1, 0):expand(1 << 62, 1 << 62, 0) end)
        local empty = mp.zeros(1 << 40, 0)
        assert(#tostring(empty) < 1000)
        fails("rows are more than the memory limit", empty.table, empty)
    end)

    test("dimensions_are_not_cut_to_32_bits", function()
        for _, dim in ipairs { 1 << 31, 1 << 32 | 1, 1 << 62, most, math.mininteger, 0, 3, -3 } do
            local complaint = ("dimension %d: the tensor has 2"):format(dim)
            fails(complaint, x.permute, x, dim, 2)
            fails(complaint, x.transpose, x, dim, 1)
            fails(complaint, x.slice, x, dim, 1)
            fails(complaint, F.sum, x, dim)
            fails(complaint, F.sum, x, { dim })
            fails(complaint, F.softmax, x, dim)
            fails(complaint, F.cat, { x, x }, dim)
        end
        equal(x:permute(-1, 1):shape(), { 3, 2 })
        equal(x:permute({ 2, 1 }):shape(), { 3, 2 })
    end)

    test("windows_and_factors_have_bounds", function()
        for _, size in ipairs { 1 << 31, 1 << 62, most } do
            fails("most", F.conv2d, image, mp.ones(1, 1, 1, 1), nil, { padding = size })
            fails("most", F.conv2d, image, mp.ones(1, 1, 1, 1), nil, { stride = size })
            fails("most", F.conv2d, image, mp.ones(1, 1, 1, 1), nil, { dilation = size })
            fails("most", F.conv_transpose2d, image, mp.ones(1, 1, 1, 1), nil, { padding = size })
            fails("most", F.conv_transpose2d, image, mp.ones(1, 1, 1, 1), nil, { stride = size })
            fails("most", F.max_pool2d, image, size)
            fails("most", F.avg_pool2d, image, 1, size)
            fails("most", F.pad, image, { { 0, size } })
        end
        for _, size in ipairs { 1 << 40, 1 << 62, most } do
            for _, call in ipairs {
                function() return F.upsample(image, size) end,
                function() return nn.Upsample(size)(image) end,
                function() return nn.Linear(size, size) end,
                function() return nn.Conv2d(size, 1, 1) end,
                function() return nn.ConvTranspose3d(1, 1, 1, { padding = size })(mp.ones(1, 2, 2, 2, 1)) end,
                function()
                    return nn.ConvTranspose3d(1, 1, 2, { stride = size, dilation = size })(mp.ones(1, 2, 2, 2, 1))
                end,
                function() return nn.Conv3d(1, 1, 2, { stride = size, padding = size })(mp.ones(1, 2, 2, 2, 1)) end,
                function() return nn.Conv1d(1, 1, 2, { dilation = size, padding = size })(mp.ones(1, 2, 1)) end,
            } do
                fails("", call)
            end
        end
        fails("least 0", F.conv_transpose2d, image, mp.ones(1, 1, 1, 1), nil, { padding = math.mininteger })
    end)
end }
