#include "compare/step_lines.h"

#include <stdlib.h>
#include <string.h>

bool step_part_is_cast(const StepPart *part) {
    return strcmp(part->operation, "cast") == 0 || strcmp(part->operation, "scale_factor") == 0;
}

static bool is_same_line(const StepPart *a, const StepPart *b, StepBy by) {
    const bool is_same_operation = strcmp(a->operation, b->operation) == 0;
    if (by == STEP_BY_LAYER)
        return strcmp(a->layer, b->layer) == 0 && (a->layer[0] || is_same_operation);
    return is_same_operation;
}

static void keep_common(char *sum, const char *word) {
    if (strcmp(sum, word) != 0)
        sum[0] = 0;
}

static void join_formats(StepLine *line, const StepPart *part) {
    const bool is_cast = step_part_is_cast(part);
    StepPart *sum = &line->part;
    if (is_cast && !line->is_of_casts)
        return;
    if (is_cast || !line->is_of_casts) {
        keep_common(sum->from, part->from);
        keep_common(sum->to, part->to);
        return;
    }
    memcpy(sum->from, part->from, sizeof sum->from);
    memcpy(sum->to, part->to, sizeof sum->to);
    line->is_of_casts = false;
}

static void join(StepLine *line, const StepLine *other) {
    StepPart *sum = &line->part;
    const StepPart *part = &other->part;
    join_formats(line, part);
    sum->calls += part->calls;
    sum->seconds += part->seconds;
    sum->multiplications += part->multiplications;
    sum->bytes += part->bytes;
    sum->at_limit += part->at_limit;
    line->limited += other->limited;
    if (part->columns > 0 && (sum->columns == 0 || part->columns < sum->columns))
        sum->columns = part->columns;
    keep_common(sum->layer, part->layer);
    keep_common(sum->operation, part->operation);
    keep_common(sum->way, part->way);
}

static int by_length(const void *a, const void *b) {
    const StepLine *one = a, *other = b;
    if (one->part.seconds != other->part.seconds)
        return one->part.seconds < other->part.seconds ? 1 : -1;
    return strcmp(one->part.layer, other->part.layer);
}

void step_lines_sort(StepLine *lines, int count) {
    qsort(lines, (size_t)count, sizeof *lines, by_length);
}

static int find_line(const StepLine *lines, int count, const StepPart *part, StepBy by) {
    int at = by == STEP_BY_PART ? count : 0;
    while (at < count && !is_same_line(&lines[at].part, part, by))
        at++;
    return at;
}

int step_lines(const StepPart *parts, int count, StepBy by, StepLine *lines) {
    int line_count = 0;
    for (int i = 0; i < count; i++) {
        const StepLine line = {.part = parts[i],
                               .limited = parts[i].at_limit > 0 ? parts[i].seconds : 0,
                               .is_of_casts = step_part_is_cast(&parts[i])};
        const int at = find_line(lines, line_count, &parts[i], by);
        if (at < line_count) {
            join(&lines[at], &line);
            continue;
        }
        lines[line_count++] = line;
        if (by == STEP_BY_OPERATION)
            lines[at].part.layer[0] = 0;
    }
    step_lines_sort(lines, line_count);
    return line_count;
}
