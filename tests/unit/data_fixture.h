// tests/unit/data_fixture.h: what tests of data share: one error, and calls that must succeed.
#pragma once

#include "base/error.h"
#include "tests/test.h"

static Error error;

#define CHECK_DONE(call)                                   \
    do {                                                   \
        error.text[0] = 0;                                 \
        bool done_ = (call);                               \
        CHECK_MESSAGE(done_, "%s: %s", #call, error.text); \
    } while (0)
