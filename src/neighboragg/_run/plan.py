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
from shutil import rmtree
from typing import Any

from neighboragg._core.packages import import_extra
from neighboragg._data.parquet import InputFile, Part
from neighboragg.exceptions import FileFormatError, InvalidInputError, NeighborAggError

FORMAT = 1
MANIFEST = "manifest.json"
LOCK = ".lock"
PURPOSE = "Writing Parquet files"
PLAN_KEY = b"neighboragg.plan"


@dataclass(frozen=True)
class Plan:
    """All that the results depend on; what is in a folder belongs to a run if their plans are the same."""

    task: str
    version: str
    model: str
    settings: Mapping[str, Any]
    files: Sequence[InputFile]
    parts: Sequence[Part]

    def described(self) -> dict[str, Any]:
        """As it stands in the manifest."""
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
        """One text that differs if anything in the plan does."""
        return hashlib.sha256(json.dumps(self.described(), sort_keys=True).encode()).hexdigest()


class OutputFolder:
    """Where a run writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out as long as the block runs; the system lets go if the process dies."""
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInputError(f"The output {self.path} is a file.\nHint: name a folder.")
        self.path.mkdir(parents=True, exist_ok=True)
        lock, unused = self.path / LOCK, False
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

    def begin(self, plan: Plan) -> None:
        """Take the folder for a plan: empty, or with parts of the same plan; anything else is refused."""
        manifest = self.path / MANIFEST
        if not manifest.exists():
            others = sorted(file.name for file in self.path.iterdir() if not file.name.startswith("."))
            if others:
                raise InvalidInputError(
                    f"{self.path} holds other files, such as {others[0]}.\nHint: choose a new output folder."
                )
            self._write_manifest(plan, "running", {})
            return
        try:
            before = json.loads(manifest.read_text())
            before = {key: before[key] for key in plan.described()}
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise FileFormatError(
                f"{manifest} is not the manifest of a run: {error!r}.\nHint: choose a new output folder."
            ) from error
        if before != (now := json.loads(json.dumps(plan.described()))):
            raise InvalidInputError(
                f"{self.path} holds the parts of another run: {_difference(before, now)}.\n"
                f"Hint: remove {self.path}, or choose another output; results of different runs must not be mixed."
            )

    def clear(self) -> None:
        """Remove all that the folder holds but its lock, which keeps others out meanwhile."""
        self._keep_only(LOCK)

    def begin_again(self, *names: str) -> None:
        """Remove whatever was made in the run of the plan, but for files of these names."""
        self._keep_only(LOCK, MANIFEST, *names)

    def _keep_only(self, *names: str) -> None:
        for path in self.path.iterdir():
            if path.is_dir():
                rmtree(path)
            elif path.name not in names:
                path.unlink()

    def clear_if_unused(self) -> None:
        """After a mistake, leave nothing that would stand in the way of another call, unless it could be resumed."""
        if not any(path.name != MANIFEST and not path.name.startswith(".") for path in self.path.iterdir()):
            self.clear()

    def missing(self, plan: Plan) -> list[Part]:
        """Parts that are not there yet, or not complete."""
        fingerprint = plan.fingerprint
        return [part for part in plan.parts if not self._is_done(part, fingerprint)]

    def end(self, plan: Plan, failed: Mapping[int, str]) -> None:
        """Write down what came of the run, and remove what was left half-written."""
        self._write_manifest(plan, "incomplete" if failed else "complete", failed)
        for file in self.path.glob(".part-*.tmp"):
            file.unlink(missing_ok=True)

    def write_part(self, part: Part, table: Any, fingerprint: str) -> None:
        """Write a part: it appears whole or not at all."""
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
                f"The folder {self.path} is not there on the worker.\nHint: the output must be on storage that all "
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


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first thing in which two plans differ, in words."""
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
