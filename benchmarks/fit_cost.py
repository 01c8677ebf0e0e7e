"""What trust costs: CPU seconds and memory to fit and to score, beside training the base classifier, in one run.

The first figures are those of every effort on about 20,000 rows, of many classes and of two (LetterRecognition and
MagicGamma, or made data of their shapes where they are not at hand), against a random forest of 100 trees on the same
training rows. The second part compares every method on the paper's 40/10/50 split of the first with max-softmax.
"""

import argparse
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks._record import save
from benchmarks.datasets._errors import DatasetNotFoundError
from benchmarks.paper import ALL_METHODS
from benchmarks.runs import ENTRANTS, load_matrix
from neighboragg import NeighborAgg
from neighboragg.trust._compare import make_cell

EFFORTS = ("fast", "balanced", "best")


class Shape(NamedTuple):
    """Size of a data set."""

    n_rows: int
    n_columns: int
    n_classes: int


SETS = {"letter": Shape(20_000, 16, 26), "magic_gamma": Shape(19_020, 10, 2)}


def rows(name: str) -> tuple[str, Any, Any]:
    try:
        return (name, *load_matrix(name))
    except DatasetNotFoundError:
        shape = SETS[name]
        X, y = make_classification(
            shape.n_rows, shape.n_columns, n_informative=shape.n_columns, n_redundant=0,
            n_classes=shape.n_classes, random_state=0,
        )  # fmt: skip
        return f"made data like {name}", X, y


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def against_forest(name: str, X: Any, y: Any, n_rounds: int) -> list[dict[str, Any]]:
    """CPU seconds of each effort over those of a forest: medians over rounds, one after the other."""
    val = np.arange(len(y)) % 5 == 0
    X = StandardScaler().fit_transform(X)
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(n_rounds):
        fit_seconds, forest = cpu_seconds(
            lambda seed=seed: RandomForestClassifier(random_state=seed).fit(X[~val], y[~val])
        )
        score_seconds, proba = cpu_seconds(lambda forest=forest: forest.predict_proba(X[val]))
        found.setdefault("forest", []).append((fit_seconds, score_seconds))
        for effort in EFFORTS:
            seconds, method = cpu_seconds(
                lambda effort=effort, proba=proba: NeighborAgg(effort=effort).fit(
                    X[~val], y[~val], X_val=X[val], y_val=y[val], proba_val=proba
                )
            )
            asked, _ = cpu_seconds(lambda method=method, proba=proba: method.score_samples(X[val], proba))
            found.setdefault(effort, []).append((seconds, asked))
    forest_times = np.array(found["forest"])
    print(
        f"{name}, {X.shape[0]:,} × {X.shape[1]}: CPU seconds to fit and to score {val.sum():,} rows, over a forest's"
    )
    rows = []
    for who, pairs in found.items():
        fit, score = np.median(pairs, axis=0)
        fit_ratio, score_ratio = np.median(np.array(pairs) / forest_times, axis=0)
        print(f"  {who:<10}{fit:8.2f}{score:8.2f}   ratios {fit_ratio:6.2f}{score_ratio:6.2f}")
        rows.append(
            {
                "method": f"effort: {who}",
                "set": name,
                "fit_cpu_seconds": float(fit),
                "score_cpu_seconds": float(score),
                "fit_ratio": float(fit_ratio),
                "score_ratio": float(score_ratio),
                "n_train": int((~val).sum()),
                "n_classes": len(np.unique(y)),
                "rounds": n_rounds,
            }
        )
    return rows


def parts(name: str, X: Any, y: Any) -> list[dict[str, Any]]:
    """Where the time of the default goes."""
    val = np.arange(len(y)) % 5 == 0
    X = StandardScaler().fit_transform(X)
    proba = RandomForestClassifier(random_state=0).fit(X[~val], y[~val]).predict_proba(X[val])
    found = []
    for label, params in (
        ("whole", {}),
        ("without the learned metric", {"learned_metric": False}),
        ("without second opinions", {"effort": "fast"}),
    ):
        seconds, _ = cpu_seconds(
            lambda params=params: NeighborAgg(**params).fit(
                X[~val], y[~val], X_val=X[val], y_val=y[val], proba_val=proba
            )
        )
        print(f"  {label:<28}{seconds:8.2f} CPU s")
        found.append({"method": label, "set": name, "fit_cpu_seconds": seconds})
    return found


def every_method(name: str, X: Any, y: Any) -> list[dict[str, Any]]:
    cell = make_cell(X, y, "RF", 0)
    test = len(cell.test)
    print(f"\n{name}, 40/10/50, base RF: CPU seconds to fit and to score {test:,} rows, peak of new memory")
    print(f"{'method':<18}{'fit s':>9}{'score s':>9}{'MiB':>8}{'score time / max-softmax':>27}")
    found = []
    plain = None
    for method_name in ALL_METHODS:
        if "tuned" in method_name:
            continue  # the method itself, as often as it has settings and folds
        entrant = ENTRANTS[method_name]
        V = cell.vectors[entrant.vectors]

        def fit(V: Any = V, entrant: Any = entrant) -> Any:
            return entrant.make().fit(
                V[cell.train], cell.codes[cell.train], X_val=V[cell.val], y_val=cell.codes[cell.val],
                proba_val=cell.proba[cell.val],
            )  # fmt: skip

        fit_seconds, method = cpu_seconds(fit)
        score, _ = cpu_seconds(
            lambda method=method, V=V: method.score_samples(V[cell.test], cell.proba[cell.test])
        )
        tracemalloc.start()  # in a run of its own, since it slows everything down
        fit().score_samples(V[cell.test], cell.proba[cell.test])
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        plain = plain or score
        print(f"{method_name:<18}{fit_seconds:>9.2f}{score:>9.2f}{peak:>8.0f}{score / plain:>27.0f}")
        found.append(
            {
                "method": method_name,
                "set": name,
                "fit_cpu_seconds": fit_seconds,
                "score_cpu_seconds": score,
                "peak_mib": peak,
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each effort is measured")
    n_rounds = parser.parse_args().rounds
    results = [row for name in SETS for row in against_forest(*rows(name), n_rounds)]
    first = rows("letter")
    results += [*parts(*first), *every_method(*first)]
    save("fit_cost", results, 0)


if __name__ == "__main__":
    main()
