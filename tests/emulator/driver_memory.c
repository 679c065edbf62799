// Memory of cards, pinned memory, and what is copied between.
#include <string.h>

#include "tests/emulator/calls.h"
#include "tests/emulator/driver.h"
#include "tests/emulator/graphs.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/sanitizer.h"
#include "tests/emulator/settings.h"
#include "tests/emulator/streams.h"

static void *at(CUdeviceptr address) {
    return (void *)(uintptr_t)address;
}

// ---- taking and giving --------------------------------------------------------------------------

CUresult emulated_cuMemAlloc(CUdeviceptr *address, size_t bytes) {
    EMULATED_CALL(cuMemAlloc, NEEDS_CARD);
    FORBIDDEN_IN_CAPTURE("cuMemAlloc", NULL);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    void *memory = emulator_memory_new(emulator_current_card()->index, bytes, false);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

// The real one waits for the card too.
CUresult emulated_cuMemFree(CUdeviceptr address) {
    EMULATED_CALL(cuMemFree, NEEDS_CARD);
    FORBIDDEN_IN_CAPTURE("cuMemFree", NULL);
    if (!address)
        return CUDA_SUCCESS;
    Card *card = emulator_current_card();
    const EmulatorMemory *memory = emulator_memory_of(at(address), 0);
    if (!memory || memory->pinned || memory->at != at(address) || memory->card != card->index)
        return emulator_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemFree of what is no block of memory");
    emulator_streams_finish(card);
    char why[200];
    if (card->failure == CUDA_SUCCESS && !emulator_memory_check_one(memory, why, sizeof why))
        emulator_break_card(card, CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel before cuMemFree: %s", why);
    emulator_memory_free(memory);
    return card->failure;
}

CUresult emulated_cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    EMULATED_CALL(cuMemHostAlloc, NEEDS_CARD);
    FORBIDDEN_IN_CAPTURE("cuMemHostAlloc", NULL);
    if (!bytes || flags & ~(unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED))
        return CUDA_ERROR_INVALID_VALUE;
    *memory = emulator_memory_new(emulator_current_card()->index, bytes, true);
    return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult emulated_cuMemFreeHost(void *address) {
    EMULATED_CALL(cuMemFreeHost, NEEDS_CARD);
    FORBIDDEN_IN_CAPTURE("cuMemFreeHost", NULL);
    const EmulatorMemory *memory = emulator_memory_of(address, 0);
    if (!memory || !memory->pinned || memory->at != address)
        return emulator_refuse(CUDA_ERROR_INVALID_VALUE,
                               "cuMemFreeHost of what is no pinned memory");
    if (emulator_streams_name(memory->at, memory->bytes)) {
        Card *card = emulator_current_card();
        emulator_break_card(card, CUDA_ERROR_LAUNCH_FAILED,
                            "pinned memory was freed while a copy of it was under way");
        return card->failure;
    }
    emulator_memory_free(memory);
    return CUDA_SUCCESS;
}

// ---- copies -------------------------------------------------------------------------------------

// Whether these bytes all lie in one block of the current card's.
static bool on_card(CUdeviceptr address, size_t bytes) {
    const EmulatorMemory *memory = emulator_memory_of(at(address), bytes);
    return memory && !memory->pinned && memory->card == emulator_current_card()->index;
}

static CUresult refuse_bytes(const char *function, CUdeviceptr address, size_t bytes) {
    return emulator_refuse(CUDA_ERROR_INVALID_VALUE, "%s: %zu bytes from %p on lie in no block",
                           function, bytes, at(address));
}

static bool is_pinned(const void *host, size_t bytes) {
    const EmulatorMemory *memory = emulator_memory_of(host, bytes);
    return memory && memory->pinned;
}

static CUresult refuse_host(const char *function, const void *host) {
    return emulator_refuse(CUDA_ERROR_INVALID_VALUE, "%s: %p is memory of the device, not the host",
                           function, host);
}

// From pageable memory the bytes are taken at the call. Pinned memory is read when the copy happens
// and must be left alone till then.
CUresult emulated_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes,
                                    CUstream stream) {
    EMULATED_CALL(cuMemcpyHtoDAsync, NEEDS_CARD);
    if (!bytes)
        return CUDA_SUCCESS;
    if (!on_card(to, bytes))
        return refuse_bytes("cuMemcpyHtoDAsync", to, bytes);
    if (emulator_memory_is_device(from))
        return refuse_host("cuMemcpyHtoDAsync", from);
    bool pinned = is_pinned(from, bytes);
    if (!pinned && stream && stream->captures)
        return emulator_graphs_forbid("cuMemcpyHtoDAsync from pageable memory", stream);
    Operation *copy = emulator_operation_new(OPERATION_COPY_IN, pinned ? 0 : bytes);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->to = at(to);
    copy->bytes = bytes;
    if (pinned) {
        copy->from = from;
        copy->checksum = emulator_checksum(from, bytes);
    } else {
        copy->from = memcpy(copy->copy, from, bytes);
    }
    return emulator_stream_add(emulator_current_card(), stream, copy);
}

// Into pageable memory it waits. Whoever looks into pinned memory before the copy happened finds
// NaN.
CUresult emulated_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    EMULATED_CALL(cuMemcpyDtoHAsync, NEEDS_CARD);
    if (!bytes)
        return CUDA_SUCCESS;
    if (!on_card(from, bytes))
        return refuse_bytes("cuMemcpyDtoHAsync", from, bytes);
    if (emulator_memory_is_device(to))
        return refuse_host("cuMemcpyDtoHAsync", to);
    Card *card = emulator_current_card();
    bool pinned = is_pinned(to, bytes);
    if (!pinned && stream && stream->captures)
        return emulator_graphs_forbid("cuMemcpyDtoHAsync into pageable memory", stream);
    Operation *copy = emulator_operation_new(OPERATION_COPY_OUT, 0);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->to = to;
    copy->from = at(from);
    copy->bytes = bytes;
    if (pinned && !(stream && stream->captures))
        memset(to, EMULATOR_POISON, bytes);
    CUresult added = emulator_stream_add(card, stream, copy);
    if (added != CUDA_SUCCESS || pinned)
        return added;
    return emulator_stream_wait(card, stream);
}

CUresult emulated_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                    CUstream stream) {
    EMULATED_CALL(cuMemcpyDtoDAsync, NEEDS_CARD);
    if (!bytes)
        return CUDA_SUCCESS;
    if (!on_card(to, bytes) || !on_card(from, bytes))
        return refuse_bytes("cuMemcpyDtoDAsync", on_card(to, bytes) ? from : to, bytes);
    Operation *copy = emulator_operation_new(OPERATION_COPY, 0);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->to = at(to);
    copy->from = at(from);
    copy->bytes = bytes;
    return emulator_stream_add(emulator_current_card(), stream, copy);
}

CUresult emulated_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                                  CUstream stream) {
    EMULATED_CALL(cuMemsetD8Async, NEEDS_CARD);
    if (!bytes)
        return CUDA_SUCCESS;
    if (!on_card(to, bytes))
        return refuse_bytes("cuMemsetD8Async", to, bytes);
    Operation *fill = emulator_operation_new(OPERATION_FILL, 0);
    if (!fill)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fill->to = at(to);
    fill->bytes = bytes;
    fill->value = value;
    return emulator_stream_add(emulator_current_card(), stream, fill);
}
