// Memory by purpose, of the runs of a side.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "compare/compare.h"

const ComparePurpose compare_purposes[COMPARE_PURPOSES] = {
    {"weights", offsetof(RecordMemory, weights)},
    {"masters", offsetof(RecordMemory, masters)},
    {"activations", offsetof(RecordMemory, activations)},
    {"gradients", offsetof(RecordMemory, gradients)},
    {"optimizer", offsetof(RecordMemory, optimizer)},
    {"workspace", offsetof(RecordMemory, workspace)},
};

double compare_bytes(const Comparison *comparison, const CompareSide *side,
                     const ComparePurpose *purpose) {
    double sum = 0;
    for (int i = 0; i < side->member_count; i++) {
        const RecordMemory *memory = &comparison->runs[side->members[i]].memory;
        int64_t bytes;
        memcpy(&bytes, (const char *)memory + purpose->offset, sizeof bytes);
        sum += bytes == RECORD_UNKNOWN ? NAN : (double)bytes / side->member_count;
    }
    return sum;
}
