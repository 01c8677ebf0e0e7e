"""Exact class-wise search: queries per second as a ratio to three peers, in one run.

Peers: scikit-learn's KD-tree per class (what the paper and Trust Score use), faiss's flat index per class without
refinement, and the bare matrix product of queries and rows, which no exact search can beat by much. Each peer and
workload runs in a process of its own, so that peak memory is its own; ratios are the median over rounds in which all
peers run one after the other.
"""

import multiprocessing
import os
import time
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
from sklearn.neighbors import KDTree

from _record import peak_memory, save
from neighboragg.neighbors import ClasswiseNeighbors

# rows, features, classes, neighbors, queries, queries for the KD-tree (slow in many dimensions)
WORKLOADS = [
    (8_000, 16, 26, 5, 20_000, 2_000),
    (20_000, 64, 2, 5, 10_000, 200),
    (40_000, 512, 10, 10, 2_000, 20),
]
ROUNDS = 5
SEED = 0


def data(n: int, d: int, n_classes: int, n_queries: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, rng.integers(0, n_classes, n), rng.normal(size=(n_queries, d)).astype(np.float32)


def ours(X: Any, y: Any, k: int) -> Callable[[Any], Any]:
    return ClasswiseNeighbors(k, n_jobs=-1).fit(X, y).kneighbors


def faiss_flat(X: Any, y: Any, k: int) -> Callable[[Any], Any]:
    indexes = []
    for c in np.unique(y):
        index = faiss.IndexFlatL2(X.shape[1])
        index.add(X[y == c])
        indexes.append(index)
    return lambda Q: [index.search(Q, k) for index in indexes]


def kd_tree(X: Any, y: Any, k: int) -> Callable[[Any], Any]:
    trees = [KDTree(X[y == c]) for c in np.unique(y)]
    return lambda Q: [tree.query(Q, k) for tree in trees]


def product(X: Any, y: Any, k: int) -> Callable[[Any], Any]:
    return lambda Q: Q @ X.T


PEERS = {"ours": ours, "faiss flat": faiss_flat, "KD-tree": kd_tree, "product": product}


def measure(peer: str, workload: tuple[int, ...], conversation: Any) -> None:
    """Build an index, then answer each request to run with the queries per second."""
    n, d, n_classes, k, n_queries, n_tree = workload
    X, y, Q = data(n, d, n_classes, n_tree if peer == "KD-tree" else n_queries)
    before = peak_memory()
    search = PEERS[peer](X, y, k)
    search(Q[:20])
    conversation.send(None)
    while conversation.recv():
        start = time.perf_counter()
        search(Q)
        conversation.send(len(Q) / (time.perf_counter() - start))
    conversation.send(peak_memory() - before)


def run(workload: tuple[int, ...]) -> list[dict[str, Any]]:
    context = multiprocessing.get_context("spawn")
    pipes = {}
    for peer in PEERS:
        here, there = context.Pipe()
        context.Process(target=measure, args=(peer, workload, there), daemon=True).start()
        here.recv()
        pipes[peer] = here
    speeds: dict[str, list[float]] = {peer: [] for peer in PEERS}
    for _ in range(ROUNDS):
        for peer, pipe in pipes.items():
            pipe.send(True)
            speeds[peer].append(pipe.recv())
    rows = []
    for peer, pipe in pipes.items():
        pipe.send(False)
        ratio = float(np.median(np.array(speeds["ours"]) / speeds[peer]))
        rows.append(
            {
                "rows": workload[0], "features": workload[1], "classes": workload[2], "neighbors": workload[3],
                "peer": peer, "queries_per_second": round(float(np.median(speeds[peer]))),
                "ours_over_peer": round(ratio, 3), "extra_memory_mib": round(pipe.recv()),
            }
        )  # fmt: skip
    return rows


def main() -> None:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # idle threads of one peer must not take cores from another
    results = []
    print(
        f"{'rows × features, classes, K':<30}{'peer':<12}{'queries/s':>11}{'ours / peer':>13}{'memory MiB':>12}"
    )
    for workload in WORKLOADS:
        for row in run(workload):
            name = f"{row['rows']:,} × {row['features']}, {row['classes']}, {row['neighbors']}"
            print(
                f"{name:<30}{row['peer']:<12}{row['queries_per_second']:>11,}"
                f"{row['ours_over_peer']:>13.2f}{row['extra_memory_mib']:>12,}"
            )
            results.append(row)
    save("search", results, SEED)


if __name__ == "__main__":
    main()
