"""What is known about each row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from neighboragg._core.types import FloatArray, IntArray
from neighboragg.search import StreamedRows


@dataclass(frozen=True)
class Opinion:
    """Another classifier's probabilities, and the floor added before their logarithm is taken."""

    proba: FloatArray
    floor: float


@dataclass(frozen=True)
class Evidence:
    """All that an aggregator may look at, for n rows and C classes."""

    proba: FloatArray
    distances: Mapping[str, FloatArray]
    opinions: Mapping[str, Opinion] = field(default_factory=lambda: MappingProxyType({}))
    leading: Sequence[str] = ()
    weight: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.proba)

    @classmethod
    def joined(cls, parts: Sequence["Evidence"]) -> "Evidence":
        """Evidence of the rows of all parts."""
        first = parts[0]
        if len(parts) == 1:
            return first
        return cls(
            np.concatenate([part.proba for part in parts]),
            {name: np.concatenate([part.distances[name] for part in parts]) for name in first.distances},
            {
                name: Opinion(np.concatenate([part.opinions[name].proba for part in parts]), opinion.floor)
                for name, opinion in first.opinions.items()
            },
            first.leading,
            np.concatenate([part.row_weights for part in parts]),
        )

    @property
    def row_weights(self) -> FloatArray:
        """How much each row counts."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def feature_distances(self) -> FloatArray:
        """Distances in the feature space."""
        return next(iter(self.distances.values()))


def laplacian_similarity(distances: FloatArray, bandwidth: float) -> FloatArray:
    """exp(−r / T), and 0 for a neighbor that does not exist (Eq. 1 of the paper has T = 1)."""
    return np.exp(-distances / bandwidth)


@dataclass(frozen=True)
class FitData:
    """Validated arrays that a method learns from; labels are positions in the class axis."""

    X: FloatArray
    codes: IntArray
    X_val: FloatArray
    codes_val: IntArray
    proba_val: FloatArray
    n_classes: int
    streamed: StreamedRows | None = None
    """All training rows, where they are read in blocks; the arrays above are then those of a sample."""

    @property
    def shared(self) -> bool:
        """Whether training rows vouch for themselves with out-of-sample probabilities."""
        return self.X_val is self.X

    def all_rows(self) -> tuple[FloatArray, IntArray]:
        """Training rows, followed by the validation rows where those are others; and their classes."""
        if self.shared:
            return self.X, self.codes
        return np.concatenate([self.X, self.X_val]), np.concatenate([self.codes, self.codes_val])
