"""The baselines beside their authors' public code, on the same splits with the same base classifiers.

Ours is always computed. The authors' side needs their checkouts, one folder each, in the folder that the environment
variable NEIGHBORAGG_AUTHORS names: google/TrustScore as `TrustScore`, AIgen/df-posthoc-calibration as
`df-posthoc-calibration`, gpleiss/temperature_scaling as `temperature_scaling` (this one needs torch too). What is not
there is left out. Data: NEIGHBORAGG_DATA.
"""

import argparse
import contextlib
import importlib
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.neural_network import MLPRegressor

from benchmarks._record import save
from benchmarks.paper import PAPER_BASES, TABLE1_SETS
from benchmarks.runs import ENTRANTS, load_matrix
from neighboragg.methods import TopLabelCalibration, TrustScore
from neighboragg.metrics import trust_metrics
from neighboragg.trust._compare import Cell, make_cell

SEEDS = (0, 1)
OURS = tuple(
    name
    for name in ENTRANTS
    if name.partition(",")[0] in ("Confidence", "TempScaling", "TopLabel", "TCP", "kNN vote", "TrustScore")
)
METRICS = ("auroc", "ap_success", "ap_error")


def trust_score(cell: Cell, module: ModuleType) -> np.ndarray:
    X = cell.vectors["scaled"]
    model = module.TrustScore()
    model.fit(X[cell.train], cell.codes[cell.train])
    return model.get_score(X[cell.test], cell.proba[cell.test].argmax(axis=1)).astype(float)


def knn_confidence(cell: Cell, module: ModuleType) -> np.ndarray:
    X = cell.vectors["scaled"]
    model = module.KNNConfidence()
    model.fit(X[cell.train], cell.codes[cell.train])
    return model.get_score(X[cell.test], cell.proba[cell.test].argmax(axis=1))


def top_label(cell: Cell, module: ModuleType) -> np.ndarray:
    np.random.seed(0)  # noqa: NPY002 (the authors draw from it)
    model = module.HB_toplabel()
    model.fit(cell.proba[cell.val], cell.codes[cell.val] + 1)
    proba = cell.proba[cell.test]
    predicted, confidence = proba.argmax(axis=1), proba.max(axis=1)
    trust = np.empty(len(proba))
    # Their loop over rows puts arrays of one element into an array, which NumPy no longer takes.
    for c in np.unique(predicted):
        trust[predicted == c] = model.hb_binary_list[c].predict_proba(confidence[predicted == c])
    return trust


def temperature(cell: Cell, module: ModuleType) -> np.ndarray:
    import torch

    def logits(rows: np.ndarray) -> Any:
        # Forests say exactly 0. With 1e-12 as in ours the step of their optimizer leaps to a temperature below 0.
        return torch.log(torch.tensor(cell.proba[rows]) + 1e-4)

    model = module.ModelWithTemperature(torch.nn.Identity())
    with on_the_processor(torch):
        model.set_temperature([(logits(cell.val), torch.tensor(cell.codes[cell.val]))])
    with torch.no_grad():
        return model.temperature_scale(logits(cell.test)).softmax(dim=1).max(dim=1).values.double().numpy()


@contextlib.contextmanager
def on_the_processor(torch: ModuleType) -> Iterator[None]:
    """Let code that asks for a graphics card stay where it is."""
    kinds = (torch.nn.Module, torch.Tensor)
    before = [kind.cuda for kind in kinds]
    for kind in kinds:
        kind.cuda = lambda self, *args, **kwargs: self
    try:
        yield
    finally:
        for kind, method in zip(kinds, before, strict=True):
            kind.cuda = method


def fewer_points_in_a_bin(cell: Cell) -> np.ndarray:
    return cell.trust(TopLabelCalibration(points_per_bin=25), "scaled")


def features_of_training_rows(cell: Cell) -> np.ndarray:
    """What ConfidNet learns from: no probabilities among the inputs, rows that the classifier was trained on."""
    X, train = cell.vectors["scaled"], cell.train
    network = MLPRegressor(hidden_layer_sizes=(200, 200), early_stopping=True, max_iter=60, random_state=0)
    network.fit(X[train], cell.proba[train, cell.codes[train]])
    return network.predict(X[cell.test])


def validation_rows_as_reference(cell: Cell) -> np.ndarray:
    return replace(cell, train=cell.val).trust(TrustScore(n_neighbors=1), "scaled")


#: Ours done as the published figures suggest; these explain differences and are in no other table.
OTHERWISE: dict[str, tuple[str, Callable[[Cell], np.ndarray]]] = {
    "TopLabel": ("25 rows a bin", fewer_points_in_a_bin),
    "TCP": ("features and training rows only", features_of_training_rows),
    "TrustScore": ("nearest of the validation rows", validation_rows_as_reference),
}
#: For each baseline: the checkout, the folder of the module in it, the module, and how it is asked.
THEIRS: dict[str, tuple[str, str, str, Callable[[Cell, ModuleType], np.ndarray]]] = {
    "TempScaling": ("temperature_scaling", ".", "temperature_scaling", temperature),
    "TopLabel": ("df-posthoc-calibration", ".", "calibration", top_label),
    "kNN vote": ("TrustScore", "trustscore", "trustscore", knn_confidence),
    "TrustScore": ("TrustScore", "trustscore", "trustscore", trust_score),
}


def authors_modules() -> dict[str, tuple[str, ModuleType]]:
    """Commit and module of every baseline whose checkout is there."""
    folder = os.environ.get("NEIGHBORAGG_AUTHORS")
    found = {}
    for name, (checkout, inner, module, _) in THEIRS.items():
        if folder is None or not (path := Path(folder) / checkout).is_dir():
            print(f"{name}: no checkout {checkout!r} in NEIGHBORAGG_AUTHORS; only ours is computed.")
            continue
        sys.path.insert(0, str(path / inner))
        try:
            code = importlib.import_module(module)
        except ImportError as error:
            print(f"{name}: the authors' code cannot be imported ({error}); only ours is computed.")
            continue
        finally:
            sys.path.pop(0)
        commit = subprocess.run(
            ["git", "-C", str(path), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
        ).stdout.strip()
        found[name] = commit, code
    return found


def measured(cell: Cell, trust: np.ndarray, seconds: float) -> dict[str, Any]:
    metrics = trust_metrics(cell.correct, trust)
    return {**{key: metrics[key] for key in METRICS}, "cpu_seconds": round(seconds, 2)}


def cell_rows(cell: Cell, modules: dict[str, tuple[str, ModuleType]]) -> Iterator[dict[str, Any]]:
    for name in OURS:
        start = time.process_time()
        trust = cell.trust(method := ENTRANTS[name].make(), ENTRANTS[name].vectors)
        setting = {"setting": method.setting_} if name.endswith(", tuned") else {}
        yield {
            "method": name,
            "whose": "ours",
            **measured(cell, trust, time.process_time() - start),
            **setting,
        }
    for name, (how, ask) in OTHERWISE.items():
        start = time.process_time()
        trust = ask(cell)
        yield {
            "method": name, "whose": f"ours: {how}", **measured(cell, trust, time.process_time() - start)
        }  # fmt: skip
    for name, (commit, module) in modules.items():
        start = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            trust = THEIRS[name][3](cell, module)
        found = measured(cell, trust, time.process_time() - start)
        yield {"method": name, "whose": "authors", **found, "commit": commit}


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    modules = authors_modules()
    rows: list[dict[str, Any]] = []
    for seed, name, base in product(SEEDS, TABLE1_SETS, PAPER_BASES):
        cell = make_cell(*load_matrix(name), base, seed)
        for row in cell_rows(cell, modules):
            rows.append({"set": name, "base": base, "seed": seed, **row})
            print(
                f"{name:>14}{base:>5}{seed:>3}  {row['method']:<20}{row['whose']:<9}{100 * row['auroc']:6.2f}"
                f"{row['cpu_seconds']:8.1f} s",
                flush=True,
            )
        save("baselines", rows, seed)


if __name__ == "__main__":
    main()
