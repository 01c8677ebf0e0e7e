"""Wrong labels put in on purpose: who finds them, and how many to look at."""

import time
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from neighboragg._optional import import_extra
from neighboragg._typing import Array, BoolArray, FloatArray, IntArray
from neighboragg.bench._machine import machine
from neighboragg.datasets import add_label_noise, load_dataset
from neighboragg.mislabel import (
    MislabelResult,
    cmd_flags,
    find_mislabeled,
    label_reliability,
)

__all__ = ["NOISES", "NOISE_BASES", "NOISE_SETS", "RATES", "compute_label_noise", "noise_rows"]

NOISE_SETS = ("letter", "landsat", "fashion_mnist", "trec_questions")
NOISE_BASES = ("LR", "RF")
NOISES = ("symmetric", "class_dependent", "instance_dependent")
RATES = (0.03, 0.09, 0.20)
N_ROWS = 4000
ALPHA = 0.05


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


def compute_label_noise(name: str, base: str, kind: str, rate: float, seed: int) -> list[dict[str, Any]]:
    """All scores of one cell, one row each."""
    X, truth = noise_rows(name, seed)
    noisy = add_label_noise(truth, rate=rate, kind=kind, X=X, random_state=seed)
    proba = _out_of_fold(X, noisy.y, base, seed)
    cell = {"set": name, "base": base, "noise": kind, "rate": rate, "seed": seed}
    rows = [{**cell, **_rounded(row)} for row in _judge(X, np.asarray(noisy.y), proba, noisy.mask, seed)]
    rows[0]["machine"] = machine()
    return rows


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Five decimals are more than the noise leaves, and keep the file small."""
    return {key: round(value, 5) if isinstance(value, float) else value for key, value in row.items()}


def _judge(
    X: FloatArray, y: IntArray, proba: FloatArray, wrong: BoolArray, seed: int
) -> Iterator[dict[str, Any]]:
    start = time.process_time()
    ours = find_mislabeled(X, y, proba=proba, features="passthrough", random_state=seed)
    seconds = time.process_time() - start
    yield {**_ranking("ours", ours.scores, wrong), **_flags(ours.mask, wrong), "cpu_seconds": round(seconds, 2),
           "estimated_rate": ours.noise_rate}  # fmt: skip
    for reliability in ("difference", "trust", "paper"):
        scores = label_reliability(ours.trust, y, kind=reliability, predicted=proba.argmax(axis=1))
        yield _ranking(f"ours, reliability={reliability}", scores, wrong)
    alone = find_mislabeled(X, y, proba=proba, features="passthrough", own_models=False, random_state=seed)
    yield _ranking("ours, own_models=False", alone.scores, wrong)
    models = _mean_of_models(X, y, proba, seed)
    yield _ranking("margin on the mean of the models", _margin(models, y), wrong)
    yield _ranking("kNN disagreement", _knn(X, y), wrong)
    yield _ranking("classifier disagrees", (proba.argmax(axis=1) == y).astype(float), wrong)
    yield from _cleanlab(y, proba, wrong, ours)


def _cleanlab(
    y: IntArray, proba: FloatArray, wrong: BoolArray, ours: MislabelResult
) -> Iterator[dict[str, Any]]:
    """Cleanlab's scores, its default filter, and its best score with our cuts."""
    rank = import_extra("cleanlab.rank", extra="bench", purpose="The comparison with cleanlab")
    filters = import_extra("cleanlab.filter", extra="bench", purpose="The comparison with cleanlab")
    scores = {}
    for method in ("self_confidence", "normalized_margin"):
        scores[method] = rank.get_label_quality_scores(y, proba, method=method)
        yield _ranking(f"cleanlab {method}", scores[method], wrong)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = np.asarray(filters.find_label_issues(y, proba, n_jobs=1))  # cells run in parallel already
    yield {"method": "cleanlab filter", **_flags(found, wrong)}
    margin = scores["normalized_margin"]
    cut = cmd_flags(margin, alpha=ALPHA, noise_rate=min(ours.noise_rate, 0.5))
    yield {"method": "cleanlab margin, conformal cut", **_flags(cut, wrong)}
    estimated = np.zeros(len(y), dtype=bool)
    estimated[np.argsort(margin, kind="stable")[: ours.n_flagged]] = True
    yield {"method": "cleanlab margin, our count", **_flags(estimated, wrong)}


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


def _knn(X: FloatArray, y: IntArray, n_neighbors: int = 20) -> FloatArray:
    indices = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(return_distance=False)
    return np.asarray((y[indices] == y[:, None]).mean(axis=1))
