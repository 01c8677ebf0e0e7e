"""Trust in the predictions for rows of Parquet files, part by part."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import neighboragg
from neighboragg._core.checks import check_integer
from neighboragg._core.packages import import_extra
from neighboragg._core.progress import Listener, telling
from neighboragg._data.arrow import as_array, as_frame, check_kept, choose_columns, in_portions, listed_names
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
from neighboragg._run.plan import PURPOSE, Plan
from neighboragg._run.work import ModelFile, ModelObject, Written, as_model, run_parts
from neighboragg.exceptions import InvalidParameterError

RESULTS = ("label", "probability", "trust", "familiarity", "kept")


@dataclass(frozen=True)
class ScorePart:
    """Rows of a part in, labels and trust out."""

    model: ModelFile | ModelObject
    columns: tuple[str, ...]
    keep: tuple[str, ...]
    batch_rows: int

    def __call__(self, part: Part) -> Any:
        """The result as an Arrow table."""
        arrow = import_extra("pyarrow", extra="dask", purpose=PURPOSE)
        model = self.model.get()
        table = read_part(part, list(dict.fromkeys([*self.columns, *self.keep])))
        chosen = table.select(list(self.columns))
        named = hasattr(getattr(model, "model", model), "feature_names_in_")
        rows = as_frame(chosen) if named else as_array(chosen)
        found: dict[str, list[Any]] = {}
        for assessed, n_real in in_portions(model.assess, rows, len(rows), self.batch_rows):
            for name in RESULTS:
                if (values := getattr(assessed, name)) is not None:
                    found.setdefault(name, []).append(np.asarray(values)[:n_real])
        results = {name: arrow.array(np.concatenate(values)) for name, values in found.items()}
        kept = {name: table.column(name) for name in self.keep}
        return arrow.table(kept | results)


def score(
    model: Any,
    source: Any,
    output: str | PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    client: Any = None,
    part_rows: int = 65_536,
    batch_rows: int = 4096,
    n_jobs: int | None = None,
    trusted: Sequence[str] = (),
    progress: Listener | None = None,
) -> Written:
    """Score the rows of Parquet files of any size: label, probability, trust and familiarity of each.

    Parameters
    ----------
    model : path-like or TrustedClassifier or SelectiveClassifier
        A saved model, which every process maps; on a cluster it must be on shared storage. A model itself is sent to
        the workers.
    source : path-like, str or list of these
        Parquet files: a file, a folder, a pattern such as ``"data/*.parquet"``, or an address such as ``s3://…``.
    output : path-like
        A new folder for the results, or one in which the same run was interrupted. If it ends with ``.parquet``, a
        single file. Rows are in the order of the input, files sorted by name. It must not lie in a folder or match a
        pattern of `source`, which would then take it in.
    columns : sequence of str, default=None
        Columns to ask the model with. None takes those that it was fitted on, or all but `keep` where it knows no
        names.
    keep : sequence of str, default=()
        Columns of the input to have in the output, such as an identifier.
    client : dask.distributed.Client, default=None
        Cluster to work on. None works in this process.
    part_rows : int, default=65536
        Most rows that a worker has in memory at a time, and that are lost if it dies.
    batch_rows : int, default=4096
        Rows that the model is asked for together.
    n_jobs : int, default=None
        Without a client: threads, each with a part of its own.
    trusted : sequence of str, default=()
        As in :func:`neighboragg.load`.
    progress : callable, default=None
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    written : Written

    Raises
    ------
    PartsFailedError
        If parts could not be done; all others are written. The same call again repeats only those.

    Notes
    -----
    The results have the same bits in one process and on any cluster, however rows are spread over files, as the model
    is always asked for equally many rows, `batch_rows` and some that do not count, on one thread. That holds as far as
    the classifier's answer for a row does not depend on the other rows, and for workers with the same processor and
    versions of NumPy and its matrix library; another kind of processor can round a matrix product of the classifier in
    another way.

    The folder has a ``manifest.json`` with fingerprints of the model and of all input files. Whatever does not fit it
    is refused: another model, other settings, files that have changed, a second run at the same time.

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
    ...     written = score(model, folder / "new.parquet", folder / "scored", batch_rows=256)
    ...     scored = pd.read_parquet(written.files)
    >>> scored.columns.tolist(), len(scored)
    (['label', 'probability', 'trust', 'familiarity'], 75)
    """
    check_integer(part_rows, "part_rows", "score", minimum=1)
    check_integer(batch_rows, "batch_rows", "score", minimum=1)
    asked, kept = listed_names(columns, "columns", "score"), listed_names(keep, "keep", "score")
    check_kept(kept, RESULTS)
    check_apart(source, output)
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
    chosen = asked or tuple(choose_columns(loaded, column_names(first), first.path, kept))
    check_columns(first, (*chosen, *kept))
    plan = Plan(
        "score",
        neighboragg.__version__,
        source_of_model.fingerprint,
        {"columns": list(chosen), "keep": list(kept), "part_rows": part_rows, "batch_rows": batch_rows},
        files,
        cut(files, part_rows),
    )
    work = ScorePart(source_of_model, chosen, kept, batch_rows)
    with telling(progress):
        return run_parts(lambda folder: work, plan, Path(output), executor, "Scoring")
