"""The same on a Dask cluster of processes: equal answers, also when workers die."""

import os
import signal
import subprocess
import sys
import threading

import cloudpickle
import dask
import distributed
import numpy as np
import pandas as pd
import pytest

from neighboragg import score
from neighboragg._run.executor import connect
from neighboragg.exceptions import NeighborAggError, PartsFailedError


@pytest.mark.full(include=1)
@pytest.mark.parametrize("ends", [(), (150,), (1, 30, 30, 100, 140, 180, 290)], ids=["1", "2", "8 unequal"])
def test_equal_answers_on_a_cluster(ends, scored, cut_into, cluster):
    alone = scored(cut_into())
    together = scored(cut_into(*ends, name="spread"), "cluster", client=cluster)
    pd.testing.assert_frame_equal(together, alone, rtol=0, atol=1e-9)


@pytest.mark.full
def test_equal_answers_on_a_cluster_where_a_class_lives_in_one_file_only(
    scored, cut_into, cluster, new_rows, digits
):
    labels = digits[1][500:800]
    by_class = new_rows.iloc[np.argsort(labels, kind="stable")].reset_index(drop=True)
    ends = np.cumsum(np.bincount(labels))[:-1]
    together = scored(cut_into(*ends, name="spread", rows=by_class), "cluster", client=cluster)
    pd.testing.assert_frame_equal(together, scored(cut_into(rows=by_class)), rtol=0, atol=1e-9)


@pytest.mark.full
def test_workers_of_a_local_cluster_keep_the_memory_that_the_next_part_needs(monkeypatch):
    monkeypatch.delenv(
        "MALLOC_TRIM_THRESHOLD_", raising=False
    )  # other clusters of this process leave it there
    with connect("local", n_workers=1, memory="1 GB") as client:
        (environment,) = client.run(lambda: dict(os.environ)).values()
    assert "MALLOC_TRIM_THRESHOLD_" not in environment
    assert environment["OMP_NUM_THREADS"] == "1"


@pytest.mark.full
def test_a_worker_that_is_killed_comes_back_however_long_it_takes():
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 ms"}),  # in which none can
        connect("local", n_workers=1, memory="1 GB") as client,
    ):
        (pid,) = client.run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        assert client.submit(os.getpid).result(120) != pid


class Deadly:
    """A model that kills the process that it is in, as often as there are files to remove."""

    def __init__(self, model, lives):
        self.model, self.lives = model, lives

    def assess(self, rows):
        for life in sorted(self.lives.iterdir()):
            life.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.model.assess(rows)


class Stubborn:
    """A model that raises what cannot be sent to another process, or not be read there."""

    def __init__(self, name):
        self.name = name

    def assess(self, rows):
        class UnreadableError(Exception):
            def __init__(self, code, text):
                super().__init__(f"{code}: {text}")

        error = UnreadableError(7, "no")
        if self.name == "unsendable":
            error = ValueError("no")
            error.held = threading.Lock()
        if self.name == "exit":
            error = SystemExit(0)
        raise error


@pytest.fixture
def deadly(model, tmp_path):
    """Such a model, sent to workers with its code, since they cannot import this file."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)

    def make(n_deaths):
        lives = tmp_path / f"{n_deaths} deaths"
        lives.mkdir()
        for i in range(n_deaths):
            (lives / str(i)).touch()
        return Deadly(model, lives)

    yield make
    cloudpickle.unregister_pickle_by_value(module)


def test_workers_that_are_killed_change_nothing(scored, cut_into, cluster, deadly):
    folder = cut_into(100)
    fatal = deadly(2)
    together = scored(folder, "cluster", client=cluster, model=fatal)
    assert not list(fatal.lives.iterdir())
    pd.testing.assert_frame_equal(together, scored(folder), rtol=0, atol=1e-9)


@pytest.mark.full
def test_a_large_model_object_is_sent_without_a_warning(scored, cut_into, cluster, deadly):
    large = deadly(0)
    large.padding = np.arange(2_000_000)
    folder = cut_into(100)
    together = scored(folder, "cluster", client=cluster, model=large)
    pd.testing.assert_frame_equal(together, scored(folder), rtol=0, atol=1e-9)


@pytest.mark.full
def test_a_part_that_kills_every_worker_says_what_to_do(scored, cut_into, cluster, deadly):
    with pytest.raises(PartsFailedError) as caught:
        scored(cut_into(), part_rows=300, client=cluster, model=deadly(4))
    assert (
        "rows 0 to 299: The worker died in each of 4 attempts. This usually means that the workers ran out of "
        "memory.\n"
        "Hint: give the workers more memory (memory_limit of a LocalCluster, --memory-limit of dask worker), or "
        "fewer threads each."
    ) in str(caught.value)


@pytest.mark.full
def test_a_worker_out_of_memory_says_which_setting_to_change(model_file, new_rows, tmp_path, small):
    path = tmp_path / "long.parquet"
    rows = new_rows.assign(document="x" * 3_000_000)  # 900 MB in memory, next to nothing on disk
    rows.to_parquet(path, row_group_size=10)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="600 MB", dashboard_address="127.0.0.1:0"
        ) as local,
        distributed.Client(local) as client,
        pytest.raises(PartsFailedError) as caught,
    ):
        small(part_rows=300)
        score(model_file, path, tmp_path / "scored", include=["document"], client=client)
    assert (
        f"{path}, rows 0 to 299: The worker died in each of 2 attempts. This usually means that the workers ran "
        "out of memory.\n"
        "Hint: give the workers more memory (memory_limit of a LocalCluster, --memory-limit of dask worker), or "
        "fewer threads each."
    ) in str(caught.value)


def pause(local):
    """Do at once what the worker does when it next looks at its memory, which may be after all the work."""

    async def change():
        for worker in local.workers.values():
            worker.status = distributed.Status.paused

    local.sync(change)


@pytest.mark.full
def test_workers_that_take_no_more_tasks_for_lack_of_memory_are_not_waited_for(
    scored, cut_into, monkeypatch, model
):
    monkeypatch.setattr("neighboragg._run.executor.IDLE_SECONDS", 0.5)
    monkeypatch.setattr("neighboragg._run.executor.LOOK_SECONDS", 0.1)
    folder = cut_into(100)
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            memory_limit="50 MB",
            dashboard_address="127.0.0.1:0",
        ) as local,
        distributed.Client(local) as client,
        pytest.raises(
            NeighborAggError,
            match=r"done anything for 0\.5 s: 1 are there, 1 of them paused\.[^$]*memory_limit",
        ),
    ):
        pause(local)
        scored(folder, client=client, model=model)


KILLED = """
import os, signal, sys
from distributed import Client
from neighboragg import score
from neighboragg.trust import _score

_score.PART_ROWS, _score.BATCH_ROWS = 70, 64

def progress(stage, done, total):
    if done == 2:
        os.kill(os.getpid(), signal.SIGKILL)

with Client(sys.argv[4]) as client:
    settings = {"include": ["id"], "progress": progress}
    score(sys.argv[1], sys.argv[2], sys.argv[3], client=client, **settings)
"""


@pytest.mark.full
def test_a_client_that_is_killed_resumes(scored, cut_into, cluster, model_file, tmp_path):
    folder, output = cut_into(100), tmp_path / "scored"
    address = cluster.scheduler_info()["address"]
    command = [sys.executable, "-c", KILLED, str(model_file), str(folder), str(output), address]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    before = {path.name: path.stat().st_ino for path in output.glob("*.parquet")}
    assert len(before) >= 2
    together = scored(folder, client=cluster)
    after = {path.name: path.stat().st_ino for path in output.glob("*.parquet")}
    assert before.items() <= after.items()
    pd.testing.assert_frame_equal(together, scored(folder, "alone"), rtol=0, atol=1e-9)


@pytest.mark.full
def test_failures_on_a_cluster_name_file_and_rows(scored, cut_into, cluster, new_rows):
    folder = cut_into(100)
    rows = new_rows[:100].copy()
    rows.iloc[80, 3] = np.nan
    rows.to_parquet(folder / "00.parquet")
    with pytest.raises(
        PartsFailedError, match=r"1 of 5 parts failed[^$]*00\.parquet, rows 70 to 99: ValueError"
    ):
        scored(folder, client=cluster)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "said"),
    [("unreadable", "UnreadableError: 7: no"), ("unsendable", "ValueError: no"), ("exit", "SystemExit: 0")],
)
@pytest.mark.parametrize("place", ["here", "cluster"])
def test_failures_that_cannot_be_sent_are_told(
    scored, cut_into, name, said, place, cluster, deadly, monkeypatch
):
    monkeypatch.setattr("neighboragg._run.executor.IDLE_SECONDS", 10)
    client = cluster if place == "cluster" else None
    with pytest.raises(PartsFailedError, match=f"rows 0 to 69: {said}"):
        scored(cut_into(), model=Stubborn(name), client=client)


@pytest.mark.full
def test_workers_that_are_gone_for_good_are_not_waited_for(scored, cut_into, monkeypatch, model, tmp_path):
    monkeypatch.setattr("neighboragg._run.executor.IDLE_SECONDS", 0.5)
    monkeypatch.setattr("neighboragg._run.executor.LOOK_SECONDS", 0.1)
    folder = cut_into(100)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as local,
        distributed.Client(local) as client,
    ):

        def remove_workers(stage, done, total):
            if done == 1:
                for worker in local.workers.values():
                    local.sync(worker.close)

        with pytest.raises(NeighborAggError) as caught:
            scored(folder, client=client, model=model, part_rows=10, progress=remove_workers)
    assert str(caught.value).startswith(
        "No worker of the cluster has done anything for 0.5 s: all are gone. Finished parts are saved. This "
    )
    assert list((tmp_path / "scored").glob("part-*.parquet"))
