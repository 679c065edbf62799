#!/bin/sh
# lint.sh [fast]   checks the tree below the current folder. `fast`: only what needs no tools.
# One line a breach, "file:line: rule: what"; exit status 1 if there was any.
set -u
mode=${1:-all}
here=$(dirname "$0")
bad=0

sources=$(find src lua gpu ui -name '*.[ch]' -o -name '*.cu' -o -name '*.def' 2>/dev/null | sort)
scripts=$(find lua experiments -name '*.lua' | sort)
lua_tests=$(find tests -name '*.lua' | sort)
# shellcheck disable=SC2086 # lists of files without spaces in their names
{
    awk -f "$here/includes.awk" "$here/rooms.txt" $sources || bad=1
    awk -f "$here/words.awk" $sources $scripts || bad=1
}
[ "$mode" = fast ] && exit "$bad"

tests=$(find tests -name '*.[ch]' -o -name '*.cu' | sort)
shells=$(find . -name '*.sh' -not -path './build*' | sort)
formatted=$(echo "$sources" | grep -v '\.def$')
# shellcheck disable=SC2086
{
    clang-format --dry-run -Werror $formatted $tests || bad=1
    luacheck -q $scripts $lua_tests || bad=1
    shellcheck $shells .ci/run || bad=1
}

# The second compiler, with the house's warnings. Files under simd/ at the level that has most code.
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -Wno-unknown-warning-option"
flags="-std=c17 -fopenmp -Isrc -I. -D_POSIX_C_SOURCE=200809L -I/usr/include/lua5.4"
wide="-DMPBENCH_ISA=avx512 -march=x86-64-v4"
pairs="-DMPBENCH_ISA=avx512bf16 -march=x86-64-v4 -mavx512bf16"
tiles="-march=x86-64-v4 -mavx512bf16 -mamx-tile -mamx-bf16"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
card="-isystem ${nvcc%/bin/nvcc}/include -DGPU_IMAGES=\"lint\""
for file in $(echo "$sources" | grep '\.c$'); do
    case $file in
    */simd/*pairs.c) extra=$pairs ;;
    */simd/*) extra=$wide ;;
    */amx/*) extra=$tiles ;;
    gpu/dnn/*)
        [ -e "${nvcc%/bin/nvcc}/include/cudnn.h" ] || continue
        extra=$card
        ;;
    gpu/*)
        [ -x "$nvcc" ] || continue
        extra=$card
        ;;
    *) extra= ;;
    esac
    # shellcheck disable=SC2086
    clang -fsyntax-only $flags -DMPBENCH_VERSION='"lint"' -DMPBENCH_CONTRACT=0 $warnings $extra "$file" || bad=1
done

# Files under simd/ at the other levels: what is written for these alone.
for level in "avx512vnni -march=x86-64-v4 -mavx512vnni" "avxvnni -march=x86-64-v3 -mavxvnni" "avx2 -march=x86-64-v3" base; do
    case $level in
    *vnni) files='\(int8\|elements\|elements_pack\)\.c$' without='^$' ;;
    avx2*) files='\.c$' without='pairs\.c$' ;;
    *) files='\.c$' without='\(pairs\|elements\|elements_pack\)\.c$' ;;
    esac
    for file in $(echo "$sources" | grep "/simd/.*$files" | grep -v "$without"); do
        # shellcheck disable=SC2086
        clang -fsyntax-only $flags $warnings -DMPBENCH_ISA=$level "$file" || bad=1
    done
done

# The contract of devices, in the dialects that a plugin may be written in: all of it as C++, and the
# rules that kernels share with the host as CUDA where its compiler is installed.
for compiler in g++ clang; do
    for header in src/kernel/*.h src/number/inline.h "$here/rules.cu"; do
        echo "#include \"$header\""
    done | "$compiler" -x c++ -std=c++17 -fsyntax-only -Wall -Werror -Wno-unused-function -Isrc -I. - || bad=1
done
# Kernels as the emulated card takes them, whose compiler finds other faults than nvcc.
for file in $(echo "$sources" | grep '\.cu$'); do
    g++ -x c++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -Wno-unknown-pragmas \
        -Wno-missing-field-initializers -DGPU_EMULATED='"tests/emulator/emulator.h"' -Isrc -I. "$file" || bad=1
done
if command -v nvcc >/dev/null; then
    nvcc -x cu -std=c++17 -ptx -Werror all-warnings -Isrc -I. -o /dev/null "$here/rules.cu" || bad=1
fi
exit "$bad"
