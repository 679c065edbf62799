#!/bin/sh
# Prints a C file that holds the given Lua files as text: embedded_lua[], ended by a NULL name.
# A file's name in it is its base name without .lua ("layers"); lua/embedded.h declares the table.
set -eu
echo '#include "lua/embedded.h"'
for file in "$@"; do
    name=$(basename "$file" .lua)
    printf 'static const char text_%s[] = {\n' "$name"
    od -An -v -t u1 "$file" | sed 's/ *\([0-9][0-9]*\)/\1,/g'
    printf '0};\n'
done
echo 'const EmbeddedLua embedded_lua[] = {'
for file in "$@"; do
    name=$(basename "$file" .lua)
    # shellcheck disable=SC2016 # the quotes are C's
    printf '    {"%s", text_%s, sizeof text_%s - 1},\n' "$name" "$name" "$name"
done
echo '    {0, 0, 0},'
echo '};'
