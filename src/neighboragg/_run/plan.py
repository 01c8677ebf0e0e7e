"""The folder that a run writes its parts to: one run at a time, a manifest, and no part twice."""

import hashlib
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from neighboragg._core.packages import import_extra
from neighboragg._data.parquet import InputFile, Part
from neighboragg.exceptions import FileFormatError, InvalidInputError, NeighborAggError

FORMAT = 1
# Names that readers of a folder of Parquet files skip.
MANIFEST, LOCK = "_manifest.json", "_lock"
PARQUET = (".parquet", ".pq")
# An output with such a name is probably not meant as a folder.
FILES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".feather", ".arrow", ".xlsx", ".xls")
REPLACE = "Hint: replace it with overwrite=True (--overwrite), or choose another output."
PURPOSE = "Writing Parquet files"
# Rows per part (in memory at a time, and lost if a worker dies), and rows per call of a model.
PART_ROWS, BATCH_ROWS = 65_536, 4096
PLAN_KEY = b"neighboragg.plan"


@dataclass(frozen=True)
class Plan:
    """Everything the results depend on; the files of a folder belong to a run if the plans are equal."""

    task: str
    version: str
    model: str
    settings: Mapping[str, Any]
    files: Sequence[InputFile]
    parts: Sequence[Part]

    def described(self) -> dict[str, Any]:
        """The content of the manifest."""
        numbers = {file: i for i, file in enumerate(self.files)}
        return {
            "format": FORMAT,
            "task": self.task,
            "neighboragg": self.version,
            "model": self.model,
            "settings": dict(self.settings),
            "inputs": [asdict(file) for file in self.files],
            "parts": [
                {"input": numbers[part.file], "start": part.start, "stop": part.stop, "output": part.name}
                for part in self.parts
            ],
        }

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the plan."""
        return hashlib.sha256(json.dumps(self.described(), sort_keys=True).encode()).hexdigest()


def output_path(given: str | os.PathLike[str]) -> Path:
    """The output of a run: a folder, or a single Parquet file."""
    if "://" in str(given):
        raise InvalidInputError(
            f"The output {given} is not on a file system.\nHint: write to a local folder, then copy it."
        )
    path = Path(given)
    if path.suffix.lower() in FILES and not path.is_dir():
        raise InvalidInputError(
            f"The output {path} would be a folder of Parquet files, although it ends in {path.suffix}.\n"
            f"Hint: name a folder such as {path.with_suffix('')}, or a single file such as "
            f"{path.with_suffix('.parquet')}."
        )
    return path


class OutputFolder:
    """Where a run writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out while the block runs; the system releases the lock if the process dies."""
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInputError(f"The output {self.path} is a file.\nHint: name a folder.")
        lock, unused = self.path / LOCK, False
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock.touch()
        except OSError as error:
            raise InvalidInputError(
                f"The output {self.path} cannot be written: {error.strerror}.\nHint: choose another output."
            ) from error
        try:
            with lock.open("a+") as file:
                if not _lock(file):
                    file.seek(0)
                    raise InvalidInputError(
                        f"Another run ({file.read().strip() or 'of unknown origin'}) is writing to {self.path}.\n"
                        "Hint: wait for it, stop it, or choose another output folder."
                    )
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}")
                file.flush()
                try:
                    yield
                finally:
                    unused = [path.name for path in self.path.glob("*")] == [LOCK]
        finally:
            if unused:  # only now, as some systems do not remove a file that is open
                with suppress(OSError):
                    lock.unlink(missing_ok=True)
                    self.path.rmdir()

    def begin(self, plan: Plan, *, overwrite: bool = False) -> None:
        """Use the folder for a plan if it is empty or has parts of the same plan; another run may be replaced."""
        manifest = self.path / MANIFEST
        if not manifest.exists():
            others = sorted(path.name for path in self.path.iterdir() if not _is_hidden(path))
            if others:
                raise InvalidInputError(
                    f"{self.path} contains other files, such as {others[0]}.\nHint: choose a new output folder."
                )
            self._write_manifest(plan, "running", {})
            return
        try:
            before = json.loads(manifest.read_text())
            files = [part["output"] for part in before["parts"]]
            before = {key: before[key] for key in plan.described()}
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise FileFormatError(
                f"{manifest} is not the manifest of a run: {error!r}.\nHint: choose a new output folder."
            ) from error
        if before == (now := json.loads(json.dumps(plan.described()))):
            return
        if not overwrite:
            raise InvalidInputError(
                f"{self.path} contains the parts of another run: {_difference(before, now)}.\n{REPLACE}"
            )
        for name in files:  # only files that the run wrote
            (self.path / name).unlink(missing_ok=True)
        self._write_manifest(plan, "running", {})

    def clear_if_unused(self) -> None:
        """After an error, remove files that would block another call, unless they can be resumed."""
        if all(map(_is_hidden, self.path.iterdir())):
            (self.path / MANIFEST).unlink(missing_ok=True)

    def missing(self, plan: Plan) -> list[Part]:
        """Parts that are missing or incomplete."""
        fingerprint = plan.fingerprint
        return [part for part in plan.parts if not self._is_done(part, fingerprint)]

    def end(self, plan: Plan, failed: Mapping[int, str]) -> None:
        """Record the result of the run, and remove incomplete files."""
        self._write_manifest(plan, "incomplete" if failed else "complete", failed)
        for file in self.path.glob(".part-*.tmp"):
            file.unlink(missing_ok=True)

    def write_part(self, part: Part, table: Any, fingerprint: str) -> None:
        """Write a part atomically."""
        parquet = import_extra("pyarrow.parquet", extra="dask", purpose=PURPOSE)
        marked = table.replace_schema_metadata({PLAN_KEY: fingerprint.encode()})
        temporary = self.path / f".{part.name}.{token_hex(4)}.tmp"
        try:
            with temporary.open("xb") as file:
                parquet.write_table(marked, file, write_page_checksum=True)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path / part.name)
        except FileNotFoundError as error:
            raise NeighborAggError(
                f"The folder {self.path} does not exist on the worker.\nHint: the output must be on storage that all "
                "workers share."
            ) from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def files(self, plan: Plan) -> list[Path]:
        """Where the parts are, in the order of the rows."""
        return [self.path / part.name for part in plan.parts]

    def _is_done(self, part: Part, fingerprint: str) -> bool:
        arrow = import_extra("pyarrow", extra="dask", purpose=PURPOSE)
        parquet = import_extra("pyarrow.parquet", extra="dask", purpose=PURPOSE)
        path = self.path / part.name
        if not path.exists():
            return False
        try:
            found = parquet.read_metadata(path)
        except (arrow.ArrowException, OSError):
            return False
        return bool(
            (found.metadata or {}).get(PLAN_KEY, b"").decode() == fingerprint
            and found.num_rows == part.stop - part.start
        )

    def _write_manifest(self, plan: Plan, state: str, failed: Mapping[int, str]) -> None:
        errors = [{"part": number, "error": error} for number, error in sorted(failed.items())]
        text = json.dumps(plan.described() | {"state": state, "failed": errors}, indent=1)
        temporary = self.path / f".{MANIFEST}.{token_hex(4)}.tmp"
        temporary.write_text(text + "\n")
        temporary.replace(self.path / MANIFEST)


def _is_hidden(path: Path) -> bool:
    """Whether readers of a folder of Parquet files skip it."""
    return path.name.startswith((".", "_"))


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first difference between two plans, in words."""
    if before["task"] != now["task"]:
        return f"of {before['task']}, not {now['task']}"
    if before["neighboragg"] != now["neighboragg"]:
        return f"by version {before['neighboragg']} of neighboragg, and this is {now['neighboragg']}"
    for name in sorted({*before["settings"], *now["settings"]}):
        was, is_ = before["settings"].get(name), now["settings"].get(name)
        if was != is_:
            return f"with {name}={was!r}, not {is_!r}"
    if before["model"] != now["model"]:
        return "of another model, or of one with other parameters"
    old = {file["path"]: file for file in before["inputs"]}
    new = {file["path"]: file for file in now["inputs"]}
    for path in sorted({*old, *new}):
        if path not in new:
            return f"the input {path} is not among the files any more"
        if path not in old:
            return f"the input {path} was not among the files"
        if old[path] != new[path]:
            return f"the input {path} has changed since"
    return "the rows are cut or ordered in another way"


def _lock(file: Any) -> bool:
    """Lock an open file for this process alone; False if another has."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
