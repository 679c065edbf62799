// The door: one table of commands, nothing else. The first is what `mpbench` alone does.
#include "cli/cli.h"

static const Command commands[] = {
    {"home", FOR_HOME, "", "the screen: experiments, runs, all that is done with them",
     "Where standard output is no terminal, the newest runs as a table.", 0, 0, command_home},
    {"run", FOR_RUN, "EXPERIMENT", "train here, in the foreground",
     "EXPERIMENT is the path of a Lua file, or the name of one that ships.\n"
     "Progress goes to standard error, the result to standard output. SIGINT and SIGTERM finish\n"
     "the step and end the run; a second one ends it at once. Everything of the run is kept in "
     "the\n"
     "history while it goes on, unless --no-history: `mpbench ctl` steers it, `mpbench show` reads "
     "it.\n"
     "Without --precision the experiment's own holds, else auto: fp16 where the device gains from\n"
     "it, else bf16, else fp32; of two, the one it gains more from. Without --device a card is\n"
     "taken where there is one, else the processor.\n"
     "--twin P trains the same beside it, in a process and as a run of its own: the same script, "
     "seed,\n"
     "data and options, but for the precision (P alone: no --layer). After every step the losses, "
     "and\n"
     "samples of each layer's outputs, gradients and weights are held against each other: the "
     "distance\n"
     "|a - b| / max(|a|, |b|), and the first layer and step where it is far beyond what the "
     "inputs'\n"
     "distance and the coarser format's rounding explain. If the twin ends, the run goes on alone; "
     "if\n"
     "the run ends, so does the twin. Each computes on half of the\n"
     "processors; with --threads N each has N threads, which makes 2 N.\n"
     "Of the result, `time` and energy are of all of it but what it was paused for, stood still "
     "for by\n"
     "Ctrl-Z, or waited for its history; steps and samples a second are those of training, without "
     "the\n"
     "first step, and without what evaluations and checkpoints took.\n"
     "With --dry-run two steps are trained and nothing is kept: the table of layers is as they "
     "were\n"
     "computed; what other presets would make of them is what the policy decides of the same\n"
     "operations. Memory of weights, gradients and optimizer is computed, from the list of "
     "weights\n"
     "and their formats; activations and the most at once are measured over the two steps.",
     1, 1, command_run},
    {"resume", FOR_RESUME, "RUN", "goes on with a run from its last checkpoint",
     "The script is gone through again without computing, up to the checkpoint; from there on\n"
     "training is bit for bit what it would have been, on the same device and threads. The "
     "options\n"
     "are those that the run began with; what was set behind the checkpoint is set again where it\n"
     "was. Refused while the run is in progress.",
     1, 1, command_resume},
    {"fork", FOR_FORK, "RUN", "a new run that goes on from a step of another, with other options",
     "Options beat those of the parent; of its recipe --recipe changes the keys that it names.\n"
     "Layers that were set while the parent trained stay so but for those that a --layer names; "
     "of\n"
     "another --precision none does. A rate, a loss scale and a recipe that were set stay, too.\n"
     "Where no checkpoint lies at the step, the parent is trained again, unrecorded, from the one\n"
     "before it up to there, with what was set in it on the way. Steps count on from the "
     "parent's;\n"
     "time, speed, energy, memory, losses and the range of the scale are those of the fork's own\n"
     "steps.",
     1, 1, command_fork},
    {"eval", FOR_EVAL, "RUN", "a trained model on its test data, in formats side by side",
     "The weights of the run's last checkpoint, or of that --at a step or --weights FILE, on the\n"
     "data that its experiment keeps for tests (`test` of its `data`), in each --precision: what\n"
     "its `eval` says, the loss, the time of one sample and of a batch, the size of the weights, "
     "as\n"
     "`export` writes them and as the device holds them (`in memory`), and the most that\n"
     "activations take. Results beside the first two stand in a table below, with what they are\n"
     "from fp32's behind them. Nothing is trained or recorded. What is held against is\n"
     "fp32. Without -p: the run's own, and those of 32, 16 and 8 bits. Times are medians of "
     "rounds\n"
     "that go through all formats in turn. `x fp32` is the median of what each round found, per "
     "sample;\n"
     "`spread` is between what it lies; what rounds do not agree on cannot be told. For that all "
     "models are in memory at once.\n"
     "int8: linear layers and convolutions of whole numbers, -127 to 127 steps of a scale a row "
     "of\n"
     "weights and one a layer for what it multiplies, which --calibrate finds; all else in fp32.\n"
     "Cards have no such products here: --device cpu. fp8 takes the scales of the moment where it\n"
     "would take delayed ones, as there are no steps before.\n"
     "A model that fails on a single sample is not timed on one, and a note, or one_fails, says "
     "why.\n"
     "Under --memory `one takes` is what a sample is known to fit in. Weights that hold inf or nan "
     "are\n"
     "named on standard error, and in --json as weights_not_finite.\n"
     "An experiment with a `run` of its own declares `model`, `data` and `eval` beside it.",
     1, 1, command_eval},
    {"ls", FOR_LS, "[FILTER ...]", "the runs of the history, the newest first",
     "FILTER: words in the name, experiment, tag, note, precision or status, and fields:\n"
     "status:failed precision:fp16 (or state: format:, done for finished)\n"
     "device:cpu tag:baseline accuracy>0.9 loss<1. All of them must hold.\n"
     "A loss here, as in run and show, is the last one; compare has the mean of the last tenth.\n"
     "`fp32 +2 layers`: so many are set to other formats, as by --layers; `keep=none`: what\n"
     "--keep-fp32 said. In JSON that is precision_label.\n"
     "Stale is a run in progress that gives no sign of life, as one that Ctrl-Z stopped; dead is\n"
     "one whose process is gone: `mpbench resume` goes on with it.\n"
     "Without FILTER the scans stand below the runs.",
     0, CLI_MAX_OPERANDS, command_ls},
    {"show", FOR_SHOW, "RUN", "all that is known of one run",
     "RUN is its number, its name or a unique beginning of it, @last, @last:fp16 (the last one of\n"
     "that precision or status, a profile only where no training is) or @last:EXPERIMENT. In its\n"
     "place scan:N or scan:last prints a scan as `mpbench scan` did.\n"
     "\n"
     "`memory` is the most at once, then the most of each purpose, which need not be of one "
     "moment:\n"
     "weights are those that layers compute with, masters the fp32 that is kept beside low ones.\n"
     "So fp16 halves the weights, and its masters are as large as fp32's weights. Of a run that "
     "was\n"
     "resumed it is the most that any of its stretches held. `memory.steps`\n"
     "is the same for the steps alone, without what begins them.\n"
     "\n"
     "The loss, and a scale that moved, are drawn large, every other series in a line between its\n"
     "lowest and its highest.\n"
     "\n"
     "--first-nan prints what the flight recorder kept of the first inf or nan that was not to "
     "be:\n"
     "which tensor of which layer, at which step, forward or back, how large the numbers of the "
     "32\n"
     "steps before it were, and what mends it. A step that is skipped because the loss\n"
     "scale was too large is none: such is how a scale is found. On a device that runs on its own\n"
     "what the loss tells is looked for in the steps after it: it is named by the step in which "
     "it\n"
     "is found, and what is gone by then is not.\n"
     "\n"
     "--script prints the run's script, which the history keeps: >FILE puts back one that is "
     "gone,\n"
     "so that resume, fork and eval find it.",
     1, 1, command_show},
    {"watch", 0, "RUN", "the screen, on one run", NULL, 1, 1, command_watch},
    {"compare", FOR_COMPARE, "RUN RUN [RUN ...]", "runs side by side, the first is the baseline",
     "Runs that differ in their seed alone are one group. Groups with the same seeds are compared "
     "in\n"
     "pairs: two runs of a seed share their first weights and the order of their data, so that "
     "their\n"
     "difference scatters less than either. Others, and pairs that all differ by the same number, "
     "are\n"
     "compared by Welch's test. Which it was a verdict says (\"pair by pair\"), a line below the\n"
     "differences of --markdown, and in --json loss_delta_by and metric_deltas_by, \"pairs\" or\n"
     "\"welch\". What follows +- is a 95 % interval of the mean.\n"
     "The loss is the mean over the last tenth of what all runs share of the axis. Trainings part "
     "where\n"
     "the bits of the loss differ, and beyond noise where two windows of steps in a row differ by "
     "more\n"
     "than 1 % and 3 standard errors (over several seeds: the 95 % interval of Welch's test), or "
     "where,\n"
     "of two runs of one seed, the loss of one stays above the other's by as much: of the "
     "difference step\n"
     "by step, for a quarter of the steps that both have and for 48 at least. Speed is of "
     "samples,\n"
     "and of steps where nobody counted those; one that was taken beside other programs, or "
     "another\n"
     "of these runs, is told as what it seemed.",
     2, CLI_MAX_OPERANDS, command_compare},
    {"matrix", FOR_MATRIX, "EXPERIMENT", "every combination as a run, then the comparison",
     "--precision P1,P2 and --set KEY=V1,V2 take several values, --seeds N the seeds 1 to N. "
     "Every\n"
     "combination is trained in a process of its own. The same command again goes on where it was\n"
     "ended: what finished is not run again, and what was stopped goes on from its last "
     "checkpoint, "
     "on\n"
     "as many threads as before; unless the code of the script, or of a file that it requires, "
     "was\n"
     "changed (comments and blank lines may be). With --list it trains nothing: it lists the\n"
     "combinations, each with its run or to be trained, and compares what is there.\n"
     "The first combination is the baseline.",
     1, 1, command_matrix},
    {"ctl", FOR_CTL, "RUN VERB [ARGUMENT]", "an order to a run in progress, and its answer",
     "VERB: pause, resume, stop, checkpoint, or set with one of\n"
     "  layer.PATTERN=P   the precision of the layers so named, as --layer takes it; the answer\n"
     "                    names what computes in fp32 still, as --keep-fp32 has it\n"
     "  loss_scale=S      a number, or a preset as --loss-scale takes it\n"
     "  lr=X, lr.N=X      the learning rate, of all optimizers or the Nth\n"
     "  recipe.KEY=VALUE  how scaled formats round, as --recipe takes it: recipe.scales=up\n"
     "Prints the run's answer, for which it waits up to 10 s: that to stop comes when the run is\n"
     "over, its checkpoint kept. Exit status 2 where what it sets was typed wrong, 1 where the\n"
     "order is refused otherwise, or nobody answers: it is kept then, and done once the run goes\n"
     "on.",
     2, 3, command_ctl},
    {"export", FOR_EXPORT, "RUN", "a run's numbers, weights or newest picture, for other programs",
     "csv: a row a step, a column a series; where steps came too fast for each to be kept, a row\n"
     "is the mean of 8, 64, .. of them, with the number of the first.\n"
     "jsonl: an object a line: the run, every point, layer sample and event.\n"
     "safetensors: the newest checkpoint, once its checksum is found right; with -p its weights\n"
     "alone, those that products take in that format, with their scales, as eval has them\n"
     "(`mpbench help weights`).\n"
     "png: the newest of the pictures that the script kept (run:picture).\n"
     "scan:N or scan:last in place of RUN: the policy of that scan, for --layers FILE.\n"
     "tensorboard: a file of events, named FOLDER/events.out.tfevents.NAME for `tensorboard "
     "--logdir`:\n"
     "every series, what the format did to each layer's gradients, and their exponents.\n"
     "-o puts a file in its place when it is whole, never over a file of the history or one that\n"
     "may not be written; pipes and devices are written through.",
     1, 1, command_export},
    {"scan", FOR_SCAN, "EXPERIMENT|RUN",
     "which layers may go into which formats, and a policy of it",
     "From one state (an experiment after 50 steps in fp32, or a run's checkpoint; where that "
     "holds\n"
     "inf or nan, its start and 50 steps in fp32) each layer that\n"
     "multiplies is put into each format alone, on the same batches as fp32; so is each norm and "
     "each\n"
     "embedding, which then computes in it as in a run that does not keep its kind (--keep-fp32). "
     "Its\n"
     "damage is how far that moves gradients, as a share of what they differ by from batch to "
     "batch;\n"
     "it breaks where something is not finite, running statistics of a batch norm too. Where "
     "damage is\n"
     "small a layer gets the fastest format; norms and embeddings go low with the others where a "
     "pass\n"
     "gains time or memory by it (`norms too`), else they stay as they are and are never set. "
     "What\n"
     "--keep-fp32 names has no row of its own, and with --by block norms have none. The policy is\n"
     "then trained on beside fp32 and beside all that multiplies low, and made higher until its "
     "loss,\n"
     "and of what the experiment's `eval` says of its test data (of 4096 samples or more) the "
     "result\n"
     "that leads, are within --within of fp32's; where all layers in one format, or in fp32, are\n"
     "faster and surely hold, or take less memory and are not slower, that is the policy. It is "
     "verified where the seeds tell that; where\n"
     "they scatter too much that cannot be told, and more --seeds may. Seeds that all gave the "
     "same to\n"
     "the bit count as one, and tell nothing. -o FILE.lua keeps the policy,\n"
     "for `mpbench run .. --layers FILE.lua`; what it prints ends with the command to type next. A "
     "run\n"
     "that has no checkpoint is scanned from its start, with its options. What breaks a run may "
     "lie\n"
     "where no row is: what the run said of itself is repeated behind the verdict.\n"
     "\n"
     "Speeds are medians of rounds that go through all formats, and all trainings, in turn; "
     "`spread`\n"
     "is between what they lie. One that is faster by no more than that is not preferred: whether "
     "it\n"
     "is faster cannot be told (`speed` of --json). Then, and where two differ by less than 5 %, "
     "the\n"
     "format that takes less memory is, and of two alike the one that does less damage.\n"
     "\n"
     "What is measured is in the history at once, unless --no-history: where a scan was stopped "
     "or\n"
     "killed the same command goes on, and of one that has come to its end it prints what was\n"
     "found; so does `mpbench show scan:N`, or scan:last. --again measures anew.\n"
     "\n"
     "What a layer loses is counted of its gradients; in formats whose numbers share scales, of\n"
     "all that its products take, at the scales in force: flushed to zero, and beyond the largest\n"
     "element; of several formats the table has the most of each. --json has the subnormal ones\n"
     "besides, the least, middle and largest scale, as\n"
     "exponents of 2, and the loss of each seed; as `kept` the kind of a norm or an embedding, "
     "whose\n"
     "policy may be auto, and in `keep_fp32` what to give to --keep-fp32 with the policy. Of a\n"
     "training it has the `outcome` (within, beyond, cannot be told), whether its seeds are "
     "`seeds_alike`\n"
     "to the bit, how many steps each `skipped`, what the `metric` is, by which share that is "
     "worse\n"
     "than fp32's, and of each seed; of the policy whether it is `verified`, and where it is not, "
     "in\n"
     "`unverified` why.",
     1, 1, command_scan},
    {"claims", FOR_CLAIMS, "[CLAIM ...]", "what people say of mixed precision, tested here",
     "Each sentence with the published figure and its source, the same figure of runs on this\n"
     "machine, and what those say: confirmed; contradicted; not here, where it depends on what\n"
     "this device has, or on another measure than the published one; cannot be told, where seeds\n"
     "scatter too much or other programs kept the machine busy. Runs that are missing are trained\n"
     "first, as `mpbench matrix` does: all of them take about a quarter of an hour on two cores,\n"
     "and can be interrupted; the same command goes on, or prints what it found. --list trains\n"
     "nothing.",
     0, CLI_MAX_OPERANDS, command_claims},
    {"report", FOR_REPORT, "RUN [RUN ...]", "runs as one page of HTML, for others to read",
     "Outcome, results with what differs, curves, memory, then each run: diagnoses, layers with "
     "the\n"
     "exponents of their gradients, how to repeat it, its script and its environment. The page "
     "needs\n"
     "no network, no file beside it and no script, though with one it shows values under the "
     "pointer;\n"
     "it follows the reader's choice of dark or light, and prints. The first run is the baseline.",
     1, CLI_MAX_OPERANDS, command_report},
    {"rm", FOR_RM, "RUN [RUN ...]", "takes runs out of the history, with all their files",
     "A name is given whole here: a beginning of it is not enough. scan:N in place of a RUN takes\n"
     "that scan out; those of a run go with it.",
     1, CLI_MAX_OPERANDS, command_rm},
    {"tag", FOR_TAG, "RUN TAG", "gives a run a word to find it by; \"\" takes it away", NULL, 2, 2,
     command_tag},
    {"note", FOR_NOTE, "RUN TEXT", "keeps a text with a run", NULL, 2, CLI_MAX_OPERANDS,
     command_note},
    {"gc", FOR_GC, "", "takes away what runs left behind, and makes the history's file smaller",
     NULL, 0, 0, command_gc},
    {"formats", FOR_FORMATS, "[NUMBER|EXPRESSION ...]", "a number in every format, bit by bit",
     "An expression is computed in each format: + - * / ^ and parentheses, 1e-4*1e-4, 2^-25,\n"
     "0x1.8p3, inf, nan. Without one: what each format is made of. With --block what fp8, mx "
     "formats\n"
     "and nvfp4 make of several numbers that share scales.",
     0, CLI_MAX_OPERANDS, command_formats},
    {"doctor", FOR_DOCTOR, "", "what this machine can do, what is missing, and what to do",
     "Of each card: capability, driver, the libraries that are there and their versions, which\n"
     "formats it trains in, and by which it gains.",
     0, 0, command_doctor},
    {"bench", FOR_BENCH, "[formats]", "this machine, measured: what each format gains over fp32",
     "How many times as fast as in fp32 are matrix products, convolutions and whole steps of a "
     "small\n"
     "network, in every format that the device computes in, and what memory does training take\n"
     "beside fp32's? Nothing trains in int8: there it is products and convolutions of a layer "
     "that\n"
     "is evaluated, and the memory of its weights. All formats take turns in several rounds, so\n"
     "what else the machine does hits them alike. Takes about 16 s, with --quick 6; a very slow\n"
     "device as long as one round needs.",
     0, 1, command_bench},
    {"profile", FOR_PROFILE, "EXPERIMENT|RUN",
     "where the time of steps goes: by layer, operation and way",
     "An EXPERIMENT is trained for about 4 s (--steps N: so many steps), without curves, every "
     "step\n"
     "timed: what each operation of each layer takes on the way forward and back, casts, and what\n"
     "it reaches of the device's limit: of products the rate of large ones, of all else that of\n"
     "memory. Parts add up to the step; what is left lies between operations. All are means, but "
     "for\n"
     "rare steps of over 3 times the median, which are told below. It is kept as a run (not with\n"
     "--no-history), of which the same is printed again without training, and shown on its screen\n"
     "(P). Of any other RUN it is the time of its layers, as the history holds it. Below the "
     "table:\n"
     "what to do about it.",
     1, 1, command_profile},
    {"help", FOR_HELP, "[COMMAND|TOPIC|EXPERIMENT]",
     "how to use a command, what an experiment does", NULL, 0, 1, command_help},
    {"version", 0, "", "the version", NULL, 0, 0, command_version},
    {NULL, 0, NULL, NULL, NULL, 0, 0, NULL},
};

int main(int argc, char **argv) {
    return cli_main(commands, argc, argv);
}
