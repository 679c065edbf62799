// cpu/row_buffers.h: rows of dense views as fp32: where they lie, or in buffers of the thread.
//
// The memory is the caller's, part of the workspace; behind the buffers of a thread it may keep
// more of its own. Private to this folder; a thread touches only its own buffers.
#pragma once

#include "cpu/cpu.h"

typedef struct RowBuffers {
    const Device *device;
    int64_t width, padded; // of a row, and with what fills the last vector up
    char *memory;
    size_t per_thread;
} RowBuffers;

static inline float *row_buffer(const RowBuffers *rows, int thread, int which) {
    return (float *)(void *)(rows->memory + (size_t)thread * rows->per_thread) +
           which * rows->padded;
}

static inline const float *row_in(const RowBuffers *rows, const View *view, int64_t row, int thread,
                                  int which) {
    const void *source = cpu_at(view, row * rows->width);
    if (view->format == FORMAT_FP32)
        return source;
    float *buffer = row_buffer(rows, thread, which);
    cpu_load(rows->device, view->format, source, buffer, rows->width);
    return buffer;
}

// Where a row of the output is made; row_end then has it where it belongs.
static inline float *row_out(const RowBuffers *rows, const View *view, int64_t row, int thread,
                             int which) {
    return view->format == FORMAT_FP32 ? cpu_at_mutable(view, row * rows->width)
                                       : row_buffer(rows, thread, which);
}

static inline void row_end(const RowBuffers *rows, const View *view, int64_t row,
                           const float *values) {
    if (view->format != FORMAT_FP32)
        cpu_store(rows->device, view->format, values, cpu_at_mutable(view, row * rows->width),
                  rows->width);
}
