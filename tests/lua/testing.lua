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

return testing
