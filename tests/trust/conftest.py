"""A small table."""

import numpy as np
import pandas as pd
import pytest


def make_frame(n=300, seed=0):
    """Numbers with gaps, categories with gaps, a bool, and labels that are not easy to tell."""
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


@pytest.fixture
def frame():
    return make_frame


@pytest.fixture
def csv(tmp_path):
    """Path of a CSV file of 300 rows."""
    path = tmp_path / "fruit.csv"
    make_frame().to_csv(path, index=False)
    return path
