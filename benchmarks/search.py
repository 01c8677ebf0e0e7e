"""Exact class-wise search: queries per second as a ratio to peers, on ten shapes, with one and two threads, in one run.

Peers, each by class as we search: faiss's flat index as it is shipped, and with the OpenBLAS it brings along told which
processor this is (faiss-cpu picks kernels of decades ago on some; we compare with the better); scikit-learn's brute
force and KD-tree; hnswlib, not exact, tuned to find 99% of the neighbors; our own search without the compiled kernel;
and the matrix product alone, tile by tile so that its output stays in cache, which is what no exact search can beat by
much. Every peer runs in a process of its own; all take turns, and the fastest of several rounds counts, as on a shared
machine others only ever slow one down. Rates are per second of processor time, of all threads together, and by the
clock, which on a busy machine says little. Slow peers get fewer queries, as rates are compared.

hnswlib is left out where it is not installed, and beyond 200,000 rows, where building its index takes minutes.
"""

import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._record import save

# rows, features, classes, neighbors, queries
SHAPES = [
    (8_000, 16, 26, 5, 4_096),
    (8_000, 16, 26, 20, 2_048),
    (12_000, 24, 10, 1, 100_000),
    (20_000, 64, 2, 5, 2_048),
    (30_000, 384, 10, 5, 512),
    (8_000, 2_048, 10, 5, 512),
    (50_000, 64, 1_000, 5, 256),
    (50_000, 64, 1_000, 20, 256),
    (1_000_000, 8, 5, 1, 256),
    (40_000, 64, 10, 5, 1),
]
THREADS = (1, 2)
ROUNDS = 10
LONGEST = 5.0  # seconds for the rounds of a shape, if at least three were made
SECONDS = 0.15  # a slow peer gets as many queries as take it so long or twice as long
RECALL = 0.99
LARGEST_GRAPH = 200_000
CORETYPES = {
    "": "",
    "Haswell": "avx2",
    "Zen": "avx2",
    "SkylakeX": "avx512f",
}  # and what it needs; "" is as shipped
SEED = 0

# Queries and threads in, anything out.
Search = Callable[[Any, int], Any]


def data(n: int, d: int, n_classes: int, n_queries: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, rng.integers(0, n_classes, n), rng.normal(size=(n_queries, d)).astype(np.float32)


def ours(X: Any, y: Any, k: int) -> Search:
    from neighboragg.search import ClasswiseNeighbors

    index = ClasswiseNeighbors(k).fit(X, y)
    return lambda Q, threads: index.set_params(n_jobs=threads).kneighbors(Q)


def faiss_flat(X: Any, y: Any, k: int) -> Search:
    import faiss

    indexes = []
    for c in np.unique(y):
        index = faiss.IndexFlatL2(X.shape[1])
        index.add(X[y == c])
        indexes.append(index)

    def search(Q: Any, threads: int) -> None:
        faiss.omp_set_num_threads(threads)
        for index in indexes:
            index.search(Q, k)

    return search


def brute_force(X: Any, y: Any, k: int) -> Search:
    from sklearn.neighbors import NearestNeighbors

    parts = [NearestNeighbors(n_neighbors=k, algorithm="brute").fit(X[y == c]) for c in np.unique(y)]
    # Its threads are those of OpenMP, which are limited outside.
    return lambda Q, threads: [part.kneighbors(Q) for part in parts]


def kd_tree(X: Any, y: Any, k: int) -> Search:
    from sklearn.neighbors import KDTree

    trees = [KDTree(X[y == c]) for c in np.unique(y)]

    def part(Q: Any) -> None:
        for tree in trees:
            tree.query(Q, k)

    return lambda Q, threads: in_threads(part, Q, threads)


def hnsw(X: Any, y: Any, k: int) -> Search:
    import hnswlib

    probe = X[:: max(1, len(X) // 50)][:50] + np.float32(0.01)
    indexes = []
    for c in np.unique(y):
        rows = X[y == c]
        index = hnswlib.Index(space="l2", dim=X.shape[1])
        index.init_index(max_elements=len(rows), ef_construction=100, M=16)
        index.add_items(rows)
        exact = np.argsort((rows**2).sum(axis=1) - 2 * probe @ rows.T, axis=1)[:, :k]
        ef = k
        while True:
            index.set_ef(ef)
            found = index.knn_query(probe, k)[0]
            share = np.mean([len(set(a) & set(b)) / k for a, b in zip(found, exact, strict=True)])
            if share >= RECALL or ef >= len(rows):
                break
            ef = min(2 * ef, len(rows))
        indexes.append(index)

    def search(Q: Any, threads: int) -> None:
        for index in indexes:
            index.knn_query(Q, k, num_threads=threads)

    return search


def product(X: Any, y: Any, k: int) -> Search:
    tiles = [np.ascontiguousarray(X[i : i + 512].T) for i in range(0, len(X) - 511, 512)]

    def part(Q: Any) -> None:
        out = np.empty((256, 512), np.float32)
        for i in range(0, len(Q), 256):
            some = Q[i : i + 256]
            for tile in tiles:
                np.dot(some, tile, out=out[: len(some)])

    def search(Q: Any, threads: int) -> None:
        with threadpool_limits(1):  # a tile is too small to be shared
            in_threads(part, Q, threads)

    return search


def in_threads(part: Callable[[Any], None], Q: Any, threads: int) -> None:
    """Slices of the queries on threads of ours."""
    if threads == 1 or len(Q) == 1:
        part(Q)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, np.array_split(Q, threads)))


PEERS: dict[str, Callable[..., Search]] = {
    "ours": ours,
    "faiss set right": faiss_flat,
    "faiss as shipped": faiss_flat,
    "tiled product": product,
    "ours with NumPy": ours,
    "scikit-learn brute force": brute_force,
    "scikit-learn KD-tree": kd_tree,
    "hnswlib, recall .99": hnsw,
}
WHOLE = ("ours", "tiled product")  # get all queries
FAISS_QUERIES = 4096  # it takes as many together


def enough(search: Search, Q: Any) -> Any:
    """As many queries as take long enough to be measured."""
    n = 64
    while n < len(Q):
        start = time.process_time()
        search(Q[:n], 1)
        if time.process_time() - start > SECONDS:
            break
        n *= 2
    return Q[:n]


def serve(peer: str, conversation: Any) -> None:
    """Answer a shape by building its index, and a number of threads by searching: with the queries per second."""
    search, Q = None, None
    while (request := conversation.recv()) is not None:
        if isinstance(request, tuple):
            n, d, n_classes, k, n_queries = request
            X, y, Q = data(n, d, n_classes, n_queries)
            search = PEERS[peer](X, y, k)
            search(Q[:20], 1)
            if peer.startswith("faiss"):
                Q = Q[:FAISS_QUERIES]
            elif peer not in WHOLE:
                Q = enough(search, Q)
            conversation.send(None)
        else:
            repeats = max(
                1, 50 // len(Q)
            )  # a single query is asked many times, as it takes less than the clock's tick
            with threadpool_limits(request):
                start, start_busy = time.perf_counter(), time.process_time()
                for _ in range(repeats):
                    search(Q, request)
                seconds, busy = time.perf_counter() - start, time.process_time() - start_busy
            conversation.send((repeats * len(Q) / seconds, repeats * len(Q) / busy))


def start(peer: str, **environment: str) -> Any:
    """A process for one peer, in an environment of its own; returns the pipe to it."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        context.Process(target=serve, args=(peer, there)).start()
        there.close()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return here


def ask(pipe: Any, request: Any) -> Any:
    pipe.send(request)
    return pipe.recv()


def fastest(pipes: dict[str, Any], threads: int) -> dict[str, Any]:
    """The best queries per second, and per second of processor time, of each in several rounds of taking turns."""
    best: dict[str, Any] = dict.fromkeys(pipes, (0.0, 0.0))
    begin = time.perf_counter()
    for number in range(ROUNDS):
        if number >= 3 and time.perf_counter() - begin > LONGEST:
            break
        for peer, pipe in pipes.items():
            best[peer] = tuple(map(max, best[peer], ask(pipe, threads)))
    return best


def right_coretype() -> str:
    """The family of processors with which faiss is fastest here, on a shape that is mostly the product."""
    processor = Path("/proc/cpuinfo")
    known = processor.read_text() if processor.exists() else ""
    pipes = {
        name: start("faiss as shipped", **({"OPENBLAS_CORETYPE": name} if name else {}))
        for name, needed in CORETYPES.items()
        if needed in known
    }
    for pipe in pipes.values():
        ask(pipe, (20_000, 256, 1, 5, 512))
    speeds = fastest(pipes, 1)
    for pipe in pipes.values():
        pipe.send(None)
    print(
        "faiss by OPENBLAS_CORETYPE:", {name or "not set": round(rates[1]) for name, rates in speeds.items()}
    )
    return max(speeds, key=lambda name: speeds[name][1])


def main() -> None:
    from neighboragg.search._kernel import kernel_in_use

    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # idle threads of one peer must not take cores from another
    coretype, kernel = right_coretype(), kernel_in_use().name
    print(f"kernel: {kernel}; load of the machine: {os.getloadavg()[0]:.1f}", flush=True)
    environments = {
        "ours with NumPy": {"NEIGHBORAGG_KERNEL": "numpy"},
        "faiss set right": {"OPENBLAS_CORETYPE": coretype} if coretype else {},
    }
    peers = [peer for peer in PEERS if find_spec("hnswlib") or not peer.startswith("hnswlib")]
    everyone = {peer: start(peer, **environments.get(peer, {})) for peer in peers}
    results = []
    for shape in SHAPES:
        n, d, n_classes, k, n_queries = shape
        pipes = {
            peer: pipe
            for peer, pipe in everyone.items()
            if n <= LARGEST_GRAPH or not peer.startswith("hnswlib")
        }
        for pipe in pipes.values():
            ask(pipe, shape)
        for threads in THREADS:
            speeds = fastest(pipes, threads)
            print(f"{n:,} × {d:,}, {n_classes:,} classes, K {k}, {n_queries:,} queries, {threads} threads")
            for peer, rates in speeds.items():
                ratios = [own / rate for own, rate in zip(speeds["ours"], rates, strict=True)]
                print(
                    f"  {peer:<26}{rates[1]:>12,.0f}/s{ratios[1]:>10.2f} ×; clock{ratios[0]:>10.2f} ×",
                    flush=True,
                )
                results.append(
                    {
                        "rows": n, "features": d, "classes": n_classes, "neighbors": k, "queries": n_queries,
                        "threads": threads, "peer": peer, "queries_per_second": round(rates[0], 1),
                        "queries_per_processor_second": round(rates[1], 1), "ours_over_peer": round(ratios[1], 3),
                        "ours_over_peer_by_the_clock": round(ratios[0], 3), "kernel": kernel,
                        "OPENBLAS_CORETYPE": coretype or "not set",
                    }
                )  # fmt: skip
    for pipe in everyone.values():
        pipe.send(None)
    save("search", results, SEED)


if __name__ == "__main__":
    main()
