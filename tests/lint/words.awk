# Checks the text of source files: what was left open, length, how headers begin, and calls that the
# engine never makes. Prints "file:line: rule: what"; the exit status says whether there was a breach.

function breach(line, rule, what) {
    printf "%s:%d: %s: %s\n", file, line, rule, what
    bad = 1
}

function finish_file() {
    if (file != "" && lines > 600)
        breach(lines, "length", "more than 600 lines: two files in one")
    if (file ~ /\.h$/ && !contract)
        breach(1, "header", "does not open with its contract (a // comment)")
    if (file ~ /\.h$/ && !once)
        breach(1, "header", "lacks #pragma once")
}

# What goes to a card's stream beside gpu_put overtakes what is held back, and is in no graph: these
# files do it as works, or when nothing is (gpu_put_apart).
BEGIN {
    split("blas_products capture clock device dnn launch report stage values zero", files, " ")
    for (i in files)
        knows_stream["gpu/" files[i] ".c"] = 1
}

FNR == 1 {
    finish_file()
    file = FILENAME
    sub(/^\.\//, "", file)
    contract = /^\/\//
    once = 0
    engine = file ~ /^src\/(base|number|kernel|tensor|grad|precision|ops|optim|data|checkpoint|run|cpu|ref)\//
}

{ lines = FNR }
/^#pragma once/ { once = 1 }

/(TO)DO|(FIX)ME|(XX)X|(HA)CK/ { breach(FNR, "open", "something was left to do") }

engine && /(^|[^_a-zA-Z0-9])(printf|puts|exit|_exit|longjmp|setjmp)[ ]*\(/ && !/^[ \t]*\/\// {
    breach(FNR, "engine", "the engine never prints, exits or jumps")
}

file ~ /^gpu\/.*\.c$/ && !(file in knows_stream) && /gpu(_of\([a-z]*\))?->stream/ {
    breach(FNR, "stream", "work goes there by gpu_put (gpu/capture.h)")
}

# A list of names outside the table would miss the next format.
file ~ /\.[ch]$/ {
    code = $0
    sub(/\/\/.*/, "", code)
    if (code ~ /"(bf16|fp16|tf32|e4m3|e5m2)"/ || code ~ /(bf16|fp32)[ ,|\/]+(fp16|bf16)/)
        breach(FNR, "formats", "names of formats come from number/formats.def")
}

END {
    finish_file()
    exit bad
}
