"""Rows that come in groups: trust with and without `groups=`, and whether the warning appears.

Made groups on real data: *copies*, five of each row with a little noise in its numbers, and *blocks*, fifty rows that
share an offset of all numbers and a mix of classes, as rows of one day or one device do. Groups are split 40/10/50, so
new rows are of other groups than all labeled ones.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._record import save
from benchmarks.runs import load_matrix
from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg.exceptions import TrustWarning
from neighboragg.methods import MaxConfidence, TemperatureScaling
from neighboragg.metrics import auroc, expected_calibration_error

SETS = ("letter", "landsat", "adult")
N_SEEDS, N_PLAIN = 2, 50
N_ROWS, COPIES, BLOCK = 7500, 5, 50
CLASSIFIERS = {
    "LR": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "RF": lambda seed: RandomForestClassifier(random_state=seed, min_samples_leaf=3),
}


def copies(X: Any, y: Any, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Five near copies of each of some rows."""
    rows = np.repeat(rng.permutation(len(X))[: N_ROWS // COPIES], COPIES)
    return (
        _shifted(X, rows, 0.05 * rng.normal(size=(len(rows), X.shape[1]))),
        y[rows],
        np.arange(len(rows)) // COPIES,
    )


def blocks(X: Any, y: Any, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Blocks of rows with an offset, and a mix of classes, of their own."""
    codes = np.unique(y, return_inverse=True)[1]
    sizes = np.bincount(codes)
    rows = []
    for _ in range(N_ROWS // BLOCK):
        weight = rng.dirichlet(np.ones(len(sizes)))[codes] / sizes[codes]
        rows.append(rng.choice(len(X), BLOCK, replace=False, p=weight / weight.sum()))
    chosen = np.concatenate(rows)
    offsets = np.repeat(rng.normal(size=(len(rows), X.shape[1])), BLOCK, axis=0)
    return _shifted(X, chosen, 0.5 * offsets), y[chosen], np.arange(len(chosen)) // BLOCK


def plain(X: Any, y: Any, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Rows without groups."""
    rows = rng.permutation(len(X))[:N_ROWS]
    return X[rows], y[rows], np.arange(len(rows))


def _shifted(X: Any, rows: Any, by: Any) -> Any:
    """Rows with their numbers moved, in standard deviations; columns of two values stay."""
    numbers = np.array([len(np.unique(column)) > 2 for column in X.T])
    return X[rows] + by * X.std(axis=0) * numbers


def cell(name: str, make: Any, base: str, seed: int, *, effort: str = "balanced") -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    X, y, groups = make(*load_matrix(name), rng)
    order = rng.permutation(np.unique(groups))
    train, val, test = (
        np.isin(groups, part) for part in np.split(order, [int(0.4 * len(order)), int(0.5 * len(order))])
    )
    classifier = FrozenEstimator(CLASSIFIERS[base](seed).fit(X[train], y[train]))
    methods = {
        "max-softmax": (MaxConfidence(), {}),
        "temperature scaling": (TemperatureScaling(), {}),
        "neighboragg": (NeighborAgg(effort=effort), {}),
        "neighboragg, groups=": (
            NeighborAgg(effort=effort),
            {"groups": groups[train], "groups_val": groups[val]},
        ),
    }
    found = []
    for method, (trust, given) in methods.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TrustWarning)
            model = TrustedClassifier(classifier, trust).fit(
                X[train], y[train], X_val=X[val], y_val=y[val], **given
            )
        assessed = model.assess(X[test])
        correct = assessed.predicted == y[test]
        row = {"set": name, "groups": make.__name__, "base": base, "seed": seed, "method": method}
        row |= {
            "auroc": auroc(correct, assessed.trust),
            "ece": expected_calibration_error(correct, assessed.trust),
        }
        row["warned"] = any("come in groups" in str(one.message) for one in caught)
        if assessed.familiarity is not None:
            row["unfamiliar"] = float((assessed.familiarity <= 0.05).mean())
        found.append(row)
    return found


def main() -> None:
    rows = []
    for name in SETS:
        for make in (copies, blocks):
            for base in CLASSIFIERS:
                for seed in range(N_SEEDS):
                    rows += cell(name, make, base, seed)
                for method in dict.fromkeys(row["method"] for row in rows):
                    some = [
                        r
                        for r in rows
                        if (r["set"], r["groups"], r["base"], r["method"])
                        == (name, make.__name__, base, method)
                    ]
                    print(
                        name,
                        make.__name__,
                        base,
                        method,
                        *(
                            f"{key} {100 * np.mean([r[key] for r in some]):.1f}"
                            for key in ("auroc", "ece", "warned", "unfamiliar")
                            if key in some[0]
                        ),
                        flush=True,
                    )
        some = [cell(name, plain, "LR", seed, effort="fast")[2] for seed in range(N_PLAIN)]
        rows += some
        print(name, "without groups: warned", np.mean([row["warned"] for row in some]), flush=True)
    save("groups", rows, 0)


if __name__ == "__main__":
    main()
