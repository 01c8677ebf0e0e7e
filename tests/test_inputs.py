"""Every supported kind of input is converted to an array, and others are refused with a clear error."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from neighboragg import NeighborAgg, TrustedClassifier, find_mislabeled
from neighboragg.exceptions import InvalidInputError
from neighboragg.features import TabularFeatures
from neighboragg.metrics import auroc

X, Y = (part[50:][np.random.default_rng(0).permutation(100)] for part in load_iris(return_X_y=True))
Y = Y - 1
PROBA = LogisticRegression().fit(X, Y).predict_proba(X)
NAMES = ["a", "b", "c", "d"]


class Tensor:
    """Behaves like a tensor on another device that requires a gradient: NumPy cannot read it as it is."""

    def __init__(self, values, dtype=None, requires_grad=True, device="cuda"):
        self.values = np.asarray(values)
        self.dtype = dtype or f"torch.{self.values.dtype}"
        self.requires_grad, self.device = requires_grad, device

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return Tensor(self.values[i], self.dtype, self.requires_grad, self.device)

    def detach(self):
        return Tensor(self.values, self.dtype, False, self.device)

    def cpu(self):
        return Tensor(self.values, self.dtype, self.requires_grad, "cpu")

    def float(self):
        return Tensor(self.values.astype(np.float32), "torch.float32", self.requires_grad, self.device)

    def numpy(self):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.device != "cpu":
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values

    def __array__(self, dtype=None, copy=None):
        return self.numpy()


class Dataset:
    """Behaves like a data set of Hugging Face."""

    def __init__(self, columns):
        self.frame = pd.DataFrame(columns)
        self.column_names = list(self.frame)
        self.features = dict.fromkeys(self.column_names)

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, key):
        return self.frame[key].tolist()

    def to_pandas(self):
        return self.frame


class StreamedDataset:
    """Behaves like a data set that is streamed."""

    column_names = ("a", "b")


def trusted(X, y, classifier=None):
    model = TrustedClassifier(classifier or LogisticRegression(), random_state=0)
    return model.fit(X, y).score_samples(X)


def pooled(X, y):
    return NeighborAgg().fit(X, y, proba_val=PROBA).score_samples(X, PROBA)


def labels_judged(X, y):
    return find_mislabeled(X, y, random_state=0, effort="fast").scores


CALLS = {"TrustedClassifier": trusted, "NeighborAgg": pooled, "MislabelDetector": labels_judged}
each_call = pytest.mark.parametrize("owner", CALLS)


def message_of(call, *args):
    with pytest.raises(InvalidInputError) as error:
        call(*args)
    return str(error.value)


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(X, columns=NAMES)


@pytest.mark.full(keep=2)
@each_call
@pytest.mark.parametrize(
    ("rows", "labels"),
    [(Tensor(X), Tensor(Y)), ([Tensor(row) for row in X], [Tensor(label) for label in Y])],
    ids=["tensors", "lists of tensors"],
)
def test_tensors_are_arrays(owner, rows, labels):
    np.testing.assert_array_equal(CALLS[owner](rows, labels), CALLS[owner](X, Y))


@each_call
def test_half_precision_that_numpy_lacks_becomes_single_precision(owner):
    rows = X.astype(np.float32)
    np.testing.assert_array_equal(CALLS[owner](Tensor(rows, "torch.bfloat16"), Y), CALLS[owner](rows, Y))


@each_call
def test_torch_itself(owner):
    torch = pytest.importorskip("torch")
    with_gradient = torch.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(CALLS[owner](with_gradient, torch.tensor(Y)), CALLS[owner](X, Y))
    half = torch.tensor(X).to(torch.bfloat16)
    np.testing.assert_array_equal(CALLS[owner](half, Y), CALLS[owner](half.float().numpy(), Y))


def test_probabilities_may_be_tensors():
    method = NeighborAgg().fit(Tensor(X), Tensor(Y), proba_val=Tensor(PROBA))
    np.testing.assert_array_equal(method.score_samples(Tensor(X), Tensor(PROBA)), pooled(X, Y))


@pytest.mark.full(keep=1)
@each_call
def test_a_data_set_is_a_frame(owner, frame):
    np.testing.assert_array_equal(CALLS[owner](Dataset(frame), Dataset({"label": Y})), CALLS[owner](frame, Y))
    np.testing.assert_array_equal(CALLS[owner](pa.table(dict(frame)), Y), CALLS[owner](frame, Y))


@each_call
def test_data_sets_that_cannot_be_meant(owner):
    both = Dataset({"text": ["a"] * 100, "label": Y})
    assert message_of(CALLS[owner], X, both) == (
        f"y passed to {owner} must have one value per row. Got a Dataset with the columns 'text', 'label'.\n"
        "Hint: pass one column, e.g. y['label']."
    )
    parts = message_of(CALLS[owner], {"train": both, "test": both}, Y)
    if owner == "NeighborAgg":  # to which a mapping is several views of a row
        assert parts.startswith("X['train'] passed to NeighborAgg contains 'a', which is not a number")
    else:
        assert parts == (
            f"X passed to {owner} is a dict with the keys 'train', 'test'.\n"
            "Hint: pass one of its values, or pandas.DataFrame(X) if each value is a column."
        )
    assert message_of(CALLS[owner], StreamedDataset(), Y) == (
        f"X passed to {owner} is a StreamedDataset, whose rows can only be read once.\n"
        "Hint: load the data set without streaming, or copy the rows into arrays."
    )


@pytest.mark.parametrize("owner", ["TrustedClassifier", "MislabelDetector"])
def test_labels_among_the_columns_are_refused(owner, frame):
    whole = Dataset(frame.assign(label=Y))
    assert message_of(CALLS[owner], whole, whole["label"]) == (
        f"Column 'label' of X passed to {owner} is equal to y in every row.\nHint: drop the labels from X."
    )


@pytest.mark.full(keep=2)
@each_call
@pytest.mark.parametrize("kind", ["lists", "arrays", "tensors", "arrow", "polars"])
def test_a_column_of_vectors_is_a_column_for_each_number(owner, frame, kind):
    vectors = {
        "lists": X[:, 1:].tolist(),
        "arrays": list(X[:, 1:]),
        "tensors": [Tensor(row) for row in X[:, 1:]],
    }
    table = pd.DataFrame({"a": X[:, 0], "rest": pd.Series(vectors.get(kind, vectors["lists"]))})
    if kind == "arrow":
        table["rest"] = table["rest"].astype(pd.ArrowDtype(pa.list_(pa.float64())))
    if kind == "polars":
        table = pl.DataFrame({"a": X[:, 0], "rest": vectors["lists"]})
    np.testing.assert_allclose(CALLS[owner](table, Y), CALLS[owner](frame, Y))


def test_a_pipeline_may_see_to_the_vectors_itself(frame):
    spread = FunctionTransformer(lambda column: np.stack(column["rest"].to_list()))
    pipeline = make_pipeline(make_column_transformer((spread, ["rest"])), LogisticRegression())
    table = pd.DataFrame({"rest": X.tolist()})
    plain = make_pipeline(FunctionTransformer(), LogisticRegression())
    np.testing.assert_allclose(trusted(table, Y, pipeline), trusted(X, Y, plain))


@each_call
def test_vectors_of_several_lengths_are_refused(owner):
    ragged = X.tolist()
    ragged[7] = ragged[7][:3]
    assert message_of(CALLS[owner], pd.DataFrame({"rest": ragged}), Y) == (
        f"Column 'rest' of X passed to {owner} must contain vectors of 4 numbers. "
        "Got a vector of shape (3,) in row 7.\n"
        "Hint: every row needs a vector of the same length; drop the other rows."
    )
    ragged[7] = None
    assert message_of(CALLS[owner], pd.DataFrame({"rest": ragged}), Y) == (
        f"Column 'rest' of X passed to {owner} must contain vectors of 4 numbers. Got nothing in row 7.\n"
        "Hint: every row needs a vector of the same length; drop the other rows."
    )
    assert message_of(CALLS[owner], pd.DataFrame({"words": [["a", "b"]] * 100}), Y) == (
        f"Column 'words' of X passed to {owner} must contain vectors of numbers. Got a list of str_ in row 0.\n"
        "Hint: convert it to numbers first, or drop the column."
    )


@pytest.mark.full(keep=2)
@each_call
@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(Y, dtype="Int64"),
        pd.Series(Y, dtype="int64[pyarrow]"),
        pd.Series(Y.tolist(), dtype=object),
        pd.Series(Y == 1, dtype="boolean"),
        pd.Series(np.array(["no", "yes"])[Y], dtype="string"),
        pd.Series(np.array(["no", "yes"])[Y], dtype="category"),
        Y.astype(np.uint64) + np.uint64(2**63),
        pd.Series(Y.astype(np.uint64) + np.uint64(2**63), dtype="UInt64"),
        pd.Series(Y + 2**60, dtype="Int64"),
    ],
    ids=lambda labels: f"{labels.dtype}-{labels[0]}",
)
def test_labels_of_every_type_keep_their_digits(owner, labels):
    np.testing.assert_array_equal(CALLS[owner](X, labels), CALLS[owner](X, Y))


def test_large_labels_are_found_again_in_the_other_integer_type():
    method = NeighborAgg().fit(X, Y.astype(np.uint64) + 2**60, proba_val=PROBA)
    expected = NeighborAgg().fit(X, Y, proba_val=PROBA).score_labels(X, Y, PROBA)
    np.testing.assert_array_equal(method.score_labels(X, Y.astype(np.int64) + 2**60, PROBA), expected)


@each_call
@pytest.mark.parametrize("dtype", ["Int64", "string", object])
def test_missing_labels_are_refused(owner, dtype):
    labels = pd.Series(Y if dtype == "Int64" else Y.astype(str), dtype=dtype)
    labels[3] = pd.NA
    assert message_of(CALLS[owner], X, labels) == (
        f"y passed to {owner} contains missing labels, first in row 3.\nHint: drop the rows without a label."
    )


def test_nullable_columns_with_gaps(frame):
    gaps = frame.copy()
    gaps.iloc[3, 1] = np.nan
    nullable = frame.convert_dtypes()
    nullable.iloc[3, 1] = pd.NA
    boosting = HistGradientBoostingClassifier(random_state=0)
    np.testing.assert_allclose(trusted(nullable, Y, boosting), trusted(gaps, Y, boosting))
    for kind in (nullable, nullable.astype(object)):
        np.testing.assert_allclose(labels_judged(kind, Y), labels_judged(gaps, Y))


def test_dates_are_numbers_with_and_without_a_time_zone(frame):
    dates = pd.date_range("2024-01-01", periods=100, tz="UTC")
    seconds = TabularFeatures().fit(frame.assign(when=dates.tz_localize(None)))
    expected = seconds.transform(frame.assign(when=dates.tz_localize(None)))
    for same in (
        dates,
        dates.tz_convert("Europe/Berlin"),
        dates.astype("datetime64[s, UTC]"),
        dates.astype(object),
        dates.tz_localize(None).astype(object),
        dates.astype(pd.ArrowDtype(pa.timestamp("us", "UTC"))),
    ):
        np.testing.assert_allclose(seconds.transform(frame.assign(when=same)), expected)
    assert len(np.unique(expected[:, 4])) == 100


def test_what_a_classifier_refuses_is_named(frame):
    table = frame.assign(when=pd.date_range("2024-01-01", periods=100, tz="UTC"))
    assert message_of(trusted, table, Y) == (
        "X passed to TrustedClassifier contains Timestamp('2024-01-01 00:00:00+0000', tz='UTC'), which is not a "
        "number, in row 0 of column 'when' (float() argument must be a string or a real number, not 'Timestamp').\n"
        "Hint: LogisticRegression needs numbers; put it in a Pipeline after a ColumnTransformer that encodes the "
        "column, or drop the column."
    )
    assert message_of(lambda: find_mislabeled(table, Y, estimator=LogisticRegression())).startswith(
        "X passed to MislabelDetector contains Timestamp("
    )
    model = TrustedClassifier(LogisticRegression(), random_state=0).fit(frame, Y)
    broken = frame.astype(object)
    broken.iloc[5, 2] = pd.NA
    assert message_of(model.score_samples, broken).startswith(
        "X passed to TrustedClassifier contains <NA>, which is not a number, in row 5 of column 'c' ("
    )


def test_what_distances_refuse_is_named(frame):
    broken = frame.astype(object)
    broken.iloc[3, 1] = pd.NA
    for rows, column in ((broken, "'b'"), (broken.to_numpy(), "1")):
        assert message_of(pooled, rows, Y) == (
            f"X passed to NeighborAgg contains <NA>, which is not a number, in row 3 of column {column} "
            "(float() argument must be a string or a real number, not 'NAType').\nHint: distances need numbers; "
            "convert any table with neighboragg.features.TabularFeatures().fit_transform(X)."
        )


def test_an_error_that_has_another_reason_is_left_alone(frame):
    with pytest.raises(ValueError, match="Input X contains NaN"):
        pooled(frame.where(frame > 3), Y)


def test_metrics_of_every_type():
    correct, trust = PROBA.argmax(axis=1) == Y, PROBA.max(axis=1)
    expected = auroc(correct, trust)
    for outcomes in (Tensor(correct), pd.Series(correct, dtype="boolean"), pd.Series(correct, dtype=object)):
        assert auroc(outcomes, trust) == expected
    for scores in (Tensor(trust), pd.Series(trust, dtype="Float64"), pd.Series(trust, dtype=object)):
        assert auroc(correct, scores) == expected


@pytest.mark.parametrize(("name", "dtype"), [("correct", "boolean"), ("trust", "Float64")])
def test_metrics_refuse_gaps(name, dtype):
    values = {"correct": PROBA.argmax(axis=1) == Y, "trust": PROBA.max(axis=1)}
    values[name] = pd.Series(values[name], dtype=dtype)
    values[name][2] = pd.NA
    assert message_of(lambda: auroc(**values)) == (
        f"{name} passed to auroc is missing in 1 of 100 rows, first in row 2.\n"
        "Hint: drop these rows from both correct and trust."
    )
