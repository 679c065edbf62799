#!/bin/sh
# The reference pages say what the program does. $MPBENCH is the program.
set -u
mpbench=${MPBENCH:-build/mpbench}
root=$(dirname "$0")/../..
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
report() { # NAME WHAT-IS-WRONG
    if [ -z "$2" ]; then
        echo "ok $1"
    else
        echo "not ok $1: $2"
        failures=1
    fi
}

wrong=
MPBENCH=$mpbench sh "$root/docs/reference.sh" >"$folder/reference.md" 2>"$folder/err" ||
    wrong=$(tail -n 1 "$folder/err")
[ -n "$wrong" ] || diff "$root/docs/reference.md" "$folder/reference.md" >"$folder/diff" ||
    wrong="run \`make docs\`: $(sed -n 2p "$folder/diff")"
report reference_is_what_the_program_says "$wrong"

wrong=
MPBENCH=$mpbench sh "$root/docs/history.sh" >"$folder/history.md" 2>"$folder/err" ||
    wrong=$(tail -n 1 "$folder/err")
[ -n "$wrong" ] || grep -q '^CREATE TABLE runs' "$folder/history.md" || wrong="it lacks the schema"
[ -n "$wrong" ] || diff "$root/docs/history.md" "$folder/history.md" >"$folder/diff" ||
    wrong="run \`make docs\`: $(sed -n 2p "$folder/diff")"
report history_page_is_the_schema "$wrong"

# Files and functions that pages for programmers name are there: what moves takes its name along.
wrong=
cat "$root/docs/architecture.md" "$root/docs/gpu.md" "$root/docs/speed.md" | tr '`' '\n' | sort -u >"$folder/words"
grep -E '^(src|lua|ui|gpu|tests|docs)/[A-Za-z0-9_./]*$' "$folder/words" >"$folder/paths"
while read -r path; do
    [ -e "$root/$path" ] || wrong="$wrong $path"
done <"$folder/paths"
grep -E '^[a-z0-9]+(_[a-z0-9]+)+$' "$folder/words" >"$folder/functions"
while read -r function; do
    grep -rqw --include='*.[ch]' "$function" "$root/src" "$root/lua" "$root/ui" "$root/gpu" || wrong="$wrong $function"
done <"$folder/functions"
[ "$(wc -l <"$folder/paths")" -gt 50 ] && [ "$(wc -l <"$folder/functions")" -gt 10 ] || wrong=" next to nothing"
for page in architecture gpu speed; do
    grep -q "(docs/$page.md)" "$root/README.md" || wrong="$wrong, and README does not lead to docs/$page.md"
done
report architecture_names_what_is_there "${wrong:+docs/architecture.md, docs/gpu.md or docs/speed.md names$wrong}"

# Every name that scripts can reach, its room before it and what it is behind it.
cat >"$folder/names.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "names",
    run = function()
        local function tell(t, title)
            for name, value in pairs(t) do
                if type(name) == "string" and name:sub(1, 1) ~= "_" then print(title, name, value) end
            end
        end
        tell(mp, "mp")
        for _, room in ipairs { "fn", "nn", "optim", "data" } do tell(mp[room], "mp." .. room) end
        tell(mp.optim.schedule, "mp.optim.schedule")
    end,
}
LUA
"$mpbench" run "$folder/names.lua" -d cpu --no-history --quiet >"$folder/out" 2>"$folder/names"
# A room's name must stand in its own section, at the start of a word, as code.
missing=$(awk -F '\t' '
    FILENAME != last { last = FILENAME; section = "" }
    FILENAME ~ /lua.md$/ {
        if ($0 ~ /^## /) section = $0 ~ /^## mp\.(fn|nn|optim|data)$/ ? substr($0, 4) : "mp"
        text[section] = text[section] "\n" $0
        next
    }
    $1 == "mp" && $3 ~ /^table/ { next } # a room
    $1 ~ /^mp/ {
        room = $1 == "mp.optim.schedule" ? "mp.optim" : $1
        if (text[room] !~ ("[`.]" $2 "[^a-zA-Z0-9_]")) printf "%s.%s ", $1, $2
    }' "$root/docs/lua.md" "$folder/names")
[ "$(grep -c '^mp' "$folder/names")" -gt 100 ] || missing="the names: $(tail -n 1 "$folder/names")"
report every_name_is_explained "${missing:+lua.md lacks $missing}"

# What has no derivative, or no second one, is told there too.
wrong=
awk '/^Second derivatives:/ { inside = 1 } NF == 0 { inside = 0 } inside' "$root/docs/lua.md" >"$folder/second"
awk '$2 ~ /^(low|full|widest|keep|banned)$/ && $4 ~ /^(once|none)$/ { print $1 }' "$folder/reference.md" >"$folder/lacking"
while read -r function; do
    grep -qF "\`$function\`" "$folder/second" || wrong="$wrong $function"
done <"$folder/lacking"
[ -s "$folder/lacking" ] || wrong=" next to nothing"
report operations_without_derivatives_are_told "${wrong:+what docs/lua.md says of second derivatives lacks$wrong}"

# What each function takes, as it is declared, and as every call is held to it.
cat >"$folder/signatures.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "signatures",
    run = function()
        mp.nn.Linear(1, 1):find("*") -- declares its own
        for title, takes in pairs(debug.getregistry()["mp.signatures"]) do print(title, takes) end
    end,
}
LUA
"$mpbench" run "$folder/signatures.lua" -d cpu --no-history --quiet --trust >"$folder/out" 2>"$folder/signatures"
# A line of the page holds the name as code, and the arguments. What every loader takes is said once.
wrong=$(awk -F '\t' '
    FILENAME ~ /lua.md$/ { line[++lines] = $0; next }
    {
        name = $1
        sub(/^mp\.optim\.schedule/, "schedule", name)
        if (name !~ /^nn\.(class|Parameter)$/) sub(/^(mp\.optim|mp\.data|F|nn)\./, "", name)
        takes = $2
        sub(/, batch = 32, .*seed }$/, ", .. }", takes)
        if (index(takes, "{") == 1 && !index(takes, ")")) takes = " " takes
        else takes = "(" takes ")"
        found = 0
        for (i = 1; i <= lines && !found; i++) {
            at = index(line[i], "`" name)
            found = at && substr(line[i], at + 1 + length(name), 1) !~ /[a-zA-Z0-9_]/ && index(line[i], takes)
        }
        if (!found) printf "%s%s, ", name, takes
    }' "$root/docs/lua.md" "$folder/signatures")
[ "$(wc -l <"$folder/signatures")" -gt 150 ] || wrong="the declarations: $(tail -n 1 "$folder/signatures")"
report every_function_is_written_as_it_is_declared "${wrong:+lua.md lacks $wrong}"
exit "$failures"
