// A card's units for tiles of 16-bit numbers. What lane holds what is as PTX has it for
// mma.m16n8k16 and ldmatrix. Sums are made in double and rounded once, where a card rounds more
// often.
#include <string.h>

#include "number/inline.h"
#include "tests/emulator/block.h"

enum { ROWS = 16, COLUMNS = 8, DEPTH = 16, SIDE = 8, TILES = 4 };

typedef struct Operands {
    uint32_t a[4], b[2];
} Operands;

// ---- multiplying --------------------------------------------------------------------------------

static float number_of(uint32_t pair, unsigned which, bool bf16) {
    uint16_t bits = (uint16_t)(pair >> 16 * which);
    return bf16 ? number_bf16_to_fp32(bits) : number_fp16_to_fp32(bits);
}

// Small products leave most tiles without a number: nothing is added of those, unless there is
// something that is not finite, which makes NaN even of 0.
static bool adds_nothing(const BlockThread *warp, bool bf16) {
    const uint32_t infinite = bf16 ? 0x7F80 : 0x7C00, magnitude = 0x7FFF7FFF;
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
    uint32_t both = of_a | of_b;
    bool finite = (both & infinite) != infinite && (both >> 16 & infinite) != infinite;
    return finite && (!(of_a & magnitude) || !(of_b & magnitude));
}

typedef double Row __attribute__((vector_size(COLUMNS * sizeof(double))));

static void multiply(BlockThread *warp, bool bf16) {
    double a[ROWS][DEPTH];
    Row b[DEPTH], all[ROWS];
    if (adds_nothing(warp, bf16))
        return;
    for (unsigned lane = 0; lane < WARP; lane++) {
        unsigned group = lane / 4, first = lane % 4 * 2;
        Operands own;
        float sum[4];
        memcpy(&own, warp[lane].in, sizeof own);
        memcpy(sum, warp[lane].out, sizeof sum);
        for (unsigned e = 0; e < 2; e++) {
            for (unsigned i = 0; i < 4; i++)
                a[group + i % 2 * 8][first + i / 2 * 8 + e] = (double)number_of(own.a[i], e, bf16);
            for (unsigned i = 0; i < 2; i++)
                b[first + i * 8 + e][group] = (double)number_of(own.b[i], e, bf16);
        }
        for (unsigned i = 0; i < 4; i++)
            all[group + i / 2 * 8][first + i % 2] = (double)sum[i];
    }
    for (unsigned row = 0; row < ROWS; row++)
        for (unsigned k = 0; k < DEPTH; k++)
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
        multiply(warp, what == MEETING_MULTIPLY_BF16);
}
