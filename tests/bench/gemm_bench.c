// tests/bench/gemm_bench.c: the matrix product next to oneDNN's, in one run: GFLOP/s.
//
//     make build/libmpbench.a
//     gcc -O2 -Isrc -I. -fopenmp tests/bench/gemm_bench.c build/libmpbench.a -ldnnl -lm
//         -o build/gemm_bench
//     build/gemm_bench [threads [part of a shape's name]]
//
// "bf16" and "fp16" are multiplied on tiles where the processor has them, else by conversion to
// fp32. "pairs" and "elements" go without tiles: bf16 by the instruction for pairs, and bf16 that
// is worth elements of e2m1 in blocks of 32, as mxfp4 multiplies it. Last,
// on one thread: what part of the fp32 product's time all of B takes to pack, which is a layer's
// weights in all rows but those of "weights".
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cpu/gemm.h"
#include "cpu/gemm_kernels.h"

typedef struct Shape {
    const char *what;
    int64_t m, n, k;
    char a, b; // 'N': rows contiguous; 'T': columns
} Shape;

static const Shape shapes[] = {
    {"a forward 1", 32, 64, 128, 'N', 'T'},
    {"a forward 2", 32, 10, 64, 'N', 'T'},
    {"a data 2", 32, 64, 10, 'N', 'N'},
    {"a weights 1", 64, 128, 32, 'T', 'N'},
    {"a weights 2", 10, 64, 32, 'T', 'N'},
    {"a NN", 32, 64, 128, 'N', 'N'},
    {"a TN", 32, 64, 128, 'T', 'N'},
    {"b forward 1", 256, 1024, 784, 'N', 'T'},
    {"b forward 2", 256, 1024, 1024, 'N', 'T'},
    {"b data 2", 256, 1024, 1024, 'N', 'N'},
    {"b weights 1", 1024, 784, 256, 'T', 'N'},
    {"b weights 2", 1024, 1024, 256, 'T', 'N'},
    {"b head", 256, 10, 1024, 'N', 'T'},
    {"e qkv", 2048, 1152, 384, 'N', 'T'},
    {"e out", 2048, 384, 384, 'N', 'T'},
    {"e up", 2048, 1536, 384, 'N', 'T'},
    {"e down", 2048, 384, 1536, 'N', 'T'},
    {"e data of qkv", 2048, 384, 1152, 'N', 'N'},
    {"e data of up", 2048, 384, 1536, 'N', 'N'},
    {"e data of down", 2048, 1536, 384, 'N', 'N'},
    {"e weights of qkv", 1152, 384, 2048, 'T', 'N'},
    {"e weights of out", 384, 384, 2048, 'T', 'N'},
    {"e weights of up", 1536, 384, 2048, 'T', 'N'},
    {"e weights of down", 384, 1536, 2048, 'T', 'N'},
};

enum { SAMPLES = 11 };

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct Job {
    void (*run)(void *context); // NULL: this processor has none
    void *context;
    double median, best; // seconds
} Job;

enum { OURS = 5, RATES = 7, PACKING = RATES, JOBS }; // the first RATES multiply

// Takes the samples of all jobs in turn, so that a busy moment of the machine hits all alike.
static void measure(Job jobs[JOBS]) {
    double samples[JOBS][SAMPLES];
    int repeats[JOBS];
    for (int j = 0; j < JOBS; j++) {
        if (!jobs[j].run)
            continue;
        jobs[j].run(jobs[j].context);
        double start = clock_seconds();
        jobs[j].run(jobs[j].context);
        repeats[j] = 1 + (int)(1e-3 / (clock_seconds() - start + 1e-8));
    }
    for (int i = 0; i < SAMPLES; i++)
        for (int j = 0; j < JOBS; j++) {
            if (!jobs[j].run)
                continue;
            double start = clock_seconds();
            for (int k = 0; k < repeats[j]; k++)
                jobs[j].run(jobs[j].context);
            samples[j][i] = (clock_seconds() - start) / repeats[j];
        }
    for (int j = 0; j < JOBS; j++) {
        if (!jobs[j].run)
            continue;
        qsort(samples[j], SAMPLES, sizeof(double), by_size);
        jobs[j].median = samples[j][SAMPLES / 2];
        jobs[j].best = samples[j][0];
    }
}

typedef struct OurJob {
    GemmWays ways;
    Gemm gemm;
    void *workspace;
} OurJob;

static void run_ours(void *context) {
    OurJob *job = context;
    gemm_run_by(&job->ways, &job->gemm, job->workspace);
}

// All of B, in stretches of the depth as long as a product's. One so small that it is read where it
// lies is packed here, too.
static void run_packing(void *context) {
    const OurJob *job = context;
    const Gemm *gemm = &job->gemm;
    const GemmKernels *kernels = gemm_kernels_for(gemm->a.format, gemm->b.format, false);
    const float *b = gemm->b.data;
    int64_t stretch =
        gemm_divide_up(gemm->depth, gemm_divide_up(gemm->depth, kernels->depth_block));
    for (int64_t step = 0; step < gemm->depth; step += stretch) {
        int64_t depth = gemm_smaller(gemm->depth - step, stretch);
        GemmSource source = {b + step * gemm->b.row_stride, FORMAT_FP32, gemm->b.column_stride,
                             gemm->b.row_stride};
        kernels->pack(job->workspace, kernels->panel_columns, &source, gemm->columns, depth);
    }
}

static OurJob new_packing(const OurJob *product) {
    enum { SLACK = 64 }; // words; a panel and what may be overwritten behind it
    OurJob job = *product;
    size_t words = (size_t)(job.gemm.columns + SLACK) * (size_t)job.gemm.depth + SLACK;
    job.workspace = malloc(words * sizeof(GemmWord));
    return job;
}

typedef struct MatmulJob {
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_exec_arg_t arguments[3];
} MatmulJob;

static void run_matmul(void *context) {
    MatmulJob *job = context;
    dnnl_primitive_execute(job->primitive, job->stream, 3, job->arguments);
    dnnl_stream_wait(job->stream);
}

static MatmulJob new_matmul(const Shape *s, dnnl_data_type_t type, dnnl_engine_t engine,
                            dnnl_stream_t stream, void *a, void *b, void *c) {
    MatmulJob job = {.stream = stream};
    dnnl_dims_t dims[3] = {{s->m, s->k}, {s->k, s->n}, {s->m, s->n}};
    dnnl_format_tag_t tags[3] = {s->a == 'N' ? dnnl_ab : dnnl_ba, s->b == 'N' ? dnnl_ab : dnnl_ba,
                                 dnnl_ab};
    int names[3] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    void *data[3] = {a, b, c};
    dnnl_memory_desc_t descriptions[3];
    for (int i = 0; i < 3; i++) {
        dnnl_memory_desc_init_by_tag(&descriptions[i], 2, dims[i], type, tags[i]);
        job.arguments[i].arg = names[i];
        dnnl_memory_create(&job.arguments[i].memory, &descriptions[i], engine, data[i]);
    }
    dnnl_matmul_desc_t operation;
    dnnl_primitive_desc_t primitive;
    dnnl_matmul_desc_init(&operation, &descriptions[0], &descriptions[1], NULL, &descriptions[2]);
    if (dnnl_primitive_desc_create(&primitive, &operation, NULL, engine, NULL) != dnnl_success)
        return job; // the library has none in this format for this processor
    dnnl_primitive_create(&job.primitive, primitive);
    dnnl_primitive_desc_destroy(primitive);
    return job;
}

static OurJob new_ours(const Shape *s, Format format, bool pairs, int block, int threads,
                       void *const data[3]) {
    const void *a = data[0], *b = data[1];
    void *c = data[2];
    const bool on_vectors = pairs || block > 0;
    OurJob job = {.ways = on_vectors ? gemm_ways_at(isa_level()) : gemm_ways_here(),
                  .gemm = {.rows = s->m,
                           .columns = s->n,
                           .depth = s->k,
                           .batch = {1, 1},
                           .a = {.data = a, .format = format},
                           .b = {.data = b, .format = format},
                           .c = {.data = c, .format = format, .row_stride = s->n},
                           .alpha = 1,
                           .blocks = {block, {FORMAT_E2M1, FORMAT_E2M1}, FORMAT_E8M0},
                           .pairs = pairs,
                           .threads = threads}};
    job.gemm.a.row_stride = s->a == 'N' ? s->k : 1;
    job.gemm.a.column_stride = s->a == 'N' ? 1 : s->m;
    job.gemm.b.row_stride = s->b == 'N' ? s->n : 1;
    job.gemm.b.column_stride = s->b == 'N' ? 1 : s->k;
    job.workspace = malloc(gemm_workspace_size_by(&job.ways, &job.gemm) + 1);
    return job;
}

// Where lines of the cache begin, as tensors do.
static void *new_operand(int64_t count, size_t each) {
    enum { LINE = 64 };
    return aligned_alloc(LINE, ((size_t)count * each + LINE - 1) / LINE * LINE);
}

static void print_rate(const Job *job, double rate) {
    if (job->run)
        printf(" %11.1f", rate);
    else
        printf(" %11s", "-");
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    omp_set_num_threads(threads);
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_engine_create(&engine, dnnl_cpu, 0);
    dnnl_stream_create(&stream, engine, dnnl_stream_in_order);
    static const char *const names[RATES] = {"fp32",     "bf16",        "pairs",      "fp16",
                                             "elements", "oneDNN fp32", "oneDNN bf16"};
    static const uint16_t elements[] = {0, 0x3F00, 0x3F80, 0x4000, 0x4040, 0x4080, 0xC0C0};
    printf("%d thread(s), GFLOP/s: median | best\n%32s", threads, "");
    for (int half = 0; half < 2; half++) {
        for (int j = 0; j < RATES; j++)
            printf(" %11s", names[j]);
        if (half == 0)
            printf("  |");
    }
    printf("%s\n", threads == 1 ? "  | B packed, % of fp32" : "");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const Shape *s = &shapes[i];
        if (argc > 2 && !strstr(s->what, argv[2]))
            continue;
        void *data[3], *half[3], *few[3];
        int64_t counts[3] = {s->m * s->k, s->k * s->n, s->m * s->n};
        for (int j = 0; j < 3; j++) {
            float *numbers = data[j] = new_operand(counts[j], sizeof(float));
            uint16_t *halves = half[j] = new_operand(counts[j], sizeof(uint16_t));
            uint16_t *worth = few[j] = new_operand(counts[j], sizeof(uint16_t));
            for (int64_t e = 0; e < counts[j]; e++) {
                numbers[e] = (float)(e * 7919 % 1000) / 1000;
                halves[e] = (uint16_t)(0x3800 + e * 7919 % 900); // ordinary in both formats
                worth[e] = elements[e * 7919 % 1000 % 7];
            }
        }
        double work = 2.0 * (double)s->m * (double)s->n * (double)s->k * 1e-9;
        OurJob ours[OURS] = {new_ours(s, FORMAT_FP32, false, 0, threads, data),
                             new_ours(s, FORMAT_BF16, false, 0, threads, half),
                             new_ours(s, FORMAT_BF16, true, 0, threads, half),
                             new_ours(s, FORMAT_FP16, false, 0, threads, half),
                             new_ours(s, FORMAT_BF16, true, 32, threads, few)};
        MatmulJob theirs[] = {new_matmul(s, dnnl_f32, engine, stream, data[0], data[1], data[2]),
                              new_matmul(s, dnnl_bf16, engine, stream, half[0], half[1], half[2])};
        OurJob packing = new_packing(&ours[0]);
        Job jobs[JOBS] = {[PACKING] = {threads == 1 ? run_packing : NULL, &packing, 0, 0}};
        for (int j = 0; j < RATES; j++)
            jobs[j] = j < OURS ? (Job){.run = run_ours, .context = &ours[j]}
                               : (Job){.run = theirs[j - OURS].primitive ? run_matmul : NULL,
                                       .context = &theirs[j - OURS]};
        measure(jobs);
        printf("%-16s %5ldx%4ldx%4ld %c%c", s->what, (long)s->m, (long)s->n, (long)s->k, s->a,
               s->b);
        for (int j = 0; j < RATES; j++)
            print_rate(&jobs[j], work / jobs[j].median);
        printf("  |");
        for (int j = 0; j < RATES; j++)
            print_rate(&jobs[j], work / jobs[j].best);
        if (jobs[PACKING].run)
            printf("  | %6.1f", 100 * jobs[PACKING].median / jobs[0].median);
        printf("\n");
        for (int j = 0; j < OURS; j++)
            free(ours[j].workspace);
        free(packing.workspace);
        for (int k = 0; k < 2; k++) {
            dnnl_primitive_destroy(theirs[k].primitive);
            for (int j = 0; j < 3; j++)
                dnnl_memory_destroy(theirs[k].arguments[j].memory);
        }
        for (int j = 0; j < 3; j++) {
            free(data[j]);
            free(half[j]);
            free(few[j]);
        }
    }
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
    return 0;
}
