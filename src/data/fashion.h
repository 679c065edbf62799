// data/fashion.h: Fashion-MNIST (28x28 grey images of clothes in ten classes), as Debian's package
// dataset-fashion-mnist installs it. MPBENCH_FASHION_MNIST in the environment names another folder
// with the same four files, compressed or not. Any thread that may read the environment.
#pragma once

#include "data/dataset.h"

// The 60,000 images for training or the 10,000 for tests, [28,28,1] each; NULL on failure.
Dataset *dataset_from_fashion(bool train, Error *error) MUST_CHECK;
