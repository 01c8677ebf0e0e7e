"""What a metric says where it is undefined."""

import warnings

from neighboragg.exceptions import TrustWarning

__all__ = ["warn_undefined"]


def warn_undefined(subject: str, *, n_rows: int, all_correct: bool) -> None:
    """Warn, in the name of the caller's caller, that a ranking has only one kind of row to rank."""
    warnings.warn(
        f"{subject} undefined, NaN is returned: all of the {n_rows} rows are "
        f"{'correct' if all_correct else 'wrong'}, and a ranking needs correct and wrong ones.",
        TrustWarning,
        stacklevel=3,
    )
