#!/bin/sh
# embed.sh TABLE FILE..: prints a C file that holds files as text, TABLE[], ended by a NULL name.
# A file's name in it is its base name without its ending ("layers"); base/embedded.h declares them.
set -eu
table=$1
shift
name_of() {
    basename "${1%.*}"
}
echo '#include "base/embedded.h"'
for file in "$@"; do
    name=$(name_of "$file")
    printf 'static const char text_%s[] = {\n' "$name"
    od -An -v -t u1 "$file" | sed 's/ *\([0-9][0-9]*\)/\1,/g'
    printf '0};\n'
done
echo "const EmbeddedText ${table}[] = {"
for file in "$@"; do
    name=$(name_of "$file")
    # shellcheck disable=SC2016 # the quotes are C's
    printf '    {"%s", text_%s, sizeof text_%s - 1},\n' "$name" "$name" "$name"
done
echo '    {0, 0, 0},'
echo '};'
