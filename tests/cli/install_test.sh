#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# What leaves the folder that it was built in: `make install` and `make dist`.
. "$(dirname "$0")/../shell.sh"
unset MPBENCH_EXPERIMENTS # it finds those that lie beside it

# Of what is built, as it is: tests beside this one run it.
build=$(dirname "$mpbench")
make_of_built() {
    make --no-print-directory BUILD="$build" -o "$build/mpbench" -o "$build/mpbench-gpu.so" \
        -o "$build/src/main.o" -o "$build/libmpbench.a" "$@" >"$folder/out" 2>"$folder/err"
    status=$?
}

# Every page and picture that a page of this folder points to is there, too.
expect_whole_pages() { # FOLDER
    for page in "$1"/README.md "$1"/docs/*.md; do
        [ -e "$page" ] || fail "it lacks $page"
        grep -o '](\([^):]*\))' "$page" | sed 's/^](\([^#]*\).*)$/\1/' >"$folder/links"
        while IFS= read -r link; do
            [ -e "${page%/*}/$link" ] || fail "${page##*/} points to $link, which is not there"
        done <"$folder/links"
    done
}

begin an_installed_program_runs_and_has_its_pages
make_of_built install DESTDIR="$folder/root" PREFIX=/usr/local
expect_status 0
expect_whole_pages "$folder/root/usr/local/share/doc/mpbench"
[ -e "$folder/root/usr/local/share/mpbench/experiments/simple.lua" ] || fail "it lacks simple.lua"
(cd / && "$folder/root/usr/local/bin/mpbench" run simple --steps 5 --no-history --quiet) \
    >"$folder/out" 2>"$folder/err" || fail "$(cat "$folder/err")"
end

begin a_folder_that_travels_runs_anywhere_and_has_its_pages
make_of_built dist DIST="$folder/travels"
expect_status 0
mv "$folder/travels" "$folder/elsewhere"
expect_whole_pages "$folder/elsewhere"
ldd "$folder/elsewhere/mpbench" | grep -q "$folder/elsewhere/lib/libdnnl" ||
    fail "it takes libraries from elsewhere: $(ldd "$folder/elsewhere/mpbench" | grep libdnnl)"
(cd / && "$folder/elsewhere/mpbench" run simple --steps 5 --no-history --quiet) \
    >"$folder/out" 2>"$folder/err" || fail "$(cat "$folder/err")"
end

exit "$failures"
