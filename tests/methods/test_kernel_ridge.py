"""Kernel ridge with landmarks: leave-one-out by formula is leave-one-out by refitting."""

import numpy as np
import pytest

import neighboragg
from neighboragg import NeighborAgg
from neighboragg._pool import kernel_ridge as _kernel_ridge
from neighboragg._pool.kernel_ridge import (
    JITTER,
    RIDGES,
    LinearMap,
    as_probabilities,
    distances_between,
    fit_kernel_ridge,
    kernel,
    learn_gradient_map,
)
from neighboragg.exceptions import NeighborAggError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
CODES = (X[:, 0] + 0.3 * RNG.normal(size=90) > 0).astype(int) + (X[:, 1] > 1)
JUDGED = np.arange(60, 90)
NOBODY = np.full(90, -1)
OPINIONS = ["kernel", "smooth kernel", "forest", "extra trees", "boosting"]


def fit(n_landmarks=90, X=X, codes=CODES):
    return fit_kernel_ridge(X, codes, 3, JUDGED, space=LinearMap.scaling(X), n_landmarks=n_landmarks, seed=0)


def ridge_of(model):
    """The ridge that was chosen, from its definition of the coefficients."""
    near = kernel(model.space.apply(X), model.landmarks, model.width)
    among = kernel(model.landmarks, model.landmarks, model.width) + JITTER * np.eye(len(model.landmarks))
    target = np.eye(3)[CODES] - model.prior
    solved = [np.linalg.solve(near.T @ near + ridge * among, near.T @ target) for ridge in RIDGES]
    gaps = [np.abs(near @ (candidate - model.coefficients)).max() for candidate in solved]
    assert min(gaps) < 1e-6
    return RIDGES[int(np.argmin(gaps))], near, among, target


@pytest.mark.parametrize("n_landmarks", [90, 30])
def test_left_out_is_as_if_never_seen(n_landmarks):
    model, said = fit(n_landmarks)
    ridge, near, among, target = ridge_of(model)
    for position, row in enumerate(JUDGED[:8]):
        others = np.arange(90) != row
        gram = near[others].T @ near[others] + ridge * among
        answer = model.prior + near[row] @ np.linalg.solve(gram, near[others].T @ target[others])
        np.testing.assert_allclose(said[position], as_probabilities(answer[None])[0], atol=1e-6)


def test_the_ridge_is_the_best_on_judged_rows():
    ridge, near, among, target = ridge_of(fit(30)[0])
    losses = []
    for other in RIDGES:
        hat = near @ np.linalg.solve(near.T @ near + other * among, near.T)
        own = np.diag(hat)[:, None]
        left = (hat @ target - own * target) / (1 - own)
        losses.append(((left - target)[JUDGED] ** 2).sum())
    assert ridge == RIDGES[int(np.argmin(losses))]


def test_rows_of_fit_asked_again_leave_themselves_out():
    model, said = fit(40)
    np.testing.assert_allclose(model.predict_proba(X[JUDGED], CODES[JUDGED]), said, atol=1e-9)
    knows = model.predict_proba(X, NOBODY)[np.arange(90), CODES].mean()
    assert knows > said[np.arange(30), CODES[JUDGED]].mean()


def test_learns():
    _, said = fit()
    assert (said.argmax(axis=1) == CODES[JUDGED]).mean() > 0.75
    np.testing.assert_allclose(said.sum(axis=1), 1.0)
    assert (said >= 0).all()


def test_in_blocks(monkeypatch):
    model, said = fit(40)
    monkeypatch.setattr("neighboragg._pool.kernel_ridge.BLOCK_ELEMENTS", 400)
    other, again = fit(40)
    np.testing.assert_allclose(again, said, atol=1e-9)
    np.testing.assert_allclose(other.predict_proba(X, NOBODY), model.predict_proba(X, NOBODY), atol=1e-9)


@pytest.mark.parametrize(("n_elements", "size"), [(400, 10), (10_000, 192), (40 * 192, 192), (100, 2)])
def test_blocks_are_whole_tiles(monkeypatch, n_elements, size):
    """So that no row is among the last of a product, which are rounded in another way, but at the very end."""
    monkeypatch.setattr(_kernel_ridge, "BLOCK_ELEMENTS", n_elements)
    blocks = list(_kernel_ridge._blocks(np.empty((500, 3)), 40, 3))
    assert [block.start for block in blocks] == list(range(0, 500, size))


def test_arrays_lie_in_memory_as_in_a_file():
    """Else a product of the same numbers may have other bits."""
    model, _ = fit(40)
    turned = LinearMap.scaling(X).followed_by(np.asfortranarray(RNG.normal(size=(3, 3))))
    for array in (model.landmarks, model.coefficients, model.root, turned.matrix):
        assert array.flags.c_contiguous


def test_kernel_by_hand():
    distances = np.linalg.norm(X[:5, None] - X, axis=2)
    for power in (1.0, 2.0):
        expected = np.exp(-((distances / 0.7) ** power))
        np.testing.assert_allclose(kernel(X[:5], X, 0.7, power), expected, atol=2e-3)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_width_is_the_best_on_judged_rows(power):
    def loss_and_width(widths):
        model, said = fit_kernel_ridge(
            X,
            CODES,
            3,
            JUDGED,
            space=LinearMap.scaling(X),
            n_landmarks=40,
            seed=0,
            power=power,
            widths=widths,
        )
        np.testing.assert_allclose(model.predict_proba(X[JUDGED], CODES[JUDGED]), said, atol=1e-6)
        return ((said - np.eye(3)[CODES[JUDGED]]) ** 2).sum(), model.width

    alone = [loss_and_width([width]) for width in (0.02, 0.5, 30.0)]
    assert loss_and_width([0.02, 0.5, 30.0])[1] == min(alone)[1]


def test_labels_are_never_the_answer(monkeypatch):
    monkeypatch.setattr(
        "neighboragg._pool.kernel_ridge.without_itself", lambda fitted, *_: np.full_like(fitted, np.nan)
    )
    with pytest.raises(
        NeighborAggError, match=("does not give finite predictions for the 30 rows that choose its ridge")
    ):
        fit()


def test_distances():
    found = distances_between(X[:5], X)
    np.testing.assert_allclose(found, np.linalg.norm(X[:5, None] - X, axis=2), atol=2e-3)
    assert found.min() > 0


class TestGradientMap:
    def test_stretches_what_matters(self):
        rng = np.random.default_rng(1)
        rows = rng.normal(size=(600, 6))
        space = learn_gradient_map(rows, (rows[:, 2] > 0).astype(int), 2, seed=0)
        lengths = np.linalg.norm(space.matrix, axis=1)
        assert lengths.argmax() == 2
        assert lengths[2] > 3 * np.delete(lengths, 2).max()

    def test_unit_of_the_features_does_not_matter(self):
        rng = np.random.default_rng(1)
        rows = rng.normal(size=(200, 4))
        codes = (rows[:, 2] > 0).astype(int)
        small, large = (learn_gradient_map(rows * unit, codes, 2, seed=0) for unit in (2.0**-300, 2.0**300))
        np.testing.assert_allclose(
            small.apply(rows * 2.0**-300), large.apply(rows * 2.0**300), rtol=1e-6, atol=1e-9
        )

    def test_wide_rows_are_turned_to_fewer_columns(self):
        rng = np.random.default_rng(1)
        rows = rng.normal(size=(300, 400))
        rows[:, 5] *= 20
        space = learn_gradient_map(rows, (rows[:, 5] > 0).astype(int), 2, seed=0)
        assert space.matrix.shape == (400, 128)
        assert np.linalg.norm(space.matrix, axis=1).argmax() == 5

    def test_rows_that_are_all_equal(self):
        space = learn_gradient_map(np.ones((20, 3)), np.arange(20) % 2, 2, seed=0)
        assert np.isfinite(space.apply(np.ones((2, 3)))).all()


class TestInThePool:
    def test_named_or_by_effort(self):
        P = np.full((90, 3), 1 / 3)
        default = NeighborAgg().fit(X, CODES, proba_val=P)
        named = NeighborAgg(second_opinions=["kernel"]).fit(X, CODES, proba_val=P)
        assert default.aggregator_.expert_names[-1] == "kernel"
        np.testing.assert_array_equal(default.predict_trust(X, P), named.predict_trust(X, P))
        fast, none = (
            NeighborAgg(**params).fit(X, CODES, proba_val=P).predict_trust(X, P)
            for params in ({"effort": "fast"}, {"second_opinions": None})
        )
        np.testing.assert_array_equal(fast, none)
        assert (fast != default.predict_trust(X, P)).any()

    @pytest.mark.full
    def test_all_of_them(self, tmp_path):
        P = np.full((90, 3), 1 / 3)
        method = NeighborAgg(effort="best").fit(X, CODES, proba_val=P)
        assert method.aggregator_.expert_names[-len(OPINIONS) :] == OPINIONS
        assert list(method.explain(X[:1], P[:1]).opinions) == OPINIONS
        method.save(tmp_path / "best")
        again = neighboragg.load(tmp_path / "best").predict_trust(X, P)
        np.testing.assert_array_equal(again, method.predict_trust(X, P))

    def test_the_network_listens_to_nobody(self):
        method = NeighborAgg("network", effort="best").fit(X, CODES, proba_val=np.full((90, 3), 1 / 3))
        assert method.opinions_ == []

    def test_labels_at_random_are_not_repeated(self):
        """Rows of fit know their own labels; asked without themselves, they must not."""
        labels = np.random.default_rng(3).integers(0, 3, 90)
        P = np.full((90, 3), 1 / 3)
        method = NeighborAgg(learned_metric=False, second_opinions=["kernel"]).fit(X, labels, proba_val=P)
        (kernel,) = method.opinions_
        assert (kernel.predict_proba(X, np.arange(90)).argmax(axis=1) == labels).mean() < 0.5
        left = method.predict_trust(X, P, exclude=np.arange(90))[np.arange(90), labels].mean()
        assert left < 0.45
