// The object of `mpbench compare --json`.
#include <math.h>
#include <string.h>

#include "cli/history/compare.h"

static bool has_values(const Statistic *statistic) {
    return statistic->count + statistic->not_finite > 0;
}

// A mean of values of which none is finite is not a number, but known not to be one.
static void write_mean(JsonWriter *json, const char *key, const Statistic *statistic) {
    json_put_known(json, key, statistic->mean, has_values(statistic));
}

static void write_delta(JsonWriter *json, const char *key, const Contrast *contrast,
                        const Statistic *a, const Statistic *b) {
    json_put_known(json, key, contrast->delta, has_values(a) && has_values(b));
}

static const char *likeness_name(Likeness likeness) {
    static const char *const names[] = {
        [LIKENESS_UNKNOWN] = NULL, [LIKENESS_SAME] = "same", [LIKENESS_DIFFERENT] = "different"};
    return names[likeness];
}

// How chance was told: NULL, it was not.
static const char *test_name(const Contrast *contrast) {
    return contrast->likeness == LIKENESS_UNKNOWN ? NULL : contrast->pairs > 0 ? "pairs" : "welch";
}

static void write_statistic(JsonWriter *json, const char *key, const Statistic *statistic) {
    json_key(json, key);
    if (!has_values(statistic)) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    write_mean(json, "mean", statistic);
    json_put_reading(json, "standard_deviation", statistic->deviation);
    json_put_reading(json, "interval_95", statistic->interval);
    json_put_integer(json, "seeds", statistic->count);
    json_put_integer(json, "not_finite", statistic->not_finite);
    json_end_object(json);
}

static void write_divergence(JsonWriter *json, const CompareDivergence *divergence) {
    json_key(json, "first_divergence");
    if (!divergence->is_known) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    if (divergence->different >= 0)
        json_put_integer(json, "step", divergence->different); // the bits differ
    else
        json_put_null(json, "step");
    json_put_integer(json, "within_steps",
                     divergence->different >= 0 ? divergence->different_width : 0);
    if (divergence->parted >= 0)
        json_put_integer(json, "beyond_noise", divergence->parted);
    else
        json_put_null(json, "beyond_noise");
    json_put_boolean(json, "at_the_end", divergence->is_parted_at_end);
    json_end_object(json);
}

// What a side is against the baseline.
static void write_ratios(JsonWriter *json, const CompareSide *side, const CompareSide *baseline) {
    json_put_reading(json, "speedup", side->speedup);
    json_put_reading(json, "speedup_low", side->speedup_low);
    json_put_reading(json, "speedup_high", side->speedup_high);
    json_put_reading(json, "wall_ratio", side->wall_ratio);
    json_put_reading(json, "memory_ratio", side->memory_ratio);
    json_put_reading(json, "energy_ratio", side->energy_ratio);
    json_put_reading(json, "co2_ratio", side->co2_ratio);
    json_put_reading(json, "energy_delta_j", side->energy_j.mean - baseline->energy_j.mean);
    json_put_reading(json, "energy_delta_kwh",
                     compare_kwh(side->energy_j.mean - baseline->energy_j.mean));
    json_put_reading(json, "co2_delta_g", side->co2_g.mean - baseline->co2_g.mean);
    write_delta(json, "loss_delta", &side->loss_contrast, &baseline->loss, &side->loss);
    json_key(json, "metric_deltas");
    json_begin_object(json);
    for (int i = 0; i < side->metric_count; i++) {
        const CompareMetric *metric = &side->metrics[i];
        write_delta(json, metric->name, &metric->contrast, &metric->baseline, &metric->value);
    }
    json_end_object(json);
    write_divergence(json, &side->divergence);
}

// When it came to the target: null where it did not, or none was asked for.
static void write_reach(JsonWriter *json, const Comparison *comparison, const CompareSide *side) {
    json_key(json, "target");
    if (!comparison->options.target) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    json_put_text(json, "name", comparison->options.target);
    json_put_number(json, "value", comparison->options.target_value);
    json_put_integer(json, "reached", side->target_steps.count);
    write_mean(json, "steps", &side->target_steps);
    write_mean(json, "seconds", &side->target_seconds);
    json_put_reading(json, "seconds_ratio", side->target_ratio);
    json_put_boolean(json, "falls", compare_target_falls(comparison));
    json_end_object(json);
}

static void write_run(JsonWriter *json, const Comparison *comparison, int index) {
    const RunRecord *run = &comparison->runs[index];
    const CompareSide *side = &comparison->sides[index];
    json_begin_object(json);
    json_put_integer(json, "id", run->id);
    json_put_text(json, "name", run->name);
    json_put_text(json, "experiment", run->experiment);
    json_put_text(json, "status", run_status_name(run->status));
    json_put_text(json, "precision", run->precision);
    json_put_text(json, "device", run->device);
    json_put_text(json, "device_name", run->device_name);
    json_put_integer(json, "seed", run->seed);
    json_put_integer(json, "steps", run->step);
    json_put_integer(json, "skipped", run->skipped);
    int processors;
    json_put_reading(json, "load_of_others", compare_load_of_others(run, &processors));
    json_put_text(json, "set_meanwhile", comparison->orders[index].text);
    write_mean(json, "loss", &side->loss);
    json_key(json, "metrics");
    json_begin_object(json);
    for (int i = 0; i < run->metric_count; i++) {
        json_put_number(json, run->metrics[i].name, run->metrics[i].value);
    }
    json_end_object(json);
    write_mean(json, "steps_per_s", &side->steps_per_s);
    write_mean(json, "samples_per_s", &side->samples_per_s);
    write_mean(json, "wall_s", &side->wall_s);
    write_mean(json, "memory_peak", &side->memory);
    write_mean(json, "energy_j", &side->energy_j);
    json_put_reading(json, "energy_kwh", compare_kwh(side->energy_j.mean));
    json_put_boolean(json, "energy_is_stated", compare_is_stated(comparison, index));
    write_mean(json, "co2_g", &side->co2_g);
    write_reach(json, comparison, side);
    if (index > 0)
        write_ratios(json, side, &comparison->sides[0]);
    json_end_object(json);
}

static void write_group(JsonWriter *json, const Comparison *comparison, int index) {
    const CompareSide *side = &comparison->groups[index];
    json_begin_object(json);
    json_put_text(json, "label", side->label);
    json_key(json, "runs");
    json_begin_array(json);
    for (int i = 0; i < side->member_count; i++)
        json_integer(json, comparison->runs[side->members[i]].id);
    json_end_array(json);
    json_put_boolean(json, "seeds_alike", side->seeds_are_alike);
    const struct {
        const char *key;
        const Statistic *statistic;
    } rows[] = {{"loss", &side->loss},
                {"steps_per_s", &side->steps_per_s},
                {"samples_per_s", &side->samples_per_s},
                {"wall_s", &side->wall_s},
                {"memory_peak", &side->memory},
                {"energy_j", &side->energy_j},
                {"co2_g", &side->co2_g}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        write_statistic(json, rows[i].key, rows[i].statistic);
    json_put_reading(json, "energy_kwh", compare_kwh(side->energy_j.mean));
    write_reach(json, comparison, side);
    json_key(json, "metrics");
    json_begin_object(json);
    for (int i = 0; i < side->metric_count; i++)
        write_statistic(json, side->metrics[i].name, &side->metrics[i].value);
    json_end_object(json);
    if (index > 0) {
        write_ratios(json, side, &comparison->groups[0]);
        json_put_reading(json, "loss_delta_95", side->loss_contrast.interval);
        json_put_text(json, "loss_is", likeness_name(side->loss_contrast.likeness));
        json_put_text(json, "loss_delta_by", test_name(&side->loss_contrast));
        json_key(json, "metrics_are");
        json_begin_object(json);
        for (int i = 0; i < side->metric_count; i++)
            json_put_text(json, side->metrics[i].name,
                          likeness_name(side->metrics[i].contrast.likeness));
        json_end_object(json);
        json_key(json, "metric_deltas_95");
        json_begin_object(json);
        for (int i = 0; i < side->metric_count; i++)
            json_put_reading(json, side->metrics[i].name, side->metrics[i].contrast.interval);
        json_end_object(json);
        json_key(json, "metric_deltas_by");
        json_begin_object(json);
        for (int i = 0; i < side->metric_count; i++)
            json_put_text(json, side->metrics[i].name, test_name(&side->metrics[i].contrast));
        json_end_object(json);
    }
    json_end_object(json);
}

static void write_differences(JsonWriter *json, const Comparison *comparison) {
    json_key(json, "differences");
    json_begin_object(json);
    for (int i = 0; i < comparison->difference_count; i++) {
        json_key(json, comparison->differences[i].name);
        json_begin_array(json); // in the order of the groups
        for (int g = 0; g < comparison->group_count; g++)
            json_text(json, comparison->differences[i].values[g]);
        json_end_array(json);
    }
    json_end_object(json);
}

static void write_texts(JsonWriter *json, const char *key, char (*texts)[COMPARE_TEXT_SIZE],
                        int count) {
    json_key(json, key);
    json_begin_array(json);
    for (int i = 0; i < count; i++)
        json_text(json, texts[i]);
    json_end_array(json);
}

void comparison_write_json(const Comparison *comparison, JsonWriter *json) {
    json_begin_object(json);
    json_put_text(json, "by", compare_axis_name(comparison->options.axis));
    json_key(json, "runs");
    json_begin_array(json);
    for (int i = 0; i < comparison->run_count; i++)
        write_run(json, comparison, i);
    json_end_array(json);
    json_key(json, "groups");
    json_begin_array(json);
    for (int g = 0; g < comparison->group_count; g++)
        write_group(json, comparison, g);
    json_end_array(json);
    write_differences(json, comparison);
    json_put_text(json, "series", comparison->series);
    write_texts(json, "energy", comparison->energies, comparison->energy_count);
    write_texts(json, "caveats", comparison->caveats, comparison->caveat_count);
    write_texts(json, "verdict", comparison->verdicts, comparison->verdict_count);
    json_end_object(json);
}
