"""Label noise: exact counts, a truthful mask, and the distribution that each kind promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from benchmarks.datasets import add_label_noise, make_moons_trust, plausible_proba
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from sizes import examples

KINDS = ["symmetric", "class_dependent", "instance_dependent", "plausible"]
LEVEL = 1e-6


@st.composite
def labeled(draw):
    """Labels of 2 to 5 classes, in several dtypes, and probabilities for them."""
    n_classes = draw(st.integers(2, 5))
    n_rows = draw(st.integers(4 * n_classes, 60))
    names = draw(
        st.sampled_from(
            [
                np.array([-3, 0, 7, 12, 99])[:n_classes],
                np.array(["a", "bb", "ccc", "d", "e"])[:n_classes],
                np.array(["a", "bb", "ccc", "d", "e"], dtype=object)[:n_classes],
            ]
        )
    )
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    codes = np.append(np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes))
    return names[codes], rng.dirichlet(np.ones(n_classes), size=n_rows)


@pytest.mark.parametrize("kind", KINDS)
@given(data=labeled(), rate=st.floats(0, 0.99), seed=st.integers(0, 2**31 - 1))
@examples(60)
def test_count_mask_classes_and_seed(kind, data, rate, seed):
    y, proba = data
    before = y.copy()
    noisy = add_label_noise(y, rate=rate, kind=kind, proba=proba, random_state=seed)
    assert noisy.mask.dtype == bool and noisy.mask.sum() == round(rate * len(y))
    np.testing.assert_array_equal(noisy.y != y, noisy.mask)
    assert noisy.y.dtype == y.dtype and set(noisy.y.tolist()) <= set(y.tolist())
    np.testing.assert_array_equal(y, before)
    again = add_label_noise(y, rate=rate, kind=kind, proba=proba, random_state=seed)
    np.testing.assert_array_equal(again.y, noisy.y)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("kind", KINDS)
def test_other_seed_other_rows(kind):
    X, y = make_moons_trust(300, random_state=0)
    masks = [add_label_noise(y, rate=0.2, kind=kind, X=X, random_state=seed).mask for seed in range(5)]
    assert len({mask.tobytes() for mask in masks}) == 5


def test_symmetric_is_uniform_over_rows_and_classes():
    y = np.repeat([0, 1, 2], [4, 3, 3])
    first_row, next_class = 0, 0
    for seed in range(1000):
        noisy = add_label_noise(y, rate=0.3, random_state=seed)
        first_row += noisy.mask[0]
        next_class += int(((noisy.y - y)[noisy.mask] % 3 == 1).sum())
    assert binomtest(int(first_row), 1000, 0.3).pvalue > LEVEL
    assert binomtest(next_class, 1000 * 3, 0.5).pvalue > LEVEL


def test_class_dependent_has_one_cycle_of_partners():
    y = np.repeat(np.array(list("abcd")), 25)
    seen = set()
    for seed in range(40):
        noisy = add_label_noise(y, rate=0.5, kind="class_dependent", random_state=seed)
        pairs = set(zip(y[noisy.mask].tolist(), noisy.y[noisy.mask].tolist(), strict=True))
        partner = dict(pairs)
        assert len(pairs) == len(partner) == 4
        walk = ["a"]
        while len(walk) < 5:
            walk.append(partner[walk[-1]])
        assert sorted(walk[:4]) == list("abcd") and walk[4] == "a"
        seen.add("".join(walk))
    assert len(seen) == 6


def test_instance_dependent_follows_the_probabilities():
    y = np.array(["a", "a", "b", "b", "c", "c"])
    proba = np.array(
        [[0.5, 0.4, 0.1], [0.9, 0.0, 0.1], [0.3, 0.5, 0.2], [0.0, 1.0, 0.0], [0.1, 0.1, 0.8], [0.2, 0.5, 0.3]]
    )
    weight = np.array([0.4, 0.1, 0.3, 0.0, 0.1, 0.5])
    best = np.array(["b", "c", "a", "a", "a", "b"])
    first = np.zeros(6, dtype=int)
    for seed in range(2000):
        noisy = add_label_noise(y, rate=1 / 6, kind="instance_dependent", proba=proba, random_state=seed)
        np.testing.assert_array_equal(noisy.y[noisy.mask], best[noisy.mask])
        first += noisy.mask
    assert first[3] == 0
    for count, share in zip(first, weight / weight.sum(), strict=True):
        assert binomtest(int(count), 2000, share).pvalue > LEVEL


@pytest.mark.full
def test_plausible_draws_rows_and_classes_by_the_probabilities():
    y = np.array(["a", "b", "c"])
    proba = np.array([[0.5, 0.3, 0.2], [0.1, 0.9, 0.0], [0.2, 0.0, 0.8]])
    drawn = np.zeros((3, 3), dtype=int)
    for seed in range(2000):
        noisy = add_label_noise(y, rate=1 / 3, kind="plausible", proba=proba, random_state=seed)
        (row,) = np.flatnonzero(noisy.mask)
        drawn[row, "abc".index(noisy.y[row])] += 1
    shares = np.array([[0, 3, 2], [1, 0, 0], [2, 0, 0]]) / 8
    assert (drawn[shares == 0] == 0).all()
    for count, share in zip(drawn[shares > 0], shares[shares > 0], strict=True):
        assert binomtest(int(count), 2000, share).pvalue > LEVEL


def test_plausible_errors_come_from_other_models():
    X, y = make_moons_trust(120, random_state=0)
    noisy = add_label_noise(y, rate=0.1, kind="plausible", X=X, random_state=0)
    again = add_label_noise(y, rate=0.1, kind="plausible", X=X, random_state=0)
    np.testing.assert_array_equal(noisy.y, again.y)
    proba = plausible_proba(X, y, random_state=0)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    doubt = 1 - proba[np.arange(120), y]
    assert doubt[noisy.mask].mean() > 1.2 * doubt[~noisy.mask].mean()


def test_rows_without_doubt_are_changed_last():
    y = np.array([0, 0, 0, 1, 1, 1])
    proba = np.eye(2)[y]
    proba[[0, 4]] = 0.5
    noisy = add_label_noise(y, rate=0.5, kind="instance_dependent", proba=proba, random_state=0)
    assert noisy.mask[[0, 4]].all() and noisy.mask.sum() == 3


def test_probabilities_from_rows_find_the_border():
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = np.where(X[:, 0] > 0, "right", "left")
    noisy = add_label_noise(y, rate=0.1, kind="instance_dependent", X=X, random_state=0)
    distance = np.abs(X[:, 0])
    assert distance[noisy.mask].mean() < 0.5 * distance[~noisy.mask].mean()
    again = add_label_noise(y, rate=0.1, kind="instance_dependent", X=X, random_state=0)
    np.testing.assert_array_equal(noisy.y, again.y)


def test_classes_of_one_row():
    X = np.arange(8.0)[:, None]
    y = np.array(["common"] * 7 + ["rare"])
    noisy = add_label_noise(y, rate=0.5, kind="instance_dependent", X=X, random_state=0)
    assert noisy.mask.sum() == 4


def test_probabilities_go_before_rows():
    proba = np.array([[0.9, 0.1], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    noisy = add_label_noise([0, 1, 0, 1], rate=0.25, kind="instance_dependent", X="unused", proba=proba)
    assert noisy.y.tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan"), "a"])
def test_bad_rate(rate):
    with pytest.raises(InvalidParameterError) as caught:
        add_label_noise([0, 1, 0, 1], rate=rate)
    assert str(caught.value) == (
        f"The 'rate' parameter of add_label_noise must be a number in [0, 1). Got {rate!r} instead."
    )


def test_bad_kind():
    with pytest.raises(InvalidParameterError) as caught:
        add_label_noise([0, 1, 0, 1], rate=0.1, kind="uniform")
    assert str(caught.value) == (
        "The 'kind' parameter of add_label_noise must be one of 'class_dependent', 'instance_dependent', "
        "'plausible', 'symmetric'. Got 'uniform' instead."
    )


def test_one_class():
    with pytest.raises(InvalidInputError) as caught:
        add_label_noise(["a", "a"], rate=0.5)
    assert str(caught.value) == (
        "y passed to add_label_noise has 1 class; a label can be changed only if there are at least two."
    )


def test_neither_rows_nor_probabilities():
    with pytest.raises(InvalidInputError) as caught:
        add_label_noise([0, 1, 0, 1], rate=0.5, kind="instance_dependent")
    assert str(caught.value) == (
        "add_label_noise with kind='instance_dependent' needs to know which rows are confusable.\n"
        "Hint: pass proba, out-of-fold probabilities (cross_val_predict(..., method='predict_proba')), or X."
    )


@pytest.mark.parametrize(("name", "value"), [("X", np.ones((3, 2))), ("proba", np.full((3, 2), 0.5))])
def test_other_number_of_rows(name, value):
    with pytest.raises(InvalidInputError) as caught:
        add_label_noise([0, 1, 0, 1], rate=0.5, kind="instance_dependent", **{name: value})
    assert str(caught.value) == (
        f"{name} and y passed to add_label_noise must have the same number of rows. Got 3 and 4."
    )
