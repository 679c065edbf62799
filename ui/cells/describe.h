// ui/cells/describe.h: what the terminal can do with colours, beyond what its description says.
//
// Descriptions know 256 colours of most terminals that have all of them; a terminal says so itself,
// by COLORTERM. ncurses can be given another description by the environment alone (TERMINFO may
// hold one, not only name a file): that of this terminal, where numbers from 256 on are 0xRRGGBB.
// Main thread, while ncurses is closed or being opened.
#pragma once

#include <stdbool.h>

#include "ui/cells/theme.h"

// Whether the terminal says that it shows any colour. An old `screen` hands on what the terminal
// around it says, and shows none.
bool describe_has_true_color(void);
// The theme for the background that COLORFGBG tells of; `otherwise` where it tells of none.
Theme describe_theme(Theme otherwise);
// For TERMINFO: the description that setupterm has read, with colours of 24 bits. NULL where it has
// fewer than 256 and the terminal claims no more, or there is no memory. The caller frees it.
char *describe_with_colors(void);
