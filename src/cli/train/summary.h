// cli/train/summary.h: what a person reads on standard output when a run has ended.
#pragma once

#include "cli/cli.h"

void summary_print(const Run *run, const Cli *cli);
