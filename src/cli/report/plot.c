#include "cli/report/plot.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "cli/print/text.h"
#include "cli/report/html.h"
#include "number/format.h"

// The drawing's own units; the page stretches it to its width.
enum { WIDTH = 640, HEIGHT = 240, LEFT = 56, RIGHT = 12, TOP = 12, BOTTOM = 28, DASHES = 4 };
enum { INNER_WIDTH = WIDTH - LEFT - RIGHT, INNER_HEIGHT = HEIGHT - TOP - BOTTOM };

typedef struct Axis {
    double low, high;
    bool is_log;
} Axis;

static double share_of(const Axis *axis, double value) {
    if (axis->is_log)
        return (log10(value) - log10(axis->low)) / (log10(axis->high) - log10(axis->low));
    return (value - axis->low) / (axis->high - axis->low);
}

static double across(const Axis *axis, double x) {
    return LEFT + INNER_WIDTH * share_of(axis, x);
}

static double up(const Axis *axis, double y) {
    return TOP + INNER_HEIGHT * (1 - share_of(axis, y));
}

static double place_of(const PlotCurve *curve, int i) {
    return curve->x ? curve->x[i] : (double)curve->points[i].step;
}

// A bucket stands for its points by their mean; NaN: none of them is finite.
static double height_of(const SeriesPoint *point) {
    return point->count > 0 ? point->mean : NAN;
}

// ---- axes ---------------------------------------------------------------------------------------

static bool find_axes(const Plot *plot, Axis *x, Axis *y) {
    const double wide = 30, margin = 0.05;
    double low = INFINITY, high = -INFINITY, end = 0, begin = INFINITY;
    for (int c = 0; c < plot->curve_count; c++)
        for (int i = 0; i < plot->curves[c].count; i++) {
            double value = height_of(&plot->curves[c].points[i]),
                   at = place_of(&plot->curves[c], i);
            if (!isfinite(at))
                continue;
            begin = fmin(begin, at);
            end = fmax(end, at);
            if (isfinite(value)) {
                low = fmin(low, value);
                high = fmax(high, value);
            }
        }
    if (!(begin < end) || !(low <= high) || !isfinite(2 * high - 2 * low))
        return false;
    *x = (Axis){.low = begin, .high = end};
    *y = (Axis){.low = low, .high = high, .is_log = low > 0 && high / low > wide};
    if (y->is_log) {
        const double room = pow(10, margin * (log10(high) - log10(low)));
        y->low = fmax(low / room, DBL_TRUE_MIN);
        y->high = fmin(high * room, DBL_MAX);
    } else {
        double room = high > low ? margin * (high - low) : fmax(fabs(high) * margin, 1e-12);
        y->low -= room;
        y->high += room;
    }
    return true;
}

typedef struct Marks {
    double first, distance;
    int count;
} Marks;

// Of a linear axis about `wanted`, 1, 2 or 5 times a power of ten apart. They are counted, as those
// of numbers that differ in their last bits alone lie closer than numbers do.
static Marks marks_of(const Axis *axis, int wanted) {
    double raw = (axis->high - axis->low) / wanted, power = pow(10, floor(log10(raw)));
    double share = raw / power;
    Marks marks = {.distance = power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10)};
    marks.first = ceil(axis->low / marks.distance) * marks.distance;
    while (marks.count < 2 * wanted && marks.first + marks.count * marks.distance <= axis->high)
        marks.count++;
    return marks;
}

static void write_height_mark(FILE *out, const Axis *y, double value) {
    char text[TEXT_SIZE];
    double at = up(y, value);
    fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, at, WIDTH - RIGHT);
    fprintf(out, "<text class=\"n\" x=\"%d\" y=\"%.1f\">", LEFT - 6, at + 4);
    html_text(out, text_number(text, value, 4));
    fputs("</text>\n", out);
}

static void write_heights(FILE *out, const Axis *y) {
    enum { WANTED = 5 };
    if (!y->is_log) {
        const Marks marks = marks_of(y, WANTED);
        for (int i = 0; i < marks.count; i++) {
            double at = marks.first + i * marks.distance;
            write_height_mark(out, y, fabs(at) < marks.distance / 2 ? 0 : at);
        }
        return;
    }
    // Powers of ten, with 2 and 5 between where they are few.
    int first = (int)floor(log10(y->low)), last = (int)ceil(log10(y->high));
    int every = (last - first) / WANTED + 1;
    for (int power = first; power <= last; power++)
        for (int i = 0; i < 3; i++) {
            static const double steps[] = {1, 2, 5};
            double value = steps[i] * pow(10, power);
            bool is_wanted = i == 0 ? (power - first) % every == 0 : last - first <= 2;
            if (is_wanted && value >= y->low && value <= y->high)
                write_height_mark(out, y, value);
        }
}

static void write_places(FILE *out, const Axis *x, const char *name) {
    enum { WANTED = 6 };
    char text[TEXT_SIZE];
    const Marks marks = marks_of(x, WANTED);
    for (int i = 0; i < marks.count; i++) {
        double at = marks.first + i * marks.distance;
        fprintf(out, "<text class=\"m\" x=\"%.1f\" y=\"%d\">", across(x, at), HEIGHT - 12);
        html_text(out, text_number(text, at, 7));
        fputs("</text>\n", out);
    }
    fprintf(out, "<text class=\"n\" x=\"%d\" y=\"%d\">", WIDTH - RIGHT, HEIGHT - 1);
    html_text(out, name);
    fputs("</text>\n", out);
}

// ---- curves -------------------------------------------------------------------------------------

static void write_line(FILE *out, const PlotCurve *curve, const Axis *x, const Axis *y) {
    fprintf(out, "<path class=\"curve %s d%d\" data-label=\"", html_format_class(curve->format),
            curve->dash % DASHES);
    html_text(out, curve->label);
    fputs("\" d=\"", out);
    bool is_begun =
        false; // a line goes on over what was not logged, and breaks at what is not finite
    for (int i = 0; i < curve->count; i++) {
        double value = height_of(&curve->points[i]), at = place_of(curve, i);
        if (!isfinite(at))
            continue;
        if (isfinite(value))
            fprintf(out, "%s%.1f %.1f", is_begun ? "L" : "M", across(x, at), up(y, value));
        is_begun = isfinite(value);
    }
    fputs("\"/>\n", out);
}

static void write_broken(FILE *out, const PlotCurve *curve, const Axis *x) {
    enum { MOST = 400 };
    double last = -INFINITY;
    for (int i = 0, written = 0; i < curve->count && written < MOST; i++) {
        const SeriesPoint *point = &curve->points[i];
        double at = place_of(curve, i);
        if (point->nans + point->infs + point->minus_infs == 0 || !isfinite(at))
            continue;
        at = across(x, at);
        if (at - last < 2) // no eye parts them
            continue;
        fprintf(out, "<path class=\"broken\" d=\"M%.1f %dl6 6m-6 0l6 -6\"/>", at - 3, TOP);
        last = at;
        written++;
    }
}

static void write_marks(FILE *out, const Plot *plot, const Axis *x) {
    double last = -INFINITY;
    for (int i = 0; i < plot->mark_count; i++) {
        double at = plot->marks[i].x;
        if (!(at >= x->low && at <= x->high) || across(x, at) - last < 1)
            continue;
        last = across(x, at);
        fprintf(out, "<path class=\"broken\" d=\"M%.1f %dv-8\"/>", last, HEIGHT - BOTTOM);
    }
}

static void write_legend(FILE *out, const Plot *plot) {
    fputs("<ul class=\"legend\">", out);
    for (int c = 0; c < plot->curve_count; c++) {
        const PlotCurve *curve = &plot->curves[c];
        fprintf(out,
                "<li><svg viewBox=\"0 0 24 8\" aria-hidden=\"true\"><path class=\"curve %s d%d\" "
                "d=\"M0 4H24\"/></svg>",
                html_format_class(curve->format), curve->dash % DASHES);
        html_text(out, curve->label);
        fputs("</li>", out);
    }
    if (plot->mark_count > 0) {
        fputs("<li><svg viewBox=\"0 0 8 8\" aria-hidden=\"true\"><path class=\"broken\" "
              "d=\"M4 0V8\"/></svg>",
              out);
        html_text(out, plot->mark_name);
        fputs("</li>", out);
    }
    fputs("</ul>\n", out);
}

void plot_write(FILE *out, const Plot *plot) {
    Axis x, y;
    if (!find_axes(plot, &x, &y))
        return;
    fputs("<figure><figcaption>", out);
    html_text(out, plot->title);
    fprintf(out, "%s</figcaption>\n", y.is_log ? ", logarithmic" : "");
    // What the script computes values back from, beside where the drawing begins and ends.
    fprintf(out,
            "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" data-x=\"%.9g %.9g\" "
            "data-y=\"%.9g %.9g\" data-box=\"%d %d %d %d\"%s data-name=\"",
            WIDTH, HEIGHT, x.low, x.high, y.low, y.high, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM,
            y.is_log ? " data-log=\"1\"" : "");
    html_text(out, plot->x_name);
    fputs("\" aria-label=\"", out);
    html_text(out, plot->title);
    fputs("\">\n", out);
    write_heights(out, &y);
    write_places(out, &x, plot->x_name);
    for (int c = 0; c < plot->curve_count; c++)
        write_line(out, &plot->curves[c], &x, &y);
    for (int c = 0; c < plot->curve_count; c++)
        write_broken(out, &plot->curves[c], &x);
    write_marks(out, plot, &x);
    fputs("</svg>\n", out);
    write_legend(out, plot);
    fputs("</figure>\n", out);
}

// ---- exponents ----------------------------------------------------------------------------------

void plot_exponents(FILE *out, const LayerSample *sample, int first, int last, const char *format,
                    double scale) {
    enum { TALL = 22, BAR = 3 };
    int count = last - first + 1;
    uint32_t most = 0;
    for (int bin = first; bin <= last; bin++)
        most = sample->bins[bin] > most ? sample->bins[bin] : most;
    if (count < 1 || most == 0)
        return;
    fprintf(out,
            "<svg class=\"bars\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">",
            count * BAR, TALL, count * BAR, TALL);
    fprintf(out, "<title>exponents from 2^%d to 2^%d</title>", first + LAYER_LOWEST_EXPONENT,
            last + LAYER_LOWEST_EXPONENT);
    Format kept = format_named(format);
    if (kept < FORMAT_COUNT && format_is_plain(kept) && scale > 0) {
        const FormatInfo *info = &format_table[kept];
        double low = log2(info->smallest_normal / scale) - (first + LAYER_LOWEST_EXPONENT);
        double high = log2(info->largest / scale) - (first + LAYER_LOWEST_EXPONENT);
        low = fmax(low, 0);
        high = fmin(high, count);
        if (low < high)
            fprintf(out, "<rect class=\"band\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\"/>",
                    low * BAR, (high - low) * BAR, TALL);
    }
    fprintf(out, "<path class=\"%s\" d=\"", html_format_class(format));
    for (int bin = first; bin <= last; bin++)
        if (sample->bins[bin] > 0)
            fprintf(out, "M%d %dv-%.1fh%dv%.1fz", (bin - first) * BAR, TALL,
                    fmax(1, (double)TALL * sample->bins[bin] / most), BAR - 1,
                    fmax(1, (double)TALL * sample->bins[bin] / most));
    fputs("\"/></svg>", out);
}
