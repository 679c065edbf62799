#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Scripts over the emulated card: what they are promised of every function, and that a run which is
# stopped, resumed or forked is to the bit the one that was not.
. "$(dirname "$0")/../shell.sh"
. "$(dirname "$0")/suites.sh"

over order=shuffled,streams=shuffled lua/lua_test.sh lua/values_test.sh lua/refused_test \
    lua/resume_test lua/resume_record_test lua/memory_test lua/casting_test

exit "$failures"
