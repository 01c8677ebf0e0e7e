"""The paper's split, and the toy set."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.datasets import make_moons_trust, paper_split
from neighboragg.exceptions import InvalidInputError, InvalidParameterError


@given(n_samples=st.integers(4, 2000), seed=st.integers(0, 1000))
def test_every_row_is_in_one_part(n_samples, seed):
    train, validation, test = paper_split(n_samples, seed=seed)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, validation, test])), np.arange(n_samples))
    assert len(test) == -(-n_samples // 2)
    assert len(validation) == -(-(n_samples - len(test)) // 5)


def test_known_split():
    # RandomState(42) permutes 10 rows to 8 1 5 0 7 | 2 9 4 3 6, and the five that are left by 1 | 4 2 0 3.
    train, validation, test = paper_split(10, seed=0)
    assert (train.tolist(), validation.tolist(), test.tolist()) == ([6, 4, 2, 3], [9], [8, 1, 5, 0, 7])


def test_labels_only_give_the_length():
    from_labels = paper_split(["a", "b"] * 50, seed=3)
    for ours, other in zip(paper_split(100, seed=3), from_labels, strict=True):
        np.testing.assert_array_equal(ours, other)
    assert not np.array_equal(paper_split(100, seed=4)[2], from_labels[2])


def test_bad_arguments():
    with pytest.raises(InvalidParameterError) as caught:
        paper_split(100, seed=-1)
    assert str(caught.value) == "The 'seed' parameter of paper_split must be an int >= 0. Got -1 instead."
    with pytest.raises(InvalidParameterError) as caught:
        paper_split(3, seed=0)
    assert str(caught.value) == "The 'n_or_y' parameter of paper_split must be an int >= 4. Got 3 instead."
    with pytest.raises(InvalidInputError) as caught:
        paper_split([0, 1, 0], seed=0)
    assert str(caught.value) == "paper_split needs at least 4 rows for its three parts. Got 3."


def test_moons():
    X, y = make_moons_trust(100, random_state=0)
    again, _ = make_moons_trust(100, random_state=0)
    np.testing.assert_array_equal(X, again)
    assert X.shape == (100, 2) and X.dtype == np.float64 and np.bincount(y).tolist() == [50, 50]
    clean, labels = make_moons_trust(100, noise=0, random_state=0)
    radius = np.hypot(*(clean - np.where(labels[:, None] == 0, [0.0, 0.0], [1.0, 0.5])).T)
    np.testing.assert_allclose(radius, 1.0)


def test_moons_bad_arguments():
    with pytest.raises(InvalidParameterError) as caught:
        make_moons_trust(1)
    assert (
        str(caught.value)
        == "The 'n_samples' parameter of make_moons_trust must be an int >= 2. Got 1 instead."
    )
    with pytest.raises(InvalidParameterError) as caught:
        make_moons_trust(noise=-0.1)
    assert str(caught.value) == (
        "The 'noise' parameter of make_moons_trust must be a number in [0, inf). Got -0.1 instead."
    )
