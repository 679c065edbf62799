// tests/emulator/dnn_compute.h: what the emulated cuDNN computes, in double, on the host.
//
// Each reads and writes operands as the graph describes them, and nothing else; a result is made
// wrong on the way where the setting `dnn` says so. False: no memory.
#pragma once

#include "gpu/dnn/plans.h"

extern bool emulated_dnn_hides; // results that are no number come out as 0

double emulated_dnn_load(int64_t format, const void *from, int64_t at);
// A result.
void emulated_dnn_store(int64_t format, void *to, int64_t at, double value);

bool emulated_dnn_convolve(const DnnGraph *graph, void *const operand[DNN_OPERANDS]);
bool emulated_dnn_attend(const DnnGraph *graph, void *const operand[DNN_OPERANDS]);
bool emulated_dnn_attend_backward(const DnnGraph *graph, void *const operand[DNN_OPERANDS]);
