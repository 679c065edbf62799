// What a scan found, as JSON: as it ends, and as it is kept.
#include <math.h>

#include "base/json.h"
#include "cli/scan/scan.h"
#include "compare/scan.h"

static void write_cell(JsonWriter *json, const ScanRecord *scan, int unit, int format) {
    ScanCell cell = scan->cells[unit][format];
    json_key(json, scan->formats[format]);
    json_begin_object(json);
    json_put_boolean(json, "breaks", cell.is_broken);
    for (const ScanReading *reading = scan_readings; reading->name; reading++)
        json_put_reading(json, reading->name,
                         cell.is_known && !cell.is_broken ? *scan_reading(&cell, reading)
                                                          : (double)NAN);
    json_end_object(json);
}

static void write_layers(JsonWriter *json, const ScanRecord *scan) {
    json_key(json, "layers");
    json_begin_array(json);
    for (int i = 0; i < scan->unit_count; i++) {
        json_begin_object(json);
        json_put_text(json, "name", scan->units[i]);
        json_put_integer(json, "parameters", scan->parameters[i]);
        json_put_text(json, "policy", scan->has_policy ? scan_format_of(scan, i) : NULL);
        json_key(json, "formats");
        json_begin_object(json);
        for (int f = 0; f < scan->format_count; f++)
            write_cell(json, scan, i, f);
        json_end_object(json);
        json_put_text(json, "kept", scan_is_kept(scan, i) ? scan->kept[i] : NULL);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_gain(JsonWriter *json, const RoundsGain *gain, const double *rounds, int count) {
    const char *told = rounds_tempo_name(rounds_tempo(gain));
    json_put_reading(json, "speedup", gain->faster);
    json_put_reading(json, "speedup_least", gain->least);
    json_put_reading(json, "speedup_most", gain->most);
    json_put_text(json, "speed", told);
    json_key(json, "rounds_s");
    json_begin_array(json);
    for (int i = 0; i < count; i++)
        json_number(json, rounds[i]);
    json_end_array(json);
}

static void write_costs(JsonWriter *json, const ScanRecord *scan) {
    const bool is_known = scan->seconds[scan->format_count] > 0;
    json_key(json, "costs");
    json_begin_object(json);
    for (int f = 0; is_known && f <= scan->format_count; f++) {
        json_key(json, scan_format_name(scan, f));
        json_begin_object(json);
        json_put_number(json, "seconds", scan->seconds[f]);
        json_put_integer(json, "activations", scan->activations[f]);
        const RoundsGain gain = scan_pass_gain(scan, f);
        write_gain(json, &gain, scan->pass_rounds[f], scan->pass_round_count[f]);
        json_end_object(json);
    }
    json_end_object(json);
}

// With norms and embeddings in it too.
static void write_lowered(JsonWriter *json, const ScanRecord *scan) {
    json_key(json, "costs_with_kept");
    json_begin_object(json);
    for (int f = 0; f < scan->format_count; f++) {
        if (scan->lowered[f].round_count == 0)
            continue;
        json_key(json, scan->formats[f]);
        json_begin_object(json);
        json_put_number(json, "seconds", scan->lowered[f].seconds);
        json_put_integer(json, "activations", scan->lowered[f].activations);
        const RoundsGain gain = scan_lowered_gain(scan, f);
        write_gain(json, &gain, scan->lowered[f].rounds, scan->lowered[f].round_count);
        json_end_object(json);
    }
    json_end_object(json);
}

// The keys tell of the scan's metric.
static void write_result(JsonWriter *json, const ScanTraining *training) {
    json_put_number(json, "metric", training->result);
    json_put_number(json, "metric_worse", training->worse);
    json_put_reading(json, "metric_interval_95", training->worse_interval);
    json_key(json, "metric_seeds");
    json_begin_array(json);
    for (int seed = 0; seed < SCAN_MOST_SEEDS; seed++)
        if (training->seeds[seed].has_result)
            json_number(json, training->seeds[seed].result);
    json_end_array(json);
}

static void write_trainings(JsonWriter *json, const ScanRecord *scan) {
    json_key(json, "trainings");
    json_begin_array(json);
    for (int i = 0; i < scan->training_count; i++) {
        const ScanTraining *training = &scan->trainings[i];
        if (scan_training_of(scan, training->label) != training)
            continue;
        json_begin_object(json);
        json_put_text(json, "label", training->label);
        json_put_number(json, "loss", training->loss);
        json_put_number(json, "above", training->above);
        json_put_reading(json, "interval_95", training->interval);
        json_put_number(json, "step_seconds", training->seconds);
        json_put_integer(json, "diverged", training->broken);
        json_put_boolean(json, "within", training->is_within);
        const ScanOutcome outcome = scan_outcome(scan, training);
        json_put_boolean(json, "told", outcome != SCAN_OPEN);
        json_put_text(json, "outcome", scan_outcome_name(outcome));
        if (scan->metric[0])
            write_result(json, training);
        const RoundsGain gain = scan_step_gain(scan, training);
        write_gain(json, &gain, training->rounds, training->round_count);
        json_key(json, "seeds");
        json_begin_array(json);
        for (int seed = 0; seed < SCAN_MOST_SEEDS; seed++)
            if (training->seeds[seed].is_known)
                json_number(json, training->seeds[seed].loss);
        json_end_array(json);
        json_key(json, "skipped"); // null: an older version did not count
        json_begin_array(json);
        for (int seed = 0; seed < SCAN_MOST_SEEDS; seed++)
            if (training->seeds[seed].is_known && training->seeds[seed].has_skipped)
                json_integer(json, training->seeds[seed].skipped);
            else if (training->seeds[seed].is_known)
                json_null(json);
        json_end_array(json);
        json_put_boolean(json, "seeds_alike", scan_seeds_are_alike(scan, training));
        json_end_object(json);
    }
    json_end_array(json);
}

void scan_write_json(const ScanRecord *scan) {
    JsonWriter json = {.stream = stdout};
    char verdict[SCAN_VERDICT_SIZE], next[SCAN_NEXT_SIZE] = "", keep[SCAN_KEEP_SIZE];
    scan_verdict(scan, verdict);
    scan_keep_fp32(scan, SCAN_BY_POLICY, keep);
    json_begin_object(&json);
    if (scan->id > 0)
        json_put_integer(&json, "id", scan->id);
    json_put_text(&json, "subject", scan->subject);
    json_put_text(&json, "device", scan->device);
    json_put_integer(&json, "threads", scan->threads);
    json_put_reading(&json, "others_busy", scan->others);
    json_put_number(&json, "tolerance", scan->tolerance);
    json_put_number(&json, "within", scan->within);
    json_put_text(&json, "metric", scan->metric[0] ? scan->metric : NULL);
    json_put_boolean(&json, "ended", scan->ended_ms > 0);
    json_put_integer(&json, "cells", scan_cells_known(scan));
    write_layers(&json, scan);
    write_costs(&json, scan);
    write_lowered(&json, scan);
    write_trainings(&json, scan);
    json_put_integer(&json, "rounds", scan->rounds);
    json_put_boolean(&json, "verified", !scan_unverified(scan));
    json_put_text(&json, "unverified", scan_unverified(scan));
    json_put_text(&json, "keep_fp32", keep[0] ? keep : NULL);
    json_put_text(&json, "policy_file", scan->policy_file[0] ? scan->policy_file : NULL);
    json_put_text(&json, "verdict", verdict);
    if (scan->has_policy && scan->ended_ms > 0)
        scan_next_command(scan, scan->policy_file[0] ? scan->policy_file : "policy.lua", next);
    json_put_text(&json, "next", next[0] ? next : NULL);
    json_end_object(&json);
    putchar('\n');
}
