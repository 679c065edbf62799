// What `mpbench help` says about the engine's tables: operations, precisions, loss scales. The
// reference page is made of it, so that neither can differ from the code.
#include <math.h>
#include <string.h>

#include "base/embedded.h"
#include "checkpoint/quantised.h"
#include "cli/cli.h"
#include "cli/topics.h"
#include "kernel/kernel.h"
#include "ops/gradient.h"
#include "precision/policy.h"
#include "precision/scaler.h"
#include "run/diagnosis.h"
#include "store/store.h"

static const struct {
    const char *name, *text;
} classes[] = {
    [CLASS_LOW] = {"low", "floating inputs are cast to the layer's low format; sums are kept in "
                          "fp32; the result is in the low format"},
    [CLASS_FULL] = {"full", "the result is in fp32"},
    [CLASS_WIDEST] = {"widest", "the result is in the widest floating format among the inputs"},
    [CLASS_KEEP] = {"keep", "the result is in the format of the first input"},
    [CLASS_BANNED] = {"banned", "refused where the low format is not fp32, with the name of what "
                                "to use instead"},
    [CLASS_INNER] = {NULL, NULL}, // only gradients and other operations call it
};

static const char *derivatives_of(OpId op) {
    return gradient_table[op]->rule ? "any" : "none";
}

static void print_operations(void) {
    enum { CLASS_COLUMN = 12, TEXT_COLUMN = 43 };
    puts("What autocast does with an operation is its class. Every kernel computes in fp32 and "
         "rounds\nonce, to the format of its result.\n");
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (!classes[i].name)
            continue;
        printf("  %-*s", CLASS_COLUMN - 2, classes[i].name);
        cli_print_wrapped(classes[i].text, CLASS_COLUMN);
    }
    puts("\nA layer set to fp32 (--layer NAME=fp32) gives all results in it. One set to fp16 or "
         "bf16 "
         "casts to\nit what comes in the other, so that its range is that of all its operations.");
    puts("\nDerivatives: any, as often as one likes; or none, where the result counts as a "
         "constant. Of bce\nand bce_with_logits x has them, and the target none.");
    printf("\n  %-18s%-8s%-8s%-7s%s\n", "operation", "class", "inputs", "deriv.",
           "what it does; ? may be absent");
    for (int op = 0; op < OP_COUNT; op++) {
        const OpInfo *info = &op_table[op];
        if (!classes[info->precision].name)
            continue;
        char inputs[16] = "any";
        if (info->inputs != VARIADIC)
            snprintf(inputs, sizeof inputs, "%d", info->inputs);
        printf("  %-17s %-8s%-8s%-7s", info->name, classes[info->precision].name, inputs,
               derivatives_of((OpId)op));
        cli_print_wrapped(info->text, TEXT_COLUMN);
    }
}

// What numbers that share scales are made of.
static void print_scaled(void) {
    puts("\n  Formats whose numbers share scales: elements that products round their factors to\n"
         "  (`mpbench formats` shows these); and how many, along a product's depth, share a scale "
         "in\n"
         "  which format");
    for (int i = 0; i < FORMAT_COUNT; i++) {
        const FormatInfo *info = &format_table[i];
        if (!format_is_scaled((Format)i) || info->element == (Format)i)
            continue;
        const char *element = format_name(info->element), *gradients = format_name(info->gradients);
        printf("  %-16s%s%s%s, a scale ", format_name((Format)i), element,
               info->gradients != info->element ? ", gradients " : "",
               info->gradients != info->element ? gradients : "");
        if (info->block > 0)
            printf("of %d in %s%s\n", info->block, format_name(info->scale),
                   // e4m3 holds so few scales that one of the tensor brings them into its range
                   info->scale == FORMAT_E4M3 ? ", and of the tensor in fp32" : "");
        else
            printf("of the tensor in %s\n", format_name(info->scale));
    }
}

static void print_precisions(void) {
    static const char *const modes[] = {
        [POLICY_FULL] = "none", [POLICY_CLASSES] = "by class", [POLICY_ALL_LOW] = "nearly all"};
    printf("  %-16s%-12s%-12s%-9s%s\n", "--precision", "format", "cast", "updated", "loss scale");
    for (const Preset *preset = preset_table; preset->name; preset++)
        printf("  %-16s%-12s%-12s%-9s%-12s%s\n", preset->name, format_name(preset->low),
               modes[preset->mode], format_name(preset->masters ? FORMAT_FP32 : preset->low),
               preset->loss_scale, preset->text);
    puts(
        "\n  auto: fp16 where products in it are faster on the device than in fp32, else bf16 "
        "where\n        those are, else fp32; of two, the one that is faster\n"
        "  amp:  bf16 where only products in bf16 are faster, else fp16\n"
        "  updated: what weights are in where they are updated; where products need them in a\n"
        "        lower one that can be stored, a copy in it lies beside them\n"
        "  tf32: products round their fp32 factors to it, all else is fp32; a card multiplies in\n"
        "        it, a processor shows what it does and is no faster by it\n"
        "  fp8, mxfp8, ..: products round their factors to elements that share scales, attention "
        "is\n"
        "        as in bf16; e4m3 and e5m2 are fp8 of one kind of element. Of mxfp4, nvfp4 and\n"
        "        mxfp6_e2m3 a processor multiplies the elements of linear layers as whole numbers\n"
        "        where it is faster so (mpbench doctor tells); all else as what they are worth");
    print_scaled();
    puts(
        "\n\"By class\" follows `mpbench help operations`. Where nearly all is low, batch norm and "
        "the\nlosses are not. Masters are fp32 weights beside the low ones.\n\n"
        "A layer can be set by itself, with --layer PATTERN=FORMAT or from Lua, to:");
    char list[FORMAT_LIST_SIZE];
    printf("  auto, %s\n\nNames of other tools do as "
           "well:\n",
           format_list(list, format_is_offered, ", ", ", "));
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (format_trains((Format)i))
            printf("  %-6s%s\n", format_name((Format)i), format_table[i].aliases);
}

static void print_recipes(void) {
    puts(
        "  How products round their factors in fp8, mx formats and nvfp4: --recipe KEY=VALUE,..\n");
    for (const char *const *line = recipe_help; *line; line++)
        printf("  %s\n", *line);
    puts("\n  mpbench run gpt -p nvfp4 --recipe backward=mxfp8,blocks=best --layer head=bf16\n\n"
         "  Above bf16's loss in percent, measured in pairs of runs of small models, by\n"
         "  tests/bench/formats_loss.sh of the source, and what that surely lies between:\n\n"
         "                                                gpt                 fashion_cnn\n"
         "  fp8, as it comes                              0.1  (0 to 0.2)     0.6 (0.1 to 1.1)\n"
         "  mxfp8, as it comes                            0.1  (0 to 0.2)     0.5 (-0.1 to 1.2)\n"
         "  nvfp4, as it comes                            2.8  (2.2 to 3.4)   2.5 (1.9 to 3.1)\n"
         "  nvfp4 backward=mxfp8,blocks=best              1.0  (0.7 to 1.3)   1.6 (0.6 to 2.6)\n"
         "  and the last layer, head, in bf16             0.8  (0.5 to 1.0)   0.5 (0 to 1.1)\n"
         "  mxfp4, as it comes                            17.5 (16.9 to 18.2) 6.3 (4.9 to 7.7)\n\n"
         "  nvfp4 with backward=mxfp8 and activations=bf16, weights alone in 4 bits, is 0.4 above "
         "in both.");
}

// A number in a column; large powers of two as such.
static void print_scale(double value, bool is_none) {
    enum { COLUMN = 9 };
    int exponent;
    if (is_none)
        printf("%-*s", COLUMN, "-");
    else if (value >= 4096 && frexp(value, &exponent) == 0.5)
        printf("2^%-*d", COLUMN - 2, exponent - 1);
    else
        printf("%-*g", COLUMN, value);
}

static void print_scales(void) {
    printf("  %-14s%-9s%-8s%-9s%-10s%-7s%-9s%s\n", "--loss-scale", "init", "growth", "backoff",
           "interval", "after", "floor", "ceiling");
    for (const ScalePreset *preset = scale_preset_table; preset->name; preset++) {
        const ScaleRule *rule = &preset->rule;
        printf("  %-14s", preset->name);
        if (rule->kind != SCALE_NONE) {
            print_scale(rule->init, false);
            printf("%-8g%-9g%-10lld%-7lld", rule->growth, rule->backoff, (long long)rule->interval,
                   (long long)rule->hysteresis);
            print_scale(rule->floor, rule->floor == 0);
            print_scale(rule->ceiling, rule->ceiling > 0x1p64);
        }
        printf("\n      ");
        cli_print_wrapped(preset->text, 6);
    }
    puts("\nA number is a scale that never moves. Interval: clean steps before the scale grows. "
         "After:\noverflows before it backs off.");
}

static void print_diagnoses(void) {
    enum { NAME_COLUMN = 23, REMEDY_COLUMN = 33 };
    puts("What a run says of itself without being asked: once a kind and layer, in its progress "
         "lines, in\n`show`, on the screen, and in --json under \"diagnoses\", with the layer, "
         "the numbers and what to\ndo. A run that is well says nothing.\n");
    for (int i = 0; i < DIAGNOSIS_KINDS; i++) {
        const DiagnosisInfo *info = &diagnosis_table[i];
        printf("  %-*s", NAME_COLUMN - 2, info->name);
        cli_print_wrapped(info->seen, NAME_COLUMN);
        printf("%*s%-*s", NAME_COLUMN, "", REMEDY_COLUMN - NAME_COLUMN, "  helps:");
        cli_print_wrapped(info->remedy, REMEDY_COLUMN);
    }
    puts("\nWhat no run gets into:\n");
    for (const PreventedFault *row = prevented_table; row->fault; row++) {
        printf("  %s:\n      ", row->fault);
        cli_print_wrapped(row->instead, 6);
    }
}

static void print_history(void) {
    puts("The history is one SQLite file, which any SQLite tool reads while mpbench writes:\n\n"
         "  sqlite3 -readonly ~/.local/share/mpbench/history.db 'SELECT * FROM run_summary'\n\n"
         "It lies at --db, else MPBENCH_DB, else $XDG_DATA_HOME/mpbench/history.db, else\n"
         "~/.local/share/mpbench/history.db. Views for people are run_summary, run_points and\n"
         "run_events; the tables, as they are made:\n");
    for (const char *const *statement = store_schema(); *statement; statement++)
        puts(*statement);
}

static void print_weights(void) {
    char list[FORMAT_LIST_SIZE];
    puts("`mpbench export RUN --format safetensors -p P` writes weights and buffers of the newest\n"
         "checkpoint under their bare names, rounded to nearest. Weights of two dimensions or more "
         "that\nproducts take are in P, but for layers that the script or --layer PATTERN=P sets "
         "to another, with\nwhat lies below them. All else is in fp32, as where `mpbench eval` "
         "computes in P: biases, norms,\nbuffers, and embeddings, which --layer NAME=P puts into "
         "P, too. What --layer said when the run was\ntrained holds in the run's own precision. A "
         "layer that was set while it trained (`ctl`, the screen)\nis as it was left; an "
         "evaluation does not know of that. P is one of");
    printf("%s.\n\n", format_list(list, quantised_is_written, ", ", ", "));
    puts("A number is element * scale [* scale_of_all]. Of a weight W of shape [N, .., D]:\n\n"
         "  fp32 and those of 16 bits W as it is named there\n"
         "  int8                      W in I8, W.scale in F32 [N]: of each row N\n"
         "  fp8, e4m3, e5m2           W in F8_E4M3 or F8_E5M2, W.scale in F32 [1]\n"
         "  mxfp8                     W in F8_E4M3, W.scale in U8 [N, .., ceil(D/32)]: 2^(scale - "
         "127) of\n"
         "                            each 32 along D\n"
         "  mxfp6, mxfp4              the same, elements of 6 or 4 bits packed: W in U8 [N, .., "
         "ceil(D*bits/8)],\n"
         "                            the first in the lowest bits, each row by itself\n"
         "  nvfp4                     elements of 4 bits so, W.scale in F8_E4M3 [N, .., "
         "ceil(D/16)], and\n"
         "                            W.scale_of_all in F32 [1]\n\n"
         "Elements are those of `mpbench formats`. The notes (__metadata__) say `quantised`, which "
         "is P,\n`run`, `experiment` and `step`, and as taker/NAME what takes a weight that no "
         "product does.\nWeights that are not finite are refused where "
         "elements are scaled,\nand finite ones beyond what fp16 or bf16 hold.\nWhat is in fp32 or "
         "16 bits can be begun with or evaluated again: "
         "--weights FILE.");
}

static void print_lua(void) {
    for (const EmbeddedText *page = embedded_pages; page->name; page++)
        if (strcmp(page->name, "lua") == 0)
            fputs(page->text, stdout);
}

const Topic topic_table[] = {
    {"lua", "everything that a script can name, with its arguments", print_lua},
    {"history", "where runs are kept: tables, columns, views", print_history},
    {"operations", "every operation, its class, inputs and derivatives", print_operations},
    {"precisions", "what --precision takes", print_precisions},
    {"loss-scales", "what --loss-scale takes", print_scales},
    {"recipes", "what --recipe takes", print_recipes},
    {"weights", "what `export` writes of them in few bits, and how it lies there", print_weights},
    {"diagnoses", "what a run says of itself, and what helps", print_diagnoses},
    {NULL, NULL, NULL},
};

const Topic *topic_named(const char *name) {
    for (const Topic *topic = topic_table; topic->name; topic++)
        if (strcmp(topic->name, name) == 0)
            return topic;
    return NULL;
}
