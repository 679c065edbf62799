// cpu/onednn.h: convolutions of the library oneDNN, made once and kept.
//
// Making a primitive costs up to a millisecond, running one that is kept well under one
// microsecond; so each device keeps what it has made, under everything that it depends on. The
// library allocates nothing in a step: its scratch is part of the workspace. Used from the thread
// that drives the device.
#pragma once

#include "cpu/conv.h"

typedef struct OneDnn OneDnn;
typedef struct OneDnnConv OneDnnConv;

OneDnn *onednn_new(void); // NULL: no memory
void onednn_free(OneDnn *onednn);

// The convolution for a problem; NULL when the library has no fast way for it.
const OneDnnConv *onednn_conv(OneDnn *onednn, const ConvProblem *problem);
// Bytes of the weights, or their gradient, in the order that this one wants; 0: they are taken as
// they lie.
size_t onednn_conv_weight_bytes(const OneDnnConv *conv);
// Whether what one has in its order the other can take.
bool onednn_conv_same_order(const OneDnnConv *conv, const OneDnnConv *other);
// Weights to that order; their gradient from it.
bool onednn_conv_order_weights(const OneDnnConv *conv, void *ours, void *ordered, Error *error);
size_t onednn_conv_scratch_bytes(const OneDnnConv *conv);
// The arrays are dense and in the problem's formats, the weights in the order that is wanted; the
// bias fp32.
bool onednn_conv_run(const OneDnnConv *conv, const ConvArrays *arrays, void *scratch, Error *error);

// "oneDNN" and its version.
void onednn_name(char *name, size_t name_size, char *version, size_t version_size);
// Whether the library computes bf16 with instructions of its own on this processor.
bool onednn_has_bf16(void);
