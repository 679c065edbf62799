// gpu/absent.h: operations that have no kernel for the card yet. Who writes one deletes its line
// here.
#pragma once
