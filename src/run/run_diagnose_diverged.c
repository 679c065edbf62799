// What is told of a loss that has left its course: since when, what grew first, whose doing it is
// where the run is a fork, and from where to fork with which change.
#include "run/run_private.h"

// ---- from where to fork -------------------------------------------------------------------------

// A step that lies safely before what began at this one; 0: there is none but the beginning.
static int64_t step_before(int64_t began) {
    enum { EARLY = 10 };
    if (began < EARLY)
        return 0;
    return began > 2 * RUN_BEFORE_LOSS ? began - RUN_BEFORE_LOSS : began / 2 + 1;
}

// The run in whose steps this one lies, of those that came before a fork; 0: none that is known.
static int64_t ancestor_at(const Run *run, int64_t step) {
    const RunPast *past = run->options->past;
    int64_t id = 0;
    for (int i = 0; past && i < past->count && step <= past->ancestors[i].until; i++)
        id = past->ancestors[i].run;
    return id;
}

// "`mpbench fork 3 --at 100 OPTIONS`"; where no run is known that has this step, "begin again".
static void add_fork(Phrase *text, const Run *run, int64_t at, const char *options) {
    const int64_t ancestor = at <= run->forked_at ? ancestor_at(run, at) : 0;
    if (at == 0 || (at <= run->forked_at && ancestor == 0)) {
        phrase_add(text, "begin again%s%s", options[0] ? " with " : "", options);
        return;
    }
    phrase_add(text, "`mpbench fork ");
    if (ancestor > 0)
        phrase_add(text, "%lld", (long long)ancestor);
    else
        phrase_add_word(text, run->name);
    phrase_add(text, " --at %lld%s%s`", (long long)at, options[0] ? " " : "", options);
}

// ---- what to change -----------------------------------------------------------------------------

// What averts it in experiments/intervene.lua, the likeliest first: in scaled formats one layer in
// fp32 seldom does. Where a recipe leaves norms' weights rounded that is
// to blame; larger scales do not help.
static void add_changes(Phrase *text, const Run *run, const Divergence *divergence) {
    const Policy *policy = run->engine->policy;
    const Parameter *grown = divergence->grown ? parameter_of(divergence->grown) : NULL;
    if (format_is_scaled(policy_preset(policy)->low))
        phrase_add(text, policy_recipe(policy)->norms ? "--recipe norms=own, " : "-p bf16, ");
    if (grown && grown->layer > 0 &&
        policy_low_format(policy, grown->layer, (AutocastRegion){.enabled = true}) != FORMAT_FP32) {
        phrase_add(text, "--layer ");
        char rule[96];
        snprintf(rule, sizeof rule, "%.80s=fp32", policy_layer(policy, grown->layer)->name);
        phrase_add_word(text, rule);
        phrase_add(text, ", ");
    }
    phrase_add(text, "a lower rate%s",
               format_is_scaled(policy_preset(policy)->low) ? " (try one at a time, in this order)"
                                                            : "");
}

// ---- whose doing it is --------------------------------------------------------------------------

// "run 1, that it was forked from at step 200,"
static void add_parent(Phrase *text, const Run *run) {
    const RunPast *past = run->options->past;
    if (past && past->count > 0)
        phrase_add(text, "run %lld, that it was forked from at step %lld,",
                   (long long)past->ancestors[0].run, (long long)run->forked_at);
    else
        phrase_add(text, "what it was forked from at step %lld", (long long)run->forked_at);
}

// The step by which what the run was forked from had left its course; 0: it had not. A checkpoint
// of an older version does not tell, but the parent did.
static int64_t inherited_since(const RunState *state) {
    const Run *run = &state->run;
    const RunPast *past = run->options->past;
    if (run->forked_at == 0 || state->loss_since > run->forked_at + 1)
        return 0;
    if (state->loss_since <= run->forked_at)
        return state->loss_since;
    return past && past->parent_diverged <= run->forked_at ? past->parent_diverged : 0;
}

bool run_is_inherited(const Run *run, int64_t step) {
    return run->forked_at > 0 && step <= run->forked_at + 1;
}

void run_add_inherited(Phrase *text, const Run *run) {
    const RunPast *past = run->options->past;
    const int64_t told = past ? past->parent_diverged : 0;
    const int64_t at = step_before(told > 0 && told <= run->forked_at ? told : run->forked_at);
    add_parent(text, run);
    phrase_add(text, " had it already: %s", at > 0 ? "fork before it, " : "");
    add_fork(text, run, at, past ? past->change : "");
}

// Nothing that the fork is or does can help.
static void tell_inherited(Phrase *text, const Run *run, const Divergence *divergence,
                           int64_t since) {
    const char *change = run->options->past ? run->options->past->change : "";
    phrase_add(text, " and is over %g times that: ", divergence->times);
    add_parent(text, run);
    phrase_add(text, " had diverged by step %lld already; fork before it %s", (long long)since,
               change[0] ? "to see what the change does: " : "with one change, ");
    add_fork(text, run, step_before(since), change);
    if (change[0])
        return;
    phrase_add(text, ": ");
    add_changes(text, run, divergence);
}

// The parent trained on over the same steps, without the change, and all was well.
static void tell_own_change(Phrase *text, const Run *run) {
    phrase_add(text, "; without %s ", run->options->past->change);
    add_parent(text, run);
    phrase_add(text, " held its course: that change did it; fork it with another, or with less of "
                     "it: ");
    add_fork(text, run, run->forked_at, "");
}

// The parent diverged too, without the change, which averts nothing.
static void add_same_in_parent(Phrase *text, const Run *run) {
    const RunPast *past = run->options->past;
    const int64_t later = past->parent_diverged - run->step;
    phrase_add(text, "; ");
    add_parent(text, run);
    if (later == 0)
        phrase_add(text, " left at the same step");
    else
        phrase_add(text, " left %lld step%s %s", (long long)(later > 0 ? later : -later),
                   later == 1 || later == -1 ? "" : "s", later > 0 ? "later" : "earlier");
    phrase_add(text, " without %s", past->change);
}

static void tell_begun_here(Phrase *text, const RunState *state, const Divergence *divergence) {
    const Run *run = &state->run;
    const RunPast *past = run->options->past;
    const bool is_changed = past && past->change[0];
    const bool parent_did = is_changed && past->parent_diverged > run->forked_at;
    const GradientGrowth *growth = divergence->growth;
    // No more than is known by now: it may come back, and the note stays.
    phrase_add(text, ", and over %g times that from step %lld on, %d times in a row",
               divergence->times, (long long)state->loss_since, RUN_LOSSES_BEYOND);
    if (growth)
        phrase_add(text,
                   "; gradients of %.60s were the first to grow, %.0f times theirs at step "
                   "%lld",
                   run_name_of(divergence->grown), growth->times, (long long)growth->grew_at);
    if (is_changed && past->parent_diverged == 0 && past->parent_step >= run->step) {
        tell_own_change(text, run);
        return;
    }
    if (parent_did)
        add_same_in_parent(text, run);
    phrase_add(text, ": ");
    const int64_t before = step_before(growth ? growth->grew_at : state->loss_since);
    add_fork(text, run, before, "");
    phrase_add(text, "%s with %s change: ", before > 0 ? " before it" : "",
               parent_did ? "another" : "one");
    add_changes(text, run, divergence);
    if (!is_changed || parent_did || past->parent_step >= run->step)
        return;
    phrase_add(text, "; ");
    add_parent(text, run);
    phrase_add(text, " ended at step %lld, and does not tell whether %s did it",
               (long long)past->parent_step, past->change);
}

// Beside the note, for who compares: it is of the step in which that was noticed.
static void keep_since(Run *run, int64_t since, double usual) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)since);
    run_add_fact(run, RECORD_FACT_DIVERGED, text);
    snprintf(text, sizeof text, "%.9g", usual);
    run_add_fact(run, RECORD_FACT_COURSE, text);
}

void run_tell_diverged(RunState *state, const Divergence *divergence) {
    Run *run = &state->run;
    char text[RECORD_DIAGNOSIS_SIZE];
    Phrase phrase = phrase_begin(text, sizeof text);
    phrase_add(&phrase, "the loss was %.3g", divergence->usual);
    const int64_t since = inherited_since(state);
    if (since > 0)
        tell_inherited(&phrase, run, divergence, since);
    else
        tell_begun_here(&phrase, state, divergence);
    keep_since(run, since > 0 ? since : state->loss_since, divergence->usual);
    run_diagnose(run, DIAGNOSIS_DIVERGED,
                 divergence->grown ? run_layer_of(run, divergence->grown) : "", "%s", text);
}

void run_tell_growing(RunState *state, const Divergence *divergence) {
    Run *run = &state->run;
    const int64_t since = state->loss_grew_at;
    const bool is_in_each = state->loss_step - since + 1 == state->losses_grown;
    char text[RECORD_DIAGNOSIS_SIZE];
    Phrase phrase = phrase_begin(text, sizeof text);
    phrase_add(&phrase,
               "the loss grew %s %lld on%s, from %.3g to %.3g, %.0f times that, until "
               "the run ended: ",
               is_in_each ? "in each step from" : "from step", (long long)since,
               is_in_each ? "" : ", whenever it was logged", divergence->usual,
               divergence->usual * divergence->times, divergence->times);
    const int64_t before = step_before(since);
    add_fork(&phrase, run, before, "");
    phrase_add(&phrase, "%s with one change: ", before > 0 ? " before it" : "");
    add_changes(&phrase, run, divergence);
    keep_since(run, since, divergence->usual);
    run_diagnose(run, DIAGNOSIS_DIVERGED, "", "%s", text);
}
