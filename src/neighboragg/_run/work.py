"""Compute parts, write each one, and report which failed."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from os import PathLike
from pathlib import Path
from shutil import rmtree
from typing import Any

import joblib

from neighboragg._core.packages import import_extra
from neighboragg._core.progress import add_total, advance, begin_stage
from neighboragg._core.threads import ONE_THREAD
from neighboragg._data.parquet import Part
from neighboragg._run.executor import Executor
from neighboragg._run.plan import PARQUET, PURPOSE, REPLACE, OutputFolder, Plan
from neighboragg._store.file import check_file, read_digest
from neighboragg._store.load import load
from neighboragg.exceptions import (
    InvalidInputError,
    NeighborAggError,
    PartsFailedError,
)


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
    """A path or an object as a model that can be sent to workers."""
    if isinstance(model, str | PathLike):
        path = Path(model).resolve()
        digest = _digest(path)
        check_file(path)  # now, rather than in every part
        return ModelFile(str(path), digest, tuple(trusted))
    with warnings.catch_warnings():
        # joblib warns where it hashes a pickle because it cannot hash the content.
        warnings.simplefilter("ignore")
        return ModelObject(model, joblib.hash(model, hash_name="sha1"))


@lru_cache(maxsize=1)
def _loaded(source: ModelFile, state: tuple[int, ...]) -> Any:
    """The model; if the file has changed, it is read and checked again."""
    path = Path(source.path)
    if _digest(path) != source.fingerprint:
        raise NeighborAggError(
            f"The model {path} has changed since the run began.\nHint: start again with a new output folder."
        )
    return load(path, trusted=source.trusted, mmap=True)


def _digest(path: Path) -> str:
    """The digest stored in the file; loading checks whether the content matches."""
    with _naming(path):
        return read_digest(path)


def _state(path: Path) -> tuple[int, ...]:
    """A state of the file that changes with every write."""
    with _naming(path):
        found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise InvalidInputError(
            f"The model {path} does not exist.\n"
            "Hint: on a cluster, the model must be on storage that all workers share."
        ) from error


@dataclass(frozen=True)
class RunResult:
    """The files of a run, and its numbers of rows and parts."""

    path: Path
    files: list[Path]
    n_rows: int
    n_parts: int
    n_resumed: int
    #: Parts of this run whose tables had a note, and the note.
    noted: list[tuple[Part, str]] = field(default_factory=list, repr=False)

    def __str__(self) -> str:
        resumed = f", {self.n_resumed} of them by an earlier run" if self.n_resumed else ""
        return f"{self.n_rows:,} rows in {self.n_parts:,} parts{resumed}: {self.path}"


# Metadata key with which the work on a part marks a table for attention.
NOTED = b"neighboragg.noted"


@dataclass(frozen=True)
class WritePart:
    """The work on one part: from its rows to its file."""

    work: Callable[[Part], Any]
    folder: OutputFolder
    fingerprint: str

    def __call__(self, part: Part) -> str:
        """Write the part; return the note of its table, if it has one."""
        # One thread for products, as several parts are done at a time.
        with ONE_THREAD:
            table = self.work(part)
        noted: str = (table.schema.metadata or {}).get(NOTED, b"").decode()
        self.folder.write_part(part, table, self.fingerprint)
        del table
        # Arrow does not return memory to the system by itself, and Dask pauses workers that use too much.
        import_extra("pyarrow", extra="dask", purpose=PURPOSE).default_memory_pool().release_unused()
        return noted


def run_parts(
    make_work: Callable[[OutputFolder], Callable[[Part], Any]],
    plan: Plan,
    output: Path,
    executor: Executor,
    stage: str,
    *,
    overwrite: bool = False,
) -> RunResult:
    """Run the parts of a plan that are missing in the output."""
    output = output.resolve()  # workers have other working folders
    single = output.suffix.lower() in PARQUET and not output.is_dir()
    if single and output.exists() and not overwrite:
        raise InvalidInputError(f"{output} exists already.\n{REPLACE}")
    folder = OutputFolder(output.with_name(f"{output.name}.parts") if single else output)
    with folder.locked():
        folder.begin(plan, overwrite=overwrite)
        try:
            work = make_work(folder)
        except BaseException:
            folder.clear_if_unused()
            raise
        n_done, noted = _do_parts(work, plan, folder, executor, stage)
        files = folder.files(plan)
        if single:
            _join(files, output)
            files = [output]
    if single:
        rmtree(folder.path)
    n_rows = sum(part.stop - part.start for part in plan.parts)
    return RunResult(output, files, n_rows, len(plan.parts), len(plan.parts) - n_done, noted)


def _do_parts(
    work: Callable[[Part], Any], plan: Plan, folder: OutputFolder, executor: Executor, stage: str
) -> tuple[int, list[tuple[Part, str]]]:
    """Run the parts that are missing in a locked folder; return their number, and the parts with a note."""
    missing = folder.missing(plan)
    add_total(len(missing))
    begin_stage(stage)
    failed: dict[int, str] = {}
    noted: list[tuple[Part, str]] = []
    for outcome in executor.run(WritePart(work, folder, plan.fingerprint), missing):
        if outcome.error is not None:
            failed[outcome.item.number] = outcome.error
        elif outcome.value:
            noted.append((outcome.item, outcome.value))
        advance()
    folder.end(plan, failed)
    if failed:
        places = {plan.parts[number].place: error for number, error in sorted(failed.items())}
        raise PartsFailedError(places, len(plan.parts), folder.path)
    return len(missing), sorted(noted, key=lambda one: one[0].number)


def _join(files: list[Path], output: Path) -> None:
    """One file from many, a row group at a time."""
    parquet = import_extra("pyarrow.parquet", extra="dask", purpose=PURPOSE)
    temporary = output.with_name(f".{output.name}.tmp")
    try:
        schema = parquet.read_schema(files[0]).remove_metadata()
        with parquet.ParquetWriter(temporary, schema, write_page_checksum=True) as writer:
            for file in files:
                table = parquet.read_table(file, page_checksum_verification=True).replace_schema_metadata(
                    None
                )
                if table.schema != schema:
                    raise InvalidInputError(
                        f"Included columns have different types in the input files: {schema.to_string()!r} and "
                        f"{table.schema.to_string()!r}.\nHint: choose a folder as output; {file.parent} has all parts."
                    )
                writer.write_table(table)
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)
