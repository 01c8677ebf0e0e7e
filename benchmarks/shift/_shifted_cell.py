"""Cells in which some of the test rows are unlike those the classifier was trained on."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.ndimage import rotate
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import Dataset, load_dataset, paper_split
from neighboragg import NeighborAgg
from neighboragg._core.types import BoolArray, FloatArray, IntArray
from neighboragg.features import TabularFeatures
from neighboragg.trust._compare import Cell, fitted_base

__all__ = ["SHIFTS", "ShiftedCell", "shifted_cell"]

#: Data sets by kind of shift.
SHIFTS: dict[str, tuple[str, ...]] = {
    "unknown classes": ("letter", "landsat", "sensorless_drive", "mnist", "fashion_mnist"),
    "noise": ("mnist", "fashion_mnist"),
    "rotation": ("mnist", "fashion_mnist"),
    "other age": ("adult",),
    "other country": ("adult",),
    "rare classes": ("letter", "mnist"),
}
N_ROWS = 4000
SHARE_UNKNOWN = 0.2
SHARE_RARE, KEPT_OF_RARE = 0.5, 0.1
# Standard deviation of the noise, on gray values from 0 to 1, and the angle in degrees.
NOISE, ANGLE = 0.3, 30.0
OLDER = 40
N_COMPONENTS = 50


@dataclass(frozen=True)
class ShiftedCell:
    """A cell, and which of its test rows are shifted."""

    cell: Cell
    shifted: BoolArray

    @cached_property
    def pool(self) -> NeighborAgg:
        """The default method, fitted once for all that is asked of it."""
        method = NeighborAgg()
        self.cell.fit(method, "quantiles")
        return method


@dataclass(frozen=True)
class _Rows:
    """Rows of a data set, split; labels are -1 for classes that are not in training."""

    X: FloatArray
    codes: IntArray
    train: IntArray
    val: IntArray
    test: IntArray
    shifted: BoolArray


def shifted_cell(name: str, kind: str, base: str, seed: int) -> ShiftedCell:
    """Draw at most 4,000 rows, split them 40/10/50, shift some of the test rows, train the base classifier.

    Parameters
    ----------
    name : str
        Data set.
    kind : str
        One of `SHIFTS`. "unknown classes": a fifth of the classes is only among the test rows. "rare classes": of half
        the classes, a tenth is left in training and validation. "noise", "rotation": of half the test images. "other
        age", "other country": training on people under 40, or from the United States; half the test rows are others.
    base : str
        Name of a base classifier.
    seed : int

    Returns
    -------
    cell : ShiftedCell
    """
    dataset = _cached(name)
    rows = _DRAWS[kind](dataset, np.random.default_rng(seed), seed)
    if dataset.images is not None:
        map_ = PCA(N_COMPONENTS, random_state=seed).fit(rows.X[rows.train])
        vectors = dict.fromkeys(("scaled", "quantiles"), map_.transform(rows.X))
    else:
        vectors = {
            "scaled": StandardScaler().fit(rows.X[rows.train]).transform(rows.X),
            "quantiles": TabularFeatures().fit(rows.X[rows.train]).transform(rows.X),
        }
    classifier = fitted_base(base, seed, vectors["scaled"][rows.train], rows.codes[rows.train])
    proba = classifier.predict_proba(vectors["scaled"])
    cell = Cell(vectors, rows.codes, proba, rows.train, rows.val, rows.test)
    return ShiftedCell(cell, rows.shifted[rows.test])


@lru_cache(maxsize=1)
def _cached(name: str) -> Dataset:
    return load_dataset(name)


def _drawn(dataset: Dataset, chosen: IntArray) -> FloatArray:
    if dataset.images is not None:
        return dataset.images[chosen] / 255.0
    return dataset.to_matrix()[chosen]


def _classes_left_out(dataset: Dataset, rng: np.random.Generator, seed: int) -> _Rows:
    return _without_classes(dataset, rng, seed, SHARE_UNKNOWN, 0.0)


def _classes_made_rare(dataset: Dataset, rng: np.random.Generator, seed: int) -> _Rows:
    return _without_classes(dataset, rng, seed, SHARE_RARE, KEPT_OF_RARE)


def _without_classes(
    dataset: Dataset, rng: np.random.Generator, seed: int, share: float, kept: float
) -> _Rows:
    """Of a share of the classes, only the share `kept` stays in training and validation."""
    chosen = rng.permutation(len(dataset.y))[:N_ROWS]
    labels = np.unique(dataset.y, return_inverse=True)[1][chosen]
    n_classes = labels.max() + 1
    shifted = np.isin(labels, rng.permutation(n_classes)[: max(1, round(share * n_classes))])
    train, val, test = paper_split(len(labels), seed=seed)
    stays = ~shifted | (rng.random(len(labels)) < kept)
    train, val = train[stays[train]], val[stays[val]]
    known = np.unique(labels[train])
    val = val[np.isin(labels[val], known)]
    codes = np.searchsorted(known, labels)
    codes = np.where(np.isin(labels, known), codes, -1)
    return _Rows(_drawn(dataset, chosen), codes, train, val, test, shifted)


def _images_changed(change: Callable[[FloatArray, np.random.Generator], FloatArray]) -> "Draw":
    def draw(dataset: Dataset, rng: np.random.Generator, seed: int) -> _Rows:
        chosen = rng.permutation(len(dataset.y))[:N_ROWS]
        codes = np.unique(dataset.y, return_inverse=True)[1][chosen]
        train, val, test = paper_split(len(codes), seed=seed)
        X = _drawn(dataset, chosen)
        shifted = np.zeros(len(codes), dtype=bool)
        shifted[test[: len(test) // 2]] = True
        X[shifted] = change(X[shifted], rng)
        return _Rows(X, codes, train, val, test, shifted)

    return draw


def _noisy(X: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.clip(X + NOISE * rng.normal(size=X.shape), 0.0, 1.0)


def _rotated(X: FloatArray, rng: np.random.Generator) -> FloatArray:
    side = int(np.sqrt(X.shape[1]))
    turned = rotate(X.reshape(-1, side, side), ANGLE, axes=(2, 1), reshape=False, order=1)
    return turned.reshape(X.shape)


def _other_group(is_other: Callable[[Dataset], BoolArray]) -> "Draw":
    def draw(dataset: Dataset, rng: np.random.Generator, seed: int) -> _Rows:
        other = is_other(dataset)
        n_other = N_ROWS // 4
        same = rng.permutation(np.flatnonzero(~other))[: N_ROWS - n_other]
        others = rng.permutation(np.flatnonzero(other))[:n_other]
        chosen = np.concatenate([same, others])
        codes = np.unique(dataset.y, return_inverse=True)[1][chosen]
        shifted = np.arange(len(chosen)) >= len(same)
        # As many rows in each part as in the other cells.
        parts = np.split(np.arange(len(same)), [int(0.4 * N_ROWS), int(0.5 * N_ROWS)])
        test = np.concatenate([parts[2], np.flatnonzero(shifted)])
        return _Rows(_drawn(dataset, chosen), codes, parts[0], parts[1], test, shifted)

    return draw


def _older(dataset: Dataset) -> BoolArray:
    numeric = [name for name in dataset.feature_names if name not in dataset.categorical_names]
    return np.asarray(dataset.numeric[:, numeric.index("age")] >= OLDER)


def _from_elsewhere(dataset: Dataset) -> BoolArray:
    country = dataset.categorical[:, dataset.categorical_names.index("native-country")]
    return np.asarray(country != "United-States")


Draw = Callable[[Dataset, np.random.Generator, int], _Rows]
_DRAWS: dict[str, Draw] = {
    "unknown classes": _classes_left_out,
    "noise": _images_changed(_noisy),
    "rotation": _images_changed(_rotated),
    "other age": _other_group(_older),
    "other country": _other_group(_from_elsewhere),
    "rare classes": _classes_made_rare,
}
