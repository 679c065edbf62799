#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# `mpbench claims`: what it says comes from runs, and only from those.
. "$(dirname "$0")/../shell.sh"

begin "without runs nothing is claimed"
run claims --list
expect_status 0
[ "$(grep -c 'not tested: mpbench claims' "$folder/out")" -gt 8 ] || fail "$(head -n 4 "$folder/out")"
expect_no_out 'confirmed'
end

# Runs that say what the trials' own would: the tag and the experiment's results are all that is read.
cat >"$folder/told.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "told", params = { error = 0.0, accuracy = 0.0, nearest = 0.0 },
    run = function(run)
        local m = run:model(mp.nn.Linear(1, 1))
        local opt = mp.optim.SGD(m:parameters(), { lr = 1e-3 })
        opt:zero_grad()
        m(mp.ones(1, 1)):sum():backward()
        opt:step()
        local p = run.params
        run:result { error = p.error + run.params.accuracy * 0, accuracy = p.accuracy, accuracy_nearest = p.nearest }
    end,
}
LUA
histories=0
told() { # TAG OPTION..: three seeds, in a history of their own
    MPBENCH_DB=$folder/$((histories = histories + 1)).db
    tag=$1
    shift
    run matrix "$folder/told.lua" --seeds 3 --tag "$tag" -d cpu --quiet "$@"
    expect_status 0
}
verdict() { # NAME
    run claims "$1" --list --json
    sed -n 's/.*"verdict":"\([^"]*\)".*/\1/p' "$folder/out"
}

begin "the figure decides"
told claims-sums -p fp32 --set error=0.06
[ "$(verdict fast14)" = confirmed ] || fail "6 % is $(verdict fast14)"
expect_out '"value":6,'
told claims-sums -p fp32 --set error=0.5
[ "$(verdict fast14)" = contradicted ] || fail "50 % is $(verdict fast14)"
told claims-sums-split -p fp32 --set error=0.001
[ "$(verdict split)" = confirmed ] || fail "0.1 % is $(verdict split)"
[ "$(verdict fast14)" = "not tested" ] || fail "another trial's runs were taken"
told claims-masters-bf16 -p bf16 --set accuracy=0.9 --set nearest=0.85
[ "$(verdict masterless)" = confirmed ] || fail "5 points less are $(verdict masterless)"
told claims-masters-bf16 -p bf16 --set accuracy=0.9 --set nearest=0.9
[ "$(verdict masterless)" = contradicted ] || fail "no loss is $(verdict masterless)"
end

begin "what a figure is held against must have finished too"
told claims-cnn -p bf16,fp16 --set accuracy=0.9
[ "$(verdict faster)" = "not tested" ] || fail "fp16 over bf16 is $(verdict faster)"
[ "$(verdict accuracy)" = "not tested" ] || fail "fp16 less bf16 is $(verdict accuracy)"
told claims-unscaled -p bf16 --loss-scale dynamic --set accuracy=0.9
[ "$(verdict unscaled)" = "not tested" ] || fail "without runs that are not scaled it is $(verdict unscaled)"
told claims-unscaled -p bf16 --loss-scale none,dynamic --set accuracy=0.9
[ "$(verdict unscaled)" = confirmed ] || fail "with both it is $(verdict unscaled)"
end

begin "a trial is trained, and not twice"
run claims split --seeds 1 -d cpu --threads 1
expect_status 0
expect_err '1/1 done'
expect_out 'confirmed'
run claims split --seeds 1 -d cpu --threads 1
expect_err '1/1 done before'
end

begin "runs that cannot be trained are no success"
run claims split --seeds 1 -d gpu
expect_status 1
expect_err 'not all runs finished'
end

begin "a name that is none is told with the nearest"
run claims fast15
expect_error 2 'did you mean fast14'
end

exit "$failures"
