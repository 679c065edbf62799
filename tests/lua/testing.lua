-- What the scripts beside this one share: promises, and comparisons that say what differed.
local testing = {}

function testing.test(name, f)
    local done, message = pcall(f)
    if done then
        print("ok " .. name)
    else
        print("not ok " .. name .. ": " .. tostring(message))
    end
end

function testing.equal(got, wanted, what)
    if type(got) == "table" and type(wanted) == "table" then
        if #got ~= #wanted then
            error(("%s: %d elements, expected %d"):format(what or "table", #got, #wanted), 2)
        end
        for i = 1, #wanted do testing.equal(got[i], wanted[i], (what or "") .. "[" .. i .. "]") end
    elseif got ~= wanted then
        error(("%s is %s, expected %s"):format(what or "value", tostring(got), tostring(wanted)), 2)
    end
end

function testing.near(got, wanted, tolerance, what)
    if type(wanted) == "table" then
        for i = 1, #wanted do
            testing.near(got[i], wanted[i], tolerance, (what or "") .. "[" .. i .. "]")
        end
    elseif got ~= got or math.abs(got - wanted) > tolerance then
        error(("%s is %s, expected %s"):format(what or "value", tostring(got), tostring(wanted)), 2)
    end
end

-- f must fail with a message that contains `part`.
function testing.fails(part, f, ...)
    local done, message = pcall(f, ...)
    if done then error("it succeeded; an error with '" .. part .. "' was expected", 2) end
    if not tostring(message):find(part, 1, true) then
        error(("the error is '%s', without '%s'"):format(tostring(message), part), 2)
    end
end

-- What f says of tensors of these contents, whose results are weighted and summed, has the slopes
-- that differences have: `exact`, in fp64, where the device computes in it; else as near as fp32
-- comes, which is too far for kinks.
function testing.slopes(mp, exact, f, ...)
    local format, step = exact and "fp64" or "fp32", exact and 1e-6 or 2e-2
    local inputs = {}
    for i, t in ipairs { ... } do inputs[i] = t:to(format):detach():requires_grad(true) end
    local function value(list)
        local y = f(table.unpack(list))
        local count = 1
        for _, size in ipairs(y:shape()) do count = count * size end
        local weight = (mp.arange(count):to(format) * 0.7 + 0.3):reshape(y:shape())
        return (y * weight / count):sum()
    end
    local found = mp.grad(value(inputs), inputs)
    for i, x in ipairs(inputs) do
        local direction = mp.randn(x:shape()):to(format)
        local function at(factor)
            local moved = table.move(inputs, 1, #inputs, 1, {})
            moved[i] = x:detach() + direction * (factor * step)
            return value(moved):item()
        end
        local wanted = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
        testing.near((found[i] * direction):sum():item(), wanted,
            (exact and 1e-7 or 2e-2) * (1 + math.abs(wanted)), "the slope of input " .. i)
    end
end

-- What f does to values that a kernel refuses. A device that goes on by itself tells of them later, and
-- that ends the run (values_test.sh): here it is not asked.
function testing.fails_at_once(run, part, f, ...)
    if run.device ~= "gpu" then testing.fails(part, f, ...) end
end

return testing
