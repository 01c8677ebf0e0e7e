"""Second opinions that were fitted before: they depend on the rows, not on the classifier that is judged."""

import time
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any, NamedTuple, Self

import joblib

from neighboragg._typing import IntArray
from neighboragg.methods._base import FitData

__all__ = ["RememberedOpinions", "fitted_once"]


class _Entry(NamedTuple):
    fitted: Any
    seconds: float


class RememberedOpinions:
    """Within a block, second opinions are fitted once for the same rows, however many classifiers are judged.

    Most of what :class:`NeighborAgg` costs at best effort are second opinions, none of which looks at the classifier.
    To compare several classifiers on the same training and validation rows, fit trust for all of them in one block.
    The result is that of fits without it, to the last bit.

    Attributes
    ----------
    saved_seconds : float
        CPU seconds that the fits took which were not repeated.

    Notes
    -----
    What was fitted is kept as long as the object, which may be used in several blocks, each of one thread. An opinion
    that draws at random without a seed is drawn once; one that cannot be pickled is fitted every time.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.methods import NeighborAgg, RememberedOpinions
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    >>> said = {"first": np.full((100, 2), 0.5), "second": np.tile([0.3, 0.7], (100, 1))}
    >>> with RememberedOpinions() as remembered:
    ...     methods = {
    ...         name: NeighborAgg().fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:], proba_val=proba)
    ...         for name, proba in said.items()
    ...     }
    >>> methods["first"].opinions_[0] is methods["second"].opinions_[0]
    True
    """

    def __init__(self) -> None:
        self.saved_seconds = 0.0
        self._entries: dict[Hashable, _Entry] = {}

    def __enter__(self) -> Self:
        _in_use.set((*_in_use.get(), self))
        return self

    def __exit__(self, *reason: object) -> None:
        _in_use.set(_in_use.get()[:-1])

    @staticmethod
    def saved() -> float:
        """CPU seconds saved so far by whichever of these is in use, 0 where none is."""
        return _in_use.get()[-1].saved_seconds if _in_use.get() else 0.0

    def _get(self, key: Hashable, fit: Callable[[], Any]) -> Any:
        if (entry := self._entries.get(key)) is not None:
            self.saved_seconds += entry.seconds
            return entry.fitted
        start = time.process_time()
        fitted = fit()
        self._entries[key] = _Entry(fitted, time.process_time() - start)
        return fitted


# Innermost last; every thread has its own.
_in_use: ContextVar[tuple[RememberedOpinions, ...]] = ContextVar("remembered", default=())


def fitted_once(name: str, estimator: Any, data: FitData, judged: IntArray, fit: Callable[[], Any]) -> Any:
    """What `fit` gives, or gave for the same opinion on the same rows in this block."""
    if not _in_use.get():
        return fit()
    # The probabilities are those of the classifier that is judged, and no opinion knows of them.
    validation = None if data.shared else (data.X_val, data.codes_val)
    try:
        digest = joblib.hash((name, estimator, data.X, data.codes, validation, data.n_classes, judged))
    except Exception:  # whatever keeps an estimator from being pickled, such as a function without a name
        return fit()
    # A class that is defined anew, as in a notebook, has the name of the old one.
    return _in_use.get()[-1]._get((type(estimator), digest), fit)
