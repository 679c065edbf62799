// data/cifar.h: CIFAR-10 and CIFAR-100 (32x32 colour images) from their binary versions: a folder
// with data_batch_1.bin to data_batch_5.bin for training and test_batch.bin for tests, or with
// train.bin and test.bin. Any thread.
#pragma once

#include "data/dataset.h"

typedef enum CifarSet {
    CIFAR_10,
    CIFAR_100,        // the 100 fine labels
    CIFAR_100_COARSE, // the 20 coarse ones
} CifarSet;

enum { CIFAR_SIDE = 32, CIFAR_CHANNELS = 3 };

// The images [32,32,3] of one of the two sets; NULL on failure.
Dataset *dataset_from_cifar(CifarSet which, const char *folder, bool train,
                            Error *error) MUST_CHECK;
