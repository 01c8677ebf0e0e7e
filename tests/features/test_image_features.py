"""Images in pipelines and where labels are judged."""

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import neighboragg
from neighboragg import TrustedClassifier, find_mislabeled
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features import ImageFeatures
from neighboragg.features._encode import encode_images

DIGITS = load_digits()
ARRAYS, Y = (DIGITS.images[:200] * 15).astype(np.uint8), DIGITS.target[:200]


def forms(folder, n=200):
    """The same images as arrays, PIL images, paths and names of files."""
    images = [Image.fromarray(array) for array in ARRAYS[:n]]
    paths = [folder / f"{i}.png" for i in range(len(images))]
    for image, path in zip(images, paths, strict=True):
        image.save(path)
    return {"arrays": ARRAYS[:n], "images": images, "paths": paths, "names": [str(path) for path in paths]}


def brightness(images):
    return np.array([[np.asarray(image).mean(), 1.0] for image in images])


def test_every_form_gives_the_same_vectors(tmp_path):
    expected = encode_images(ARRAYS[:20]).vectors
    for name, X in forms(tmp_path, 20).items():
        np.testing.assert_array_equal(ImageFeatures().fit_transform(X), expected, err_msg=name)
    names = [f"{i}.png" for i in range(20)]
    np.testing.assert_array_equal(ImageFeatures(root=tmp_path, batch_size=7).transform(names), expected)


def test_a_pipeline_is_cross_validated_and_cloned():
    model = make_pipeline(ImageFeatures(), LogisticRegression(max_iter=200))
    assert cross_val_score(model, ARRAYS, Y, cv=2).mean() > 0.8
    assert clone(ImageFeatures(encoder=brightness)).encoder is brightness
    assert ImageFeatures(encoder=brightness).fit(ARRAYS).transform(ARRAYS[:3]).shape == (3, 2)


@pytest.mark.full
def test_wrong_labels_of_images_in_every_form(tmp_path):
    y = Y.copy()
    wrong = [7, 50, 150]
    y[wrong] = (y[wrong] + 3) % 10
    results = [find_mislabeled(X, y, features=ImageFeatures(), flag=3) for X in forms(tmp_path).values()]
    for result in results:
        assert np.flatnonzero(result.mask).tolist() == wrong
        assert result.suggested[wrong].tolist() == Y[wrong].tolist()
        np.testing.assert_array_equal(result.scores, results[0].scores)


def test_trust_in_predictions_for_images(tmp_path):
    X = forms(tmp_path)["images"]
    model = TrustedClassifier(
        make_pipeline(ImageFeatures(), LogisticRegression(max_iter=200)),
        features=ImageFeatures(),
        random_state=0,
    )
    trust = model.fit(X[:150], Y[:150]).score_samples(X[150:])
    assert trust.shape == (50,)
    assert trust[model.predict(X[150:]) == Y[150:]].mean() > 0.6


def test_an_unreadable_image_is_named(tmp_path):
    (tmp_path / "bad.png").write_text("no image")
    with pytest.raises(InvalidInputError, match=r"1 of 2 images cannot be read:\n  bad\.png: not an image"):
        Image.new("L", (3, 3)).save(tmp_path / "good.png")
        ImageFeatures(root=tmp_path).transform(["good.png", "bad.png"])


def test_an_encoder_by_name_is_refused_as_a_saved_model_could_name_any():
    with pytest.raises(InvalidParameterError) as caught:
        ImageFeatures(encoder="os:system").transform(ARRAYS[:2])
    assert str(caught.value) == (
        "The 'encoder' parameter of ImageFeatures must be a callable or None. Got 'os:system' instead.\n"
        "Hint: import it, and pass the callable itself."
    )


def test_saved_and_loaded(tmp_path):
    ImageFeatures(batch_size=3).save(tmp_path / "features.nagg")
    again = neighboragg.load(tmp_path / "features.nagg")
    np.testing.assert_array_equal(again.transform(ARRAYS[:5]), ImageFeatures().transform(ARRAYS[:5]))
    with pytest.raises(Exception, match="encoder"):
        ImageFeatures(encoder=brightness).save(tmp_path / "other.nagg")
