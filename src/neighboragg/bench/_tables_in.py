"""Data for a comparison: a known data set, or anybody's CSV or Parquet file, as one matrix and labels."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._optional import import_extra
from neighboragg._typing import Array, FloatArray
from neighboragg.datasets import list_datasets, load_dataset
from neighboragg.exceptions import InvalidInputError, TrustWarning

__all__ = ["frame_to_matrix", "is_parquet", "load_matrix", "read_table"]

MOST_CATEGORIES = 100
FEWEST_ROWS = 50


def load_matrix(name: str, label: str | None = None) -> tuple[FloatArray, Array]:
    """Features and labels of a data set by name, or of a file with its label column.

    Parameters
    ----------
    name : str
        Name of a data set, or path of a CSV or Parquet file.
    label : str, default=None
        Label column of a file.

    Returns
    -------
    X : ndarray of shape (n, n_features)
        Numbers, then one-hot categories; not scaled.
    labels : ndarray of shape (n,)
    """
    if label is None:
        if name not in list_datasets():
            raise InvalidInputError(
                f"Unknown data set {name!r}.\nHint: one of {', '.join(list_datasets())}; for a file, name its label "
                "column."
            )
        dataset = load_dataset(name)
        return dataset.to_matrix(), np.unique(dataset.y, return_inverse=True)[1]
    return frame_to_matrix(read_table(Path(name)), label)


def read_table(path: Path, *, as_text: bool = False) -> Any:
    """A CSV (also compressed) or Parquet file as a pandas DataFrame.

    Parameters
    ----------
    path : Path
    as_text : bool, default=False
        Leave the values of a CSV file as they are written, with nothing taken for missing.
    """
    pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
    if not path.exists():
        raise InvalidInputError(f"There is no file {path}.")
    if is_parquet(path):
        return pandas.read_parquet(path)
    suffixes = _suffixes(path)
    if not {".csv", ".tsv", ".txt"} & {*suffixes}:
        raise InvalidInputError(
            f"Cannot tell the format of {path}.\nHint: use .csv, .csv.gz, .tsv or .parquet."
        )
    how: dict[str, Any] = {"dtype": str, "keep_default_na": False} if as_text else {"low_memory": False}
    try:
        # Without index_col=False, a comma at the end of every line would shift all columns by one.
        return pandas.read_csv(path, sep="\t" if ".tsv" in suffixes else ",", index_col=False, **how)
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path} is not text in UTF-8.\nHint: save it as UTF-8, e.g. iconv -f latin1 -t utf8."
        ) from error
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        raise InvalidInputError(f"{path} is not a table: {error}") from error


def is_parquet(path: Path) -> bool:
    """Whether the name is that of a Parquet file."""
    return bool({".parquet", ".pq"} & {*_suffixes(path)[-1:]})


def _suffixes(path: Path) -> list[str]:
    return [suffix.lower() for suffix in path.suffixes[-2:]]


def frame_to_matrix(frame: Any, label: str) -> tuple[FloatArray, Array]:
    """Numbers with missing values filled and marked, one-hot categories, and labels.

    Parameters
    ----------
    frame : pandas.DataFrame
    label : str
        Name of the label column. Rows without a label are left out.

    Returns
    -------
    X : ndarray of shape (n, n_features)
    labels : ndarray of str of shape (n,)
    """
    pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
    if label not in frame.columns:
        raise InvalidInputError(
            f"There is no column {label!r}.\nHint: the columns are {', '.join(map(repr, frame.columns))}."
        )
    frame = frame[frame[label].notna()]
    labels = frame[label].astype(str).to_numpy(dtype=object).astype(str)
    _check_labels(labels, label)
    parts: list[FloatArray] = []
    left_out: list[str] = []
    for name in frame.columns.drop(label):
        column = frame[name]
        if pandas.api.types.is_datetime64_any_dtype(column):
            column = column.astype("int64").where(column.notna())
        if pandas.api.types.is_numeric_dtype(column) or pandas.api.types.is_bool_dtype(column):
            parts += _numbers(column)
        elif column.nunique(dropna=False) <= MOST_CATEGORIES:
            text = column.astype(str).to_numpy(dtype=object).astype(str)
            parts += [(text == value).astype(np.float64) for value in np.unique(text)]
        else:
            left_out.append(str(name))
    if left_out:
        warnings.warn(
            f"Left out {', '.join(map(repr, left_out))}: text with more than {MOST_CATEGORIES} different values.\n"
            "Hint: drop identifiers, or turn texts into numbers (embeddings) first.",
            TrustWarning,
            stacklevel=2,
        )
    if not parts:
        raise InvalidInputError("There is no usable feature column beside the label.")
    return np.column_stack(parts), labels


def _numbers(column: Any) -> list[FloatArray]:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.where(np.isfinite(values), values, np.nan)
    missing = np.isnan(values)
    if missing.all():
        return []
    filled = np.where(missing, np.nanmedian(values), values)
    return [filled, missing.astype(np.float64)] if missing.any() else [filled]


def _check_labels(labels: Array, label: str) -> None:
    classes = np.unique(labels)
    if len(labels) < FEWEST_ROWS:
        raise InvalidInputError(
            f"Only {len(labels)} rows have a label in {label!r}; at least {FEWEST_ROWS} are needed to compare."
        )
    if len(classes) < 2:
        raise InvalidInputError(f"The label column {label!r} has a single value, {str(classes[0])!r}.")
    if len(classes) > len(labels) / 5:
        raise InvalidInputError(
            f"The label column {label!r} has {len(classes)} different values in {len(labels)} rows; "
            "it does not look like a class.\nHint: choose another column, or bin a number into classes."
        )
