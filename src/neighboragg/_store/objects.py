"""Saving: from an object to a tree of plain values and arrays."""

import platform
import warnings
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from neighboragg._core.estimators import gives_vectors, unfrozen
from neighboragg._core.types import Array
from neighboragg._store.estimators import dump_estimator, short_names, untrusted_types
from neighboragg._store.file import DTYPES, FORMAT, write_file, write_text
from neighboragg.exceptions import InvalidParameterError, TrustWarning

#: Every class that a file may name, and the module that defines it, which is imported when a file names the class.
KINDS = {
    "CrossFitted": "neighboragg._pool.crossfit",
    "DistanceScale": "neighboragg._pool.experts",
    "NeighborDistances": "neighboragg._pool.experts",
    "Probabilities": "neighboragg._pool.experts",
    "Votes": "neighboragg._pool.experts",
    "KernelRidge": "neighboragg._pool.kernel_ridge",
    "LinearMap": "neighboragg._pool.kernel_ridge",
    "NetworkAggregator": "neighboragg._pool.network",
    "AverageOpinion": "neighboragg._pool.opinions",
    "ClassifierOpinion": "neighboragg._pool.opinions",
    "KernelOpinion": "neighboragg._pool.opinions",
    "PoolAggregator": "neighboragg._pool.pool",
    "LabelNeighborhoods": "neighboragg._pool.spaces",
    "LearnedNeighbors": "neighboragg._pool.spaces",
    "Neighborhoods": "neighboragg._pool.spaces",
    "Neighbors": "neighboragg._pool.spaces",
    "Spaces": "neighboragg._pool.spaces",
    "UngroupedNeighbors": "neighboragg._pool.spaces",
    "ColumnMemory": "neighboragg.features._column_memory",
    "ColumnProfile": "neighboragg.features._column_memory",
    "TextVectors": "neighboragg.features._columns",
    "ImageFeatures": "neighboragg.features._encode",
    "QuantileScores": "neighboragg.features._quantiles",
    "TabularFeatures": "neighboragg.features._tabular",
    "EmbeddedFeatures": "neighboragg.features._vectorizer",
    "Vectorizer": "neighboragg.features._vectorizer",
    "MislabelDetector": "neighboragg.labels._detector",
    "LabelTrust": "neighboragg.labels._label_trust",
    "Scaling": "neighboragg.labels._label_trust",
    "TrustPass": "neighboragg.labels._label_trust",
    "LabelNoise": "neighboragg.labels._noise",
    "NoiseModel": "neighboragg.labels._noise_model",
    "MislabelResult": "neighboragg.labels._result",
    "Budget": "neighboragg.labels._rules",
    "Estimated": "neighboragg.labels._rules",
    "FDR": "neighboragg.labels._rules",
    "FalseAlarms": "neighboragg.labels._rules",
    "Nothing": "neighboragg.labels._rules",
    "Sampled": "neighboragg.labels._rules",
    "MaxConfidence": "neighboragg.methods._confidence",
    "TemperatureScaling": "neighboragg.methods._confidence",
    "TopLabelCalibration": "neighboragg.methods._confidence",
    "Mahalanobis": "neighboragg.methods._distances",
    "TrustScore": "neighboragg.methods._distances",
    "Familiarity": "neighboragg.methods._familiarity",
    "Nonconformity": "neighboragg.methods._familiarity",
    "NeighborAgg": "neighboragg.methods._neighbor_agg",
    "NeighborGCN": "neighboragg.methods._neighbor_gcn",
    "TrueClassProbability": "neighboragg.methods._true_class",
    "SelectiveClassifier": "neighboragg.promises._selective",
    "SelectiveThreshold": "neighboragg.promises._thresholds",
    "Approximation": "neighboragg.search._approximate",
    "ArrayBlocks": "neighboragg.search._blocks",
    "ClasswiseNeighbors": "neighboragg.search._in_memory",
    "Approximate": "neighboragg.search._index",
    "Exact": "neighboragg.search._index",
    "Streamed": "neighboragg.search._index",
    "Reference": "neighboragg.search._reference",
    "Normalization": "neighboragg.search._reference",
    "Sample": "neighboragg.search._streamed",
    "StreamedNeighbors": "neighboragg.search._streamed",
    "DeepEnsemble": "neighboragg.torch._averages",
    "MCDropout": "neighboragg.torch._averages",
    "ConfidNet": "neighboragg.torch._confid_net",
    "TrustedClassifier": "neighboragg.trust._classifier",
    "FittedRows": "neighboragg.trust._seen",
    "FrozenEstimator": "sklearn.frozen",
}
LIBRARIES = ("neighboragg", "numpy", "scikit-learn", "scipy", "skops")
# Attributes whose callables are passed to `load` again, by its parameter `features`.
CALLABLES = ("features", "function")
# Deeper than any model, and shallower than the recursion limit.
MAX_DEPTH = 64
_SCALARS = {dtype[1:] for dtype in DTYPES.values()}
_GENERATORS = (np.random.RandomState, np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)


def class_of(kind: str) -> type:
    """The class that a file may name so."""
    found: type = getattr(import_module(KINDS[kind]), kind)
    return found


def is_kind(cls: type) -> bool:
    """Whether a file may hold objects of this very class."""
    return cls.__name__ in KINDS and class_of(cls.__name__) is cls


class Stored:
    """Part of a saved model."""

    def _saved_state(self) -> dict[str, Any]:
        """Attributes to save; override it to leave out attributes that need not be stored."""
        return Stored.__getstate__(self) or {}

    def after_load(self) -> None:
        """Make the attributes that were left out."""

    def __getstate__(self) -> dict[str, Any] | None:
        """Attributes without cached properties, which are made again when they are needed.

        Copies, and the hash by which a model is known, are therefore the same before and after its first use.
        """
        state: Any = super().__getstate__()
        return state and {
            name: value
            for name, value in state.items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }


class Savable(Stored):
    """A fitted object that can be saved by itself."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything fitted to one file, without pickle; :func:`neighboragg.load` reads it.

        A network and a callable passed as `features` are code, which is never stored: pass them to `load` again.

        Parameters
        ----------
        path : str or path-like
            File to write. An existing file is replaced, in one step, when the new one is complete.
        """
        if isinstance(self, BaseEstimator):
            check_is_fitted(self)
        write_object(path, self)


def write_object(path: str | PathLike[str], item: Stored) -> None:
    """Save an object with everything it holds."""
    writer = _Writer(type(item).__name__)
    root = writer.node(item, ())
    document = {
        "format": FORMAT,
        "kind": type(item).__name__,
        "versions": _versions(),
        "left_out": writer.left_out,
        "objects": writer.objects,
        "root": root,
    }
    write_file(path, document, writer.tensors)
    if writer.untrusted:
        warnings.warn(
            f"This {writer.owner} holds {', '.join(sorted(writer.untrusted))}, which must be allowed when it is "
            f"loaded.\nHint: neighboragg.load(path, trusted={short_names(writer.untrusted)!r}).",
            TrustWarning,
            stacklevel=3,
        )


def fingerprint_of(value: Any) -> dict[str, str]:
    """The code that makes a value that is never stored, and a digest of its content if it has one."""
    if hasattr(value, "fingerprint"):
        found: dict[str, str] = value.fingerprint()
        return found
    name = getattr(value, "__name__", None)
    if name is None:
        return {"call": f"{type(value).__name__}(…)"}
    return {"call": name if name.isidentifier() else "function"}


def _versions() -> dict[str, str | None]:
    """Return the versions of Python and of the libraries that shape a saved model."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # not installed, or run from a source tree
            found[name] = None
    return found


class _Writer:
    """Collects the tensors and the objects of a tree while walking over it."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.tensors: dict[str, Array] = {}
        self.objects: list[dict[str, Any]] = []
        self.left_out: dict[str, dict[str, str]] = {}
        self.untrusted: set[str] = set()
        # With the value itself, which keeps its id from being given to another.
        self.known: dict[int, tuple[Any, dict[str, Any]]] = {}

    def node(self, value: Any, path: tuple[str, ...]) -> Any:
        """Return the JSON form of `value`, found at `path`."""
        if len(path) > MAX_DEPTH:
            raise self.error(path[:3], f"is nested more than {MAX_DEPTH} deep, perhaps within itself")
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, np.generic):
            return self.scalar(value, path)
        if type(value) in (list, tuple):
            items = [self.node(item, (*path, str(i))) for i, item in enumerate(value)]
            return items if type(value) is list else {"$tuple": items}
        if type(value) is dict:
            return self.mapping(value, path)
        if isinstance(value, _GENERATORS):
            return None  # a generator's past does not matter once fitted
        if id(value) not in self.known:
            self.known[id(value)] = value, self.shared(value, path)
        return self.known[id(value)][1]

    def scalar(self, value: np.generic, path: tuple[str, ...]) -> Any:
        if isinstance(value, np.str_):
            return str(value)
        if value.dtype.str[1:] not in _SCALARS:
            raise self.error(path, f"is a number of the type {value.dtype}")
        return {"$scalar": [value.dtype.str[1:], value.item()]}

    def mapping(self, value: dict[Any, Any], path: tuple[str, ...]) -> dict[str, Any]:
        for key in value:
            if type(key) not in (str, int):
                raise self.error(path, f"is a dict with the key {key!r}, neither str nor int")
        items = [(key, self.node(item, (*path, str(key)))) for key, item in value.items()]
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return dict(items)
        return {"$dict": items}

    def shared(self, value: Any, path: tuple[str, ...]) -> dict[str, Any]:
        """Store a value that may be referred to more than once."""
        # Other subclasses (masked arrays, matrices) would come back as something else.
        if type(value) in (np.ndarray, np.memmap):
            return self.array(value, path)
        if gives_vectors(value):
            return self.leave_out("estimator", unfrozen(value), path)
        if is_kind(type(value)):
            state = value._saved_state() if isinstance(value, Stored) else vars(value)
            nodes = {name: self.node(item, (*path, name)) for name, item in state.items()}
            self.objects.append({"kind": type(value).__name__, "state": nodes})
            return {"$object": len(self.objects) - 1}
        estimator = any(hasattr(value, name) for name in ("fit", "get_params", "split"))
        if isinstance(value, (Stored, type)) or not estimator:
            if callable(value) and path[-1:] and path[-1] in CALLABLES:
                return self.leave_out("features", value, path)
            name = f"{type(value).__module__}.{type(value).__qualname__}"
            code = callable(value) and not isinstance(value, (Stored, type))
            hint = (
                "\nHint: callables are code, which is never stored. Pass a transformer instead."
                if code
                else ""
            )
            raise self.error(path, f"is of the type {name}, which neighboragg does not know", hint)
        data = dump_estimator(value)
        self.untrusted |= set(untrusted_types(data))
        return {"$estimator": self.tensor(data, path)}

    def leave_out(self, parameter: str, value: Any, path: tuple[str, ...]) -> dict[str, Any]:
        """Refer to a value that is never stored by the parameter of `load` that takes it again."""
        fingerprint = fingerprint_of(value)
        if self.left_out.setdefault(parameter, fingerprint) != fingerprint:
            raise self.error(
                path, f"is not the only value that the {parameter!r} parameter of load would take"
            )
        return {"$left_out": parameter}

    def array(self, value: Array, path: tuple[str, ...]) -> dict[str, Any]:
        if value.dtype.kind in "UO":
            tensors = write_text(value)
            if tensors is None:
                raise self.error(path, "is an array of objects that are not all str")
            names = [self.tensor(tensor, (*path, part) if part else path) for part, tensor in tensors.items()]
            return {"$text": names}
        dtype = value.dtype.newbyteorder("<")
        if dtype.str not in DTYPES.values():
            raise self.error(path, f"is an array of the type {value.dtype}")
        return {"$array": self.tensor(np.asarray(value, dtype=dtype, order="C"), path)}

    def tensor(self, array: Array, path: tuple[str, ...]) -> str:
        """Store an array by a name of its own, its path."""
        plain = name = "/".join(path).encode("utf-8", "backslashreplace").decode("utf-8")
        number = 1
        while name in self.tensors:
            number += 1
            name = f"{plain}#{number}"
        self.tensors[name] = array
        return name

    def error(self, path: tuple[str, ...], what: str, hint: str = "") -> InvalidParameterError:
        place = f"its {'/'.join(path)!r}" if path else "it"
        return InvalidParameterError(
            f"This {self.owner} cannot be saved: {place} {what}, so it could not be loaded again.{hint}"
        )
