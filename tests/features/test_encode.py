"""Texts and images to vectors: batches, problems, what an encoder may return."""

import io
import os
import re
import warnings

import numpy as np
import pytest
from PIL import Image

from neighboragg._core.progress import report_to
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features._encode import encode_images, encode_texts
from neighboragg.features._images import describe_images, open_image


def means(images):
    return np.array([np.asarray(image).mean(axis=(0, 1)) for image in images])


def message_of(function, *args, **kwargs):
    with pytest.raises((InvalidInputError, InvalidParameterError)) as caught:
        function(*args, **kwargs)
    return str(caught.value)


def test_paths_images_and_arrays_are_the_same_image(paint, tmp_path):
    path = paint("a.png")
    array = np.asarray(Image.open(path))
    expected = means([Image.open(path)])
    for source in (path, str(path), Image.open(path), array, array / 255.0):
        np.testing.assert_allclose(encode_images([source], means).vectors, expected)
    np.testing.assert_allclose(encode_images(["a.png"], means, root=tmp_path).vectors, expected)
    np.testing.assert_allclose(encode_images(array[None], means).vectors, expected)


def test_batches_are_whole_and_copies_are_encoded_once(paint):
    paths = [paint(f"{i}.png", seed=i % 5) for i in range(12)]
    sizes = []

    def encode(images):
        sizes.append(len(images))
        assert all(image.mode == "RGB" for image in images)
        return means(images)

    told = []
    with report_to(lambda *news: told.append(news)):
        found = encode_images(paths, encode, batch_size=4)
    assert sizes == [4, 1]  # the fifth image is in the second batch; all others are copies
    np.testing.assert_array_equal(found.vectors, means([Image.open(path) for path in paths]))
    assert (found.n_opened, found.rows.tolist(), found.problems) == (5, list(range(12)), {})
    assert told[-1] == ("Encoding the images", 12, 12)


def test_texts_come_in_batches():
    batches = []

    def encode(texts):
        batches.append(texts)
        return np.array([[len(text)] for text in texts], dtype=np.float32)

    vectors = encode_texts(["a", "bcd", "", "a", "ef"], encode, batch_size=2)
    assert vectors.dtype == np.float32
    assert vectors.ravel().tolist() == [1, 3, 0, 1, 2]
    assert batches == [["a", "bcd"], [""], ["ef"]]


def test_tensors_and_lists_of_lists_are_vectors():
    class Tensor:
        dtype = "float32"
        is_sparse = False

        def __init__(self, values):
            self.values = values

        def detach(self):
            return self

        cpu = detach

        def numpy(self):
            return np.array(self.values)

    assert encode_texts(["a", "b"], lambda texts: Tensor([[1.0], [2.0]])).tolist() == [[1.0], [2.0]]
    assert encode_texts(["a", "b"], lambda texts: [[1, 2], [3, 4]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (np.zeros(2), "Got shape (2,) of type float64."),
        (np.zeros((3, 2)), "Got shape (3, 2) of type float64."),
        (np.zeros((2, 0)), "Got shape (2, 0) of type float64."),
        (np.array([["a"], ["b"]]), "Got shape (2, 1) of type <U1."),
        (None, "Got shape () of type object."),
    ],
)
def test_a_wrong_shape_is_refused(output, said):
    def encode(texts):
        return output

    name = f"{__name__}:{encode.__qualname__}"
    assert message_of(encode_texts, ["a", "b"], encode) == (
        f"The encoder {name} must return an array of numbers of shape (2, d) for 2 inputs. {said}\n"
        "Hint: it is called with a list and must return one vector per element."
    )


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(value):
    said = message_of(encode_texts, ["a", "b"], lambda texts: np.array([[1.0, 2.0], [value, 0.0]]))
    assert said.endswith("returned NaN or infinity for 1 of 2 inputs, the first being text 1.")


def test_an_encoder_that_fails_says_where():
    def encode(texts):
        return [[1.0 / (len(text) - 2)] for text in texts]

    said = message_of(encode_texts, ["a", "bcd", "ef", "g"], encode, batch_size=2)
    assert said.endswith(
        "failed on a batch of 2, from text 2 to text 3: ZeroDivisionError: float division by zero"
    )


def test_vectors_of_different_lengths_are_refused():
    said = message_of(encode_texts, ["a", "bc"], lambda texts: np.ones((1, len(texts[0]))), batch_size=1)
    assert said.endswith(
        "returned a vector of 2 numbers for text 1, but of 1 before.\nHint: every vector must have the same length."
    )


def test_what_is_no_text_and_no_image():
    assert message_of(encode_texts, "one text", len).startswith("encode_texts needs a list of texts.")
    assert (
        message_of(encode_texts, ["a", None], len) == "Text 1 passed to encode_texts is not a str. Got None."
    )
    assert message_of(encode_images, "a.png").startswith("encode_images needs a list of images.")
    assert message_of(encode_images, [], means).startswith("The input of the encoder")
    assert message_of(encode_images, [3], means) == (
        "An image must be the path of a file, a PIL image or an array. Got int instead."
    )
    assert "Got shape (2, 3, 5) of type uint8." in message_of(
        encode_images, [np.zeros((2, 3, 5), dtype=np.uint8)]
    )
    assert "with values from 0 to 7.5." in message_of(encode_images, [np.full((3, 3), 7.5) * np.eye(3)])
    assert "of type int64" in message_of(encode_images, [np.zeros((3, 3), dtype=np.int64)])


@pytest.fixture
def some_unreadable(paint, tmp_path):
    good = [paint(f"good {i}.png", seed=i) for i in range(3)]
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.jpg").write_text("no image")
    whole = good[0].read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "folder.png").mkdir()
    paths = [
        "good 0.png",
        "empty.png",
        "text.jpg",
        "good 1.png",
        "cut.png",
        "missing.png",
        "folder.png",
        "good 2.png",
    ]
    return tmp_path, paths


def test_unreadable_images_are_named(some_unreadable):
    root, paths = some_unreadable
    said = message_of(encode_images, paths, means, root=root).splitlines()
    assert said[0] == "5 of 8 images cannot be read:"
    assert said[1:3] == [f"  {name}: not an image that Pillow can read" for name in ("empty.png", "text.jpg")]
    assert re.fullmatch(r"  cut\.png: .*truncated.*", said[3])
    assert said[4:6] == ["  missing.png: file not found", "  folder.png: Is a directory"]
    assert said[6] == ("Hint: repair or remove them, or go on without them (skip_unreadable=True).")


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_the_others_can_be_taken_alone(some_unreadable, batch_size):
    root, paths = some_unreadable
    found = encode_images(paths, means, root=root, skip_unreadable=True, batch_size=batch_size)
    assert found.rows.tolist() == [0, 3, 7]
    assert sorted(found.problems) == [1, 2, 4, 5, 6]
    np.testing.assert_array_equal(found.vectors, means([Image.open(root / paths[i]) for i in (0, 3, 7)]))


def test_no_readable_image_at_all(tmp_path):
    none = encode_images([tmp_path / f"{i}.png" for i in range(12)], skip_unreadable=True)
    assert (len(none.vectors), len(none.rows), len(none.problems)) == (0, 0, 12)


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() == 0, reason="everything is readable for root and on Windows"
)
def test_a_file_without_permission_is_named(paint):  # pragma: no cover
    path = paint("a.png")
    path.chmod(0)
    assert "Permission denied" in message_of(encode_images, [path])


def opened(image, kind="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    buffer.seek(0)
    return open_image(Image.open(buffer))


def test_transparent_images_are_on_white():
    clear = Image.new("RGBA", (2, 2), (255, 0, 0, 0))
    assert opened(clear).getpixel((0, 0)) == (255, 255, 255)
    palette = Image.new("P", (2, 2), 0)
    palette.putpalette([10, 20, 30])
    assert opened(palette, transparency=0).getpixel((0, 0)) == (255, 255, 255)
    assert opened(palette).getpixel((0, 0)) == (10, 20, 30)


def test_deep_grays_are_not_cut_to_white():
    deep = Image.fromarray(np.array([[0, 256 * 100], [256 * 200, 65535]], dtype=np.uint16))
    assert [opened(deep).getpixel(place)[0] for place in ((0, 0), (1, 0), (0, 1), (1, 1))] == [
        0,
        100,
        200,
        255,
    ]
    floats = Image.fromarray(np.array([[-1.0, 3.0]], dtype=np.float32))
    assert [opened(floats, "TIFF").getpixel((x, 0))[0] for x in (0, 1)] == [0, 255]


def test_images_are_upright():
    lying = Image.fromarray(np.array([[0, 255]], dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    assert opened(lying, exif=exif).size == (1, 2)


def test_an_image_in_memory_that_is_turned_is_another_one(paint):
    image = Image.open(paint("a.png"))
    turned = image.copy()
    turned.getexif()[0x0112] = 6
    found = encode_images([image, turned], lambda images: [image.size for image in images])
    assert found.vectors.tolist() == [[12, 10], [10, 12]]


def test_bombs_are_unreadable(paint, monkeypatch):
    paths = [paint("a.png"), paint("b.png", seed=1, size=(4, 4))]
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        found = encode_images(paths, means, skip_unreadable=True)
    assert found.rows.tolist() == [1]
    assert "decompression bomb" in found.problems[0]


def test_the_descriptor_sees_shape_and_color_and_is_fixed():
    square, frame, red = np.full((20, 20, 3), 255, np.uint8), np.full((20, 20, 3), 255, np.uint8), None
    square[5:15, 5:15] = 0
    frame[5:15, 5:15] = 0
    frame[7:13, 7:13] = 255
    red = square.copy()
    red[5:15, 5:15, 0] = 255
    shifted = np.roll(square, 1, axis=1)
    vectors = describe_images([open_image(array) for array in (square, shifted, frame, red)])
    assert vectors.shape == (4, 580)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    distances = np.linalg.norm(vectors - vectors[0], axis=1)
    assert 0 == distances[0] < distances[1] < min(distances[2:])
    # Row by row: an image has the same vector in any batch.
    np.testing.assert_array_equal(describe_images([open_image(red)])[0], vectors[3])
    assert describe_images([]).shape == (0, 580)


def test_flat_images_have_no_edges():
    flat = describe_images([open_image(np.full((5, 9), gray, np.uint8)) for gray in (0, 90, 255)])
    assert np.abs(flat[:, :324]).max() == 0
    assert np.linalg.norm(np.diff(flat, axis=0), axis=1).min() > 0.5
