"""Which trust method is best on one's own data."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._inputs import as_plain, expand_vectors
from neighboragg._typing import Array, ArrayLike, FloatArray
from neighboragg._validation import check_choice, check_integer, check_labels, check_rows, check_same_length
from neighboragg.bench._comparison import Comparison
from neighboragg.bench._data import load_matrix
from neighboragg.bench._lineup import BASES, COMPARED, ENTRANTS
from neighboragg.bench._store import ResultStore
from neighboragg.bench._tasks import Task, file_digest, run_tasks
from neighboragg.exceptions import InvalidInputError

__all__ = ["compare"]

OWNER = "compare"


def compare(
    data: Any,
    y: ArrayLike | None = None,
    *,
    label: str | None = None,
    bases: Sequence[str] = ("LR", "RF", "HGB"),
    methods: Sequence[str] = COMPARED,
    n_splits: int = 3,
    n_jobs: int | None = None,
    results: str | Path | None = None,
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
    methods : sequence of str, default=all but ablations
        Names in `neighboragg.bench.ENTRANTS`.
    n_splits : int, default=3
        Random splits into 40% training, 10% validation and 50% test rows.
    n_jobs : int, default=None
        Processes; None means as many as there are cores and memory for.
    results : path, default=None
        JSON lines file that keeps every finished cell; what it holds for the same file contents is not computed
        again. For files only.
    progress : callable, default=None
        Called with the number of finished cells and of all.

    Returns
    -------
    comparison : Comparison
        Print it, or take its `to_frame()`, `to_markdown()`, `to_html()`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from neighboragg.bench import compare
    >>> X, y = load_digits(return_X_y=True)
    >>> chosen = {"bases": ["LR"], "methods": ["Confidence", "Pool"]}
    >>> found = compare(X[:600], y[:600], n_splits=2, n_jobs=1, **chosen)
    >>> found.to_frame().groupby("method")["auroc"].mean().round(2).to_dict()
    {'Confidence': 0.95, 'Pool': 0.99}
    """
    bases = [check_choice(base, "bases", OWNER, choices=BASES) for base in bases]
    methods = tuple(check_choice(method, "methods", OWNER, choices=ENTRANTS) for method in methods)
    seeds = range(check_integer(n_splits, "n_splits", OWNER, minimum=1))
    is_file = isinstance(data, str | Path)
    if not is_file:
        data = expand_vectors(as_plain(data, "data", OWNER), "data", OWNER)
    _check_combination(data, y, label, results, is_file=is_file)
    if is_file:
        load_matrix(str(data), label)  # what is wrong with the file is told before work starts
        name, given = Path(data).name, Task(str(data), "", 0, methods, label)
    else:
        name, given = "data", Task("data", "", 0, methods, arrays=_arrays(data, y, label))
    tasks = [replace(given, base=base, seed=seed) for base in bases for seed in seeds]
    store = ResultStore(None if results is None else Path(results))
    run_tasks(tasks, store, n_jobs=n_jobs, progress=progress)
    # The store may know other label columns, and earlier contents of the file.
    wanted = {"label": label, "digest": file_digest(Path(data))} if is_file else {}
    rows = [row for row in store.rows if wanted.items() <= row.items()]
    return Comparison(rows, [name], bases, methods, title=f"Trust methods on {name}")


def _arrays(data: Any, y: Any, label: str | None) -> tuple[FloatArray, Array]:
    if label is not None:
        return load_matrix(data, label)
    X = check_rows(data, "data", OWNER).astype(np.float64)
    labels = check_labels(y, "y", OWNER)
    check_same_length(X, "data", labels, "y", OWNER)
    return X, labels


def _check_combination(
    data: Any, y: ArrayLike | None, label: str | None, results: str | Path | None, *, is_file: bool
) -> None:
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
    if results is not None and not is_file:
        raise InvalidInputError(
            f"results passed to {OWNER} keeps results of files only: the contents tell whether they still hold."
        )
