// data/folder.h: pictures in folders: each folder below the given one is a class, each PNG or PNM
// file in it a sample. Any thread.
#pragma once

#include "data/dataset.h"

// Folders are numbered, and files come, in the order of their names' bytes; names that begin with a
// dot and files of other kinds (by their ending) are passed over. All pictures have one size.
// `channels` is 1 or 3, 0: as the first has. The dataset knows the folders' names.
Dataset *dataset_from_folder(const char *folder, int channels, Error *error) MUST_CHECK;
