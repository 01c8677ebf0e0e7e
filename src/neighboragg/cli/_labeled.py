"""What the commands about labels share: tables whose labels keep their text, and files beside each other."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from neighboragg._typing import Array
from neighboragg.bench import is_parquet, read_table
from neighboragg.exceptions import InvalidInputError

__all__ = [
    "LabelColumn",
    "check_column",
    "check_not_input",
    "decisions_path",
    "existing_review",
    "read_labels",
    "review_path",
]

LabelColumn = Annotated[str, typer.Option(help="Name of the label column.")]


def check_column(table: Any, column: str, file: Path) -> None:
    """Raise unless the table has the column."""
    if column not in table.columns:
        raise InvalidInputError(
            f"There is no column {column!r} in {file}.\nHint: the columns are {', '.join(map(repr, table.columns))}."
        )


def check_not_input(file: Path, output: Path) -> None:
    """Raise if the output would be written over the table."""
    if output.exists() and output.samefile(file):
        raise InvalidInputError(
            f"The output {output} would replace the table.\nHint: choose another with -o."
        )


def read_labels(table: Any, column: str, file: Path) -> Array:
    """Labels of a table as the text that stands in its file; empty where there is none.

    In a CSV file "01", "None" and "1.0" are labels, whatever numbers pandas makes of them.
    """
    check_column(table, column, file)
    if is_parquet(file):
        labels: Any = table[column]
        text = labels.astype(object).where(labels.notna(), "").map(str)
    else:
        text = read_table(file, as_text=True)[column]
    return np.asarray(text.to_numpy(dtype=object).astype(str))


def review_path(csv: Path) -> Path:
    """The review set beside the file of flagged rows."""
    return csv.with_suffix(".review.json")


def decisions_path(csv: Path) -> Path:
    """The decisions beside the review set."""
    return review_path(csv).with_suffix(".decisions.sqlite")


def existing_review(csv: Path) -> Path:
    """The review set, which must be there."""
    path = review_path(csv)
    if not path.exists():
        raise InvalidInputError(
            f"There is no review set {path}.\nHint: neighboragg audit table.csv --label y -o {csv}"
        )
    return path
