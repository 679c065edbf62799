// checkpoint/weights.h: what others wrote into a safetensors file, as tensors of a device; and of a
// checkpoint which entries are the model's, and whether they are finite.
//
// The thread that drives the device.
#pragma once

#include "data/safetensors.h"
#include "tensor/tensor.h"

// An entry of an open file: in its own format, but fp64 as fp32. A new reference; NULL where the
// file cannot be read, or where no tensor here is like it.
Tensor *weights_read(Device *device, SafeFile *file, const SafeEntry *entry,
                     Error *error) MUST_CHECK;

// The model's own name of an entry that is a weight ("weight/NAME") or a running statistic
// ("buffer/NAME"); NULL: it is neither.
const char *weights_model_name(const char *entry, bool *is_weight);

// What takes a weight of a checkpoint, by the model's name, where no product does: "embedding", as
// the notes say; NULL: a product does, or a vector it is, or they do not say. Whether they do: not
// in files of other programs, nor before anything was computed. The key of the note begins so.
#define WEIGHTS_NOTE_TAKERS "takers"
#define WEIGHTS_NOTE_TAKER  "taker/"
const char *weights_taker(const SafeHeader *header, const char *name);
bool weights_takers_are_known(const SafeHeader *header);

// The first weight or running statistic of a checkpoint that holds inf or nan, by the model's name
// of it; *name is NULL where there is none. It lies in the file's header.
bool weights_first_not_finite(SafeFile *file, const char **name, Error *error) MUST_CHECK;
