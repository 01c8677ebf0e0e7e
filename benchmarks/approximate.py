"""Approximate search: what it costs to build and to ask, what it finds, and what trust loses by it.

Each setting is a whole `NeighborAgg(effort="fast", learned_metric=False)` with 20 neighbors, fitted on validation rows
through the same search that judges the test rows. Made data lie near a surface of six dimensions, or fill all of theirs
with normal numbers, which is hard for any index; Fashion-MNIST in 64 principal components is real. The classifier is a
logistic regression, on Fashion-MNIST of 20 of the features, so that there are errors to find. Seconds are those of
processor time on one thread. Recall is measured on the test rows, which nobody has seen, in the class where it is
lowest.

Data: NEIGHBORAGG_DATA, or what has been downloaded.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from benchmarks._record import RESULTS, read, save
from benchmarks.datasets import load_dataset
from neighboragg import NeighborAgg
from neighboragg.exceptions import TrustWarning
from neighboragg.metrics import auroc, average_precision_error
from neighboragg.search import Approximate, Exact
from neighboragg.search._kernel import kernel_in_use

N_VAL, N_TEST, N_TRAINING = 2000, 5000, 20_000
K, RECALLS, SEED = 20, (0.9, 0.95, 0.99), 0
SEARCHES = 5


class Problem(NamedTuple):
    name: str
    X: Any  # reference rows, then validation rows, then test rows
    y: Any
    seen: slice  # features that the classifier sees


def on_a_surface(n: int, d: int, n_classes: int) -> Problem:
    rng = np.random.default_rng(SEED)
    n += N_VAL + N_TEST
    hidden = rng.normal(size=(n, 6))
    X = np.tanh(hidden @ rng.normal(size=(6, d))) + 0.05 * rng.normal(size=(n, d))
    scores = np.sin(2 * hidden) @ rng.normal(size=(6, n_classes)) + 0.5 * rng.normal(size=(n, n_classes))
    return Problem("surface", X.astype(np.float32), scores.argmax(axis=1), slice(None))


def normal(n: int, d: int, n_classes: int) -> Problem:
    rng = np.random.default_rng(SEED)
    n += N_VAL + N_TEST
    X = rng.normal(size=(n, d))
    scores = np.sin(2 * X[:, :4]) @ rng.normal(size=(4, n_classes)) + 0.5 * rng.normal(size=(n, n_classes))
    return Problem("normal", X.astype(np.float32), scores.argmax(axis=1), slice(None))


def fashion(n: int, d: int, n_classes: int) -> Problem:
    data = load_dataset("fashion_mnist")
    order = np.random.default_rng(SEED).permutation(len(data.y))[: n + N_VAL + N_TEST]
    X = data.images[order] / 255
    X = PCA(d, svd_solver="randomized", random_state=SEED).fit(X[:N_TRAINING]).transform(X)
    return Problem("Fashion-MNIST", X.astype(np.float32), data.y[order], slice(0, 20))


SHAPES: list[tuple[Callable[[int, int, int], Problem], int, int, int]] = [
    (on_a_surface, 200_000, 16, 2),
    (on_a_surface, 1_000_000, 8, 2),
    (normal, 200_000, 16, 2),
    (fashion, 60_000, 64, 10),
    (on_a_surface, 100_000, 128, 10),
]


SETTINGS: list[tuple[str, Any]] = [
    ("exact", Exact()),
    *(("always", Approximate(recall, always=True)) for recall in RECALLS),
    ("where faster", Approximate(0.99)),
]


def cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def measure(problem: Problem, n: int) -> list[dict[str, Any]]:
    X, y, (val, test) = problem.X, problem.y, (slice(n, n + N_VAL), slice(n + N_VAL, None))
    model = LogisticRegression(max_iter=1000).fit(X[:N_TRAINING, problem.seen], y[:N_TRAINING])
    P = model.predict_proba(X[n:, problem.seen])
    P_val, P_test = P[:N_VAL], P[N_VAL:]
    correct = model.classes_[P_test.argmax(axis=1)] == y[test]
    rows: list[dict[str, Any]] = []
    exact_trust, last = np.empty(0), np.empty(0)
    for name, search in SETTINGS:
        method = NeighborAgg(n_neighbors=K, effort="fast", learned_metric=False, search=search)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TrustWarning)
            fit_seconds, _ = cpu(
                lambda method=method: method.fit(
                    X[:n], y[:n], X_val=X[val], y_val=y[val], proba_val=P_val, classes=model.classes_
                )
            )
        index = method.neighborhoods_.indexes["features"]
        # The fastest of several, as others only ever slow one down.
        searches = [cpu(lambda index=index: index.kneighbors(X[test])) for _ in range(SEARCHES)]
        search_seconds, distances = min(seconds for seconds, _ in searches), searches[0][1][0]
        trust = method.score_samples(X[test], P_test)
        if name == "exact":
            exact_trust, last = trust, distances[:, :, -1:]
        difference = np.abs(trust - exact_trust)
        rows.append(
            {
                "data": problem.name, "rows": n, "features": X.shape[1], "classes": len(model.classes_),
                "kernel": kernel_in_use().name, "search": name, "recall_asked": getattr(search, "recall", 1.0),
                "classes_with_index": int((~index.is_exact_).sum()),
                "not_reached": len(caught) > 0,
                "fit_seconds": round(fit_seconds, 2),
                "search_microseconds": round(1e6 * search_seconds / N_TEST, 1),
                "recall_limit": round(float(index.recall_interval_[:, 0].min()), 4),
                "recall_estimated": round(float(index.recall_.min()), 4),
                "recall_measured": round(float((distances <= last).mean(axis=(0, 2)).min()), 4),
                "auroc": round(100 * auroc(correct, trust), 3),
                "ap_error": round(100 * average_precision_error(correct, trust), 3),
                "trust_mean_difference": float(f"{difference.mean():.3g}"),
                "trust_largest_difference": float(f"{difference.max():.3g}"),
            }
        )  # fmt: skip
        print(*rows[-1].values(), flush=True)
    return rows


def which(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a result is of; a later one takes its place."""
    return tuple(row[key] for key in ("data", "rows", "features", "classes", "search", "recall_asked"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", type=int, nargs="*", default=range(len(SHAPES)), help="which, from 0")
    args = parser.parse_args()
    results = {
        which(row): row for row in (read("approximate") if (RESULTS / "approximate.json").exists() else [])
    }
    for number in args.shapes:
        make, n, d, n_classes = SHAPES[number]
        results |= {which(row): row for row in measure(make(n, d, n_classes), n)}
        save("approximate", list(results.values()), SEED)


if __name__ == "__main__":
    main()
