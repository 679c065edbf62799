// What to do about where the time goes, in sentences: each says what was seen, with its numbers,
// and a remedy. They are looked for in the order of how much they explain.
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli/profile/profile.h"

// From where on something is said.
static const struct {
    double between, casts, batch, update, product; // shares of a step
    double fast, slow;                             // of what a large product reaches
    int64_t few_columns;                           // that no kernel fills its vectors with
} worth_saying = {.between = 0.2,
                  .casts = 0.05,
                  .batch = 0.1,
                  .update = 0.15,
                  .product = 0.1,
                  .fast = 0.6,
                  .slow = 0.3,
                  .few_columns = 32};

static void say(ProfileReport *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(ProfileReport *report, const char *format, ...) {
    va_list arguments;
    if (report->word_count == PROFILE_MOST_WORDS)
        return;
    va_start(arguments, format);
    vsnprintf(report->words[report->word_count++], PROFILE_WORDS_SIZE, format, arguments);
    va_end(arguments);
}

static double percent(const ProfileReport *report, double seconds) {
    return 100 * profile_share(report, seconds);
}

static const char *name_of(const ProfileRow *row) {
    return row->layer[0] ? row->layer : "outside of all layers";
}

// ---- what lies between, and what belongs to the step as a whole ---------------------------------

static double calls_of(const ProfileReport *report) {
    double calls = 0;
    for (int i = 0; i < report->row_count; i++)
        calls += report->rows[i].calls;
    return calls;
}

static void say_between(ProfileReport *report) {
    const double calls = calls_of(report);
    if (profile_share(report, report->between) < worth_saying.between || calls <= 0)
        return;
    say(report,
        "%.0f %% of a step lies between its operations, in the script and in what the engine does "
        "around %.0f operations (%.1f us each): no format gains from that; take larger batches, so "
        "that fewer steps do the work",
        percent(report, report->between), calls, 1e6 * report->between / calls);
}

static void say_of_step(ProfileReport *report) {
    for (int i = 0; i < report->row_count; i++) {
        const ProfileRow *row = &report->rows[i];
        const double share = profile_share(report, row->seconds);
        if (row->work == WORK_BATCH && share >= worth_saying.batch)
            say(report,
                "%.0f %% of the time waits for the next batch: the data is prepared more slowly "
                "than it is trained on; prepare less of it in each pass, or give the run more "
                "--threads",
                100 * share);
        if (row->work == WORK_UPDATE && share >= worth_saying.update)
            say(report,
                "the update of weights takes %.0f %%: it costs the same for any batch, so larger "
                "ones make it rarer",
                100 * share);
    }
}

// ---- casts --------------------------------------------------------------------------------------

static const ProfileRow *longest_cast(const ProfileReport *report) {
    for (int i = 0; i < report->row_count; i++)
        if (profile_is_cast(&report->rows[i]))
            return &report->rows[i];
    return NULL;
}

// The one in which most of that goes, and how to be without it.
static void say_cast_in(ProfileReport *report, const ProfileRow *most) {
    char what[96], remedy[RUN_NAME_SIZE + 96];
    const bool is_factor = most->work == OP_scale_factor;
    const bool is_forward = strcmp(most->way, "forward") == 0;
    if (is_factor)
        snprintf(what, sizeof what, "factors of its products are rounded to scaled elements");
    else
        snprintf(what, sizeof what, "%s from %s to %s",
                 is_forward ? "its input is cast" : "gradients are cast", format_name(most->from),
                 format_name(most->to));
    if (most->layer[0] && (is_factor || is_forward))
        snprintf(remedy, sizeof remedy, "see whether --layer %.60s=%s is faster", most->layer,
                 format_name(is_factor ? FORMAT_BF16 : most->from));
    else
        snprintf(remedy, sizeof remedy, "keep in one format what follows each other");
    say(report, "casts take %.0f %% (%.3g a step): most in %.60s, %.0f %%, where %s each step: %s",
        percent(report, report->cast_seconds), report->casts, name_of(most),
        percent(report, most->seconds), what, remedy);
}

// Of what casts take, in rounding factors of products.
static double rounding_seconds(const ProfileReport *report) {
    double seconds = 0;
    for (int i = 0; i < report->row_count; i++)
        if (report->rows[i].work == OP_scale_factor)
            seconds += report->rows[i].seconds;
    return seconds;
}

static void say_casts(ProfileReport *report) {
    const ProfileRow *most = longest_cast(report);
    if (!(profile_share(report, report->cast_seconds) >= worth_saying.casts))
        return;
    if (most && most->seconds > report->cast_seconds / 2)
        say_cast_in(report, most);
    else if (rounding_seconds(report) > report->cast_seconds / 2)
        say(report,
            "casts take %.0f %%, in many layers: most is scale_factor, the rounding of what "
            "products multiply to scaled elements; larger layers have less of it for their work, "
            "layers in bf16 none",
            percent(report, report->cast_seconds));
    else
        say(report,
            "casts between formats take %.0f %%, in many places: where products in low formats "
            "meet norms, sums and losses in fp32; larger layers have fewer of them for their work",
            percent(report, report->cast_seconds));
}

// ---- products -----------------------------------------------------------------------------------

static void say_product(ProfileReport *report, const char *name, const ProfileRow *row) {
    const double reach = row->limited > 0 ? row->at_limit / row->limited : (double)NAN;
    const char *format = row->from < FORMAT_COUNT ? format_name(row->from) : "";
    const double share = percent(report, row->seconds);
    const bool is_fastest = row->from < FORMAT_COUNT && report->is_fastest[row->from];
    const char *remedy =
        reach < worth_saying.slow
            ? "more rows (a larger batch) or wider layers would use what is there"
        : reach >= worth_saying.fast
            ? is_fastest ? "no format is faster on this device, so little is to be gained"
                         : "only a faster format gains here; `mpbench bench` says which are"
        : is_fastest ? "larger batches gain part of that; no format is faster on this device"
                     : "a faster format, where `mpbench bench` shows one, gains part of that, "
                       "larger batches another";
    if (row->columns < worth_saying.few_columns && !(reach >= worth_saying.fast))
        say(report,
            "%.60s: %.0f %% of the time in products, most of them of %lld column%s at most: too "
            "small "
            "to gain from lower formats",
            name, share, (long long)row->columns, row->columns == 1 ? "" : "s");
    else if (!isnan(reach))
        say(report,
            "%.60s: %.0f %% of the time in products that reach %.0f %% of what large ones do%s%s: "
            "%s",
            name, share, 100 * reach, format[0] ? " in " : "", format, remedy);
}

// Its own products and all that belong to it; of `layer`, or NULL: of all. Few columns are theirs
// where most of the time is spent in products that have so few: the most of those.
static ProfileRow sum_products(const ProfileReport *report, const char *layer) {
    ProfileRow sum = {.seconds = 0, .from = FORMAT_COUNT};
    double few = 0;
    for (int i = 0; i < report->row_count; i++) {
        const ProfileRow *row = &report->rows[i];
        if (!profile_is_product(row) || (layer && strcmp(row->layer, layer) != 0))
            continue;
        sum.from = sum.seconds == 0 || sum.from == row->from ? row->from : FORMAT_COUNT;
        sum.seconds += row->seconds;
        sum.at_limit += row->at_limit;
        sum.limited += row->limited;
        if (row->columns >= worth_saying.few_columns)
            continue;
        few += row->seconds;
        sum.columns = row->columns > sum.columns ? row->columns : sum.columns;
    }
    if (!(few > sum.seconds / 2))
        sum.columns = INT64_MAX;
    return sum;
}

static bool is_first_product(const ProfileReport *report, int at) {
    for (int i = 0; i < at; i++)
        if (profile_is_product(&report->rows[i]) &&
            strcmp(report->rows[i].layer, report->rows[at].layer) == 0)
            return false;
    return profile_is_product(&report->rows[at]);
}

// Of the layers that have most; where none has much, of all together.
static void say_products(ProfileReport *report) {
    enum { MOST = 2 };
    for (int i = 0; i < report->row_count && report->word_count < MOST; i++) {
        if (!is_first_product(report, i))
            continue;
        const ProfileRow sum = sum_products(report, report->rows[i].layer);
        if (profile_share(report, sum.seconds) >= worth_saying.product)
            say_product(report, name_of(&report->rows[i]), &sum);
    }
    const ProfileRow all = sum_products(report, NULL);
    if (report->word_count == 0 && profile_share(report, all.seconds) >= worth_saying.product)
        say_product(report, "all layers together", &all);
}

// ---- nothing stands out -------------------------------------------------------------------------

static void say_largest(ProfileReport *report) {
    if (report->row_count == 0)
        return;
    const ProfileRow *row = &report->rows[0];
    if (row->layer[0] && !row->operation)
        say(report, "%.60s takes most, %.0f %% of a step", row->layer,
            percent(report, row->seconds));
    else
        say(report, "no part stands out; %s%s%.60s takes most, %.0f %% of a step", row->operation,
            row->layer[0] ? " in " : "", row->layer, percent(report, row->seconds));
}

void profile_find_words(ProfileReport *report) {
    report->word_count = 0;
    say_products(report);
    say_casts(report);
    say_between(report);
    say_of_step(report);
    if (report->word_count == 0)
        say_largest(report);
}
