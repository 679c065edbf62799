#!/bin/sh
# Plants one breach after another in a copy of the tree and asks whether lint names file and line.
set -u
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r src lua experiments tests "$copy/"
cd "$copy" || exit 2

if out=$(sh tests/lint/lint.sh fast 2>&1); then
    echo "ok lint_passes_the_tree"
else
    echo "not ok lint_passes_the_tree: $(echo "$out" | head -n 1)"
fi

# planted NAME FILE TEXT EXPECTED: appends TEXT to FILE and wants EXPECTED among lint's lines
planted() {
    cp "$2" saved 2>/dev/null || rm -f saved
    mkdir -p "$(dirname "$2")"
    # shellcheck disable=SC2059 # the text brings its own line ends
    printf "$3" >>"$2"
    line=$(wc -l <"$2")
    if out=$(sh tests/lint/lint.sh fast 2>&1); then
        echo "not ok lint_finds_$1: it passed"
    elif echo "$out" | grep -qF "$2:$line: $4"; then
        echo "ok lint_finds_$1"
    else
        echo "not ok lint_finds_$1: $(echo "$out" | head -n 1)"
    fi
    if [ -e saved ]; then mv saved "$2"; else rm -f "$2"; fi
}

planted an_arrow_up src/number/format.c '#include "ops/engine.h"\n' "include: number/ may not know ops/"
planted a_sibling_backend src/ref/device.c '#include "cpu/gemm.h"\n' "include: ref/ may not know cpu/"
planted dnnl_outside_cpu src/ops/op.c '#include <dnnl.h>\n' "include: <dnnl.h> belongs to cpu/ alone"
planted lua_outside_lua src/run/run.h '#include <lua.h>\n' "include: <lua.h> belongs to lua/ alone"
planted sqlite_outside_store src/base/error.c '#include <sqlite3.h>\n' "include: <sqlite3.h> belongs to store/ alone"
planted a_screen_that_knows_the_engine ui/cells/plot.c '#include "ops/engine.h"\n' "include: ui/ may not know ops/"
planted an_open_end src/base/error.c "// TO""DO: later\n" "open: something was left to do"
planted a_list_of_formats src/run/run.c 'static const char *const f[] = {"fp32", "bf16"};\n' "formats: names of formats come from number/formats.def"
planted an_exit_in_the_engine src/ops/op.c 'void f(void) { exit(1); }\n' "engine: the engine never prints, exits or jumps"
planted work_that_overtakes_a_step gpu/scale.c 'CUstream f(Gpu *gpu) { return gpu->stream; }\n' "stream: work goes there by gpu_put"
i=0
long=
while [ $i -lt 601 ]; do
    long="$long//\n"
    i=$((i + 1))
done
planted a_file_too_long src/base/clock.c "$long" "length: more than 600 lines: two files in one"
