#include "checkpoint/quantised.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/weights.h"
#include "number/convert.h"
#include "number/int8.h"
#include "number/scaled.h"

// ---- how they lie -------------------------------------------------------------------------------

bool quantised_is_written(Format format) {
    return format_trains(format) || format_is_scaled(format) || format == FORMAT_INT8;
}

// What the elements of a format are; itself where it scales none.
static Format element_of(Format format) {
    return format_is_scaled(format) ? format_table[format].element : format;
}

// Bits that an element takes: those of less than 8 lie packed, a row by itself.
static int64_t element_bits(Format format) {
    const FormatInfo *info = &format_table[element_of(format)];
    const int64_t own = info->sign_bits + info->exponent_bits + info->mantissa_bits;
    return own > 0 && own < 8 ? own : 8 * (int64_t)info->bytes;
}

// The tensors that one becomes.
typedef struct Layout {
    Format format;
    SafeType type, scale_type;
    int ndim, scale_ndim; // scale_ndim 0: there is none
    int64_t shape[SAFE_MAX_DIMS], scale_shape[SAFE_MAX_DIMS];
    bool has_tensor_scale; // that of all, where those of blocks fit into it
    int64_t rows, depth;   // along which numbers share a scale
    int64_t block, blocks; // a row; block 0: one for all
    size_t bytes, scale_bytes;
} Layout;

static Layout layout_of(Format format, int ndim, const int64_t *shape) {
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    if (ndim < 2 || count == 0)
        format = FORMAT_FP32;
    const FormatInfo *info = &format_table[format];
    const int64_t bits = element_bits(format);
    Layout layout = {.format = format,
                     .type = bits < 8 ? SAFE_U8 : safe_type_of(element_of(format)),
                     .scale_type = SAFE_F32,
                     .ndim = ndim,
                     .depth = ndim > 0 ? shape[ndim - 1] : 1};
    memcpy(layout.shape, shape, (size_t)ndim * sizeof *shape);
    layout.rows = layout.depth > 0 ? count / layout.depth : 0;
    switch (info->scaled) {
    case SCALED_NONE: break;
    case SCALED_ROW:
        layout.rows = shape[0];
        layout.depth = count / shape[0];
        layout.scale_ndim = 1;
        layout.scale_shape[0] = layout.rows;
        break;
    case SCALED_TENSOR:
        layout.scale_ndim = 1;
        layout.scale_shape[0] = 1;
        break;
    case SCALED_BLOCK:
        layout.block = info->block;
        layout.blocks = (layout.depth + info->block - 1) / info->block;
        layout.scale_type = info->scale == FORMAT_E8M0 ? SAFE_U8 : safe_type_of(info->scale);
        layout.has_tensor_scale = info->scale != FORMAT_E8M0;
        layout.scale_ndim = ndim;
        memcpy(layout.scale_shape, shape, (size_t)ndim * sizeof *shape);
        layout.scale_shape[ndim - 1] = layout.blocks;
        layout.shape[ndim - 1] = (layout.depth * bits + 7) / 8;
        break;
    }
    layout.bytes = safe_type_bytes(layout.type);
    for (int i = 0; i < ndim; i++)
        layout.bytes *= (size_t)layout.shape[i];
    layout.scale_bytes = layout.scale_ndim ? safe_type_bytes(layout.scale_type) : 0;
    for (int i = 0; i < layout.scale_ndim; i++)
        layout.scale_bytes *= (size_t)layout.scale_shape[i];
    return layout;
}

int64_t quantised_bytes(Format format, int ndim, const int64_t *shape) {
    const Layout layout = layout_of(format, ndim, shape);
    return (int64_t)(layout.bytes + layout.scale_bytes) +
           (layout.has_tensor_scale ? (int64_t)sizeof(float) : 0);
}

// ---- in which format ----------------------------------------------------------------------------

// Whether a weight lies below the layer.
static bool has_weights(const SafeHeader *from, const char *layer) {
    const size_t length = strlen(layer);
    bool is_weight;
    for (int i = 0; i < from->count; i++) {
        const char *name = weights_model_name(from->entries[i].name, &is_weight);
        if (name && strncmp(name, layer, length) == 0 && name[length] == '.')
            return true;
    }
    return false;
}

// That of what a model without a name holds itself, which bears no layer's name: it stands behind
// all that lie below the model.
static int lone_layer(const Policy *policy, const SafeHeader *from) {
    int layer = policy_layer_count(policy) - 1;
    while (layer > 0 && (policy_layer(policy, layer)->parent != 0 ||
                         has_weights(from, policy_layer(policy, layer)->name)))
        layer--;
    return layer;
}

// The innermost that has a name here: that of "blocks.1.up.weight" is blocks.1.up. 0: none has.
static int layer_of(const Policy *policy, const SafeHeader *from, const char *name) {
    int layer = 0;
    if (!strchr(name, '.'))
        return lone_layer(policy, from);
    for (size_t length = strlen(name); length > 0 && layer == 0; length--)
        if (name[length] == '.')
            layer = policy_layer_named(policy, name, length);
    return layer;
}

Format quantised_format(const Policy *policy, const SafeHeader *from, const char *name,
                        bool is_weight) {
    const int layer = is_weight ? layer_of(policy, from, name) : 0;
    const bool is_set = policy_layer(policy, layer)->in_force != LAYER_AUTO;
    if (!is_weight || (!is_set && weights_taker(from, name)))
        return FORMAT_FP32;
    const Format format = policy_low_format(policy, layer, (AutocastRegion){.enabled = true});
    return quantised_is_written(format) ? format : FORMAT_FP32;
}

// ---- the numbers --------------------------------------------------------------------------------

static float largest_of(const float *values, int64_t count) {
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = number_larger_magnitude(largest, values[i]);
    return largest;
}

// Element `at` of a row of packed ones, the first in the lowest bits.
static void put_element(uint8_t *row, int64_t at, int64_t bits, uint32_t pattern) {
    const int64_t from = at * bits;
    const uint32_t placed = pattern << (from & 7);
    row[from >> 3] = (uint8_t)(row[from >> 3] | placed);
    if ((from & 7) + bits > 8)
        row[(from >> 3) + 1] = (uint8_t)(row[(from >> 3) + 1] | placed >> 8);
}

// Numbers of a row that share a scale.
static void put_elements(const float *values, int64_t first, int64_t count, Format element,
                         NumberScale scale, int64_t bits, uint8_t *row) {
    const NumberElement to = number_element(element);
    for (int64_t i = 0; i < count; i++) {
        float rounded = number_round_to_element(values[i] * scale.to_elements, to, false, 0);
        put_element(row, first + i, bits,
                    format_encode(element, (double)rounded, OVERFLOW_SATURATES));
    }
}

static void quantise_blocks(const Layout *layout, const float *values, float tensor,
                            uint8_t *elements, uint8_t *scales) {
    const FormatInfo *info = &format_table[layout->format];
    const NumberElement element = number_element(info->element);
    const int64_t bits = element_bits(layout->format), row_bytes = (layout->depth * bits + 7) / 8;
    for (int64_t row = 0; row < layout->rows; row++)
        for (int64_t block = 0; block < layout->blocks; block++) {
            const int64_t first = block * layout->block, left = layout->depth - first;
            const int64_t own = left < layout->block ? left : layout->block;
            const float *from = values + row * layout->depth + first;
            const float largest = largest_of(from, own);
            const NumberScale scale =
                number_scale_of_block(info->scale, largest, element, true, tensor);
            const float kept = layout->has_tensor_scale
                                   ? number_scale_below_tensor(largest, element, tensor)
                                   : scale.to_numbers;
            scales[row * layout->blocks + block] =
                (uint8_t)format_encode(info->scale, (double)kept, OVERFLOW_SATURATES);
            put_elements(from, first, own, info->element, scale, bits, elements + row * row_bytes);
        }
}

// Whether a number of a floating format became one that is not finite.
static bool overflows(Format format, const float *values, const uint8_t *out, int64_t count) {
    bool does = false;
    for (int64_t i = 0; i < count && !does; i++)
        does = isfinite(values[i]) &&
               !isfinite(format_load(format, out + (size_t)i * format_table[format].bytes));
    return does;
}

// Fills `bytes` of elements, `scale_bytes` of scales, and the scale of all, in this order. False:
// what scaled elements cannot hold, or there was no memory, which `error` says then.
static bool quantise(const Layout *layout, const float *values, uint8_t *out, Error *error) {
    const FormatInfo *info = &format_table[layout->format];
    const int64_t count = layout->rows * layout->depth;
    uint8_t *scales = out + layout->bytes;
    float one = 1;
    memset(out, 0, layout->bytes);
    if (info->scaled == SCALED_NONE) {
        convert_from_fp32(layout->format, values, out, (size_t)count, OVERFLOW_SATURATES);
        return !overflows(layout->format, values, out, count) ||
               error_fail(error, ERROR_FAILED,
                          "it holds numbers beyond %g, the largest of %s: %s--layer LAYER=fp32 "
                          "leaves it out",
                          info->largest, format_name(layout->format),
                          info->largest < format_table[FORMAT_BF16].largest
                              ? "-p bf16 has room for more, and "
                              : "");
    }
    const float largest = largest_of(values, count);
    if (!isfinite(largest))
        return false;
    const NumberElement element = number_element(element_of(layout->format));
    switch (info->scaled) {
    case SCALED_ROW: {
        float *steps = malloc(((size_t)layout->rows + 1) * sizeof *steps);
        if (!steps)
            return error_fail(error, ERROR_MEMORY, "no memory for the scales of %lld rows",
                              (long long)layout->rows);
        bool done = int8_from_rows(values, layout->rows, layout->depth, (int8_t *)out, steps);
        if (done)
            memcpy(scales, steps, layout->scale_bytes);
        free(steps);
        return done;
    }
    case SCALED_TENSOR: {
        const NumberScale scale = number_scale_of_largest(largest, element);
        put_elements(values, 0, count, info->element, scale, 8, out);
        memcpy(scales, &scale.to_numbers, sizeof scale.to_numbers);
        return true;
    }
    default:
        if (layout->has_tensor_scale)
            one = number_scale_of_tensor(largest, element);
        quantise_blocks(layout, values, one, out, scales);
        memcpy(scales + layout->scale_bytes, &one, layout->has_tensor_scale ? sizeof one : 0);
        return true;
    }
}

// ---- a file -------------------------------------------------------------------------------------

enum { NAME_SIZE = 1024 };

typedef struct Writing {
    SafeFile *from;
    const Policy *policy;
    SafeWriter *to;
} Writing;

static bool is_number(const SafeEntry *entry) {
    const Format format = safe_type_format(entry->type);
    return format != FORMAT_COUNT && format_is_floating(format);
}

static Layout layout_wanted(const Writing *writing, const SafeEntry *entry) {
    bool is_weight;
    const char *name = weights_model_name(entry->name, &is_weight);
    return layout_of(quantised_format(writing->policy, safe_header(writing->from), name, is_weight),
                     entry->ndim, entry->shape);
}

static bool declare(const Writing *writing, const SafeEntry *entry, Error *error) {
    bool is_weight;
    char scale[NAME_SIZE + 32];
    const int64_t one = 1;
    const char *name = weights_model_name(entry->name, &is_weight);
    if (!name)
        return true;
    if (strlen(name) >= NAME_SIZE)
        return error_fail(error, ERROR_FAILED,
                          "export: the name of a weight is longer than %d bytes", NAME_SIZE - 1);
    if (!is_number(entry))
        return safe_declare(writing->to, name, entry->type, entry->ndim, entry->shape, error);
    const Layout layout = layout_wanted(writing, entry);
    if (!safe_declare(writing->to, name, layout.type, layout.ndim, layout.shape, error))
        return false;
    snprintf(scale, sizeof scale, "%s.scale", name);
    if (layout.scale_ndim && !safe_declare(writing->to, scale, layout.scale_type, layout.scale_ndim,
                                           layout.scale_shape, error))
        return false;
    snprintf(scale, sizeof scale, "%s.scale_of_all", name);
    return !layout.has_tensor_scale || safe_declare(writing->to, scale, SAFE_F32, 1, &one, error);
}

// fp32 of what is kept in any floating format.
static void widen(const SafeEntry *entry, const char *bytes, float *values, size_t count) {
    const Format format = safe_type_format(entry->type);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)format_load(format, bytes + i * safe_type_bytes(entry->type));
}

static bool write_numbers(const Writing *writing, const SafeEntry *entry, const char *bytes,
                          Error *error) {
    bool is_weight;
    const Layout layout = layout_wanted(writing, entry);
    const size_t count = (size_t)(entry->end - entry->begin) / safe_type_bytes(entry->type);
    const size_t size =
        layout.bytes + layout.scale_bytes + (layout.has_tensor_scale ? sizeof(float) : 0);
    float *values = malloc((count + 1) * sizeof *values);
    uint8_t *out = malloc(size + 1);
    bool done = values && out;
    if (!done)
        error_fail(error, ERROR_MEMORY, "no memory to export %.80s", entry->name);
    if (done) {
        widen(entry, bytes, values, count);
        Error refused = {0};
        done = quantise(&layout, values, out, &refused) ||
               (refused.code != ERROR_NONE
                    ? error_fail(error, refused.code, "%.80s: %s",
                                 weights_model_name(entry->name, &is_weight), refused.text)
                    : error_fail(error, ERROR_FAILED,
                                 "%.80s: not all of it is finite, which %s cannot hold: --layer "
                                 "LAYER=fp32 leaves it out",
                                 weights_model_name(entry->name, &is_weight),
                                 format_name(layout.format)));
    }
    done = done && safe_write(writing->to, out, size, error);
    free(values);
    free(out);
    return done;
}

static bool write_entry(const Writing *writing, const SafeEntry *entry, Error *error) {
    bool is_weight;
    if (!weights_model_name(entry->name, &is_weight))
        return true;
    const size_t size = (size_t)(entry->end - entry->begin);
    char *bytes = malloc(size + 1);
    bool done = bytes ? safe_read(writing->from, entry, bytes, error)
                      : error_fail(error, ERROR_MEMORY, "no memory to export %.80s", entry->name);
    if (done)
        done = is_number(entry) ? write_numbers(writing, entry, bytes, error)
                                : safe_write(writing->to, bytes, size, error);
    free(bytes);
    return done;
}

bool quantised_write(SafeFile *from, const Policy *policy, SafeWriter *to, Error *error) {
    const SafeHeader *header = safe_header(from);
    const Writing writing = {from, policy, to};
    bool done = true;
    for (int i = 0; i < header->count && done; i++)
        done = declare(&writing, &header->entries[i], error);
    for (int i = 0; i < header->count && done; i++)
        done = write_entry(&writing, &header->entries[i], error);
    return done;
}
