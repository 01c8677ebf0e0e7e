"""Errors that say what is wrong, where, which value, and what to do about it.

Each refines an exception that users already catch.
"""

from collections.abc import Mapping
from pathlib import Path

from sklearn.exceptions import NotFittedError

__all__ = [
    "FileFormatError",
    "FittedRowsWarning",
    "InvalidInputError",
    "InvalidParameterError",
    "MissingExtraError",
    "NeighborAggError",
    "NotCalibratedError",
    "PartsFailedError",
    "TrustWarning",
    "UntrustedTypeError",
]

SHOWN_FAILURES = 5


class NeighborAggError(Exception):
    """Base of every error raised by neighboragg."""


class InvalidParameterError(NeighborAggError, ValueError):
    """A constructor or function parameter has a value that cannot work."""


class InvalidInputError(NeighborAggError, ValueError):
    """Data (rows, labels, probabilities) that cannot be used as given."""


class NotCalibratedError(NeighborAggError, NotFittedError):
    """A decision was requested before the threshold was calibrated."""


class MissingExtraError(NeighborAggError, ImportError):
    """An optional dependency is needed and not installed."""


class FileFormatError(NeighborAggError, ValueError):
    """A file is not a neighboragg file, is damaged, or is too new to read."""


class UntrustedTypeError(NeighborAggError, TypeError):
    """A saved estimator contains types that were not declared as trusted."""


class PartsFailedError(NeighborAggError):
    """Some parts of a run could not be done; the others are written."""

    def __init__(self, failed: Mapping[str, str], n_parts: int, folder: Path) -> None:
        self.failed = dict(failed)
        shown = "".join(f"\n- {place}: {error}" for place, error in list(failed.items())[:SHOWN_FAILURES])
        more = f"\n- and {len(failed) - SHOWN_FAILURES} more" if len(failed) > SHOWN_FAILURES else ""
        super().__init__(
            f"{len(failed)} of {n_parts} parts failed; the other {n_parts - len(failed)} are in {folder}."
            f"{shown}{more}\nHint: rerun the same command to repeat only the failed parts. If an input file must be "
            "repaired first, choose a new output folder."
        )


class TrustWarning(UserWarning):
    """The result was computed as asked, but may not mean what it seems to."""


class FittedRowsWarning(TrustWarning):
    """The rows scored were used to fit the model, so they look better than new rows do."""
