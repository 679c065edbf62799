// tests/unit/contrast.h: how well a colour is read on another, as WCAG 2 has it.
#pragma once

#include <math.h>
#include <stdint.h>

static inline double light_of(uint32_t rgb) {
    static const double shares[] = {0.0722, 0.7152, 0.2126};
    double light = 0;
    for (int i = 0; i < 3; i++) {
        double part = (rgb >> 8 * i & 0xFF) / 255.0;
        light += shares[i] * (part <= 0.03928 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4));
    }
    return light;
}

static inline double contrast(uint32_t a, uint32_t b) {
    double x = light_of(a), y = light_of(b);
    return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

// xterm's palette from 16 on: a cube of six levels, then greys.
static inline uint32_t rgb_of_index(int index) {
    static const uint32_t levels[] = {0, 95, 135, 175, 215, 255};
    if (index >= 232)
        return (uint32_t)(8 + 10 * (index - 232)) * 0x010101u;
    index -= 16;
    return levels[index / 36] << 16 | levels[index / 6 % 6] << 8 | levels[index % 6];
}
