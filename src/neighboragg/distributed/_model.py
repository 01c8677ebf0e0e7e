"""A model for every worker: from a file that each process maps, or an object that travels."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import joblib

from neighboragg._load import load
from neighboragg.exceptions import InvalidInputError, NeighborAggError
from neighboragg.persistence import check_file, read_digest

__all__ = ["ModelFile", "ModelObject", "as_model"]


@dataclass(frozen=True)
class ModelFile:
    """A saved model. Processes of one machine share the pages of the file."""

    path: str
    fingerprint: str
    trusted: tuple[str, ...]

    def get(self) -> Any:
        """The model, loaded once in every process."""
        return _loaded(self, _state(Path(self.path)))


@dataclass(frozen=True, eq=False)
class ModelObject:
    """A model in memory, sent to workers as it is."""

    model: Any
    fingerprint: str

    def get(self) -> Any:
        """The model."""
        return self.model


def as_model(model: Any, trusted: Sequence[str] = ()) -> ModelFile | ModelObject:
    """A path or an object as a model that workers can have."""
    if isinstance(model, str | PathLike):
        path = Path(model).resolve()
        digest = _digest(path)
        check_file(path)  # now, rather than in every part
        return ModelFile(str(path), digest, tuple(trusted))
    with warnings.catch_warnings():
        # joblib says so where it hashes a pickle because it cannot hash the content.
        warnings.simplefilter("ignore")
        return ModelObject(model, joblib.hash(model, hash_name="sha1"))


@lru_cache(maxsize=1)
def _loaded(source: ModelFile, state: tuple[int, ...]) -> Any:
    """The model, read again, and checked, if the file is not in the state that it was in."""
    path = Path(source.path)
    if _digest(path) != source.fingerprint:
        raise NeighborAggError(
            f"The model {path} has changed since the run began.\nHint: start again with a new output folder."
        )
    return load(path, trusted=source.trusted, mmap=True)


def _digest(path: Path) -> str:
    """What the file says of itself; that all of it is as it says is checked when it is used."""
    with _naming(path):
        return read_digest(path)


def _state(path: Path) -> tuple[int, ...]:
    """What differs after anybody has written to the file."""
    with _naming(path):
        found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise InvalidInputError(
            f"There is no model {path}.\nHint: on a cluster, the model must be on storage that all workers share."
        ) from error
