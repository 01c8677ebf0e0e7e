"""What goes into a record comes back, bit for bit; what cannot is refused by its key path."""

import math

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neighboragg import persistence
from neighboragg.exceptions import InvalidParameterError
from neighboragg.persistence import read_record, write_record

DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    hnp.unicode_string_dtypes(endianness="?", max_len=6),
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
RECORDS = st.dictionaries(
    st.text(max_size=6) | st.sampled_from(["$array", "$float", "$strings", "$$", "shape", "a/b", "é"]),
    st.recursive(
        SCALARS | hnp.arrays(DTYPES, SHAPES),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nagg"


def round_trip(path, record):
    write_record(path, "test", record)
    kind, found = read_record(path)
    assert kind == "test"
    return found


def assert_same(found, expected):
    """Equal in type, value and bits; arrays come back native and in C order."""
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        native = expected.dtype.newbyteorder("=")
        assert found.dtype == native
        assert found.shape == expected.shape
        assert found.flags.c_contiguous
        assert found.flags.writeable
        assert found.tobytes() == expected.astype(native).tobytes()
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, item in expected.items():
            assert_same(found[key], item)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for left, right in zip(found, expected, strict=True):
            assert_same(left, right)
    elif isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(found)
    elif isinstance(expected, float):
        assert found.hex() == expected.hex()
    else:
        assert found == expected


def test_public_names():
    assert persistence.__all__ == sorted(persistence.__all__)
    assert all(hasattr(persistence, name) for name in persistence.__all__)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(record=RECORDS)
def test_round_trip_of_any_record(path, record):
    assert_same(round_trip(path, record), record)


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(array=hnp.arrays(DTYPES, SHAPES), data=st.data())
def test_round_trip_of_views(path, array, data):
    view = array[data.draw(hnp.basic_indices(array.shape, allow_ellipsis=True))]
    for each in (np.asarray(view), array.T):
        assert_same(round_trip(path, {"x": each})["x"], each)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, 0.1])
def test_floats_round_trip_exactly(path, value):
    assert_same(round_trip(path, {"x": value, "list": [value, 1]}), {"x": value, "list": [value, 1]})


def test_array_bits_survive(path):
    values = np.array([np.nan, -np.nan, np.inf, -0.0, 5e-324])
    assert round_trip(path, {"x": values})["x"].view(np.uint64).tolist() == values.view(np.uint64).tolist()


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(array=hnp.arrays(object, SHAPES, elements=st.text(max_size=5)))
def test_object_arrays_of_strings(path, array):
    found = round_trip(path, {"classes": array})["classes"]
    assert found.dtype == object
    assert found.shape == array.shape
    assert found.tolist() == array.tolist()


def test_numpy_scalars_become_python_scalars(path):
    record = {"i": np.int8(-3), "f": np.float32(0.1), "b": np.True_, "s": np.str_("é")}
    expected = {"i": -3, "f": float(np.float32(0.1)), "b": True, "s": "é"}
    assert_same(round_trip(path, record), expected)


def test_memory_map_is_saved_as_its_array(path, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert_same(round_trip(path, {"x": mapped})["x"], np.arange(6.0).reshape(2, 3))


def test_strings_of_width_zero(path):
    empty = np.ndarray(3, dtype="<U0", buffer=b"")
    assert round_trip(path, {"x": empty})["x"].tolist() == ["", "", ""]


def test_lone_surrogates_and_large_integers(path):
    record = {"\ud800": "\udfff", "seed": 2**4095, "negative": -(2**4095)}
    assert_same(round_trip(path, record), record)


def test_an_existing_dict_subclass_is_read_as_dict(path):
    class Sub(dict):
        pass

    assert_same(round_trip(path, {"x": Sub(a=1)}), {"x": {"a": 1}})


def test_arrays_own_their_memory(path):
    found = round_trip(path, {"a": np.zeros(3), "b": np.zeros(3)})
    found["a"][:] = 1
    assert found["a"].base is None
    assert found["b"].tolist() == [0, 0, 0]


HINT = "\nHint: a record holds None, bool, int, float, str, NumPy arrays, lists, and dicts with str keys."


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (len, "builtin_function_or_method"),
        (lambda: 0, "function"),
        ((1, 2), "tuple"),
        ({1}, "set"),
        (b"x", "bytes"),
        (1j, "complex"),
        (np.complex64(1), "complex"),
        (np.longdouble(1), np.longdouble.__name__),
        (np.ma.masked_array([1.0], [True]), "MaskedArray"),
    ],
)
def test_unsupported_leaf_names_its_path(path, value, name):
    with pytest.raises(InvalidParameterError) as caught:
        write_record(path, "test", {"aggregator": {"theta": [0, value]}})
    assert str(caught.value) == (
        f"The value at 'aggregator/theta/1' of the record has the type {name!r}, which cannot be saved."
        + HINT
    )
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2, dtype=complex),
        np.zeros(2, dtype=np.longdouble),
        np.zeros(2, dtype="M8[s]"),
        np.zeros(2, dtype="S3"),
        np.zeros(2, dtype=[("a", "f8")]),
    ],
)
def test_unsupported_dtype_names_its_path(path, array):
    with pytest.raises(InvalidParameterError) as caught:
        write_record(path, "test", {"aggregator": {"theta": array}})
    assert str(caught.value) == (
        f"The array at 'aggregator/theta' of the record has the dtype {array.dtype}, which cannot be saved.\n"
        "Hint: convert it to a bool, integer, float16/32/64 or str array with astype()."
    )


@pytest.mark.parametrize(("item", "name"), [(None, "NoneType"), (1.0, "float"), (["a"], "list")])
def test_object_array_of_other_things(path, item, name):
    array = np.empty(2, dtype=object)
    array[:] = ["a", None]
    array[1] = item
    with pytest.raises(InvalidParameterError) as caught:
        write_record(path, "test", {"classes": array})
    assert str(caught.value) == (
        f"The object array at 'classes' of the record holds a {name!r}; "
        "only object arrays of str can be saved.\n"
        "Hint: convert it to a numeric or str array with astype()."
    )


@pytest.mark.parametrize(
    ("record", "start"),
    [
        ({3: 1}, "The key 3 of the record must be a str. Got 'int' instead."),
        (
            {"a": {"b": {None: 1}}},
            "The key None at 'a/b' of the record must be a str. Got 'NoneType' instead.",
        ),
    ],
)
def test_keys_must_be_strings(path, record, start):
    with pytest.raises(InvalidParameterError) as caught:
        write_record(path, "test", record)
    assert str(caught.value) == start + "\nHint: keep such keys in an array or a list beside the values."


def test_too_large_integer(path):
    with pytest.raises(InvalidParameterError) as caught:
        write_record(path, "test", {"a": {"seed": 2**4096}})
    assert str(caught.value) == (
        "The int at 'a/seed' of the record has 4097 bits, and at most 4096 can be saved."
    )


def test_depth_is_limited_and_reached(path):
    record: dict = {}
    for _ in range(63):
        record = {"a": record}
    record_with_leaves = {"a": [record]}
    inner = record
    while inner:
        last, inner = inner, inner["a"]
    last["a"] = {"nan": math.nan, "x": np.arange(2)}
    assert_same(round_trip(path, record), record)
    with pytest.raises(InvalidParameterError) as caught:
        write_record(path, "test", record_with_leaves)
    assert str(caught.value) == (
        "The record is nested more than 64 deep at 'a/0/a' …\nHint: does a dict or a list contain itself?"
    )


def test_a_record_within_itself(path):
    record: dict = {}
    record["self"] = record
    with pytest.raises(InvalidParameterError, match="does a dict or a list contain itself"):
        write_record(path, "test", record)


@pytest.mark.parametrize("kind", ["", None, 3])
def test_kind_must_be_a_string(path, kind):
    with pytest.raises(InvalidParameterError) as caught:
        write_record(path, kind, {})
    assert str(caught.value) == (
        f"The 'kind' parameter of write_record must be a non-empty str. Got {kind!r} instead."
    )


def test_record_must_be_a_dict(path):
    with pytest.raises(InvalidParameterError) as caught:
        write_record(path, "test", [1])  # type: ignore[arg-type]
    assert str(caught.value) == "The 'record' parameter of write_record must be a dict. Got 'list' instead."
