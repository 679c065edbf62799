-- What is stored in a format, and what is computed in it.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, near, fails =
    mp.nn, mp.fn, testing.test, testing.equal, testing.near, testing.fails

return mp.experiment { name = "formats", precision = "fp32", run = function(run)
    local x = mp.rand(2, 4):to "fp64"
    local image = mp.rand(1, 4, 4, 2):to "fp64"
    local calls = {
        function() return nn.Linear(4, 2)(x) end,
        function() return F.matmul(x, x:transpose()) end,
        function() return F.matmul(mp.rand(2, 4), x:transpose()) end,
        function() return nn.Conv2d(2, 3, 3)(image) end,
        function() return nn.ConvTranspose2d(2, 3, 3)(image) end,
        function() return F.attention(image, image, image) end,
        function() return nn.BatchNorm(4)(x) end,
        function() return x + 1 end,
        function() return F.softmax(x) end,
        function() return F.cat { x, x } end,
        function() return x:sum(1) end,
    }

    test("fp64_is_computed_in_on_the_reference_device_alone", function()
        for i, call in ipairs(calls) do
            if run.device == "ref" then
                equal(call():dtype(), "fp64", "call " .. i)
            else
                fails("device " .. run.device .. " does not compute in fp64: convert with :to \"fp32\"", call)
            end
        end
    end)

    test("fp64_is_stored_and_brought_back_everywhere", function()
        equal(x:to "fp32":dtype(), "fp32")
        near(x:to "fp32":sum():item(), x:to("fp32"):transpose():sum():item(), 1e-6)
        equal(x:transpose():clone():shape(), { 4, 2 })
        equal(x:reshape(8):dtype(), "fp64")
        equal(#x:table(), 2)
    end)

    test("fp64_keeps_its_bits_whatever_is_done_to_its_layout", function()
        local rows = {}
        for i = 1, 70 do
            rows[i] = {}
            for j = 1, 65 do rows[i][j] = i / 3 + j / 7 end
        end
        local t = mp.tensor(rows, "fp64")
        local turned = t:transpose():clone():table()
        equal(t:clone():table(), rows)
        equal(t:slice(1, 3, 9):clone():table()[7], rows[9])
        for i, row in ipairs(rows) do
            for j, number in ipairs(row) do equal(turned[j][i], number) end
        end
    end)
end }
