// `mpbench claims`: runs the trials, then the table.
#include "cli/claims/claims.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/nearest.h"
#include "cli/history/history.h"
#include "cli/print/wrap.h"

enum { MOST_WORDS = 32, TAG_SIZE = 32, NAME_COLUMN = 13 };

static void tag_of(ClaimTrial trial, char tag[TAG_SIZE]) {
    static const char *const names[CLAIM_TRIALS] = {
#define TRIAL(id, command) #id,
#include "cli/claims/claims.def"
    };
    snprintf(tag, TAG_SIZE, "claims-%s", names[trial]);
    for (char *at = tag; *at; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at + ('a' - 'A') : *at == '_' ? '-' : *at);
}

// ---- running ------------------------------------------------------------------------------------

// `mpbench matrix` in a process of its own, which says how far it is; ^C reaches it by itself.
static bool run_matrix(const char *const *words, bool *failed, Error *error) {
    fflush(NULL);
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGINT, &ignore, &before);
    pid_t child = fork();
    if (child == 0) {
        sigaction(SIGINT, &before, NULL);
        if (freopen("/dev/null", "w", stdout)) // its comparison is not what was asked for
            execv("/proc/self/exe", (char *const *)words);
        _exit(127);
    }
    int status = 0;
    bool is_started = child > 0;
    while (is_started && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    sigaction(SIGINT, &before, NULL);
    if (!is_started)
        return error_fail(error, ERROR_FAILED, "claims: a run cannot be started: %s",
                          error_cause(errno));
    if (WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) >= 128))
        return error_fail(error, ERROR_STOPPED, "claims: stopped; the same command goes on");
    *failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0; // the table lacks it
    return true;
}

static bool run_trial(const Cli *cli, ClaimTrial trial, bool *failed, Error *error) {
    char command[256], seeds[24], threads[24], tag[TAG_SIZE];
    const char *words[MOST_WORDS + 16];
    int count = 0;
    snprintf(command, sizeof command, "%s", claim_commands[trial]);
    snprintf(seeds, sizeof seeds, "%" PRId64, cli->seeds > 0 ? cli->seeds : 3);
    snprintf(threads, sizeof threads, "%d", cli->run.threads);
    tag_of(trial, tag);
    words[count++] = cli->arguments[0];
    words[count++] = "matrix";
    for (char *rest = NULL, *word = strtok_r(command, " ", &rest); word && count < MOST_WORDS;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    const char *const said[][2] = {
        {"--seeds", seeds},
        {"--tag", tag},
        {"--device", cli->run.device ? cli->run.device : NULL},
        {"--threads", cli->run.threads > 0 ? threads : NULL},
        {"--db", cli->database},
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i][1]) {
            words[count++] = said[i][0];
            words[count++] = said[i][1];
        }
    if (cli->quiet)
        words[count++] = "--quiet";
    words[count] = NULL;
    if (!cli->quiet)
        fprintf(stderr, "%s --seeds %s\n", claim_commands[trial], seeds);
    return run_matrix(words, failed, error);
}

// ---- judging ------------------------------------------------------------------------------------

// The runs of a trial's newest matrix that finished; NULL: there are none.
static bool compare_trial(Store *store, ClaimTrial trial, Comparison **comparison, Error *error) {
    char tag[TAG_SIZE], words[TAG_SIZE + 32];
    int64_t runs[COMPARE_MOST_RUNS];
    RunRecord *found;
    int count, kept = 0;
    tag_of(trial, tag);
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

static void print_line(const Terminal *terminal, const char *label, const char *text) {
    printf("%s%-*s%s", terminal_style(terminal, STYLE_DIM), NAME_COLUMN, label,
           terminal_style(terminal, STYLE_NONE));
    wrap_print(stdout, text, terminal_width(terminal), NAME_COLUMN, NAME_COLUMN);
    putchar('\n');
}

static void print_claim(const Terminal *terminal, const Claim *claim, const ClaimFound *found) {
    char text[512], value[TEXT_SIZE], interval[TEXT_SIZE];
    const char *style =
        found->verdict == CLAIM_CONTRADICTED ? terminal_style(terminal, STYLE_BAD) : "";
    printf("%s%s%s\n", terminal_style(terminal, STYLE_STRONG), claim->sentence,
           terminal_style(terminal, STYLE_NONE));
    snprintf(text, sizeof text, "%s: %s", claim->published, claim->source);
    print_line(terminal, "  published", text);
    if (found->verdict == CLAIM_UNTESTED)
        snprintf(text, sizeof text, "not tested: mpbench claims %s", claim->name);
    else if (isnan(found->interval) || found->interval == 0)
        snprintf(text, sizeof text, "%s %s, %s (%d seed%s)", text_number(value, found->value, 3),
                 claim->unit, claim->here, found->seeds, found->seeds == 1 ? "" : "s");
    else
        snprintf(text, sizeof text, "%s +- %s %s, %s (%d seeds)",
                 text_number(value, found->value, 3), text_number(interval, found->interval, 2),
                 claim->unit, claim->here, found->seeds);
    print_line(terminal, "  here", text);
    snprintf(text, sizeof text, "%s%s%s (%g to %g %s would bear it out)", style,
             claim_verdict_name(found->verdict), terminal_style(terminal, STYLE_NONE), claim->low,
             claim->high, claim->unit);
    print_line(terminal, "  so", text);
    putchar('\n');
}

static void write_claim(JsonWriter *json, const Claim *claim, const ClaimFound *found) {
    json_begin_object(json);
    json_put_text(json, "name", claim->name);
    json_put_text(json, "sentence", claim->sentence);
    json_put_text(json, "published", claim->published);
    json_put_text(json, "source", claim->source);
    json_put_text(json, "trial", claim_commands[claim->trial]);
    json_put_reading(json, "value", found->value);
    json_put_reading(json, "interval_95", found->interval);
    json_put_text(json, "unit", claim->unit);
    json_put_number(json, "low", claim->low);
    json_put_number(json, "high", claim->high);
    json_put_text(json, "of", claim->here);
    json_put_integer(json, "seeds", found->seeds);
    json_put_text(json, "verdict", claim_verdict_name(found->verdict));
    json_end_object(json);
}

static bool report(const Cli *cli, Store *store, Error *error) {
    const Terminal terminal = terminal_of(stdout, cli->color);
    JsonWriter json = {.stream = stdout};
    if (cli->json)
        json_begin_array(&json);
    for (const Claim *claim = claim_table; claim->name; claim++) {
        if (!is_wanted(cli, claim))
            continue;
        Comparison *comparison = NULL;
        if (store && !compare_trial(store, claim->trial, &comparison, error))
            return false;
        const ClaimFound found = claim_judge(claim, comparison);
        compare_free(comparison);
        if (cli->json)
            write_claim(&json, claim, &found);
        else
            print_claim(&terminal, claim, &found);
    }
    if (cli->json) {
        json_end_array(&json);
        putchar('\n');
    }
    return true;
}

bool command_claims(Cli *cli, Error *error) {
    if (!check_names(cli, error))
        return false;
    bool is_wanted_trial[CLAIM_TRIALS] = {false}, done = true, failed = false;
    for (const Claim *claim = claim_table; claim->name; claim++)
        is_wanted_trial[claim->trial] |= is_wanted(cli, claim);
    for (int trial = 0; trial < CLAIM_TRIALS && done && !cli->list; trial++)
        if (is_wanted_trial[trial])
            done = run_trial(cli, (ClaimTrial)trial, &failed, error);
    Store *store = NULL;
    done =
        done && history_open_to_read(cli, STORE_READ, &store, error) && report(cli, store, error);
    store_close(store);
    if (done && failed)
        return error_fail(error, ERROR_FAILED,
                          "claims: not all runs finished: what they test is judged by those that "
                          "did; the same command tries the others again");
    return done;
}
