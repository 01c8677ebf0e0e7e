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
    """Find wrong labels in Parquet files of any size."""
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
