"""audit: a labeled table in, suspicious labels with their reasons out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._optional import import_extra
from neighboragg._typing import Array, IntArray
from neighboragg.audit._arrays import read_matrix, read_proba
from neighboragg.audit._files import AuditFiles
from neighboragg.audit._texts import text_vectors
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features import TabularFeatures
from neighboragg.mislabel import FlagRule, MislabelResult, find_mislabeled
from neighboragg.review import ReviewSet, build_review_set, save_review_set
from neighboragg.tables import (
    ColumnRole,
    Table,
    check_class_labels,
    check_usable,
    column_roles,
    describe_roles,
    label_notes,
    prepared_frame,
    read_table,
    staged_files,
)

__all__ = ["Audit", "audit"]


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found; made by :func:`audit`.

    Parameters
    ----------
    result : MislabelResult
        The judgment of each row that was judged.
    rows : ndarray of int of shape (n,)
        Position of each judged row in the table, counted from 0 without the header.
    roles : tuple of ColumnRole
        What each column was used for, or why it was not; empty if labels were judged by embeddings.
    review_set : ReviewSet
        What a person is to look at.
    frame : pandas.DataFrame
        The columns of the judged rows.
    notes : tuple of str
        What to know about the table.
    """

    result: MislabelResult
    rows: IntArray
    roles: tuple[ColumnRole, ...]
    review_set: ReviewSet
    frame: Any = field(repr=False)
    notes: tuple[str, ...] = ()
    table: Table = field(default=None, repr=False)  # type: ignore[assignment]

    def summary(self) -> str:
        """What was judged by what, and what was found, in a few lines.

        Returns
        -------
        text : str
        """
        parts = [
            describe_roles(self.roles),
            *(f"Note: {note}" for note in self.notes),
            self.result.summary(self.rows),
        ]
        return "\n".join(part for part in parts if part)

    def to_frame(self) -> Any:
        """The flagged rows, most suspicious first, with what was found and their own columns.

        Returns
        -------
        frame : pandas.DataFrame
            Columns row (counted from 0), place (as the file shows it), those of
            :meth:`MislabelResult.to_frame`, and those of the table.
        """
        result = self.result
        flagged = result.ranking[result.mask[result.ranking]]
        found = result.to_frame().iloc[flagged].drop(columns="flagged")
        found.insert(0, "row", self.rows[flagged])
        found.insert(1, "place", [self.table.place_of(int(row)) for row in self.rows[flagged]])
        taken = set(found.columns)
        own = self.frame.iloc[flagged].set_axis(found.index)
        own.columns = [name if name not in taken else f"{name} (data)" for name in own.columns]
        pandas = import_extra("pandas", extra="cli", purpose="Audit.to_frame")
        return pandas.concat([found, own], axis=1).reset_index(drop=True)

    def write(self, output: str | PathLike[str], *, overwrite: bool = False) -> AuditFiles:
        """Write the flagged rows, the review set and a plot.

        Parameters
        ----------
        output : path-like
            CSV file of the flagged rows; the others go beside it.
        overwrite : bool, default=False
            Whether existing files may be replaced. Decisions of an earlier review never are.

        Returns
        -------
        files : AuditFiles
            Where they are.
        """
        files = AuditFiles(Path(output))
        files.check(self.table.name, overwrite=overwrite)
        files.check_decisions(self.review_set)
        with staged_files() as stage:
            self.to_frame().to_csv(stage(files.flagged), index=False)
            save_review_set(stage(files.review), self.review_set)
            _draw(self.result, stage(files.plot))
        return files


def audit(
    table: Any,
    *,
    label: str,
    flag: FlagRule | str | float = "estimated",
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    keep: Sequence[str] = (),
    text: str | None = None,
    embeddings: Any = None,
    proba: Any = None,
    classes: Sequence[Any] | None = None,
    image: str | None = None,
    sample: int | None = None,
    n_random: int = 50,
    sep: str | None = None,
    encoding: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Audit:
    """Find suspicious labels of a table: ranked, with the suggested label and the reasons.

    Parameters
    ----------
    table : path-like, or pandas or polars DataFrame
        As for :func:`neighboragg.tables.read_table`.
    label : str
        Name of the label column. Rows without a label are not judged.
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
    embeddings : path-like or array-like of shape (n_rows, n_features), default=None
        Judge by these vectors instead of the columns; a path is that of a .npy file.
    proba : path-like, array-like or DataFrame of shape (n_rows, n_classes), default=None
        *Out-of-fold* probabilities of a classifier. Columns are in the order of the sorted labels, by value if all
        labels are numbers (2 before 10), else as text; or as their names or `classes` say. Names come from
        a data frame, a table file with a header, or an .npz file with the arrays ``proba`` and ``classes``. Named
        classes may be absent from the table.
    classes : sequence, default=None
        Class of each column of `proba`, by the text of its label.
    image : str, default=None
        Column of paths of pictures to show in the review, relative to the folder of the table.
    sample : int, default=None
        Judge that many rows, drawn at random.
    n_random : int, default=50
        Rows that are not flagged to review as well, from which the errors left are estimated.
    sep, encoding : str, default=None
        Delimiter and encoding of a text file, as for :func:`neighboragg.tables.read_table`.
    random_state : int, default=0
    n_jobs : int, default=None
        Threads.

    Returns
    -------
    audit : Audit

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg.audit import audit
    >>> frame = load_iris(as_frame=True).frame
    >>> frame["target"] = frame["target"].map({0: "setosa", 1: "versicolor", 2: "virginica"})
    >>> frame.loc[7, "target"] = "virginica"
    >>> found = audit(frame, label="target", flag=1)
    >>> found.to_frame()[["row", "given", "suggested"]].values.tolist()
    [[7, 'virginica', 'setosa']]
    """
    data = read_table(table, label, sep=sep, encoding=encoding)
    check_class_labels(data.labels, label)
    _check_columns(data, text, image, embeddings)
    rows = _judged_rows(data.labels, sample, random_state)
    labels = data.labels[rows]
    matrix = None if embeddings is None else read_matrix(embeddings, len(data), "embeddings")[rows]
    said = None if proba is None else read_proba(proba, data.labels, rows, classes)
    frame = data.frame.iloc[rows].reset_index(drop=True)
    notes = [*data.notes, *label_notes(data.labels)]
    if (unlabeled := int((data.labels == "").sum())) > 0:
        notes.append(f"{unlabeled:,} of {len(data):,} rows have no label and are left out.")
    roles: tuple[ColumnRole, ...] = ()
    if matrix is None and text is None:
        roles = column_roles(
            frame, labels, columns=columns, exclude=exclude, keep=keep, random_state=random_state
        )
        check_usable(roles)
        text = _lone_text(roles)
        roles, note = _without_texts(roles, text)
        notes += note
    X, opinion = _vectors(frame, labels, roles, text, matrix, random_state)
    result = find_mislabeled(
        X,
        labels,
        proba=opinion if said is None else said,
        features="passthrough",
        random_state=random_state,
        n_jobs=n_jobs,
        flag=flag,
    )
    review_set = build_review_set(
        frame,
        result,
        n_random=n_random,
        title=f"Labels of {Path(data.name).name}",
        random_state=random_state,
        rows=rows,
        n_rows=len(data),
        text=text or "",
        image=image or "",
        row_name=data.place_of,
    )
    return Audit(result, rows, roles, review_set, frame, tuple(notes), data)


def _check_columns(data: Table, text: str | None, image: str | None, embeddings: Any) -> None:
    for kind, column in (("texts", text), ("pictures", image)):
        if column == data.label:
            raise InvalidParameterError(f"The column of {kind} is the label column {column!r} itself.")
        if column and column not in data.frame.columns:
            raise InvalidInputError(
                f"There is no column {column!r} in {data.name}.\n"
                f"Hint: the columns beside the label are {', '.join(map(repr, data.frame.columns))}."
            )
    if image is not None:
        if embeddings is None:
            raise InvalidParameterError(
                "Pictures need embeddings to be judged by: their paths say nothing about what they show.\n"
                "Hint: --embeddings vectors.npy, with a row for each row of the table."
            )
        folder = Path(data.name).parent
        if missing := sum(not (folder / str(path)).is_file() for path in data.frame[image]):
            raise InvalidInputError(
                f"{missing:,} of {len(data):,} pictures of column {image!r} are not below {folder}.\n"
                "Hint: paths are relative to the folder of the table."
            )


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


def _without_texts(
    roles: tuple[ColumnRole, ...], text: str | None
) -> tuple[tuple[ColumnRole, ...], list[str]]:
    """Texts among other columns are not judged by."""
    texts = [role.name for role in roles if role.use == "text" and role.name != text]
    if not texts:
        return roles, []
    kept = tuple(ColumnRole(role.name, "ignored", "texts") if role.name in texts else role for role in roles)
    check_usable(kept)
    return kept, [f"Texts are not judged with other columns; to judge by them alone: --text {texts[0]}"]


def _vectors(
    frame: Any,
    labels: Array,
    roles: Sequence[ColumnRole],
    text: str | None,
    matrix: Array | None,
    seed: int,
) -> tuple[Any, Any]:
    """What to judge by: embeddings, texts or columns; and for texts what a classifier of words says."""
    if matrix is not None:
        return matrix, None
    if text is not None:
        return text_vectors(frame[text].fillna("").astype(str).tolist(), labels, seed)
    return TabularFeatures().fit_transform(prepared_frame(frame, roles)), None


def _draw(result: MislabelResult, path: Path) -> None:
    """Scores and given against suggested labels, side by side."""
    figures = import_extra("matplotlib.figure", extra="cli", purpose="The plot of an audit")
    figure = figures.Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    result.plot_scores(left)
    result.plot_matrix(right)
    figure.savefig(path, dpi=110)
