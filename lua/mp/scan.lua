-- mp.scan: which layers of a model may go into which formats. From one state each unit (a layer that
-- multiplies, or a block of them; a norm or an embedding) is put into each format alone, on the same
-- batches as fp32; what that does to gradients is held against what they differ by from batch to batch.
-- Of that follows a policy, which is then trained on, beside fp32 and beside all units low.
local core = require "mp.core"
local evaluation = require "mp.evaluation"
local module = require "mp.module"
local passes = require "mp.scan_pass"
local training = require "mp.scan_training"
local engine = core.engine

local public = {}

-- ---- the model --------------------------------------------------------------------------------------

local function declared(spec)
    for _, field in ipairs { "data", "model", "loss" } do
        if not spec[field] then
            engine.fail(("scan: %s trains by a loop of its own: declare `data`, `model` and `loss` (and `optim`, "
                .. "to verify) beside its `run`"):format(spec.name))
        end
    end
end

-- Whether a layer lies in one that is a unit, too, whose format it would follow.
local function lies_in_unit(layers, layer)
    local above = layers[layer.parent]
    return above ~= nil and (above.products or above.kept ~= nil or lies_in_unit(layers, above))
end

-- Of more units than there is room for norms and embeddings are left as they are, the last first.
local function fit(units, most)
    for at = #units, 1, -1 do
        if #units > most and units[at].kept then table.remove(units, at) end
    end
    return units
end

-- What there is to look at, as { name =, layers = { numbers }, tensors = { parameters } }. A layer that
-- multiplies beside those inside of it, as attention does, is a unit of its own: it has no parameters.
-- A norm or an embedding has its kind as `kept`, and as `rests` what it is set to where it is not low:
-- nothing, as autocast has it, but what a layer above would give it. In blocks they follow no format.
local function find_units(model, prefix, by_block)
    local units, by_name, unit_of, layers = {}, {}, {}, engine.scan_layers()
    for number, layer in ipairs(layers) do
        if layer.products or (layer.kept and not by_block) then
            local inside = prefix and layer.name:sub(#prefix + 2) or layer.name
            -- "blocks.1.up" belongs to the block "blocks.1", "encoder.up" to "encoder"
            local block = inside:match "^[^.]*%.%d+" or inside:match "^[^.]*"
            local name = by_block and (prefix and prefix .. "." .. block or block) or layer.name
            local unit = by_name[name]
            if not unit then
                unit = { name = name, layers = {}, tensors = {}, count = 0, kept = layer.kept,
                    rests = layer.kept and (lies_in_unit(layers, layer) and "fp32" or "auto") }
                by_name[name], units[#units + 1] = unit, unit
            end
            unit.layers[#unit.layers + 1] = number
            unit_of[inside] = unit
        end
    end
    local all, seen = {}, {}
    for name, tensor in model:named_parameters() do
        local unit = unit_of[name:match "^(.*)%.[^.]*$" or ""]
        if not seen[tensor] then
            seen[tensor] = true
            all[#all + 1] = tensor
            if unit then
                unit.tensors[#all] = true
                unit.count = unit.count + #tensor:reshape(-1)
            end
        end
    end
    return units, all
end

-- What of the model's state is no parameter: running statistics.
local function buffers_of(scene)
    local buffers, is_parameter = {}, {}
    for _, tensor in ipairs(scene.model:parameters()) do is_parameter[tensor] = true end
    for _, tensor in ipairs(scene.state) do
        if not is_parameter[tensor] then buffers[#buffers + 1] = tensor end
    end
    return buffers
end

-- ---- all of it ------------------------------------------------------------------------------------

function public.run(spec, run)
    declared(spec)
    local asked = engine.scan()
    for _, name in ipairs { "batches", "warm_up", "steps", "seeds", "most_units" } do
        asked[name] = math.tointeger(asked[name])
    end
    local scene = { spec = spec, params = run.params, scale = asked.scale }
    scene.data = training.fresh_data(scene)
    local model, prefix = spec.model(run.params, scene.data)
    if not module.is_module(model) then evaluation.refuse("model", "a module", model) end
    scene.model = run:model(model, prefix)
    engine.layers_known()
    scene.tensors = scene.model:parameters()
    scene.state = module.state(scene.model)
    scene.units = {}
    if asked.warm_up > 0 and spec.optim then
        training.train(scene, asked.warm_up, 0, 1, function(step)
            engine.scan_goes_on("trains in fp32 first", step, asked.warm_up)
        end)
    end
    scene.copies = training.keep(scene)
    local first = training.batches_from(scene.data.train, 0)() -- which layers multiply is seen as they do
    if not first then engine.fail "scan: data: the loader `train` gave no batch" end
    core.autocast(spec.loss, scene.model, first)
    local multiplies = false
    local units
    units, scene.tensors = find_units(scene.model, prefix, asked.by_block)
    for _, unit in ipairs(fit(units, asked.most_units)) do
        if engine.scan_unit(unit.name, unit.count, unit.kept, unit.rests) then table.insert(scene.units, unit) end
        multiplies = multiplies or not unit.kept
    end
    scene.buffers = buffers_of(scene)
    passes.set_all(scene.units, "fp32") -- what is not set would follow the layer that it lies in
    if not multiplies then
        engine.fail "scan: no layer of the model multiplies: there is nothing that a format could gain"
    end
    training.restore(scene.copies)
    local batches, cells = passes.look_at_fp32(scene, asked), {}
    for u, unit in ipairs(scene.units) do
        cells[u] = {}
        for at, format in ipairs(asked.formats) do
            cells[u][at] = engine.scan_known(u, at) -- by a scan that this one goes on with
            if not cells[u][at] then
                training.restore(scene.copies)
                cells[u][at] = passes.try(scene, u, format, batches)
                engine.scan_cell(u, at, cells[u][at])
                engine.settle()
            end
            engine.scan_goes_on(unit.name, (u - 1) * #asked.formats + at, #scene.units * #asked.formats)
        end
    end
    if not engine.scan_has_costs() then
        training.restore(scene.copies)
        passes.look_at_costs(scene, asked, batches[1].b)
    end
    local policy = engine.scan_proposed()
    engine.scan_policy(policy, 0, false)
    batches = nil -- luacheck: ignore
    if asked.steps > 0 and spec.optim then training.train_on(scene, asked, cells, policy) end
end

return public
