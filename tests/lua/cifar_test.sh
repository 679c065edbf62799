#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# mp.data.cifar100: records of a coarse label, a fine one, and planes of red, green and blue. The files
# here have two records in train.bin and one in test.bin, as the binary version has them.
. "$(dirname "$0")/../shell.sh"

# plane BYTE COUNT, a byte in octal
plane() {
    head -c "$2" /dev/zero | tr '\0' "\\$1"
}

# record COARSE FINE: labels in octal; red is 255 in the first pixel and 0 in the others, green 51,
# blue 102.
record() {
    printf '%b' "\\0$1\\0$2\\0377"
    plane 000 1023
    plane 063 1024
    plane 146 1024
}

mkdir "$folder/cifar" "$folder/wrong"
{ record 003 052 && record 023 007; } >"$folder/cifar/train.bin" # 3 and 42, 19 and 7
record 000 143 >"$folder/cifar/test.bin"                         # 0 and 99
record 003 144 >"$folder/wrong/train.bin"                        # 100, one too many
record 024 000 >"$folder/wrong/test.bin"                         # 20 of the coarse ones

cat >"$folder/cifar.lua" <<'LUA'
local mp = require "mp"
local function batch(options)
    options.dir, options.batch = "cifar", 4
    local found
    for b in mp.data.cifar100(options) do
        assert(not found, "more than one batch")
        found = b
    end
    return found
end
local function list(t) return table.concat(t:reshape(-1):table(), " ") end
return mp.experiment { name = "cifar", run = function()
    local train = batch { split = "train" }
    print("train", list(train.y), train.count, list(mp.tensor(train.x:shape(), "int32")))
    print("pixels", ("%.3f %.3f %.3f, %.3f %.3f %.3f"):format(table.unpack(train.x:reshape(-1):table(), 1, 6)))
    print("coarse", list(batch { split = "train", coarse = true }.y))
    print("test", list(batch { split = "test" }.y), list(batch { split = "test", coarse = true }.y))
end }
LUA

begin cifar100_has_fine_and_coarse_labels_and_pixels_of_three
run run "$folder/cifar.lua" -d cpu --no-history --quiet
expect_status 0
expect_err '^train.42 7.2.2 32 32 3$'
expect_err '^pixels.1.000 0.200 0.400, 0.000 0.200 0.400$'
expect_err '^coarse.3 19$'
expect_err '^test.99.0$'
end

begin cifar100_refuses_labels_outside_its_classes
for words in 'train", coarse = false|label 100 in record 0 (byte 1) is outside the 100 classes' \
    'test", coarse = true|label 20 in record 0 (byte 0) is outside the 20 classes'; do
    cat >"$folder/wrong.lua" <<LUA
local mp = require "mp"
return mp.experiment { name = "wrong", run = function()
    mp.data.cifar100 { dir = "wrong", split = "${words%%|*} }
end }
LUA
    run run "$folder/wrong.lua" -d cpu --no-history --quiet
    expect_status 1
    expect_err "${words#*|}"
done
end

exit "$failures"
