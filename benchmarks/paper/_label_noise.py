"""Wrong labels put in on purpose: who finds them, and how many to look at."""

import time
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import NoisyLabels, add_label_noise, load_dataset, plausible_proba
from benchmarks.paper._label_noise_rivals import (
    boosting_margins,
    knn_disagreement,
    knn_shapley,
    out_of_fold_loss,
    simifeat,
)
from benchmarks.runs import machine
from neighboragg import find_mislabeled
from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, BoolArray, FloatArray, IntArray
from neighboragg.labels._noise import label_reliability
from neighboragg.promises._conformal import cmd_flags

__all__ = ["METHODS", "NOISES", "NOISE_BASES", "NOISE_SETS", "RATES", "compute_label_noise", "noise_rows"]

NOISE_SETS = ("letter", "landsat", "fashion_mnist", "trec_questions")
NOISE_BASES = ("LR", "RF")
NOISES = ("symmetric", "class_dependent", "instance_dependent", "plausible")
RATES = (0.01, 0.03, 0.09, 0.20)
N_ROWS = 4000
ALPHA = 0.05
RELIABILITIES = ("margin", "difference", "trust", "paper")
N_BINS = 10


@lru_cache(maxsize=2)
def noise_rows(name: str, seed: int) -> tuple[FloatArray, IntArray]:
    """Vectors and classes of at most 4,000 rows drawn at random."""
    dataset = load_dataset(name)
    codes = np.unique(dataset.y, return_inverse=True)[1]
    rows = np.random.default_rng(seed).permutation(len(codes))[:N_ROWS]
    if dataset.text is not None:
        words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2).fit_transform(
            [dataset.text[i] for i in rows]
        )
        vectors = TruncatedSVD(100, random_state=0).fit_transform(words)
    elif dataset.images is not None:
        vectors = PCA(50, random_state=0).fit_transform(dataset.images[rows] / 255.0)
    else:
        vectors = StandardScaler().fit_transform(dataset.to_matrix()[rows])
    return vectors, codes[rows]


@lru_cache(maxsize=2)
def _mistakes(name: str, seed: int) -> FloatArray:
    """What a network and neighbors make of the rows, whatever noise is drawn from it."""
    X, truth = noise_rows(name, seed)
    return plausible_proba(X, truth, random_state=seed)


@lru_cache(maxsize=2)
def _noisy(name: str, kind: str, rate: float, seed: int) -> NoisyLabels:
    X, truth = noise_rows(name, seed)
    proba = _mistakes(name, seed) if kind == "plausible" else None
    return add_label_noise(truth, rate=rate, kind=kind, X=X, proba=proba, random_state=seed)


@dataclass(frozen=True)
class NoisyCell:
    """A data set with wrong labels, and the out-of-fold probabilities of a base classifier."""

    name: str
    base: str
    kind: str
    rate: float
    seed: int

    @property
    def rows(self) -> FloatArray:
        """The rows."""
        return noise_rows(self.name, self.seed)[0]

    @property
    def y(self) -> IntArray:
        """Labels, some of them wrong."""
        return np.asarray(_noisy(self.name, self.kind, self.rate, self.seed).y)

    @property
    def wrong(self) -> BoolArray:
        """Which."""
        return _noisy(self.name, self.kind, self.rate, self.seed).mask

    @cached_property
    def proba(self) -> FloatArray:
        """Out-of-fold probabilities of the base classifier, fitted to the noisy labels."""
        return _out_of_fold(self.rows, self.y, self.base, self.seed)


def compute_label_noise(
    name: str, base: str, kind: str, rate: float, seed: int, methods: Collection[str]
) -> list[dict[str, Any]]:
    """Scores of one cell, one row each; methods that share their work are computed together."""
    cell = NoisyCell(name, base, kind, rate, seed)
    key = {"set": name, "base": base, "noise": kind, "rate": rate, "seed": seed}
    rows = [
        {**key, **_rounded(row)}
        for names, judge in JUDGES
        if not set(methods).isdisjoint(names)
        for row in judge(cell)
        if row["method"] in methods
    ]
    rows[0]["machine"] = machine()
    return rows


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Five decimals are more than the noise leaves, and keep the file small."""
    return {key: round(value, 5) if isinstance(value, float) else value for key, value in row.items()}


def _ours(cell: NoisyCell) -> Iterator[dict[str, Any]]:
    """Our ranking and flags, other scores from the same trust, and cleanlab's ranking with our cuts."""
    X, y, proba, wrong = cell.rows, cell.y, cell.proba, cell.wrong
    start = time.process_time()
    ours = find_mislabeled(X, y, proba=proba, features="passthrough", random_state=cell.seed)
    seconds = time.process_time() - start
    yield {
        **_ranking("ours", ours.scores, wrong),
        **_flags(ours.mask, wrong),
        "cpu_seconds": round(seconds, 2),
        "estimated_rate": ours.noise_rate,
        "randomness": ours.randomness,
        "ece": _calibration_error(ours.p_wrong, wrong),
    }
    for reliability in RELIABILITIES:
        scores = label_reliability(ours.trust, y, kind=reliability, predicted=proba.argmax(axis=1))
        yield _ranking(f"ours, reliability={reliability}", scores, wrong)
    rank = import_extra("cleanlab.rank", extra="bench", purpose="The comparison with cleanlab")
    margin = rank.get_label_quality_scores(y, proba, method="normalized_margin")
    cut = cmd_flags(margin, alpha=ALPHA, noise_rate=min(ours.noise_rate, 0.5))
    yield {"method": "cleanlab margin, conformal cut", **_flags(cut, wrong)}
    estimated = np.zeros(len(y), dtype=bool)
    estimated[np.argsort(margin, kind="stable")[: ours.n_flagged]] = True
    yield {"method": "cleanlab margin, our count", **_flags(estimated, wrong)}


def _models(cell: NoisyCell) -> Iterator[dict[str, Any]]:
    """Simple scores from probabilities."""
    y, proba, wrong = cell.y, cell.proba, cell.wrong
    models = _mean_of_models(cell.rows, y, proba, cell.seed)
    yield _ranking("margin on the mean of the models", _margin(models, y), wrong)
    yield _ranking("classifier disagrees", (proba.argmax(axis=1) == y).astype(float), wrong)


def _cleanlab(cell: NoisyCell) -> Iterator[dict[str, Any]]:
    """Cleanlab's scores, and its default filter."""
    rank = import_extra("cleanlab.rank", extra="bench", purpose="The comparison with cleanlab")
    filters = import_extra("cleanlab.filter", extra="bench", purpose="The comparison with cleanlab")
    y, proba, wrong = cell.y, cell.proba, cell.wrong
    for method in ("self_confidence", "normalized_margin"):
        scores = rank.get_label_quality_scores(y, proba, method=method)
        yield _ranking(f"cleanlab {method}", scores, wrong)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = np.asarray(filters.find_label_issues(y, proba, n_jobs=1))  # cells run in parallel already
    yield {"method": "cleanlab filter", **_flags(found, wrong)}


@lru_cache(maxsize=2)
def _judged_without_base(name: str, kind: str, rate: float, seed: int) -> tuple[dict[str, Any], ...]:
    cell = NoisyCell(name, "", kind, rate, seed)
    X, y, wrong = cell.rows, cell.y, cell.wrong
    votes, voted, ranked = simifeat(X, y)
    return (
        _ranking("kNN disagreement", knn_disagreement(X, y), wrong),
        {**_ranking("SimiFeat-R", votes, wrong), **_flags(ranked, wrong)},
        {"method": "SimiFeat-V", **_flags(voted, wrong)},
        _ranking("kNN-Shapley", knn_shapley(X, y), wrong),
        _ranking("AUM of boosting", boosting_margins(X, y, seed), wrong),
        _ranking("out-of-fold loss of boosting", out_of_fold_loss(X, y, seed), wrong),
    )


def _without_base(cell: NoisyCell) -> Iterator[dict[str, Any]]:
    """Rivals that see no probabilities: the same for every base classifier."""
    yield from _judged_without_base(cell.name, cell.kind, cell.rate, cell.seed)


Judge = Callable[[NoisyCell], Iterator[dict[str, Any]]]
JUDGES: tuple[tuple[tuple[str, ...], Judge], ...] = (
    (
        (
            "ours",
            *(f"ours, reliability={reliability}" for reliability in RELIABILITIES),
            "cleanlab margin, conformal cut",
            "cleanlab margin, our count",
        ),
        _ours,
    ),
    (("margin on the mean of the models", "classifier disagrees"), _models),
    (("cleanlab self_confidence", "cleanlab normalized_margin", "cleanlab filter"), _cleanlab),
    (
        (
            "kNN disagreement",
            "SimiFeat-R",
            "SimiFeat-V",
            "kNN-Shapley",
            "AUM of boosting",
            "out-of-fold loss of boosting",
        ),
        _without_base,
    ),
)
METHODS = tuple(name for names, _ in JUDGES for name in names)


def _ranking(method: str, scores: FloatArray, wrong: BoolArray) -> dict[str, Any]:
    """How well low scores point at wrong labels."""
    suspicion = -np.asarray(scores, dtype=np.float64)
    order = np.argsort(-suspicion, kind="stable")
    hits = wrong[order]
    recall = np.cumsum(hits) / max(1, hits.sum())
    reached = int(np.searchsorted(recall, 0.9)) + 1
    return {
        "method": method,
        "average_precision": float(average_precision_score(wrong, suspicion)),
        "auroc": float(roc_auc_score(wrong, suspicion)),
        "precision_at_recall_90": float(hits[:reached].mean()),
        "precision_100": float(hits[:100].mean()),
        "precision_1000": float(hits[:1000].mean()),
    }


def _flags(mask: BoolArray, wrong: BoolArray) -> dict[str, float]:
    hits = float((mask & wrong).sum())
    precision = hits / max(1, int(mask.sum()))
    recall = hits / max(1, int(wrong.sum()))
    return {
        "flagged": float(mask.mean()),
        "flag_precision": precision,
        "flag_recall": recall,
        "flag_f1": 2 * precision * recall / max(precision + recall, 1e-12),
        "false_alarm_rate": float((mask & ~wrong).sum() / max(1, int((~wrong).sum()))),
    }


def _calibration_error(p_wrong: FloatArray, wrong: BoolArray) -> float:
    """Mean gap between probability and share of wrong labels in ten bins of equal width, weighted by rows."""
    bins = np.minimum((p_wrong * N_BINS).astype(int), N_BINS - 1)
    gaps = np.bincount(bins, weights=p_wrong - wrong, minlength=N_BINS)
    return float(np.abs(gaps).sum() / len(wrong))


def _out_of_fold(X: FloatArray, y: Array, base: str, seed: int) -> FloatArray:
    classifier = (
        LogisticRegression(max_iter=500) if base == "LR" else RandomForestClassifier(random_state=seed)
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return np.asarray(cross_val_predict(classifier, X, y, cv=folds, method="predict_proba"))


def _mean_of_models(X: FloatArray, y: IntArray, proba: FloatArray, seed: int) -> FloatArray:
    """Probabilities of the base and of the two models that the detector fits itself, averaged."""
    trees = ExtraTreesClassifier(100, bootstrap=True, oob_score=True, random_state=seed).fit(X, y)
    votes = np.nan_to_num(trees.oob_decision_function_)
    return (proba + votes + _out_of_fold(X, y, "LR", seed)) / 3


def _margin(proba: FloatArray, y: IntArray) -> FloatArray:
    rows = np.arange(len(y))
    others = proba.copy()
    others[rows, y] = -1
    return proba[rows, y] - others.max(axis=1)
