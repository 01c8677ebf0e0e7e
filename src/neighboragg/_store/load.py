"""Loading saved models: classes are found in a fixed list, and nothing is unpickled."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

from sklearn.frozen import FrozenEstimator

from neighboragg._core.packages import publish
from neighboragg._store.objects import Given, read_object


def load(
    path: str | PathLike[str],
    *,
    estimator: Any = None,
    features: Any = None,
    trusted: Sequence[str] = (),
    mmap: bool = False,
) -> Any:
    """Load what was saved by its `save` method.

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
    mmap : bool, default=False
        Map arrays from the file instead of reading them, so that processes that load the same file share one copy.
        They are read-only then. The arrays inside other libraries' estimators are read in any case. Reference rows are
        read and checked when they are first used, which raises FileFormatError where they are damaged.

    Returns
    -------
    model : object
        As it was saved, such as a TrustedClassifier.

    Raises
    ------
    FileFormatError
        If the file is not a neighboragg file, of another format, or damaged, or if its content cannot be.
    UntrustedTypeError
        If an estimator contains types that are not known to be safe; none of their code has run.

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
    given = []
    if estimator is not None:
        # To fit it again would need its recipe, which is not known.
        frozen = estimator if isinstance(estimator, FrozenEstimator) else FrozenEstimator(estimator)
        given += [
            Given("estimator", "TrustedClassifier", "estimator", frozen, instead=True),
            Given("estimator", "TrustedClassifier", "estimator_", estimator, instead=True),
        ]
    if features is not None:
        given += [
            Given("features", "TrustedClassifier", "features", features, instead=False),
            Given("features", "MislabelDetector", "features", features, instead=False),
            Given("features", "Vectorizer", "function", features, instead=False),
        ]
    return read_object(path, given=given, trusted=tuple(trusted), mmap=mmap)


publish(globals())
