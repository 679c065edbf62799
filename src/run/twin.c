// Where two trainings in lock step meet: when they are configured, at the end of every step, and
// when one has ended.
#include "run/twin.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mix.h"
#include "run/recorder_private.h"
#include "run/twin_private.h"

static TwinLink *link_of(const RunState *state) {
    return state->run.options->twin;
}

// ---- what this side says ------------------------------------------------------------------------

// All that decides what is computed in which format, as long as neither changes.
static uint64_t mix_formats(TwinLink *link) {
    const Run *run = link->run;
    const Policy *policy = run->engine->policy;
    const char *rule = ((const RunState *)run)->scale_rule_name;
    TwinFormats *formats = &link->formats;
    if (formats->mixed != 0 && formats->changes == policy_changes(policy) &&
        memcmp(&formats->recipe, policy_recipe(policy), sizeof formats->recipe) == 0 &&
        strcmp(formats->rule, rule) == 0)
        return formats->mixed;
    char recipe[RECIPE_TEXT_SIZE];
    recipe_text(policy_recipe(policy), recipe);
    uint64_t mixed = mix_bytes(MIX_BEGIN, run->precision, strlen(run->precision));
    mixed = mix_bytes(mixed, rule, strlen(rule));
    mixed = mix_bytes(mixed, recipe, strlen(recipe));
    for (int i = 1; i < policy_layer_count(policy); i++) {
        const LayerPrecision in_force = policy_layer(policy, i)->in_force;
        mixed = mix_bytes(mixed, &in_force, sizeof in_force);
    }
    formats->mixed = mixed ? mixed : 1;
    formats->changes = policy_changes(policy);
    memcpy(&formats->recipe, policy_recipe(policy), sizeof formats->recipe);
    utf8_copy(formats->rule, sizeof formats->rule, rule);
    return formats->mixed;
}

// What a script calls its loss, or one of several.
static const RunSeries *loss_of(const Run *run) {
    static const char ending[] = "loss";
    const RunSeries *loss = run_series(run, ending);
    for (int i = 0; !loss && i < run->series_count; i++) {
        size_t length = strlen(run->series[i].name);
        if (length >= sizeof ending - 1 &&
            strcmp(run->series[i].name + length - (sizeof ending - 1), ending) == 0)
            loss = &run->series[i];
    }
    return loss;
}

static void take_end(TwinLink *link, TwinEnd *end) {
    const Run *run = link->run;
    const RunSeries *loss = loss_of(run);
    end->has_skipped = run->skipped > link->skipped;
    end->culprit[0] = 0;
    if (end->has_skipped)
        utf8_copy(end->culprit, sizeof end->culprit, ((const RunState *)run)->waiting.layer);
    end->unit = twin_unit(policy_preset(run->engine->policy)->low);
    end->formats = mix_formats(link);
    end->has_loss = loss && loss->count > 0;
    end->loss = end->has_loss ? loss->last : 0;
    end->loss_step = end->has_loss ? ((const RunState *)run)->last_point[loss - run->series] : 0;
}

static TwinMessage message_of(TwinLink *link, TwinWord word) {
    const Run *run = link->run;
    TwinMessage message = {.word = word, .step = run->step, .run = run->id, .status = run->status};
    utf8_copy(message.precision, sizeof message.precision, run->precision);
    take_end(link, &message.end);
    message.code = run->error.code;
    utf8_copy(message.text, sizeof message.text, run->error.text);
    return message;
}

// ---- the other is gone --------------------------------------------------------------------------

// As many whole words as there is room for.
static void cut_words(const char *whole, char *text, size_t size) {
    static const char mark[] = " ..";
    utf8_copy(text, size, whole);
    if (!whole[strlen(text)])
        return;
    utf8_copy(text, size - strlen(mark), whole);
    char *end = strrchr(text, ' ');
    memcpy(end ? end : text + strlen(text), mark, sizeof mark);
}

static void describe_end(const TwinLink *link, char *text, size_t size) {
    enum { MOST = 180 };
    const TwinMessage *left = &link->left;
    char why[MOST];
    cut_words(left->text, why, sizeof why);
    if (left->status == RUN_DEAD)
        snprintf(text, size, "ended without a word in step %" PRId64, left->step + 1);
    else
        snprintf(text, size, "%s after step %" PRId64 "%s%s", run_status_name(left->status),
                 left->step, why[0] ? ": " : "", why);
}

static void describe_other(const TwinLink *link, char *text, size_t size) {
    const char *what = link->side == TWIN_RUN ? "its twin" : "the run beside it";
    if (link->last.run > 0)
        snprintf(text, size, "%s, run %" PRId64 ",", what, link->last.run);
    else
        snprintf(text, size, "%s", what);
}

// The losses that are known by now.
static void take_loss(TwinLink *link, const TwinEnd *other) {
    TwinEnd own;
    take_end(link, &own);
    twin_judge_loss(link, &own, other);
}

// How far the other is. What is there of it the run judges first, and is itself as far as that.
static int64_t look(TwinLink *link) {
    const int64_t reached = twin_reached(link);
    if (link->side == TWIN_TWIN)
        return reached;
    while (link->judged < reached && link->judged < link->run->step)
        twin_judge_step(link);
    twin_reach(link, link->judged);
    return link->judged;
}

// The run goes on alone once it is farther than the twin came, the twin ends.
static void tell_gone(TwinLink *link) {
    char who[96], how[RECORD_TEXT_SIZE], text[EVENT_TEXT_SIZE];
    Run *run = link->run;
    TwinMessage message;
    while (!link->is_gone && twin_has_left(link) && twin_receive(link, &message, INFINITY))
        continue;
    if (!link->is_gone || (link->side == TWIN_RUN && look(link) == run->step))
        return;
    link->has_told_gone = true;
    if (link->side == TWIN_RUN)
        take_loss(link, &link->left.end);
    run->engine->watch = NULL;
    describe_other(link, who, sizeof who);
    describe_end(link, how, sizeof how);
    if (!run_status_goes_on(run->status))
        return; // this side has ended too
    if (link->side == TWIN_RUN) {
        utf8_copy(link->report.ended, sizeof link->report.ended, how);
        snprintf(text, sizeof text, "%s %s; this run goes on alone", who, how);
        run_tell(run, EVENT_LIFE, "", (double)NAN, text);
        twin_keep_facts(link);
    } else {
        snprintf(text, sizeof text, "%s %s", who, how);
        run_stop(run, text);
    }
}

// ---- at the beginning ---------------------------------------------------------------------------

// The other came to nothing before the first step: so does this side. True: it did not.
static bool refuse_with_other(TwinLink *link, Error *error) {
    if (!link->is_gone) // somebody asked for the end
        return true;
    link->has_told_gone = true;
    if (link->side == TWIN_TWIN) // what is wrong with the run, it says
        return error_fail(error, ERROR_USAGE, "the run beside it did not begin");
    return link->left.status == RUN_DEAD
               ? error_fail(error, ERROR_FAILED, "the twin ended before its first step")
               : error_fail(error, link->left.code, "--twin: %s", link->left.text);
}

bool twin_configured(RunState *state, Error *error) {
    TwinLink *link = link_of(state);
    if (!link)
        return true;
    TwinMessage own, other;
    link->run = &state->run;
    link->step = 1;
    own = message_of(link, TWIN_CONFIGURED);
    twin_send(link, &own);
    if (twin_receive(link, &other, INFINITY) && other.word == TWIN_CONFIGURED) {
        link->last = other;
        utf8_copy(link->report.precision, sizeof link->report.precision, other.precision);
        link->is_met = true;
        twin_begin_board(link);
        twin_watch(link);
        return true;
    }
    return refuse_with_other(link, error);
}

static void take_number(TwinLink *link, const TwinMessage *other) {
    Run *run = link->run;
    char text[32];
    link->last = *other;
    link->report.other = other->run;
    link->report.is_twin = link->side == TWIN_TWIN;
    snprintf(text, sizeof text, "%" PRId64, other->run);
    if (other->run > 0)
        run_add_fact(run, link->side == TWIN_RUN ? TWIN_FACT_TWIN : TWIN_FACT_OF, text);
    run_add_fact(run, TWIN_FACT_PRECISION, other->precision);
}

// The twin's number is the lower: the last run is then the one that was asked for.
void twin_before_record(RunState *state) {
    TwinLink *link = link_of(state);
    TwinMessage other;
    if (link && !link->is_gone && link->side == TWIN_RUN && twin_receive(link, &other, INFINITY) &&
        other.word == TWIN_RECORDED)
        take_number(link, &other);
}

bool twin_recorded(RunState *state, Error *error) {
    TwinLink *link = link_of(state);
    if (!link || link->is_gone)
        return true;
    TwinMessage own = message_of(link, TWIN_RECORDED), other;
    twin_send(link, &own);
    if (link->side == TWIN_RUN)
        return true;
    if (twin_receive(link, &other, INFINITY) && other.word == TWIN_RECORDED)
        take_number(link, &other);
    return refuse_with_other(link, error);
}

bool twin_layers_known(RunState *state, Error *error) {
    TwinLink *link = link_of(state);
    if (!link || link->is_gone || state->run.is_silent)
        return true;
    TwinMessage own = message_of(link, TWIN_LAYERED), other;
    bool clock_ran = run_pause_clock(&state->run);
    twin_send(link, &own);
    bool is_met = twin_receive(link, &other, INFINITY) && other.word == TWIN_LAYERED;
    if (clock_ran)
        run_resume_clock(&state->run);
    return is_met || refuse_with_other(link, error);
}

// ---- at the end of a step -----------------------------------------------------------------------

static void await(TwinLink *link, int64_t step, double seconds) {
    const double until = clock_seconds() + seconds;
    int64_t there = look(link);
    while (there < step && twin_sleep(link, step, link->side == TWIN_RUN ? there : INT64_MAX,
                                      until - clock_seconds()))
        there = look(link);
}

// `lead`: as many steps as the other may be behind.
static void meet(TwinLink *link, int64_t lead) {
    Run *run = link->run;
    if (link->side == TWIN_TWIN)
        twin_reach(link, run->step);
    if (lead > 0 && look(link) >= run->step - lead)
        return;
    bool clock_ran = run_pause_clock(run);
    await(link, run->step - lead / 2, INFINITY);
    if (clock_ran)
        run_resume_clock(run);
}

void twin_step_ended(RunState *state) {
    TwinLink *link = link_of(state);
    Run *run = &state->run;
    if (!link || !link->is_met || link->has_told_gone || run->is_silent)
        return;
    run_settle(state); // what the device did with the step
    twin_take_weights(link);
    take_end(link, &twin_board(link, link->side, run->step)->end);
    meet(link, clock_seconds() - link->met_at < TWIN_SHORT ? TWIN_LEAD : 0);
    tell_gone(link);
    link->skipped = run->skipped;
    link->step = run->step + 1;
    twin_begin_board(link);
    link->met_at = clock_seconds();
}

// ---- at the end ---------------------------------------------------------------------------------

// How long the other is waited for. One that ended otherwise has nothing to wait for.
static double patience_of(const TwinLink *link) {
    static const double whole = 30, cut = 1;
    double since = clock_seconds() - link->met_at; // for what comes after the last step
    return link->run->status == RUN_FINISHED ? whole + 2 * since : cut;
}

// The losses of the last step come here.
static void await_end(TwinLink *link) {
    TwinMessage other;
    double patience = patience_of(link);
    while (!link->is_gone && twin_receive(link, &other, patience))
        continue;
    if (link->is_gone)
        take_loss(link, &link->left.end);
    bool follows =
        link->is_gone && link->left.status != RUN_FAILED && link->left.status != RUN_DEAD;
    if (follows || link->report.ended[0]) // it has ended as this run, or with it
        return;
    char how[RECORD_TEXT_SIZE] = "was still at work";
    if (link->is_gone)
        describe_end(link, how, sizeof how);
    utf8_copy(link->report.ended, sizeof link->report.ended, how);
}

// Where nothing parted no event says so: who watches would wait for one.
static void tell_held(TwinLink *link) {
    const TwinReport *report = &link->report;
    char text[EVENT_TEXT_SIZE];
    if (report->first.cause != APART_NOT || report->steps == 0)
        return;
    const char *plural = report->steps == 1 ? "" : "s";
    if (report->most.cause == APART_NOT)
        snprintf(text, sizeof text, "beside its twin: no layer parted in %lld step%s",
                 (long long)report->steps, plural);
    else
        snprintf(
            text, sizeof text,
            "beside its twin no layer was farther apart than rounding explains in %lld step%s; "
            "the farthest: the %s of %.60s, %.2g apart, where it explains %s",
            (long long)report->steps, plural, apart_kind_names[report->most.kind],
            report->most.layer, report->most.distance, twin_explained(report->most.within).text);
    run_record_event(link->run, EVENT_LIFE, "", (double)NAN, text);
}

void twin_finished(RunState *state) {
    TwinLink *link = link_of(state);
    if (!link || !link->ends_open)
        return;
    link->run = &state->run;
    if (link->side == TWIN_RUN && link->is_met)
        await(link, link->run->step, patience_of(link)); // else the last steps would not be judged
    const TwinMessage own = message_of(link, TWIN_LEFT);
    twin_leave(link);
    twin_send(link, &own);
    link->ends_open = false;
    if (link->side == TWIN_RUN && link->is_met) {
        await_end(link);
        twin_list_layers(link);
        twin_keep_facts(link);
        tell_held(link);
    }
    if (state->run.engine)
        state->run.engine->watch = NULL;
}

const TwinReport *run_twin(const Run *run) {
    const TwinLink *link = run->options->twin;
    return link && link->report.precision[0] ? &link->report : NULL;
}

bool twin_link_failed(const TwinLink *link, Error *error) {
    if (!link->is_gone)
        return false;
    bool failed = link->left.status == RUN_FAILED || link->left.status == RUN_DEAD;
    char who[96], how[RECORD_TEXT_SIZE];
    describe_other(link, who, sizeof who);
    describe_end(link, how, sizeof how);
    if (failed)
        error_fail(error, ERROR_FAILED, "%s %s", who, how);
    return failed;
}
