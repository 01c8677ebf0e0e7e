"""A file of reference rows that workers fill, and the search in its shards, whose answers are kept."""

import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import joblib
import numpy as np

from neighboragg._progress import announce, expect, step
from neighboragg._threads import ONE_THREAD
from neighboragg._typing import FloatArray, IntArray
from neighboragg.distributed._executor import Executor
from neighboragg.exceptions import NeighborAggError
from neighboragg.neighbors import Search

__all__ = ["RowsFile", "SearchShards"]

Found = tuple[slice, FloatArray, IntArray]


@dataclass(frozen=True)
class RowsFile:
    """A matrix in a .npy file; every part of the input has its place in it.

    Parameters
    ----------
    path : str
    n_rows, n_features : int
    dtype : str
    """

    path: str
    n_rows: int
    n_features: int
    dtype: str

    def create(self) -> None:
        """Make the file, with nothing in it yet."""
        temporary = f"{self.path}.{token_hex(4)}.tmp"
        shape = (self.n_rows, self.n_features)
        np.lib.format.open_memmap(temporary, mode="w+", dtype=self.dtype, shape=shape)
        Path(temporary).replace(self.path)

    def read(self) -> Any:
        """The rows, mapped."""
        return np.load(self.path, mmap_mode="r", allow_pickle=False)

    def write(self, first: int, rows: FloatArray) -> None:
        """Put rows in their place, safely on disk when this returns."""
        # Not mapped: neighbors in the file may be written at the same time, and share a page with these.
        offset = self.read().offset + first * self.n_features * rows.itemsize
        with Path(self.path).open("r+b") as file:
            file.seek(offset)
            file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
            file.flush()
            os.fsync(file.fileno())


@dataclass(frozen=True, eq=False)
class Shard:
    """Consecutive reference rows."""

    start: int
    stop: int
    codes: IntArray


@dataclass(frozen=True)
class SearchShard:
    """The work on one shard: from its rows to a file with what was found in it."""

    search: Search
    rows: RowsFile
    folder: str
    name: str

    def path(self, shard: Shard) -> Path:
        """Where the answer is."""
        return Path(self.folder) / f"{self.name}-{shard.start:012d}.npz"

    def __call__(self, shard: Shard) -> None:
        """Search, and write the answer: it appears whole or not at all."""
        block = np.array(self.rows.read()[shard.start : shard.stop])
        with ONE_THREAD:
            _, distances, ids = zip(*self.search(shard.start, block, shard.codes), strict=True)
        path = self.path(shard)
        temporary = path.with_name(f".{path.name}.{token_hex(4)}.tmp")
        try:
            with temporary.open("xb") as file:
                np.savez(file, distances=np.concatenate(distances), ids=np.concatenate(ids))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@dataclass(frozen=True)
class SearchShards:
    """A search in all reference rows, shard by shard; what an earlier run has found is not looked for again.

    Parameters
    ----------
    rows : RowsFile
    folder : Path
        For answers, under names that depend on all that they depend on beside the rows.
    shard_rows : int
    executor : Executor
    """

    rows: RowsFile
    folder: Path
    shard_rows: int
    executor: Executor

    def __call__(self, search: Search, codes: IntArray) -> Iterator[Found]:
        """What is found in each shard, in order."""
        work = SearchShard(search, self.rows, str(self.folder), joblib.hash(search, hash_name="sha1"))
        shards = [
            Shard(start, stop := min(start + self.shard_rows, self.rows.n_rows), codes[start:stop])
            for start in range(0, self.rows.n_rows, self.shard_rows)
        ]
        missing = [shard for shard in shards if not _is_whole(work.path(shard))]
        expect(len(missing))
        announce("Searching neighbors")
        failed: dict[int, str] = {}
        for outcome in self.executor.run(work, missing):
            if outcome.error is not None:
                failed[outcome.item.start] = outcome.error
            step()
        if failed:
            start, error = min(failed.items())
            raise NeighborAggError(
                f"The search failed in {len(failed)} of {len(shards)} shards of {self.shard_rows} training rows, first "
                f"in that from row {start}: {error}\nHint: run the same again if the reason has passed: what was found "
                "is kept."
            )
        for shard in shards:
            with np.load(work.path(shard), allow_pickle=False) as found:
                yield slice(None), found["distances"], found["ids"]


def _is_whole(path: Path) -> bool:
    """Whether an answer is there; its content is checked when it is read."""
    return path.exists() and zipfile.is_zipfile(path)
