"""Finds the change points of series with Apache Otava, and prints how right it is, and Assay beside it.

Each line of the input is a set of series as JSON, with the truth and what Assay found.
"""

import json
import sys
import time

import numpy
from otava.analysis import compute_change_points

NEAR = 2  # A change that is found at most this many points off is right.
COLUMNS = ("set", "program", "recall, %", "precision, %", "off by, points", "false, of series", "seconds")
ROW = "{:<28}{:<22}{:>10}{:>14}{:>16}{:>18}{:>9}"


def judged(truth, found):
    """Returns the changes that were found, those that are false, and how far off the others are."""
    left = sorted(found)
    errors = []
    for change in truth:
        near = [place for place in left if abs(place - change) <= NEAR]
        if near:
            best = min(near, key=lambda place: abs(place - change))
            left.remove(best)
            errors.append(abs(best - change))
    return len(errors), len(left), errors


def row(name, program, truths, founds, seconds):
    right, wrong, errors, with_false = 0, 0, [], 0
    for truth, found in zip(truths, founds):
        hits, false, off = judged(truth, found)
        right, wrong, errors = right + hits, wrong + false, errors + off
        with_false += false > 0
    all_changes = sum(map(len, truths))
    recall = f"{100 * right / all_changes:.0f}" if all_changes else "-"
    precision = f"{100 * right / (right + wrong):.0f}" if right + wrong else "-"
    off = f"{sum(errors) / len(errors):.2f}" if errors else "-"
    print(ROW.format(name, program, recall, precision, off, f"{with_false} of {len(founds)}", f"{seconds:.2f}"))


# The default, and the threshold at which each series is tested about as strictly as in a family of 60.
PROGRAMS = (("otava, p 0.001", 0.001), ("otava, p 0.0001", 0.0001))

print(ROW.format(*COLUMNS))
for line in sys.stdin:
    data = json.loads(line)
    # Of an array, Otava would not look at a window alone.
    values = [numpy.exp(series).tolist() for series in data["series"]]
    row(data["name"], "assay", data["truth"], data["found"], data["seconds"])
    for program, p in PROGRAMS:
        begun = time.perf_counter()
        found = []
        for series in values:
            changes, _ = compute_change_points(series, window_len=50, max_pvalue=p, min_magnitude=0.01)
            found.append([int(change.index) for change in changes])
        row("", program, data["truth"], found, time.perf_counter() - begun)
