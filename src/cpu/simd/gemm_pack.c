// cpu/simd/gemm_pack.c: copies panels of A and B to fp32 in the order in which the kernel reads.
// Words of two numbers are packed by gemm_pack_pairs.c.
#include "cpu/simd/gemm_pack.h"

#include "cpu/simd/gemm_transpose.h"
#include "cpu/simd/vector.h"

// Panels that are filled side by side, so that each row of the source is read in one stretch.
enum { PANELS_AT_ONCE = 8, ROWS_AHEAD = 8, LINES_AHEAD = 2 };

// `lines` neighbours in memory. A vector that reaches beyond them reads what follows there, where
// `beyond` allows, and writes what is written later.
ALWAYS_INLINE void pack_row(GemmWord *to, const void *from, const Format format, int lines,
                            int width, bool beyond) {
    int i = 0;
    for (; i + LANES <= lines; i += LANES)
        vector_store(to + i, vector_load_as(from, format, i));
    if (i < lines && beyond) {
        vector_store(to + i, vector_load_as(from, format, i));
        return;
    }
    const int room = width - i < LANES ? width - i : LANES;
    if (i < lines)
        vector_store_some(to, FORMAT_FP32, i, room, vector_load_some(from, format, i, lines - i));
}

// Lines lie side by side in memory: each step copies a row, a piece to each panel. None reads
// further than the lines of the last step, as nothing need follow them.
ALWAYS_INLINE void pack_rows(GemmWord *to, int width, const GemmSource *source, const Format format,
                             int64_t lines, int64_t depth) {
    const int64_t sweep = (int64_t)PANELS_AT_ONCE * width, panel = width * depth;
    const int64_t piece = width * gemm_bytes(format);
    const int64_t step = source->step_stride * gemm_bytes(format);
    // What a vector writes beyond a row of a panel is the next row, or nobody's.
    const bool fits = 2 * width >= LANES || lines <= width;
    for (int64_t first = 0; first < lines; first += sweep) {
        const int64_t here = lines - first < sweep ? lines - first : sweep;
        const char *row = gemm_source_at(source, first, 0);
        GemmWord *out = to + first * depth;
        for (int64_t k = 0; k < depth; k++, row += step, out += width) {
            const bool follows = (depth - 1 - k) * source->step_stride >= LANES - 1 && fits;
            // Rows are too short and too far apart for the processor to see where this leads.
            for (int64_t i = 0; i < here * gemm_bytes(format); i += 64)
                __builtin_prefetch(row + ROWS_AHEAD * step + i);
            const char *from = row;
            GemmWord *at = out;
            int64_t left = here;
            // What most are: panels of B, and tiles of A.
            if (width == 2 * LANES)
                for (; left >= width; left -= width, from += piece, at += panel) {
                    vector_store(at, vector_load_as(from, format, 0));
                    vector_store(at + LANES, vector_load_as(from, format, LANES));
                }
            else if (width <= LANES && follows)
                for (; left >= width; left -= width, from += piece, at += panel)
                    vector_store(at, vector_load_as(from, format, 0));
            for (; left > 0; left -= width, from += piece, at += panel)
                pack_row(at, from, format, (int)(left < width ? left : width), width, follows);
        }
    }
}

// One step of LANES lines, or two where each number is a pair of bf16.
ALWAYS_INLINE void store_step(GemmWord *to, int width, Vector value, const bool pairs) {
    if (!pairs) {
        vector_store(to, value);
        return;
    }
    vector_store(to, (Vector)((Bits)value << 16));
    vector_store(to + width, (Vector)((Bits)value & 0xFFFF0000));
}

// LANES numbers of LANES rows, transposed. Steps are written in order, as pack_columns explains.
ALWAYS_INLINE void transpose_block(GemmWord *to, int width, const GemmWord *const rows[LANES],
                                   int64_t at, const bool pairs) {
    const int step = pairs ? 2 * width : width;
    UNROLL for (int k = 0; k < LANES; k += 4) {
        Vector steps[4];
        transpose_quads(steps, rows, at + k);
        UNROLL for (int i = 0; i < 4; i++, to += step) store_step(to, width, steps[i], pairs);
    }
}

// How far ahead of its transposition a line is called for.
enum { AHEAD = 128 };

// The depth is contiguous in memory: blocks of LANES lines are transposed. Lines that are missing
// at the edge repeat the last one: what their copies overwrite in the next step is written later,
// by that step or, as the lines go downwards, by the lines before.
ALWAYS_INLINE void pack_columns(GemmWord *to, int width, const GemmSource *source,
                                const Format format, const bool pairs, int lines, int64_t depth) {
    const bool converts = format != FORMAT_FP32 && !pairs;
    for (int first = (lines - 1) / LANES * LANES; first >= 0; first -= LANES) {
        int64_t offset[LANES];
        const GemmWord *rows[LANES];
        float converted[LANES][LANES];
        for (int i = 0; i < LANES; i++) {
            int line = first + i < lines ? first + i : lines - 1;
            offset[i] = line * source->line_stride;
            rows[i] = converts ? converted[i] : (const GemmWord *)gemm_source_at(source, line, 0);
        }
        // To the lines whose turn is next: those before, or the last of the next panel.
        const int64_t last = width + (width - 1) / LANES * LANES;
        const int64_t to_next = (first > 0 ? -LANES : last) * source->line_stride;
        const int64_t distance = AHEAD < depth ? AHEAD : depth;
        int64_t k = 0;
        const int64_t stretch = pairs ? 2 * LANES : LANES;
        for (; k + stretch <= depth; k += stretch) {
            // So many lines are more streams than the processor follows by itself.
            int64_t ahead = k + distance < depth ? k + distance : k + distance - depth + to_next;
            for (int i = 0; i < LANES; i++)
                __builtin_prefetch(gemm_source_at(source, 0, offset[i] + ahead));
            if (converts)
                UNROLL for (int i = 0; i < LANES; i++)
                    vector_store(converted[i], vector_load_as(source->data, format, offset[i] + k));
            int64_t at = converts ? 0 : pairs ? k / 2 : k;
            transpose_block(to + k * width + first, width, rows, at, pairs);
        }
        for (; k < depth; k++)
            for (int i = 0; i < LANES && first + i < width; i++)
                to[k * width + first + i] = number_load(source->data, format, offset[i] + k);
    }
}

ALWAYS_INLINE void pack_any(GemmWord *to, int width, const GemmSource *source, const Format format,
                            int lines, int64_t depth) {
    for (int64_t k = 0; k < depth; k++, to += width)
        for (int i = 0; i < width; i++)
            to[i] = i < lines ? number_load(gemm_source_at(source, i, k), format, 0) : 0;
}

// Whether two neighbours of bf16 can be moved as one number of 32 bits, which halves the work.
ALWAYS_INLINE bool are_pairs(const GemmSource *source) {
    return source->format == FORMAT_BF16 && source->line_stride % 2 == 0 &&
           (uintptr_t)source->data % sizeof(float) == 0;
}

ALWAYS_INLINE void pack_format(GemmWord *to, int width, const GemmSource *source,
                               const Format format, int64_t lines, int64_t depth) {
    if (source->line_stride == 1) {
        pack_rows(to, width, source, format, lines, depth);
        return;
    }
    for (int64_t first = 0; first < lines; first += width) {
        GemmSource panel = *source;
        panel.data = gemm_source_at(source, first, 0);
        int left = (int)(lines - first < width ? lines - first : width);
        if (source->step_stride == 1 && are_pairs(&panel))
            pack_columns(to + first * depth, width, &panel, format, true, left, depth);
        else if (source->step_stride == 1)
            pack_columns(to + first * depth, width, &panel, format, false, left, depth);
        else
            pack_any(to + first * depth, width, &panel, format, left, depth);
    }
}

void ISA_NAME(gemm_pack)(GemmWord *to, int width, const GemmSource *source, int64_t lines,
                         int64_t depth) {
    if (source->format == FORMAT_FP32)
        pack_format(to, width, source, FORMAT_FP32, lines, depth);
    else if (source->format == FORMAT_BF16)
        pack_format(to, width, source, FORMAT_BF16, lines, depth);
    else
        pack_format(to, width, source, FORMAT_FP16, lines, depth);
}

ALWAYS_INLINE void copy_format(GemmWord *to, int64_t stride, const GemmSource *source,
                               const Format format, int64_t lines, int64_t depth) {
    for (int64_t line = 0; line < lines; line++, to += stride) {
        const void *from = gemm_source_at(source, line, 0);
        const char *ahead = gemm_source_at(source, line + LINES_AHEAD, 0);
        int64_t k = 0;
        for (; k + LANES <= depth; k += LANES) {
            __builtin_prefetch(ahead + k * gemm_bytes(format));
            vector_store(to + k, vector_load_as(from, format, k));
        }
        for (; k < depth; k++)
            to[k] = number_load(from, format, k);
    }
}

void ISA_NAME(gemm_copy)(GemmWord *to, int64_t stride, const GemmSource *source, int64_t lines,
                         int64_t depth) {
    if (source->format == FORMAT_FP32)
        copy_format(to, stride, source, FORMAT_FP32, lines, depth);
    else if (source->format == FORMAT_BF16)
        copy_format(to, stride, source, FORMAT_BF16, lines, depth);
    else
        copy_format(to, stride, source, FORMAT_FP16, lines, depth);
}
