// A card's units for tiles of numbers of 16 bits, and of TF32. What lane holds what is as PTX has
// it for mma.m16n8k16, mma.m16n8k8 and ldmatrix. Sums are made in double and rounded once, where a
// card rounds more often.
#include <string.h>

#include "number/inline.h"
#include "tests/emulator/block.h"

enum { ROWS = 16, COLUMNS = 8, DEPTH = 16, SIDE = 8, TILES = 4 };

typedef struct Operands {
    uint32_t a[4], b[2];
} Operands;

// ---- multiplying --------------------------------------------------------------------------------

// How the numbers of a format lie in words.
typedef struct Numbers {
    unsigned each; // a word
    uint32_t infinite, magnitude;
} Numbers;

static const Numbers numbers_of[] = {
    [MEETING_MULTIPLY_BF16] = {2, 0x7F807F80, 0x7FFF7FFF},
    [MEETING_MULTIPLY_FP16] = {2, 0x7C007C00, 0x7FFF7FFF},
    [MEETING_MULTIPLY_TF32] = {1, 0x7F800000, 0x7FFFFFFF},
};

static float number_of(uint32_t word, unsigned which, EmulatorMeeting how) {
    uint16_t bits = (uint16_t)(word >> 16 * which);
    switch (how) {
    case MEETING_MULTIPLY_BF16: return number_bf16_to_fp32(bits);
    case MEETING_MULTIPLY_FP16: return number_fp16_to_fp32(bits);
    default: return number_fp32_of_bits(word);
    }
}

// Small products leave most tiles without a number: nothing is added of those, unless there is
// something that is not finite, which makes NaN even of 0.
static bool adds_nothing(const BlockThread *warp, EmulatorMeeting how) {
    const Numbers numbers = numbers_of[how];
    uint32_t of_a = 0, of_b = 0;
    for (unsigned lane = 0; lane < WARP; lane++) {
        Operands own;
        memcpy(&own, warp[lane].in, sizeof own);
        for (unsigned i = 0; i < 4; i++)
            of_a |= own.a[i];
        for (unsigned i = 0; i < 2; i++)
            of_b |= own.b[i];
    }
    // Of any pattern that is not finite these bits are set; of others together they may be too.
    uint32_t both = (of_a | of_b) & numbers.infinite, low = numbers.infinite & 0xFFFF;
    bool finite = both >> 16 != numbers.infinite >> 16 && (!low || (both & 0xFFFF) != low);
    return finite && (!(of_a & numbers.magnitude) || !(of_b & numbers.magnitude));
}

typedef double Row __attribute__((vector_size(COLUMNS * sizeof(double))));

static void multiply(BlockThread *warp, EmulatorMeeting how) {
    const unsigned each = numbers_of[how].each, side = 4 * each; // of a tile, in depth
    double a[ROWS][DEPTH];
    Row b[DEPTH], all[ROWS];
    if (adds_nothing(warp, how))
        return;
    for (unsigned lane = 0; lane < WARP; lane++) {
        unsigned group = lane / 4, first = lane % 4 * each;
        Operands own;
        float sum[4];
        memcpy(&own, warp[lane].in, sizeof own);
        memcpy(sum, warp[lane].out, sizeof sum);
        for (unsigned e = 0; e < each; e++) {
            for (unsigned i = 0; i < 4; i++)
                a[group + i % 2 * 8][first + i / 2 * side + e] =
                    (double)number_of(own.a[i], e, how);
            for (unsigned i = 0; i < 2; i++)
                b[first + i * side + e][group] = (double)number_of(own.b[i], e, how);
        }
        for (unsigned i = 0; i < 4; i++)
            all[group + i / 2 * 8][lane % 4 * 2 + i % 2] = (double)sum[i];
    }
    for (unsigned row = 0; row < ROWS; row++)
        for (unsigned k = 0; k < 2 * side; k++)
            all[row] += a[row][k] * b[k];
    for (unsigned lane = 0; lane < WARP; lane++) {
        float sum[4];
        for (unsigned i = 0; i < 4; i++)
            sum[i] = (float)all[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
        memcpy(warp[lane].out, sum, sizeof sum);
    }
}

// ---- loading ------------------------------------------------------------------------------------

static void load(BlockThread *warp, bool turned) {
    uint16_t tile[TILES][SIDE][SIDE];
    for (unsigned lane = 0; lane < WARP; lane++)
        memcpy(tile[lane / SIDE][lane % SIDE], warp[lane].in, sizeof tile[0][0]);
    for (unsigned lane = 0; lane < WARP; lane++) {
        unsigned group = lane / 4, first = lane % 4 * 2;
        uint32_t part[TILES];
        for (unsigned i = 0; i < TILES; i++) {
            uint16_t low = turned ? tile[i][first][group] : tile[i][group][first];
            uint16_t high = turned ? tile[i][first + 1][group] : tile[i][group][first + 1];
            part[i] = low | (uint32_t)high << 16;
        }
        memcpy(warp[lane].out, part, sizeof part);
    }
}

void emulator_tiles(EmulatorMeeting what, BlockThread *warp) {
    if (what == MEETING_LOAD_TILES || what == MEETING_LOAD_TILES_TURNED)
        load(warp, what == MEETING_LOAD_TILES_TURNED);
    else
        multiply(warp, what);
}
