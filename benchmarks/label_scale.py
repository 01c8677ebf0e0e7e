"""Wrong labels among 100,000 × 64 rows of 10 classes: time and memory beside cleanlab, in one run.

Everybody gets the same features and out-of-fold probabilities. cleanlab's `find_label_issues` looks at
probabilities only, so that its nearest-neighbor graph (what its Datalab builds from features) is timed with it.
Each contender works in a process of its own, one after the other.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import scale

from benchmarks._record import current_memory, peak_memory, save
from benchmarks.datasets import add_label_noise
from neighboragg import find_mislabeled

N_ROWS, N_FEATURES, N_CLASSES, NOISE = 100_000, 64, 10, 0.05


def make_data(path: Path, n_rows: int) -> None:
    X, y = make_classification(
        n_rows, N_FEATURES, n_informative=24, n_redundant=16, n_classes=N_CLASSES, n_clusters_per_class=1,
        class_sep=1.0, random_state=0,
    )  # fmt: skip
    X = scale(X)
    noisy = add_label_noise(y, rate=NOISE, random_state=0)
    proba = cross_val_predict(LogisticRegression(), X, noisy.y, cv=5, method="predict_proba")
    np.savez(path, X=X, y=noisy.y, proba=proba, wrong=noisy.mask)


def ours(n_jobs: int | None) -> Callable[[Any], Any]:
    return lambda data: (
        find_mislabeled(
            data["X"], data["y"], proba=data["proba"], features="passthrough", n_jobs=n_jobs
        ).scores
    )


def cleanlab(data: Any) -> Any:
    from cleanlab.filter import find_label_issues
    from cleanlab.internal.neighbor.knn_graph import create_knn_graph_and_index
    from cleanlab.rank import get_label_quality_scores

    find_label_issues(data["y"], data["proba"])
    create_knn_graph_and_index(data["X"])
    return get_label_quality_scores(data["y"], data["proba"], method="normalized_margin")


CONTENDERS: dict[str, Callable[[Any], Any]] = {
    "ours": ours(None),
    "ours, n_jobs=-1": ours(-1),
    "cleanlab": cleanlab,
}


def measure(name: str, path: Path) -> dict[str, Any]:
    """Time, memory beyond the data, and how well the scores point at the wrong labels."""
    with np.load(path) as archive:
        data = dict(archive)
    before = current_memory()
    wall, cpu = time.perf_counter(), time.process_time()
    scores = CONTENDERS[name](data)
    return {
        "contender": name,
        "rows": len(scores),
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "extra_memory_mib": peak_memory() - before,
        "average_precision": float(average_precision_score(data["wrong"], -scores)),
    }


def in_own_process(name: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--contender", name, "--data", str(path)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contender:
        print(json.dumps(measure(args.contender, args.data)))
        return
    print(f"{args.rows:,} × {N_FEATURES}, {N_CLASSES} classes, {NOISE:.0%} wrong labels")
    print(f"{'':<18}{'s':>8}{'CPU s':>8}{'time / cleanlab':>17}{'MiB':>8}{'average precision':>19}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        make_data(path, args.rows)
        found = [in_own_process(name, path) for name in CONTENDERS]
    peer = next(row["seconds"] for row in found if row["contender"] == "cleanlab")
    for row in found:
        row["time_over_cleanlab"] = row["seconds"] / peer
        print(
            f"{row['contender']:<18}{row['seconds']:>8.1f}{row['cpu_seconds']:>8.1f}{row['time_over_cleanlab']:>17.2f}"
            f"{row['extra_memory_mib']:>8.0f}{row['average_precision']:>19.3f}"
        )
    if args.rows == N_ROWS:
        save("label_scale", found, 0)


if __name__ == "__main__":
    main()
