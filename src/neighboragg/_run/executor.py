"""Where parts are computed: in this process or on a Dask cluster."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Protocol

from neighboragg._core.packages import import_extra
from neighboragg._core.threads import n_threads
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, NeighborAggError

PURPOSE = "Work on a cluster"
POLL_SECONDS = 0.02  # between checks whether a part is done
LOOK_SECONDS = 2.0  # between queries of the scheduler about the workers
# Workers that die are started again, which on a busy machine can take a minute.
IDLE_SECONDS = 300.0
# States of tasks that a worker is processing, or whose data it is waiting for.
AT_WORK = {"executing", "long-running", "flight"}
MORE_MEMORY = (
    "Hint: give the workers more memory (memory_limit of a LocalCluster, --memory-limit of dask worker), or fewer "
    "threads each."
)


@dataclass(frozen=True)
class Outcome:
    """The result for one item: a value, or the text of the error that stopped it."""

    item: Any
    value: Any = None
    error: str | None = None


class Executor(Protocol):
    """Applies a function to items, in any order; a failing item does not stop the others."""

    def run(self, work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Outcome]:
        """An outcome for each item, as they are done."""


@dataclass(frozen=True)
class InProcess:
    """Items one after the other, or a few at a time in threads."""

    n_jobs: int | None = None

    def run(self, work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Outcome]:
        """An outcome for each item, as they are done."""
        n_workers = min(n_threads(self.n_jobs), len(items))
        if n_workers <= 1:
            yield from (_attempted(work, item) for item in items)
            return
        with ThreadPoolExecutor(n_workers) as pool:
            futures = [pool.submit(_attempted, work, item) for item in items]
            try:
                yield from (future.result() for future in as_completed(futures))
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class OnDask:
    """Items as tasks of a Dask client; if a worker dies, another one takes over its tasks."""

    client: Any

    def run(self, work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Outcome]:
        """An outcome for each item, as they are done."""
        distributed = import_extra("distributed", extra="dask", purpose=PURPOSE)
        dask = import_extra("dask", extra="dask", purpose=PURPOSE)
        run = token_hex(8)
        # A task, not scattered data: if every worker that has it dies, it is recreated. It is sent once, so Dask need
        # not warn about its size.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            shared = self.client.submit(_same, work, key=f"neighboragg-work-{run}")
        futures = {
            self.client.submit(_attempted, shared, item, key=f"neighboragg-part-{run}-{i}"): item
            for i, item in enumerate(items)
        }
        try:
            # With results: waiting for them later could block on a lost worker.
            for future, result in self._as_completed(
                distributed.as_completed(futures, with_results=True, raise_errors=False)
            ):
                item = futures[future]
                if future.cancelled():
                    yield Outcome(item, error="The cluster was lost, or the part was canceled there.")
                elif future.status == "error":
                    yield Outcome(item, error=_explained(result[1], distributed.scheduler.KilledWorker))
                else:
                    yield result
        finally:
            with suppress(Exception):  # a lost cluster cannot cancel tasks
                self.client.cancel([shared, *futures], force=True)

    def _as_completed(self, done: Any) -> Iterator[Any]:
        """Outcomes as they arrive; raises if workers have been idle for a long time."""
        last_busy: float | None = None
        next_look = 0.0
        while not done.is_empty():
            if done.has_ready():
                last_busy = time.monotonic()
                yield next(done)
                continue
            time.sleep(POLL_SECONDS)
            if (now := time.monotonic()) < next_look:
                continue
            next_look = now + LOOK_SECONDS
            workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
            if any(map(_is_busy, workers)) or (workers and last_busy is None):
                last_busy = now
            elif last_busy is not None and now - last_busy > IDLE_SECONDS:
                raise NeighborAggError(
                    f"No worker of the cluster has done anything for {IDLE_SECONDS:g} s: {_described(workers)}. "
                    f"Finished parts are saved. This usually means that the workers ran out of memory.\n{MORE_MEMORY}\n"
                    "Then rerun the command."
                )


def executor_for(client: Any, n_jobs: int | None) -> Executor:
    """The executor for a Dask client, or for this process if `client` is None."""
    if client is None:
        return InProcess(n_jobs)
    if not all(hasattr(client, name) for name in ("submit", "cancel", "scheduler_info")):
        raise InvalidParameterError(
            f"The 'client' parameter must be a dask.distributed.Client or None. Got {client!r} instead.\n"
            "Hint: use Client('tcp://…') for a running cluster, or Client() for one on this machine."
        )
    return OnDask(client)


def _explained(error: BaseException, killed: type) -> str:
    """The message for an error of a task, with a remedy where it killed the workers."""
    if not isinstance(error, killed):
        return _reason(error)
    return (
        f"The worker died in each of {error.allowed_failures + 1} attempts. This usually means "  # type: ignore[attr-defined]
        f"that the workers ran out of memory.\n{MORE_MEMORY}"
    )


def _reason(error: BaseException) -> str:
    text = str(error).strip() or "no message"
    return text if isinstance(error, NeighborAggError) else f"{type(error).__name__}: {text}"


def _is_busy(worker: dict[str, Any]) -> bool:
    """Whether a worker makes progress; low on memory, it may never start its tasks."""
    counts = worker.get("metrics", {}).get("task_counts", {})
    return any(counts.get(state, 0) for state in AT_WORK)


def _described(workers: Collection[dict[str, Any]]) -> str:
    paused = sum(worker.get("status") == "paused" for worker in workers)
    return f"{len(workers)} are there, {paused} of them paused" if workers else "all are gone"


def _same(work: Any) -> Any:
    return work


def _attempted(work: Callable[[Any], Any], item: Any) -> Outcome:
    try:
        return Outcome(item, work(item))
    # Also exits: a classifier that exits must not end the run as if it were complete.
    except (Exception, SystemExit) as error:
        return Outcome(item, error=_reason(error))


CONNECT_SECONDS = 20
# The frequent background tasks of Dask slow down a busy machine.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "2s",
}
# Time after which Dask gives up on a dead worker. Its default of 15 seconds is too short for a restart on a busy
# machine.
PATIENT = {"distributed.deploy.lost-worker-timeout": "365 days"}
# No dashboard: everybody on the machine could read it.
PAGES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
TRIM = "MALLOC_TRIM_THRESHOLD_"


@contextmanager
def connect(cluster: str | None, *, n_workers: int | None = None, memory: str = "auto") -> Iterator[Any]:
    """A Dask client for the time of a block."""
    if cluster is None:
        yield None
        return
    distributed = import_extra("distributed", extra="dask", purpose=PURPOSE)
    if cluster == "local":
        dask = import_extra("dask", extra="dask", purpose=PURPOSE)
        import_extra("cryptography", extra="dask", purpose="A local cluster")
        environment = {ENVIRONMENT: _without_trimming(dask.config.get(ENVIRONMENT, {}))}
        with (
            dask.config.set(QUIET | PATIENT | PAGES | environment),
            distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                memory_limit=memory,
                # Anyone who can connect to a scheduler can run code on it: require certificates made for this run.
                security=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
            ) as local,
            distributed.Client(local) as client,
        ):
            yield client
        return
    if "://" not in cluster:
        raise InvalidParameterError(
            f"The cluster must be 'local' or the address of a Dask scheduler, such as tcp://host:8786. Got {cluster!r}."
        )
    try:
        client = distributed.Client(cluster, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"No Dask scheduler answers at {cluster} ({str(error).strip() or type(error).__name__}).\n"
            "Hint: start one with 'dask scheduler' and workers with 'dask worker', or use --cluster local."
        ) from error
    with client:
        yield client


def _without_trimming(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Environment variables for workers, without the one that returns freed pages to the system at once."""
    return {name: value for name, value in environment.items() if name != TRIM}
