#include "ui/cells/zones.h"

#include "ui/cells/glyphs.h"

uint32_t zone_glyph(WhatIfZone zone) {
    static const uint32_t glyphs[ZONES] = {[ZONE_FLUSHED] = GLYPH_DOT,
                                           [ZONE_SUBNORMAL] = GLYPH_HORIZONTAL,
                                           [ZONE_NORMAL] = GLYPH_BAR,
                                           [ZONE_OVERFLOWS] = GLYPH_CROSS};
    return glyphs[zone];
}

Ink zone_ink(WhatIfZone zone, Ink own) {
    return zone == ZONE_NORMAL ? own : zone == ZONE_SUBNORMAL ? INK_WARN : INK_BAD;
}
