// How many times as fast large products are in a format as in fp32, by the figures that the cards'
// maker publishes.
#include "gpu/about.h"
#include "gpu/gpu.h"

// Of a capability one card stands for the others, whose sheets may give more or less: its tensor
// cores' rate with sums in fp32, without sparsity, beside its rate in plain fp32. Nothing here was
// measured; docs/gpu.md has the figures, and which format pays for a given model `matrix` tells.
static const struct {
    int capability; // and of those that follow, up to the next row
    double tf32, halves;
} published[] = {
    {80, 8, 16},     // A100: 19.5 TFLOP/s of fp32, 156 of TF32, 312 of 16 bits
    {86, 1, 2},      // GeForce RTX 3090: 35.6, 35.6, 71
    {89, 1, 2},      // GeForce RTX 4090: 82.6, 82.6, 165
    {90, 7.4, 14.8}, // H100 SXM: 67, 495, 989
    {100, 14, 28},   // B200: 80, 1125, 2250
    {110, 1, 1},     // Jetson Thor: figures that compare so are not known
    {120, 1, 2},     // GeForce RTX 5090: 104.8, 104.8, 209.5
};

double gpu_gain(const Device *device, Format format) {
    const int capability = gpu_of(device)->capability;
    double tf32 = 1, halves = 1;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        if (capability >= published[i].capability) {
            tf32 = published[i].tf32;
            halves = published[i].halves;
        }
    if (format == FORMAT_TF32)
        return tf32;
    return format == FORMAT_BF16 || format == FORMAT_FP16 ? halves : 1;
}
