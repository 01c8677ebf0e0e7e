"""Compute some of the committed quality results again, and say whether they are equal to the printed digits.

usage: NEIGHBORAGG_DATA=… python -m benchmarks recompute [--every 6] [--against rows.jsonl]

Matrix libraries choose their kernels by the processor, and the network's optimization carries the last digit on: to
tell a change of code from a change of machine, compare with rows that the earlier code computed on this one.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks._record import RESULTS
from benchmarks.paper import ALL_METHODS, LabelNoiseTask, label_noise_plan
from benchmarks.runs import Task

# Digits that the tables show, of figures between 0 and 1.
TRUST_DIGITS = {"auroc": 4, "ap_success": 4, "ap_error": 4, "aurc": 4, "augrc": 4, "ece": 4}
LABEL_DIGITS = {"average_precision": 3, "precision_at_recall_90": 3, "flag_f1": 3, "estimated_rate": 3}


def trust_tasks() -> list[Task]:
    """Three data sets, two base classifiers, two splits."""
    return [
        Task(name, base, seed, ALL_METHODS)
        for name in ("letter", "landsat", "magic_gamma")
        for base in ("LR", "RF")
        for seed in (0, 1)
    ]


def compare(path: Path, tasks: Iterable[Task | LabelNoiseTask], digits: dict[str, int]) -> Iterator[bool]:
    """Print each cell that was recomputed, and yield whether all of its figures are as committed."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for task in tasks:
        cell = task.cell()
        committed = {row["method"]: row for row in rows if {key: row.get(key) for key in cell} == cell}
        differences = [
            f"{row['method']} {key} {committed[row['method']][key]:.6f} -> {row[key]:.6f}"
            for row in task.limited_to([name for name in task.methods if name in committed]).rows()
            for key, n in digits.items()
            if key in row and round(row[key], n) != round(committed[row["method"]][key], n)
        ]
        print(*cell.values(), f"{len(committed)} methods:", "; ".join(differences) or "equal", flush=True)
        yield not differences


def main() -> None:
    """Recompute, compare, and fail if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=6, help="take every n-th cell of the label comparison")
    parser.add_argument("--against", type=Path, help="rows to compare with, instead of the committed ones")
    options = parser.parse_args()
    labels = label_noise_plan(1)[:: options.every]
    equal = [*compare(options.against or RESULTS / "tabular.jsonl", trust_tasks(), TRUST_DIGITS)]
    equal += compare(options.against or RESULTS / "mislabel.jsonl", labels, LABEL_DIGITS)
    print(f"{sum(equal)} of {len(equal)} cells equal to the printed digits")
    sys.exit(not all(equal))


if __name__ == "__main__":
    main()
