// checkpoint/quantised.h: weights as a model that only computes needs them: in a format of fewer
// bits, with the scales that go with it.
//
// Weights of two dimensions or more that products take are in that format, all else (biases, norms,
// embeddings, running statistics) in fp32, as it is where a model is evaluated in that format.
// docs/history.md says how they lie in a file. Any thread.
#pragma once

#include <stdio.h>

#include "data/safetensors.h"
#include "precision/policy.h"

// Whether weights can be written in it: formats of their own, and scaled ones.
bool quantised_is_written(Format format);
// Bytes of a tensor of that shape, scales included.
int64_t quantised_bytes(Format format, int ndim, const int64_t *shape);

// What a weight or a buffer, by the model's name of it, is written in, where layers are in what the
// policy has for them; if it has two dimensions or more. What no product takes, as the notes of the
// file that it comes from say, is in fp32 where its layer was not set.
Format quantised_format(const Policy *policy, const SafeHeader *from, const char *name,
                        bool is_weight);

// Writes weights and buffers of a checkpoint, or of any such file, under their bare names. The
// caller has noted what else is to be said, and ends the writer's file.
bool quantised_write(SafeFile *from, const Policy *policy, SafeWriter *to, Error *error) MUST_CHECK;
