"""The search for AVX-512 on an emulated processor, for machines without one, against brute force.

1 to 48 features and some numbers up to 2,048, 1 to 64 neighbors, 1 to 1,000 classes, 1 to 530 queries, and the kinds of
rows of `search_exactness.py`. `pip install bochscpu-python`, then `python -m benchmarks search_avx512 1000`.
"""

import os
import sys
from typing import Any

import numpy as np

from benchmarks._emulated import Processor
from benchmarks._record import save
from benchmarks.search_exactness import KINDS, SEED, Shape, brute_force, problem
from neighboragg.search._kernel import LARGEST_K, VARIANTS, load, search_compiled
from neighboragg.search._reference import Reference

EMULATED = "avx512, emulated"
LARGEST_WORK = 10**5  # rows × queries × features
LARGEST_RESULT = 3000  # queries × classes × neighbors


class Emulated:
    """A library whose search runs on an emulated processor."""

    def __init__(self, variant: str) -> None:
        self._library, self._processor = load(variant), Processor()

    def neighboragg_search(self, *arguments: int | None) -> int:
        return self._processor.call(self._library.neighboragg_search, *arguments)

    def level(self) -> int:
        """What the processor says it can do."""
        return self._processor.call(self._library.neighboragg_processor_level)


def shape(rng: np.random.Generator) -> Shape:
    """Of a problem small enough to be emulated: the fewer features, the more rows and queries."""
    d = int(rng.choice([63, 64, 65, 127, 128, 129, 255, 256, 257, 513, 770, 2047, 2048]))
    k = int(rng.choice([1, 5, 20, 64]))
    if rng.random() < 0.7:
        d = int(rng.integers(1, 49))
    if rng.random() < 0.5:
        k = int(rng.integers(1, LARGEST_K + 1))
    q = int(rng.choice([1, 2, 7, 8, 9, 16, 31, 32, 33, 40, 41, 64, 70, 100, 131, 200, 530]))
    q = min(q, LARGEST_WORK // (4 * d))
    n = int(rng.integers(1, min(3000, LARGEST_WORK // (q * d)) + 1))
    n_classes = min(int(rng.choice([1, 1, 2, 5, 26, 80, 1000])), max(1, LARGEST_RESULT // (q * k)))
    return Shape(n, q, d, n_classes, k)


def search(library: Any, X: Any, y: Any, n_classes: int, Q: Any, k: int, exclude: Any) -> tuple[Any, Any]:
    reference = Reference(X, y, n_classes)
    hidden = None if exclude is None else reference.positions_of(exclude)
    distances, ids = np.empty((len(Q), n_classes, k)), np.empty((len(Q), n_classes, k), dtype=np.int64)
    search_compiled(library, reference, Q, hidden, distances, ids)
    return distances, ids


def main() -> None:
    n_problems = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rng, emulated, plainest = np.random.default_rng(SEED), Emulated("avx512"), load("baseline")
    if emulated.level() != len(VARIANTS) - 1:
        sys.exit("The emulated processor has no AVX-512.")
    here = VARIANTS[len(VARIANTS) - 1 - plainest.neighboragg_processor_level() :]
    libraries = {EMULATED: emulated, **{name: load(name) for name in here}}
    wrong = dict.fromkeys(libraries, 0)
    for number in range(n_problems):
        given = problem(rng, KINDS[number % len(KINDS)], number % 16 < 8, shape(rng))
        expected = brute_force(*given)
        for name, library in libraries.items():
            found = search(library, *given)
            wrong[name] += any(a.tobytes() != b.tobytes() for a, b in zip(found, expected, strict=True))
        if number % 25 == 24:
            print(f"{number + 1:,} problems, with other bits than brute force: {wrong}", flush=True)
    save(
        "search_avx512", [{"variant": EMULATED, "searches": n_problems, "other_bits": wrong[EMULATED]}], SEED
    )
    sys.stdout.flush()
    os._exit(0)  # the emulator crashes when it is taken down


if __name__ == "__main__":
    main()
