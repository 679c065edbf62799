// What to type after a scan: the command that trains as its policy was verified.
#include <inttypes.h>
#include <string.h>

#include "base/phrase.h"
#include "cli/experiments.h"
#include "cli/scan/scan.h"
#include "compare/scan.h"

void scan_next_command(const ScanRecord *scan, const char *policy, char text[SCAN_NEXT_SIZE]) {
    char name[EXPERIMENT_NAME_SIZE], keep[SCAN_KEEP_SIZE];
    Phrase phrase = phrase_begin(text, SCAN_NEXT_SIZE);
    phrase_add(&phrase, "mpbench run ");
    phrase_add_word(&phrase, experiment_subject(scan->script_path, name));
    phrase_add(&phrase, " -p fp32"); // all else stays as it was scanned
    if (scan_units_in_fp32(scan) < scan->unit_count) {
        phrase_add(&phrase, " --layers ");
        phrase_add_word(&phrase, policy);
    }
    scan_keep_fp32(scan, SCAN_BY_POLICY, keep);
    if (keep[0]) {
        phrase_add(&phrase, " --keep-fp32 ");
        phrase_add_word(&phrase, keep);
    }
    for (int i = 0; i < scan->option_count; i++)
        if (scan_option_repeats(scan, i)) {
            const char *value = scan->options[i].value;
            phrase_add(&phrase, " --%s%s", scan->options[i].name, value[0] ? " " : "");
            if (value[0])
                phrase_add_word(&phrase, value);
        }
}

void scan_print_next(const ScanRecord *scan) {
    const char usual[] = "policy.lua";
    const bool is_low = scan_units_in_fp32(scan) < scan->unit_count;
    const char *policy = scan->policy_file[0] ? scan->policy_file : usual;
    const char *kept = scan_option(scan, "keep-fp32");
    char text[SCAN_NEXT_SIZE];
    if (!scan->has_policy || scan->ended_ms == 0)
        return;
    if (is_low && !scan->policy_file[0] && scan->id == 0) {
        cli_print_wrapped("Next: the same command with -o policy.lua keeps this policy in a file, "
                          "and says how to train with it.",
                          0);
        return;
    }
    puts("Next:");
    if (is_low && !scan->policy_file[0])
        printf("  mpbench export scan:%" PRId64 " -o %s\n", scan->id, usual);
    scan_next_command(scan, policy, text);
    fputs("  ", stdout);
    cli_print_outside(stdout, text); // on one line, to be copied
    putchar('\n');
    if (kept && strcmp(kept, "all") != 0) {
        snprintf(text, sizeof text,
                 "There what --keep-fp32 %.60s puts low outside of these layers stays in fp32.",
                 kept);
        cli_print_wrapped(text, 0);
    }
}
