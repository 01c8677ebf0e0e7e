"""Vectors on disk: found again, never trusted when damaged, never mixed."""

import sqlite3

import numpy as np
import pytest

from neighboragg.exceptions import TrustWarning
from neighboragg.features._encode import encode_images, encode_texts
from neighboragg.features._vector_cache import VectorCache

calls = []


def lengths(texts):
    calls.append(list(texts))
    return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def widths(images):
    calls.append([image.size for image in images])
    return np.array([[image.width, image.height, 0.5] for image in images])


@pytest.fixture(autouse=True)
def no_calls():
    calls.clear()


def test_a_second_run_asks_nothing(tmp_path):
    first = encode_texts(["a", "bcd"], lengths, cache=tmp_path)
    second = encode_texts(["bcd", "a", "a"], lengths, cache=tmp_path)
    assert calls == [["a", "bcd"]]
    np.testing.assert_array_equal(second, first[[1, 0, 0]])
    assert second.dtype == first.dtype == np.float32
    encode_texts(["a", "new"], lengths, cache=tmp_path)
    assert calls[1:] == [["new"]]


def test_a_second_run_opens_no_image(paint, tmp_path, monkeypatch):
    paths = [paint(f"{i}.png", seed=i) for i in range(3)]
    first = encode_images(paths, widths, cache=tmp_path / "cache")
    assert first.n_opened == 3
    paths[0] = paths[0].rename(tmp_path / "another name.jpg")  # what counts is the content

    def refuse(*args, **kwargs):
        raise AssertionError("an image was opened")

    monkeypatch.setattr("PIL.Image.open", refuse)
    again = encode_images(paths, widths, cache=tmp_path / "cache")
    assert (again.n_opened, len(calls)) == (0, 1)
    np.testing.assert_array_equal(again.vectors, first.vectors)


def test_a_changed_image_is_opened(paint, tmp_path):
    path = paint("a.png", seed=1)
    before = encode_images([path], cache=tmp_path / "cache").vectors
    paint("a.png", seed=2)
    after = encode_images([path], cache=tmp_path / "cache")
    assert after.n_opened == 1
    assert np.abs(after.vectors - before).max() > 0.01


def test_encoders_do_not_see_each_others_vectors(tmp_path):
    encode_texts(["a"], lengths, cache=tmp_path)

    def other(texts):
        return np.array([[7.0]] * len(texts))

    other.version = "1"
    assert encode_texts(["a"], other, cache=tmp_path).tolist() == [[7.0]]
    assert len(VectorCache(tmp_path)) == 2


def test_nothing_is_kept_of_what_cannot_be_told_apart(tmp_path):
    for weight in (1.0, 2.0):
        vectors = encode_texts(["a"], lambda texts, w=weight: [[w]] * len(texts), cache=tmp_path)
        assert vectors.tolist() == [[weight]]
    assert not VectorCache(tmp_path).path.exists()


def test_without_a_cache_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("NEIGHBORAGG_HOME", str(tmp_path / "home"))
    encode_texts(["a"], lengths)
    assert not (tmp_path / "home").exists()
    encode_texts(["a"], lengths, cache=True)
    assert (tmp_path / "home" / "vectors" / "neighboragg-vectors.sqlite").is_file()


@pytest.mark.parametrize("change", ["vector", "digest", "content", "type", "nan", "short"])
def test_an_entry_that_was_changed_is_made_again(tmp_path, change):
    cache = VectorCache(tmp_path)
    expected = encode_texts(["a", "bcd"], lengths, cache=cache)
    with sqlite3.connect(cache.path) as connection:
        set_to = {
            "vector": ("vector = ?", np.array([9.0, 9.0], dtype="<f4").tobytes()),
            "digest": ("digest = ?", b"\0" * 32),
            "content": ("content = content || ?", b"x"),
            "type": ("type = ?", "f8"),
            "nan": ("vector = ?", np.array([np.nan, 9.0], dtype="<f4").tobytes()),
            "short": ("vector = ?", b"\1\2\3"),
        }[change]
        connection.execute(f"UPDATE vectors SET {set_to[0]}", [set_to[1]])
    connection.close()
    np.testing.assert_array_equal(encode_texts(["a", "bcd"], lengths, cache=cache), expected)
    assert calls == [["a", "bcd"]] * 2
    encode_texts(["a", "bcd"], lengths, cache=cache)  # and it is whole now
    assert len(calls) == 2


@pytest.mark.parametrize("damage", ["text", "overwritten", "cut"])
def test_a_damaged_file_is_put_aside_and_made_again(tmp_path, damage):
    cache = VectorCache(tmp_path)
    texts = [f"text number {i}" for i in range(400)]
    expected = encode_texts(texts, lengths, cache=cache)
    raw = bytearray(cache.path.read_bytes())
    if damage == "text":
        raw = bytearray(b"this is not a database" * 100)
    elif damage == "overwritten":
        raw[5000:] = b"\xff" * (len(raw) - 5000)
    else:
        raw = raw[: len(raw) // 2]
    cache.path.write_bytes(raw)
    n_calls = len(calls)
    np.testing.assert_array_equal(encode_texts(texts, lengths, cache=cache), expected)
    assert len(calls) > n_calls
    assert (tmp_path / "neighboragg-vectors.damaged").exists()
    n_calls = len(calls)
    np.testing.assert_array_equal(encode_texts(texts, lengths, cache=cache), expected)
    assert len(calls) == n_calls


def test_vectors_of_another_length_under_the_same_name_are_forgotten(tmp_path):
    width = 2

    def encode(texts):
        calls.append(list(texts))
        return np.ones((len(texts), width))

    encode.version = "the same, though it is not"
    encode_texts(["a", "b"], encode, cache=tmp_path)
    width = 3
    assert encode_texts(["a", "b", "c"], encode, cache=tmp_path).shape == (3, 3)
    assert calls == [["a", "b"], ["c"], ["a", "b", "c"]]


def test_clear_and_forget(tmp_path):
    cache = VectorCache(tmp_path)
    cache.clear()
    cache.forget("nothing there yet")
    assert len(cache) == 0
    cache.put("one", {b"a": np.ones(2), b"b": np.ones(2)})
    cache.put("two", {b"a": np.zeros(2)})
    cache.forget("one")
    assert cache.get("one", [b"a"]) == {}
    assert cache.get("two", [b"a"])[b"a"].tolist() == [0.0, 0.0]
    (tmp_path / "mine.txt").write_text("not of the cache")
    cache.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_many_keys_at_once(tmp_path):
    cache = VectorCache(tmp_path)
    keys = [str(i).encode() for i in range(1300)]
    cache.put("one", {key: np.array([float(key)]) for key in keys})
    assert {key: vector.tolist() for key, vector in cache.get("one", keys).items()} == {
        key: [float(key)] for key in keys
    }


def test_a_cache_that_cannot_be_used_is_warned_of_once_and_stops_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(TrustWarning) as caught:
        vectors = encode_texts(["a", "bc"], lengths, cache=tmp_path / "file" / "below", batch_size=1)
    assert vectors.tolist() == encode_texts(["a", "bc"], lengths).tolist()
    assert [str(warning.message) for warning in caught] == [
        f"Vectors are not cached for the next run. The folder of the vector cache, {tmp_path / 'file' / 'below'}, "
        "cannot be created: Not a directory.\n"
        "Hint: set NEIGHBORAGG_HOME to a writable folder."
    ]
    (tmp_path / "neighboragg-vectors.sqlite").mkdir()
    with pytest.warns(TrustWarning, match="The vector cache .* cannot be used"):
        encode_texts(["a"], lengths, cache=tmp_path)
