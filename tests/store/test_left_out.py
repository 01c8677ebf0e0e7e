"""Networks and callables are never stored; the file says so, and what is passed instead is compared with them."""

import json
import warnings

import numpy as np
import pytest
from safetensors import safe_open
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import neighboragg
from neighboragg import SelectiveClassifier, TrustedClassifier
from neighboragg.exceptions import InvalidParameterError, TrustWarning
from store.models import Network, X, Y, detector, network, selective, trusted

WEIGHTS = np.array([1.0, -1.0, 0.5])
NEW = X + 0.01


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nagg"


@pytest.fixture
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrustWarning)
        yield


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("mmap", [False, True])
def test_a_model_around_a_network(path, mmap):
    model = network()
    model.save(path)
    again = neighboragg.load(path, estimator=Network(WEIGHTS), mmap=mmap)
    np.testing.assert_array_equal(again.score_samples(NEW), model.score_samples(NEW))
    assert again.estimator is again.estimator_
    again.fit(X[:40], Y[:40], X_val=X[40:], y_val=Y[40:])  # it is frozen again
    again.save(path)


@pytest.mark.usefixtures("silent")
def test_a_promise_around_a_network(path):
    model = SelectiveClassifier(network(), target_coverage=0.5).calibrate(NEW, Y)
    model.save(path)
    again = neighboragg.load(path, estimator=Network(WEIGHTS))
    np.testing.assert_array_equal(again.predict(NEW + 0.01), model.predict(NEW + 0.01))


@pytest.mark.usefixtures("silent")
def test_a_network_wrapped_as_frozen(path):
    model = TrustedClassifier(FrozenEstimator(Network(WEIGHTS))).fit(
        X[:40], Y[:40], X_val=X[40:], y_val=Y[40:]
    )
    model.save(path)
    for given in (Network(WEIGHTS), FrozenEstimator(Network(WEIGHTS))):
        again = neighboragg.load(path, estimator=given)
        np.testing.assert_array_equal(again.score_samples(NEW), model.score_samples(NEW))


def test_the_file_says_what_it_lacks(path):
    network(output="probabilities").save(path)
    with safe_open(path, "numpy") as file:
        document = json.loads(file.metadata()["neighboragg"])
    expected = Network(WEIGHTS, "probabilities").fingerprint()
    assert document["left_out"] == {"estimator": expected}
    assert expected["call"] == "Network(module, output='probabilities')"
    assert WEIGHTS.tobytes() not in path.read_bytes()


def test_without_the_network(path):
    for model in (network(), SelectiveClassifier(network(), target_coverage=0.5).calibrate(NEW, Y)):
        model.save(path)
        with pytest.raises(InvalidParameterError) as caught:
            neighboragg.load(path)
        assert str(caught.value) == (
            f"This {type(model).__name__} was saved with a network, which is never stored.\n"
            f"Hint: neighboragg.load({str(path)!r}, estimator=Network(module))."
        )


OTHER = "The network passed as estimator= is not the one this model was saved with: "
CONSEQUENCE = (
    ". The model's trust was learned from the other's probabilities and embeddings.\n"
    "Hint: pass the network that the model was fitted with, or fit the model again."
)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Network(WEIGHTS + 1e-12), "its weights differ"),
        (
            Network(WEIGHTS, "probabilities"),
            "that was Network(module), and this is Network(module, output='probabilities')",
        ),
        (GaussianNB().fit(X, Y), "that was Network(module), and this is GaussianNB(…)"),
    ],
)
def test_another_network(path, given, reason):
    network().save(path)
    with pytest.warns(TrustWarning) as caught:
        neighboragg.load(path, estimator=given)
    assert [str(warning.message) for warning in caught] == [OTHER + reason + CONSEQUENCE]
    assert caught[0].filename == __file__


class Nameless(Network):
    """A network that gives no fingerprint."""

    fingerprint = property()


def test_a_network_without_a_fingerprint_is_known_by_its_type(path):
    TrustedClassifier(Nameless(WEIGHTS)).fit(X[:40], Y[:40], X_val=X[40:], y_val=Y[40:]).save(path)
    with pytest.raises(InvalidParameterError, match=r"estimator=Nameless\(…\)\)\.$"):
        neighboragg.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrustWarning)
        neighboragg.load(path, estimator=Nameless(WEIGHTS))
    with pytest.warns(TrustWarning, match=r"that was Nameless\(…\), and this is Network\(module\)"):
        neighboragg.load(path, estimator=Network(WEIGHTS))


class Module:
    """What a module of PyTorch looks like from outside."""


Module.__module__ = "torch.nn.modules.module"


def test_a_module_that_is_not_wrapped(path):
    network().save(path)
    with pytest.raises(InvalidParameterError) as caught:
        neighboragg.load(path, estimator=Module())
    assert str(caught.value) == (
        "The 'estimator' parameter of load cannot be a bare PyTorch network. Got a Module.\n"
        "Hint: load(path, estimator=TorchClassifier(module)), with TorchClassifier from neighboragg.torch."
    )


def test_two_networks_in_one_model(path):
    model = network()
    model.estimator = Network(WEIGHTS + 1)
    with pytest.raises(InvalidParameterError) as caught:
        model.save(path)
    assert str(caught.value) == (
        "This TrustedClassifier cannot be saved: its 'estimator_' is not the only value that the 'estimator' parameter "
        "of load would take, so it could not be loaded again."
    )


def doubled(rows):
    return 2 * np.asarray(rows)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    "make",
    [
        lambda: trusted(LogisticRegression(), features=doubled),
        lambda: selective(trusted(LogisticRegression(), features=doubled)),
        lambda: detector(features=doubled),
    ],
)
def test_a_callable_for_features(path, make):
    model = make()
    model.save(path)
    with pytest.raises(InvalidParameterError) as caught:
        neighboragg.load(path)
    assert str(caught.value) == (
        f"This {type(model).__name__} was saved with a callable for its features, which is never stored.\n"
        f"Hint: neighboragg.load({str(path)!r}, features=doubled)."
    )
    again = neighboragg.load(path, features=doubled)
    if isinstance(model, neighboragg.MislabelDetector):
        np.testing.assert_array_equal(again.score_reliability(NEW, Y), model.score_reliability(NEW, Y))
    else:
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    assert getattr(again, "model", again).features is doubled


def test_a_network_and_a_callable(path):
    model = TrustedClassifier(Network(WEIGHTS), features=lambda rows: rows)
    model.fit(X[:40], Y[:40], X_val=X[40:], y_val=Y[40:]).save(path)
    for given in ({}, {"features": doubled}, {"estimator": Network(WEIGHTS)}):
        with pytest.raises(InvalidParameterError) as caught:
            neighboragg.load(path, **given)
        assert str(caught.value).endswith(
            f"neighboragg.load({str(path)!r}, estimator=Network(module), features=function)."
        )
    again = neighboragg.load(path, estimator=Network(WEIGHTS), features=np.asarray)
    np.testing.assert_array_equal(again.score_samples(NEW), model.score_samples(NEW))


def test_features_that_cannot_be_called(path):
    trusted(LogisticRegression(), features=doubled).save(path)
    with pytest.raises(InvalidParameterError) as caught:
        neighboragg.load(path, features="doubled")
    assert str(caught.value) == "The 'features' parameter of load must be a callable. Got 'doubled' instead."


def test_a_classifier_given_instead_of_the_stored_one(path):
    model = trusted(LogisticRegression())
    model.save(path)
    again = neighboragg.load(path, estimator=model.estimator_)
    assert again.estimator_ is model.estimator_
    assert isinstance(again.estimator, FrozenEstimator)
    np.testing.assert_array_equal(again.score_samples(NEW), model.score_samples(NEW))
