// data/order.h: in which order an epoch goes through the samples. Everything is a function of
// (seed, epoch), the same on every machine. Any thread.
#pragma once

#include <stdint.h>

// A permutation of 0 .. count-1 into `order`.
void order_shuffle(uint32_t *order, uint32_t count, uint64_t seed, uint64_t epoch);

// The number at `position` in an endless row of numbers below `range`, each as likely.
uint32_t order_draw(uint32_t range, uint64_t position, uint64_t seed, uint64_t epoch);
