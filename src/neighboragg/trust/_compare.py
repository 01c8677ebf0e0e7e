"""Compare trust methods on your own data."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from neighboragg._core.checks import check_choice, check_integer, check_labels, check_rows, check_same_length
from neighboragg._core.estimators import EMBEDDED, refuse_network
from neighboragg._core.inputs import as_plain, expand_vectors
from neighboragg._core.types import Array, ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg._data.labels import check_class_labels
from neighboragg._data.open import read_table
from neighboragg._pool.network import NetworkAggregator
from neighboragg._pool.opinions import RememberedOpinions
from neighboragg.exceptions import InvalidInputError, TrustWarning
from neighboragg.features import (
    ColumnRole,
    TabularFeatures,
    check_usable,
    column_roles,
    prepared_frame,
    to_matrix,
)
from neighboragg.methods import (
    Mahalanobis,
    MaxConfidence,
    NeighborAgg,
    NeighborGCN,
    TemperatureScaling,
    TopLabelCalibration,
    TrueClassProbability,
    TrustMethod,
    TrustScore,
)
from neighboragg.metrics import trust_metrics
from neighboragg.trust._comparison import Comparison

#: Base classifiers by name, for a seed. The MLP is scikit-learn's: two hidden layers as in the paper, without
#: batch normalization, stopped early on a tenth of its training rows.
BASES: dict[str, Callable[[int], Any]] = {
    "LR": lambda seed: LogisticRegression(max_iter=5000),
    "RF": lambda seed: RandomForestClassifier(random_state=seed),
    "MLP": lambda seed: MLPClassifier((200, 70), early_stopping=True, max_iter=100, random_state=seed),
    "HGB": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}


@dataclass(frozen=True)
class Entrant:
    """A trust method and the vectors it sees: "scaled" features as in the paper, or "tamed" ones."""

    make: Callable[[], TrustMethod]
    vectors: str = "scaled"


#: Trust methods by name: baselines with their authors' settings, the paper's network, ours with growing effort.
METHODS: dict[str, Entrant] = {
    "Confidence": Entrant(MaxConfidence),
    "TempScaling": Entrant(TemperatureScaling),
    "TopLabel": Entrant(TopLabelCalibration),
    "TCP": Entrant(TrueClassProbability),
    "Mahalanobis": Entrant(Mahalanobis),
    "TrustScore": Entrant(TrustScore),
    "GCN-1hop": Entrant(NeighborGCN),
    "Network": Entrant(lambda: NeighborAgg(NetworkAggregator(bandwidth=1.0))),
    "Pool, fast": Entrant(lambda: NeighborAgg(effort="fast"), "tamed"),
    "Pool": Entrant(NeighborAgg, "tamed"),
    "Pool, best": Entrant(lambda: NeighborAgg(effort="best"), "tamed"),
}
#: What a comparison shows unless others are asked for; "Pool, best" takes minutes.
USUAL_METHODS = ("Confidence", "TempScaling", "TrustScore", "Network", "Pool")


FEWEST_ROWS = 50


def table_matrix(source: Any, label: str) -> tuple[FloatArray, Array]:
    """Numbers and one-hot categories of the labeled rows of a table, not scaled, and the text of their labels."""
    table = read_table(Path(source) if isinstance(source, str) else source, label)
    check_class_labels(table.labels, label, least_rows=FEWEST_ROWS)
    labeled = np.flatnonzero(table.labels != "")
    labels, frame = table.labels[labeled], table.frame.iloc[labeled]
    if 5 * (n_classes := len(np.unique(labels))) > len(labels):
        raise InvalidInputError(
            f"The label column {label!r} has {n_classes} different values in {len(labels)} rows; that leaves too few "
            "rows of each to compare methods.\nHint: choose another column, or join rare classes."
        )
    roles = tuple(_without_text(role) for role in column_roles(frame, labels))
    check_usable(roles, hint="add columns of numbers or categories.")
    if left_out := [f"{role.name!r} ({role.reason})" for role in roles if not role.used]:
        warnings.warn(f"Left out {', '.join(left_out)}.", TrustWarning, stacklevel=2)
    return to_matrix(prepared_frame(frame, roles)), labels


def _without_text(role: ColumnRole) -> ColumnRole:
    return ColumnRole(role.name, "ignored", "texts") if role.use == "text" else role


# More than any table shows.
DIGITS = 6
FIRST_SEED = 42
TEST_SHARE = 0.5
VALIDATION_SHARE_OF_REST = 0.2


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
    """Split 40/10/50, scale with training statistics, train the base classifier."""
    train, val, test = split_rows(len(labels), seed)
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


def split_rows(n: int, seed: int) -> tuple[IntArray, IntArray, IntArray]:
    """Row numbers of 40% training, 10% validation and 50% test rows, drawn as in the paper."""
    rest, test = train_test_split(np.arange(n), test_size=TEST_SHARE, random_state=FIRST_SEED + seed)
    train, validation = train_test_split(
        rest, test_size=VALIDATION_SHARE_OF_REST, random_state=FIRST_SEED + seed
    )
    return train, validation, test


def score_entrants(cell: Cell, entrants: Mapping[str, Entrant], **changes: Any) -> Iterator[dict[str, Any]]:
    """Metrics and CPU seconds of each entrant on a cell; `changes` are set on those that know them."""
    for name, entrant in entrants.items():
        method = entrant.make()
        known = method.get_params()
        method.set_params(**{key: value for key, value in changes.items() if key in known})
        start = time.process_time() + RememberedOpinions.saved()
        trust = cell.trust(method, entrant.vectors)
        seconds = time.process_time() + RememberedOpinions.saved() - start
        found = {metric: round(value, DIGITS) for metric, value in trust_metrics(cell.correct, trust).items()}
        yield {"method": name, "cpu_seconds": round(seconds, 3), **found}


OWNER = "compare"


def compare(
    data: Any,
    y: ArrayLike | None = None,
    *,
    label: str | None = None,
    bases: Sequence[str] = ("LR", "RF", "HGB"),
    methods: Sequence[str] = USUAL_METHODS,
    n_splits: int = 3,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare trust methods on your own data: several base classifiers, random splits, and intervals.

    Parameters
    ----------
    data : path, DataFrame, data set, tensor or array-like of shape (n, n_features)
        A table file (CSV, Parquet, …), a DataFrame or a Hugging Face data set, with `label`; or numbers, with `y`.
    y : array-like of shape (n,), default=None
        Labels of an array.
    label : str, default=None
        Label column of a file or a DataFrame.
    bases : sequence of str, default=("LR", "RF", "HGB")
        Base classifiers: "LR" (logistic regression), "RF" (random forest), "MLP" (network) or "HGB" (boosting).
    methods : sequence of str, default=("Confidence", "TempScaling", "TrustScore", "Network", "Pool")
        Further ones are "TopLabel", "TCP", "Mahalanobis", "GCN-1hop", "Pool, fast" and "Pool, best".
    n_splits : int, default=3
        Random splits into 40% training, 10% validation and 50% test rows.
    n_jobs : int, default=None
        Processes, each of which computes whole splits; None means none but this one, -1 as many as there are cores.
    progress : callable, default=None
        Called with the number of finished cells and of all.

    Returns
    -------
    comparison : Comparison
        Print it, or take its `to_frame()`, `to_markdown()`, `to_html()`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from neighboragg import compare
    >>> X, y = load_digits(return_X_y=True)
    >>> found = compare(X[:600], y[:600], n_splits=2, bases=["LR"], methods=["Confidence", "Pool"])
    >>> found.to_frame().groupby("method")["auroc"].mean().round(2).to_dict()
    {'Confidence': 0.95, 'Pool': 0.99}
    """
    for name, value in (
        ("data", data),
        *(("bases", base) for base in bases),
        *(("methods", m) for m in methods),
    ):
        refuse_network(value, name, OWNER, EMBEDDED)
    bases = [check_choice(base, "bases", OWNER, choices=BASES) for base in bases]
    methods = [check_choice(method, "methods", OWNER, choices=METHODS) for method in methods]
    seeds = range(check_integer(n_splits, "n_splits", OWNER, minimum=1))
    is_file = isinstance(data, str | Path)
    if not is_file:
        data = expand_vectors(as_plain(data, "data", OWNER), "data", OWNER)
    _check_combination(data, y, label, is_file=is_file)
    name = Path(data).name if is_file else "data"
    X, labels = _arrays(data, y, label)
    rows = []
    if progress is not None:
        progress(0, len(seeds) * len(bases))
    for n_done, row in enumerate(_cells(X, labels, bases, methods, seeds, n_jobs), start=1):
        rows += [{"set": name, **found} for found in row]
        if progress is not None:
            progress(n_done, len(seeds) * len(bases))
    return Comparison(rows, [name], bases, methods, title=f"Trust methods on {name}")


def _cells(
    X: FloatArray,
    labels: Array,
    bases: Sequence[str],
    methods: Sequence[str],
    seeds: range,
    n_jobs: int | None,
) -> Iterator[list[dict[str, Any]]]:
    """Rows of each cell; classifiers of one split are compared in one process, as they share second opinions."""
    if joblib.effective_n_jobs(n_jobs) == 1:
        for seed in seeds:
            yield from _split_cells(X, labels, bases, methods, seed)
        return
    splits = (joblib.delayed(_split_rows)(X, labels, bases, methods, seed) for seed in seeds)
    for cells in joblib.Parallel(n_jobs, return_as="generator")(splits):
        yield from cells


def _split_cells(
    X: FloatArray, labels: Array, bases: Sequence[str], methods: Sequence[str], seed: int
) -> Iterator[list[dict[str, Any]]]:
    remembered = RememberedOpinions()
    for base in bases:
        cell = make_cell(X, labels, base, seed)
        about = {"n_train": len(cell.train), "n_val": len(cell.val), "n_test": len(cell.test)}
        with remembered:
            scored = list(score_entrants(cell, {name: METHODS[name] for name in methods}))
        yield [{"base": base, "seed": seed, **row, **about} for row in scored]


def _split_rows(*split: Any) -> list[list[dict[str, Any]]]:
    """The same, whole, as a generator does not travel between processes."""
    return list(_split_cells(*split))


def _arrays(data: Any, y: Any, label: str | None) -> tuple[FloatArray, Array]:
    if label is not None:
        return table_matrix(data, label)
    X = check_rows(data, "data", OWNER).astype(np.float64)
    labels = check_labels(y, "y", OWNER)
    check_same_length(X, "data", labels, "y", OWNER)
    return X, labels


def _check_combination(data: Any, y: ArrayLike | None, label: str | None, *, is_file: bool) -> None:
    if (y is None) == (label is None):
        raise InvalidInputError(
            f"{OWNER} needs either y or label, not {'neither' if y is None else 'both'}.\n"
            "Hint: compare(X, y) for arrays, compare(frame_or_path, label='column') for tables."
        )
    if is_file and label is None:
        raise InvalidInputError(f"A file passed to {OWNER} needs label, the name of its label column.")
    if label is not None and not is_file and not hasattr(data, "columns"):
        raise InvalidInputError(
            f"label passed to {OWNER} names a column, but {type(data).__name__} has none.\n"
            "Hint: pass the labels of an array as y."
        )
