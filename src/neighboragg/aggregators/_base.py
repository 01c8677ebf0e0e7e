"""The protocol of aggregators: evidence in, trust vector out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from neighboragg._typing import FloatArray, IntArray
from neighboragg.aggregators._evidence import Evidence
from neighboragg.persistence import Savable

__all__ = ["Aggregator", "softmax"]


class Aggregator(Savable, BaseEstimator, ABC):
    """Turns evidence into a trust vector; fitted on validation rows."""

    #: Neighbors per class it works with unless told otherwise.
    default_n_neighbors: ClassVar[int]
    #: Whether it looks at distances in the learned metric too.
    uses_learned_metric: ClassVar[bool]
    #: Whether it listens to second opinions.
    uses_opinions: ClassVar[bool] = False
    #: Whether validation rows serve as reference rows (each leaving itself out).
    indexes_validation: ClassVar[bool]
    #: Whether rows may count differently in its fit.
    weighs_rows: ClassVar[bool] = False

    @property
    def uses_neighbors(self) -> bool:
        """Whether it looks at distances at all."""
        return True

    @abstractmethod
    def fit(self, evidence: Evidence, codes: IntArray) -> Self:
        """Learn from validation rows and their classes, given as positions in the class axis."""

    def fit_parts(self, parts: Callable[[], Iterable[Evidence]], codes: IntArray) -> Self:
        """The same from evidence that comes some rows at a time, whenever it is asked for; here all is held at once."""
        return self.fit(Evidence.joined(list(parts())), codes)

    @abstractmethod
    def predict_trust(self, evidence: Evidence) -> FloatArray:
        """Trust in every class, shape (n, C); rows sum to one."""

    @abstractmethod
    def contributions(self, evidence: Evidence) -> tuple[list[str], FloatArray]:
        """Names of the experts, and what each adds to the log trust of every class, shape (n, C, E)."""


def softmax(logits: FloatArray) -> FloatArray:
    """Softmax over the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)
