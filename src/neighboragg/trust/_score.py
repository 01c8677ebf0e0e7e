"""Score the rows of Parquet files of any size, part by part."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from scipy.stats import binom

import neighboragg
from neighboragg._core.inputs import take_rows
from neighboragg._core.packages import import_extra
from neighboragg._core.progress import Listener, report_to
from neighboragg._data.arrow import as_array, as_frame, choose_columns, listed_names
from neighboragg._data.parquet import (
    Part,
    check_apart,
    check_columns,
    column_names,
    cut,
    find_files,
    first_with_rows,
    read_part,
)
from neighboragg._run.executor import executor_for
from neighboragg._run.plan import BATCH_ROWS, PART_ROWS, PURPOSE, Plan, output_path
from neighboragg._run.work import NOTED, ModelFile, ModelObject, RunResult, as_model, run_parts
from neighboragg.exceptions import FittedRowsWarning, InvalidInputError, InvalidParameterError, TrustWarning
from neighboragg.trust._assessment import Assessment
from neighboragg.trust._seen import without_warning

SEEN = "seen in fit"
BY_CHANCE = 1e-3


@dataclass(frozen=True)
class ScorePart:
    """Score the rows of a part."""

    model: ModelFile | ModelObject
    columns: tuple[str, ...]
    include: tuple[str, ...]
    batch_rows: int

    def __call__(self, part: Part) -> Any:
        """The results as an Arrow table, with notes on what makes these rows unlike new rows of the kind of fit."""
        arrow = import_extra("pyarrow", extra="dask", purpose=PURPOSE)
        model = self.model.get()
        table = read_part(part, list(dict.fromkeys([*self.columns, *self.include])))
        chosen = table.select(list(self.columns))
        named = hasattr(getattr(model, "model", model), "feature_names_in_")
        rows = as_frame(chosen) if named else as_array(chosen)
        with without_warning():
            batches = [
                model.assess(take_rows(rows, np.arange(start, min(start + self.batch_rows, len(rows)))))
                for start in range(0, len(rows), self.batch_rows)
            ]
        results = {
            name: arrow.array(np.concatenate([np.asarray(getattr(batch, name)) for batch in batches]))
            for name in Assessment.COLUMNS
            if getattr(batches[0], name) is not None
        }
        included = {name: table.column(name) for name in self.include}
        notes = {} if all(batch.copies_by_chance for batch in batches) else {SEEN: None}
        notes |= dict.fromkeys(note for batch in batches for note in batch.notes)
        noted = {NOTED: "\n".join(notes).encode()} if notes else {}
        return arrow.table(included | results).replace_schema_metadata(noted)


def score(
    model: Any,
    source: Any,
    output: str | PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    include: Sequence[str] = (),
    client: Any = None,
    n_jobs: int | None = None,
    trusted: Sequence[str] = (),
    overwrite: bool = False,
    progress: Listener | None = None,
) -> RunResult:
    """Score the rows of Parquet files of any size: predicted label, probability, trust and familiarity of each.

    Parameters
    ----------
    model : path-like or TrustedClassifier or SelectiveClassifier
        Path of a saved model, which every process maps into memory; on a cluster it must be on shared storage. A model
        object is sent to the workers.
    source : path-like, str or list of these
        Parquet files: a file, a folder, a pattern such as ``"data/*.parquet"``, or an address such as ``s3://…``.
    output : path-like
        A folder for the results, in Parquet files that pandas, Arrow and Dask read as one table. If it ends with
        ``.parquet``, a single file. Rows are in the order of the input, files sorted by name. It must not lie in a
        folder or match a pattern of `source`, which would then include it.
    columns : sequence of str, default=None
        Columns to pass to the model. None uses the columns it was fitted on, or all but `include` if the model was
        fitted without column names.
    include : sequence of str, default=()
        Columns of the input to copy to the output, such as an identifier.
    client : dask.distributed.Client, default=None
        Cluster to work on. None works in this process.
    n_jobs : int, default=None
        Number of threads without a client; each works on one part.
    trusted : sequence of str, default=()
        As in :func:`neighboragg.load`.
    overwrite : bool, default=False
        Whether to replace an existing output of another run. An interrupted run is always resumed.
    progress : callable, default=None
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    result : RunResult

    Raises
    ------
    PartsFailedError
        If parts failed; all others are written. Repeat the call to retry only the failed parts.

    Notes
    -----
    The results do not depend on the cluster or on how rows are spread over files: labels are equal, and numbers are
    equal within 1e-9, provided that the classifier's prediction for a row does not depend on the other rows.

    The folder has a ``_manifest.json`` with fingerprints of the model and of all input files. Results of another model,
    other settings or changed files are never mixed with the results of this run, and a second simultaneous run is
    refused.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from neighboragg import TrustedClassifier
    >>> from neighboragg import score
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TrustedClassifier(LogisticRegression(max_iter=500), random_state=0).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = pathlib.Path(folder)
    ...     X[1::2].to_parquet(folder / "new.parquet")
    ...     _ = score(model, folder / "new.parquet", folder / "scored")
    ...     scored = pd.read_parquet(folder / "scored")
    >>> scored.columns.tolist(), len(scored)
    (['predicted', 'probability', 'trust', 'familiarity', 'seen_in_fit'], 75)
    """
    given, included = listed_names(columns, "columns", "score"), listed_names(include, "include", "score")
    if clash := [name for name in included if name in Assessment.COLUMNS]:
        raise InvalidInputError(
            f"The column {clash[0]!r} cannot be included because a result column has that name.\n"
            "Hint: rename it in the input."
        )
    path = output_path(output)
    check_apart(source, path)
    executor = executor_for(client, n_jobs)
    source_of_model = as_model(model, trusted)
    loaded = source_of_model.get()
    if not hasattr(loaded, "assess"):
        raise InvalidParameterError(
            f"The 'model' parameter of score must be a TrustedClassifier or SelectiveClassifier. "
            f"Got a {type(loaded).__name__}."
        )
    files = find_files(source)
    first = first_with_rows(files)
    chosen = given or tuple(choose_columns(loaded, column_names(first), first.path, included))
    check_columns(first, (*chosen, *included))
    plan = Plan(
        "score",
        neighboragg.__version__,
        source_of_model.fingerprint,
        {"columns": list(chosen), "include": list(included)},
        files,
        cut(files, PART_ROWS),
    )
    work = ScorePart(source_of_model, chosen, included, BATCH_ROWS)
    with report_to(progress):
        written = run_parts(lambda folder: work, plan, path, executor, "Scoring", overwrite=overwrite)
    _warn_of(written)
    return written


def _warn_of(written: RunResult) -> None:
    """Warn once about the notes on all parts."""
    notes = [(part, note) for part, text in written.noted for note in text.split("\n")]
    seen, others = ([part for part, note in notes if (note == SEEN) is wanted] for wanted in (True, False))
    if seen:
        warnings.warn(
            f"In {len(seen)} of {written.n_parts} parts, first in {seen[0].place}, more rows are "
            "exact copies of training rows than chance explains. The classifier has seen them, so their trust looks "
            "better than for new rows.\n"
            "Hint: drop the rows with seen_in_fit, or pass rows that were not used in fit.",
            FittedRowsWarning,
            stacklevel=3,
        )
    unlike = len(dict.fromkeys(part.number for part in others))
    # Each part is noted by chance once in a thousand times.
    if unlike > binom.isf(BY_CHANCE, written.n_parts, BY_CHANCE):
        first = next(note for _, note in notes if note != SEEN)
        warnings.warn(
            f"{unlike} of {written.n_parts} parts, first {others[0].place}, are unlike the rows that the model was "
            f"fitted on: {first}",
            TrustWarning,
            stacklevel=3,
        )
