-- Tensors of up to eight dimensions: everything that takes any number of them takes so many.
local mp = require "mp"
local testing = require "testing"
local F, test, equal, near, fails = mp.fn, testing.test, testing.equal, testing.near, testing.fails

local sizes = { 2, 1, 3, 2, 1, 2, 3, 2 }

-- Where element number `index` lies, counted from 0, and back.
local function places(index, shape)
    local at = {}
    for d = #shape, 1, -1 do
        at[d] = index % shape[d]
        index = index // shape[d]
    end
    return at
end

local function index_of(at, shape)
    local index = 0
    for d = 1, #shape do index = index * shape[d] + at[d] end
    return index
end

return mp.experiment { name = "dimensions", run = function()
    local count = 1
    for _, size in ipairs(sizes) do count = count * size end
    local x = mp.arange(count):to "fp32":reshape(sizes)

    test("eight dimensions are permuted, and back", function()
        local order = { 8, 3, 1, 6, 2, 7, 4, 5 }
        local y = x:permute(order)
        local shape = {}
        for d, from in ipairs(order) do shape[d] = sizes[from] end
        equal(y:shape(), shape)
        local flat = y:clone():reshape(-1):table()
        for i = 0, count - 1 do
            local at, source = places(i, shape), {}
            for d, from in ipairs(order) do source[from] = at[d] end
            equal(flat[i + 1], index_of(source, sizes))
        end
    end)

    test("sums over some of eight leave the others", function()
        local y = x:sum { 1, 4, 7 }
        equal(y:shape(), { 1, 3, 1, 2, 2 })
        equal(y:sum():item(), count * (count - 1) / 2)
        equal(x:permute(8, 7, 6, 5, 4, 3, 2, 1):mean { 2, 5, 8 }:sum():item(), y:sum():item() / 12)
        equal(x:max(8):shape(), { 2, 1, 3, 2, 1, 2, 3 })
    end)

    test("products go over six dimensions of matrices", function()
        local a, b = mp.randn(2, 3, 1, 2, 2, 1, 3, 4), mp.randn(2, 3, 1, 2, 2, 1, 4, 2)
        local wanted = a:reshape(-1, 3, 4):matmul(b:reshape(-1, 4, 2)):table()
        near(a:matmul(b):reshape(-1, 3, 2):table(), wanted, 1e-5)
        -- in an order of their own, so that no two of the six can be gone over as one
        local order = { 6, 5, 4, 3, 2, 1, 7, 8 }
        local turned = a:permute(order):matmul(b:permute(order))
        near(turned:permute(order):reshape(-1, 3, 2):table(), wanted, 1e-5)
        local upright = a:permute(2, 4, 1, 5, 3, 6, 8, 7):matmul(mp.ones(3, 1))
        near(upright:sum():item(), a:sum():item(), 1e-3)
    end)

    test("operations of two meet along eight", function()
        local column = mp.arange(3):to "fp32":reshape(3, 1, 1, 1, 1, 1)
        local y = x + column * 1000
        equal(y:shape(), sizes)
        equal(y:sum():item(), x:sum():item() + 1000 * count)
        equal(F.where(F.greater(x, 100), x, column):shape(), sizes)
        local far = mp.ones(1, 1, 1, 1, 1, 1, 1, 2):expand(2, 3, 2, 3, 2, 3, 2, 2)
        equal((far * 2):sum():item(), 1728)
    end)

    test("selection and arrangement take eight", function()
        equal(F.cat({ x, x }, 7):shape(), { 2, 1, 3, 2, 1, 2, 6, 2 })
        equal(F.stack({ x[1], x[2] }, 8):shape(), { 1, 3, 2, 1, 2, 3, 2, 2 })
        local around = {}
        for d = 1, 8 do around[d] = { 1, d % 2 } end
        local padded = F.pad(x, around, 5)
        local more = 1
        for d, size in ipairs(sizes) do more = more * (size + 1 + d % 2) end
        equal(padded:sum():item(), x:sum():item() + 5 * (more - count))
        equal(x:slice(8, 2, 2):sum():item() - x:slice(8, 1, 1):sum():item(), count / 2)
        local index = mp.full(1, 2, 1, 3, 2, 1, 2, 1, 2):to "int32"
        equal(F.gather(x, 7, index):reshape(-1):table(), x:slice(7, 2, 2):clone():reshape(-1):table())
        equal(x:softmax(3):shape(), sizes)
    end)

    test("gradients come in eight dimensions", function()
        local y = x:clone():requires_grad(true);
        (y:permute(8, 3, 1, 6, 2, 7, 4, 5):square():sum { 2, 7 } * 2):sum():backward()
        equal(y:grad():shape(), sizes)
        near(y:grad():reshape(-1):table(), (x * 4):reshape(-1):table(), 1e-3)
    end)

    test("a ninth is refused", function()
        fails("reshape: 9 dimensions: at most 8 are possible", function() x:reshape(1, 2, 1, 3, 2, 1, 2, 3, 2) end)
        fails("zeros: 9 dimensions: at most 8", mp.zeros, 1, 1, 1, 1, 1, 1, 1, 1, 1)
        fails("more than 8 levels of tables", mp.tensor, { { { { { { { { { 1 } } } } } } } } })
    end)
end }
