#include "base/recent.h"

#include <string.h>

static const double seconds_between = 1.5, least_seconds = 1;

double recent_rate(Recent *recent, int64_t step, double seconds) {
    if (recent->count > 0 && (step < recent->marks[recent->count - 1].step ||
                              seconds < recent->marks[recent->count - 1].seconds))
        recent->count = 0; // it went back, or is another one
    if (recent->count == 0 ||
        (step > recent->marks[recent->count - 1].step &&
         seconds - recent->marks[recent->count - 1].seconds >= seconds_between)) {
        if (recent->count == RECENT_MARKS)
            memmove(recent->marks, recent->marks + 1,
                    (size_t)--recent->count * sizeof *recent->marks);
        recent->marks[recent->count].step = step;
        recent->marks[recent->count++].seconds = seconds;
    }
    const double steps = (double)(step - recent->marks[0].step);
    const double passed = seconds - recent->marks[0].seconds;
    return steps > 0 && passed >= least_seconds ? steps / passed : 0;
}
