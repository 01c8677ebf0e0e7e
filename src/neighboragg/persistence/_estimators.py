"""Other libraries' estimators as bytes inside a record: by skops, with every type accounted for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neighboragg._optional import import_extra
from neighboragg.exceptions import FileFormatError, InvalidParameterError, UntrustedTypeError
from neighboragg.persistence._archive import check_archive, functions_in_partials
from neighboragg.persistence._file import MalformedError
from neighboragg.persistence._nodes import secure_nodes
from neighboragg.persistence._trusted import (
    PARTIAL,
    SCIKIT_FUNCTIONS,
    TRUSTED_TYPES,
    short_names,
    spelled_out,
)

__all__ = ["dump_estimator", "load_estimator", "untrusted_types"]

_REMEDY = "pass the estimator again instead of loading it"


def dump_estimator(estimator: Any) -> NDArray[np.uint8]:
    """Return an estimator as bytes, ready to be part of a record.

    Parameters
    ----------
    estimator : object
        Fitted estimator, of scikit-learn or of a library that follows it.

    Returns
    -------
    data : ndarray of shape (n_bytes,), dtype=uint8
        What :func:`load_estimator` takes.

    Raises
    ------
    InvalidParameterError
        If skops cannot save it, or cannot load what it saved.
    MissingExtraError
        If skops is not installed.

    See Also
    --------
    load_estimator : The inverse.

    Notes
    -----
    The bytes are loaded once as a trial, so that what is saved can be restored.

    References
    ----------
    .. [1] skops: secure persistence, https://skops.readthedocs.io

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from neighboragg.persistence import dump_estimator
    >>> data = dump_estimator(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))
    >>> data.dtype, data.ndim
    (dtype('uint8'), 1)
    """
    io = _skops("Saving an estimator")
    name = f"{type(estimator).__module__}.{type(estimator).__qualname__}"
    try:
        data = io.dumps(estimator)
        # Lambdas, locks and the like are written without complaint and fail on loading, when the
        # original is gone. All code that runs here is the caller's own.
        check_archive(data)
        io.loads(data, trusted=io.get_untrusted_types(data=data))
    except Exception as error:
        raise InvalidParameterError(
            f"The estimator of type {name} cannot be saved by skops ({type(error).__name__}: {error}).\n"
            "Hint: save without the estimator, and pass it again when loading."
        ) from error
    return np.frombuffer(data, dtype=np.uint8)


def load_estimator(data: NDArray[np.uint8], *, trusted: Sequence[str] = ()) -> Any:
    """Return the estimator that :func:`dump_estimator` saved.

    Parameters
    ----------
    data : ndarray of shape (n_bytes,), dtype=uint8
        Bytes of the saved estimator.
    trusted : sequence of str, default=()
        Full names of types and functions that may be loaded, beside those skops trusts itself and
        :data:`TRUSTED_TYPES`. "xgboost", "lightgbm" and "catboost" stand for the estimators of these libraries.

    Returns
    -------
    estimator : object
        The estimator.

    Raises
    ------
    UntrustedTypeError
        If the estimator contains other types; the message lists them, and none of their code has run.
    FileFormatError
        If the bytes are damaged, or the estimator does not fit the installed libraries.
    MissingExtraError
        If skops is not installed.

    See Also
    --------
    dump_estimator : The inverse.

    Notes
    -----
    Nothing is unpickled. Trees and neighbor indexes of scikit-learn keep raw positions that compiled
    code follows without looking; skops leaves it to its user to trust them. Here they are always
    loaded, and then looked at: node arrays of decision trees must be trees, within their own bounds
    and those of the estimator around them, and k-d and ball trees are built anew from their rows.
    This finds damage and plain forgeries. It is no sandbox: load files of unknown origin in a process
    you can afford to lose.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from neighboragg.persistence import dump_estimator, load_estimator
    >>> classifier = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    >>> loaded = load_estimator(dump_estimator(classifier))
    >>> round(float(loaded.predict_proba([[1.0]])[0, 1]), 4)
    0.5554
    """
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 1:
        raise InvalidParameterError(
            "The 'data' parameter of load_estimator must be a 1-D uint8 array, as dump_estimator returns it."
        )
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise InvalidParameterError(
            "The 'trusted' parameter of load_estimator must be a list of names, each a str. "
            f"Got {trusted!r} instead."
        )
    io = _skops("Loading a saved estimator")
    content = data.tobytes()
    try:
        check_archive(content)
        reported = io.get_untrusted_types(data=content)
        unknown = _unknown(content, reported, spelled_out(trusted))
    except Exception as error:
        raise _cannot_load(error) from error
    if unknown:
        raise UntrustedTypeError(
            f"The saved estimator contains types that are not known to be safe: {', '.join(unknown)}.\n"
            f"Hint: if each of these is what you expect, pass trusted={short_names(unknown)!r}; or {_REMEDY}."
        )
    try:
        estimator = io.loads(content, trusted=reported)
        secure_nodes(estimator)
    except Exception as error:
        raise _cannot_load(error) from error
    return estimator


def untrusted_types(data: NDArray[np.uint8]) -> list[str]:
    """Return the types within a saved estimator that loading will want the caller's word for."""
    content = data.tobytes()
    return _unknown(content, _skops("Saving an estimator").get_untrusted_types(data=content), set())


def _unknown(content: bytes, reported: Sequence[str], trusted: set[str]) -> list[str]:
    known = {*TRUSTED_TYPES, *trusted}
    # A partial can hold any function: it is as harmless as that is, and by itself not at all.
    if functions_in_partials(content) <= {*SCIKIT_FUNCTIONS, *trusted}:
        known.add(PARTIAL)
    return [name for name in reported if name not in known]


def _skops(purpose: str) -> Any:
    """Return the module that saves and loads."""
    return import_extra("skops.io", extra="skops", purpose=purpose)


def _cannot_load(error: Exception) -> FileFormatError:
    """Return the error of bytes that are no estimator here."""
    if isinstance(error, MalformedError):
        return FileFormatError(f"The saved estimator is malformed: {error}.\nHint: {_REMEDY}.")
    return FileFormatError(
        f"The saved estimator cannot be restored ({type(error).__name__}: {error}): it is damaged, or was "
        f"written with other versions of its libraries.\nHint: {_REMEDY}."
    )
