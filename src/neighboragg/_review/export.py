"""Corrected labels with who decided them and when."""

import csv
import io
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from neighboragg._core.files import escape_formula
from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, ArrayLike, IntArray
from neighboragg._review.store import Decision, DecisionStore
from neighboragg.exceptions import InvalidInputError
from neighboragg.labels import ReviewSet

EXPORT_COLUMNS = ("row", "given", "decided", "action", "reviewer", "time", "note")
LOG_COLUMNS = ("id", "row", "action", "label", "reviewer", "time", "based_on", "undoes", "note")


def export_labels(store_path: str | os.PathLike[str], review_set: ReviewSet) -> list[dict[str, Any]]:
    """Return the decision in force for every row that has one."""
    with DecisionStore(store_path, review_set, create=False) as store:
        return label_rows(store, review_set)


def corrected_labels(labels: ArrayLike, store_path: str | os.PathLike[str], review_set: ReviewSet) -> Array:
    """Return a label column with the decisions applied."""
    original = np.asarray(labels)
    if original.shape != (review_set.n_rows,):
        raise InvalidInputError(
            f"labels passed to corrected_labels must have shape ({review_set.n_rows},), as the data that was "
            f"reviewed. Got {original.shape}."
        )
    values = original.tolist()
    for item in review_set.items:
        if str(values[item.row]) != item.given:
            raise InvalidInputError(
                f"Row {item.row} of labels passed to corrected_labels is {values[item.row]!r}, but the review set "
                f"says {item.given!r}.\nHint: pass the label column of the same data, in the same order."
            )
    changed = [entry for entry in export_labels(store_path, review_set) if entry["action"] == "relabel"]
    return _replace(original, [entry["row"] for entry in changed], [entry["decided"] for entry in changed])


def excluded_rows(store_path: str | os.PathLike[str], review_set: ReviewSet) -> IntArray:
    """Return the rows that were excluded in the review."""
    entries = export_labels(store_path, review_set)
    return np.array([entry["row"] for entry in entries if entry["action"] == "exclude"], dtype=np.intp)


def label_rows(store: DecisionStore, review_set: ReviewSet) -> list[dict[str, Any]]:
    """As `export_labels`, from an open store."""
    given = {int(item.row): item.given for item in review_set.items}
    decisions = sorted(store.current().values(), key=lambda decision: decision.row)
    values = ((d.row, given[d.row], d.label, d.action, d.reviewer, d.time, d.note) for d in decisions)
    return [dict(zip(EXPORT_COLUMNS, entry, strict=True)) for entry in values]


def log_rows(log: Sequence[Decision]) -> list[dict[str, Any]]:
    """Return every entry of the log, the undone ones too."""
    return [{name: getattr(decision, name) for name in LOG_COLUMNS} for decision in log]


def to_csv(rows: Sequence[dict[str, Any]], columns: Sequence[str] = EXPORT_COLUMNS) -> str:
    """Return rows as CSV for spreadsheets; None is an empty field."""
    buffer = io.StringIO()
    # RFC 4180 line ends, so that a label with a lone line feed in it is quoted and read back as it was.
    writer = csv.DictWriter(buffer, fieldnames=columns, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: escape_formula(value) for name, value in row.items()} for row in rows)
    return buffer.getvalue()


def to_parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    """Return export rows as a Parquet file with times as UTC timestamps."""
    arrow = import_extra("pyarrow", extra="review", purpose="Export as Parquet")
    parquet = import_extra("pyarrow.parquet", extra="review", purpose="Export as Parquet")
    moment = arrow.timestamp("ms", tz="UTC")
    types = {name: arrow.int64() if name == "row" else arrow.string() for name in EXPORT_COLUMNS}
    table = arrow.table(
        {name: arrow.array([row[name] for row in rows], type=kind) for name, kind in types.items()}
    )
    place = table.schema.get_field_index("time")
    times = [np.datetime64(row["time"].removesuffix("Z"), "ms") for row in rows]
    stamps = arrow.array(np.array(times, dtype="datetime64[ms]"), type=arrow.timestamp("ms")).cast(moment)
    table = table.set_column(place, arrow.field("time", moment), stamps)
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()


def _replace(original: Array, rows: list[int], names: list[str]) -> Array:
    """Return a copy with new labels in some rows, each as the value that the original has for that text."""
    known = {str(value): value for value in dict.fromkeys(original.tolist())}
    textual = all(isinstance(value, str) for value in known.values())
    if not textual and (unknown := [name for name in names if name not in known]):
        raise InvalidInputError(
            f"The new label {unknown[0]!r} does not occur in labels passed to corrected_labels, so its value of "
            f"type {original.dtype} is not known.\nHint: pass the labels as text."
        )
    values = [known.get(name, name) for name in names]
    if original.dtype.kind == "U" and values:
        # A longer name must not be cut to the width of the old ones.
        original = original.astype(np.result_type(original.dtype, np.array(values).dtype))
    corrected = original.copy()
    corrected[rows] = values
    return corrected
