"""What an audit found, to read, to keep and to review."""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._optional import import_extra
from neighboragg._typing import IntArray
from neighboragg.audit._files import AuditFiles
from neighboragg.audit._findings import KINDS, SPLIT, WRONG, Finding, findings_frame
from neighboragg.mislabel import MislabelResult
from neighboragg.review import ReviewSet, save_review_set
from neighboragg.tables import ColumnRole, Table, describe_roles, escape_formula, staged_files

__all__ = ["Audit", "write_csv"]

N_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found; made by :func:`audit`.

    Parameters
    ----------
    table : Table
        The table.
    result : MislabelResult
        The judgment of each row that was judged.
    rows : ndarray of int of shape (n,)
        Position of each judged row in the table, counted from 0 without the header.
    roles : tuple of ColumnRole
        What each column was used for, or why it was not; empty if labels were judged by embeddings.
    findings : tuple of Finding
        What was found beside labels that look wrong.
    review_set : ReviewSet
        What a person is to look at.
    frame : pandas.DataFrame
        The columns of the judged rows.
    split : str or None
        Column of the split, if copies across it were looked for.
    notes : tuple of str
        What to know about the table and the judgment.
    judged_by : str
        What labels were judged by, where that is not the columns.
    """

    table: Table = field(repr=False)
    result: MislabelResult
    rows: IntArray = field(repr=False)
    roles: tuple[ColumnRole, ...] = field(repr=False)
    findings: tuple[Finding, ...] = field(repr=False)
    review_set: ReviewSet = field(repr=False)
    frame: Any = field(repr=False)
    split: str | None = None
    notes: tuple[str, ...] = ()
    judged_by: str = "embeddings."

    def counts(self) -> dict[str, int]:
        """Number of rows found, by kind.

        Returns
        -------
        counts : dict of str to int
            In the order "wrong label", "conflicting copies", "copies across the split" (if there is a split),
            "unlike all others".
        """
        rows: dict[str, set[int]] = {kind: set() for kind in KINDS if self.split is not None or kind != SPLIT}
        rows[WRONG] = set(self.rows[self.result.mask].tolist())
        for found in self.findings:
            rows[found.kind] |= set(found.rows)
        return {kind: len(found) for kind, found in rows.items()}

    def summary(self) -> str:
        """What was judged by what, and what was found, as text.

        Returns
        -------
        text : str
        """
        result = self.result
        name = Path(self.table.name).name
        parts = [f"{len(result):,} labels of {name}, judged by"]
        parts[0] += ":\n" + describe_roles(self.roles) if self.roles else f" {self.judged_by}"
        counts = self.counts()
        width = max(len(f"{count:,}") for count in counts.values())
        parts.append(
            "Found:\n" + "\n".join(f"  {count:>{width},}  {KINDS[kind]}" for kind, count in counts.items())
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
        """The flagged rows, most suspicious first, with what was found and their own columns.

        Returns
        -------
        frame : pandas.DataFrame
            Columns row (counted from 0), place (as the file shows it), those of
            :meth:`MislabelResult.to_frame`, and those of the table.
        """
        pandas = import_extra("pandas", extra="cli", purpose="Audit.to_frame")
        flagged = self._flagged()
        found = self.result.to_frame().iloc[flagged].drop(columns="flagged")
        found.insert(0, "row", self.rows[flagged])
        found.insert(1, "place", [self.table.place_of(int(row)) for row in self.rows[flagged]])
        taken = set(found.columns)
        own = self.frame.iloc[flagged].set_axis(found.index)
        own.columns = [name if name not in taken else f"{name} (data)" for name in own.columns]
        return pandas.concat([found, own], axis=1).reset_index(drop=True)

    def findings_frame(self) -> Any:
        """The findings beside labels that look wrong, one line for each row of each.

        Returns
        -------
        frame : pandas.DataFrame
            Columns kind, group (rows of one finding share it), row, place, label, reason.
        """
        return findings_frame(self.findings, self.table.labels, self.table.place_of)

    def write(self, output: str | PathLike[str], *, overwrite: bool = False) -> AuditFiles:
        """Write the flagged rows, the other findings, the review set and a plot.

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
            write_csv(self.to_frame(), stage(files.flagged))
            write_csv(self.findings_frame(), stage(files.findings))
            save_review_set(stage(files.review), self.review_set)
            _draw(self.result, stage(files.plot))
        return files

    def _flagged(self) -> IntArray:
        ranking = self.result.ranking
        return ranking[self.result.mask[ranking]]

    def _worst(self) -> list[str]:
        """The most suspicious labels, with their reasons."""
        result, lines = self.result, []
        for i in self._flagged()[:N_SHOWN].tolist():
            place = self.table.place_of(int(self.rows[i]))
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
    """A CSV file that is likely to be opened in a spreadsheet, which must not run what it finds there."""
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
