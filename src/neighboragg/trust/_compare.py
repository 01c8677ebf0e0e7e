"""Compare trust methods on your own data."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from neighboragg._core.display import html_table, text_table
from neighboragg._core.estimators import EMBEDDED, refuse_network
from neighboragg._core.inputs import as_plain, expand_vectors
from neighboragg._core.packages import import_extra
from neighboragg._core.progress import Listener, add_total, advance, begin_stage, report_to
from neighboragg._core.types import Array, ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg._data.labels import check_class_labels
from neighboragg._data.open import Table, open_source
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
    MaxConfidence,
    NeighborAgg,
    TemperatureScaling,
    TrustMethod,
    TrustScore,
)
from neighboragg.metrics import trust_metrics

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
    """A trust method and its input vectors: "scaled" features as in the paper, or "quantiles" of training values."""

    make: Callable[[], TrustMethod]
    vectors: str = "scaled"


OURS = "neighboragg"
#: The methods compared: the paper's baselines with their authors' settings, its network, and ours.
METHODS: dict[str, Entrant] = {
    "max-softmax": Entrant(MaxConfidence),
    "temperature scaling": Entrant(TemperatureScaling),
    "Trust Score": Entrant(TrustScore),
    "paper's network": Entrant(lambda: NeighborAgg(NetworkAggregator(bandwidth=1.0))),
    OURS: Entrant(NeighborAgg, "quantiles"),
}
#: Columns of the summary.
COLUMNS = {"AUROC": "auroc", "AP of errors": "ap_error", "AURC (lower is better)": "aurc"}
N_RESAMPLES = 2000


@dataclass(frozen=True, repr=False)
class Comparison:
    """Metrics of trust methods for several classifiers and random splits; made by :func:`compare`.

    Parameters
    ----------
    rows : sequence of dict
        One for each estimator, split and method, with the metrics of :func:`neighboragg.metrics.trust_metrics`.
    name : str, default="data"
        Name of the data.

    Notes
    -----
    It prints as a table of means over estimators and splits, in percent, with the gain of neighboragg in AUROC over
    each other method and its 95% bootstrap interval over estimators and splits.
    """

    rows: Sequence[Mapping[str, Any]] = field(repr=False)
    name: str = "data"

    def to_frame(self) -> Any:
        """One row for each estimator, split and method, with all metrics.

        Returns
        -------
        frame : pandas.DataFrame
        """
        pandas = import_extra("pandas", extra="cli", purpose="A data frame of results")
        return pandas.DataFrame(list(self.rows))

    def __repr__(self) -> str:
        return f"Trust methods on {self.name}\n\n{text_table(self._table())}"

    def _repr_html_(self) -> str:
        return html_table(self._table())

    def _table(self) -> dict[str, Any]:
        methods = list(dict.fromkeys(row["method"] for row in self.rows))
        table: dict[str, list[str]] = {"": methods}
        for title, metric in COLUMNS.items():
            # A metric is undefined on a split without an error, for every method alike.
            table[title] = [_mean(self._percent(method, metric)) for method in methods]
        ours = self._percent(OURS, "auroc")
        table["gain of neighboragg"] = [
            "" if method == OURS else _gain(ours - self._percent(method, "auroc")) for method in methods
        ]
        return {title: np.array(cells) for title, cells in table.items()}

    def _percent(self, method: str, metric: str) -> FloatArray:
        return np.array([100 * row[metric] for row in self.rows if row["method"] == method])


def _mean(values: FloatArray) -> str:
    return "undefined" if np.isnan(values).all() else f"{np.nanmean(values):.2f}"


def _gain(differences: FloatArray) -> str:
    """Mean with a bootstrap interval; without one for a single split."""
    found = differences[~np.isnan(differences)]
    if len(found) < 2:
        return _mean(found) if len(found) else "undefined"
    drawn = np.random.default_rng(0).integers(0, len(found), (N_RESAMPLES, len(found)))
    low, high = np.quantile(found[drawn].mean(axis=1), [0.025, 0.975])
    return f"{found.mean():+.2f} [{low:+.2f}, {high:+.2f}]"


MIN_ROWS = 50


def table_matrix(source: Any, label: str) -> tuple[FloatArray, Array]:
    """Numbers and one-hot categories of the labeled rows of a table, not scaled, and the text of their labels."""
    table = open_source(source)
    texts = table.texts(label)
    check_class_labels(texts, label, least_rows=MIN_ROWS)
    labeled = np.flatnonzero(texts != "")
    features = [name for name in table.columns if name != table.named(label)]
    labels, frame = texts[labeled], table.take(labeled, features)
    if 5 * (n_classes := len(np.unique(labels))) > len(labels):
        raise InvalidInputError(
            f"The label column {label!r} has {n_classes} different values in {len(labels)} rows; each has too "
            "few rows to compare methods.\nHint: choose another column, or join rare classes."
        )
    roles = tuple(_without_text(role) for role in column_roles(frame, labels, **table.written))
    check_usable(roles, hint="add columns of numbers or categories.")
    if left_out := [f"{role.name!r} ({role.reason})" for role in roles if not role.used]:
        warnings.warn(f"Left out {', '.join(left_out)}.", TrustWarning, stacklevel=2)
    for doubt in filter(None, (role.doubt for role in roles)):
        warnings.warn(doubt, TrustWarning, stacklevel=2)
    return to_matrix(prepared_frame(frame, roles)), labels


def _without_text(role: ColumnRole) -> ColumnRole:
    return ColumnRole(role.name, "ignored", "texts") if role.use == "text" else role


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
    # Rows of a class missing from training are left out: it cannot be predicted.
    val, test = (part[np.isin(labels[part], classes)] for part in (val, test))
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    scaled = StandardScaler().fit(X[train]).transform(X)
    classifier = fitted_base(base, seed, scaled[train], codes[train])
    vectors = {"scaled": scaled, "quantiles": TabularFeatures().fit(X[train]).transform(X)}
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


OWNER = "compare"
# CPU seconds of a split with one estimator: fixed, and for each thousand rows, as measured on tables of 20 columns.
SECONDS, SECONDS_PER_1000 = 2.0, 3.0


def compare(
    data: Any,
    y: ArrayLike | None = None,
    *,
    label: str | None = None,
    estimators: Sequence[str] = ("LR", "RF", "HGB"),
    splits: int = 3,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: Listener | None = None,
) -> Comparison:
    """Compare trust methods on your own data: several classifiers, random splits, and intervals.

    Parameters
    ----------
    data : path, Table, DataFrame, data set, tensor or array-like of shape (n, n_features)
        A table file (CSV, Parquet, …), a DataFrame or a Hugging Face data set, with `label`; or numbers, with `y`.
    y : array-like of shape (n,), default=None
        Labels of an array.
    label : str, default=None
        Label column of a file or a DataFrame.
    estimators : sequence of str, default=("LR", "RF", "HGB")
        Classifiers: "LR" (logistic regression), "RF" (random forest), "MLP" (network) or "HGB" (boosting).
    splits : int, default=3
        Random splits into 40% training, 10% validation and 50% test rows.
    n_jobs : int, default=None
        Number of processes; each computes whole splits. None means 1, -1 uses every core.
    random_state : int, default=0
        Seed of the first split.
    progress : callable, default=None
        Called as ``progress(stage, done, total)``; the first stage names the expected time, which is logged as well.

    Returns
    -------
    comparison : Comparison
        ``print`` it, or take its ``to_frame()``.

    Notes
    -----
    Five methods are compared: the largest probability, the same after temperature scaling, Trust Score, the
    paper's network, and :class:`NeighborAgg` with its defaults.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from neighboragg import compare
    >>> X, y = load_digits(return_X_y=True)
    >>> found = compare(X[:400], y[:400], estimators=["LR"], splits=1).to_frame().set_index("method")
    >>> bool(found.loc["neighboragg", "auroc"] > found.loc["max-softmax", "auroc"])
    True
    """
    for name, value in (("data", data), *(("estimators", one) for one in estimators)):
        refuse_network(value, name, OWNER, EMBEDDED)
    chosen = [check_choice(name, "estimators", OWNER, choices=BASES) for name in estimators]
    first = check_integer(random_state, "random_state", OWNER, minimum=0)
    seeds = range(first, first + check_integer(splits, "splits", OWNER, minimum=1))
    is_file = isinstance(data, str | Path | Table)
    if not is_file:
        data = expand_vectors(as_plain(data, "data", OWNER), "data", OWNER)
    _check_combination(data, y, label, is_file=is_file)
    X, labels = _arrays(data, y, label)
    n_processes = min(joblib.effective_n_jobs(n_jobs), len(seeds))
    seconds = len(seeds) * len(chosen) * (SECONDS + SECONDS_PER_1000 * len(X) / 1000) / n_processes
    rows = []
    with report_to(progress):
        add_total(len(seeds) * len(chosen))
        begin_stage(f"Comparing, about {_duration(seconds)}")
        cells = _cells(X, labels, chosen, seeds, n_processes)
        for _ in range(len(seeds) * len(chosen)):
            with report_to(_ignore):  # the stages of each fit
                rows += next(cells)
            advance()
    place = data.path if isinstance(data, Table) else data
    return Comparison(rows, Path(place).name if isinstance(place, str | Path) else "data")


def _duration(seconds: float) -> str:
    return f"{max(10, 10 * round(seconds / 10))} s" if seconds < 90 else f"{round(seconds / 60)} min"


def _ignore(stage: str, done: int, total: int) -> None:
    """A listener that does nothing."""


def _cells(
    X: FloatArray, labels: Array, estimators: Sequence[str], seeds: range, n_processes: int
) -> Iterator[list[dict[str, Any]]]:
    """Rows of each cell; classifiers of one split share a process and their second opinions."""
    if n_processes == 1:
        for seed in seeds:
            yield from _split_cells(X, labels, estimators, seed)
        return
    splits = (joblib.delayed(_split_rows)(X, labels, estimators, seed) for seed in seeds)
    for cells in joblib.Parallel(n_processes, return_as="generator")(splits):
        yield from cells


def _split_cells(
    X: FloatArray, labels: Array, estimators: Sequence[str], seed: int
) -> Iterator[list[dict[str, Any]]]:
    remembered = RememberedOpinions()
    for name in estimators:
        cell = make_cell(X, labels, name, seed)
        about = {"estimator": name, "split": seed}
        sizes = {"n_train": len(cell.train), "n_val": len(cell.val), "n_test": len(cell.test)}
        with remembered:
            yield [
                {
                    **about,
                    "method": method,
                    **trust_metrics(cell.correct, cell.trust(entrant.make(), entrant.vectors)),
                    **sizes,
                }
                for method, entrant in METHODS.items()
            ]


def _split_rows(*split: Any) -> list[list[dict[str, Any]]]:
    """The same as a list, because a generator cannot be sent between processes."""
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
