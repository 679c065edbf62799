# Checks the #include lines of the files given after rooms.txt against its rules.
# Prints "file:line: include: what" for each breach; the exit status says whether there was one.

function room_of(path, parts) {
    split(path, parts, "/")
    if (parts[1] == "src")
        return parts[2] ~ /\./ ? "main" : parts[2]
    return parts[1] # lua, gpu, ui
}

FNR == NR {
    if ($1 == "" || $1 ~ /^#/)
        next
    if ($1 == "only") {
        for (i = 3; i <= NF; i++) {
            owner[$2] = owner[$2] (i > 3 ? "/ and " : "") $i
            owns[$2, $i] = 1
        }
        next
    }
    known[$1] = 1
    for (i = 2; i <= NF; i++)
        allowed[$1, $i] = 1
    next
}

FNR == 1 {
    file = FILENAME
    sub(/^\.\//, "", file)
    room = room_of(file)
    if (!known[room]) {
        printf "%s:1: include: room %s is not in tests/lint/rooms.txt\n", file, room
        bad = 1
    }
}

/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    header = $0
    sub(/^[ \t]*#[ \t]*include[ \t]*[<"]/, "", header)
    sub(/[>"].*$/, "", header)
    if (header in owner && !((header, room) in owns)) {
        printf "%s:%d: include: <%s> belongs to %s/ alone\n", file, FNR, header, owner[header]
        bad = 1
    }
    if ($0 ~ /</ || header !~ /\//)
        next # the system's, or a neighbour in the same folder
    split(header, parts, "/")
    target = parts[1]
    if (target != room && !((room, target) in allowed)) {
        printf "%s:%d: include: %s/ may not know %s/\n", file, FNR, room, target
        bad = 1
    }
}

END { exit bad }
