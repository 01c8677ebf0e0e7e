"""Fit on Parquet files of any size."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

import neighboragg
from neighboragg._core.checks import check_integer
from neighboragg._core.packages import import_extra
from neighboragg._core.progress import Listener, announce, telling
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg._data.arrow import as_rows, in_portions, listed_names
from neighboragg._data.parquet import (
    InputFile,
    Part,
    check_apart,
    check_columns,
    column_names,
    cut,
    find_files,
    first_with_rows,
    read_part,
)
from neighboragg._run.executor import Executor, executor_for
from neighboragg._run.gather import read_labels, read_rows
from neighboragg._run.plan import PURPOSE, OutputFolder, Plan
from neighboragg._run.work import ModelFile, ModelObject, as_model, do_parts
from neighboragg._store.load import load
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.search import ArrayBlocks
from neighboragg.trust._classifier import TrustedClassifier
from neighboragg.trust._staged_fit import StagedFit


@dataclass(frozen=True)
class RowsFile:
    """A matrix in a .npy file; every part of the input has its place in it."""

    path: str
    n_rows: int
    n_features: int
    dtype: str

    def create(self) -> None:
        """Make the file, with nothing in it yet."""
        temporary = f"{self.path}.{token_hex(4)}.tmp"
        shape = (self.n_rows, self.n_features)
        np.lib.format.open_memmap(temporary, mode="w+", dtype=self.dtype, shape=shape)
        Path(temporary).replace(self.path)

    def read(self) -> Any:
        """The rows, mapped."""
        return np.load(self.path, mmap_mode="r", allow_pickle=False)

    def write(self, first: int, rows: FloatArray) -> None:
        """Put rows in their place, safely on disk when this returns."""
        # Not mapped: neighbors in the file may be written at the same time, and share a page with these.
        offset = self.read().offset + first * self.n_features * rows.itemsize
        with Path(self.path).open("r+b") as file:
            file.seek(offset)
            file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
            file.flush()
            os.fsync(file.fileno())


STAGE, ROWS = "stage.nagg", "rows.npy"


@dataclass(frozen=True)
class VectorizePart:
    """Training rows of a part to vectors in their place in the file of all; what is left is a number for each."""

    stage: ModelFile | ModelObject
    columns: tuple[str, ...]
    rows: RowsFile
    batch_rows: int

    def __call__(self, part: Part) -> Any:
        """Hashes of the rows as an Arrow table."""
        arrow = import_extra("pyarrow", extra="dask", purpose=PURPOSE)
        stage: StagedFit = self.stage.get()
        rows = as_rows(read_part(part, self.columns))
        portions = in_portions(stage.vectors, rows, len(rows), self.batch_rows)
        vectors = np.concatenate([found[:n_real] for found, n_real in portions])
        self.rows.write(part.first, vectors)
        return arrow.table({"hash": stage.hashes(vectors)})


def fit(
    model: TrustedClassifier,
    source: Any,
    output: str | PathLike[str],
    *,
    label: str,
    validation: Any = None,
    columns: Sequence[str] | None = None,
    client: Any = None,
    part_rows: int = 65_536,
    batch_rows: int = 4096,
    n_jobs: int | None = None,
    trusted: Sequence[str] = (),
    progress: Listener | None = None,
) -> TrustedClassifier:
    """Fit a model on training rows in Parquet files of any size.

    Parameters
    ----------
    model : TrustedClassifier
        What to fit. Its classifier is frozen, having been fitted elsewhere, or else is fitted on a sample. Its method
        is a :class:`~neighboragg.NeighborAgg`, which streams its rows: ``search=Streamed()`` unless one is given.
    source : path-like, str or list of these
        Parquet files with the training rows, as in :func:`score`.
    output : path-like
        File for the model. Until it is there, what was done is in a folder beside it, with ``.parts`` after its name.
    label : str
        Column of labels; held in memory.
    validation : path-like, str or list of these, default=None
        Parquet files with rows that the classifier was not trained on; held in memory. None learns trust from
        out-of-fold probabilities of the sample, for which the model must have `cv`.
    columns : sequence of str, default=None
        Columns that the model is to know; None takes all but the label. Columns of vectors give numbers without names.
    client, part_rows, batch_rows, n_jobs, trusted, progress
        As in :func:`score`.

    Returns
    -------
    model : TrustedClassifier
        As loaded from the file, with its arrays mapped.

    Raises
    ------
    PartsFailedError
        If rows of some parts did not become vectors. The same call again repeats only those.

    Notes
    -----
    The sample is that of ``NeighborAgg(search=Streamed())``: 50,000 training rows drawn at random, and some more
    of rare classes. A classifier that is not frozen, the way from rows to vectors, the learned metric and the second
    opinions are fitted on it, in this process. All training rows become vectors on the cluster, and are reference
    rows. This process then streams them once for each metric to find the neighbors of at most 5,000 validation rows,
    and fits the pool on what was found.

    With no more rows than are sampled, the model is that of :meth:`TrustedClassifier.fit`. It has the same bits in one
    process and on any cluster, however rows are spread over files, under the conditions of :func:`score`.

    The folder beside the output is as safe as that of :func:`score`: a run that was stopped goes on where it was, and
    what does not fit together is refused. It takes as much space as the vectors, and the model as much again.

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
    ...     model = fit(model, folder / "rows.parquet", folder / "model.nagg", label="species", batch_rows=256)
    >>> assessed = model.assess(X[1::2])
    >>> bool((assessed.label == y[1::2]).mean() > 0.9), bool(assessed.trust.mean() > 0.8)
    (True, True)
    """
    check_integer(part_rows, "part_rows", "fit", minimum=1)
    check_integer(batch_rows, "batch_rows", "fit", minimum=1)
    if not isinstance(model, TrustedClassifier):
        raise InvalidParameterError(
            f"The 'model' parameter of fit must be a TrustedClassifier. Got a {type(model).__name__}.\n"
            "Hint: TrustedClassifier(FrozenEstimator(classifier)) for a classifier that was fitted elsewhere."
        )
    asked = listed_names(columns, "columns", "fit")
    # Refuse what cannot be had before anything is read.
    StagedFit.method_of(model)
    StagedFit.check(model, validated=validation is not None)
    executor = executor_for(client, n_jobs)
    path = Path(output).resolve()
    _refuse_existing(path)
    kept = path.with_name(f"{path.name}.parts")
    for given in (source, *(() if validation is None else (validation,))):
        check_apart(given, kept)
    files = find_files(source)
    files_val = [] if validation is None else find_files(validation)
    first = first_with_rows(files)
    chosen = asked or tuple(name for name in column_names(first) if name != label)
    if label in chosen:
        raise InvalidInputError(f"The label column {label!r} is among the columns that the model is to know.")
    for file in (first, *(file for file in files_val if file.rows)):
        check_columns(file, (label, *chosen))
    plan = Plan(
        "fit",
        neighboragg.__version__,
        as_model(model).fingerprint,
        {"label": label, "columns": list(chosen), "part_rows": part_rows, "batch_rows": batch_rows},
        [*files, *files_val],
        cut(files, part_rows),
    )
    run = _Run(model, plan, files_val, chosen, label, part_rows, batch_rows, tuple(trusted), executor)
    folder = OutputFolder(kept)
    with telling(progress), folder.locked():
        folder.begin(plan)
        try:
            _refuse_existing(path)  # another run may have been there before this one had the lock
            run.fitted(folder).save(path)
        except BaseException:
            folder.clear_if_unused()
            raise
        folder.clear()
    return load(path, trusted=trusted, mmap=True)


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise InvalidInputError(f"{path} is there already.\nHint: remove it, or choose another name.")


@dataclass(frozen=True)
class _Run:
    """What a run of fit needs to know."""

    model: TrustedClassifier
    plan: Plan
    files_val: Sequence[InputFile]
    columns: tuple[str, ...]
    label: str
    part_rows: int
    batch_rows: int
    trusted: tuple[str, ...]
    executor: Executor

    def fitted(self, folder: OutputFolder) -> TrustedClassifier:
        """The model, by way of a folder that is taken for this run."""
        announce("Reading labels")
        labels = read_labels(self.executor, self.plan.parts, self.label)
        X_val, y_val = self._validation()
        begun = folder.path / STAGE
        if not begun.exists():
            folder.begin_again()
            self._begin(begun, labels)
        stage: StagedFit = load(begun, trusted=self.trusted)
        dtype = "<f4" if stage.single else "<f8"
        rows = RowsFile(str(folder.path / ROWS), len(labels), stage.n_features, dtype)
        if not Path(rows.path).exists():
            folder.begin_again(STAGE)  # parts that are done are nowhere without it
            rows.create()
        work = VectorizePart(as_model(begun, self.trusted), self.columns, rows, self.batch_rows)
        do_parts(work, self.plan, folder, self.executor, "Making vectors")
        announce("Learning trust")
        return stage.finish(ArrayBlocks(rows.read()), self._hashes(folder), labels, X_val, y_val)

    def _begin(self, path: Path, labels: Array) -> None:
        """Write what is learned from the sample, which a resumed run then has too."""
        announce("Reading a sample")
        sample = StagedFit.method_of(self.model).training_sample(labels)
        table = read_rows(self.executor, self.plan.parts, self.columns, sample)
        announce("Fitting on the sample")
        validated = bool(self.files_val)
        StagedFit.begin(self.model, as_rows(table), labels[sample], validated=validated).save(path)

    def _validation(self) -> tuple[Any, Array | None]:
        if not self.files_val:
            return None, None
        announce("Reading validation rows")
        parts = cut(self.files_val, self.part_rows)
        labels = read_labels(self.executor, parts, self.label)
        return as_rows(read_rows(self.executor, parts, self.columns)), labels

    def _hashes(self, folder: OutputFolder) -> IntArray:
        parquet = import_extra("pyarrow.parquet", extra="dask", purpose=PURPOSE)
        return np.concatenate(
            [
                parquet.read_table(file, page_checksum_verification=True).column("hash").to_numpy()
                for file in folder.files(self.plan)
            ]
        )
