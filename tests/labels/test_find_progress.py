"""Progress of find_mislabeled."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from neighboragg import find_mislabeled


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("settings", [{}, {"estimator": LogisticRegression()}, {"effort": "fast"}])
@pytest.mark.parametrize("copies", [False, True])
def test_all_steps_are_told_and_none_too_many(settings, copies):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = rng.normal(size=(60, 2)) + 3 * y[:, None]
    if copies:
        X[1] = X[0]
    told = []
    result = find_mislabeled(X, y, progress=lambda *said: told.append(said), **settings)
    done, totals = [done for _, done, _ in told], [total for _, _, total in told]
    assert done == sorted(done)
    assert totals == sorted(totals)
    assert told[-1][1] == told[-1][2]
    np.testing.assert_array_equal(result.scores, find_mislabeled(X, y, **settings).scores)
