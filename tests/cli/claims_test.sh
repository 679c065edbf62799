#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# `mpbench claims`: what it says comes from runs, and only from those.
. "$(dirname "$0")/../shell.sh"

begin "without runs nothing is claimed"
run claims --list
expect_status 0
expect_out '^  by  *mpbench claims memory: matrix resnet '
[ "$(grep -c 'not tested: mpbench claims' "$folder/out")" -gt 8 ] || fail "$(head -n 4 "$folder/out")"
expect_no_out 'confirmed'
end

# Runs that say what the trials' own would: the tag and the experiment's results are all that is read.
cat >"$folder/told.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "told",
    params = { error = 0.0, largest = 0.0, accuracy = 0.0, nearest = 0.0, far = 0.0, near = 0.0, loss = 0.0, scales = "run", apart = 0.0 },
    run = function(run)
        local m = run:model(mp.nn.Linear(1, 1))
        local opt = mp.optim.SGD(m:parameters(), { lr = 1e-3 })
        for _ = 1, 8 do
            opt:zero_grad()
            m(mp.ones(1, 1)):sum():backward()
            opt:step()
        end
        local p = run.params
        run:result {
            error = p.error, error_largest = p.largest, accuracy = p.accuracy, accuracy_nearest = p.nearest, lost_far = p.far, lost_near = p.near,
            test_loss = p.loss + p.apart * mp.randn(1):item() + (p.scales == "fixed" and 0.5 or 0),
        }
    end,
}
LUA
histories=0
told() { # TAG OPTION..: two seeds, in a history of their own
    MPBENCH_DB=$folder/$((histories = histories + 1)).db
    tag=$1
    shift
    run matrix "$folder/told.lua" --seeds 2 --tag "$tag" -d cpu --quiet "$@"
    expect_status 0
}
verdict() { # NAME
    run claims "$1" --list --json
    sed -n 's/.*"verdict":"\([^"]*\)".*/\1/p' "$folder/out"
}

begin "the figure decides"
told claims-sums -p fp32 --set largest=0.03
[ "$(verdict fast14)" = confirmed ] || fail "3 % is $(verdict fast14)"
expect_out '"value":3,'
told claims-sums -p fp32 --set largest=0.06
[ "$(verdict fast14)" = "not here" ] || fail "6 %, three times what is published, is $(verdict fast14)"
told claims-sums-split -p fp32 --set error=0.001
[ "$(verdict split)" = confirmed ] || fail "0.1 % is $(verdict split)"
[ "$(verdict fast14)" = "not tested" ] || fail "another trial's runs were taken"
told claims-masters-bf16 -p bf16 --set accuracy=0.9 --set nearest=0.85
[ "$(verdict masterless)" = confirmed ] || fail "5 points less are $(verdict masterless)"
told claims-masters-bf16 -p bf16 --set accuracy=0.9 --set nearest=0.9
[ "$(verdict masterless)" = contradicted ] || fail "no loss is $(verdict masterless)"
told claims-masters-fp16 -p fp16 --set far=0.85 --set near=0
[ "$(verdict updates) $(verdict updates_kept)" = "confirmed confirmed" ] || fail "a bound at 2048 is $(verdict updates)"
told claims-masters-fp16 -p fp16 --set far=0.3 --set near=0.05
[ "$(verdict updates) $(verdict updates_kept)" = "contradicted contradicted" ] || fail "another bound is $(verdict updates)"
end

begin "what hangs on the machine is not so here, and no more is said"
told claims-fp8-memory -p fp16,fp8
[ "$(verdict fp8_memory)" = "not here" ] || fail "as much memory is $(verdict fp8_memory)"
told claims-resnet -p fp32,bf16
[ "$(verdict memory_all)" = "not here" ] || fail "as much memory is $(verdict memory_all)"
end

begin "sides may be values of a parameter, and are held against the first"
told claims-fp8-scales -p fp32 --set scales=run,fixed,tensor
[ "$(verdict fp8_fixed) $(verdict fp8_tensor)" = "confirmed confirmed" ] || fail "half a nat is $(verdict fp8_fixed)"
told claims-fp8-scales -p fp32 --set scales=run,fixed,tensor --set apart=3
[ "$(verdict fp8_fixed) $(verdict fp8_tensor)" = "confirmed confirmed" ] ||
    fail "where seeds differ more than their sides it is $(verdict fp8_tensor)"
run claims fp8_fixed --list --markdown
expect_out '^| One fp8 bias for all .* | 0.5 nats, .*(2 seeds) | \*\*confirmed\*\* '
told claims-fp8-scales -p fp32 --set scales=fixed,tensor
[ "$(verdict fp8_fixed) $(verdict fp8_tensor)" = "not tested not tested" ] || fail "without fp32 it is $(verdict fp8_tensor)"
end

begin "a speed of a busy machine bears nothing out"
told claims-cnn -p fp32,bf16 --set accuracy=0.9
busy() {
    in_history "DELETE FROM environment WHERE name = 'load.others';
        INSERT INTO environment SELECT id, 900, 'load.others', '$1' FROM runs"
}
if command -v sqlite3 >/dev/null; then
    busy '0.01 of 2'
    case $(verdict faster) in
        "not here" | confirmed | "cannot be told") ;;
        *) fail "a speed is $(verdict faster)" ;;
    esac
    expect_out '"load_of_others":0,'
    busy '0.9 of 2'
    [ "$(verdict faster)" = "cannot be told" ] || fail "beside another program it is $(verdict faster)"
    run claims faster --list
    tr -s ' \n' ' ' <"$folder/out" >"$folder/line"
    grep -q 'other programs kept 0.9 processors' "$folder/line" || fail "$(cat "$folder/line")"
fi
end

begin "what a figure is held against must have finished too"
told claims-cnn -p bf16,fp16 --set accuracy=0.9
[ "$(verdict faster)" = "not tested" ] || fail "fp16 over bf16 is $(verdict faster)"
[ "$(verdict accuracy)" = "not tested" ] || fail "fp16 less bf16 is $(verdict accuracy)"
[ "$(verdict unscaled)" = "not tested" ] || fail "bf16 without fp32 is $(verdict unscaled)"
told claims-cnn -p fp32,bf16 --set accuracy=0.9
[ "$(verdict unscaled)" = confirmed ] || fail "bf16 as good as fp32 is $(verdict unscaled)"
[ "$(verdict faster_fp16)" = "not tested" ] || fail "bf16 is taken for fp16: $(verdict faster_fp16)"
end

begin "a trial is trained, and not twice"
run claims split --seeds 1 -d cpu --threads 1
expect_status 0
expect_err '1/1 done'
expect_out 'confirmed'
run claims split --seeds 1 -d cpu --threads 1
expect_err '1 of 1 done before'
end

begin "what was trained by hand, without a claim's tag, leaves no claim untested"
MPBENCH_DB=$folder/by_hand.db
run matrix sums -p fp32 --recipe sums=split --seeds 1 -d cpu --threads 1 --quiet
expect_status 0
run claims split --seeds 1 -d cpu --threads 1
expect_out 'confirmed'
MPBENCH_DB=$folder/history.db
end

begin "runs that cannot be trained are no success"
run claims split --seeds 1 -d gpu
expect_status 1
expect_err 'not all runs finished'
end

begin "a trial that is refused is said to be"
mkdir "$folder/other"
sed 's/scales = "run"/scales = 1/' "$folder/told.lua" >"$folder/other/fp8.lua"
MPBENCH_EXPERIMENTS=$folder/other run claims fp8_fixed
expect_status 2
expect_err '^mpbench: --set scales'
expect_err '^mpbench: claims: `mpbench matrix fp8 .*was refused'
end

# A trial that does not end by itself.
write_endless
mkdir "$folder/endless"
mv "$folder/endless.lua" "$folder/endless/sums.lua"
for signal in TERM INT; do
    begin "SIG$signal ends the training, too"
    MPBENCH_DB=$folder/$signal.db
    MPBENCH_EXPERIMENTS=$folder/endless "$mpbench" claims split -d cpu --seeds 1 >/dev/null 2>"$folder/err" &
    leader=$!
    workers="$workers $leader"
    wait_until 10 is_running endless 1 || fail "nothing trains: $(cat "$folder/err")"
    kill -s "$signal" "$leader"
    wait "$leader"
    ended=$?
    [ "$ended" -gt 128 ] || fail "status $ended"
    expect_err 'stopped; the same command goes on'
    wait_until 10 is_running endless 0 || fail "the training goes on"
    run ls status:stopped
    expect_out endless
    end
done

begin "a name that is none is told with the nearest"
run claims fast15
expect_error 2 'did you mean fast14'
end

exit "$failures"
