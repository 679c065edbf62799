// checkpoint/weights.h: what others wrote into a safetensors file, as tensors of a device.
//
// The thread that drives the device.
#pragma once

#include "data/safetensors.h"
#include "tensor/tensor.h"

// An entry of an open file: in its own format, but fp64 as fp32. A new reference; NULL where the
// file cannot be read, or where no tensor here is like it.
Tensor *weights_read(Device *device, SafeFile *file, const SafeEntry *entry,
                     Error *error) MUST_CHECK;
