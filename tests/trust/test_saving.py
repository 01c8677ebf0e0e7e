"""Saved models: equal bits after loading, and no file that lies."""

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import neighboragg
from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg._pool.network import NetworkAggregator
from neighboragg._pool.pool import PoolAggregator
from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods import MaxConfidence, TrustScore


@pytest.fixture(scope="module")
def rows():
    return make_classification(200, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=1)


MODELS = {
    "pool": TrustedClassifier(LogisticRegression(), random_state=0),
    "network": TrustedClassifier(LogisticRegression(), NeighborAgg("network"), random_state=0),
    "cross-validated": TrustedClassifier(LogisticRegression(), cv=3),
    "second opinions": TrustedClassifier(LogisticRegression(), NeighborAgg(effort="best"), random_state=0),
    "pipeline": TrustedClassifier(make_pipeline(StandardScaler(), LogisticRegression()), random_state=0),
    "forest": TrustedClassifier(RandomForestClassifier(5, random_state=0), TrustScore(), random_state=0),
    "transformer": TrustedClassifier(LogisticRegression(), features=MinMaxScaler(), random_state=0),
    "max-softmax": TrustedClassifier(LogisticRegression(), MaxConfidence(), random_state=0),
}


def test_a_model_that_has_been_used_is_saved_as_before(rows, tmp_path):
    X, y = rows
    model = TrustedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    model.save(tmp_path / "new.nagg")
    model.assess(X)
    model.save(tmp_path / "used.nagg")
    new, used = (load_file(tmp_path / name) for name in ("new.nagg", "used.nagg"))
    assert new.keys() == used.keys()
    for name in new.keys() - {"estimator", "estimator_"}:  # skops writes other bytes each time
        np.testing.assert_array_equal(new[name], used[name])


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.full) if name == "second opinions" else name for name in MODELS],
)
def test_equal_bits_after_loading(rows, tmp_path, name):
    X, y = rows
    model = MODELS[name].fit(X, y)
    model.save(tmp_path / "model.nagg")
    again = neighboragg.load(tmp_path / "model.nagg")
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.classes_, model.classes_)


def test_string_labels_and_feature_names_survive(rows, tmp_path):
    import pandas as pd

    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = TrustedClassifier(LogisticRegression(), random_state=0).fit(frame, np.array(["no", "yes"])[y])
    model.save(tmp_path / "model.nagg")
    again = neighboragg.load(tmp_path / "model.nagg")
    np.testing.assert_array_equal(again.score_samples(frame), model.score_samples(frame))
    assert list(again.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(again.kneighbors(frame)[1], model.kneighbors(frame)[1])


def test_a_bare_method(rows, tmp_path):
    X, y = rows
    proba = np.column_stack([np.linspace(0, 1, len(y)), np.linspace(1, 0, len(y))])
    method = NeighborAgg().fit(X, y, proba_val=proba)
    method.save(tmp_path / "method.nagg")
    again = neighboragg.load(tmp_path / "method.nagg")
    np.testing.assert_array_equal(again.score_samples(X, proba), method.score_samples(X, proba))


def test_the_recipe_of_the_aggregator_survives(rows, tmp_path):
    X, y = rows
    recipe = NetworkAggregator(bandwidth=2.0, inputs="neighbors", max_iter=7)
    method = NeighborAgg(recipe).fit(X, y, proba_val=np.full((len(y), 2), 0.5))
    method.save(tmp_path / "method.nagg")
    again = neighboragg.load(tmp_path / "method.nagg")
    assert again.aggregator.get_params() == recipe.get_params()
    # An unfitted copy, so that fitting again gives the same method.
    assert not hasattr(again.aggregator, "W_")
    method.fit(X[:150], y[:150], proba_val=np.full((150, 2), 0.5))
    again.fit(X[:150], y[:150], proba_val=np.full((150, 2), 0.5))
    np.testing.assert_array_equal(again.aggregator_.W_, method.aggregator_.W_)


def test_texts_through_a_pipeline(tmp_path):
    texts = [f"{word} {i % 7}" for i in range(60) for word in ("green leaf", "brown dog")]
    y = np.array(["plant", "animal"] * 60)
    model = TrustedClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()), random_state=0)
    model.fit(texts, y).save(tmp_path / "model.nagg")
    again = neighboragg.load(tmp_path / "model.nagg")
    np.testing.assert_array_equal(again.score_samples(texts), model.score_samples(texts))


class Halved(PoolAggregator):
    def predict_trust(self, evidence):
        return super().predict_trust(evidence) / 2


class Mine(MaxConfidence):
    pass


def test_what_could_not_be_loaded_as_it_was_is_not_saved(rows, tmp_path):
    X, y = rows
    model = TrustedClassifier(LogisticRegression(), NeighborAgg(Halved()), random_state=0).fit(X, y)
    with pytest.raises(InvalidParameterError) as caught:
        model.save(tmp_path / "model.nagg")
    assert str(caught.value) == (
        f"This TrustedClassifier cannot be saved: its 'method/aggregator' is of the type {__name__}.Halved, which "
        "neighboragg does not know, so it could not be loaded again."
    )
    model = TrustedClassifier(LogisticRegression(), Mine(), random_state=0).fit(X, y)
    with pytest.raises(InvalidParameterError) as caught:
        model.save(tmp_path / "model.nagg")
    assert str(caught.value) == (
        f"This TrustedClassifier cannot be saved: its 'method' is of the type {__name__}.Mine, which neighboragg does "
        "not know, so it could not be loaded again."
    )
    assert list(tmp_path.iterdir()) == []


def test_a_transformer_is_a_parameter_again(rows, tmp_path):
    X, y = rows
    model = TrustedClassifier(LogisticRegression(), features=MinMaxScaler(), random_state=0).fit(X, y)
    model.save(tmp_path / "model.nagg")
    again = neighboragg.load(tmp_path / "model.nagg")
    assert isinstance(again.features, MinMaxScaler)
    again.fit(X[50:], y[50:], X_val=X[:50], y_val=y[:50])


def test_a_classifier_of_other_classes_is_refused(rows, tmp_path):
    X, y = rows
    TrustedClassifier(LogisticRegression(), random_state=0).fit(X, y).save(tmp_path / "model.nagg")
    other = LogisticRegression().fit(X, np.array(["no", "yes"])[y])
    with pytest.raises(InvalidParameterError) as caught:
        neighboragg.load(tmp_path / "model.nagg", estimator=other)
    assert str(caught.value) == (
        "The estimator for the loaded TrustedClassifier has the classes ['no', 'yes'], but the model was saved with "
        "[0, 1].\nHint: pass the classifier that was used to fit the model."
    )


def test_a_result_about_labels(rows, tmp_path):
    result = neighboragg.find_mislabeled(*rows, flag=5)
    result.save(tmp_path / "result.nagg")
    again = neighboragg.load(tmp_path / "result.nagg")
    np.testing.assert_array_equal(again.scores, result.scores)
    assert again.reasons == result.reasons
