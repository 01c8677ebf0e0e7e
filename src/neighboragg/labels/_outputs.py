"""An audit, its files, and where its rows came from."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.files import check_outputs, escape_formula, staged_files
from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, IntArray
from neighboragg._data.open import Table
from neighboragg._data.parquet import holds_parquet
from neighboragg._data.source import Source
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, NeighborAggError
from neighboragg.features import ColumnRole
from neighboragg.labels._findings import WRONG, Finding, Kind, findings_frame
from neighboragg.labels._result import MislabelResult
from neighboragg.labels._review_set import ReviewSet, load_review_set, save_review_set


@dataclass(frozen=True)
class Origin:
    """Where the rows of a review set came from: what to open, how to read it, and its label column."""

    path: str | list[str]
    label: str
    digest: str
    root: str
    options: Mapping[str, str]

    @classmethod
    def of(cls, given: Any, source: Source, label: str) -> "Origin | None":
        """The origin of rows in files; None for data frames."""
        if not source.files:
            return None
        table = given if isinstance(given, Table) else Table(given)
        path = (
            [_absolute(one) for one in table.path]
            if isinstance(table.path, list | tuple)
            else _absolute(table.path)
        )
        return cls(path, label, source.digest, str(source.root.resolve()), table.options)

    @classmethod
    def read(cls, review_set: ReviewSet) -> "Origin | None":
        """The origin as a review set stores it; None if it stores none, or something else."""
        known = dict(review_set.source)
        texts = all(isinstance(known.get(name), str) for name in ("label", "digest", "root"))
        path, options = known.get("path"), known.get("options")
        listed = isinstance(path, list) and all(isinstance(one, str) for one in path)
        if not (texts and isinstance(options, dict) and (isinstance(path, str) or listed)):
            return None
        return cls(path, known["label"], known["digest"], known["root"], options)  # type: ignore[arg-type]


def _absolute(path: Any) -> str:
    return str(path) if "://" in str(path) else os.path.abspath(path)  # noqa: PTH100  # also of patterns


@dataclass(frozen=True)
class AuditFiles:
    """The files of an audit and its review."""

    flagged: Path

    @property
    def plot(self) -> Path:
        """Scores, and given against suggested labels."""
        return self.flagged.with_suffix(".png")

    @property
    def findings(self) -> Path:
        """Findings other than suspicious labels."""
        return self.flagged.with_suffix(".findings.csv")

    @property
    def review(self) -> Path:
        """The review set."""
        return self.flagged.with_suffix(".review.json")

    @property
    def decisions(self) -> Path:
        """The decisions of the review."""
        return self.review.with_suffix(".decisions.sqlite")

    def check(self, table: str, *, overwrite: bool) -> None:
        """Raise if the files cannot be written or would overwrite the table."""
        if self.flagged.suffix.lower() != ".csv":
            raise InvalidParameterError(
                f"The output {self.flagged} must end in .csv; the plot and the review set go next to it."
            )
        _check_not_among_images(self.flagged, Path(table))
        outputs = (self.flagged, self.findings, self.plot, self.review)
        for path in outputs:
            check_not_input(Path(table), path)
        check_outputs(*outputs, overwrite=overwrite)

    def check_decisions(self, review_set: ReviewSet) -> None:
        """Raise if the decisions file is about other rows; a new review set would orphan it."""
        if self.decisions.exists() and self._earlier_fingerprint() != review_set.fingerprint:
            raise InvalidInputError(
                f"{self.decisions} contains decisions about an earlier audit, which do not fit these flags.\n"
                "Hint: choose another name with -o, or move that file away."
            )

    def _earlier_fingerprint(self) -> str | None:
        """The rows and labels of the existing decisions; None if their review set is missing or damaged."""
        try:
            return load_review_set(self.review).fingerprint
        except (OSError, NeighborAggError):
            return None

    def existing_review(self) -> Path:
        """The review set; raises if it is missing."""
        if not self.review.exists():
            raise InvalidInputError(
                f"There is no review set {self.review}.\n"
                f"Hint: neighboragg audit table.csv --label y -o {self.flagged}"
            )
        return self.review


def _check_not_among_images(output: Path, folder: Path) -> None:
    """Raise if the plot of an audit would become an image of the audited folder."""
    inside = folder.is_dir() and folder.resolve() in output.resolve().parent.parents
    if inside and not holds_parquet(folder):
        raise InvalidInputError(
            f"The output {output} would end up among the images of {folder}.\nHint: choose another path with -o."
        )


def check_not_input(table: Path, output: Path) -> None:
    """Raise if the output would overwrite the table."""
    if output.exists() and table.exists() and output.samefile(table):
        raise InvalidInputError(
            f"The output {output} would replace the table.\nHint: choose another path with -o."
        )


N_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found; made by :func:`audit`.

    Parameters
    ----------
    source : Source
        The rows that were audited.
    labels : ndarray of str of shape (n_rows,)
        The label of every row as text; empty where it is missing.
    result : MislabelResult
        Scores and flags of the scored rows.
    rows : ndarray of int of shape (n,)
        Position of each scored row in the source, counted from 0.
    roles : tuple of ColumnRole
        How each column was used, or why it was not; empty if labels were not scored by columns.
    findings : tuple of Finding
        Findings other than suspicious labels.
    kinds : tuple of Kind
        The kinds of findings that were searched.
    review_set : ReviewSet
        The rows for a person to review.
    frame : pandas.DataFrame
        The columns of the rows to review and of their neighbors, by position in the source.
    notes : tuple of str
        Notes about the source and the scores.
    scored_by : str
        The evidence that labels were scored by.
    """

    source: Source = field(repr=False)
    labels: Array = field(repr=False)
    result: MislabelResult
    rows: IntArray = field(repr=False)
    roles: tuple[ColumnRole, ...] = field(repr=False)
    findings: tuple[Finding, ...] = field(repr=False)
    kinds: tuple[Kind, ...] = field(repr=False)
    review_set: ReviewSet = field(repr=False)
    frame: Any = field(repr=False)
    notes: tuple[str, ...] = ()
    scored_by: str = "embeddings."

    def counts(self) -> dict[str, int]:
        """Number of rows found, by kind.

        Returns
        -------
        counts : dict of str to int
            In the order "wrong label", "conflicting copies", "copies across the split" (if there is a split),
            "unlike all others", "unreadable image" (if there are any).
        """
        rows: dict[str, set[int]] = {WRONG: set(self.rows[self.result.mask].tolist())}
        rows |= {kind.name: set() for kind in self.kinds}
        for found in self.findings:
            rows[found.kind] |= set(found.rows)
        return {kind: len(found) for kind, found in rows.items()}

    def summary(self) -> str:
        """The evidence that was used and the findings, as text.

        Returns
        -------
        text : str
        """
        result = self.result
        name = Path(self.source.name).name
        parts = [f"{len(result):,} labels of {name}, scored by"]
        parts[0] += f":{self.scored_by}" if self.roles else f" {self.scored_by}"
        titles = {WRONG: "suspicious labels"} | {kind.name: kind.title for kind in self.kinds}
        counts = self.counts()
        width = max(len(f"{count:,}") for count in counts.values())
        parts.append(
            "Found:\n" + "\n".join(f"  {count:>{width},}  {titles[kind]}" for kind, count in counts.items())
        )
        if result.n_flagged:
            parts[-1] += (
                f"\n{result.n_flagged:,} labels flagged ({result.n_flagged / len(result):.1%}). {result.promise}\n"
                f"{result.noise_summary()}"
            )
            parts.append("Most suspicious labels:\n" + "\n".join(self._worst()))
            parts.append("Most frequent exchanges:\n" + "\n".join(self._pairs()))
        notes = [*self.notes, *result.notes]
        if notes:
            parts.append("\n".join(f"Note: {note}" for note in notes))
        return "\n\n".join(parts)

    def to_frame(self) -> Any:
        """The flagged rows, most suspicious first, with scores, reasons and their own columns.

        Returns
        -------
        frame : pandas.DataFrame
            Columns row (its label in the index of a data frame, else counted from 0), where (as the file shows it),
            given, suggested, p_wrong, trust, suggested_trust, reasons, and the columns of the source.
        """
        pandas = import_extra("pandas", extra="cli", purpose="Audit.to_frame")
        flagged = self._flagged()
        found = self.result.to_frame().iloc[flagged].drop(columns="flagged")
        names = self.source.row_names
        found.insert(0, "row", [names[row] for row in self.rows[flagged]])
        found.insert(1, "where", [self.source.place_of(int(row)) for row in self.rows[flagged]])
        taken = set(found.columns)
        own = self.frame.loc[self.rows[flagged]].set_axis(found.index)
        own.columns = [name if name not in taken else f"{name} (data)" for name in own.columns]
        return pandas.concat([found, own], axis=1).reset_index(drop=True)

    def findings_frame(self) -> Any:
        """The findings other than suspicious labels, one line per row and finding.

        Returns
        -------
        frame : pandas.DataFrame
            Columns kind, group (rows of one finding share it), row, where, label, reason.
        """
        return findings_frame(self.findings, self.labels, self.source.row_names, self.source.place_of)

    def write(self, output: str | PathLike[str], *, overwrite: bool = False) -> AuditFiles:
        """Write the flagged rows, the other findings, the review set and a plot.

        Parameters
        ----------
        output : path-like
            CSV file of the flagged rows; the others go next to it.
        overwrite : bool, default=False
            Whether existing files may be replaced. Decisions of an earlier review never are.

        Returns
        -------
        files : AuditFiles
            Their paths.
        """
        files = AuditFiles(Path(output))
        files.check(self.source.name, overwrite=overwrite)
        files.check_decisions(self.review_set)
        with staged_files() as stage:
            write_csv(self.to_frame(), stage(files.flagged))
            write_csv(self.findings_frame(), stage(files.findings))
            save_review_set(stage(files.review), self.review_set)
            _draw(self.result, stage(files.plot))
        return files

    def _flagged(self) -> IntArray:
        """Positions of the flagged rows that are listed, most suspicious first."""
        ranking = self.result.ranking
        flagged = ranking[self.result.mask[ranking]]
        return flagged[: len(self.review_set.flagged)]

    def _worst(self) -> list[str]:
        """The most suspicious labels, with their reasons."""
        result, lines = self.result, []
        for i in self._flagged()[:N_SHOWN].tolist():
            place = self.source.place_of(int(self.rows[i]))
            lines.append(f"  {place}: {str(result.given[i])!r} is more likely {str(result.suggested[i])!r}")
            lines.append(f"      {'; '.join(result.reasons[i])}")
        return lines

    def _pairs(self) -> list[str]:
        mask = self.result.mask
        pairs, counts = np.unique(
            np.column_stack([self.result.given[mask], self.result.suggested[mask]]),
            axis=0,
            return_counts=True,
        )
        ranked = np.argsort(-counts, kind="stable")[:N_SHOWN]
        return [f"  {counts[i]:,} × {str(pairs[i, 0])!r} → {str(pairs[i, 1])!r}" for i in ranked]


def write_csv(frame: Any, path: Path) -> None:
    """A CSV file that may be opened in a spreadsheet, which must not execute its cells."""
    safe = frame.map(escape_formula).set_axis([escape_formula(name) for name in frame.columns], axis=1)
    safe.to_csv(path, index=False)


def _draw(result: MislabelResult, path: Path) -> None:
    """Scores and given against suggested labels, side by side."""
    figures = import_extra("matplotlib.figure", extra="cli", purpose="The plot of an audit")
    figure = figures.Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    result.plot_scores(left)
    result.plot_matrix(right)
    figure.savefig(path, dpi=110)
