"""The files of an audit, beside each other."""

from dataclasses import dataclass
from pathlib import Path

from neighboragg.exceptions import InvalidInputError, InvalidParameterError, NeighborAggError
from neighboragg.review import ReviewSet, load_review_set
from neighboragg.tables import check_outputs

__all__ = ["AuditFiles"]


@dataclass(frozen=True)
class AuditFiles:
    """Where an audit and its review are kept.

    Parameters
    ----------
    flagged : Path
        CSV file of the flagged rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> from neighboragg.audit import AuditFiles
    >>> AuditFiles(Path("suspicious.csv")).review.name
    'suspicious.review.json'
    """

    flagged: Path

    @property
    def plot(self) -> Path:
        """Scores, and given against suggested labels."""
        return self.flagged.with_suffix(".png")

    @property
    def findings(self) -> Path:
        """Findings beside labels that look wrong."""
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
        """Raise if the files cannot be written, or would be written over the table.

        Parameters
        ----------
        table : str
            Path of the table.
        overwrite : bool
            Whether existing files may be replaced.
        """
        if self.flagged.suffix.lower() != ".csv":
            raise InvalidParameterError(
                f"The output {self.flagged} must end in .csv; plots and the review set go beside it."
            )
        _check_not_among_pictures(self.flagged, Path(table))
        outputs = (self.flagged, self.findings, self.plot, self.review)
        for path in outputs:
            check_not_input(Path(table), path)
        check_outputs(*outputs, overwrite=overwrite)

    def check_decisions(self, review_set: ReviewSet) -> None:
        """Raise if there are decisions about other rows, which a new review set would orphan.

        Parameters
        ----------
        review_set : ReviewSet
        """
        if self.decisions.exists() and self._earlier_fingerprint() != review_set.fingerprint:
            raise InvalidInputError(
                f"{self.decisions} holds decisions about an earlier audit, which these flags do not fit.\n"
                "Hint: choose another name with -o, or move that file away."
            )

    def _earlier_fingerprint(self) -> str | None:
        """The rows and labels that existing decisions are about; None if their review set is gone or damaged."""
        try:
            return load_review_set(self.review).fingerprint
        except (OSError, NeighborAggError):
            return None

    def existing_review(self) -> Path:
        """The review set, which must be there."""
        if not self.review.exists():
            raise InvalidInputError(
                f"There is no review set {self.review}.\n"
                f"Hint: neighboragg audit table.csv --label y -o {self.flagged}"
            )
        return self.review


def _check_not_among_pictures(output: Path, folder: Path) -> None:
    """Raise if the plot of an audit would become a picture of a class of the folder that was audited."""
    if folder.is_dir() and folder.resolve() in output.resolve().parent.parents:
        raise InvalidInputError(
            f"The output {output} would lie among the pictures of {folder}.\nHint: choose another with -o."
        )


def check_not_input(table: Path, output: Path) -> None:
    """Raise if the output would be written over the table."""
    if output.exists() and table.exists() and output.samefile(table):
        raise InvalidInputError(
            f"The output {output} would replace the table.\nHint: choose another with -o."
        )
