"""Settings of the paper's network, compared on validation rows alone: five folds of them, no test row.

Mean log-likelihood of the true class (natural logarithm) and AUROC of trust on the held-out folds. Data:
NEIGHBORAGG_DATA.
"""

import argparse
from itertools import product

import numpy as np

from benchmarks._record import save
from benchmarks.runs import load_matrix
from neighboragg._pool.evidence import Evidence
from neighboragg._pool.network import NetworkAggregator
from neighboragg.metrics import auroc
from neighboragg.search import ClasswiseNeighbors
from neighboragg.trust._compare import make_cell

SETS, BASES, SEED, N_FOLDS, N_NEIGHBORS = ("letter", "landsat", "magic_gamma", "adult"), ("LR", "RF"), 0, 5, 5
BANDWIDTHS, ACTIVATIONS, PENALTIES = (1.0, "median"), ("tanh", "relu"), (1e-2, 1e-3, 1e-4, 1e-5)


def evidence_of(name: str, base: str) -> tuple[Evidence, np.ndarray]:
    """What the network sees of the validation rows, and their classes."""
    cell = make_cell(*load_matrix(name), base, SEED)
    X, codes = cell.vectors["scaled"], cell.codes
    index = ClasswiseNeighbors(N_NEIGHBORS, n_jobs=-1)
    index.fit(X[cell.train], codes[cell.train], classes=np.arange(cell.proba.shape[1]))
    return Evidence(cell.proba[cell.val], {"features": index.kneighbors(X[cell.val])[0]}), codes[cell.val]


def part(evidence: Evidence, rows: np.ndarray) -> Evidence:
    return Evidence(evidence.proba[rows], {"features": evidence.feature_distances[rows]})


def held_out(evidence: Evidence, codes: np.ndarray, **params: object) -> tuple[float, float]:
    """Log-likelihood and AUROC on folds that were not fitted on."""
    folds = np.random.default_rng(SEED).permutation(len(codes)) % N_FOLDS
    trust = np.empty_like(evidence.proba)
    for fold in range(N_FOLDS):
        network = NetworkAggregator(**params).fit(
            part(evidence, np.flatnonzero(folds != fold)), codes[folds != fold]
        )
        trust[folds == fold] = network.predict_trust(part(evidence, np.flatnonzero(folds == fold)))
    rows, predicted = np.arange(len(codes)), evidence.proba.argmax(axis=1)
    likelihood = float(np.log(trust[rows, codes] + 1e-9).mean())
    return likelihood, 100 * auroc(predicted == codes, trust[rows, predicted])


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    cells = {(name, base): evidence_of(name, base) for name, base in product(SETS, BASES)}
    found = []
    print(f"{'T':>8}{'activation':>12}{'penalty':>9}{'log-likelihood':>16}{'AUROC':>8}")
    for bandwidth, activation, penalty in product(BANDWIDTHS, ACTIVATIONS, PENALTIES):
        params = {"bandwidth": bandwidth, "activation": activation, "penalty": penalty}
        rows = []
        for (name, base), (evidence, codes) in cells.items():
            likelihood, area = held_out(evidence, codes, **params)
            rows.append({"set": name, "base": base, **params, "log_likelihood": likelihood, "auroc": area})
        means = [np.mean([row[key] for row in rows]) for key in ("log_likelihood", "auroc")]
        print(f"{bandwidth!s:>8}{activation:>12}{penalty:>9.0e}{means[0]:>16.4f}{means[1]:>8.2f}", flush=True)
        found += rows
    save("network_settings", found, SEED)


if __name__ == "__main__":
    main()
