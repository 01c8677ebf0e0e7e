"""audit: a labeled table in, suspicious labels with their reasons out."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.inputs import expand_vectors
from neighboragg._core.progress import Listener, announce, telling
from neighboragg._core.types import Array, IntArray
from neighboragg._data.folder import FolderTable
from neighboragg._data.labels import check_class_labels, label_notes
from neighboragg._data.matrix import read_matrix, read_proba
from neighboragg._data.open import read_table
from neighboragg._data.source import Table
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features import ColumnRole, check_usable, column_roles, prepared_frame
from neighboragg.labels._by import encode_pictures_of, encode_texts_of, image_root
from neighboragg.labels._detector import find_mislabeled
from neighboragg.labels._findings import (
    CONFLICT,
    Finding,
    copy_groups,
    find_conflicts,
    find_leaked_copies,
    find_lone_values,
    find_outliers,
    row_keys,
)
from neighboragg.labels._outputs import Audit
from neighboragg.labels._result import MislabelResult
from neighboragg.labels._review_set import build_review_set
from neighboragg.labels._rules import FlagRule


def audit(
    table: Any,
    *,
    label: str | None = None,
    flag: FlagRule | str | float = "estimated",
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    keep: Sequence[str] = (),
    text: str | None = None,
    embeddings: Any = None,
    proba: Any = None,
    classes: Sequence[Any] | None = None,
    image: str | None = None,
    encoder: Any = None,
    cache: bool | str | PathLike[str] = True,
    skip_unreadable: bool = False,
    split: str | None = None,
    sample: int | None = None,
    n_random: int = 50,
    sep: str | None = None,
    encoding: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Listener | None = None,
) -> Audit:
    """Find suspicious labels of a table: ranked, with the suggested label and the reasons.

    Copies of a row with different labels, copies across a split, and rows unlike all others are found as well.

    Parameters
    ----------
    table : path-like, or pandas or polars DataFrame
        As for :func:`neighboragg._data.open.read_table`: also a folder of pictures, with a folder for each class in it.
    label : str, default=None
        Name of the label column, which a table needs and a folder of pictures has not. Rows without a label are not
        judged.
    flag : FlagRule, "estimated", int or float, default="estimated"
        What to flag, as in :func:`find_mislabeled`.
    columns : sequence of str, default=None
        Judge by these columns and no others.
    exclude : sequence of str, default=()
        Do not judge by these columns.
    keep : sequence of str, default=()
        Judge by these columns though they look like an identifier, or give the label away.
    text : str, default=None
        Judge by this column of texts alone.
    embeddings : str, path-like or array-like of shape (n_rows, n_features), default=None
        Judge by these vectors instead of the columns: the name of a column that holds them, a .npy file, or an
        array.
    proba : path-like, array-like or DataFrame of shape (n_rows, n_classes), default=None
        *Out-of-fold* probabilities of a classifier. Columns are in the order of the sorted labels, by value if all
        labels are numbers (2 before 10), else as text; or as their names or `classes` say. Names come from
        a data frame, a table file with a header, or an .npz file with the arrays ``proba`` and ``classes``. Named
        classes may be absent from the table.
    classes : sequence, default=None
        Class of each column of `proba`, by the text of its label.
    image : str, default=None
        Column of paths of pictures, relative to the folder of the table: shown in the review, and what labels are
        judged by, unless embeddings are given.
    encoder : callable or str, default=None
        Takes a list of the texts of `text`, or of pictures (PIL images in RGB), and returns an array with a vector for
        each, which labels are judged by; or the name of such a callable, written ``package:callable``. None reads
        texts by their words, and pictures by a small fixed descriptor, which is weak.
    cache : bool or path-like, default=True
        Folder to keep vectors of texts and pictures in, by their content and by the encoder; True takes that of
        :class:`neighboragg.features._vector_cache.VectorCache`, False keeps nothing.
    skip_unreadable : bool, default=False
        Go on without pictures that cannot be read, which are then named in `notes`; otherwise they raise.
    split : str, default=None
        Column that says to which part (train, test) a row belongs: copies in different parts are findings. Labels
        are not judged by it.
    sample : int, default=None
        Judge that many rows, drawn at random.
    n_random : int, default=50
        Rows that are not flagged to review as well, from which the errors left are estimated.
    sep, encoding : str, default=None
        Delimiter and encoding of a text file, as for :func:`neighboragg._data.open.read_table`.
    random_state : int, default=0
    n_jobs : int, default=None
        Threads.
    progress : callable, default=None
        Called as ``progress(stage, done, total)`` with a text and two numbers while the audit goes on; `total` is 0 as
        long as it is not known.

    Returns
    -------
    audit : Audit

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg.labels import audit
    >>> frame = load_iris(as_frame=True).frame
    >>> frame["target"] = frame["target"].map({0: "setosa", 1: "versicolor", 2: "virginica"})
    >>> frame.loc[7, "target"] = "virginica"
    >>> found = audit(frame, label="target", flag=1)
    >>> found.to_frame()[["row", "given", "suggested"]].values.tolist()
    [[7, 'virginica', 'setosa']]
    """
    with telling(progress):
        announce("Reading the table")
        data = read_table(table, label, sep=sep, encoding=encoding)
        if isinstance(data, FolderTable):
            image = _image_of_folder(data, image, text)
        elif label is None:
            raise InvalidParameterError(
                "A table needs the name of its label column.\nHint: --label name, or label= in Python."
            )
        check_class_labels(data.labels, str(data.label))
        _check_columns(data, text, image, split, embeddings, encoder)
        _check_choices(columns, exclude, keep, text=text, image=image, embeddings=embeddings)
        rows = _judged_rows(data.labels, sample, random_state)
        matrix: Array | None = None
        encoded = None
        if embeddings is None and image is not None:
            encoded = encode_pictures_of(data, image, rows, encoder, cache, skip_unreadable=skip_unreadable)
        elif encoder is not None:
            encoded = encode_texts_of(data, str(text), rows, encoder, cache)
        if encoded is not None:
            rows, matrix = encoded.rows, encoded.vectors
        elif embeddings is not None:
            matrix = _embeddings(embeddings, data, rows)
        labels = data.labels[rows]
        said = None if proba is None else read_proba(proba, data.labels, rows, classes)
        frame = data.frame.iloc[rows].reset_index(drop=True)
        if _is_column(embeddings, data):
            frame = frame.drop(columns=str(embeddings))  # numbers that nobody reads
        announce("Looking at the columns")
        roles: tuple[ColumnRole, ...] = ()
        if matrix is None:
            excluded = [*exclude, *([split] if split else [])]
            roles = _roles(
                data, text, columns=columns, exclude=excluded, keep=keep, random_state=random_state
            )
        if matrix is not None:
            X, features = matrix, "passthrough"
        elif lone_text := _lone_text(roles):
            X, features = frame[lone_text].fillna("").astype(str).tolist(), "auto"
        else:
            X, features = prepared_frame(frame, roles), "auto"
        result = find_mislabeled(
            X,
            labels,
            proba=said,
            features=features,
            flag=flag,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        notes = [*_notes(data), *(encoded.notes if encoded else ())]
        if result.threshold == -np.inf:
            notes.append(result.promise)  # why nothing could be flagged
        announce("Looking for copies")
        parts = None if split is None else frame[split].astype(str).to_numpy(dtype=object).astype(str)
        findings = _findings(frame, roles, matrix, result, rows, parts)
        if findings is None:
            notes.append("Most rows hold the same as another, so that copies tell nothing.")
            findings = []
        findings += [*find_outliers(result, rows), *find_lone_values(frame, roles, rows)]
        result = _with_copies(result, findings, data, rows)
        announce("Preparing the review")
        review_set = build_review_set(
            frame,
            result,
            n_random=n_random,
            title=f"Labels of {Path(data.name).name}",
            random_state=random_state,
            rows=rows,
            n_rows=len(data),
            text=text or _lone_text(roles) or "",
            image=image or "",
            row_name=data.place_of,
            row_digest=data.digest_of,
            source=data.digest,
        )
        return Audit(
            data,
            result,
            rows,
            roles,
            tuple(findings),
            review_set,
            frame,
            split,
            tuple(notes),
            judged_by="embeddings." if encoded is None else encoded.judged_by,
        )


def _notes(data: Table) -> list[str]:
    notes = [*data.notes, *label_notes(data.labels)]
    if (unlabeled := int((data.labels == "").sum())) > 0:
        notes.append(f"{unlabeled:,} of {len(data):,} rows have no label and are left out.")
    return notes


def _roles(data: Table, text: str | None, **choices: Any) -> tuple[ColumnRole, ...]:
    """What each column is used for; all rows with a label are looked at, also if few are judged."""
    labeled = np.flatnonzero(data.labels != "")
    frame = data.frame if len(labeled) == len(data) else data.frame.iloc[labeled]
    if text is not None:
        choices["columns"] = [text]
    roles = column_roles(frame, data.labels[labeled], **choices)
    if text is not None:
        return tuple(ColumnRole(text, "text") if role.name == text else role for role in roles)
    check_usable(roles)
    return roles


def _findings(
    frame: Any,
    roles: Sequence[ColumnRole],
    matrix: Array | None,
    result: MislabelResult,
    rows: IntArray,
    parts: Array | None,
) -> list[Finding] | None:
    """Copies that contradict each other, or are in several parts of the split; None if copies tell nothing."""
    n_columns = sum(role.used for role in roles) if matrix is None else matrix.shape[1]
    groups = copy_groups(row_keys(frame, roles, matrix), result, n_columns)
    if groups is None:
        return None
    leaked = [] if parts is None else find_leaked_copies(groups, parts, rows)
    return [*find_conflicts(groups, result.given, rows), *leaked]


def _with_copies(
    result: MislabelResult, findings: Sequence[Finding], data: Table, rows: IntArray
) -> MislabelResult:
    """The reasons of flagged rows with the copies that contradict them."""
    position = {int(row): i for i, row in enumerate(rows)}
    reasons = list(result.reasons)
    for found in findings:
        if found.kind == CONFLICT:
            for row in found.rows:
                i = position[row]
                others = [other for other in found.rows if data.labels[other] != data.labels[row]]
                if result.mask[i] and others:
                    copy = f"copy in {data.place_of(others[0])} is {str(data.labels[others[0]])!r}"
                    reasons[i] = (*reasons[i], copy)
    return replace(result, reasons=tuple(reasons))


def _image_of_folder(data: FolderTable, image: str | None, text: str | None) -> str:
    """The column of pictures of a folder, which has no other."""
    if image is not None or text is not None:
        raise InvalidParameterError(
            f"{data.name} is a folder of pictures, which has no columns to choose from.\n"
            "Hint: leave out --image and --text."
        )
    return str(data.frame.columns[0])


def _check_columns(
    data: Table, text: str | None, image: str | None, split: str | None, embeddings: Any, encoder: Any
) -> None:
    for kind, column in (("texts", text), ("pictures", image), ("the split", split)):
        if column is not None and column == data.label:
            raise InvalidParameterError(f"The column of {kind} is the label column {column!r} itself.")
        if column and column not in data.frame.columns:
            raise InvalidInputError(
                f"There is no column {column!r} in {data.name}.\n"
                f"Hint: the columns beside the label are {', '.join(map(repr, data.frame.columns))}."
            )
    if encoder is not None:
        if embeddings is not None:
            raise InvalidParameterError(
                "Labels are judged by embeddings, so that there is nothing for the encoder to do.\nHint: pass either."
            )
        if (text is None) == (image is None):
            which = "no column" if text is None else "both a column of texts and one of pictures"
            raise InvalidParameterError(
                f"An encoder needs the column to encode. Got {which}.\n"
                "Hint: --text column for texts, --image column for paths of pictures."
            )
    elif text is not None and image is not None and embeddings is None:
        raise InvalidParameterError(
            "Labels are judged by texts or by pictures. Got both a column of texts and one of pictures.\n"
            "Hint: pass one of --text and --image; or embeddings, and --image to see the pictures."
        )
    if image is not None and embeddings is not None:
        folder = image_root(data)
        if missing := sum(not (folder / str(path)).is_file() for path in data.frame[image]):
            raise InvalidInputError(
                f"{missing:,} of {len(data):,} pictures of column {image!r} are not below {folder}.\n"
                "Hint: paths are relative to the folder of the table."
            )


def _check_choices(
    columns: Sequence[str] | None,
    exclude: Sequence[str],
    keep: Sequence[str],
    **instead_of_columns: Any,
) -> None:
    """Raise if columns are chosen that labels are not judged by."""
    names = {"embeddings": "embeddings", "image": "pictures", "text": "a column of texts"}
    instead = next((name for key, name in names.items() if instead_of_columns[key] is not None), "")
    if instead and (columns or exclude or keep):
        raise InvalidParameterError(
            f"Labels are judged by {instead} alone, so columns, exclude and keep have nothing to choose from.\n"
            "Hint: pass either."
        )


def _is_column(embeddings: Any, data: Table) -> bool:
    return isinstance(embeddings, str | Path) and str(embeddings) in data.frame.columns


def _embeddings(given: Any, data: Table, rows: IntArray) -> Array:
    """The vectors to judge by, from a column of the table or from beside it."""
    if not _is_column(given, data):
        return read_matrix(given, len(data), "embeddings")[rows]
    vectors = expand_vectors(data.frame.iloc[rows][[str(given)]], data.name, "audit")
    if not all(np.asarray(vectors[name]).dtype.kind in "biuf" for name in vectors):
        raise InvalidInputError(
            f"Column {str(given)!r} of {data.name} does not hold vectors of numbers.\n"
            "Hint: embeddings needs a column with a list of numbers in every row, a .npy file, or an array."
        )
    return vectors.to_numpy(dtype=np.float64)


def _judged_rows(labels: Array, sample: int | None, seed: int) -> IntArray:
    """Positions of the rows that have a label, or of a random sample of them."""
    labeled = np.flatnonzero(labels != "")
    if sample is None or sample >= len(labeled):
        return labeled
    return np.sort(np.random.default_rng(seed).permutation(labeled)[:sample])


def _lone_text(roles: Sequence[ColumnRole]) -> str | None:
    """The column of texts, if no other is used."""
    used = [role for role in roles if role.used]
    return used[0].name if len(used) == 1 and used[0].use == "text" else None
