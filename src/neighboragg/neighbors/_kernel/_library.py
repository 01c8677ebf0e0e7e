"""Loads the libraries that were compiled from `search.cpp`, one for each instruction set."""

import ctypes
import hashlib
import sys
from pathlib import Path

__all__ = ["FOLDER", "VARIANTS", "load", "path_of", "source_digest"]

FOLDER = Path(__file__).parent
#: From the fastest to the one that every processor runs.
VARIANTS = ("avx512", "avx2", "baseline")
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def path_of(variant: str) -> Path:
    """The library for one instruction set, whether it is there or not."""
    return FOLDER / f"search_{variant}{SUFFIX}"


def source_digest() -> str:
    """Of the source beside this file, as it is compiled into the libraries made of it."""
    # Lines end in one way, whatever the checkout did to them.
    return hashlib.sha256((FOLDER / "search.cpp").read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def load(variant: str) -> ctypes.CDLL:
    """Load the library for one instruction set.

    Raises
    ------
    OSError
        If it is not there, cannot be loaded, or was compiled from another source.
    """
    library = ctypes.CDLL(str(path_of(variant)))
    library.neighboragg_source_digest.restype = ctypes.c_char_p
    if library.neighboragg_source_digest().decode() != source_digest():
        raise OSError(f"{path_of(variant).name} was compiled from another source; run `make kernel`")
    library.neighboragg_search.restype = ctypes.c_int64
    library.neighboragg_search.argtypes = [
        ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
        ctypes.c_void_p,
    ]  # fmt: skip
    return library
