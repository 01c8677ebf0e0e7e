"""How the cost of trust grows: time and memory as rows, features, classes and queries double.

One axis at a time grows from a common shape, on made data. Measured are the default fit of a trust method, scoring,
and finding wrong labels, this beside cleanlab (its `find_label_issues` on the same probabilities, and the graph of
nearest neighbors that its Datalab builds from the features). Every shape is a process of its own on one thread; times
are CPU seconds, memory is the largest beyond what was there before the call. The exponent of an axis is the slope of
log time over log size: 1 is linear, 0 does not grow.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from benchmarks._record import current_memory, save
from benchmarks.datasets import add_label_noise
from neighboragg import NeighborAgg, find_mislabeled

BASE = {"rows": 5000, "features": 16, "classes": 5, "queries": 2500}
AXES = {
    "rows": (5000, 10_000, 20_000),
    "features": (16, 32, 64),
    "classes": (5, 10, 20),
    "queries": (2500, 5000, 10_000),
}
LARGE = {"rows": (10_000, 100_000, 1_000_000)}
CALLS = ("fit", "score", "find_mislabeled", "cleanlab")
# Rows beyond which a call is left out, as it would take hours or all of the memory.
MAX_ROWS = {"find_mislabeled": 100_000, "cleanlab": 20_000}
NOISE, TIME_LIMIT = 0.05, 3600


def make_data(shape: dict[str, int]) -> tuple[Any, Any]:
    n = shape["rows"] + shape["queries"]
    X, y = make_classification(
        n, shape["features"], n_informative=12, n_redundant=4, n_classes=shape["classes"],
        n_clusters_per_class=1, class_sep=1.0, random_state=0,
    )  # fmt: skip
    return X, y


def calls(shape: dict[str, int]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each call by name, when all that comes before it has been done."""
    X, y = make_data(shape)
    known, new = slice(0, shape["rows"]), slice(shape["rows"], None)
    val = np.arange(shape["rows"]) % 5 == 0
    train, held = np.flatnonzero(~val), np.flatnonzero(val)
    proba = GaussianNB().fit(X[train], y[train]).predict_proba(X)
    method = NeighborAgg()
    about = {"X_val": X[held], "y_val": y[held], "proba_val": proba[held]}
    rows, labels = X[train], y[train]
    yield "fit", lambda: method.fit(rows, labels, **about)
    yield "score", lambda: method.score_samples(X[new], proba[new])
    noisy = add_label_noise(y[known], rate=NOISE, random_state=0).y
    proba = cross_val_predict(GaussianNB(), X[known], noisy, cv=5, method="predict_proba")
    yield (
        "find_mislabeled",
        lambda: find_mislabeled(X[known], noisy, proba=proba, features="passthrough"),
    )
    yield "cleanlab", lambda: cleanlab(X[known], noisy, proba)


def cleanlab(X: Any, y: Any, proba: Any) -> None:
    from cleanlab.filter import find_label_issues
    from cleanlab.internal.neighbor.knn_graph import create_knn_graph_and_index

    find_label_issues(y, proba, n_jobs=1)
    create_knn_graph_and_index(X)


def measure(shape: dict[str, int]) -> dict[str, dict[str, float]]:
    """CPU seconds and memory of every call."""
    found = {}
    for name, call in calls(shape):
        if shape["rows"] > MAX_ROWS.get(name, np.inf):
            continue
        ctypes.CDLL(None).malloc_trim(0)  # memory that is free already does not hide what the call takes
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before, start = current_memory(), time.process_time()
        call()
        seconds = time.process_time() - start
        status = Path("/proc/self/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
        found[name] = {"cpu_seconds": seconds, "extra_memory_mib": peak - before}
    return found


def in_own_process(shape: dict[str, int]) -> dict[str, dict[str, float]] | None:
    """What was measured; None if it took too long or did not fit."""
    environment = dict(os.environ) | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--measure", json.dumps(shape)]
    try:
        done = subprocess.run(command, check=True, capture_output=True, env=environment, timeout=TIME_LIMIT)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def exponent(sizes: list[int], values: list[float]) -> float:
    """Slope of log value over log size."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def along(axis: str, sizes: tuple[int, ...], known: dict[str, Any]) -> list[dict[str, Any]]:
    """Every call at every size; `known` has shapes measured already."""
    rows: list[dict[str, Any]] = []
    for size in sizes:
        shape = BASE | {axis: size}
        name = json.dumps(shape)
        if name not in known:
            known[name] = in_own_process(shape)
        if known[name] is None:
            print(f"{axis} {size:,}: more than {TIME_LIMIT} s, or more than the memory", flush=True)
            rows += [{"call": call, "axis": axis, "size": size, "done": False} for call in CALLS]
            break
        for call, found in known[name].items():
            if axis != "queries" or call == "score":
                rows.append({"call": call, "axis": axis, "size": size, "done": True, **found})
    for call in CALLS:
        some = [row for row in rows if row["call"] == call and row["done"]]
        if len(some) > 1:
            slope = exponent([row["size"] for row in some], [row["cpu_seconds"] for row in some])
            figures = "".join(
                f"{row['cpu_seconds']:>9.2f} s{row['extra_memory_mib']:>6.0f} MiB" for row in some
            )
            print(f"{axis:<9} {call:<16}{figures}   exponent {slope:.2f}", flush=True)
            for row in some:
                row["exponent"] = slope
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--axes", nargs="+", choices=AXES, default=tuple(AXES))
    parser.add_argument("--large", action="store_true", help="10,000 to 1,000,000 rows instead")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(json.loads(args.measure))))
        return
    axes = LARGE if args.large else {axis: AXES[axis] for axis in args.axes}
    known: dict[str, Any] = {}
    rows = [row for axis, sizes in axes.items() for row in along(axis, sizes, known)]
    if args.large or set(args.axes) == set(AXES):
        save("growth_large" if args.large else "growth", rows, 0)


if __name__ == "__main__":
    main()
