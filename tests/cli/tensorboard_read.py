"""Holds what TensorBoard reads of a run's events against the run's JSON lines.

tensorboard_read.py FOLDER LINES: FOLDER has the file of events. Prints "ok" or what differs.
"""

import json
import math
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def as_float(value):
    """What is left of a number, or of its name in JSON, in 32 bits."""
    return struct.unpack("f", struct.pack("f", float(value)))[0]


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def main():
    read = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0})
    read.Reload()
    points, samples = {}, {}
    with open(sys.argv[2], encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["kind"] == "point" and "value" in row:
                points.setdefault(row["series"], []).append((row["step"], as_float(row["value"])))
            elif row["kind"] == "layer":
                samples.setdefault(row["layer"], []).append(row)
    if not points or not samples:
        return "the run has no points or no samples"
    for name, wanted in points.items():
        found = [(e.step, e.value) for e in read.Scalars(name)]
        if len(found) != len(wanted):
            return f"{name}: {len(found)} points instead of {len(wanted)}"
        for (step, value), (other_step, other) in zip(wanted, found):
            if step != other_step or not same(value, other):
                return f"{name}: {value} at step {step}, read as {other} at step {other_step}"
        times = [e.wall_time for e in read.Scalars(name)]
        if times != sorted(times):
            return f"{name}: time runs backwards"
    for layer, rows in samples.items():
        rows = [row for row in rows if sum(row["histogram"]) > 0]
        found = read.Histograms("gradient exponents/" + layer) if rows else []
        if len(found) != len(rows):
            return f"{layer}: {len(found)} histograms instead of {len(rows)}"
        for row, event in zip(rows, found):
            counts = {
                row["lowest_exponent"] + bin_: count
                for bin_, count in enumerate(row["histogram"])
                if count > 0
            }
            histogram = event.histogram_value
            buckets = zip(histogram.bucket_limit, histogram.bucket)
            if {int(limit) - 1: count for limit, count in buckets if count > 0} != counts:
                return f"{layer}: another histogram at step {row['step']}"
        flushed = {e.step: e.value for e in read.Scalars("flushed/" + layer)} if rows else {}
        for row in rows:
            if flushed[row["step"]] != as_float(row["flushed"] / row["count"]):
                return f"{layer}: another share flushed at step {row['step']}"
    return "ok"


print(main())
