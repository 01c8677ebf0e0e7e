"""Methods that read logits: their formulas, their part of the contract, and what they refuse."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone

from benchmarks.methods import Energy, MaxLogit, NNGuide, Tuned
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

METHODS = [
    Energy(),
    Energy(temperature=2.0),
    MaxLogit(),
    MaxLogit(p=2),
    MaxLogit(p=0.5),
    NNGuide(n_neighbors=3),
]
LABELS = np.array(["ant", "bee", "cat"])
HINT = (
    "\nHint: pass np.hstack([logits, embeddings]), the logits in the order of the probabilities and not scaled by a "
    "temperature."
)


class Problem:
    """Logits of three classes followed by an embedding of five dimensions."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.codes = rng.integers(0, 3, n)
        self.logits = 3 * rng.normal(size=(n, 3)) + 4 * np.eye(3)[self.codes] + 2
        self.embeddings = rng.normal(size=(n, 5)) + 2 * np.eye(3, 5)[self.codes]
        self.rows = np.hstack([self.logits, self.embeddings])
        self.proba = softmax(self.logits, axis=1)
        self.y = LABELS[self.codes]


TRAIN, VAL, TEST = (Problem(n, seed) for seed, n in enumerate((60, 40, 30)))


def fit(method, train=TRAIN, val=VAL):
    return clone(method).fit(train.rows, train.y, X_val=val.rows, y_val=val.y, proba_val=val.proba)


def trust_of(method):
    return fit(method).predict_trust(TEST.rows, TEST.proba)


def test_max_logit_is_the_logit():
    np.testing.assert_array_equal(trust_of(MaxLogit()), TEST.logits)
    np.testing.assert_array_equal(
        fit(MaxLogit()).score_samples(TEST.rows, TEST.proba), TEST.logits.max(axis=1)
    )


@pytest.mark.parametrize("p", [0.5, 1, 2, 3.5, 40])
def test_max_logit_over_a_norm(p):
    trust = trust_of(MaxLogit(p=p))
    for row, found in zip(TEST.logits, trust, strict=True):
        centered = row - row.mean()
        np.testing.assert_allclose(found, centered / sum(abs(centered) ** p) ** (1 / p), rtol=1e-9)
    longer = np.hstack([7 * TEST.logits, TEST.embeddings])
    np.testing.assert_allclose(
        fit(MaxLogit(p=p)).predict_trust(longer, softmax(7 * TEST.logits, axis=1)), trust, rtol=1e-9
    )


def test_equal_logits_over_a_norm_are_worth_nothing():
    rows = np.hstack([np.full((2, 3), 5.0), np.zeros((2, 5))])
    np.testing.assert_array_equal(fit(MaxLogit(p=2)).predict_trust(rows, np.full((2, 3), 1 / 3)), 0.0)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_energy_is_the_logarithm_of_the_sum(temperature):
    expected = temperature * np.log(np.exp(TEST.logits / temperature).sum(axis=1))
    np.testing.assert_allclose(
        trust_of(Energy(temperature=temperature)), np.repeat(expected[:, None], 3, axis=1), rtol=1e-12
    )


def test_guidance_by_hand():
    trust = trust_of(NNGuide(n_neighbors=4))
    energy = [np.log(np.exp(problem.logits).sum(axis=1)) for problem in (TRAIN, TEST)]
    for i, row in enumerate(TEST.embeddings):
        cosines = [row @ other / np.linalg.norm(row) / np.linalg.norm(other) for other in TRAIN.embeddings]
        guidance = np.sort(energy[0] * cosines)[-4:].mean()
        np.testing.assert_allclose(trust[i], energy[1][i] * guidance, rtol=1e-10)


def test_the_bank_is_drawn_by_the_seed():
    def bank(seed):
        return fit(NNGuide(bank_size=20, random_state=seed)).bank_

    assert bank(0).shape == (20, 5)
    np.testing.assert_array_equal(bank(0), bank(0))
    assert not np.array_equal(bank(0), bank(1))
    assert len(fit(NNGuide(bank_size=60)).bank_) == 60


def test_an_embedding_of_zeros_has_no_guide():
    rows = np.hstack([TEST.logits[:1], np.zeros((1, 5))])
    np.testing.assert_array_equal(fit(NNGuide()).predict_trust(rows, TEST.proba[:1]), 0.0)


def test_the_norm_is_chosen_on_validation_rows():
    """Long vectors of logits carry no information here, so that any norm is better than none."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 600)
    directions = rng.normal(size=(600, 3)) + 2 * np.eye(3)[codes]
    logits = directions * rng.lognormal(0.0, 2.0, (600, 1))
    proba = softmax(logits, axis=1)
    tuned = Tuned(MaxLogit(), {"p": [1, 2, 4]}).fit(logits, codes, proba_val=proba)
    assert tuned.setting_["p"] is not None


@pytest.mark.parametrize("method", METHODS, ids=repr)
class TestContract:
    def test_shapes_and_scores(self, method):
        fitted = fit(method)
        trust = fitted.predict_trust(TEST.rows, TEST.proba)
        assert trust.shape == (30, 3)
        assert trust.dtype == np.float64
        np.testing.assert_array_equal(fitted.classes_, LABELS)
        np.testing.assert_array_equal(
            fitted.score_labels(TEST.rows, TEST.y, TEST.proba), trust[np.arange(30), TEST.codes]
        )

    def test_rows_are_judged_one_by_one(self, method):
        fitted = fit(method)
        alone = [fitted.predict_trust(TEST.rows[i : i + 1], TEST.proba[i : i + 1])[0] for i in range(30)]
        np.testing.assert_allclose(alone, fitted.predict_trust(TEST.rows, TEST.proba), rtol=1e-12)

    def test_labels_of_other_rows_do_not_matter(self, method):
        """None of these methods learns from labels."""
        other = fit(method, val=Problem(40, 1))
        other_labels = clone(method).fit(
            TRAIN.rows, TRAIN.y[::-1], X_val=VAL.rows, y_val=VAL.y[::-1], proba_val=VAL.proba
        )
        np.testing.assert_array_equal(
            other.predict_trust(TEST.rows, TEST.proba), other_labels.predict_trust(TEST.rows, TEST.proba)
        )

    def test_no_rows(self, method):
        assert fit(method).predict_trust(TEST.rows[:0], TEST.proba[:0]).shape == (0, 3)

    def test_training_rows_that_vouch_for_themselves(self, method):
        fitted = clone(method).fit(TRAIN.rows, TRAIN.y, proba_val=TRAIN.proba)
        assert np.isfinite(fitted.predict_trust(TEST.rows, TEST.proba)).all()

    def test_single_precision(self, method):
        found = fit(method).predict_trust(TEST.rows.astype(np.float32), TEST.proba.astype(np.float32))
        np.testing.assert_allclose(found, trust_of(method), rtol=1e-4, atol=1e-4)

    def test_vectors_without_logits_are_refused(self, method):
        owner = type(method).__name__
        with pytest.raises(InvalidInputError) as refusal:
            fit(method).predict_trust(np.roll(TEST.rows, 1, axis=1), TEST.proba)
        assert str(refusal.value).startswith(
            f"The first 3 columns of X passed to {owner} are not the logits of the probabilities: in row "
        )
        assert str(refusal.value).endswith(HINT)
        with pytest.raises(InvalidInputError, match="The first 3 columns of X_val passed to"):
            clone(method).fit(TRAIN.rows, TRAIN.y, X_val=VAL.rows[::-1], y_val=VAL.y, proba_val=VAL.proba)
        with pytest.raises(InvalidInputError) as refusal:
            clone(method).fit(TRAIN.rows[:, :2], TRAIN.y, proba_val=TRAIN.proba)
        assert str(refusal.value) == (
            f"X passed to {owner} must begin with the logits of 3 classes, but has 2 columns.{HINT}"
        )


def test_guidance_needs_an_embedding():
    with pytest.raises(InvalidInputError) as refusal:
        NNGuide().fit(TRAIN.logits, TRAIN.y, proba_val=TRAIN.proba)
    assert str(refusal.value) == (
        "X passed to NNGuide has 3 columns, the logits, and no embedding.\n"
        "Hint: pass np.hstack([logits, embeddings])."
    )


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (MaxLogit(p=0), "The 'p' parameter of MaxLogit must be a number in (0, inf). Got 0 instead."),
        (Energy(temperature=-1), "The 'temperature' parameter of Energy must be a number in (0, inf). Got -1 instead."),
        (NNGuide(bank_size=0), "The 'bank_size' parameter of NNGuide must be an int >= 1. Got 0 instead."),
        (NNGuide(n_neighbors=0), "The 'n_neighbors' parameter of NNGuide must be an int >= 1. Got 0 instead."),
    ],
    ids=repr,
)  # fmt: skip
def test_parameters_are_checked(method, message):
    with pytest.raises(InvalidParameterError) as refusal:
        fit(method)
    assert str(refusal.value) == message
