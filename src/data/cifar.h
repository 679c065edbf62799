// data/cifar.h: CIFAR-10 (32x32 colour images in ten classes) from its binary version: a folder
// with data_batch_1.bin to data_batch_5.bin for training and test_batch.bin for tests. Any thread.
#pragma once

#include "data/dataset.h"

enum {
    CIFAR_CLASSES = 10,
    CIFAR_SIDE = 32,
    CIFAR_CHANNELS = 3,
    CIFAR_RECORD = 1 + CIFAR_CHANNELS * CIFAR_SIDE * CIFAR_SIDE, // label, then planes of pixels
};

// The images [32,32,3] of one of the two sets; NULL on failure.
Dataset *dataset_from_cifar10(const char *folder, bool train, Error *error) MUST_CHECK;
