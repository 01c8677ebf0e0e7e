"""Evidence about rows: probabilities, distances and votes, before any of it is weighted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from neighboragg._core.types import FloatArray, IntArray
from neighboragg.search import StreamedRows


@dataclass(frozen=True)
class Evidence:
    """The evidence for n rows and C classes; `proba` is uniform without a classifier."""

    proba: FloatArray
    distances: Mapping[str, FloatArray]
    """Of shape (n, C, K), by space."""
    opinions: Mapping[str, FloatArray] = field(default_factory=lambda: MappingProxyType({}))
    """Probabilities of other classifiers, by name."""
    floors: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Constants added to opinions before the logarithm; the aggregator chooses the others."""
    votes: Mapping[str, FloatArray] = field(default_factory=lambda: MappingProxyType({}))
    """Weight of each class among the nearest rows, of shape (n, C), by space."""
    weight: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.proba)

    def part(self, rows: slice) -> "Evidence":
        """Evidence about some of the rows."""
        return Evidence(
            self.proba[rows],
            {space: distances[rows] for space, distances in self.distances.items()},
            {name: proba[rows] for name, proba in self.opinions.items()},
            self.floors,
            {space: votes[rows] for space, votes in self.votes.items()},
            None if self.weight is None else self.weight[rows],
        )

    def parts(self, size: int) -> Iterator["Evidence"]:
        """Consecutive parts of so many rows."""
        return (self.part(slice(start, start + size)) for start in range(0, max(1, len(self)), size))

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
    """All training rows if they are read in blocks; the arrays above then contain a sample."""

    groups: tuple[IntArray, IntArray] | None = None
    """Group numbers of the training and validation rows, if new rows will be from other groups."""
    is_separate: bool = False
    """Whether validation rows are from other groups than training rows, so they cannot be reference rows."""

    @property
    def shared(self) -> bool:
        """Whether training rows serve as validation rows, with out-of-sample probabilities."""
        return self.X_val is self.X

    @property
    def positions_of_validation(self) -> IntArray:
        """Positions of the validation rows among the rows of fit, or -1 if they are not among the reference rows."""
        if self.is_separate:
            return np.full(len(self.X_val), -1)
        if self.shared:
            return np.arange(len(self.X)) if self.streamed is None else self.streamed.sample.rows
        n_train = len(self.codes) if self.streamed is None else len(self.streamed.codes)
        return n_train + np.arange(len(self.X_val))

    def all_rows(self) -> tuple[FloatArray, IntArray]:
        """Reference rows and their classes: training rows, followed by different validation rows of the same kind."""
        if self.shared or self.is_separate:
            return self.X, self.codes
        return np.concatenate([self.X, self.X_val]), np.concatenate([self.codes, self.codes_val])
