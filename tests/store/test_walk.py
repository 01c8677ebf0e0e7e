"""What is saved comes back, bit for bit; what cannot is refused by its path; a file names no class of its own."""

import math

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import neighboragg
from neighboragg._store.file import read_file, write_file
from neighboragg.exceptions import FileFormatError, InvalidParameterError
from neighboragg.features._quantiles import QuantileScores
from neighboragg.search import ClasswiseNeighbors

DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    hnp.unicode_string_dtypes(endianness="?", max_len=6),
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([np.int8(-3), np.uint64(2**63), np.float32(0.1), np.float64(np.nan), np.True_]),
)
KEYS = (
    st.text(max_size=6) | st.integers() | st.sampled_from(["$array", "$object", "$$", "a/b", "é", "\ud800"])
)
VALUES = st.recursive(
    SCALARS | hnp.arrays(DTYPES, SHAPES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=8,
)
MANY = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "scores.nagg"


def carrier(value):
    """An object that can be saved, with a value in it."""
    scores = QuantileScores()
    scores.value_ = value
    return scores


def round_trip(path, value, **kwargs):
    carrier(value).save(path)
    return neighboragg.load(path, **kwargs).value_


def assert_same(found, expected):
    """Equal in type, value and bits; arrays come back native and in C order."""
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        native = expected.dtype.newbyteorder("=")
        assert found.dtype == native
        assert found.shape == expected.shape
        assert found.flags.c_contiguous
        assert found.flags.aligned
        assert found.tobytes() == expected.astype(native).tobytes()
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, item in expected.items():
            assert_same(found[key], item)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for left, right in zip(found, expected, strict=True):
            assert_same(left, right)
    elif isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(found)
    elif isinstance(expected, float):
        assert found.hex() == expected.hex()
    else:
        assert found == expected


@MANY
@given(value=VALUES, mmap=st.booleans())
def test_any_value_comes_back(path, value, mmap):
    assert_same(round_trip(path, value, mmap=mmap), value)


@MANY
@given(array=hnp.arrays(DTYPES, SHAPES), data=st.data())
def test_views_come_back(path, array, data):
    view = array[data.draw(hnp.basic_indices(array.shape, allow_ellipsis=True))]
    for each in (np.asarray(view), array.T):
        assert_same(round_trip(path, each), each)


@MANY
@given(array=hnp.arrays(object, SHAPES, elements=st.text(max_size=5)))
def test_object_arrays_of_strings_come_back(path, array):
    found = round_trip(path, array)
    assert found.dtype == object
    assert found.shape == array.shape
    assert found.tolist() == array.tolist()


def test_bits_of_nan_survive(path):
    values = np.array([np.nan, -np.nan, np.inf, -0.0, 5e-324])
    assert round_trip(path, values).view(np.uint64).tolist() == values.view(np.uint64).tolist()


def test_arrays_are_ones_own_unless_they_are_mapped(path):
    owned = round_trip(path, np.arange(3.0))
    assert owned.flags.writeable
    owned += 1  # and not those of the file
    mapped = neighboragg.load(path, mmap=True).value_
    assert not mapped.flags.writeable
    assert mapped.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "generator",
    [np.random.RandomState(0), np.random.default_rng(0), np.random.SeedSequence(3), np.random.PCG64(1)],
    ids=lambda generator: type(generator).__name__,
)
def test_generators_are_not_saved(path, generator):
    assert round_trip(path, [1, generator]) == [1, None]


def test_what_is_referred_to_twice_is_stored_once(path):
    array, texts, model = np.arange(1000.0), np.array(["a"] * 1000), GaussianNB().fit([[0.0], [1.0]], [0, 1])
    inner, frozen = carrier(array), FrozenEstimator(model)
    found = round_trip(
        path, [array, texts, model, inner, frozen, {"again": (array, texts, model, inner, frozen)}]
    )
    assert all(one is other for one, other in zip(found[:5], found[5]["again"], strict=True))
    assert found[3].value_ is found[0]
    assert found[4].estimator is found[2]
    assert path.stat().st_size < 25_000


def test_temporary_values_do_not_pass_for_one_another(path):
    index = ClasswiseNeighbors(1).fit(np.arange(6.0)[:, None], [0, 1] * 3)
    found = round_trip(path, [index, ClasswiseNeighbors(2).fit(np.arange(4.0)[:, None], [0, 1] * 2)])
    assert [item.n_samples_fit_ for item in found] == [6, 4]


class Mine(QuantileScores):
    """Derived by a user."""


class Odd:
    """Nothing that fits or splits."""


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Mine(), f"its 'value_' is of the type {__name__}.Mine, which neighboragg does not know"),
        (
            [1, {"a": Odd()}],
            f"its 'value_/1/a' is of the type {__name__}.Odd, which neighboragg does not know",
        ),
        (
            len,
            "its 'value_' is of the type builtins.builtin_function_or_method, which neighboragg does not know",
        ),
        (LogisticRegression, "its 'value_' is of the type builtins.type, which neighboragg does not know"),
        ({1, 2}, "its 'value_' is of the type builtins.set, which neighboragg does not know"),
        ({1.5: 2}, "its 'value_' is a dict with the key 1.5, neither str nor int"),
        ({True: 2}, "its 'value_' is a dict with the key True, neither str nor int"),
        (np.longdouble(1), "its 'value_' is a number of the type float128"),
        (np.zeros(2, dtype=complex), "its 'value_' is an array of the type complex128"),
        (np.array(["2020"], dtype="M8[D]"), "its 'value_' is an array of the type datetime64[D]"),
        (np.array(["a", 1], dtype=object), "its 'value_' is an array of objects that are not all str"),
        (
            np.ma.array([1]),
            "its 'value_' is of the type numpy.ma.MaskedArray, which neighboragg does not know",
        ),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_could_not_be_loaded_again_is_not_saved(path, value, reason):
    with pytest.raises(InvalidParameterError) as caught:
        carrier(value).save(path)
    assert (
        str(caught.value).partition("\nHint: ")[0]
        == f"This QuantileScores cannot be saved: {reason}, so it could not be loaded again."
    )
    assert not path.exists()


def test_a_class_derived_by_a_user(path):
    with pytest.raises(InvalidParameterError) as caught:
        Mine().fit(np.arange(3.0)[:, None]).save(path)
    assert str(caught.value) == (
        f"This Mine cannot be saved: it is of the type {__name__}.Mine, which neighboragg does not know, so it could "
        "not be loaded again."
    )


def test_what_contains_itself(path):
    value = []
    value.append(value)
    with pytest.raises(InvalidParameterError, match="is nested more than 64 deep, perhaps within itself"):
        carrier(value).save(path)


def test_what_is_not_fitted(path):
    with pytest.raises(NotFittedError):
        QuantileScores().save(path)


@pytest.mark.parametrize("kind", ["Oracle", "system", "TrustMethod", "QuantileScores.__init__"])
def test_a_class_that_is_not_in_the_list(path, kind):
    carrier(1).save(path)
    document, arrays = read_file(path)
    document["objects"][0]["kind"] = kind
    write_file(path, document, arrays)
    with pytest.raises(FileFormatError) as caught:
        neighboragg.load(path)
    assert str(caught.value) == (
        f"The file holds a {kind!r}, which this version of neighboragg does not know.\n"
        "Hint: save the model again with this version."
    )


@pytest.mark.parametrize("node", [{"$object": 0}, {"$object": 7}, {"$array": "none"}, {"$scalar": ["a", 1]}])
def test_content_that_no_save_writes(path, node):
    carrier(1).save(path)
    document, arrays = read_file(path)
    document["objects"][0]["state"]["value_"] = node
    write_file(path, document, arrays)
    with pytest.raises(FileFormatError, match=r"cannot be read .* It was saved by neighboragg"):
        neighboragg.load(path)


def test_nothing_that_a_file_names_is_called(path):
    carrier(1).save(path)
    document, arrays = read_file(path)
    document["objects"][0]["state"]["value_"] = {"$call": "os.system", "arguments": ["false"]}
    write_file(path, document, arrays)
    assert neighboragg.load(path).value_ == {"$call": "os.system", "arguments": ["false"]}
