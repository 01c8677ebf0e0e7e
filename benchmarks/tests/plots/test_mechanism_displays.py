"""Figures of how the method works: weights, trust by density, trust over a plane."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LogisticRegression

from benchmarks.plots import NetworkWeightsDisplay, TrustByDensityDisplay, TrustSurfaceDisplay
from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg.exceptions import InvalidInputError, InvalidParameterError


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return TrustedClassifier(
        LogisticRegression(max_iter=500), NeighborAgg("network", n_neighbors=4), random_state=0
    ).fit(X, y)


def test_weights_are_those_of_the_network(iris):
    display = NetworkWeightsDisplay.from_aggregator(iris.method_.aggregator_)
    left, right = display.axes_
    np.testing.assert_array_equal(left.images[0].get_array(), iris.method_.aggregator_.W_h_)
    np.testing.assert_array_equal(right.images[0].get_array(), iris.method_.aggregator_.W_p_)
    assert left.get_xlabel() == "Neighbors, 4 of each class"
    assert f"{display.correlation:.2f}" in right.get_title()


def test_correlation_is_over_diagonal_blocks():
    rng = np.random.default_rng(0)
    blocks, diagonal = rng.normal(size=(5, 5, 3)), rng.normal(size=(5, 5))
    display = NetworkWeightsDisplay(blocks.reshape(5, 15), diagonal)
    means = [blocks[c, c].mean() for c in range(5)]
    assert display.correlation == pytest.approx(np.corrcoef(means, np.diag(diagonal))[0, 1])
    assert np.isnan(NetworkWeightsDisplay(np.ones((2, 4)), np.eye(2)).correlation)


@pytest.mark.parametrize("shapes", [((3, 7), (3, 3)), ((3, 6), (3, 2)), ((2, 6), (3, 3))])
def test_weights_of_other_shapes(shapes):
    with pytest.raises(InvalidParameterError, match="must be matrices of shape"):
        NetworkWeightsDisplay(*(np.zeros(shape) for shape in shapes))


def test_means_by_density(legend_of):
    rng = np.random.default_rng(0)
    density, trust, confidence = rng.random((3, 400))
    correct = rng.random(400) < 0.7
    display = TrustByDensityDisplay(correct, trust, confidence, density, n_bins=4).plot()
    inside = (density >= display.edges[1]) & (density < display.edges[2])
    assert display.trust[True][1] == pytest.approx(trust[inside & correct].mean())
    assert display.confidence[False][1] == pytest.approx(confidence[inside & ~correct].mean())
    np.testing.assert_array_equal(display.ax_.lines[0].get_ydata(), display.trust[True])
    assert legend_of(display) == ["trust, right", "confidence, right", "trust, wrong", "confidence, wrong"]


def test_no_wrong_predictions_and_one_density():
    display = TrustByDensityDisplay([1, 1, 1], [0.5, 0.6, 0.7], [0.9] * 3, [2.0] * 3).plot()
    assert display.trust[True] == pytest.approx([0.6])
    assert np.isnan(display.trust[False]).all()


def test_density_of_every_row():
    with pytest.raises(InvalidInputError, match="one finite number per row"):
        TrustByDensityDisplay([1, 0], [0.5, 0.5], [0.5, 0.5], [1.0, np.nan])


def test_surfaces_are_what_the_model_says():
    X, y = make_moons(300, noise=0.15, random_state=0)
    model = TrustedClassifier(LogisticRegression(), NeighborAgg(effort="fast"), random_state=0).fit(X, y)
    display = TrustSurfaceDisplay.from_estimator(model, X, y, resolution=12)
    corner = model.assess([[display.x[-1], display.y[0]]])
    assert display.trust[0, -1] == pytest.approx(corner.trust[0], rel=1e-6)
    assert display.confidence[0, -1] == pytest.approx(corner.probability[0])
    assert [axes.get_title() for axes in display.axes_] == ["Confidence", "Trust"]
    assert display.x[0] < X[:, 0].min()
    assert display.y[-1] > X[:, 1].max()


def test_a_plane_has_two_directions(iris):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidInputError, match=r"two features. Got an array of shape \(150, 4\)"):
        TrustSurfaceDisplay.from_estimator(iris, X, y)
