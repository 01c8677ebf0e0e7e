"""Confident counts: against the definition row by row, on known noise, and their messages."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from neighboragg.exceptions import InvalidInputError
from neighboragg.labels._noise import confident_count
from sizes import examples

FUNCTIONS = [confident_count]


@st.composite
def tables(draw):
    """Probabilities in tenths or so, with ties, and labels that may leave classes empty."""
    n, n_classes = draw(st.integers(1, 25)), draw(st.integers(1, 4))
    weights = draw(arrays(np.int64, (n, n_classes), elements=st.integers(0, 5))) + 1
    codes = draw(arrays(np.int64, n, elements=st.integers(0, n_classes - 1)))
    return weights / weights.sum(axis=1, keepdims=True), codes


def by_definition(proba, codes):
    """The count, one row at a time."""
    n_classes = proba.shape[1]
    limits = [proba[codes == c, c].mean() if (codes == c).any() else np.inf for c in range(n_classes)]
    count = 0
    for p, given_label in zip(proba, codes, strict=True):
        best = [c for c in range(n_classes) if p[c] == p.max()]
        count += given_label not in best and any(p[c] >= limits[c] - 1e-6 for c in best)
    return count


def noisy_table(n, n_classes, rate, seed):
    """Sharp out-of-sample probabilities of the true class, and labels of which a share is wrong."""
    rng = np.random.default_rng(seed)
    true = rng.integers(n_classes, size=n)
    logits = rng.normal(size=(n, n_classes)) + 6.0 * np.eye(n_classes)[true]
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    wrong = rng.permutation(n) < round(rate * n)
    given_labels = np.where(wrong, (true + rng.integers(1, n_classes, size=n)) % n_classes, true)
    return proba, given_labels


@examples(200)
@given(tables())
def test_counts_follow_the_definition(table):
    proba, codes = table
    count = by_definition(proba, codes)
    assert confident_count(proba, codes) == count


@given(tables(), st.randoms(use_true_random=False))
def test_counts_follow_rows_and_classes_when_reordered(table, random):
    proba, codes = table
    rows = random.sample(range(len(codes)), len(codes))
    assert confident_count(proba[rows], codes[rows]) == confident_count(proba, codes)
    # New order of classes: old class c becomes position[c]. Ties never make a correct row suspicious.
    columns = np.array(random.sample(range(proba.shape[1]), proba.shape[1]))
    position = np.argsort(columns)
    assert confident_count(proba[:, columns], position[codes]) == confident_count(proba, codes)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.2, 0.3])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_rates_are_found_where_classes_are_sharp(n_classes, rate):
    proba, codes = noisy_table(4000, n_classes, rate, seed=1)
    assert confident_count(proba, codes) / len(codes) == pytest.approx(rate, abs=0.03)


def test_count_spares_rows_that_trust_their_label_most():
    """Row 2 misses the high threshold of its own class and passes the low one of the other."""
    trust = np.array([[0.99, 0.01], [0.97, 0.03], [0.55, 0.45], [0.6, 0.4]])
    codes = np.array([0, 0, 0, 1])
    assert confident_count(trust, codes) == 0


def test_equal_rows_are_confident_in_spite_of_rounding():
    """The mean of 1,001 equal values may round to above them."""
    proba = np.tile([0.1, 0.9], (1_002, 1))
    assert confident_count(proba, np.r_[np.ones(1_001, int), 0]) == 1


@pytest.mark.parametrize("n_rare", [1, 2, 5, 20])
def test_rare_labels_add_no_more_than_themselves(n_rare):
    """A class that nobody trusts has a threshold next to nothing, which doubtful rows reach."""
    proba, codes = noisy_table(2000, 5, 0.02, seed=3)
    proba = 0.6 * proba + 0.4 * noisy_table(2000, 5, 0.0, seed=4)[0]
    before = confident_count(proba, codes)
    rare = np.column_stack([proba * 0.999, np.full(2000, 0.001)])
    changed = codes.copy()
    changed[:n_rare] = 5
    assert before - n_rare <= confident_count(rare, changed) <= before + n_rare


def test_labels_all_swapped_give_a_rate_of_one():
    assert confident_count([[0.9, 0.1], [0.1, 0.9]], [1, 0]) == 2


@pytest.mark.parametrize("function", FUNCTIONS)
def test_messages_about_codes(function):
    proba = [[0.9, 0.1], [0.2, 0.8]]
    hint = "Hint: classes, y_codes = np.unique(y, return_inverse=True)."
    owner = function.__name__
    with pytest.raises(InvalidInputError) as error:
        function(proba, [0, 2])
    assert str(error.value) == (
        f"y_codes passed to {owner} must lie in 0 to 1, one per column of trust. Got 2 at position 1.\n{hint}"
    )
    with pytest.raises(InvalidInputError) as error:
        function(proba, ["a", "b"])
    assert str(error.value) == (
        f"y_codes passed to {owner} must be a 1-D array of integers. Got shape (2,) of dtype <U1.\n{hint}"
    )
    with pytest.raises(InvalidInputError) as error:
        function(proba, [0])
    assert str(error.value) == (
        f"trust and y_codes passed to {owner} must have the same number of rows. Got 2 and 1."
    )
    with pytest.raises(InvalidInputError) as error:
        function(np.empty((0, 2)), np.empty(0, int))
    assert str(error.value) == f"trust passed to {owner} is empty; at least one row is needed."


@pytest.mark.parametrize("function", FUNCTIONS)
def test_tables_that_hold_no_probabilities_are_rejected(function):
    with pytest.raises(InvalidInputError, match=r"must sum to 1\. Row 0 sums to 5"):
        function([[2.0, 3.0], [0.5, 0.5]], [0, 1])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        function([0.5, 0.5], [0, 1])
