"""Limits of a recall that is estimated on a sample of queries."""

import numpy as np
import pytest

from neighboragg.search._index import recall_interval, shares_found


def test_a_row_as_near_as_the_last_neighbor_counts():
    exact = np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    found = np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 4.0], [2.0, 3.5, np.inf]])
    np.testing.assert_allclose(shares_found(found, exact), [1, 2 / 3, 1 / 3])


def test_limits_in_closed_form_where_nothing_was_missed():
    low, high = recall_interval(np.ones(1000))
    assert low == pytest.approx(0.025 ** (1 / 1000), abs=1e-12)
    assert high == 1.0


def test_limits_in_closed_form_where_nothing_was_found():
    low, high = recall_interval(np.zeros(50))
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025 ** (1 / 50), abs=1e-12)


def test_limits_come_nearer_with_more_queries():
    widths = [np.diff(recall_interval(np.repeat([0.9, 1.0], n))) for n in (10, 100, 1000)]
    assert widths[0] > widths[1] > widths[2] > 0


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("together", [True, False])
def test_each_limit_fails_at_most_as_often_as_it_says(share, together):
    """2,000 samples of queries whose 20 neighbors are found together, the worst case, or each by itself."""
    rng = np.random.default_rng(0)
    shape = (2000, 300, 1 if together else 20)
    shares = np.mean(rng.random(shape) < share, axis=2)
    limits = np.array([recall_interval(sample) for sample in shares])
    # 0.025, and three standard deviations of a binomial share of 2,000.
    assert np.mean(limits[:, 0] > share) <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 2000)
    assert np.mean(limits[:, 1] < share) <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 2000)
