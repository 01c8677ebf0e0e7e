"""Several vectors for each row: neighbors, metrics and experts of their own."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

import neighboragg
from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.methods import TrustScore
from neighboragg.metrics import auroc

TRAIN, VAL, TEST = slice(0, 600), slice(600, 1000), slice(1000, 1797)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    drawn = np.random.default_rng(0).permutation(len(X))  # the file has the digits of one writer together
    X, y = X[drawn] / 16, y[drawn]
    top, bottom = X[:, :32], X[:, 32:]
    classifier = LogisticRegression(max_iter=200).fit(top[TRAIN], y[TRAIN])
    return {"top": top, "bottom": bottom}, y, classifier.predict_proba(top)


def part(views, rows):
    return {name: vectors[rows] for name, vectors in views.items()}


def fitted(views, y, proba, **kwargs):
    method = NeighborAgg(effort="fast", **kwargs)
    return method.fit(
        part(views, TRAIN), y[TRAIN], X_val=part(views, VAL), y_val=y[VAL], proba_val=proba[VAL]
    )


@pytest.fixture(scope="module")
def both(digits):
    return fitted(*digits)


def test_one_view_is_as_no_mapping(digits):
    views, y, proba = digits
    top = views["top"]
    plain = NeighborAgg(effort="fast").fit(
        top[TRAIN], y[TRAIN], X_val=top[VAL], y_val=y[VAL], proba_val=proba[VAL]
    )
    named = fitted({"top": top}, y, proba)
    np.testing.assert_array_equal(
        named.predict_trust({"top": top[TEST]}, proba[TEST]), plain.predict_trust(top[TEST], proba[TEST])
    )
    assert plain.spaces_.views == {"features": 32}


def test_a_second_view_helps(digits, both):
    views, y, proba = digits
    correct = proba[TEST].argmax(axis=1) == y[TEST]
    alone = fitted({"top": views["top"]}, y, proba)
    of_both = auroc(correct, both.score_samples(part(views, TEST), proba[TEST]))
    of_one = auroc(correct, alone.score_samples({"top": views["top"][TEST]}, proba[TEST]))
    assert of_both > of_one + 0.02


@pytest.mark.full
def test_a_view_of_noise_hardly_hurts(digits):
    views, y, proba = digits
    noise = np.random.default_rng(0).normal(size=(len(y), 20))
    correct = proba[TEST].argmax(axis=1) == y[TEST]
    top = {"top": views["top"]}
    alone = auroc(correct, fitted(top, y, proba).score_samples(part(top, TEST), proba[TEST]))
    noisy = top | {"noise": noise}
    assert (
        auroc(correct, fitted(noisy, y, proba).score_samples(part(noisy, TEST), proba[TEST])) > alone - 0.01
    )


def test_views_are_known_by_name_and_not_by_place(digits, both):
    views, _, proba = digits
    swapped = {"bottom": views["bottom"][TEST], "top": views["top"][TEST]}
    side_by_side = np.hstack([views["top"], views["bottom"]])[TEST]
    trust = both.predict_trust(part(views, TEST), proba[TEST])
    np.testing.assert_array_equal(both.predict_trust(swapped, proba[TEST]), trust)
    np.testing.assert_array_equal(both.predict_trust(side_by_side, proba[TEST]), trust)


def test_experts_are_named_by_their_view(digits, both):
    views, _, proba = digits
    explained = both.explain(part(views, slice(1000, 1003)), proba[1000:1003])
    assert {name for name in explained.experts if name.startswith("20 nearest")} == {
        "20 nearest (top)", "20 nearest (top, learned metric)",
        "20 nearest (bottom)", "20 nearest (bottom, learned metric)",
    }  # fmt: skip
    assert set(both.spaces_.components) == {"top", "bottom"}


def test_words_say_what_each_view_has_to_do_with_it(digits, both):
    views, y, proba = digits
    rows = slice(1000, 1001)
    explained = both.explain(part(views, rows), proba[rows])
    (line,) = [line for line in str(explained).splitlines() if line.startswith("  neighbors")]
    total, top, bottom = map(
        float, re.search(r"\((.*)\).*: top ([-+.\d]*), bottom ([-+.\d]*)$", line).groups()
    )
    predicted, other = explained.predicted[0], explained.runner_up()[0]
    margins = explained.contributions[0, predicted] - explained.contributions[0, other]
    of_top = sum(margin for name, margin in zip(explained.experts, margins, strict=True) if "(top" in name)
    assert top == pytest.approx(of_top, abs=0.006)
    assert top + bottom == pytest.approx(total, abs=0.016)
    alone = {"top": views["top"]}
    text = str(fitted(alone, y, proba).explain(part(alone, rows), proba[rows]))
    assert not re.search(": top ", text)


def test_neighbors_in_a_view(digits, both):
    views, _, _ = digits
    rows = part(views, slice(1000, 1010))
    for view in ("top", "bottom"):
        distances, found = both.kneighbors(rows, 3, view=view)
        again = np.linalg.norm(views[view][found] - views[view][1000:1010, None, None], axis=-1)
        np.testing.assert_allclose(distances, again, atol=1e-6)
    np.testing.assert_array_equal(both.kneighbors(rows, 3)[0], both.kneighbors(rows, 3, view="top")[0])


def test_saved_and_loaded(digits, both, tmp_path):
    views, _, proba = digits
    both.save(tmp_path / "m.nagg")
    again = neighboragg.load(tmp_path / "m.nagg")
    rows = part(views, TEST)
    np.testing.assert_array_equal(
        again.predict_trust(rows, proba[TEST]), both.predict_trust(rows, proba[TEST])
    )


ERRORS = {
    "another view": (
        {"top": np.zeros((2, 32)), "left": np.zeros((2, 32))},
        "X passed to NeighborAgg has the views {'top': 32, 'left': 32}, but fit had {'top': 32, 'bottom': 32} (with "
        "the number of features of each).\nHint: pass the same views.",
    ),
    "a view too many": (
        {"top": np.zeros((2, 32)), "bottom": np.zeros((2, 32)), "left": np.zeros((2, 32))},
        "X passed to NeighborAgg has the views {'top': 32, 'bottom': 32, 'left': 32}, but fit had {'top': 32, 'bottom'"
        ": 32} (with the number of features of each).\nHint: pass the same views.",
    ),
    "other widths": (
        {"top": np.zeros((2, 31)), "bottom": np.zeros((2, 33))},
        "X passed to NeighborAgg has the views {'top': 31, 'bottom': 33}, but fit had {'top': 32, 'bottom': 32} (with "
        "the number of features of each).\nHint: pass the same views.",
    ),
    "other lengths": (
        {"top": np.zeros((2, 32)), "bottom": np.zeros((3, 32))},
        "The views of X passed to NeighborAgg must have the same number of rows. Got 'top' 2, 'bottom' 3.\n"
        "Hint: pass one vector per row in each view, in the same order.",
    ),
    "no name": (
        {"top": np.zeros((2, 32)), 1: np.zeros((2, 32))},
        "The names of the views of X passed to NeighborAgg must be str. Got 1.",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case, both):
    given, message = ERRORS[case]
    with pytest.raises(InvalidInputError) as caught:
        both.predict_trust(given, np.full((2, 10), 0.1))
    assert str(caught.value) == message


def test_other_methods_take_one_vector(digits):
    views, y, proba = digits
    with pytest.raises(InvalidInputError, match=r"is a dict with the keys 'top', 'bottom'"):
        TrustScore().fit(
            part(views, TRAIN), y[TRAIN], X_val=part(views, VAL), y_val=y[VAL], proba_val=proba[VAL]
        )


def first_half(X):
    return X[:, :32]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("cv", [None, 3])
def test_features_by_name(cv):
    X, y = load_digits(return_X_y=True)
    model = TrustedClassifier(
        LogisticRegression(max_iter=50, tol=0.1),
        NeighborAgg(effort="fast"),
        features={
            "all": "passthrough",
            "top": FunctionTransformer(first_half),
            "main": PCA(5, random_state=0),
        },
        cv=cv,
        random_state=0,
    ).fit(X[:800], y[:800])
    assert model.method_.spaces_.views == {"all": 64, "top": 32, "main": 5}
    correct = model.predict(X[800:]) == y[800:]
    assert auroc(correct, model.score_samples(X[800:])) > 0.9


def test_callables_in_a_mapping_are_not_saved(tmp_path):
    X, y = load_digits(return_X_y=True)
    model = TrustedClassifier(
        LogisticRegression(max_iter=50, tol=0.1), features={"all": "auto", "top": first_half}, random_state=0
    ).fit(X[:400], y[:400])
    with pytest.raises(InvalidParameterError, match=r"its 'features/top' is of the type builtins\.function"):
        model.save(tmp_path / "m.nagg")
