// `mpbench claims`: runs the trials, then the table.
#include "cli/claims/claims.h"

#include <math.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/history/history.h"
#include "cli/train/child.h"

// ---- judging ------------------------------------------------------------------------------------

// The runs of a trial's newest matrix that finished; NULL: there are none.
static bool compare_trial(Store *store, ClaimTrial trial, Comparison **comparison, Error *error) {
    char tag[CLAIM_TAG_SIZE], words[CLAIM_TAG_SIZE + 32];
    int64_t runs[COMPARE_MOST_RUNS];
    RunRecord *found;
    int count, kept = 0;
    claim_tag(trial, tag);
    snprintf(words, sizeof words, "tag:%s status:finished", tag);
    *comparison = NULL;
    if (!store_list_runs(store, &(RunFilter){.words = words}, &found, &count, error))
        return false;
    int newest = 0; // what is looked for is a part of tags, too
    while (newest < count && strcmp(found[newest].tag, tag) != 0)
        newest++;
    for (int i = count - 1; i >= newest; i--) // the oldest first: that is the baseline
        if (strcmp(found[i].tag, tag) == 0 && found[i].matrix == found[newest].matrix &&
            kept < COMPARE_MOST_RUNS)
            runs[kept++] = found[i].id;
    store_free_runs(found, count);
    const CompareOptions options = {.grams_per_kwh = (double)NAN, .prefers_fp32 = true};
    return kept == 0 || (*comparison = compare_new(store, runs, kept, &options, error));
}

static bool is_wanted(const Cli *cli, const Claim *claim) {
    bool is_named = cli->operand_count == 0;
    for (int i = 0; i < cli->operand_count; i++)
        is_named |= strcmp(cli->operands[i], claim->name) == 0;
    return is_named;
}

static bool check_names(const Cli *cli, Error *error) {
    for (int i = 0; i < cli->operand_count; i++) {
        Nearest nearest;
        nearest_begin(&nearest, cli->operands[i]);
        bool is_there = false;
        for (const Claim *claim = claim_table; claim->name; claim++) {
            nearest_offer(&nearest, claim->name);
            is_there |= strcmp(claim->name, cli->operands[i]) == 0;
        }
        if (!is_there)
            return error_fail(error, ERROR_USAGE,
                              "claims: %.60s: no such claim%s%s; `mpbench "
                              "claims --list` has them",
                              cli->operands[i], nearest.best ? "; did you mean " : "",
                              nearest.best ? nearest.best : "");
    }
    return true;
}

// ---- the table ----------------------------------------------------------------------------------

static bool report(const Cli *cli, Store *store, Error *error) {
    const Terminal terminal = terminal_of(stdout, cli->color);
    JsonWriter json = {.stream = stdout};
    if (cli->json)
        json_begin_array(&json);
    else if (cli->markdown)
        claim_print_markdown_head();
    for (const Claim *claim = claim_table; claim->name; claim++) {
        if (!is_wanted(cli, claim))
            continue;
        Comparison *comparison = NULL;
        if (store && !compare_trial(store, claim->trial, &comparison, error))
            return false;
        const ClaimFound found = claim_judge(claim, comparison);
        compare_free(comparison);
        if (cli->json)
            claim_write(&json, claim, &found);
        else if (cli->markdown)
            claim_print_markdown(claim, &found);
        else
            claim_print(&terminal, claim, &found);
    }
    if (cli->json) {
        json_end_array(&json);
        putchar('\n');
    }
    return true;
}

// What is said once all that could be tested was.
static bool tell_lacks(const ClaimLacks *lacks, Error *error) {
    if (lacks->refused)
        return error_fail(error,
                          lacks->status == error_exit_status(ERROR_USAGE) ? ERROR_USAGE
                                                                          : ERROR_UNAVAILABLE,
                          "claims: `mpbench matrix %s` was refused, as said above; what it tests "
                          "is not tested",
                          lacks->refused);
    if (lacks->failed > 0)
        return error_fail(error, ERROR_FAILED,
                          "claims: not all runs finished: what they test is judged by those that "
                          "did; the same command tries the others again");
    return true;
}

bool command_claims(Cli *cli, Error *error) {
    if (!check_names(cli, error))
        return false;
    bool is_wanted_trial[CLAIM_TRIALS] = {false}, done = true;
    ClaimLacks lacks = {.failed = 0};
    for (const Claim *claim = claim_table; claim->name; claim++)
        is_wanted_trial[claim->trial] |= is_wanted(cli, claim);
    if (!cli->list)
        child_catch_signals();
    for (int trial = 0; trial < CLAIM_TRIALS && done && cli->status == 0 && !cli->list; trial++)
        if (is_wanted_trial[trial])
            done = claim_train(cli, (ClaimTrial)trial, &lacks, error);
    if (!done || cli->status != 0)
        return done;
    Store *store = NULL;
    done = history_open_to_read(cli, STORE_READ, &store, error) && report(cli, store, error);
    store_close(store);
    return done && tell_lacks(&lacks, error);
}
