"""Small tables and hand-made results."""

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits


def make_frame(n=300, seed=0):
    """Numbers with gaps, categories with gaps, a bool, and labels as strings that are not easy to tell."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 1.2 * code,
            "weight": rng.normal(size=n) + 0.8 * code,
            "color": rng.choice(["red", "green", "blue"], n),
            "ripe": rng.random(n) < 0.3 + 0.4 * code,
            "kind": np.where(code == 1, "apple", "pear"),
        }
    )
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    frame.loc[rng.random(n) < 0.1, "color"] = None
    return frame


def make_result(dataset, base, seed, method, auroc, *, ap_success=0.9, ap_error=0.5, **more):
    """A row of results as the store holds them."""
    return {
        "set": dataset,
        "base": base,
        "seed": seed,
        "method": method,
        "auroc": auroc,
        "ap_success": ap_success,
        "ap_error": ap_error,
        "aurc": 0.1,
        "augrc": 0.05,
        "ece": 0.02,
        **more,
    }


@pytest.fixture
def frame():
    return make_frame


@pytest.fixture
def result():
    return make_result


@pytest.fixture
def csv(tmp_path):
    """Path of a CSV file of 300 rows."""
    path = tmp_path / "fruit.csv"
    make_frame().to_csv(path, index=False)
    return path


@pytest.fixture
def figures(monkeypatch):
    """Figures, as they are saved."""
    from matplotlib.figure import Figure

    saved = []
    save = Figure.savefig

    def remember(self, *args, **kwargs):
        saved.append(self)
        return save(self, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", remember)
    return saved


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other on a busy machine cost more than they save on a few hundred rows."""
    with threadpool_limits(1):
        yield
