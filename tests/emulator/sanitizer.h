// tests/emulator/sanitizer.h: what sanitizers are told of memory and stacks; nothing without them.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define EMULATOR_ASAN 1
#else
#define EMULATOR_ASAN                          0
#define ASAN_POISON_MEMORY_REGION(at, bytes)   ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif
