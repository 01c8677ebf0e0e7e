"""Loading saved models: the class is found in a fixed list, and nothing is unpickled."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

from neighboragg.classifier import TrustedClassifier
from neighboragg.exceptions import FileFormatError
from neighboragg.methods import METHODS
from neighboragg.mislabel import MislabelResult
from neighboragg.persistence import read_record

__all__ = ["load"]


def load(
    path: str | PathLike[str],
    *,
    estimator: Any = None,
    features: Any = None,
    trusted: Sequence[str] = (),
) -> Any:
    """Load a model, trust method or result saved by its `save` method.

    Parameters
    ----------
    path : str or path-like
    estimator : classifier, default=None
        The fitted classifier, if the model was saved without it or should not be read from the file.
    features : callable, default=None
        The callable that makes vectors, if the model was saved with one.
    trusted : sequence of str, default=()
        Names of further types that a saved estimator may contain. Types of scikit-learn itself need no mention;
        for others the error lists them.

    Returns
    -------
    model : TrustedClassifier, TrustMethod or MislabelResult

    Examples
    --------
    >>> import neighboragg, tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = neighboragg.TrustedClassifier(LogisticRegression(max_iter=500), random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.nagg"
    ...     model.save(path)
    ...     again = neighboragg.load(path)
    >>> bool((again.score_samples(X) == model.score_samples(X)).all())
    True
    """
    kind, record = read_record(path)
    if kind == TrustedClassifier.__name__:
        return TrustedClassifier.from_record(
            record, estimator=estimator, features=features, trusted=tuple(trusted)
        )
    if kind == MislabelResult.__name__:
        return MislabelResult.from_record(record)
    if kind in METHODS:
        return METHODS[kind].from_record(record, trusted=tuple(trusted))
    raise FileFormatError(
        f"{path} holds a {kind!r}, which neighboragg.load does not know.\n"
        "Hint: it may come from a newer version; upgrade neighboragg."
    )
