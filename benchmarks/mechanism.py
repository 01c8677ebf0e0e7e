"""The paper's figures of how the method works, on its toy data and on Landsat.

Weights of the paper's network and the correlation between its two parts (the paper: -0.90 on Landsat); trust and
confidence by local density; confidence and trust over a plane for a shallow and a deep classifier. Figures go to
docs/images, numbers to benchmarks/results/mechanism.json.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from benchmarks._record import save
from benchmarks.plots import NetworkWeightsDisplay, TrustByDensityDisplay, TrustSurfaceDisplay
from benchmarks.runs import load_matrix
from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg._pool.network import NetworkAggregator
from neighboragg.trust._compare import Cell, make_cell

IMAGES = Path(__file__).parents[1] / "docs" / "images"
N_SEEDS = 5
N_TOY = 600


def network_of(cell: Cell, seed: int) -> NeighborAgg:
    """The paper's method, fitted on a cell."""
    method = NeighborAgg(NetworkAggregator(bandwidth=1.0), random_state=seed)
    cell.fit(method, "scaled")
    return method


def weights(base: str) -> list[dict[str, Any]]:
    """Correlation of the weights on Landsat, seed by seed; the figure is that of the first."""
    X, labels = load_matrix("landsat", None)
    found = []
    for seed in range(N_SEEDS):
        cell = make_cell(X, labels, base, seed)
        method = network_of(cell, seed)
        display = NetworkWeightsDisplay(method.aggregator_.W_h_, method.aggregator_.W_p_)
        found.append({"set": "landsat", "base": base, "seed": seed, "correlation": display.correlation})
        if base == "LR" and seed == 0:
            display.plot().figure_.savefig(IMAGES / "network-weights.png", dpi=110)
            density(cell, method)
    return found


def density(cell: Cell, method: NeighborAgg) -> None:
    """Trust of the default, and confidence, by mean similarity to the neighbors in the predicted class."""
    proba, rows = cell.proba[cell.test], cell.vectors["scaled"][cell.test]
    predicted = proba.argmax(axis=1)
    distances = method.kneighbors(rows)[0][np.arange(len(rows)), predicted]
    pool = NeighborAgg()
    trust = cell.trust(pool, "quantiles")
    TrustByDensityDisplay(
        cell.correct, trust, proba.max(axis=1), np.exp(-distances).mean(axis=1)
    ).plot().figure_.savefig(IMAGES / "trust-by-density.png", dpi=110)


def surfaces() -> list[dict[str, Any]]:
    """Two moons: a straight line cannot follow them, a network can."""
    X, y = make_moons(N_TOY, noise=0.2, random_state=0)
    found = []
    for name, classifier in (
        ("shallow", LogisticRegression()),
        ("deep", MLPClassifier((50, 50), max_iter=1000, random_state=0)),
    ):
        model = TrustedClassifier(classifier, random_state=0).fit(X, y)
        display = TrustSurfaceDisplay.from_estimator(model, X, y)
        display.figure_.savefig(IMAGES / f"surface-{name}.png", dpi=110)
        test, truth = make_moons(5000, noise=0.2, random_state=1)
        report = model.report(test, truth, n_resamples=200).to_dict()["auroc"]
        found.append(
            {"classifier": name}
            | {score: report[score]["estimate"] for score in ("trust", "confidence")}
            | {"low": report["difference"]["low"], "high": report["difference"]["high"]}
        )
    return found


def main() -> None:
    mpl.use("Agg")
    correlations = [row for base in ("LR", "RF", "MLP") for row in weights(base)]
    for base in ("LR", "RF", "MLP"):
        values = [row["correlation"] for row in correlations if row["base"] == base]
        print(f"landsat {base}: correlation of W_h and W_p {np.mean(values):+.2f}, {N_SEEDS} seeds:", end=" ")
        print(", ".join(f"{value:+.2f}" for value in values))
    toy = surfaces()
    for row in toy:
        print(f"moons, {row['classifier']}: AUROC {row['trust']:.3f} against {row['confidence']:.3f}")
    save("mechanism", correlations + toy, 0)


if __name__ == "__main__":
    main()
