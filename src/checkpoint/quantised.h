// checkpoint/quantised.h: weights as a model that only computes needs them: in a format of fewer
// bits, with the scales that go with it.
//
// Weights of two dimensions or more are in that format, all else (biases, norms, running
// statistics) in fp32. docs/history.md says how they lie in a file. Any thread.
#pragma once

#include <stdio.h>

#include "data/safetensors.h"
#include "number/format.h"

// Whether weights can be written in it: formats of their own, and scaled ones.
bool quantised_is_written(Format format);
// Bytes of a tensor of that shape, scales included.
int64_t quantised_bytes(Format format, int ndim, const int64_t *shape);

typedef struct QuantisedWish {
    Format format;
    // That of the weight of a layer ("blocks.1.up"), `format` as it is given; NULL: that of all.
    Format (*of_layer)(void *context, const char *layer, Format format);
    void *context;
} QuantisedWish;

// Writes weights and buffers of a checkpoint, or of any such file, under their bare names. The
// caller has noted what else is to be said, and ends the writer's file.
bool quantised_write(SafeFile *from, const QuantisedWish *wish, SafeWriter *to,
                     Error *error) MUST_CHECK;
