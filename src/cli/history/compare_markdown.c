// The tables of `mpbench compare --markdown`: a column a group, a row a reading, for pages of
// others.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/sanitize.h"
#include "cli/history/compare.h"
#include "cli/history/history.h"

// What came from outside is no markup: sanitised, and escaped where a cell could end or begin
// something. (An underscore within a word is none.)
static void put_text(const char *text) {
    char clean[4 * COMPARE_TEXT_SIZE];
    sanitize_line(clean, sizeof clean, text, strlen(text));
    for (const char *at = clean; *at; at++) {
        if (strchr("\\|<>&`*[]", *at))
            putchar('\\');
        putchar(*at);
    }
}

// ---- cells --------------------------------------------------------------------------------------

static void put_statistic(const Statistic *value) {
    char text[STATISTIC_TEXT_SIZE];
    bool is_known = value->count + value->not_finite > 0;
    printf(" %s |", is_known ? statistic_text(text, value, false) : "unknown");
}

// To two digits of the interval; what rounds to 0 has no sign. Bold where it is more than what
// seeds do.
static void put_contrast(const Contrast *contrast) {
    enum { PLAIN_DECIMALS = 6 };
    const char *bold = contrast->likeness == LIKENESS_DIFFERENT ? "**" : "";
    bool has_interval = contrast->interval > 0;
    double digit = (has_interval ? contrast->interval : fabs(contrast->delta)) / 10;
    int decimals = digit > 0 ? (int)ceil(-log10(digit)) : 3;
    decimals = decimals < 0 ? 0 : decimals;
    double delta = fabs(contrast->delta) < 0.5 * pow(10, -decimals) ? 0 : contrast->delta;
    const char *sign = delta > 0 ? "+" : "";
    if (isnan(delta)) {
        fputs(" unknown |", stdout);
        return;
    }
    if (decimals <= PLAIN_DECIMALS)
        printf(" %s%s%.*f", bold, sign, decimals, delta);
    else
        printf(" %s%s%.2g", bold, sign, delta);
    if (has_interval && decimals <= PLAIN_DECIMALS)
        printf(" ± %.*f", decimals, contrast->interval);
    else if (has_interval)
        printf(" ± %.2g", contrast->interval);
    printf("%s |", bold);
}

// Whether nothing else kept the machine busy while the runs of both trained.
static bool is_quiet(const Comparison *comparison, const CompareSide *side) {
    const CompareSide *both[] = {&comparison->groups[0], side};
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < both[b]->member_count; i++)
            if (compare_was_busy(&comparison->runs[both[b]->members[i]]))
                return false;
    return true;
}

static void begin_row(const char *name, const char *after) {
    fputs("| ", stdout);
    put_text(name);
    if (after[0]) {
        fputs(" − ", stdout);
        put_text(after);
    }
    fputs(" |", stdout);
}

// Why nothing is said of the speed of a side beside the first; NULL: it can be.
static const char *speed_unknown(const Comparison *comparison, const CompareSide *side) {
    if (isnan(side->speedup))
        return "unknown";
    for (int i = 0; i < side->member_count; i++)
        if (comparison->runs[side->members[i]].wall_s < compare_least_seconds)
            return "too short to tell";
    return is_quiet(comparison, side) ? NULL : "not told: busy";
}

static void put_speeds(const Comparison *comparison) {
    const CompareSide *groups = comparison->groups;
    begin_row("steps/s", "");
    for (int g = 0; g < comparison->group_count; g++) {
        const char *why = speed_unknown(comparison, &groups[g]);
        if (why)
            printf(" %s |", why);
        else
            put_statistic(&groups[g].steps_per_s);
    }
    putchar('\n');
    begin_row("speed", "");
    for (int g = 0; g < comparison->group_count; g++) {
        const CompareSide *side = &groups[g];
        const char *why = speed_unknown(comparison, side);
        if (why)
            printf(" %s |", why);
        else if (isnan(compare_told_speedup(comparison, side)))
            fputs(" too uneven to tell |", stdout);
        else if (g == 0 || isnan(side->speedup_low))
            printf(" %.2fx |", side->speedup);
        else
            printf(" %.2fx (%.2f to %.2f) |", side->speedup, side->speedup_low, side->speedup_high);
    }
    putchar('\n');
}

// ---- rows ---------------------------------------------------------------------------------------

static void put_memory(const Comparison *comparison) {
    char text[TEXT_SIZE];
    begin_row("memory, at most", "");
    for (int g = 0; g < comparison->group_count; g++) {
        const CompareSide *side = &comparison->groups[g];
        if (isnan(side->memory.mean))
            fputs(" unknown |", stdout);
        else
            printf(" %s (%.2fx) |", text_bytes(text, side->memory.mean), side->memory_ratio);
    }
    putchar('\n');
    for (size_t p = 0; p < COMPARE_PURPOSES; p++) {
        begin_row(compare_purposes[p].name, "");
        for (int g = 0; g < comparison->group_count; g++) {
            double bytes = compare_bytes(comparison, &comparison->groups[g], &compare_purposes[p]);
            printf(" %s |", isnan(bytes) ? "unknown" : text_bytes(text, bytes));
        }
        putchar('\n');
    }
}

static void put_results(const Comparison *comparison) {
    const CompareSide *groups = comparison->groups;
    const char *metrics[COMPARE_MOST_METRICS];
    int count = comparison->group_count;
    int metric_count = compare_metric_names(comparison, metrics, COMPARE_MOST_METRICS);
    for (int m = 0; m < metric_count; m++) {
        begin_row(metrics[m], "");
        for (int g = 0; g < count; g++) {
            const CompareMetric *metric = compare_metric(&groups[g], metrics[m]);
            put_statistic(metric ? &metric->value : &(Statistic){.count = 0});
        }
        putchar('\n');
        begin_row(metrics[m], groups[0].label);
        for (int g = 0; g < count; g++) {
            const CompareMetric *metric = compare_metric(&groups[g], metrics[m]);
            if (g == 0)
                fputs(" |", stdout);
            else
                put_contrast(metric ? &metric->contrast : &(Contrast){.delta = (double)NAN});
        }
        putchar('\n');
    }
    begin_row(comparison->series, "");
    for (int g = 0; g < count; g++)
        put_statistic(&groups[g].loss);
    putchar('\n');
    begin_row(comparison->series, groups[0].label);
    for (int g = 0; g < count; g++)
        if (g == 0)
            fputs(" |", stdout);
        else
            put_contrast(&groups[g].loss_contrast);
    putchar('\n');
}

static void put_table(const Comparison *comparison) {
    const CompareSide *groups = comparison->groups;
    int count = comparison->group_count;
    fputs("| |", stdout);
    for (int g = 0; g < count; g++) {
        putchar(' ');
        put_text(groups[g].label);
        fputs(" |", stdout);
    }
    fputs("\n|---|", stdout);
    for (int g = 0; g < count; g++)
        fputs("---:|", stdout);
    putchar('\n');
    begin_row("runs", "");
    for (int g = 0; g < count; g++)
        printf(" %d |", groups[g].member_count);
    putchar('\n');
    put_results(comparison);
    put_speeds(comparison);
    put_memory(comparison);
    begin_row("joules", "");
    for (int g = 0; g < count; g++)
        put_statistic(&groups[g].energy_j);
    putchar('\n');
    begin_row("skipped steps", "");
    for (int g = 0; g < count; g++)
        printf(" %" PRId64 " |", groups[g].skipped);
    puts("\n");
}

// ---- where and by what --------------------------------------------------------------------------

// What all runs have of a fact; NULL: none, or they differ in it.
static const char *shared_fact(const Comparison *comparison, const char *name) {
    const char *first = record_fact(&comparison->runs[0], name);
    for (int i = 1; i < comparison->run_count && first; i++) {
        const char *other = record_fact(&comparison->runs[i], name);
        if (!other || strcmp(other, first) != 0)
            return NULL;
    }
    return first;
}

static void put_fact(const char *before, const Comparison *comparison, const char *name) {
    const char *value = shared_fact(comparison, name);
    fputs(before, stdout);
    put_text(value ? value : "(not one)");
}

// "Trained on cpu (AMD EPYC, 2 processors), 1 thread, by mpbench 0.1.0 with .., on 2026-11-23."
static void put_origin(const Comparison *comparison) {
    static const char *const libraries[] = {"oneDNN", "SQLite", "Lua"};
    const RunRecord *first = &comparison->runs[0];
    int64_t from = first->created_ms, to = first->created_ms;
    char day[TEXT_SIZE], last[TEXT_SIZE];
    bool is_one_device = true;
    double processors = 0; // short runs do not say
    for (int i = 0; i < comparison->run_count; i++) {
        const RunRecord *run = &comparison->runs[i];
        from = run->created_ms < from ? run->created_ms : from;
        to = run->created_ms > to ? run->created_ms : to;
        is_one_device &= strcmp(run->device_name, first->device_name) == 0;
        int count;
        compare_load_of_others(run, &count);
        processors = fmax(processors, count);
    }
    fputs("Trained on ", stdout);
    put_text(is_one_device ? first->device : "several devices");
    fputs(" (", stdout);
    put_text(is_one_device ? first->device_name : "not one");
    if (processors > 0)
        printf(", %.0f processors", processors);
    put_fact("), threads: ", comparison, "threads");
    put_fact("; by mpbench ", comparison, "mpbench");
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        char name[RECORD_NAME_SIZE], before[RECORD_NAME_SIZE];
        snprintf(name, sizeof name, "library.%s", libraries[i]);
        snprintf(before, sizeof before, ", %s ", libraries[i]);
        if (shared_fact(comparison, name))
            put_fact(before, comparison, name);
    }
    history_time(day, from);
    history_time(last, to);
    printf("; %.10s", day); // the day alone
    if (strncmp(day, last, 10) != 0)
        printf(" to %.10s", last);
    puts(".");
}

void comparison_print_markdown(const Comparison *comparison) {
    char test[COMPARE_TEXT_SIZE];
    put_table(comparison);
    compare_say_test(comparison, test);
    if (test[0]) {
        put_text(test);
        puts("\n");
    }
    for (int i = 0; i < comparison->energy_count; i++) {
        put_text(comparison->energies[i]);
        puts("\n");
    }
    for (int i = 0; i < comparison->caveat_count; i++) {
        put_text(comparison->caveats[i]);
        puts("\n");
    }
    bool quiet = true; // the sentences tell of speed, too
    for (int g = 0; g < comparison->group_count; g++)
        quiet &= is_quiet(comparison, &comparison->groups[g]);
    for (int i = 0; i < comparison->verdict_count && quiet; i++) {
        put_text(comparison->verdicts[i]);
        puts("\n");
    }
    put_origin(comparison);
}
