#!/bin/sh
# deps.sh install PACKAGE...   installs the packages that are missing
# deps.sh check PACKAGE...     the same, silent when nothing is missing
# As root or through sudo; otherwise it prints the line to run and fails.
set -eu
action=$1
shift

missing=
for package in "$@"; do
    state=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
    [ "$state" = "install ok installed" ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
    [ "$action" = check ] || echo "deps: everything is installed"
    exit 0
fi

if ! command -v apt-get >/dev/null 2>&1; then
    echo "deps: no apt-get here; install what these Debian packages hold:$missing" >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    root=
elif command -v sudo >/dev/null 2>&1; then
    root=sudo
else
    echo "deps: missing packages; as root run: apt-get install -y$missing" >&2
    exit 1
fi
echo "deps: installing$missing"
# shellcheck disable=SC2086 # both are lists of words
{
    $root env DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
        $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null
}
