"""A model, rows in Parquet files, and a cluster of two processes."""

import os
import signal

import dask
import distributed
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from neighboragg import TrustedClassifier


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    drawn = np.random.default_rng(0).permutation(len(X))  # the file has the digits of one writer together
    X, y = X[drawn], y[drawn]
    return pd.DataFrame(X, columns=[f"pixel{j}" for j in range(64)]), y


@pytest.fixture(scope="session")
def model(digits):
    X, y = digits
    return TrustedClassifier(LogisticRegression(max_iter=50, tol=0.1), random_state=0).fit(X[:500], y[:500])


@pytest.fixture(scope="session")
def model_file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.nagg"
    model.save(path)
    return path


@pytest.fixture(scope="session")
def new_rows(digits):
    X, _ = digits
    return X[500:800].assign(id=np.arange(300)).reset_index(drop=True)


@pytest.fixture
def cut_into(tmp_path, new_rows):
    """Writes the rows into files that end where it is told, and returns their folder."""

    def write(*ends, name="input", rows=new_rows):
        folder = tmp_path / name
        folder.mkdir()
        for i, (start, stop) in enumerate(zip((0, *ends), (*ends, len(rows)), strict=True)):
            rows[start:stop].to_parquet(folder / f"{i:02d}.parquet", row_group_size=40)
        return folder

    return write


@pytest.fixture(autouse=True, scope="session")
def patient():
    """Workers that were killed are waited for: Dask would give up those that are not back after 15 seconds."""
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "365 days"}):
        yield


@pytest.fixture(scope="session")
def two_workers(patient):
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture
def cluster(two_workers):
    """A client of a cluster with both of its workers, also where an earlier test has killed them."""
    two_workers.wait_for_workers(2, timeout=300)
    return two_workers


@pytest.fixture
def kills(cluster):
    """A listener to progress that kills both workers, one after the other, in the middle of a stage."""
    pids = list(cluster.run(os.getpid).values())

    def listen_to(wanted):
        heard = []

        def listen(stage, done, total):
            heard.append(stage)
            if stage == wanted and heard.count(stage) in (2, 4):  # its beginning, and one or three parts
                os.kill(pids.pop(), signal.SIGKILL)

        return listen

    yield listen_to
    assert not pids, "the stage was over before both were killed"


def read(written):
    return pd.concat([pd.read_parquet(file) for file in written.files], ignore_index=True)


@pytest.fixture
def small(monkeypatch):
    """Sets how many rows are in a part and in a batch; small to begin with."""

    def set_sizes(part_rows=70, batch_rows=64):
        for module in ("_score", "_fit"):
            monkeypatch.setattr(f"neighboragg.trust.{module}.PART_ROWS", part_rows)
            monkeypatch.setattr(f"neighboragg.trust.{module}.BATCH_ROWS", batch_rows)

    set_sizes()
    return set_sizes


@pytest.fixture
def scored(model_file, tmp_path, small):
    """Scores rows in small parts and returns the table."""
    from neighboragg import score

    def run(source, name="scored", *, part_rows=70, batch_rows=64, **options):
        small(part_rows, batch_rows)
        settings = {"include": ["id"], **options}
        return read(score(settings.pop("model", model_file), source, tmp_path / name, **settings))

    return run
