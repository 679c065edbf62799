// ui/cells/zones.h: how the ranges of formats look: the parts of a range are told by characters,
// and by colours too. Pure.
#pragma once

#include "compare/what_if.h"
#include "ui/cells/frame.h"

uint32_t zone_glyph(WhatIfZone zone);
Ink zone_ink(WhatIfZone zone, Ink own); // `own`: that of the format
