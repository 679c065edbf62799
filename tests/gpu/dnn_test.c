// Every graph that we give cuDNN, finalised by the real library for the cards that it is run on. It
// needs no card: a document describes each (tests/gpu/cards, all that the library asks for; from
// data sheets, until a card writes its own), and mock_driver.c pretends that kernels load.
#include <dlfcn.h>

#include "gpu/dnn/plans.h"
#include "kernel/attr.h"
#include "number/format.h"
#include "tests/test.h"

static Dnn *open_described(const char *properties, Error *error) {
    Dnn *dnn = dnn_open_described(properties, error);
    if (!dnn && error->code == ERROR_UNAVAILABLE)
        SKIP("%.200s", error->text);
    return dnn;
}

// NULL where there is no library: then the test is skipped.
static Dnn *open_card(const char *card, Error *error) {
    char path[128], text[4096];
    snprintf(path, sizeof path, "tests/gpu/cards/%s.json", card);
    FILE *file = fopen(path, "r");
    CHECK_MESSAGE(file, "%s cannot be read", path);
    if (!file)
        return NULL;
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = 0;
    return open_described(text, error);
}

// ---- graphs -------------------------------------------------------------------------------------

typedef struct ConvolutionCase {
    const char *name;
    int64_t images, channels, filters, groups, input, kernel, stride, padding, dilation;
} ConvolutionCase;

static const ConvolutionCase convolutions[] = {
    {"3x3", 32, 64, 128, 1, 28, 3, 1, 1, 1},
    {"1x1", 32, 256, 64, 1, 14, 1, 1, 0, 1},
    {"3x3 stride 2", 32, 64, 64, 1, 57, 3, 2, 1, 1},
    {"7x7 of 3 channels", 16, 3, 64, 1, 224, 7, 2, 3, 1},
    {"dilated", 8, 32, 32, 1, 30, 3, 1, 2, 2},
    {"32 groups", 16, 128, 128, 32, 28, 3, 1, 1, 1},
    {"depthwise", 16, 64, 64, 64, 28, 3, 1, 1, 1},
    {"odd", 5, 17, 9, 1, 13, 5, 1, 2, 1},
};
enum { CONVOLUTIONS = sizeof convolutions / sizeof *convolutions };

static DnnGraph convolution(DnnKind kind, const ConvolutionCase *of, Format format, Format result) {
    int64_t reach = of->dilation * (of->kernel - 1) + 1;
    int64_t output = (of->input + 2 * of->padding - reach) / of->stride + 1;
    return (DnnGraph){
        .kind = kind,
        .convolution = {.images = of->images,
                        .channels = of->channels,
                        .filters = of->filters,
                        .groups = of->groups,
                        .input = {of->input, of->input},
                        .output = {output, output},
                        .kernel = {of->kernel, of->kernel},
                        .stride = {of->stride, of->stride},
                        .padding = {of->padding, of->padding},
                        .dilation = {of->dilation, of->dilation},
                        .factors = format,
                        .result = result,
                        .bias = DNN_NO_FORMAT},
    };
}

typedef struct AttentionCase {
    const char *name;
    int64_t batch, queries, keys, heads, depth;
    bool causal;
} AttentionCase;

static const AttentionCase attentions[] = {
    {"causal", 4, 1024, 1024, 12, 64, true},
    {"more queries than keys", 2, 200, 77, 8, 128, false},
    {"odd and causal", 8, 65, 65, 4, 32, true},
};
enum { ATTENTIONS = sizeof attentions / sizeof *attentions };

static DnnRows rows(int64_t heads, int64_t count, int64_t depth) {
    return (DnnRows){.batch = count * heads * depth, .time = heads * depth, .head = depth};
}

static DnnGraph attention(DnnKind kind, const AttentionCase *of, Format format) {
    DnnRows queries = rows(of->heads, of->queries, of->depth);
    DnnRows keys = rows(of->heads, of->keys, of->depth);
    DnnGraph graph = {
        .kind = kind,
        .attention = {.format = format,
                      .batch = of->batch,
                      .queries = of->queries,
                      .keys = of->keys,
                      .heads = of->heads,
                      .depth = of->depth,
                      .causal = of->causal,
                      .q = queries,
                      .k = keys,
                      .v = keys,
                      .y = queries},
    };
    if (kind == DNN_ATTENTION)
        graph.attention.keeps_sums = true;
    if (kind == DNN_ATTENTION_BACKWARD) {
        graph.attention.dy = graph.attention.dq = queries;
        graph.attention.dk = graph.attention.dv = keys;
    }
    return graph;
}

// ---- what every card is asked -------------------------------------------------------------------

typedef struct Asked {
    char name[96];
    DnnGraph graph;
} Asked;

enum { MOST_ASKED = 128 };

typedef struct List {
    Asked asked[MOST_ASKED];
    int count;
} List;

static void ask(List *list, DnnGraph graph, const char *what, const char *shape, Format factors,
                const char *more) {
    Asked *asked = &list->asked[list->count++];
    asked->graph = graph;
    snprintf(asked->name, sizeof asked->name, "%s, %s, %s%s", what, shape, format_name(factors),
             more);
}

// All shapes in all formats; what is compiled when it is first asked for, and takes long, by
// samples.
static void ask_convolutions(List *list) {
    static const Format formats[] = {FORMAT_FP32, FORMAT_BF16, FORMAT_FP16, FORMAT_TF32};
    for (int f = 0; f < 4; f++) {
        Format format = formats[f];
        for (int i = 0; i < CONVOLUTIONS; i++) {
            const ConvolutionCase *of = &convolutions[i];
            const Format kept = format_kept(format);
            DnnGraph graph = convolution(DNN_CONVOLUTION, of, format, kept);
            ask(list, graph, "convolution", of->name, format, "");
            graph.convolution.bias = kept;
            ask(list, graph, "convolution", of->name, format, ", bias");
            graph = convolution(DNN_CONVOLUTION_INPUT, of, format, kept);
            ask(list, graph, "gradient of the input", of->name, format, "");
            if (kept == FORMAT_FP32) {
                graph = convolution(DNN_CONVOLUTION_WEIGHT, of, format, FORMAT_FP32);
                ask(list, graph, "gradient of the weight", of->name, format, "");
            }
        }
    }
    const ConvolutionCase *first = &convolutions[0];
    for (int i = 0; i < 3; i++)
        ask(list,
            convolution(DNN_CONVOLUTION_WEIGHT, &convolutions[i], formats[1 + i % 2], FORMAT_FP32),
            "gradient of the weight", convolutions[i].name, formats[1 + i % 2], " to fp32");
    DnnGraph graph = convolution(DNN_CONVOLUTION, first, FORMAT_BF16, FORMAT_FP32);
    ask(list, graph, "convolution", first->name, FORMAT_BF16, " to fp32");
    graph = convolution(DNN_CONVOLUTION, first, FORMAT_FP16, FORMAT_FP16);
    graph.convolution.bias = FORMAT_FP32;
    graph.convolution.activation = ACTIVATION_TANH;
    ask(list, graph, "convolution", first->name, FORMAT_FP16, ", bias of fp32, tanh");
}

static void ask_attention(List *list) {
    static const Format formats[] = {FORMAT_BF16, FORMAT_FP16, FORMAT_BF16};
    for (int i = 0; i < ATTENTIONS; i++) {
        const AttentionCase *of = &attentions[i];
        ask(list, attention(DNN_ATTENTION, of, formats[i]), "attention", of->name, formats[i], "");
        ask(list, attention(DNN_ATTENTION_BACKWARD, of, formats[i]), "gradient of attention",
            of->name, formats[i], "");
    }
    const AttentionCase *first = &attentions[0];
    DnnGraph graph = attention(DNN_ATTENTION, first, FORMAT_FP16);
    graph.attention.keeps_sums = false;
    ask(list, graph, "attention", first->name, FORMAT_FP16, ", without sums");
    ask(list, attention(DNN_ATTENTION, first, FORMAT_FP32), "attention", first->name, FORMAT_FP32,
        "");
    ask(list, attention(DNN_ATTENTION_BACKWARD, first, FORMAT_FP32), "gradient of attention",
        first->name, FORMAT_FP32, "");
    ask(list, attention(DNN_ATTENTION, first, FORMAT_TF32), "attention", first->name, FORMAT_TF32,
        "");
}

// What no engine takes, and our own kernels do: how the names of its graphs begin and end, and on
// which card (NULL: every one).
static const struct {
    const char *begin, *end, *card, *why;
} refused[] = {
    {"attention", "fp32", NULL, "engines multiply fp32 in TF32 only"},
    {"gradient of attention", "fp32", NULL, "there is no engine for fp32"},
};

static const char *reason_to_refuse(const char *name, const char *card) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        size_t end = strlen(refused[i].end), length = strlen(name);
        if (strncmp(name, refused[i].begin, strlen(refused[i].begin)) == 0 && end <= length &&
            strcmp(name + length - end, refused[i].end) == 0 &&
            (!refused[i].card || strcmp(refused[i].card, card) == 0))
            return refused[i].why;
    }
    return NULL;
}

static void every_graph_has_a_plan_for(const char *card) {
    static List list;
    Error error = {0};
    Dnn *dnn = open_card(card, &error);
    if (!dnn)
        return;
    list.count = 0;
    ask_convolutions(&list);
    ask_attention(&list);
    for (int i = 0; i < list.count; i++) {
        const Asked *asked = &list.asked[i];
        const DnnPlan *plan = dnn_plan(dnn, &asked->graph, &error);
        const char *reason = reason_to_refuse(asked->name, card);
        CHECK_MESSAGE(plan && (plan->available || reason), "%s on %s: %s", asked->name, card,
                      plan ? plan->why : error.text);
        CHECK_MESSAGE(!plan || plan->available || plan->why[0], "%s on %s: refused without a word",
                      asked->name, card);
        CHECK_MESSAGE(!plan || plan->workspace <= DNN_MOST_WORKSPACE, "%s on %s: takes %zu bytes",
                      asked->name, card, plan->workspace);
    }
    dnn_close(dnn);
}

static void every_graph_has_a_plan_for_a100(void) {
    every_graph_has_a_plan_for("a100");
}
static void every_graph_has_a_plan_for_h100(void) {
    every_graph_has_a_plan_for("h100");
}
static void every_graph_has_a_plan_for_b200(void) {
    every_graph_has_a_plan_for("b200");
}
static void every_graph_has_a_plan_for_rtx5090(void) {
    every_graph_has_a_plan_for("rtx5090");
}

// ---- plans --------------------------------------------------------------------------------------

static void a_graph_is_planned_once(void) {
    Error error = {0};
    Dnn *dnn = open_card("h100", &error);
    if (!dnn)
        return;
    DnnPlan *plans[2 * CONVOLUTIONS];
    for (int i = 0; i < 2 * CONVOLUTIONS; i++) { // more than there is room for at first
        Format format = i < CONVOLUTIONS ? FORMAT_FP32 : FORMAT_BF16;
        DnnGraph graph =
            convolution(DNN_CONVOLUTION, &convolutions[i % CONVOLUTIONS], format, format);
        plans[i] = dnn_plan(dnn, &graph, &error);
        CHECK(plans[i] != NULL);
        for (int j = 0; j < i; j++)
            CHECK(plans[j] != plans[i]);
    }
    for (int i = 0; i < 2 * CONVOLUTIONS; i++) {
        Format format = i < CONVOLUTIONS ? FORMAT_FP32 : FORMAT_BF16;
        DnnGraph graph =
            convolution(DNN_CONVOLUTION, &convolutions[i % CONVOLUTIONS], format, format);
        CHECK(dnn_plan(dnn, &graph, &error) == plans[i]);
    }
    dnn_close(dnn);
}

static void a_plan_that_was_refused_stays_so(void) {
    Error error = {0};
    Dnn *dnn = open_card("h100", &error);
    if (!dnn)
        return;
    DnnGraph graph = convolution(DNN_CONVOLUTION, &convolutions[0], FORMAT_FP32, FORMAT_FP32);
    DnnPlan *plan = dnn_plan(dnn, &graph, &error);
    CHECK(plan && plan->available);
    if (plan)
        dnn_refuse(plan, "its first result was wrong");
    plan = dnn_plan(dnn, &graph, &error);
    CHECK(plan && !plan->available);
    CHECK_TEXT(plan ? plan->why : "", "its first result was wrong");
    dnn_close(dnn);
}

// By the engines that the library has for it, one after the other.
static void an_engine_that_is_passed_over_does_not_come_back(void) {
    enum { MANY = 40 };
    Error error = {0};
    Dnn *dnn = open_card("h100", &error);
    if (!dnn)
        return;
    DnnGraph graph = convolution(DNN_CONVOLUTION, &convolutions[0], FORMAT_FP32, FORMAT_FP32);
    DnnPlan *plan = dnn_plan(dnn, &graph, &error);
    int passed = 0;
    for (; plan && plan->available && passed < MANY; passed++) {
        plan->trusted = true;
        dnn_pass_over(dnn, plan, "its first result was wrong");
        CHECK(!plan->trusted && dnn_is_same(&plan->graph, &graph));
    }
    CHECK_MESSAGE(passed > 1 && passed < MANY, "%d engines were passed over", passed);
    CHECK_TEXT(plan ? plan->why : "", "its first result was wrong");
    CHECK(dnn_plan(dnn, &graph, &error) == plan);
    dnn_close(dnn);
}

static void a_graph_without_sense_is_refused_by_words(void) {
    Error error = {0};
    Dnn *dnn = open_card("h100", &error);
    if (!dnn)
        return;
    DnnGraph graph = convolution(DNN_CONVOLUTION, &convolutions[0], FORMAT_FP32, FORMAT_FP32);
    graph.convolution.output[0]++; // no such windows
    DnnPlan *plan = dnn_plan(dnn, &graph, &error);
    CHECK(plan && !plan->available && plan->why[0]);
    dnn_close(dnn);
}

static void a_card_without_properties_is_refused(void) {
    Error error = {0};
    Dnn *dnn = open_described("{\"deviceName\": \"half a card\"}", &error);
    CHECK(!dnn);
    if (test_skip[0])
        return;
    CHECK_INT(error.code, ERROR_FAILED);
    CHECK_CONTAINS(error.text, "cuDNN does not serve the card");
    dnn_close(dnn);
}

// The libraries never free some of what they take, and one of them is gone by the time that is
// seen: under AddressSanitizer, leaks say nothing here.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

int main(void) {
    // Whatever driver is installed: cuDNN is given this one.
    if (!dlopen(MOCK_DRIVER, RTLD_NOW | RTLD_LOCAL)) {
        printf("not ok mock_driver: %s\n", dlerror());
        return 1;
    }
    RUN_TEST(every_graph_has_a_plan_for_a100);
    RUN_TEST(every_graph_has_a_plan_for_h100);
    RUN_TEST(every_graph_has_a_plan_for_b200);
    RUN_TEST(every_graph_has_a_plan_for_rtx5090);
    RUN_TEST(a_graph_is_planned_once);
    RUN_TEST(a_plan_that_was_refused_stays_so);
    RUN_TEST(an_engine_that_is_passed_over_does_not_come_back);
    RUN_TEST(a_graph_without_sense_is_refused_by_words);
    RUN_TEST(a_card_without_properties_is_refused);
    return test_end();
}
