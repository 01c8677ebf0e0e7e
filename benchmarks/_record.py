"""What every benchmark writes down beside its figures: versions, hardware, seed; and where."""

import json
import resource
from pathlib import Path
from typing import Any

from benchmarks.runs import machine

RESULTS = Path(__file__).parent / "results"


def context(seed: int | None = None) -> dict[str, Any]:
    """Versions of the libraries, the processor and the seed."""
    return {**machine("faiss-cpu", "cleanlab", "torch"), "seed": seed}


def save(name: str, rows: list[dict[str, Any]], seed: int | None = None) -> Path:
    """Write rows with their context as JSON, and say where."""
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"context": context(seed), "rows": rows}, indent=1) + "\n")
    print(f"\nWritten to {path.relative_to(Path(__file__).parents[1])}")
    return path


def read(name: str) -> list[dict[str, Any]]:
    """The rows that :func:`save` wrote."""
    return json.loads((RESULTS / f"{name}.json").read_text())["rows"]


def peak_memory() -> float:
    """Largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def current_memory() -> float:
    """Memory of this process now, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
