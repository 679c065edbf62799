// cli/train/dry_run.h: `mpbench run --dry-run`.
#pragma once

#include "cli/cli.h"

// Trains the experiment at `path` for two steps and prints what the run would be.
bool dry_run(Cli *cli, const char *path, Error *error) MUST_CHECK;
