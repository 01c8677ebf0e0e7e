"""`neighboragg correct`: the table with the labels that were decided in the review."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from neighboragg._typing import Array, IntArray
from neighboragg.bench import is_parquet, read_table
from neighboragg.cli._labeled import (
    LabelColumn,
    check_not_input,
    decisions_path,
    existing_review,
    read_labels,
)
from neighboragg.exceptions import InvalidInputError
from neighboragg.review import corrected_labels, load_review_set

__all__ = ["correct"]


def correct(
    file: Annotated[Path, typer.Argument(help="The labeled table that was audited.")],
    label: LabelColumn,
    suspicious: Annotated[
        Path, typer.Option("--review", help="CSV file that `neighboragg audit` wrote.")
    ] = Path("suspicious.csv"),
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The table with corrected labels, CSV or Parquet.")
    ] = Path("corrected.csv"),
) -> None:
    """Write the table with the labels that were decided in the review."""
    path = existing_review(suspicious)
    table = read_table(file, as_text=True)
    labels = read_labels(table, label, file)
    check_not_input(file, output)
    decisions = decisions_path(suspicious)
    if not decisions.exists():
        raise InvalidInputError(f"Nothing has been decided yet.\nHint: neighboragg review {suspicious}")
    fixed = corrected_labels(labels, decisions, load_review_set(path))
    changed = np.flatnonzero(fixed != labels)
    table[label] = _replaced(table[label], labels, changed, fixed[changed])
    _write(table, output, index=is_parquet(file))
    Console().print(f"{len(changed):,} labels changed: {output}", soft_wrap=True, markup=False)


def _replaced(column: Any, labels: Array, rows: IntArray, texts: Array) -> Any:
    """The column with new values in some rows, of the type it has."""
    known = dict(zip(labels.tolist(), column.tolist(), strict=True))
    values = column.astype(object).to_numpy(copy=True)
    values[rows] = [known.get(text, text) for text in texts.tolist()]
    replaced = type(column)(values, index=column.index, dtype=object)
    try:
        return replaced.astype(column.dtype)
    except (TypeError, ValueError):
        return replaced  # a label that the type cannot hold


def _write(table: Any, output: Path, *, index: bool) -> None:
    """Write a table in the format that the name asks for; an index goes along if it says more than the row number."""
    index = index and (
        table.index.name is not None or not table.index.equals(type(table.index)(range(len(table))))
    )
    if is_parquet(output):
        table.to_parquet(output)
    else:
        table.to_csv(output, index=index, sep="\t" if ".tsv" in output.suffixes else ",")
