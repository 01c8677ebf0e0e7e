"""A client for the cluster that somebody names in words."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from neighboragg._optional import import_extra
from neighboragg.distributed._executor import PURPOSE
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

__all__ = ["connect"]

CONNECT_SECONDS = 20
# What Dask does besides work, many times a second, takes a share of every core; a busy machine has none to spare.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "2s",
}
# After it Dask gives up the place of a worker that has died for good: 15 seconds by its default, in which a worker may
# not be back on a busy machine, or be back and dead again.
PATIENT = {"distributed.deploy.lost-worker-timeout": "365 days"}
# No pages: they would tell everybody on the machine what runs here.
PAGES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
TRIM = "MALLOC_TRIM_THRESHOLD_"


@contextmanager
def connect(cluster: str | None, *, n_workers: int | None = None, memory: str = "auto") -> Iterator[Any]:
    """A Dask client for the time of a block.

    Parameters
    ----------
    cluster : str or None
        "local" starts processes on this machine, one thread each, and stops them at the end; an address such as
        ``tcp://host:8786`` is that of a running scheduler. None stands for no cluster.
    n_workers : int, default=None
        Processes of a local cluster; None starts one for each core.
    memory : str, default="auto"
        Memory of each of them, such as ``"4 GB"``; "auto" shares the machine's.

    Yields
    ------
    client : dask.distributed.Client or None

    Examples
    --------
    >>> from neighboragg.distributed import connect
    >>> with connect(None) as client:
    ...     print(client)
    None
    """
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
                # Whoever reaches a scheduler can run code on it: only holders of certificates made for this run do.
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
    """Variables that Dask sets for workers, without the one that returns every freed page to the system at once.

    The pages are asked for again by the next block of a search, which costs NumPy's search up to half its CPU time.
    """
    return {name: value for name, value in environment.items() if name != TRIM}
