"""Familiarity: a p-value for "rows like this have been seen", its guarantee by simulation, and its edges."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.neighbors import NearestNeighbors

import neighboragg
from neighboragg import NeighborAgg
from neighboragg._pool.network import NetworkAggregator
from neighboragg._pool.pool import PoolAggregator
from neighboragg.methods._familiarity import too_many_unfamiliar
from sizes import draws

REPETITIONS = draws(100)
# Chance of a false failure per configuration, if the guarantee just holds.
LEVEL = 1e-4
# Validation rows among the reference rows, each leaving itself out, and beside them; no time is spent on trust.
AMONG, BESIDE = PoolAggregator(guard=False), NetworkAggregator(max_iter=1)


def continuous(rng, n):
    """Two classes of different spread; the classifier, a threshold on the first column, is often wrong."""
    codes = (rng.random(n) < 0.6).astype(int)
    rows = rng.normal(size=(n, 2)) * np.where(codes, 4.0, 0.5)[:, None] + codes[:, None]
    return rows, codes, np.eye(2)[(rows[:, 0] > 0.5).astype(int)]


def tied(rng, n):
    """Few different rows, so that distances tie all the time."""
    codes = rng.integers(0, 2, n)
    rows = rng.integers(0, 4, (n, 2)).astype(float) * (1 + codes[:, None])
    return rows, codes, np.eye(2)[(rows[:, 0] > 2).astype(int)]


def heavy_tailed(rng, n):
    """Rows of which a few are far from all others."""
    rows = rng.standard_t(1.5, (n, 2))
    return rows, (rows[:, 0] > 0).astype(int), np.eye(2)[(rows[:, 1] > 0).astype(int)]


def p_value_of_new_row(draw, aggregator, rng, n_train, n_val):
    rows, codes, proba = draw(rng, n_train + n_val + 1)
    train, val, new = np.split(np.arange(len(rows)), [n_train, n_train + n_val])
    method = NeighborAgg(aggregator, learned_metric=False, effort="fast").fit(
        rows[train],
        codes[train],
        X_val=rows[val],
        y_val=codes[val],
        proba_val=proba[val],
        classes=[0, 1],
    )
    return method.familiarity(rows[new], proba[new])[0], proba[new].argmax()


def too_many(alarms, trials, level):
    return alarms > binom.ppf(1 - LEVEL, trials, level)


@pytest.mark.parametrize(
    ("draw", "aggregator"),
    [(continuous, AMONG), (tied, AMONG), (heavy_tailed, AMONG), (tied, BESIDE)],
    ids=["continuous", "tied", "heavy-tailed", "tied, beside"],
)
def test_false_alarms_stay_within_the_level(draw, aggregator):
    """Validation rows beside the reference rows, and among them: both exact, over the draw of everything."""
    rng = np.random.default_rng(0)
    p = np.array([p_value_of_new_row(draw, aggregator, rng, 25, 39)[0] for _ in range(REPETITIONS)])
    for level in (0.025, 0.05, 0.1, 0.2, 0.5):
        assert not too_many((p <= level).sum(), REPETITIONS, level)
    if draw is not tied:
        assert (p <= 0.2).mean() > 0.1  # not so by never giving an alarm


def test_false_alarms_stay_within_the_level_in_every_predicted_class():
    rng = np.random.default_rng(1)
    found = [p_value_of_new_row(continuous, AMONG, rng, 40, 320) for _ in range(REPETITIONS)]
    p, predicted = map(np.array, zip(*found, strict=True))
    for c in (0, 1):
        mine = p[predicted == c]
        assert len(mine) > 0.3 * REPETITIONS
        for level in (0.01, 0.05, 0.2):
            assert not too_many((mine <= level).sum(), len(mine), level)
        assert (mine <= 0.2).mean() > 0.1


@pytest.fixture
def rows():
    return np.random.default_rng(2).normal(size=(260, 3))


def fitted(rows, n_val=120, method=None, **params):
    """The last rows are validation rows; one class is predicted for all."""
    codes = np.arange(len(rows)) % 3
    proba = np.tile([0.5, 0.3, 0.2], (n_val, 1))
    method = NeighborAgg(learned_metric=False, **params) if method is None else method
    return method.fit(
        rows[:-n_val], codes[:-n_val], X_val=rows[-n_val:], y_val=codes[-n_val:], proba_val=proba
    )


def strange(reference, rows, k=5):
    return np.log(NearestNeighbors(n_neighbors=k).fit(reference).kneighbors(rows)[0]).mean(axis=1)


def test_it_is_the_share_of_validation_rows_at_least_as_far_from_their_neighbors(rows):
    new = 2.0 * np.random.default_rng(3).normal(size=(40, 3))
    seen = np.array([strange(np.delete(rows, i, axis=0), rows[[i]])[0] for i in range(140, 260)])
    expected = (1 + (seen >= strange(rows, new)[:, None]).sum(axis=1)) / 121
    found = fitted(rows).familiarity(new, np.full((40, 3), 1 / 3))
    np.testing.assert_allclose(found, expected)
    assert found.min() < 0.05 < 0.5 < found.max()


def test_it_is_never_below_the_p_value_of_full_conformal_prediction(rows):
    """Where the new row is a reference row too, all are treated alike, which makes that one exact."""
    method = fitted(rows)
    for new in 1.5 * np.random.default_rng(4).normal(size=(5, 3)):
        everything = np.vstack([rows, new])
        all_strange = np.array(
            [strange(np.delete(everything, i, axis=0), everything[[i]])[0] for i in range(140, 261)]
        )
        full = (all_strange >= all_strange[-1]).mean()
        assert method.familiarity([new], [[1 / 3] * 3])[0] >= full - 1e-12


def test_both_metrics_count(rows):
    """A row may be far in the features and near in the learned metric: the first column tells the classes apart."""
    codes = (rows[:, 0] > 0).astype(int)
    proba = np.full((100, 2), 0.5)
    method = NeighborAgg().fit(rows[:160], codes[:160], X_val=rows[160:], y_val=codes[160:], proba_val=proba)
    far = method.familiarity([[1.0, 9.0, 0.0], [9.0, 0.0, 0.0], [0.3, 0.1, -0.1]], proba[:3])
    assert far[0] == far[1] == 1 / 101
    assert far[2] > 0.2


def test_predicted_classes_with_enough_rows_are_compared_with_their_own():
    rng = np.random.default_rng(5)
    n = 400
    wide = np.arange(n) % 2 == 1
    rows = rng.normal(size=(n, 2)) * np.where(wide, 10.0, 0.1)[:, None]
    proba = np.eye(2)[wide.astype(int)]
    method = NeighborAgg(learned_metric=False).fit(
        rows[:100], wide[:100], X_val=rows[100:], y_val=wide[100:], proba_val=proba[100:]
    )
    among_the_wide, among_the_narrow = method.familiarity([[3.0, 3.0]] * 2, [[0.1, 0.9], [0.9, 0.1]])
    assert among_the_narrow == 1 / 151
    assert among_the_wide > 0.3
    np.testing.assert_array_equal(method.familiarity_.least(), [1 / 151] * 2)


def test_predicted_classes_with_few_rows_are_compared_together():
    rows = np.random.default_rng(6).normal(size=(500, 2))
    predicted = np.repeat([0, 1, 2, 3], [250, 120, 20, 10])
    method = NeighborAgg(learned_metric=False).fit(
        rows[:100], np.arange(100) % 4, X_val=rows[100:], y_val=predicted, proba_val=np.eye(4)[predicted]
    )
    # Classes 2 and 3 are 30 rows, too few, and join class 1; but class 0 stands alone.
    np.testing.assert_allclose(method.familiarity_.least(), [1 / 251, 1 / 151, 1 / 151, 1 / 151])


def test_the_grouping_is_the_same_whichever_row_is_new():
    """99 rows and a new one are a group of 100: with one of the others as the new row, the groups must not change."""
    rows = np.random.default_rng(7).normal(size=(400, 2))
    least = []
    for first in (98, 99, 100):
        predicted = np.repeat([0, 1], [first, 200])
        used = rows[: 100 + len(predicted)]
        method = NeighborAgg(learned_metric=False).fit(
            used[:100], np.arange(100) % 2, X_val=used[100:], y_val=predicted, proba_val=np.eye(2)[predicted]
        )
        least.append(method.familiarity_.least())
    np.testing.assert_allclose(least[0], [1 / 299, 1 / 299])  # 98 + 200 rows compared together
    np.testing.assert_allclose(
        least[1], [1 / 100, 1 / 300]
    )  # the 99 belong to a group of 100 only with a new one
    np.testing.assert_allclose(least[2], [1 / 101, 1 / 201])


def test_a_row_seen_before_is_as_familiar_as_can_be(rows):
    assert (fitted(rows).familiarity(rows[:50], np.full((50, 3), 1 / 3)) == 1).all()


@pytest.mark.parametrize("aggregator", ["pool", "network"])
def test_a_row_of_fit_has_been_seen_though_it_is_not_its_own_neighbor(rows, aggregator):
    """Were it left out here too, new rows that copy it would be less familiar than validation rows that are copies."""
    lonely = np.vstack([[[50.0, 50.0, 50.0]], rows])
    method, proba = fitted(lonely, aggregator=aggregator), [[1 / 3] * 3]
    assert method.familiarity(lonely[:1], proba)[0] == 1
    assert method.familiarity(lonely[:1], proba, exclude=np.array([0]))[0] == 1
    assert method.familiarity(lonely[:1] + 1, proba)[0] == 1 / 121


def test_doubt_counts_as_well_as_distance():
    """Classes are 6 apart; where the classifier is sure of all validation rows, doubt alone is unusual."""
    rng = np.random.default_rng(9)
    codes = np.arange(600) % 2
    rows = rng.normal(size=(600, 2)) + 6.0 * codes[:, None]
    sure = rng.uniform(0.95, 1.0, 600)
    proba = np.where(codes == 1, [1 - sure, sure], [sure, 1 - sure]).T
    method = NeighborAgg(learned_metric=False, effort="fast").fit(
        rows[:200], codes[:200], X_val=rows[200:], y_val=codes[200:], proba_val=proba[200:]
    )
    usual, doubtful, far = method.familiarity(
        [[1.0, 1.0], [1.0, 1.0], [9.0, -9.0]], [[0.98, 0.02], [0.5, 0.5], [0.98, 0.02]]
    )
    assert usual > 0.3
    assert doubtful < 0.5 * usual
    assert far == method.familiarity_.least()[0]


def directions(rng, n, zero_rows=0):
    """Unit vectors of 6 dimensions, the first ones replaced by zero."""
    rows = rng.normal(size=(n, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[:zero_rows] = 0.0
    return rows


def test_a_direction_of_length_zero_is_unfamiliar_by_definition():
    method = fitted(directions(np.random.default_rng(10), 260))
    p = method.familiarity(np.zeros((2, 6)), [[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(p, 1 / 121)


def test_among_rows_of_any_length_zero_is_a_place_like_others(rows):
    assert fitted(rows).familiarity(np.zeros((1, 3)), [[0.5, 0.3, 0.2]])[0] > 0.3


def test_rows_of_length_zero_among_validation_rows_tie_with_new_ones():
    rows = directions(np.random.default_rng(11), 260, 10)[np.r_[10:250, 0:10, 250:260]]
    method = fitted(rows)  # ten of the last 120 are zero
    assert method.familiarity(np.zeros((1, 6)), [[0.5, 0.3, 0.2]])[0] == 11 / 121


def test_rows_beyond_all_numbers_are_unfamiliar(rows):
    huge = np.array([[1e150, -1e150, 1e150], [3e38, 0.0, 0.0]])
    assert (fitted(rows).familiarity(huge, np.full((2, 3), 1 / 3)) == 1 / 121).all()


def test_few_rows_say_little(rows):
    method = NeighborAgg().fit(
        rows[:2], [0, 1], X_val=rows[2:4], y_val=[0, 1], proba_val=np.full((2, 2), 0.5)
    )
    np.testing.assert_array_equal(method.familiarity([[9.0, 9.0, 9.0]], [[0.5, 0.5]]), [1.0])


@pytest.mark.parametrize("k", [1, 3])
def test_with_fewer_neighbors_per_class_as_many_count(rows, k):
    new = 2.0 * np.random.default_rng(8).normal(size=(30, 3))
    seen = np.array([strange(np.delete(rows, i, axis=0), rows[[i]], k)[0] for i in range(140, 260)])
    expected = (1 + (seen >= strange(rows, new, k)[:, None]).sum(axis=1)) / 121
    found = fitted(rows, n_neighbors=k).familiarity(new, np.full((30, 3), 1 / 3))
    np.testing.assert_allclose(found, expected)


def test_an_aggregator_without_neighbors_makes_no_difference(rows):
    new, proba = 2.0 * rows[:30], np.full((30, 3), 1 / 3)
    both = [
        fitted(rows, method=NeighborAgg(NetworkAggregator(inputs=inputs), n_neighbors=7))
        for inputs in ("proba", "both")
    ]
    alone, together = (method.familiarity(new, proba) for method in both)
    np.testing.assert_array_equal(alone, together)
    assert len(np.unique(alone)) > 3


def test_out_of_fold_probabilities(rows):
    method = NeighborAgg().fit(rows, np.arange(260) % 3, proba_val=np.full((260, 3), 1 / 3))
    inside, outside = method.familiarity([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]], np.full((2, 3), 1 / 3))
    assert outside == 1 / 131  # half of the rows were shown to the learned metric
    assert inside > 0.5


def test_trust_and_familiarity_are_those_of_the_single_methods(rows):
    method, new, proba = fitted(rows), 2.0 * rows[:50], np.full((50, 3), 1 / 3)
    trust, familiarity = method.trust_and_familiarity(new, proba)
    np.testing.assert_array_equal(trust, method.predict_trust(new, proba))
    np.testing.assert_array_equal(familiarity, method.familiarity(new, proba))
    one_by_one = [method.familiarity(new[[i]], proba[[i]])[0] for i in range(50)]
    np.testing.assert_array_equal(familiarity, one_by_one)


def test_it_is_saved(rows, tmp_path):
    method = fitted(rows)
    method.save(tmp_path / "method.nagg")
    again = neighboragg.load(tmp_path / "method.nagg")
    new, proba = 2.0 * rows[:50], np.full((50, 3), 1 / 3)
    np.testing.assert_array_equal(again.familiarity(new, proba), method.familiarity(new, proba))
    np.testing.assert_array_equal(again.predict_trust(new, proba), method.predict_trust(new, proba))


def test_an_explanation_tells_it(rows):
    told = str(fitted(rows).explain([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]], [[0.5, 0.3, 0.2]] * 2))
    assert "more unusual than 99.2% of the validation rows: unlike the rows seen so far (0.008)" in told
    assert ": like rows seen so far (" in told


@pytest.mark.parametrize(("n_compared", "n_new"), [(99, 1000), (99, 20), (1000, 50)])
def test_a_batch_that_belongs_is_hardly_ever_called_foreign(n_compared, n_new):
    """Rows compared with are drawn anew each time, since one model with few of them has more alarms than another."""
    rng = np.random.default_rng(12)
    n_draws = draws(1000, 20_000)
    called = 0
    for _ in range(n_draws):
        compared = np.sort(rng.normal(size=n_compared))
        p = (1.0 + n_compared - compared.searchsorted(rng.normal(size=n_new))) / (1.0 + n_compared)
        called += too_many_unfamiliar(p, 1 / (1 + n_compared)) is not None
    assert not too_many(called, n_draws, 1e-3)


def test_a_batch_that_does_not_belong_is_noticed():
    p = np.r_[np.full(61, 0.01), np.linspace(0.06, 1, 39)]
    assert too_many_unfamiliar(p, 0.01) == (0.61, 0.05)
    assert too_many_unfamiliar(np.linspace(0.01, 1, 100), 0.01) is None
    assert too_many_unfamiliar(np.full(100, 0.1), 0.1) is None  # no row can be unfamiliar
    assert too_many_unfamiliar(np.empty(0), 0.01) is None
