// cli/train/twin.h: `run --twin P`: the second process, and what is said of the pair.
#pragma once

#include "cli/print/terminal.h"
#include "cli/train/training.h"
#include "store/twin.h"

// Trains by cli->run, and beside it the same in cli->twin, in a process of its own, which is over
// when this returns.
bool twin_training_run(Cli *cli, const TrainingPlan *plan, Error *error) MUST_CHECK;
