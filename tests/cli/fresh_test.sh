#!/bin/sh
# On a fresh machine `make test` finds what it has just installed, and leaves no test out.
set -u
name=make_looks_for_libraries_after_it_installed_them
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"

# A machine that lacks every package until apt-get has run; only then pkg-config knows a library.
put() {
    printf '#!/bin/sh\n%s\n' "$2" >"$folder/bin/$1"
    chmod +x "$folder/bin/$1"
}
put id 'echo 0'
put dpkg-query 'exit 1'
put apt-get "touch '$folder/installed'"
put pkg-config "[ -e '$folder/installed' ] && echo -lfound-after"

PATH=$folder/bin:$PATH make -n BUILD="$folder/build" "$folder/build/tests/screen/home_test" \
    >"$folder/log" 2>&1
if grep -q -- '-lfound-after' "$folder/log"; then
    echo "ok $name"
else
    echo "not ok $name: $(tail -n 1 "$folder/log")"
    exit 1
fi
