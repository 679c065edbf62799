// optim/optimizer_private.h: the inside of an optimizer, which the files of src/optim share.
// Private to the room.
#pragma once

#include "optim/optimizer.h"

typedef struct OptimizerSlot { // one parameter
    Tensor *moment[2];         // NULL where the rule has none
    int group;
} OptimizerSlot;

typedef struct GroupSettings {
    double lr_factor; // times the base rate
    double weight_decay;
    int count; // of parameters
} GroupSettings;

struct Optimizer {
    Engine *engine;
    OptimizerOptions options;
    UpdateRule rule;
    Gradients *gradients; // and the parameters, which all that is counted here goes by
    OptimizerSlot *slots;
    GroupSettings *groups; // [group_count]
    int group_count;
    UpdatePlan plan;  // an item beside each of the gradients' plan, built and kept as those are
    int *update_slot; // whose update i is; -1: not built yet
    uint64_t random_blocks; // that one update takes; 0: nothing is rounded stochastically
    // Device memory, one block.
    Progress *progress;
    double *moved;      // [2 * count], a ParameterMove each
    uint64_t *steps;    // [count], each parameter's own
    double *rates;      // [1 + group_count], as UpdateRule has them
    bool rates_changed; // since they were written there
    bool measured;      // the last update was
    uint64_t scaler;    // the number of the one that last unscaled for it; 0: none did
};

// The share of the base rate that a group takes, as it was kept; what is none is left out.
void optimizer_set_factor(Optimizer *optimizer, int group, double factor);

// ---- what it may be asked for (optimizer_options.c) ---------------------------------------------

bool optimizer_is_amount(double value);                      // finite, at least 0
int optimizer_moment_count(const OptimizerOptions *options); // of each parameter
// `of`: whose they are, for messages.
bool optimizer_check_options(const OptimizerOptions *options, Error *error) MUST_CHECK;
bool optimizer_check_schedule(const char *of, const Schedule *schedule, Error *error) MUST_CHECK;
bool optimizer_check_rate(const char *of, double rate, Error *error) MUST_CHECK;
bool optimizer_check_group(const char *of, const OptimizerGroup *group, int number, double base,
                           Error *error) MUST_CHECK;
// The parameter that was added as number i.
bool optimizer_check_parameter(const Optimizer *optimizer, int i, Error *error) MUST_CHECK;
