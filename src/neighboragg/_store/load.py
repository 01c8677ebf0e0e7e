"""Loading: classes are found in a written list, and nothing that a file names is called."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import sklearn
from sklearn.frozen import FrozenEstimator

from neighboragg._core.estimators import check_classifier, refuse_network, unfrozen
from neighboragg._core.packages import publish
from neighboragg._core.types import Array
from neighboragg._store.estimators import load_estimator
from neighboragg._store.file import read_file, read_text
from neighboragg._store.objects import KINDS, Stored, class_of, fingerprint_of
from neighboragg.exceptions import FileFormatError, InvalidParameterError, NeighborAggError, TrustWarning

_OWNER = "TrustedClassifier"  # the kind whose classifier `load` takes
_WRAPPED = "load(path, estimator=TorchClassifier(module)), with TorchClassifier from neighboragg.torch."


def load(
    path: str | PathLike[str],
    *,
    estimator: Any = None,
    features: Any = None,
    trusted: Sequence[str] = (),
    mmap: bool = False,
) -> Any:
    """Load an object that was saved by its `save` method.

    Parameters
    ----------
    path : str or path-like
    estimator : classifier, default=None
        The fitted classifier, if it is a network, which is never stored, or if the one in the file should not be read.
    features : callable, default=None
        The callable that makes vectors, if the model was saved with one.
    trusted : sequence of str, default=()
        Names of further types that a saved estimator may contain. Types of scikit-learn itself need not be named;
        for other types the error lists them.
    mmap : bool, default=False
        Map arrays from the file instead of reading them. Processes that load the same file then share one copy, which
        is read-only. The arrays inside other libraries' estimators are read in any case.

    Returns
    -------
    model : object
        The object as it was saved, such as a TrustedClassifier.

    Raises
    ------
    FileFormatError
        If the file is not a neighboragg file, has another format, or is damaged.
    UntrustedTypeError
        If an estimator contains types that are not known to be safe; none of their code has run.

    Warns
    -----
    TrustWarning
        If `estimator` is not the network that the model was saved with, or if scikit-learn has another version.

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
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise InvalidParameterError(
            f"The 'trusted' parameter of load must be a list of names, each a str. Got {trusted!r} instead."
        )
    if estimator is not None:
        refuse_network(estimator, "estimator", "load", _WRAPPED)
        check_classifier(estimator, "load")
    if features is not None and not callable(features):
        raise InvalidParameterError(
            f"The 'features' parameter of load must be a callable. Got {features!r} instead."
        )
    document, arrays = read_file(path, mmap=mmap)
    passed = {"estimator": estimator, "features": features}
    given = {parameter: value for parameter, value in passed.items() if value is not None}
    _check_given(given, document, str(path))
    reader = _Reader(document, arrays, given, trusted)
    try:
        found = reader.value(document["root"])
    except (NeighborAggError, MemoryError):
        raise
    except Exception as error:
        raise FileFormatError(
            f"The content of {str(path)!r} cannot be read ({type(error).__name__}: {error}). It was saved by "
            f"neighboragg {document['versions']['neighboragg']}.\nHint: save the model again with this version."
        ) from error
    if reader.has_estimators and reader.saved_with != sklearn.__version__:
        warnings.warn(
            f"{str(path)!r} was saved with scikit-learn {reader.saved_with}, and {sklearn.__version__} is installed, "
            "whose estimators may give other answers.\n"
            f"Hint: pip install scikit-learn=={reader.saved_with}, or fit and save the model again.",
            TrustWarning,
            stacklevel=2,
        )
    return found


def _check_given(given: Mapping[str, Any], document: Mapping[str, Any], path: str) -> None:
    """Compare the values passed to `load` with those that the file lacks."""
    lacking: dict[str, dict[str, str]] = document["left_out"]
    kinds = {entry["kind"] for entry in document["objects"]}
    for parameter in given:
        if parameter not in lacking and not (parameter == "estimator" and _OWNER in kinds):
            raise InvalidParameterError(
                f"The {parameter!r} parameter of load was given, but the {document['kind']} in {path!r} does not "
                "need it.\nHint: leave it out."
            )
    for parameter, what in (("estimator", "a network"), ("features", "a callable for its features")):
        if parameter in lacking and parameter not in given:
            arguments = "".join(f", {name}={saved['call']}" for name, saved in lacking.items())
            raise InvalidParameterError(
                f"This {document['kind']} was saved with {what}, which is never stored.\n"
                f"Hint: neighboragg.load({path!r}{arguments})."
            )
    if "estimator" in lacking:
        saved, now = lacking["estimator"], fingerprint_of(unfrozen(given["estimator"]))
        if saved != now:
            if saved["call"] != now["call"]:
                reason = f"that was {saved['call']}, and this is {now['call']}"
            else:
                reason = "its weights differ"
            warnings.warn(
                "The network passed as estimator= is not the one this model was saved with: "
                f"{reason}. The model's trust was learned from the other's probabilities and embeddings.\n"
                "Hint: pass the network that the model was fitted with, or fit the model again.",
                TrustWarning,
                stacklevel=3,
            )


class _Reader:
    """Makes the objects of a document from its nodes, each object once."""

    def __init__(
        self,
        document: Mapping[str, Any],
        arrays: Mapping[str, Array],
        given: Mapping[str, Any],
        trusted: Sequence[str],
    ) -> None:
        self.objects, self.arrays, self.given, self.trusted = document["objects"], arrays, given, trusted
        # A stored classifier is not read if another is given. To fit that again would need its recipe.
        self.replaced: dict[str, Any] = {}
        if "estimator" in given and "estimator" not in document["left_out"]:
            item = given["estimator"]
            frozen = item if isinstance(item, FrozenEstimator) else FrozenEstimator(item)
            self.replaced = {"estimator": frozen, "estimator_": item}
        self.saved_with = str(document["versions"]["scikit-learn"])
        self.has_estimators = False
        self.made: dict[str, Any] = {}

    def value(self, node: Any) -> Any:
        """Return the value of a node."""
        match node:
            case list():
                return [self.value(item) for item in node]
            case {"$tuple": items}:
                return tuple(self.value(items))
            case {"$dict": items}:
                return dict(self.value(items))
            case {"$scalar": [dtype, number]}:
                return np.dtype(dtype).type(number)
            case {"$array": name}:
                return self.arrays[name]
            case {"$text": names}:
                return self.once(f"text {names[0]}", lambda: read_text([self.arrays[name] for name in names]))
            case {"$estimator": name}:
                return self.once(f"estimator {name}", lambda: self.estimator(name))
            case {"$object": number}:
                return self.once(f"object {number}", lambda: self.object(**self.objects[number]))
            case {"$left_out": parameter}:
                return self.given[parameter]
            case dict():
                return {key: self.value(item) for key, item in node.items()}
        return node

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """Return what `make` gave when the same was first needed."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def estimator(self, name: str) -> Any:
        """Return an estimator of scikit-learn, or of a library that the caller trusts."""
        self.has_estimators = True
        return load_estimator(self.arrays[name], trusted=self.trusted, saved_with=self.saved_with)

    def object(self, kind: str, state: Mapping[str, Any]) -> Any:
        """Return an object of neighboragg, made without a call of its constructor."""
        if kind not in KINDS:
            raise FileFormatError(
                f"The file holds a {kind!r}, which this version of neighboragg does not know.\n"
                "Hint: save the model again with this version."
            )
        replaced = self.replaced if kind == _OWNER else {}
        item: Any = object.__new__(class_of(kind))
        for name, node in state.items():
            vars(item)[name] = replaced[name] if name in replaced else self.value(node)
        if isinstance(item, Stored):
            item.after_load()
        return item


publish(globals())
