"""From objects to a tree of plain values and arrays, and back."""

import inspect
import math
import os
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from neighboragg._core.types import Array
from neighboragg._store.estimators import (
    dump_estimator,
    load_estimator,
    short_names,
    untrusted_types,
)
from neighboragg._store.file import (
    DTYPES,
    FORMAT,
    MalformedError,
    MappedArrays,
    read_file,
    read_text,
    write_file,
    write_text,
)
from neighboragg.exceptions import FileFormatError, InvalidParameterError, NeighborAggError, TrustWarning

#: Every class that a file may name, by the module that defines it; a module is imported when a file names its class.
MODULES: dict[str, tuple[str, ...]] = {
    "neighboragg._pool.crossfit": ("CrossFitted",),
    "neighboragg._pool.experts": ("DistanceScale",),
    "neighboragg._pool.kernel_ridge": (
        "KernelRidge",
        "LinearMap",
    ),
    "neighboragg._pool.network": ("NetworkAggregator",),
    "neighboragg._pool.opinions": (
        "AverageOpinion",
        "ClassifierOpinion",
        "KernelOpinion",
    ),
    "neighboragg._pool.pool": ("PoolAggregator",),
    "neighboragg._pool.spaces": (
        "LearnedNeighbors",
        "Near",
        "UngroupedNeighbors",
        "ViewNeighbors",
    ),
    "neighboragg.features._columns": ("TextVectors",),
    "neighboragg.features._encode": ("ImageFeatures",),
    "neighboragg.features._quantiles": ("TamedScores",),
    "neighboragg.features._tabular": ("TabularFeatures",),
    "neighboragg.features._vectorizer": (
        "EmbeddedFeatures",
        "Vectorizer",
    ),
    "neighboragg.labels._detector": ("MislabelDetector",),
    "neighboragg.labels._label_trust": (
        "LabelTrust",
        "Pass",
    ),
    "neighboragg.labels._models": ("Scaling",),
    "neighboragg.labels._noise": ("LabelNoise",),
    "neighboragg.labels._noise_model": ("NoiseModel",),
    "neighboragg.labels._result": ("MislabelResult",),
    "neighboragg.labels._rules": (
        "Budget",
        "Estimated",
        "FDR",
        "FalseAlarms",
        "Nothing",
    ),
    "neighboragg.methods._confidence": (
        "MaxConfidence",
        "TemperatureScaling",
        "TopLabelCalibration",
    ),
    "neighboragg.methods._distances": (
        "Mahalanobis",
        "TrustScore",
    ),
    "neighboragg.methods._familiarity": ("Familiarity", "Nonconformity"),
    "neighboragg.methods._neighbor_agg": ("NeighborAgg",),
    "neighboragg.methods._neighbor_gcn": ("NeighborGCN",),
    "neighboragg.methods._true_class": ("TrueClassProbability",),
    "neighboragg.promises._selective": ("SelectiveClassifier",),
    "neighboragg.promises._thresholds": ("SelectiveThreshold",),
    "neighboragg.search._approximate": ("Approximation",),
    "neighboragg.search._blocks": (
        "ArrayBlocks",
        "ChainedBlocks",
        "LinearBlocks",
    ),
    "neighboragg.search._index": (
        "Approximate",
        "Exact",
        "Streamed",
    ),
    "neighboragg.search._in_memory": ("ClasswiseNeighbors",),
    "neighboragg.search._reference": ("Reference",),
    "neighboragg.search._streamed": (
        "Sample",
        "StreamedNeighbors",
    ),
    "neighboragg.torch._confid_net": ("ConfidNet",),
    "neighboragg.torch._averages": (
        "DeepEnsemble",
        "MCDropout",
    ),
    "neighboragg.trust._classifier": ("TrustedClassifier",),
    "neighboragg.trust._seen": ("FittedRows",),
    "neighboragg.trust._staged_fit": ("StagedFit",),
    "sklearn.frozen": ("FrozenEstimator",),
}
KINDS = {kind: module for module, kinds in MODULES.items() for kind in kinds}


def class_of(kind: Any) -> type | None:
    """The class that a file may name so; None if there is none."""
    if type(kind) is not str or kind not in KINDS:
        return None
    found: type = getattr(import_module(KINDS[kind]), kind)
    return found


def is_kind(cls: type) -> bool:
    """Whether a file may hold objects of this very class."""
    return cls.__name__ in KINDS and class_of(cls.__name__) is cls


class Stored:
    """Part of a saved model."""

    def _saved_state(self) -> dict[str, Any]:
        """Attributes to save; override it to leave out what cannot be stored, or need not be."""
        return Stored.__getstate__(self) or {}

    def __getstate__(self) -> dict[str, Any] | None:
        """Attributes without cached properties, which are made again when they are asked for.

        So copies, and the hash that a model is known by, are the same before and after it is used.
        """
        state: Any = super().__getstate__()
        return state and {
            name: value
            for name, value in state.items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    def _after_load(self) -> None:
        """Check attributes that came from a file with :func:`require`, and make those that were left out."""


class Deferred(Stored):
    """A large part of a saved model: from a file that is mapped it is made, and checked, when it is first used."""

    @classmethod
    def _made_by(cls, make: Callable[[], Self]) -> Self:
        """An object that becomes what `make` returns."""
        item = object.__new__(cls)
        vars(item)[_MAKE] = make
        return item

    def _become_made(self) -> None:
        with _MAKING:  # other threads wait for it to be complete
            if _MAKE in vars(self):
                made = vars(vars(self)[_MAKE]())
                vars(self).update(made | vars(self))  # what was set in the meantime stays
                del vars(self)[_MAKE]

    if not TYPE_CHECKING:  # it would hide mistakes in names

        def __getattr__(self, name: str) -> Any:
            """Called for what is not there, perhaps because nothing is yet."""
            if not name.startswith("__"):
                self._become_made()
            return object.__getattribute__(self, name)

    def _saved_state(self) -> dict[str, Any]:
        self._become_made()
        return super()._saved_state()

    def __getstate__(self) -> dict[str, Any] | None:
        self._become_made()
        return super().__getstate__()


_MAKE = "__make__"  # no file can hold an attribute of such a name
_MAKING = RLock()


def _renew_lock() -> None:
    """In a process forked while a thread held the lock: that thread, which would release it, is not there."""
    global _MAKING
    _MAKING = RLock()


if hasattr(os, "register_at_fork"):  # Windows has none
    os.register_at_fork(after_in_child=_renew_lock)


def require(condition: Any, what: str) -> None:
    """Raise unless what a file says can be; `what` says what is wrong."""
    if not condition:
        raise MalformedError(what)


_LIBRARIES = ("neighboragg", "numpy", "safetensors", "scikit-learn", "scipy", "skops")
# Deeper than any model, and shallower than the recursion limit.
MAX_DEPTH = 64
# Python itself refuses to print or read decimal numbers of more than 4,300 digits.
MAX_INT_BITS = 4096
_SPECIAL_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_SCALARS = {dtype[1:]: np.dtype(dtype).type for dtype in DTYPES.values()}
_GENERATORS = (np.random.RandomState, np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)


class Given(NamedTuple):
    """A value that the caller of `load` has for an attribute, instead of the file's or only where it has none."""

    parameter: str
    kind: str
    attribute: str
    value: Any
    instead: bool


def write_object(path: str | os.PathLike[str], item: Stored, *, omit: Sequence[str] = ()) -> None:
    """Save an object with everything it holds, except its attributes named in `omit`."""
    writer = _Writer(type(item).__name__, omit)
    root = writer.node(item, ())
    document = {
        "format": FORMAT,
        "kind": type(item).__name__,
        "versions": _versions(),
        "objects": writer.objects,
        "root": root,
    }
    write_file(path, document, writer.tensors)
    if writer.untrusted:
        warnings.warn(
            f"This {writer.owner} holds {', '.join(sorted(writer.untrusted))}, which load takes only on your word.\n"
            f"Hint: neighboragg.load(path, trusted={short_names(writer.untrusted)!r}).",
            TrustWarning,
            stacklevel=3,
        )


def read_object(
    path: str | os.PathLike[str],
    *,
    given: Sequence[Given] = (),
    trusted: Sequence[str] = (),
    mmap: bool = False,
) -> Any:
    """Make the object that :func:`write_object` saved."""
    document, arrays = read_file(path, mmap=mmap)
    reader = _Reader(path, document.get("objects"), arrays, given, trusted)
    with _named(path):
        root = reader.node(document.get("root"), 0)
        if type(root).__name__ != document.get("kind") or not isinstance(root, Stored):
            raise MalformedError("it holds another kind of object than it says")
    for parameter in {item.parameter for item in given} - reader.filled:
        raise InvalidParameterError(
            f"The {parameter!r} parameter of load was given, but the {document['kind']} in {str(path)!r} does not "
            "need it.\nHint: leave it out."
        )
    return root


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say which file it is whose content is not valid."""
    try:
        yield
    except MalformedError as error:
        raise FileFormatError(
            f"The content of {str(path)!r} is not valid: {error}.\nHint: save the model again."
        ) from error


def _versions() -> dict[str, str | None]:
    """Return the versions of Python and of the libraries that shape a saved model."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # not installed, or run from a source tree
            found[name] = None
    return found


class _Writer:
    """Collects the tensors and the objects of what is walked over."""

    def __init__(self, owner: str, omit: Sequence[str]) -> None:
        self.owner, self.omit = owner, omit
        self.tensors: dict[str, Array] = {}
        self.objects: list[dict[str, Any]] = []
        self.untrusted: set[str] = set()
        # With the value itself, so that no other gets its id.
        self.known: dict[int, tuple[Any, dict[str, Any]]] = {}

    def node(self, value: Any, path: tuple[str, ...]) -> Any:
        """Return the JSON form of `value`, found at `path`."""
        if len(path) > MAX_DEPTH:
            raise self.error(path[:3], f"is nested more than {MAX_DEPTH} deep, perhaps within itself")
        if value is None or type(value) in (bool, str):
            return value
        if isinstance(value, np.generic):
            return self.scalar(value, path)
        if type(value) is int:
            if value.bit_length() > MAX_INT_BITS:
                raise self.error(path, f"is an int of more than {MAX_INT_BITS} bits")
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$float": str(value)}
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
        return {"$scalar": [value.dtype.str[1:], self.node(value.item(), path)]}

    def mapping(self, value: dict[Any, Any], path: tuple[str, ...]) -> dict[str, Any]:
        for key in value:
            if type(key) not in (str, int):
                raise self.error(path, f"is a dict with the key {key!r}, neither str nor int")
        items = [(key, self.node(item, (*path, str(key)))) for key, item in value.items()]
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return dict(items)
        return {"$dict": [list(item) for item in items]}

    def shared(self, value: Any, path: tuple[str, ...]) -> dict[str, Any]:
        """Store what may be referred to more than once."""
        # Other subclasses (masked arrays, matrices) would come back as something else.
        if type(value) in (np.ndarray, np.memmap):
            return self.array(value, path)
        if is_kind(type(value)):
            state = value._saved_state() if isinstance(value, Stored) else vars(value)
            kept = {name: item for name, item in state.items() if path or name not in self.omit}
            nodes = {name: self.node(item, (*path, name)) for name, item in kept.items()}
            self.objects.append({"kind": type(value).__name__, "state": nodes})
            return {"$object": len(self.objects) - 1}
        estimator = any(hasattr(value, name) for name in ("fit", "get_params", "split"))
        if isinstance(value, (Stored, type)) or not estimator:
            name = f"{type(value).__module__}.{type(value).__qualname__}"
            raise self.error(path, f"is of the type {name}, which neighboragg does not know")
        data = dump_estimator(value)
        self.untrusted |= set(untrusted_types(data))
        return {"$estimator": self.tensor(data, path)}

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

    def error(self, path: tuple[str, ...], what: str) -> InvalidParameterError:
        place = f"its {'/'.join(path)!r}" if path else "it"
        return InvalidParameterError(
            f"This {self.owner} cannot be saved: {place} {what}, so it could not be loaded again."
        )


class _Reader:
    """Makes each object, estimator and array once, when it is first referred to."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        objects: Any,
        arrays: Mapping[str, Array],
        given: Sequence[Given],
        trusted: Sequence[str],
    ) -> None:
        self.path, self.objects, self.arrays, self.given, self.trusted = path, objects, arrays, given, trusted
        self.made: dict[tuple[str, Any], Any] = {}
        self.filled: set[str] = set()

    def node(self, node: Any, depth: int, below: int | None = None) -> Any:
        """Return the value of a node; one inside the i-th object refers only to objects below i."""
        if depth > MAX_DEPTH:
            raise MalformedError(f"it is nested more than {MAX_DEPTH} deep")
        if isinstance(node, list):
            return [self.node(item, depth + 1, below) for item in node]
        if not isinstance(node, dict):
            return node
        if not any(key.startswith("$") for key in node):
            return {key: self.node(item, depth + 1, below) for key, item in node.items()}
        ((sign, content), *more) = node.items()
        if more or sign not in _SIGNS:
            raise MalformedError(f"{next(iter(node))!r} is not a known sign")
        return _SIGNS[sign](self, content, depth, below)

    def tuple(self, content: Any, depth: int, below: int | None) -> Any:
        _require_type(content, list, "a tuple")
        return tuple(self.node(content, depth, below))

    def mapping(self, content: Any, depth: int, below: int | None) -> Any:
        pairs = self.tuple(content, depth, below)
        if not all(type(pair) is list and len(pair) == 2 and type(pair[0]) in (str, int) for pair in pairs):
            raise MalformedError("a dict has keys that are neither str nor int")
        return dict(pairs)

    def float(self, content: Any, depth: int, below: int | None) -> Any:
        if type(content) is not str or content not in _SPECIAL_FLOATS:
            raise MalformedError("a number without digits is neither nan nor inf")
        return _SPECIAL_FLOATS[content]

    def scalar(self, content: Any, depth: int, below: int | None) -> Any:
        _require_type(content, list, "a number")
        dtype, value = self.node(content, depth, below) if len(content) == 2 else (None, None)
        expected = {"b": bool, "f": float}.get(str(dtype)[:1], int)
        if type(dtype) is not str or dtype not in _SCALARS or type(value) is not expected:
            raise MalformedError("a number is not of the type that it says")
        try:
            return _SCALARS[dtype](value)
        except OverflowError:
            raise MalformedError("a number is beyond the type that it says") from None

    def array(self, content: Any, depth: int, below: int | None) -> Array:
        if type(content) is not str or content not in self.arrays:
            raise MalformedError(f"it refers to the array {content!r}, which is not there")
        return self.arrays[content]

    def text(self, content: Any, depth: int, below: int | None) -> Array:
        _require_type(content, list, "an array of strings")
        parts = [self.array(name, depth, below) for name in content]
        key = ("text", tuple(content))
        if key not in self.made:
            self.made[key] = read_text(parts)
        return self.made[key]

    def estimator(self, content: Any, depth: int, below: int | None) -> Any:
        data = self.array(content, depth, below)
        key = ("estimator", content)
        if key not in self.made:
            if data.dtype != np.uint8 or data.ndim != 1:
                raise MalformedError(f"the estimator {content!r} is not a row of bytes")
            self.made[key] = load_estimator(data, trusted=self.trusted)
        return self.made[key]

    def object(self, content: Any, depth: int, below: int | None) -> Any:
        _require_type(self.objects, list, "the list of objects")
        limit = len(self.objects) if below is None else below
        if type(content) is not int or not 0 <= content < limit:
            raise MalformedError(f"it refers to the object {content!r}, which is not there")
        key = ("object", content)
        if key not in self.made:
            self.made[key] = self.make(self.objects[content], depth, content)
        return self.made[key]

    def make(self, entry: Any, depth: int, position: int) -> Any:
        if not isinstance(entry, dict) or set(entry) != {"kind", "state"}:
            raise MalformedError(f"object {position} has other fields than expected")
        kind, nodes = entry["kind"], entry["state"]
        cls = class_of(kind)
        if cls is None or inspect.isabstract(cls):
            raise MalformedError(f"it holds a {kind!r}, which this version of neighboragg does not know")
        _require_type(nodes, dict, f"the state of a {kind}")
        if issubclass(cls, Deferred) and isinstance(self.arrays, MappedArrays):
            return cls._made_by(lambda: self.make_later(cls, nodes, depth, position))
        return _made(cls, self.state(kind, nodes, depth, position))

    def make_later(self, cls: type, nodes: dict[str, Any], depth: int, position: int) -> Any:
        """What was not made before since nobody had used it."""
        with _named(self.path):
            return _made(cls, self.state(cls.__name__, nodes, depth, position))

    def state(self, kind: str, nodes: dict[str, Any], depth: int, position: int) -> dict[str, Any]:
        """Attributes of an object, the caller's instead of the file's where they are given."""
        state, nodes = {}, dict(nodes)
        for item in self.given:
            if item.kind == kind and (item.instead or item.attribute not in nodes):
                nodes.pop(item.attribute, None)
                state[item.attribute] = item.value
                self.filled.add(item.parameter)
        return state | {name: self.node(node, depth + 1, position) for name, node in nodes.items()}


_SIGNS = {
    "$array": _Reader.array,
    "$dict": _Reader.mapping,
    "$estimator": _Reader.estimator,
    "$float": _Reader.float,
    "$object": _Reader.object,
    "$scalar": _Reader.scalar,
    "$text": _Reader.text,
    "$tuple": _Reader.tuple,
}


def _made(cls: type, state: dict[str, Any]) -> Any:
    """An object with these attributes; nothing of its class runs but the check of what was loaded."""
    kind = cls.__name__
    for name in state:
        # A file must not hide a method behind a value.
        if name.startswith("__") or hasattr(inspect.getattr_static(cls, name, None), "__get__"):
            raise MalformedError(f"a {kind} cannot have {name!r} as an attribute")
    item: Any = object.__new__(cls)
    vars(item).update(state)
    if isinstance(item, Stored):
        try:
            item._after_load()
        except (MalformedError, NeighborAggError):
            raise
        except Exception as error:
            raise MalformedError(
                f"a {kind} does not fit together ({type(error).__name__}: {error})"
            ) from error
    needed = {field.name for field in fields(cls)} if is_dataclass(cls) else set()
    if isinstance(item, BaseEstimator):
        needed |= set(item._get_param_names())
    if missing := needed - set(vars(item)):
        raise MalformedError(f"a {kind} lacks {', '.join(sorted(missing))}")
    return item


def _require_type(value: Any, expected: type, what: str) -> None:
    if type(value) is not expected:
        raise MalformedError(f"{what} is not a {expected.__name__}")


class Savable(Stored):
    """A fitted object that can be saved by itself."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything fitted to one file, without pickle; :func:`neighboragg.load` reads it.

        Parameters
        ----------
        path : str or path-like
            File to write. An existing file is replaced, in one step, when the new one is complete.
        """
        if isinstance(self, BaseEstimator):
            check_is_fitted(self)
        write_object(path, self)
