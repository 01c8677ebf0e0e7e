"""A cell of a comparison: a data set, a base classifier and a seed, split as in the paper."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from neighboragg._typing import Array, BoolArray, FloatArray, IntArray
from neighboragg.bench._lineup import BASES, ENTRANTS
from neighboragg.datasets import paper_split
from neighboragg.features import TabularFeatures
from neighboragg.methods import RememberedOpinions, TrustMethod
from neighboragg.metrics import trust_metrics

__all__ = ["Cell", "fitted_base", "make_cell", "score_entrants"]

# More than any table shows.
DIGITS = 6


@dataclass(frozen=True)
class Cell:
    """Arrays of one cell; labels are positions in the probability columns."""

    vectors: dict[str, FloatArray]
    codes: IntArray
    proba: FloatArray
    train: IntArray
    val: IntArray
    test: IntArray

    @property
    def correct(self) -> BoolArray:
        """Whether the classifier is right on each test row."""
        return np.asarray(self.proba[self.test].argmax(axis=1) == self.codes[self.test])

    def fit(self, method: TrustMethod, kind: str, n_val: int | None = None) -> TrustMethod:
        """Fit on the training and the (first) validation rows."""
        X, val = self.vectors[kind], self.val[:n_val]
        return method.fit(
            X[self.train],
            self.codes[self.train],
            X_val=X[val],
            y_val=self.codes[val],
            proba_val=self.proba[val],
            classes=np.arange(self.proba.shape[1]),
        )

    def trust(self, method: TrustMethod, kind: str, n_val: int | None = None) -> FloatArray:
        """Trust of a method, fitted here, in the predictions for the test rows."""
        return self.fit(method, kind, n_val).score_samples(
            self.vectors[kind][self.test], self.proba[self.test]
        )


def make_cell(X: FloatArray, labels: Array, base: str | Callable[[int], Any], seed: int) -> Cell:
    """Split 40/10/50, scale with training statistics, train the base classifier.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    labels : ndarray of shape (n,)
    base : str or callable
        Name of a base classifier, or a function of the seed that makes one.
    seed : int

    Returns
    -------
    cell : Cell
    """
    train, val, test = paper_split(len(labels), seed=seed)
    classes = np.unique(labels[train])
    # A class the classifier has never seen cannot be predicted, nor encoded: such rows are left out.
    val, test = (part[np.isin(labels[part], classes)] for part in (val, test))
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    scaled = StandardScaler().fit(X[train]).transform(X)
    classifier = fitted_base(base, seed, scaled[train], codes[train])
    vectors = {"scaled": scaled, "tamed": TabularFeatures().fit(X[train]).transform(X)}
    return Cell(vectors, codes, classifier.predict_proba(scaled), train, val, test)


def fitted_base(base: str | Callable[[int], Any], seed: int, X: FloatArray, codes: IntArray) -> Any:
    """A base classifier, by name or as a function of the seed, trained on rows."""
    classifier = (BASES[base] if isinstance(base, str) else base)(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return classifier.fit(X, codes)


def score_entrants(cell: Cell, names: Iterable[str], **changes: Any) -> Iterator[dict[str, Any]]:
    """Metrics and CPU seconds of each entrant on a cell; `changes` are set on those that know them."""
    for name in names:
        entrant = ENTRANTS[name]
        method = entrant.make()
        known = method.get_params()
        method.set_params(**{key: value for key, value in changes.items() if key in known})
        start = time.process_time() + RememberedOpinions.saved()
        trust = cell.trust(method, entrant.vectors)
        seconds = time.process_time() + RememberedOpinions.saved() - start
        found = {metric: round(value, DIGITS) for metric, value in trust_metrics(cell.correct, trust).items()}
        yield {"method": name, "cpu_seconds": round(seconds, 3), **found}
