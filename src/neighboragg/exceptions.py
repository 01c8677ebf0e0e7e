"""Errors that say what is wrong, where, which value, and what to do about it.

Each refines an exception that users already catch.
"""

from sklearn.exceptions import NotFittedError

__all__ = [
    "FileFormatError",
    "FittedRowsWarning",
    "InvalidInputError",
    "InvalidParameterError",
    "MissingExtraError",
    "NeighborAggError",
    "NotCalibratedError",
    "NotNumericError",
    "RecallWarning",
    "SlowSearchWarning",
    "TrustWarning",
    "UntrustedTypeError",
]


class NeighborAggError(Exception):
    """Base of every error raised by neighboragg."""


class InvalidParameterError(NeighborAggError, ValueError):
    """A constructor or function parameter has a value that cannot work."""


class InvalidInputError(NeighborAggError, ValueError):
    """Data (rows, labels, probabilities) that cannot be used as given."""


class NotNumericError(InvalidInputError, TypeError):
    """A value that is not a number where only numbers can be used."""


class NotCalibratedError(NeighborAggError, NotFittedError):
    """A decision was asked for before the threshold was calibrated."""


class MissingExtraError(NeighborAggError, ImportError):
    """An optional dependency is needed and not installed."""


class FileFormatError(NeighborAggError, ValueError):
    """A file is not a neighboragg file, is damaged, or is too new to read."""


class UntrustedTypeError(NeighborAggError, TypeError):
    """A saved estimator contains types that were not declared as trusted."""


class TrustWarning(UserWarning):
    """A result that is computed as asked, and may not mean what it seems to."""


class FittedRowsWarning(TrustWarning):
    """Rows are judged that the model was fitted on, and so look better than new rows do."""


class SlowSearchWarning(UserWarning):
    """A large search runs without the compiled kernel; its results are the same."""


class RecallWarning(UserWarning):
    """An approximate search does not reach the recall asked for, and is exact instead."""
