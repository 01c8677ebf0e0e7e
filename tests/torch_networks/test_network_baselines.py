"""Baselines that need a network: against direct computation, and what they refuse."""

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from torch import nn

import neighboragg
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.torch import ConfidNet, DeepEnsemble, MCDropout, embed
from torch_networks.networks import ConvNet


def sure_on_one_side(n, seed):
    """Embeddings of two numbers: the network is right where the first is positive, and guesses elsewhere."""
    rng = np.random.default_rng(seed)
    embeddings, y = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    guess = rng.integers(0, 3, n)
    logits = 4.0 * np.eye(3)[np.where(embeddings[:, 0] > 0, y, guess)]
    return np.hstack([logits, embeddings]), y, softmax(logits, axis=1)


class TestConfidNet:
    def fitted(self, **params):
        X, y, _ = sure_on_one_side(1200, 0)
        X_val, y_val, proba_val = sure_on_one_side(400, 1)
        head = ConfidNet(n_hidden=32, n_layers=2, max_epochs=8, learning_rate=1e-2, **params)
        return head.fit(X, y, X_val=X_val, y_val=y_val, proba_val=proba_val)

    @pytest.mark.full
    def test_it_finds_the_errors_that_confidence_cannot(self):
        X, y, proba = sure_on_one_side(500, 2)
        correct = proba.argmax(axis=1) == y
        assert np.ptp(proba.max(axis=1)) < 1e-9
        assert roc_auc_score(correct, self.fitted().score_samples(X, proba)) > 0.75

    def test_it_learns_the_probability_of_the_true_class(self):
        """Where the network is right, what it gives to its prediction; where it guesses, one third."""
        X, _, proba = sure_on_one_side(800, 2)
        trust = self.fitted().predict_trust(X, proba)
        np.testing.assert_allclose(trust.sum(axis=1), 1.0)
        scores = trust[np.arange(800), proba.argmax(axis=1)]
        assert scores[X[:, 3] > 0.5].mean() == pytest.approx(softmax([4.0, 0.0, 0.0])[0], abs=0.05)
        assert 0.15 < scores[X[:, 3] < -0.5].mean() < 0.5

    def test_it_learns_from_training_rows_and_not_from_the_logits(self):
        X, _, _ = sure_on_one_side(5, 3)
        other = X.copy()
        other[:, :3] += 2.0  # the same probabilities
        proba = softmax(X[:, :3], axis=1)
        head = self.fitted()
        np.testing.assert_allclose(head.predict_trust(X, proba), head.predict_trust(other, proba), rtol=1e-12)

    def test_labels_of_training_rows_matter(self):
        X, y, proba = sure_on_one_side(400, 0)
        val = sure_on_one_side(200, 1)
        fits = [
            ConfidNet(n_hidden=8, n_layers=1, max_epochs=5, learning_rate=0.05)
            .fit(X, labels, X_val=val[0], y_val=val[1], proba_val=val[2])
            .score_samples(X, proba)
            for labels in (y, (y + 1) % 3)
        ]
        assert fits[0].mean() > fits[1].mean() + 0.1

    def test_the_epoch_is_chosen_on_validation_rows(self):
        assert 0 <= self.fitted().epoch_ < 8
        X, y, _ = sure_on_one_side(300, 0)
        X_val, _, proba_val = sure_on_one_side(100, 1)
        right = ConfidNet(n_hidden=8, n_layers=1, max_epochs=3).fit(
            X, y, X_val=X_val, y_val=proba_val.argmax(axis=1), proba_val=proba_val
        )
        assert np.isfinite(right.score_samples(X_val, proba_val)).all()

    @pytest.mark.full
    def test_seeds_and_the_state_of_the_caller(self):
        X, _, proba = sure_on_one_side(50, 2)
        before = torch.get_rng_state()
        first, again = (self.fitted(random_state=3).score_samples(X, proba) for _ in range(2))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, self.fitted(random_state=4).score_samples(X, proba))
        assert torch.equal(before, torch.get_rng_state())

    def test_rows_that_vouch_for_themselves(self):
        X, y, proba = sure_on_one_side(400, 0)
        head = ConfidNet(n_hidden=16, n_layers=1, max_epochs=8, learning_rate=0.03).fit(X, y, proba_val=proba)
        assert roc_auc_score(proba.argmax(axis=1) == y, head.score_samples(X, proba)) > 0.7

    def test_a_single_class(self):
        head = ConfidNet(max_epochs=1).fit(np.ones((6, 3)), np.zeros(6), proba_val=np.ones((6, 1)))
        np.testing.assert_array_equal(head.predict_trust(np.ones((2, 3)), np.ones((2, 1))), 1.0)

    def test_saved_and_loaded(self, tmp_path):
        X, _, proba = sure_on_one_side(50, 2)
        head = self.fitted()
        head.save(tmp_path / "head")
        loaded = neighboragg.load(tmp_path / "head")
        np.testing.assert_array_equal(loaded.score_samples(X, proba), head.score_samples(X, proba))

    def test_what_is_refused(self):
        X, y, proba = sure_on_one_side(50, 0)
        with pytest.raises(InvalidInputError) as refusal:
            ConfidNet().fit(X[:, :3], y, proba_val=proba)
        assert str(refusal.value) == (
            "X passed to ConfidNet has 3 columns, the logits, without an embedding.\n"
            "Hint: pass np.hstack([logits, embeddings])."
        )
        with pytest.raises(InvalidInputError, match="are not the logits of the probabilities"):
            ConfidNet().fit(X[:, 2:], y, proba_val=proba)
        with pytest.raises(InvalidParameterError, match="The 'n_layers' parameter of ConfidNet"):
            ConfidNet(n_layers=0).fit(X, y, proba_val=proba)


@pytest.fixture
def rows(digits):
    X, y = digits
    return X[1000:1060], y[1000:1060]


class TestMCDropout:
    def test_it_is_the_mean_over_passes(self, trained, rows):
        X, y = rows
        proba = embed(trained, X).proba
        method = MCDropout(trained, n_passes=7, batch_size=32).fit(
            X, y, proba_val=proba, classes=np.arange(10)
        )
        found = method.predict_trust(X, proba)
        with torch.random.fork_rng(), torch.inference_mode():
            torch.manual_seed(method.seed_)
            trained.eval()
            trained.drop.train()
            passes = [torch.cat([trained(part) for part in X.split(32)]).softmax(1) for _ in range(7)]
        np.testing.assert_allclose(found, torch.stack(passes).mean(0).numpy(), atol=1e-6)
        assert np.abs(found - proba).max() > 1e-3

    def test_the_network_is_as_before(self, trained, rows):
        X, y = rows
        proba = embed(trained, X).proba
        trained.eval()
        trained.hidden.train()
        random, state = torch.get_rng_state(), {k: v.clone() for k, v in trained.state_dict().items()}
        method = MCDropout(trained, n_passes=2).fit(X, y, proba_val=proba, classes=np.arange(10))
        np.testing.assert_array_equal(method.predict_trust(X, proba), method.predict_trust(X, proba))
        assert torch.equal(random, torch.get_rng_state())
        assert (trained.hidden.training, trained.drop.training, trained.norm.training) == (True, False, False)
        assert all(torch.equal(value, state[name]) for name, value in trained.state_dict().items())
        trained.eval()

    def test_a_network_that_fails_is_left_as_before(self, trained, rows):
        X, y = rows
        trained.eval()
        method = MCDropout(trained, n_passes=2).fit(
            X, y, proba_val=embed(trained, X).proba, classes=np.arange(10)
        )
        with pytest.raises(RuntimeError):
            method.predict_trust(X[:, :, :3], np.full((60, 10), 0.1))
        assert not trained.drop.training
        assert not torch.is_inference_mode_enabled()

    def test_without_dropout(self, rows):
        X, y = rows
        net = nn.Sequential(nn.Flatten(), nn.Dropout(0.0), nn.Linear(64, 10))
        with pytest.raises(InvalidParameterError) as refusal:
            MCDropout(net).fit(X, y, proba_val=embed(net, X).proba, classes=np.arange(10))
        assert str(refusal.value) == (
            "The 'module' parameter of MCDropout does not have a dropout layer, so all passes would be equal.\n"
            "Hint: only modules such as torch.nn.Dropout are found, not torch.nn.functional.dropout."
        )


class TestDeepEnsemble:
    def test_it_is_the_mean_over_networks(self, rows):
        X, y = rows
        nets = [ConvNet().eval() for _ in range(3)]
        proba = embed(nets[0], X).proba
        method = DeepEnsemble(nets, batch_size=16).fit(X, y, proba_val=proba, classes=np.arange(10))
        expected = np.mean([embed(net, X).proba for net in nets], axis=0)
        np.testing.assert_allclose(method.predict_trust(X, proba), expected, atol=1e-7)
        rows_ = np.arange(60)
        np.testing.assert_allclose(
            method.score_samples(X.numpy(), proba), expected[rows_, proba.argmax(axis=1)], atol=1e-7
        )
        assert method.predict_trust(X[:0], proba[:0]).shape == (0, 10)

    def test_what_is_refused(self, rows):
        X, y = rows
        P = np.full((60, 10), 0.1)
        with pytest.raises(InvalidParameterError, match="must contain a network"):
            DeepEnsemble([]).fit(X, y, proba_val=P, classes=np.arange(10))
        fitted = DeepEnsemble([nn.Sequential(nn.Flatten(), nn.Linear(64, 4))]).fit(
            X, y, proba_val=P, classes=np.arange(10)
        )
        with pytest.raises(InvalidInputError, match="has 4 outputs, but there are 10 classes"):
            fitted.predict_trust(X, P)
        with pytest.raises(InvalidInputError, match="must be inputs of the network"):
            fitted.predict_trust(X[0, 0, 0], P)
        with pytest.raises(InvalidInputError, match="has 2 features, but 1 were seen in fit"):
            fitted.predict_trust(torch.cat([X, X], 1), P)

    def test_a_copy_has_networks_of_its_own(self, trained):
        copy = clone(DeepEnsemble([trained]))
        assert copy.modules[0] is not trained
        assert torch.equal(copy.modules[0].head.weight, trained.head.weight)
