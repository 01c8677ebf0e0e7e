"""Wrong labels in Parquet files of any size: a detector from a sample, then every row, part by part."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import neighboragg
from neighboragg._core.checks import check_integer
from neighboragg._core.inputs import draw_sample, take_rows
from neighboragg._core.packages import import_extra
from neighboragg._core.progress import Listener, announce, telling
from neighboragg._core.types import IntArray
from neighboragg._data.arrow import as_frame, check_kept, in_portions, listed_names
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
from neighboragg._run.gather import labels_of, places_in, read_labels, read_rows
from neighboragg._run.plan import PURPOSE, OutputFolder, Plan
from neighboragg._run.work import ModelFile, ModelObject, Written, as_model, run_parts
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.labels._detector import MislabelDetector
from neighboragg.labels._result import MislabelResult
from neighboragg.labels._rules import Budget, FlagRule, as_rule

# Columns of the output, and what they are called in a result.
JUDGED = {"suggested": "suggested", "label_trust": "label_trust", "score": "scores", "flagged": "mask"}
RESULTS = ("given", *JUDGED)
DETECTOR = "detector.nagg"


@dataclass(frozen=True)
class JudgePart:
    """Labeled rows of a part in, what is found about their labels out."""

    detector: ModelFile | ModelObject
    columns: tuple[str, ...]
    label: str
    keep: tuple[str, ...]
    sample: IntArray
    batch_rows: int

    def __call__(self, part: Part) -> Any:
        """The result as an Arrow table."""
        arrow = import_extra("pyarrow", extra="dask", purpose=PURPOSE)
        detector = self.detector.get()
        table = read_part(part, list(dict.fromkeys([*self.columns, self.label, *self.keep])))
        frame, labels = as_frame(table.select(list(self.columns))), labels_of(table, self.label, part)
        first, last = np.searchsorted(self.sample, [part.first, part.first + len(labels)])
        known = places_in(self.sample, part)
        others = np.setdiff1d(np.arange(len(labels)), known)
        # Rows of the sample have been judged without themselves.
        seen = detector.result_
        found = {
            name: np.empty(len(labels), dtype=getattr(seen, attribute).dtype)
            for name, attribute in JUDGED.items()
        }

        def put(rows: IntArray, result: MislabelResult, taken: slice) -> None:
            for name, attribute in JUDGED.items():
                found[name][rows] = getattr(result, attribute)[taken]

        put(known, seen, slice(first, last))

        def judge(rows: IntArray) -> Any:
            return rows, detector.judge(take_rows(frame, rows), labels[rows])

        for (rows, judged), n_real in in_portions(judge, others, len(others), self.batch_rows):
            put(rows[:n_real], judged, slice(n_real))
        kept = {name: table.column(name) for name in self.keep}
        judgments = {name: arrow.array(values) for name, values in found.items()}
        return arrow.table(kept | {"given": arrow.array(labels)} | judgments)


def find_mislabeled(
    source: Any,
    output: str | PathLike[str],
    *,
    label: str,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    estimator: Any = None,
    flag: FlagRule | str | float = "estimated",
    sample_rows: int = 50_000,
    client: Any = None,
    part_rows: int = 65_536,
    batch_rows: int = 4096,
    n_jobs: int | None = None,
    random_state: int = 0,
    trusted: Sequence[str] = (),
    progress: Listener | None = None,
    **settings: Any,
) -> Written:
    """Find wrong labels in Parquet files of any size.

    Parameters
    ----------
    source : path-like, str or list of these
        As in :func:`score`.
    output : path-like
        As in :func:`score`.
    label : str
        Column of labels; held in memory.
    columns : sequence of str, default=None
        Columns to judge by; None takes all but the label and `keep`.
    keep : sequence of str, default=()
        Columns of the input to have in the output.
    estimator : classifier with `predict_proba`, default=None
        As in :class:`~neighboragg.MislabelDetector`.
    flag : FlagRule, "estimated" or float, default="estimated"
        What to flag. The threshold comes from the sample, so that a number of labels to flag cannot be asked for.
    sample_rows : int, default=50000
        Rows that the detector is fitted on, drawn at random, with some more of rare classes.
    client, part_rows, batch_rows, n_jobs, progress
        As in :func:`score`.
    random_state : int, default=0
        Draws the sample, and seeds the detector.
    trusted : sequence of str, default=()
        Types of a classifier of one's own, as in :func:`neighboragg.load`: every process loads the detector.
    **settings : dict
        Any other parameter of :class:`~neighboragg.MislabelDetector`.

    Returns
    -------
    written : Written
        Columns given, suggested, label_trust, score (low is suspicious) and flagged.

    Notes
    -----
    A :class:`~neighboragg.MislabelDetector` is fitted on the sample. Rows of the sample are judged without
    themselves, as ever; all others against the sample, which they are no part of. With no more rows than `sample_rows`
    the result is that of :func:`neighboragg.find_mislabeled`. With more, every row is judged by fewer neighbors than it
    would be in memory, and copies of a row that are not both in the sample can vouch for each other.

    The results have the same bits in one process and on any cluster, for the same files in the same order; see
    :func:`score` for what that rests on. The fitted detector is kept in the output folder, and a resumed run takes it
    from there.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from sklearn.datasets import load_wine
    >>> from neighboragg.labels._files import find_mislabeled
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> noisy = y.copy()
    >>> noisy[::20] = (noisy[::20] + 1) % 3  # nine wrong labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = pathlib.Path(folder)
    ...     X.assign(cultivar=noisy).to_parquet(folder / "wine.parquet")
    ...     written = find_mislabeled(folder / "wine.parquet", folder / "judged", label="cultivar")
    ...     judged = pd.read_parquet(written.files)
    >>> worst = judged["score"].nsmallest(9).index
    >>> int((noisy != y)[worst].sum())
    9
    """
    for name, value in (("part_rows", part_rows), ("batch_rows", batch_rows), ("sample_rows", sample_rows)):
        check_integer(value, name, "find_mislabeled", minimum=1)
    asked = listed_names(columns, "columns", "find_mislabeled")
    kept = listed_names(keep, "keep", "find_mislabeled")
    check_kept(kept, RESULTS)
    if isinstance(as_rule(flag, "find_mislabeled"), Budget):
        raise InvalidParameterError(
            "The 'flag' parameter cannot be a number of labels here, as rows are judged part by part.\n"
            "Hint: flag='estimated', or a share such as 0.05; or sort the result by its score."
        )
    check_apart(source, output)
    executor = executor_for(client, n_jobs)
    detector = MislabelDetector(estimator, flag=flag, random_state=random_state, n_jobs=n_jobs, **settings)
    files = find_files(source)
    first = first_with_rows(files)
    chosen = asked or tuple(name for name in column_names(first) if name not in (label, *kept))
    if label in chosen:
        raise InvalidInputError(f"The label column {label!r} is among the columns to judge by.")
    check_columns(first, (label, *chosen, *kept))
    parts = cut(files, part_rows)
    plan = Plan(
        "find_mislabeled",
        neighboragg.__version__,
        as_model(clone(detector).set_params(n_jobs=None)).fingerprint,  # which change no result
        {
            "label": label,
            "columns": list(chosen),
            "keep": list(kept),
            "sample_rows": sample_rows,
            "random_state": random_state,
            "part_rows": part_rows,
            "batch_rows": batch_rows,
        },
        files,
        parts,
    )

    def make_work(folder: OutputFolder) -> JudgePart:
        announce("Reading labels")
        labels = read_labels(executor, parts, label)
        codes = np.unique(labels, return_inverse=True)[1]
        sample = draw_sample(codes, sample_rows, random_state)
        saved = folder.path / DETECTOR
        if not saved.exists():
            folder.begin_again()  # another detector might judge otherwise than that of the parts that are done
            announce("Reading a sample")
            detector.fit(as_frame(read_rows(executor, parts, chosen, sample)), labels[sample])
            detector.save(saved)
        model = as_model(saved, trusted)
        model.get()  # what cannot be loaded here cannot be anywhere
        return JudgePart(model, chosen, label, kept, sample, batch_rows)

    with telling(progress):
        return run_parts(make_work, plan, Path(output), executor, "Judging labels")
