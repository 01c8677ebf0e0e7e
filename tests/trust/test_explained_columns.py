"""Explanations name only columns that reach the vectors, and say when values of neighbors are not at hand."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from neighboragg import TrustedClassifier, load
from neighboragg.exceptions import TrustWarning

NOT_STORED = "The values of the reference rows are not stored with the model."


@pytest.fixture(scope="module")
def customers():
    X, y = make_classification(300, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=1)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.insert(0, "id", [f"SECRET-{i}" for i in range(300)])
    frame["region"] = pd.Categorical(rng.choice(["north", "south"], 300))
    frame["phone"] = 5550000.0 + rng.permutation(300)
    frame["vip"] = np.repeat([0, 1, 0, 1], [100, 2, 148, 50])  # rare among the rows of fit
    return frame, y


def classifier():
    kept = ColumnTransformer(
        [("numbers", StandardScaler(), [*"abc", "vip"]), ("regions", OneHotEncoder(), ["region"])],
        remainder="drop",
    )
    return make_pipeline(kept, LogisticRegression())


def fitted(customers, **settings):
    frame, y = customers
    return TrustedClassifier(classifier(), random_state=0, **settings).fit(frame[:250], y[:250])


def columns_named(explanation):
    return set(re.findall(r"[(;] ?(\w+) [^ ,]+, here", str(explanation)))


def all_shown(explanation):
    return str(explanation) + explanation._repr_html_() + explanation.to_frame().to_csv()


def test_columns_that_the_pipeline_drops_are_not_shown(customers):
    explanation = fitted(customers).explain(customers[0][250:])
    assert "SECRET" not in all_shown(explanation)
    assert "phone" not in all_shown(explanation)
    assert columns_named(explanation) == {"a", "b", "c", "region", "vip"}


def test_columns_that_a_callable_leaves_out_are_not_shown(customers):
    model = fitted(customers, features=lambda X: X[["d", "e"]].to_numpy())
    assert columns_named(model.explain(customers[0][250:])) == {"d", "e"}


def test_noise_in_the_vectors_makes_no_column_count(customers):
    rng = np.random.default_rng(0)
    model = fitted(customers, features=lambda X: X[["a"]].to_numpy() + 1e-6 * rng.uniform(size=(len(X), 1)))
    assert columns_named(model.explain(customers[0][250:])) == {"a"}


def test_dropped_columns_of_a_polars_frame_are_not_shown(customers):
    polars = pytest.importorskip("polars")
    frame, y = customers
    rows = polars.DataFrame({name: frame[name].tolist() for name in frame.columns})
    explanation = fitted((rows, y)).explain(rows[250:])
    assert "SECRET" not in all_shown(explanation)
    assert columns_named(explanation) == {"a", "b", "c", "region", "vip"}


def test_neighbors_that_differ_only_in_dropped_columns(customers):
    frame, y = customers
    rows = frame.assign(**dict.fromkeys("abc", 0.0), vip=0)
    words = str(fitted((rows, y)).explain(rows[250:251]))
    assert "(equal in all columns used)" in words
    assert "here" not in words


def test_a_column_that_was_constant_in_fit(customers):
    frame, y = customers
    model = fitted((frame.assign(a=1.0, d=1.0), y))
    words = str(model.explain(frame[250:251].assign(a=4.0, d=4.0)))
    assert "a 1, here 4" in words
    assert "d 1, here 4" not in words


def test_values_that_were_converted_are_compared_as_in_fit(customers):
    frame, y = customers
    model = fitted((frame, y))
    given = frame[250:252].assign(a=[f"{value}" for value in frame["a"][250:252]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        words = str(model.explain(given))
    assert words == str(model.explain(frame[250:252]))


def test_explaining_leaves_the_rows_of_fit_as_they_are(customers):
    frame, y = customers[0].copy(), customers[1]
    model = TrustedClassifier(classifier(), random_state=0).fit(frame, y)
    str(model.explain(frame[:20].assign(a=0.0)))
    pd.testing.assert_frame_equal(frame, customers[0])


def test_after_loading_the_text_tells_why_values_are_missing(customers, tmp_path):
    rows, model = customers[0][250:252], fitted(customers)
    assert NOT_STORED not in all_shown(model.explain(rows))
    model.save(tmp_path / "model.nagg")
    explanation = load(tmp_path / "model.nagg").explain(rows)
    assert str(explanation).endswith(f"\n\n{NOT_STORED}")
    assert str(explanation).count(NOT_STORED) == 1
    assert explanation._repr_html_().endswith(f"<p>{NOT_STORED}</p>")
    assert columns_named(explanation) == set()
    assert "SECRET" not in all_shown(explanation)


def test_nothing_is_missing_from_a_loaded_model_of_arrays(customers, tmp_path):
    X, y = customers[0][list("abcde")].to_numpy(), customers[1]
    TrustedClassifier(LogisticRegression(), random_state=0).fit(X, y).save(tmp_path / "model.nagg")
    assert NOT_STORED not in str(load(tmp_path / "model.nagg").explain(X[:2] + 0.01))
