#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# report_test.sh: `mpbench report`: one page that needs nothing beside it, says what the history says,
# and that no name in the history breaks.
. "$(dirname "$0")/../shell.sh"
mpbench=$(cd "$(dirname "$mpbench")" && pwd)/$(basename "$mpbench")

page=$folder/page.html
experiment=$folder/unsafe.lua
cat >"$experiment" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "<b>bold</b>&\"quoted\"", params = { steps = 40, blow = 0 },
    run = function(run)
        local net = run:model(mp.nn.Sequential { mp.nn.Linear(4, 3):named "a</td><script>x" })
        local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })
        local scaler = run:scaler()
        for step = 1, run.params.steps do
            opt:zero_grad()
            local x = mp.randn(8, 4)
            if step == run.params.blow then x = x * (1 / 0) end
            local loss = mp.autocast(function() return net(x):square():mean() end)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss }
        end
        run:event("a</script><img src=http://nowhere.invalid/x>")
    end,
}
LUA
train() {
    run run "$experiment" --quiet "$@"
    [ "$status" -eq 0 ] || echo "not ok train: $*: $(cat "$folder/err")"
}
train -p fp32
train -p fp16 --set blow=20
train -p fp16 --set blow=20 --seed 2
"$mpbench" note 1 "it's <i>noted</i>" >"$folder/out"

# What lies between two texts, the first on a line.
has() {
    grep -q -e "$1" "$page" || fail "the page lacks \"$1\""
}
lacks() {
    ! grep -q -e "$1" "$page" || fail "the page has \"$1\": $(grep -o -e ".\{30\}$1.\{30\}" "$page" | head -n 1)"
}

begin the_page_says_what_compare_says
run compare 1 2 3 --json
compared=$folder/compared
cp "$folder/out" "$compared"
run report 1 2 3 -o "$page"
expect_status 0
expect_silent out
expect_silent err
verdict=$(sed -n 's/.*"verdict":\["\([^"\\]*\)["\\].*/\1/p' "$compared" | sed "s/&/\&amp;/g; s/'/\&#39;/g; s/</\&lt;/g; s/>/\&gt;/g")
[ -n "$verdict" ] || fail "compare has no verdict"
grep -qF "$verdict" "$page" || fail "the verdict is not there: $verdict"
ratio=$(sed -n 's/.*"memory_ratio":\([0-9.]*\).*/\1/p' "$compared" | head -n 1)
has "$(printf '%.2f×' "$ratio")"
has '2 seeds'
has 'Memory by purpose'
end

begin the_page_tells_energy_that_is_stated
run report 1 2 3 --watts 36 --co2 500 -o "$page"
expect_status 0
has "J, which is .* kWh and, at 500 g a kWh, .* g of CO2"
has "it is stated, 36 W for as long as a run took"
end

begin zeros_are_told_as_in_the_table_of_layers
has '>flushed<.*>zero<'
end

begin names_are_never_markup
lacks '<b>bold'
has '&lt;b&gt;bold&lt;/b&gt;'
has 'a&lt;/td&gt;&lt;script&gt;x'
lacks '<img'
has 'it&#39;s &lt;i&gt;noted'
[ "$(grep -c '</script>' "$page")" -eq 1 ] || fail "a script of somebody else's"
end

begin nothing_outside_the_page_is_named
# Addresses may stand in text that people wrote, and nowhere that a browser fetches from.
lacks '<[a-z]*[^>]* src='
lacks 'url('
lacks '@import'
grep -o ' href="[^"]*"' "$page" | grep -qv '"data:,"' && fail "a link leaves the page"
has "default-src 'none'"
end

begin what_was_not_finite_is_drawn
has 'class="broken"'
has 'skipped steps'
run report 1 -o "$page"
expect_status 0
lacks 'class="broken" d="M[0-9.]* 12l'
end

# The command of the page in $page, run in another folder than the one of its run.
repeat() {
    command=$(sed -n 's/^<pre>mpbench run \(.*\)<\/pre>$/\1/p' "$page")
    [ -n "$command" ] || fail "there is no command"
    (
        cd / || exit 1
        # shellcheck disable=SC2086 # words
        "$mpbench" run $command >/dev/null
    ) 2>"$folder/err" || fail "it does not run: $command: $(cat "$folder/err")"
}

begin the_command_in_the_page_repeats_the_run
run report 2 -o "$page"
repeat
run compare 2 4 --json
expect_out '"first_divergence":{"step":null'
end

begin that_of_a_matrix_in_a_page_and_in_show_is_one_that_anybody_types
history_before=$MPBENCH_DB
export MPBENCH_DB="$folder/of-a-matrix.db"
run matrix simple -p fp32 --steps 3 --quiet
expect_status 0
run show 1
expect_no_out "--matrix"
run report 1 -o "$page"
lacks "--matrix"
has "<pre>mpbench run simple "
repeat
export MPBENCH_DB="$history_before"
end

begin a_script_that_is_cut_says_so
write_tiny
awk 'BEGIN { for (i = 0; i < 6000; i++) print "-- a line of a long script, as programs write them " i }' >>"$tiny"
run run "$tiny" -p fp32 --set steps=3 --quiet --name long
run report long -o "$page"
expect_status 0
has "The first 262144 of $(wc -c <"$tiny") bytes; the history has the rest"
end

begin numbers_that_hardly_differ_or_lie_far_apart_have_axes
sed 's/run:log { loss = loss }/run:log { loss = loss, near = step % 2 == 0 and 0.1 + 0.2 or 0.3, far = step % 2 == 0 and 1e300 or 1e-300 }/' \
    "$experiment" >"$folder/near.lua"
run run "$folder/near.lua" --quiet --set steps=20
expect_status 0
timeout 20 "$mpbench" report @last | head -c 2000000 >"$page"
[ "$(tail -c 8 "$page")" = "</html>" ] || fail "the page has no end: $(wc -c <"$page") bytes"
has 'figcaption>near<'
has 'figcaption>far, logarithmic<'
lacks 'nan'
end

begin a_page_goes_to_a_file_or_a_pipe_and_never_over_the_history
"$mpbench" report @last >"$folder/piped" || fail "no page through a pipe"
[ "$(tail -c 8 "$folder/piped")" = "</html>" ] || fail "the page is cut"
run report 1 -o "$MPBENCH_DB"
expect_error 2 'file of the history'
run report 99 -o "$page"
expect_error 2
run report 1 -o "$folder/none/page.html"
expect_error 1 'the folder that it would lie in is not there'
run report 1 -o /proc/page.html
expect_error 1 '/proc/page.html: its folder takes no new files'
end

# A browser: nothing asked for outside, nothing said on its console, at three widths.
if [ -n "${MPBENCH_SOAK:-}" ]; then
    browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
    begin a_browser_opens_it_without_a_word
    run report 1 2 3 -o "$page"
    for width in ${browser:+375 768 1440}; do
        timeout 120 "$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr \
            --user-data-dir="$folder/browser" --window-size="$width",900 --log-net-log="$folder/net" \
            --screenshot="$folder/shot.png" "file://$page" >"$folder/said" 2>&1 || fail "it ends with $?"
        grep -q 'CONSOLE' "$folder/said" && fail "$width: $(grep CONSOLE "$folder/said" | head -n 1)"
        [ -s "$folder/shot.png" ] || fail "$width: no picture"
        grep -q 'nowhere.invalid' "$folder/net" && fail "$width: something was fetched"
    done
    if [ -n "$browser" ]; then end; else echo "skip $name: there is no chromium"; fi
fi

exit "$failures"
