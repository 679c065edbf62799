// cli/machine/formats.h: parts of `mpbench formats`, for the files of this folder.
#pragma once

#include "cli/cli.h"

// The operands as one block of numbers, in every scaled format.
bool formats_show_block(const Cli *cli, Error *error) MUST_CHECK;
