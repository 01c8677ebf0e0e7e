"""Random searches against brute force in double precision: every variant of the search must give its bits.

Ties, copies, offsets, outliers, extreme sizes, rows that leave themselves out, classes without rows, fewer rows than
neighbors; one to 100 queries. `python -m benchmarks search_exactness 10000` takes about ten minutes.
"""

import os
import sys
from typing import Any, NamedTuple

import numpy as np

from benchmarks._record import save
from neighboragg.exceptions import InvalidParameterError
from neighboragg.search import ClasswiseNeighbors
from neighboragg.search._kernel import kernel_in_use

KINDS = ("random", "ties", "copies", "offset", "outliers", "scales", "huge", "subnormal")
SEED = 0


def variants() -> list[str]:
    """The searches that this machine has."""
    names = []
    for name in ("avx512", "avx2", "baseline", "numpy"):
        os.environ["NEIGHBORAGG_KERNEL"] = name
        try:
            names.append(kernel_in_use().name)
        except InvalidParameterError:
            continue
    return names


class Shape(NamedTuple):
    """Rows, queries, features, classes and neighbors."""

    n: int
    q: int
    d: int
    n_classes: int
    k: int


def random_shape(rng: np.random.Generator) -> Shape:
    n, q = int(rng.integers(1, 400)), int(rng.choice([1, 2, 8, 9, 31, 32, 33, 41, 100]))
    d = int(rng.choice([1, 2, 3, 7, 8, 9, 16, 17, 30, 64, 128, 129, 300]))
    n_classes, k = int(rng.choice([1, 2, 5, 26, 80])), int(rng.choice([1, 3, 5, 10, 20, 64, 70]))
    return Shape(n, q, d, n_classes, k)


def problem(rng: np.random.Generator, kind: str, single: bool, shape: Shape) -> tuple[Any, ...]:
    n, q, d, n_classes, k = shape
    X, Q = rng.normal(size=(n, d)), rng.normal(size=(q, d))
    match kind:
        case "ties":
            X, Q = np.rint(X), np.rint(Q)
        case "copies":
            X = X[rng.integers(0, max(1, n // 7), n)]
        case "offset":
            X, Q = X * 1e-3 + 1e8, Q * 1e-3 + 1e8
        case "outliers":
            X[rng.random(n) < 0.02] *= 1e20
            Q[rng.random(q) < 0.1] *= 1e22
        case "scales":
            X = X * np.exp(5 * rng.normal(size=d))
        case "huge":
            X, Q = X * 1e148, Q * 1e148
        case "subnormal":
            X, Q = X * 5e-324, Q * 5e-324
    if single and kind not in ("huge", "subnormal"):
        X, Q = X.astype(np.float32), Q.astype(np.float32)
    own = rng.integers(0, n, q)
    exclude = None
    if rng.random() < 0.5:
        Q, exclude = X[own], np.where(rng.random(q) < 0.8, own, -1)
    y = rng.integers(0, n_classes, n)
    y[y == 1] = 0
    return X, y, n_classes, Q, k, exclude


def brute_force(X: Any, y: Any, n_classes: int, Q: Any, k: int, exclude: Any) -> tuple[Any, Any]:
    X, Q = X.astype(np.float64), Q.astype(np.float64)
    sums = np.zeros((8, len(Q), len(X)))
    for j in range(X.shape[1]):
        sums[j % 8] += (Q[:, None, j] - X[:, j]) ** 2
    s = sums
    every = np.sqrt(((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])))
    if exclude is not None:
        every[np.flatnonzero(exclude >= 0), exclude[exclude >= 0]] = np.inf
    distances, ids = np.full((len(Q), n_classes, k), np.inf), np.full((len(Q), n_classes, k), -1)
    for c in range(n_classes):
        members = np.flatnonzero(y == c)
        order = np.argsort(every[:, members], axis=1, kind="stable")[:, :k]
        found = np.take_along_axis(every[:, members], order, axis=1)
        distances[:, c, : order.shape[1]] = found
        ids[:, c, : order.shape[1]] = np.where(np.isinf(found), -1, members[order])
    return distances, ids


def main() -> None:
    n_problems = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng, names = np.random.default_rng(SEED), variants()
    wrong: dict[str, int] = dict.fromkeys(names, 0)
    for number in range(n_problems):
        kind, single = KINDS[number % len(KINDS)], number % 3 == 0
        X, y, n_classes, Q, k, exclude = problem(rng, kind, single, random_shape(rng))
        expected = brute_force(X, y, n_classes, Q, k, exclude)
        index = ClasswiseNeighbors(k, n_jobs=1 + number % 2).fit(X, y, classes=np.arange(n_classes))
        for name in names:
            os.environ["NEIGHBORAGG_KERNEL"] = name
            found = index.kneighbors(Q, exclude=exclude)
            wrong[name] += any(a.tobytes() != b.tobytes() for a, b in zip(found, expected, strict=True))
        if number % 1000 == 999:
            print(f"{number + 1:,} problems, with other bits than brute force: {wrong}", flush=True)
    save(
        "search_exactness",
        [{"variant": name, "searches": n_problems, "other_bits": wrong[name]} for name in names],
        SEED,
    )


if __name__ == "__main__":
    main()
