"""Fit on Parquet files of any size."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import clone

from neighboragg._core.estimators import gives_vectors, is_frozen
from neighboragg._core.progress import Listener, add_total, advance, begin_stage, report_to
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg._data.arrow import as_rows, listed_names
from neighboragg._data.parquet import (
    InputFile,
    Part,
    check_columns,
    column_names,
    cut,
    find_files,
    first_with_rows,
    read_part,
)
from neighboragg._run.executor import Executor, executor_for
from neighboragg._run.gather import read_labels, read_rows
from neighboragg._run.plan import BATCH_ROWS, PART_ROWS
from neighboragg._store.load import load
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.methods import NeighborAgg
from neighboragg.search import Approximate, ArrayBlocks, Streamed, check_search
from neighboragg.trust._classifier import TrustedClassifier, fit_on_sample, vectors_of
from neighboragg.trust._seen import row_hashes


@dataclass(frozen=True)
class RowsFile:
    """A matrix in a .npy file, written part by part."""

    path: str
    n_rows: int
    n_features: int
    dtype: str

    def create(self) -> None:
        """Create the empty file."""
        shape = (self.n_rows, self.n_features)
        np.lib.format.open_memmap(self.path, mode="w+", dtype=self.dtype, shape=shape)

    def read(self) -> Any:
        """The rows, mapped."""
        return np.load(self.path, mmap_mode="r", allow_pickle=False)

    def write(self, first: int, rows: FloatArray) -> None:
        """Put rows in their place."""
        # Not mapped: parts that are written at the same time may share a page.
        offset = self.read().offset + first * self.n_features * rows.itemsize
        with Path(self.path).open("r+b") as file:
            file.seek(offset)
            file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)


@dataclass(frozen=True)
class VectorizePart:
    """Vectorize the training rows of a part, and write them to the file of all vectors."""

    model: TrustedClassifier
    columns: tuple[str, ...]
    rows: RowsFile
    batch_rows: int

    def __call__(self, part: Part) -> IntArray:
        """Hashes of the rows."""
        rows = as_rows(read_part(part, self.columns))
        starts = range(0, len(rows), self.batch_rows)
        vectors = np.concatenate(
            [vectors_of(self.model, rows[start : start + self.batch_rows]) for start in starts]
        ).astype(self.rows.dtype, copy=False)
        self.rows.write(part.first, vectors)
        return row_hashes(vectors)


def fit(
    model: TrustedClassifier,
    source: Any,
    output: str | PathLike[str],
    *,
    label: str,
    validation: Any = None,
    columns: Sequence[str] | None = None,
    client: Any = None,
    n_jobs: int | None = None,
    trusted: Sequence[str] = (),
    overwrite: bool = False,
    progress: Listener | None = None,
) -> TrustedClassifier:
    """Fit a model on training rows in Parquet files of any size.

    Parameters
    ----------
    model : TrustedClassifier
        Not fitted; it stays as it is. Its method must be a :class:`~neighboragg.NeighborAgg`.
    source : path-like, str or list of these
        Parquet files with the training rows: a file, a folder, a pattern such as ``"data/*.parquet"``, or an address
        such as ``s3://…``.
    output : path-like
        File for the model. During the run, its folder also stores the vectors of all rows; on a cluster, all workers
        must share that storage.
    label : str
        Column of labels.
    validation : path-like, str or list of these, default=None
        Parquet files with rows that the classifier was not trained on. They are read into memory. None takes
        out-of-fold probabilities, for which `cv` of the model must be set.
    columns : sequence of str, default=None
        Columns to learn from; None uses all but the label.
    client : dask.distributed.Client, default=None
        Cluster on which rows become vectors. None works in this process.
    n_jobs : int, default=None
        Number of threads without a client; each works on one part.
    trusted : sequence of str, default=()
        As in :func:`neighboragg.load`.
    overwrite : bool, default=False
        Whether `output` may be replaced.
    progress : callable, default=None
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    model : TrustedClassifier
        The fitted model, mapped from its file.

    Notes
    -----
    The sample is the same as with ``NeighborAgg(search=Streamed())``: 50,000 training rows drawn at random, and some
    more of rare classes. A classifier that is not frozen, the vectorization, the learned metric and the second
    opinions are fitted on the sample, in this process. All training rows become vectors, part by part, and are
    reference rows. This process then streams them once for each metric to find the neighbors of at most 5,000
    validation rows, and fits the pool on them.

    If all rows fit in the sample, the model equals that of :meth:`TrustedClassifier.fit`, up to rounding.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from neighboragg import TrustedClassifier
    >>> from neighboragg import fit
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TrustedClassifier(LogisticRegression(max_iter=500), cv=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = pathlib.Path(folder)
    ...     X[::2].assign(species=y[::2]).to_parquet(folder / "rows.parquet")
    ...     model = fit(model, folder / "rows.parquet", folder / "model.nagg", label="species")
    >>> assessed = model.assess(X[1::2])
    >>> bool((assessed.predicted == y[1::2]).mean() > 0.9), bool(assessed.trust.mean() > 0.8)
    (True, True)
    """
    model, method = _checked_model(model, validated=validation is not None)
    path = Path(output).resolve()
    if path.exists() and not overwrite:
        raise InvalidInputError(f"{path} exists already.\nHint: overwrite=True, or choose another name.")
    executor = executor_for(client, n_jobs)
    files = find_files(source)
    files_val = [] if validation is None else find_files(validation)
    first = first_with_rows(files)
    chosen = listed_names(columns, "columns", "fit") or tuple(
        name for name in column_names(first) if name != label
    )
    if label in chosen:
        raise InvalidInputError(f"The label column {label!r} is among the columns to learn from.")
    for file in (first, *(file for file in files_val if file.rows)):
        check_columns(file, (label, *chosen))
    with report_to(progress), _folder_next_to(path) as folder:
        run = _Run(cut(files, PART_ROWS), chosen, label, executor)
        run.fitted(model, method, files_val, folder).save(path)
    return load(path, trusted=tuple(trusted), mmap=True)


def _checked_model(model: Any, *, validated: bool) -> tuple[TrustedClassifier, NeighborAgg]:
    """A copy of the model and its method that reads reference rows in blocks; raises if it cannot."""
    if not isinstance(model, TrustedClassifier):
        raise InvalidParameterError(
            f"The 'model' parameter of fit must be a TrustedClassifier. Got a {type(model).__name__}.\n"
            "Hint: TrustedClassifier(FrozenEstimator(classifier)) for a classifier that was fitted elsewhere."
        )
    owner = type(model).__name__
    method = NeighborAgg() if model.method is None else model.method
    if not isinstance(method, NeighborAgg):
        raise InvalidParameterError(
            f"The 'method' parameter of {owner} must be a NeighborAgg for rows outside memory, "
            f"because only NeighborAgg reads them in blocks. Got {method!r} instead."
        )
    search = check_search(method.search, type(method).__name__)
    if isinstance(search, Approximate):
        raise InvalidParameterError(
            f"The 'search' parameter of {type(method).__name__} must be a Streamed for rows that are not in "
            f"memory. Got {search!r} instead."
        )
    if gives_vectors(model.estimator):
        raise InvalidInputError(
            f"The network of this {owner} takes rows in memory.\n"
            "Hint: write its embeddings to a column of vectors, and fit a classifier with predict_proba on these."
        )
    if not validated and (model.cv is None or is_frozen(model.estimator)):
        raise InvalidInputError(
            f"{owner} needs rows that the classifier was not trained on to learn trust from.\n"
            "Hint: pass validation rows, or set cv=5 for a classifier that is not frozen."
        )
    search = search if isinstance(search, Streamed) else Streamed(metric=search.metric)
    method = clone(method).set_params(search=search)
    return clone(model).set_params(method=method), method


@contextmanager
def _folder_next_to(path: Path) -> Iterator[Path]:
    """A temporary folder next to the output; raises if the output cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be written: {error.strerror}.\nHint: choose another output."
        ) from error
    with folder as name:
        yield Path(name)


@dataclass(frozen=True)
class _Run:
    """Training rows in parts, and the executor that works on them."""

    parts: Sequence[Part]
    columns: tuple[str, ...]
    label: str
    executor: Executor

    def fitted(
        self, model: TrustedClassifier, method: NeighborAgg, files_val: Sequence[InputFile], folder: Path
    ) -> TrustedClassifier:
        """The model; vectors of all rows are in the folder."""
        begin_stage("Reading labels")
        labels = read_labels(self.executor, self.parts, self.label)
        validation = self._validation(files_val)
        begin_stage("Reading a sample")
        sample = method.training_sample(labels)
        table = read_rows(self.executor, self.parts, self.columns, sample)
        begin_stage("Fitting on the sample")

        def vectorize(fitted: TrustedClassifier, vectors: FloatArray) -> tuple[ArrayBlocks, IntArray]:
            dtype = "<f4" if vectors.dtype == np.float32 else "<f8"
            rows = RowsFile(str(folder / "rows.npy"), len(labels), vectors.shape[1], dtype)
            rows.create()
            hashes = self._made(VectorizePart(fitted, self.columns, rows, BATCH_ROWS))
            begin_stage("Learning trust")
            return ArrayBlocks(rows.read()), hashes

        return fit_on_sample(model, (as_rows(table), labels[sample]), validation, labels, vectorize)

    def _validation(self, files: Sequence[InputFile]) -> tuple[Any, Array] | None:
        if not files:
            return None
        begin_stage("Reading validation rows")
        parts = cut(files, PART_ROWS)
        rows = as_rows(read_rows(self.executor, parts, self.columns))
        return rows, read_labels(self.executor, parts, self.label)

    def _made(self, work: VectorizePart) -> IntArray:
        """Hashes of all rows in order, when all vectors are in their place."""
        add_total(len(self.parts))
        begin_stage("Making vectors")
        hashes: dict[int, IntArray] = {}
        failed: dict[str, str] = {}
        for outcome in self.executor.run(work, self.parts):
            if outcome.error is None:
                hashes[outcome.item.number] = outcome.value
            else:
                failed[outcome.item.place] = outcome.error
            advance()
        if failed:
            place, error = min(failed.items())
            raise InvalidInputError(
                f"{len(failed)} of {len(self.parts)} parts failed, such as {place}: {error}\n"
                "Hint: repair the rows, or leave them out."
            )
        return np.concatenate([hashes[part.number] for part in self.parts])
