"""Tables to vectors: taming, categories, missing values, sparse matrices."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.special import ndtri
from sklearn.exceptions import NotFittedError

import neighboragg
from neighboragg.exceptions import InvalidInputError
from neighboragg.features import TabularFeatures
from neighboragg.features._quantiles import QuantileScores
from sizes import examples


class TestQuantileScores:
    @examples(50)
    @given(arrays(np.float64, (30, 2), elements=st.floats(-1e6, 1e6)))
    def test_monotone_and_bounded(self, X):
        scores = QuantileScores().fit_transform(X)
        assert np.abs(scores).max() <= 3
        for j in range(2):
            assert (np.diff(scores[np.argsort(X[:, j], kind="stable"), j]) >= -1e-9).all()

    def test_an_outlier_moves_nothing_else(self):
        X = np.random.default_rng(0).normal(size=(500, 1))
        wild = X.copy()
        wild[X.argmax()] = 1e9
        np.testing.assert_allclose(
            QuantileScores().fit_transform(X), QuantileScores().fit_transform(wild), atol=0.5
        )

    def test_keeps_the_scale_if_asked(self):
        X = np.random.default_rng(0).normal(size=(1000, 2)) * [1.0, 10.0]
        spread = QuantileScores(standardize=False).fit_transform(X).std(axis=0)
        assert spread[1] / spread[0] == pytest.approx(10, rel=0.1)

    def test_two_values_become_zero_and_the_mean_spread(self):
        X = np.column_stack([np.arange(10.0), np.r_[np.zeros(9), 5.0]])
        scores = QuantileScores().fit_transform(X)
        assert set(scores[:, 1]) == {0.0, 1.0}

    def test_missing_values_are_the_median(self):
        X = np.array([[1.0], [2.0], [3.0], [np.nan]])
        assert QuantileScores().fit_transform(X)[3, 0] == 0

    def test_a_column_of_nothing(self):
        assert (QuantileScores().fit_transform(np.full((4, 1), np.nan)) == 0).all()

    @examples(50)
    @given(
        arrays(
            np.float64,
            (40, 3),
            elements=st.sampled_from([-2.0, -0.0, 0.5, 1e-310, 7.0, 1e308, -1e308, np.nan]),
        ),
        arrays(np.float64, (60, 3), elements=st.floats(allow_nan=True, allow_infinity=True)),
    )
    def test_one_row_or_many_give_the_bits_of_interpolation(self, X, new):
        rows = np.concatenate([new, X, np.nextafter(X, np.inf)])
        grid = np.linspace(0, 1, 256)
        with np.errstate(over="ignore", invalid="ignore"):
            scorer = QuantileScores().fit(X)
            many = scorer.transform(rows)
            one_by_one = np.concatenate([scorer.transform(row[None]) for row in rows])
            for j in np.flatnonzero(~scorer.is_binary_):
                steps = scorer.quantiles_[:, j]
                last = np.interp(rows[:, j], steps, grid)
                first = 1.0 - np.interp(-rows[:, j], -steps[::-1], grid)
                score = ndtri(np.clip(0.5 * (first + last), 1e-6, 1 - 1e-6))
                expected = np.nan_to_num(np.clip(score, -3, 3) * scorer.weight_[j], nan=0.0)
                assert many[:, j].tobytes() == expected.tobytes()
        assert many.tobytes() == one_by_one.tobytes()

    def test_another_fit_forgets_the_first(self):
        X = np.random.default_rng(0).normal(size=(50, 2))
        scorer = QuantileScores().fit(X)
        scorer.transform(X[:1])
        other = 10 + X[:, :1]
        again, fresh = (
            scorer.fit(other).transform(other[:1]),
            QuantileScores().fit(other).transform(other[:1]),
        )
        np.testing.assert_array_equal(again, fresh)

    def test_many_rows_are_sampled(self):
        X = np.random.default_rng(0).normal(size=(30_000, 1))
        assert QuantileScores().fit_transform(X).std() == pytest.approx(1, abs=0.05)


class TestTabularFeatures:
    def test_a_mismatch_weighs_like_one_standard_deviation(self):
        X = pd.DataFrame({"color": ["red", "blue", "red"]})
        vectors = TabularFeatures().fit_transform(X)
        assert np.linalg.norm(vectors[0] - vectors[1]) == pytest.approx(1)

    def test_unseen_categories_are_zero(self):
        features = TabularFeatures().fit(pd.DataFrame({"c": ["a", "b"]}))
        assert (features.transform(pd.DataFrame({"c": ["z"]})) == 0).all()

    def test_missing_numbers_get_a_column(self):
        X = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, 9.0]])
        vectors = TabularFeatures().fit_transform(X)
        np.testing.assert_array_equal(vectors[:, 2], [0, 1, 0])

    def test_pandas_polars_and_objects_agree(self):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "c": ["a", "b", "a"], "n": [3, 1, 2]})
        expected = TabularFeatures().fit_transform(frame)
        np.testing.assert_array_equal(TabularFeatures().fit_transform(pl.from_pandas(frame)), expected)
        np.testing.assert_array_equal(TabularFeatures().fit_transform(frame.to_numpy(dtype=object)), expected)

    def test_dates_nullable_integers_and_missing_categories(self):
        frame = pd.DataFrame(
            {
                "when": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
                "count": pd.array([1, None, 3], dtype="Int64"),
                "kind": ["a", None, "b"],
            }
        )
        vectors = TabularFeatures().fit_transform(frame)
        assert vectors.shape == (3, 2 + 2 + 3)
        assert np.isfinite(vectors).all()

    def test_narrow_sparse_equals_dense(self):
        X = sparse.random(50, 20, 0.2, random_state=0, format="csr")
        np.testing.assert_array_equal(
            TabularFeatures().fit_transform(X), TabularFeatures().fit_transform(X.toarray())
        )

    def test_wide_sparse_is_reduced(self, tmp_path):
        X = sparse.random(300, 1000, 0.05, random_state=0, format="csr")
        features = TabularFeatures().fit(X)
        assert features.transform(X).shape == (300, 100)
        features.save(tmp_path / "features.nagg")
        again = neighboragg.load(tmp_path / "features.nagg")
        np.testing.assert_array_equal(again.transform(X), features.transform(X))

    def test_saved_and_loaded_it_is_the_same(self, tmp_path):
        frame = pd.DataFrame({"x": [1.0, np.nan, 3.0, 4.0], "c": ["a", "b", "a", "c"]})
        features = TabularFeatures().fit(frame)
        features.save(tmp_path / "features.nagg")
        again = neighboragg.load(tmp_path / "features.nagg")
        np.testing.assert_array_equal(again.transform(frame), features.transform(frame))

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            TabularFeatures().transform([[1.0]])

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (np.ones((2, 3)), "X passed to TabularFeatures has 3 features, but 2 were seen in fit."),
            (
                np.ones(2),
                "X passed to TabularFeatures must have two dimensions. Got shape (2,).\n"
                "Hint: X.reshape(1, -1) for a single row, X.reshape(-1, 1) for a single column.",
            ),
            (
                np.array([["a", 1], ["b", 2]], dtype=object),
                "Column 0 of X contained only numbers in fit, but now contains 'a' in row 0.\n"
                "Hint: convert the column, or fit again with rows like this one.",
            ),
        ],
        ids=["width", "1-D", "kind"],
    )
    def test_refusals(self, X, message):
        features = TabularFeatures().fit(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]))
        with pytest.raises(InvalidInputError) as error:
            features.transform(X)
        assert str(error.value) == message


def test_too_many_categories_leave_the_most_frequent():
    frequent = ["a", "b", "c"] * 20
    column = np.array([*frequent, *(f"once {i}" for i in range(60)), "b"], dtype=object)[:, None]
    features = TabularFeatures(max_categories=10).fit(column)
    assert features.categories_ == {0: ["a", "b", "c"]}
    assert TabularFeatures(max_categories=2).fit(column).categories_ == {0: ["a", "b"]}
    assert len(TabularFeatures().fit(column).categories_[0]) == 63
    vectors = features.transform(np.array([["a"], ["once 3"], ["new"]], dtype=object))
    assert (vectors[0] != 0).sum() == 1
    np.testing.assert_array_equal(vectors[1:], 0.0)


def test_an_identifier_says_nothing(tmp_path):
    rows = np.array([[f"id {i}", i % 3] for i in range(200)], dtype=object)
    features = TabularFeatures().fit(rows)
    assert features.categories_[0] == []
    assert features.transform(rows).shape == (200, 1)
    features.save(tmp_path / "features.nagg")
    again = neighboragg.load(tmp_path / "features.nagg")
    np.testing.assert_array_equal(again.transform(rows), features.transform(rows))
    assert again.max_categories == 100
