"""A thousand classes: CPU seconds and memory to fit the default trust method, and to score.

50,000 × 64 rows of 1,000 classes around centers of their own, a fifth of them validation rows. Memory is the largest
beyond what was there before the call. Run it once for each version of the library, with PYTHONPATH saying which.

With --fewer-rows: what it changes that the pool is fitted on fewer validation rows where there are so many classes,
beside a fit on as many as with few classes, on rows that neither has seen.
"""

import argparse
import json
import time
from typing import Any

import numpy as np

from benchmarks._record import RESULTS, peak_memory, save
from neighboragg import NeighborAgg
from neighboragg._pool import row_weights
from neighboragg.metrics import auroc, average_precision_error

N_ROWS, N_FEATURES, N_CLASSES, N_SCORED = 50_000, 64, 1000, 2000


def make_data(*, noise: float = 1.0, blur: float = 0.0) -> tuple[Any, Any, Any, Any]:
    """Rows, classes, which are validation rows, and what a classifier that knows the centers so well says of those."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(N_CLASSES, N_FEATURES)).astype(np.float32)
    y = np.arange(N_ROWS) % N_CLASSES
    X = (centers[y] + noise * rng.normal(size=(N_ROWS, N_FEATURES))).astype(np.float32)
    val = rng.permutation(N_ROWS) < N_ROWS // 5
    known = centers + blur * rng.normal(size=centers.shape).astype(np.float32)
    logits = X[val] @ known.T
    logits -= logits.max(axis=1, keepdims=True)
    proba = np.exp(0.1 * logits, dtype=np.float64)
    return X, y, val, proba / proba.sum(axis=1, keepdims=True)


def measure() -> list[dict[str, Any]]:
    X, y, val, proba = make_data()
    before, start = peak_memory(), time.process_time()
    method = NeighborAgg().fit(X[~val], y[~val], X_val=X[val], y_val=y[val], proba_val=proba)
    found = [("fit", time.process_time() - start, peak_memory() - before)]
    start = time.process_time()
    method.score_samples(X[val][:N_SCORED] + 0.1, proba[:N_SCORED])
    found.append((f"score {N_SCORED:,}", time.process_time() - start, peak_memory() - before))
    return [{"call": call, "cpu_seconds": cpu, "extra_memory_mib": peak} for call, cpu, peak in found]


def effect_of_fewer_rows() -> list[dict[str, Any]]:
    """Quality of trust by the number of rows that the pool is fitted on, and how far it moves."""
    X, y, val, proba = make_data(noise=2.5, blur=0.8)
    seen, new = np.flatnonzero(val)[N_SCORED:], np.flatnonzero(val)[:N_SCORED]
    correct = proba[:N_SCORED].argmax(axis=1) == y[new]
    found: list[dict[str, Any]] = []
    reference = None
    for most in (row_weights.MAX_POOL_ROWS * N_CLASSES, row_weights.MAX_POOL_VALUES):
        row_weights.MAX_POOL_VALUES = most
        method = NeighborAgg()
        method.fit(X[~val], y[~val], X_val=X[seen], y_val=y[seen], proba_val=proba[N_SCORED:])
        trust = method.score_samples(X[new], proba[:N_SCORED])
        reference = trust if reference is None else reference
        moved = np.abs(trust - reference)
        found.append(
            {
                "rows": min(most // N_CLASSES, len(seen)),
                "accuracy": float(correct.mean()),
                "auroc": float(auroc(correct, trust)),
                "ap_error": float(average_precision_error(correct, trust)),
                "mean_change": float(moved.mean()),
                "largest_change": float(moved.max()),
            }
        )
        print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fewer-rows", action="store_true", help="measure what fewer validation rows change")
    parser.add_argument("--version", default="after", help="what to call the version measured")
    args = parser.parse_args()
    if args.fewer_rows:
        save("many_classes_rows", effect_of_fewer_rows(), 0)
        return
    path = RESULTS / "many_classes.json"
    earlier = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = [{"version": args.version, **row} for row in measure()]
    for row in rows:
        print(f"{row['call']:<14}{row['cpu_seconds']:>8.1f} s{row['extra_memory_mib']:>8.0f} MiB")
    save("many_classes", [row for row in earlier if row["version"] != args.version] + rows, 0)


if __name__ == "__main__":
    main()
