// tests/unit/pointwise_table_test.c: what is looked up has the bits that the function gives, or is
// NaN as that is.
#include "cpu/pointwise_table.h"

#include <math.h>

#include "tests/unit/cpu_fixture.h"

// Every number of 16 bits four times and more, and no whole number of blocks. Fewer are not looked
// up.
enum { COUNT = POINTWISE_FEWEST_TABLED + 2001, PIECE = POINTWISE_FEWEST_TABLED - 1 };

typedef struct Numbers16 {
    uint16_t *x, *dy;
    void *by_table, *by_function;
} Numbers16;

static Numbers16 begin(void) {
    const int64_t words = COUNT;
    Numbers16 all = {.x = (uint16_t *)(void *)numbers(words / 2 + 1),
                     .dy = (uint16_t *)(void *)numbers(words / 2 + 1),
                     .by_table = numbers(words),
                     .by_function = numbers(words)};
    for (int64_t i = 0; i < COUNT; i++) {
        all.x[i] = (uint16_t)(i * 40503);
        all.dy[i] = (uint16_t)(i * 30011 + i / 65536 * 77);
    }
    return all;
}

static void end(Numbers16 *all) {
    give(all->x), give(all->dy), give(all->by_table), give(all->by_function);
}

static View piece(const void *data, Format format, int64_t first, int64_t count) {
    const size_t at = (size_t)first * format_table[format].bytes;
    return vector((char *)(uintptr_t)data + at, format, count);
}

// Elements from `first` on, of an operation of one input or of the gradient of one.
static void run_piece(OpId op, bool is_gradient, const OpAttr *attr, Format format, Format out,
                      const Numbers16 *all, void *to, int64_t first, int64_t count) {
    KernelCall call = {.op = op, .attr = attr, .output = {piece(to, out, first, count)}};
    call.input[is_gradient ? 1 : 0] = piece(all->x, format, first, count);
    if (is_gradient)
        call.input[0] = piece(all->dy, format, first, count);
    run(call);
}

static uint32_t bits_at(const void *data, Format format, int64_t at) {
    const size_t bytes = format_table[format].bytes;
    uint32_t bits = 0;
    memcpy(&bits, (const char *)data + (size_t)at * bytes, bytes);
    return bits;
}

// Which NaN a product of two gives is nobody's affair.
static void check_op(OpId op, bool is_gradient, Format format, Format out, const Numbers16 *all) {
    const OpAttr attr = {.scalar = {.a = 1.75, .b = 2}};
    run_piece(op, is_gradient, &attr, format, out, all, all->by_table, 0, COUNT);
    for (int64_t first = 0; first < COUNT; first += PIECE)
        run_piece(op, is_gradient, &attr, format, out, all, all->by_function, first,
                  COUNT - first < PIECE ? COUNT - first : PIECE);
    bool same = true;
    for (int64_t i = 0; i < COUNT; i++) {
        const uint32_t is = bits_at(all->by_table, out, i), was = bits_at(all->by_function, out, i);
        same = same &&
               (is == was || (isnan(format_decode(out, is)) && isnan(format_decode(out, was))));
    }
    CHECK_MESSAGE(same, "%s, %s to %s", op_table[op].name, format_name(format), format_name(out));
}

static void a_table_has_the_bits_of_the_function(void) {
    static const Format formats[] = {FORMAT_BF16, FORMAT_FP16};
    static const Format outs[] = {FORMAT_BF16, FORMAT_FP16, FORMAT_FP32};
    Numbers16 all = begin();
    for (int i = 0; i < 2 * 3; i++) {
#define UNARY(name, ...)                                           \
    check_op(OP_##name, false, formats[i % 2], outs[i / 2], &all); \
    check_op(OP_##name##_backward, true, formats[i % 2], outs[i / 2], &all);
#include "kernel/pointwise.def"
    }
    end(&all);
}

static bool is_tabled(OpId op, Format format, Format out, int64_t count) {
    uint32_t number = 0;
    const View x = vector(&number, format, 1), y = vector(&number, out, 1);
    Pointwise work = {.op = op, .output = result_of(device, &y)};
    work.input[0] = work.input[1] = operand_of(device, &x, 1, x.shape);
    return pointwise_is_tabled(&work, count);
}

static void what_is_worth_a_table_has_one(void) {
    static const OpId ops[] = {OP_gelu, OP_gelu_backward, OP_tanh, OP_silu_backward};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        CHECK(is_tabled(ops[i], FORMAT_BF16, FORMAT_BF16, COUNT));
        CHECK(is_tabled(ops[i], FORMAT_FP16, FORMAT_FP32, COUNT));
        CHECK(!is_tabled(ops[i], FORMAT_BF16, FORMAT_BF16, PIECE));
        CHECK(!is_tabled(ops[i], FORMAT_FP32, FORMAT_BF16, COUNT));
    }
    CHECK(!is_tabled(OP_relu, FORMAT_BF16, FORMAT_BF16, COUNT));
    CHECK(!is_tabled(OP_tanh_backward, FORMAT_BF16, FORMAT_BF16, COUNT)); // of y, not dy times one
}

// Lines lie apart: numbers are gathered first. What arrives has another format.
static void numbers_need_not_lie_together(void) {
    enum { ROWS = 514, COLUMNS = 512 };
    Numbers16 all = begin();
    View turned = matrix(all.x, FORMAT_BF16, COLUMNS, ROWS);
    turned.stride[0] = 1;
    turned.stride[1] = COLUMNS;
    CHECK(ROWS * COLUMNS >= POINTWISE_FEWEST_TABLED);
    float *dy = numbers(ROWS * COLUMNS), *tabled = numbers(ROWS * COLUMNS),
          *plain = numbers(COLUMNS);
    draw(dy, ROWS * COLUMNS, 3);
    View turned_dy = matrix(dy, FORMAT_FP32, COLUMNS, ROWS);
    turned_dy.stride[0] = 1;
    turned_dy.stride[1] = COLUMNS;
    run((KernelCall){.op = OP_gelu_backward,
                     .input = {turned_dy, turned},
                     .output = {matrix(tabled, FORMAT_FP32, COLUMNS, ROWS)}});
    bool slopes_are_same = true;
    for (int64_t row = 0; row < ROWS; row++) {
        run((KernelCall){.op = OP_gelu_backward,
                         .input = {vector(dy + row * COLUMNS, FORMAT_FP32, COLUMNS),
                                   piece(all.x, FORMAT_BF16, row * COLUMNS, COLUMNS)},
                         .output = {vector(plain, FORMAT_FP32, COLUMNS)}});
        for (int64_t column = 0; column < COLUMNS; column++) {
            const float is = tabled[column * ROWS + row], was = plain[column];
            slopes_are_same = slopes_are_same && (is == was || (isnan(is) && isnan(was)));
        }
    }
    CHECK(slopes_are_same);
    give(dy), give(tabled), give(plain);
    uint16_t *gelu = all.by_table, *dense = all.by_function;
    run((KernelCall){
        .op = OP_gelu, .input = {turned}, .output = {matrix(gelu, FORMAT_BF16, COLUMNS, ROWS)}});
    for (int64_t i = 0; i < ROWS * COLUMNS; i += COLUMNS)
        run((KernelCall){.op = OP_gelu,
                         .input = {piece(all.x, FORMAT_BF16, i, COLUMNS)},
                         .output = {piece(dense, FORMAT_BF16, i, COLUMNS)}});
    bool same = true;
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t column = 0; column < COLUMNS; column++)
            same = same && gelu[column * ROWS + row] == dense[row * COLUMNS + column];
    CHECK(same);
    end(&all);
}

int main(void) {
    if (!cpu_test_begin())
        return 1;
    while (cpu_next_level()) {
        AT_LEVEL(a_table_has_the_bits_of_the_function);
        AT_LEVEL(what_is_worth_a_table_has_one);
        AT_LEVEL(numbers_need_not_lie_together);
    }
    return cpu_test_end();
}
