#!/bin/sh
# pictures.sh PICTURE FOLDER: the pictures of README.md, from the screen on its recording. PICTURE is
# the program of picture.c, $MPBENCH the program that is shown.
set -eu
picture=$1
folder=$2
down=$(printf '\033OB')

take() { # NAME KEYS: sent, and what is waited for, in turns; see picture.c
    "$picture" 120 36 "$2" --demo >"$folder/$1.svg.part"
    mv "$folder/$1.svg.part" "$folder/$1.svg"
}
take home "_|fashion-cnn-8|1|experiments|  |2 chosen"
take live "_|fashion-cnn-8|G|finished|$down$down$down$down|hidden · exponents"
take compare "_|fashion-cnn-8|1|experiments|  c|outcomes"
take formats "_|fashion-cnn-8|4|flushed"
