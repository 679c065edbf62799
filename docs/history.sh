#!/bin/sh
# Prints docs/history.md: what the file of the run history holds. $MPBENCH is the program, whose
# schema it is.
set -eu
mpbench=${MPBENCH:-build/mpbench}
unset MPBENCH_DB

cat <<'TEXT'
# The run history

Made by `make docs` from the program's own schema.

Every run is kept in one SQLite file: `--db FILE`, else `MPBENCH_DB`, else
`$XDG_DATA_HOME/mpbench/history.db`, else `~/.local/share/mpbench/history.db`. Checkpoints lie beside it,
under `checkpoints/RUN/`; those of another file, `x.db`, under `x.checkpoints/RUN/`. Any SQLite tool may
read it, also while runs are written; open it read-only:

```
sqlite3 -readonly ~/.local/share/mpbench/history.db 'SELECT * FROM run_summary'
sqlite3 -readonly -csv history.db "SELECT step, value FROM run_points WHERE run = 'simple-1' AND series = 'loss'"
sqlite3 -readonly history.db "SELECT step, text FROM run_events WHERE run = 'simple-1' AND kind = 'skip'"
sqlite3 -readonly history.db "SELECT l.name, r.format, r.value FROM scan_readings r JOIN scan_layers l USING (scan, layer) WHERE scan = 1 AND r.name = 'damage'"
```

`mpbench export` writes the same as CSV or JSON lines.

- **Not finite.** SQLite has no NaN: where a value is not finite it is NULL, and `kind` says what it was.
  Where there is no `kind`, NULL is unknown.
- **Points and buckets.** Every point is a row while that is cheap; beside the rows there are sums over 8,
  64, 512, ... steps, so that any zoom reads few rows. Where points come faster than that is cheap, only
  the sums are there.
- **Segments.** A start, a resume or a fork begins one. A resume after step S supersedes what earlier
  segments have after S; those rows stay.
- **Histograms** of layers are of the binary exponents of true (unscaled) gradients. The blob: one byte, 1
  for counts, 2 for counts that were all scaled down alike; one byte, the first bin that is not 0, where
  bin b counts 2^(b-64) <= |g| < 2^(b-63); then the counts, each in groups of 7 bits, the lowest first, a
  set high bit saying that more follow. Nothing behind the first byte: no gradient but zeros.
- **Scans** are kept as they are measured, a cell or a training at a time: one whose `ended_ms` is NULL
  lacks what it had not come to, and the same `mpbench scan` goes on with it. A scan of a run goes with the
  run.
- **Versions.** `PRAGMA user_version` is the schema's, `PRAGMA application_id` 0x6d706268. An older file is
  brought up to date when it is first written, a copy is kept beside it; a newer one is only read.

## Schema

```sql
TEXT
"$mpbench" help history | awk '/^CREATE/ { inside = 1 } inside' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
echo '```'
