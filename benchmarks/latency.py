"""One row at a time: what trust adds to the classifier's own call, beside an earlier version in the same run.

A service that answers one request at a time pays for every check and every small array. For each classifier, the time
of `predict_proba` of its pipeline and of `TrustedClassifier.assess`, which gives label, probability, trust and
familiarity, on rows that came one by one. With --before SRC, a folder with the sources of an earlier version, both
versions work side by side in processes of their own and are timed in turns, and the results say how far apart the
trust of both is. And the search for one row among 40,000 × 64 beside reading as many numbers once. Times are CPU time
on one thread, so that others on the machine are not counted. Of each row the shortest over the rounds counts; figures
are medians over the rows.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from benchmarks._record import save
from benchmarks.datasets import load_dataset
from neighboragg import TrustedClassifier
from neighboragg.search import ClasswiseNeighbors

N_FITTED, N_ASKED, ROUNDS = 10_000, 40, 9
N_COMPARED = 200
N_ROWS, N_FEATURES, N_CLASSES = 40_000, 64, 10
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "LR": lambda: LogisticRegression(max_iter=300),
    "RF": lambda: RandomForestClassifier(random_state=0),
    "HGB": lambda: HistGradientBoostingClassifier(max_iter=30, random_state=0),
}
SETS = ("letter", "adult", "made 50,000 × 64")
CASES = [(name, base) for name in SETS for base in (CLASSIFIERS if name in ("letter", "adult") else ("LR",))]


def rows_of(name: str) -> tuple[Any, Any]:
    """Rows in random order and their labels: an array of numbers, or a frame with categories."""
    if name.startswith("made"):
        X, y = make_classification(50_000 + N_COMPARED, 64, n_informative=24, n_classes=10, random_state=0)
        return X, y
    dataset = load_dataset(name)
    order = np.random.default_rng(0).permutation(len(dataset.y))
    if dataset.categorical_names:
        return dataset.to_frame().drop(columns="label").iloc[order], dataset.y[order]
    return dataset.numeric[order], dataset.y[order]


def pipeline(X: Any, base: str) -> Any:
    if not hasattr(X, "columns"):
        return make_pipeline(StandardScaler(), CLASSIFIERS[base]())
    if base == "HGB":
        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    else:
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    categories = make_column_selector(dtype_include="category")
    numbers = make_column_selector(dtype_include="number")
    return make_pipeline(
        make_column_transformer((encoder, categories), (StandardScaler(), numbers)), CLASSIFIERS[base]()
    )


def one_by_one(X: Any, start: int, n: int) -> list[Any]:
    """Rows apart, of the kind that `X` is."""
    take = X.iloc if hasattr(X, "iloc") else X
    return [take[i : i + 1] for i in range(start, start + n)]


def milliseconds(call: Callable[[Any], Any], rows: list[Any]) -> list[float]:
    times = []
    for row in rows:
        start = time.process_time()
        call(row)
        times.append(1e3 * (time.process_time() - start))
    return times


def class_trust(model: Any, rows: list[Any]) -> list[float]:
    """All that is said about the rows, one by one."""
    return np.concatenate([model.assess(row).class_trust for row in rows]).ravel().tolist()


def work(name: str, base: str) -> None:
    """Fit, then time a round for every line that comes in; the first answer is the trust in some rows."""
    X, y = rows_of(name)
    n_fitted = len(y) - N_COMPARED if name.startswith("made") else N_FITTED
    model = TrustedClassifier(pipeline(X, base), random_state=0).fit(X[:n_fitted], y[:n_fitted])
    rows = one_by_one(X, n_fitted, N_COMPARED)
    method, vectors = model.method_, [model._vectorizer.transform(row, model.estimator_[:-1]) for row in rows]
    indexes = method.neighborhoods_.indexes
    mapped = [{name: method.spaces_.map(name, vector) for name in indexes} for vector in vectors]

    def search(row: dict[str, Any]) -> None:
        for name, index in indexes.items():
            index.kneighbors(row[name])

    print(json.dumps(class_trust(model, rows)), flush=True)
    for _ in sys.stdin:
        found = {
            "own_ms": milliseconds(model.estimator_.predict_proba, rows[:N_ASKED]),
            "with_trust_ms": milliseconds(model.assess, rows[:N_ASKED]),
            "search_ms": milliseconds(search, mapped[:N_ASKED]),
        }
        print(json.dumps(found), flush=True)


def reading() -> list[dict[str, Any]]:
    """One row searched for among many, beside what reads each of their numbers once, in turns."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
    queries = [rng.normal(size=(1, N_FEATURES)) for _ in range(N_ASKED)]
    labels = rng.integers(0, N_CLASSES, N_ROWS)
    indexes = {k: ClasswiseNeighbors(k).fit(rows, labels) for k in (5, 20)}
    asked: dict[str, Callable[[Any], Any]] = {
        "matrix times vector": lambda query: rows @ query[0].astype(np.float32),
        "sum of the matrix": lambda query: rows.sum(),
        **{f"search, {k} neighbors": index.kneighbors for k, index in indexes.items()},
    }
    rounds = [{name: milliseconds(call, queries) for name, call in asked.items()} for _ in range(ROUNDS)]
    found = {name: float(np.median(np.min([times[name] for times in rounds], axis=0))) for name in asked}
    once = found["matrix times vector"]
    shape = {"rows": N_ROWS, "features": N_FEATURES, "classes": N_CLASSES}
    return [{**shape, "call": name, "ms": ms, "over_reading": ms / once} for name, ms in found.items()]


class Version:
    """A version of the library at work on one case, in a process of its own."""

    def __init__(self, source: Path | None, case: tuple[str, str]) -> None:
        environment = dict(os.environ) | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        if source is not None:
            environment["PYTHONPATH"] = str(source.resolve())
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.latency", "--case", *case],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.said = self._answer()
        self.rounds: list[dict[str, list[float]]] = []

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def run(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.rounds.append(self._answer())

    def figures(self) -> dict[str, float]:
        self.process.communicate()
        best = {key: np.min([found[key] for found in self.rounds], axis=0) for key in self.rounds[0]}
        best["added_ms"] = best["with_trust_ms"] - best["own_ms"]
        return {key: float(np.median(times)) for key, times in best.items()}


def measure(case: tuple[str, str], before: Path | None) -> list[dict[str, Any]]:
    versions = {"after": Version(None, case)}
    if before is not None:
        versions = {"before": Version(before, case)} | versions
    for _ in range(ROUNDS):
        for version in versions.values():
            version.run()
    said = np.array([version.said for version in versions.values()])
    apart = float(np.ptp(said, axis=0).max())
    return [
        {"set": case[0], "base": case[1], "version": name, **version.figures(), "largest_difference": apart}
        for name, version in versions.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="sources of an earlier version, e.g. of `git archive`")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--bases", nargs="+", choices=CLASSIFIERS, default=tuple(CLASSIFIERS))
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        work(*args.case)
        return
    read_once = reading()
    for row in read_once:
        print(f"{row['call']:<24}{row['ms']:>8.3f} ms{row['over_reading']:>8.2f} × matrix times vector")
    print(f"{'ms':<24}{'version':<9}{'own':>8}{'with trust':>12}{'added':>8}{'ratio':>8}{'search':>8}")
    found = []
    chosen = [case for case in CASES if case[0] in args.sets and case[1] in args.bases]
    for case in chosen:
        for row in measure(case, args.before):
            ratio = row["with_trust_ms"] / row["own_ms"]
            print(
                f"{row['set'] + ', ' + row['base']:<24}{row['version']:<9}{row['own_ms']:>8.2f}"
                f"{row['with_trust_ms']:>12.2f}{row['added_ms']:>8.2f}{ratio:>8.1f}{row['search_ms']:>8.2f}"
                f"   trust differs by {row['largest_difference']:.1e} at most"
            )
            found.append(row)
    if chosen == CASES:
        save("latency", found, 0)
        save("one_query", read_once, 0)


if __name__ == "__main__":
    main()
