"""Quality of the core on real data: AUROC and calibration of trust, with full and with tiny validation sets.

Needs NEIGHBORAGG_DATA to name the folder with the data sets, or a network to download them.
"""

from collections.abc import Callable
from functools import cache
from statistics import mean
from typing import Any

from sklearn.datasets import load_digits

from benchmarks._record import save
from benchmarks.runs import load_matrix
from neighboragg import NeighborAgg
from neighboragg.methods import MaxConfidence, TemperatureScaling, TrustMethod, TrustScore
from neighboragg.metrics import auroc, average_precision_error, expected_calibration_error
from neighboragg.trust._compare import Cell, make_cell

# Each method with the vectors it works on: standardized features as in the paper, or normal scores of quantiles.
METHODS: dict[str, tuple[Callable[[], TrustMethod], str]] = {
    "max-softmax": (MaxConfidence, "scaled"),
    "temperature": (TemperatureScaling, "scaled"),
    "Trust Score": (TrustScore, "scaled"),
    "network": (lambda: NeighborAgg("network", n_jobs=-1), "scaled"),
    "pool": (lambda: NeighborAgg(n_jobs=-1), "quantiles"),
}

BASES = ("LR", "RF")
SETS = ("letter", "landsat", "magic_gamma", "digits")
MORE_SETS = ("sensorless_drive", "card_default")
SEEDS = (0, 1, 2)
# AUROC that the prototype reached, in percent.
PROTOTYPE = {
    ("letter", "LR"): 99.9,
    ("letter", "RF"): 98.9,
    ("landsat", "LR"): 95.1,
    ("landsat", "RF"): 92.0,
    ("magic_gamma", "LR"): 89.3,
    ("magic_gamma", "RF"): 82.0,
}


@cache
def cell_of(name: str, base: str, seed: int) -> Cell:
    X, y = load_digits(return_X_y=True) if name == "digits" else load_matrix(name)
    return make_cell(X, y, base, seed)


def judge(name: str, base: str, seed: int, n_val: int | None) -> list[dict[str, Any]]:
    cell = cell_of(name, base, seed)
    rows = []
    for method in METHODS if n_val is None else ("max-softmax", "pool"):
        make, vectors = METHODS[method]
        trust = cell.trust(make(), vectors, n_val)
        rows.append(
            {
                "set": name, "base": base, "seed": seed, "n_val": n_val, "method": method,
                "accuracy": 100 * float(cell.correct.mean()),
                "auroc": 100 * auroc(cell.correct, trust),
                "ap_error": 100 * average_precision_error(cell.correct, trust),
                "ece": 100 * expected_calibration_error(cell.correct, trust),
            }
        )  # fmt: skip
    return rows


def averages(rows: list[dict[str, Any]], metric: str) -> dict[tuple[str, str, str], float]:
    """Mean over seeds for each (set, base, method)."""
    cells: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        cells.setdefault((row["set"], row["base"], row["method"]), []).append(row[metric])
    return {cell: mean(values) for cell, values in cells.items()}


def report_full(rows: list[dict[str, Any]]) -> None:
    table = averages(rows, "auroc")
    print(f"{'AUROC, %':<20}" + "".join(f"{method:>14}" for method in METHODS) + f"{'prototype':>12}")
    for name in SETS:
        for base in BASES:
            cells = "".join(f"{table[name, base, method]:>14.2f}" for method in METHODS)
            print(f"{name + ' ' + base:<20}{cells}{PROTOTYPE.get((name, base), float('nan')):>12.1f}")
    for metric in ("auroc", "ap_error", "ece"):
        of = averages(rows, metric)
        means = {m: mean(value for cell, value in of.items() if cell[2] == m) for m in METHODS}
        print(f"{'mean ' + metric:<20}" + "".join(f"{means[method]:>14.2f}" for method in METHODS))
    print(f"Worst cell of the pool against max-softmax: {worst(table):+.2f} AUROC")


def worst(table: dict[tuple[str, str, str], float]) -> float:
    return min(
        value - table[name, base, "max-softmax"]
        for (name, base, method), value in table.items()
        if method == "pool"
    )


def report_tiny(rows: list[dict[str, Any]]) -> None:
    table = averages(rows, "auroc")
    print(f"\n{'100 validation rows':<22}{'max-softmax':>14}{'pool':>10}{'gain':>8}")
    for name, base in sorted({cell[:2] for cell in table}):
        plain, pool = table[name, base, "max-softmax"], table[name, base, "pool"]
        print(f"{name + ' ' + base:<22}{plain:>14.2f}{pool:>10.2f}{pool - plain:>+8.2f}")
    print(f"Worst cell of the pool against max-softmax: {worst(table):+.2f} AUROC")


def main() -> None:
    full = [row for s in SETS for b in BASES for seed in SEEDS for row in judge(s, b, seed, None)]
    report_full(full)
    tiny = [
        row for s in (*SETS, *MORE_SETS) for b in BASES for seed in SEEDS for row in judge(s, b, seed, 100)
    ]
    report_tiny(tiny)
    save("quality_core", full + tiny)


if __name__ == "__main__":
    main()
