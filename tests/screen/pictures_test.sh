#!/bin/sh
# The pictures of README.md are those that the screen draws now.
set -u
picture=${MPBENCH%/*}/tests/screen/picture
name=pictures_are_current
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! sh tests/screen/pictures.sh "$picture" "$folder" >"$folder/log" 2>&1; then
    echo "not ok $name: $(sed -n 1p "$folder/log")"
    exit 1
fi
for file in docs/pictures/*.svg; do
    if ! cmp -s "$file" "$folder/${file##*/}"; then
        echo "not ok $name: $file differs from the screen; make pictures, and look at them"
        exit 1
    fi
    if ! grep -q "$file" README.md; then
        echo "not ok $name: README.md does not show $file"
        exit 1
    fi
done
echo "ok $name"
