"""What every benchmark writes down beside its figures: versions, hardware, seed."""

import json
import os
import platform
import resource
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("numpy", "scipy", "scikit-learn", "faiss-cpu")


def context(seed: int | None = None) -> dict[str, Any]:
    """Versions of the libraries, the processor and the seed."""
    return {
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "processor": processor(),
        "cores": os.cpu_count(),
        "seed": seed,
    }


def processor() -> str:
    """Model name of the processor, where the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def save(name: str, rows: list[dict[str, Any]], seed: int | None = None) -> Path:
    """Write rows with their context as JSON, and say where."""
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"context": context(seed), "rows": rows}, indent=1) + "\n")
    print(f"\nWritten to {path.relative_to(Path(__file__).parents[1])}")
    return path


def peak_memory() -> float:
    """Largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
