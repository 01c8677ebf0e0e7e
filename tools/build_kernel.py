"""Compile the search for every instruction set that the compiler knows, beside its source.

`python tools/build_kernel.py` does so in place, for work in a checkout; `hatch_build.py` does so for an installation.
It needs g++ or clang++, or what the environment variable CXX names.
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

__all__ = ["BuildError", "build"]

FOLDER = Path(__file__).parents[1] / "src" / "neighboragg" / "search" / "_kernel"
# Nothing is fused unless the source says so: the refinement gives equal bits on every processor.
FLAGS = [
    "-O3", "-std=c++17", "-ffp-contract=off", "-fno-math-errno", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden",
    "-Wall", "-Wextra",
]  # fmt: skip
X86_VARIANTS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx2", "-mfma"],
}
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


class BuildError(Exception):
    """The search could not be compiled."""


def build(folder: Path = FOLDER) -> list[Path]:
    """Compile, and return the libraries; an instruction set that the compiler does not know is left out.

    Raises
    ------
    BuildError
        If not even the library for every processor could be compiled.
    """
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("g++", "clang++", "c++")), None)
    if compiler is None:
        raise BuildError("no C++ compiler was found")
    source = folder / "search.cpp"
    digest = hashlib.sha256(source.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    on_x86 = platform.machine().lower() in ("x86_64", "amd64") and "arm64" not in os.environ.get(
        "ARCHFLAGS", ""
    )
    variants = X86_VARIANTS if on_x86 else {"baseline": []}

    def compile_one(variant: str) -> Path | str:
        target = folder / f"search_{variant}{SUFFIX}"
        command = [
            *shlex.split(compiler), *FLAGS, *variants[variant], *shlex.split(os.environ.get("CXXFLAGS", "")),
            *shlex.split(os.environ.get("ARCHFLAGS", "")), f'-DSOURCE_DIGEST="{digest}"', "-shared",
            *([] if sys.platform == "win32" else ["-fPIC"]), str(source), "-o", f"{target}.new",
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            return str(error)
        if done.returncode:
            return f"{' '.join(command)} failed: {done.stderr[-2000:] or f'exit code {done.returncode}'}"
        # At once: a process that has the old library mapped goes on with it.
        Path(f"{target}.new").replace(target)
        return target

    with ThreadPoolExecutor() as pool:
        results = dict(zip(variants, pool.map(compile_one, variants), strict=True))
    # Libraries of before stay: they know which source they were compiled from, and are not used with another.
    if not isinstance(results["baseline"], Path):
        raise BuildError(results["baseline"])
    return [result for result in results.values() if isinstance(result, Path)]


if __name__ == "__main__":
    try:
        sys.stdout.write("".join(f"{path}\n" for path in build()))
    except BuildError as error:
        sys.exit(f"The search is not compiled, and NumPy's is used: {error}")
