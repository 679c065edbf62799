#!/bin/sh
# record_demo.sh FILE: trains what `mpbench --demo` shows and packs its history into FILE. Takes some
# minutes, and wants a machine that does nothing else: the demo shows its speeds.
#
# What is true of this machine alone (its name, where the scripts lie) is left out, and so are the
# checkpoints, which are files beside the history. $MPBENCH is the program.
set -eu
file=$1
mpbench=${MPBENCH:-build/mpbench}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
MPBENCH_DB=$folder/demo.db
export MPBENCH_DB

train() { "$mpbench" run "$@" --quiet >"$folder/out"; }
steps_of() { "$mpbench" show "$1" --json | sed -n 's/.*"steps":\([0-9]*\).*/\1/p'; }
# at STEP ORDER...: to the last run, once it has come so far.
at() {
    step=$1
    shift
    while [ "$(steps_of @last)" -lt "$step" ]; do sleep 0.1; done
    "$mpbench" ctl @last "$@" >"$folder/out"
}

train simple -p fp32 --steps 500
train underflow -p fp16 --loss-scale none --steps 300 --note "no loss scale: the gradients vanish"
train underflow -p fp16 --steps 300 --tag kept
for precision in fp16 fp32 bf16; do train fashion_mlp -p "$precision" --epochs 1; done
train fashion_cnn -p fp32 --epochs 2 --set width=16 --tag baseline
train fashion_cnn -p fp16 --epochs 2 --set width=16 --tag mixed &
worker=$!
sleep 2
at 200 set layer.hidden=fp32
at 280 set loss_scale=1048576 # too much: steps are skipped until it has come down
at 340 set layer.hidden=auto
wait "$worker"
"$mpbench" scan fashion_cnn --set width=16 --quiet >"$folder/out"
"$mpbench" profile fashion_cnn -p fp16 --set width=16 --quiet --db "$folder/profile.db" >"$folder/out"

# The profile becomes that of the last run. Its tables are made on demand.
sqlite3 "$MPBENCH_DB" "
    $(sqlite3 "$folder/profile.db" "SELECT sql || ';' FROM sqlite_master
        WHERE name LIKE 'profile%' AND sql NOT NULL" | sed 's/^CREATE TABLE/CREATE TABLE IF NOT EXISTS/')
    ATTACH '$folder/profile.db' AS other;
    INSERT INTO profiles SELECT * FROM other.profiles;
    INSERT INTO profile_parts SELECT * FROM other.profile_parts;
    UPDATE profiles SET run = (SELECT max(id) FROM runs);
    UPDATE profile_parts SET run = (SELECT max(id) FROM runs);
    DELETE FROM checkpoints;
    UPDATE environment SET value = 'recorded' WHERE name = 'host';
    UPDATE environment SET value = 'Linux' WHERE name = 'kernel';
    DELETE FROM environment WHERE name = 'process';
    UPDATE scans SET token = NULL, host = NULL, boot = NULL, script_path = 'experiments/' ||
        replace(script_path, rtrim(script_path, replace(script_path, '/', '')), '');
    UPDATE runs SET script_path = 'experiments/' ||
        replace(script_path, rtrim(script_path, replace(script_path, '/', '')), '');
    VACUUM;"
gzip -9 -n <"$MPBENCH_DB" >"$file"
