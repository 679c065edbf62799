// gpu/dnn/library.h: cuDNN's functions as one table, opened at run time.
//
// cudnn.h gives types and names only: nothing is linked. The files of this folder are built where
// that header is installed; elsewhere gpu/dnn_absent.c stands in their place, and in tests over an
// emulated card tests/emulator/dnn_plans.c. Whoever needs another function adds its name here. From
// the thread that drives the device.
#pragma once

#include <cudnn.h>

#include "base/error.h"

#define DNN_FUNCTIONS(F)             \
    F(cudnnGetVersion)               \
    F(cudnnGetErrorString)           \
    F(cudnnGetLastErrorString)       \
    F(cudnnCreate)                   \
    F(cudnnDestroy)                  \
    F(cudnnSetStream)                \
    F(cudnnBackendCreateDescriptor)  \
    F(cudnnBackendDestroyDescriptor) \
    F(cudnnBackendSetAttribute)      \
    F(cudnnBackendGetAttribute)      \
    F(cudnnBackendFinalize)          \
    F(cudnnBackendExecute)

typedef struct DnnLibrary {
#define MEMBER(name) __typeof__(&name) name;
    DNN_FUNCTIONS(MEMBER)
#undef MEMBER
} DnnLibrary;

// The table, filled once; NULL where the library is missing or lacks a function, with what to do.
const DnnLibrary *dnn_library(Error *error) MUST_CHECK;
