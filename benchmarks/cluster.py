"""Larger than memory and on a cluster: memory that is kept, equal bits, and CPU time beside one process.

    python -m benchmarks cluster streamed   # an index of four times the memory allowed
    python -m benchmarks cluster shards     # a model of the cost, beside runs with 1, 2, 4 and 8 shards
    python -m benchmarks cluster cpu        # a cluster beside one process, on the same work
    python -m benchmarks cluster large      # millions of rows through a cluster: memory of every process

Every part writes its lines to results/cluster.json and leaves those of the others as they are; `cpu` those of other
sizes too. CPU time is used, not time on the clock, as it hardly depends on what else a machine does.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from benchmarks._record import RESULTS, save
from neighboragg import NeighborAgg, TrustedClassifier, score
from neighboragg._run.executor import connect
from neighboragg.search import ClasswiseNeighbors, Streamed
from neighboragg.search._kernel import kernel_in_use
from neighboragg.search._streamed import StreamedNeighbors

N_CLASSES, K = 10, 5
ROWS_OF_A_FILE = 4096  # a part has rows of one file


def make_rows(n: int, n_features: int, seed: int) -> tuple[Any, Any]:
    """Clusters, one for each class, in single precision."""
    centers = np.random.default_rng(0).normal(size=(N_CLASSES, n_features))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n)
    X = rng.normal(size=(n, n_features), scale=2.0).astype(np.float32)
    X += centers[y].astype(np.float32)
    return X, y


def status(field: str) -> float:
    """A figure of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise KeyError(field)


class Watched:
    """The largest value of such a figure while a block runs, looked at a hundred times a second."""

    def __init__(self, field: str) -> None:
        self.field, self.before, self.most = field, status(field), 0.0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self) -> None:
        while not self.over.wait(0.01):
            self.most = max(self.most, status(self.field))

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()


def cpu_of(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start


# ---- an index of several times the memory allowed


def search_in_child(folder: Path, allowed: int | None) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "child", "--folder", str(folder), "--allowed", str(allowed or 0)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    return dict(json.loads(done.stdout))


def child(folder: Path, allowed: int) -> None:
    """Search in memory, or within a limit that the system enforces; print what it took."""
    rows, labels = np.load(folder / "rows.npy", mmap_mode="r"), np.load(folder / "labels.npy")
    queries = np.load(folder / "queries.npy")
    before = status("VmData")
    index: Any = ClasswiseNeighbors(K)
    if allowed:
        # What came with the libraries is not counted, and 16 MB are left for the interpreter.
        limit = int(before * 1e6) + allowed + 16 * 10**6 + queries.nbytes + 16 * len(queries) * N_CLASSES * K
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))
        index = StreamedNeighbors(K, search=Streamed(allowed))
    own = Watched("RssAnon")
    with own:
        (distances, ids), cpu = cpu_of(lambda: index.fit(rows, labels).kneighbors(queries))
    np.savez(folder / ("streamed.npz" if allowed else "memory.npz"), distances=distances, ids=ids)
    figures = {"own_mb": own.most - own.before, "pages_mb": status("VmHWM"), "cpu_seconds": cpu}
    print(json.dumps(figures))


def streamed(args: argparse.Namespace) -> list[dict[str, Any]]:
    allowed, n_features = 128 * 10**6, 64
    n = args.times * allowed // (4 * n_features)
    with TemporaryDirectory() as name:
        folder = Path(name)
        X, y = make_rows(n, n_features, 1)
        np.save(folder / "rows.npy", X)
        np.save(folder / "labels.npy", y)
        np.save(folder / "queries.npy", make_rows(args.queries, n_features, 2)[0])
        del X
        limited, free = search_in_child(folder, allowed), search_in_child(folder, None)
        ours, theirs = np.load(folder / "streamed.npz"), np.load(folder / "memory.npz")
        row = {
            "what": "streamed",
            "search": kernel_in_use().name,
            "reference_rows": n,
            "features": n_features,
            "queries": args.queries,
            "index_mb": 4 * n * n_features / 1e6,
            "allowed_mb": allowed / 1e6,
            "equal_distances": bool((ours["distances"] == theirs["distances"]).all()),
            "equal_ids": bool((ours["ids"] == theirs["ids"]).all()),
            "peak_own_mb": limited["own_mb"],
            "peak_with_pages_of_the_file_mb": limited["pages_mb"],
            "peak_own_in_memory_mb": free["own_mb"],
            "cpu_seconds": limited["cpu_seconds"],
            "cpu_over_in_memory": limited["cpu_seconds"] / free["cpu_seconds"],
        }
    return [row]


# ---- what shards cost


def shards(args: argparse.Namespace) -> list[dict[str, Any]]:
    n, n_queries, n_features = args.reference, args.queries, 64
    X, y = make_rows(n, n_features, 1)
    queries = make_rows(n_queries, n_features, 2)[0]

    def cpu(n_rows: int, n_asked: int, n_shards: int) -> float:
        parts = np.array_split(X[:n_rows], n_shards)
        index = StreamedNeighbors(K, search=Streamed("20 GB")).fit(parts, y[:n_rows])
        return min(cpu_of(lambda: index.kneighbors(queries[:n_asked]))[1] for _ in range(3))

    # Cost = rows × build + rows × queries × search + shards × queries × merge, from runs at a quarter of the size.
    rows, asked = n // 4, n_queries // 4
    few, many, cut = cpu(rows, 16, 1), cpu(rows, asked, 1), cpu(rows, asked, 8)
    search = (many - few) / (rows * (asked - 16))
    build = (few - 16 * rows * search) / rows
    merge = max(0.0, (cut - many) / (7 * asked))
    found = []
    for n_shards in (1, 2, 4, 8):
        predicted = n * build + n * n_queries * search + n_shards * n_queries * merge
        found.append(
            {
                "what": "shards",
                "search": kernel_in_use().name,
                "shards": n_shards,
                "reference_rows": n,
                "features": n_features,
                "queries": n_queries,
                "predicted_cpu_seconds": predicted,
                "cpu_seconds": cpu(n, n_queries, n_shards),
                "build_ns_per_row": 1e9 * build,
                "search_ns_per_pair": 1e9 * search,
                "merge_ns_per_query": 1e9 * merge,
            }
        )
    return found


# ---- one process and a cluster


def save_model(path: Path, n: int, n_features: int, **settings: Any) -> None:
    X, y = make_rows(n, n_features, 1)
    held = min(2000, n // 5)
    classifier = LogisticRegression(max_iter=100, tol=1e-2).fit(X[: min(n, 20_000)], y[: min(n, 20_000)])
    model = TrustedClassifier(FrozenEstimator(classifier), NeighborAgg(**settings), features="passthrough")
    model.fit(X[held:], y[held:], X_val=X[:held], y_val=y[:held]).save(path)


def write_rows(folder: Path, n: int, n_features: int, n_files: int) -> None:
    folder.mkdir()
    for i, size in enumerate(np.full(n_files, n // n_files)):
        X, _ = make_rows(size, n_features, 100 + i)
        columns = {f"x{j}": column for j, column in enumerate(X.T)}
        pyarrow.parquet.write_table(
            pyarrow.table(columns), folder / f"{i:03d}.parquet", row_group_size=50_000
        )


def same_files(first: Path, second: Path) -> bool:
    names = sorted(path.name for path in first.glob("part-*.parquet"))
    return names == sorted(path.name for path in second.glob("part-*.parquet")) and all(
        np.allclose(
            pyarrow.parquet.read_table(first / name).to_pandas(),
            pyarrow.parquet.read_table(second / name).to_pandas(),
            rtol=0,
            atol=1e-9,
        )
        for name in names
    )


def score_when_told(folder: Path, half: int) -> None:
    """A plain process that scores every second file as soon as it reads a line, and prints what that took."""
    files = sorted((folder / "rows").glob("*.parquet"))[half::2]
    warm_up(folder, folder / f"warm {half}")
    print("ready", flush=True)
    sys.stdin.readline()
    _, seconds = cpu_of(lambda: score(folder / "model.nagg", files, folder / f"half {half}"))
    print(seconds)


def warm_up(folder: Path, output: Path, **options: Any) -> None:
    """Have the model in every process, as it stays there for all parts of a run."""
    score(folder / "model.nagg", sorted((folder / "rows").glob("*.parquet"))[:4], output, **options)


def cpu_of_two_processes(folder: Path) -> float:
    """What the same work takes in two processes at a time that know nothing of each other."""
    pair = [
        subprocess.Popen(
            [sys.executable, __file__, "half", "--folder", str(folder), "--half", str(half)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for half in range(2)
    ]  # fmt: skip
    for process in pair:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("a process did not start")
    for process in pair:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in pair)


def cpu(args: argparse.Namespace) -> list[dict[str, Any]]:
    n, n_queries, n_features = args.reference, args.queries, 64
    with TemporaryDirectory() as name:
        folder = Path(name)
        save_model(folder / "model.nagg", n, n_features)
        write_rows(folder / "rows", n_queries, n_features, max(4, n_queries // ROWS_OF_A_FILE))
        model, rows = folder / "model.nagg", folder / "rows"
        warm_up(folder, folder / "warm")
        _, alone = cpu_of(lambda: score(model, rows, folder / "alone"))
        with connect("local", n_workers=2) as client:
            warm_up(folder, folder / "warm on the cluster", client=client)
            before = client.run(time.process_time)
            _, here = cpu_of(lambda: score(model, rows, folder / "cluster", client=client))
            after = client.run(time.process_time)
        workers = sum(after[address] - before[address] for address in after)
        # Again, as what else the machine does moves CPU time too.
        alone = (alone + cpu_of(lambda: score(model, rows, folder / "again"))[1]) / 2
        two = cpu_of_two_processes(folder)
        row = {
            "what": "cpu",
            "search": kernel_in_use().name,
            "reference_rows": n,
            "features": n_features,
            "queries": n_queries,
            "workers": 2,
            "equal": same_files(folder / "alone", folder / "cluster"),
            "cpu_seconds_one_process": alone,
            "cpu_seconds_two_processes": two,
            "cpu_seconds_workers": workers,
            "cpu_seconds_client_and_scheduler": here,
            "cluster_over_one_process": (workers + here) / alone,
        }
    return [row]


def large(args: argparse.Namespace) -> list[dict[str, Any]]:
    n_features = 8
    with TemporaryDirectory() as name:
        folder = Path(name)
        save_model(folder / "model.nagg", 2000, n_features, effort="fast", learned_metric=False)
        write_rows(folder / "rows", args.rows, n_features, 10)
        with connect("local", n_workers=2, memory="1.5 GB") as client:
            start, before = time.perf_counter(), time.process_time()
            written = score(folder / "model.nagg", folder / "rows", folder / "scored", client=client)
            seconds, here = time.perf_counter() - start, time.process_time() - before
            workers = sum(client.run(time.process_time).values())
            peaks = client.run(status, "VmHWM")
        row = {
            "what": "large",
            "search": kernel_in_use().name,
            "rows": written.n_rows,
            "features": n_features,
            "parts": written.n_parts,
            "workers": 2,
            "input_mb": sum(file.stat().st_size for file in (folder / "rows").iterdir()) / 1e6,
            "peak_mb_of_workers": max(peaks.values()),
            "peak_mb_of_client_and_scheduler": status("VmHWM"),
            "cpu_seconds": workers + here,
            "seconds": seconds,
        }
    return [row]


def size_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What was measured: `cpu` at any number of sizes, the others at one."""
    return row["what"], *((row["reference_rows"], row["queries"]) if row["what"] == "cpu" else ())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["streamed", "shards", "cpu", "large", "child", "half"])
    parser.add_argument("--reference", type=int, default=500_000, help="reference rows")
    parser.add_argument("--queries", type=int, default=50_000)
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of `large`")
    parser.add_argument(
        "--times", type=int, default=4, help="size of the index of `streamed` over its memory"
    )
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--allowed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--half", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.what == "child":
        child(args.folder, args.allowed)
        return
    if args.what == "half":
        score_when_told(args.folder, args.half)
        return
    rows = {"streamed": streamed, "shards": shards, "cpu": cpu, "large": large}[args.what](args)
    for row in rows:
        print(json.dumps(row, indent=1))
    path = RESULTS / "cluster.json"
    others = json.loads(path.read_text())["rows"] if path.exists() else []
    sizes = {size_of(row) for row in rows}
    save("cluster", [row for row in others if size_of(row) not in sizes] + rows, seed=0)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
