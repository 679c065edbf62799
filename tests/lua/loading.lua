-- Data: tables and folders of pictures, changed on their way, by one thread or several.
local mp = require "mp"
local testing = require "testing"
local test, equal, near, fails = testing.test, testing.equal, testing.near, testing.fails

local function batches(loader)
    local list = {}
    for b in loader do list[#list + 1] = b end
    return list
end

return mp.experiment { name = "loading", run = function()
    test("tables_have_numbers_and_a_class", function()
        local loader = mp.data.csv { path = "files/table.csv", batch = 3 }
        equal(loader:samples(), 4)
        equal(loader:classes(), { "setosa", "versicolor", "virginica" })
        local first, second = table.unpack(batches(loader))
        near(first.x:table(), { { 5.1, 3.5 }, { 6.2, 2.9 }, { 4.9, 3 } }, 1e-6)
        equal(first.y:table(), { 0, 2, 0 })
        equal(second.y:table(), { 1 })
        local named = mp.data.csv { path = "files/table.csv", class = "kind" }
        equal(named:classes(), loader:classes())
        fails("files/table.csv: line 2, column 3 (kind): \"setosa\" is no number", mp.data.csv,
            { path = "files/table.csv", class = "width" })
        fails("no column named kin", mp.data.csv, { path = "files/table.csv", class = "kin" })
        local listed = mp.data.csv { path = "files/table.csv",
            classes = { "other", "virginica", "setosa", "versicolor" } }
        equal(batches(listed)[1].y:table(), { 2, 1, 2, 3 })
        local alike = mp.data.csv { path = "files/table.csv", classes = listed }
        equal(alike:classes(), listed:classes())
        fails("line 3, column 3 (kind): \"virginica\" is none of the `classes`", mp.data.csv,
            { path = "files/table.csv", classes = { "setosa", "versicolor" } })
        fails("csv: classes: a list of names", mp.data.csv, { path = "files/table.csv", classes = true })
        fails("csv: classes: names expected", mp.data.csv, { path = "files/table.csv", classes = { 1 } })
        fails("csv: classes: from 1 to 65536", mp.data.csv, { path = "files/table.csv", classes = {} })
        fails("csv: separator", mp.data.csv, { path = "files/table.csv", separator = "ab" })
        fails("csv: path", mp.data.csv, {})
    end)

    test("folders_are_classes", function()
        local loader = mp.data.folder { dir = "files/classes", batch = 8 }
        equal(loader:classes(), { "blue", "red" })
        local b = batches(loader)[1]
        equal(b.x:shape(), { 3, 4, 4, 3 })
        equal(b.y:table(), { 0, 0, 1 })
        near(b.x[2][1][1]:table(), { 0, 0.2, 1 }, 1e-6)
        local grey = mp.data.folder { dir = "files/classes", batch = 8, channels = 1 }
        equal(batches(grey)[1].x:shape(), { 3, 4, 4, 1 })
        fails("folder: channels: 1 or 3 expected", mp.data.folder,
            { dir = "files/classes", channels = 2 })
        fails("has no PNG", mp.data.folder, { dir = "files" })
    end)

    test("samples_are_changed_on_their_way_alike_by_any_number_of_threads", function()
        local transform = { flip = true, crop = 1, noise = 0.1, mean = { 0.5, 0.4, 0.3 }, std = 0.25 }
        local function all(threads)
            local list = {}
            local loader = mp.data.folder { dir = "files/classes", batch = 2, shuffle = true, seed = 5,
                transform = transform, threads = threads }
            for _ = 1, 3 do
                for _, b in ipairs(batches(loader)) do list[#list + 1] = b.x:table() end
            end
            return list
        end
        equal(all(4), all(1))
        local plain = mp.data.folder { dir = "files/classes", transform = { mean = 0.5, std = 0.5 } }
        near(batches(plain)[1].x[1][1][1]:table(), { -1, -1, 1 }, 1e-6)
        fails("transform: flip is 2", mp.data.folder, { dir = "files/classes", transform = { flip = 2 } })
        fails("no option flop; did you mean flip?", mp.data.folder,
            { dir = "files/classes", transform = { flop = true } })
        fails("transform: mean has 3 channels and std 2", mp.data.folder,
            { dir = "files/classes", transform = { mean = { 1, 1, 1 }, std = { 1, 1 } } })
        fails("are of images", mp.data.csv, { path = "files/table.csv", transform = { flip = true } })
        fails("threads: from 1 to 64", mp.data.folder, { dir = "files/classes", threads = 0 })
    end)
end }
